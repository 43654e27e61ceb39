"""Carries Ethernet frames between two links with delay and loss. A program: ``relay.py LINK LINK``.

Each line on standard input, ``DELAY LOSS``, sets the seconds and the part that is lost, each way.
``relay.py --whole-checksums LINK`` makes a link compute checksums itself: a frame that is carried by hand
must be whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import itertools
import random
import selectors
import socket
import struct
import sys
import time

_ETH_P_ALL, _OUTGOING = 3, 4
_SIOCETHTOOL = 0x8946
_SET_TX, _SET_TSO, _SET_GSO, _SET_GRO = 0x17, 0x1F, 0x24, 0x2C


def main() -> None:
    if sys.argv[1] == "--whole-checksums":
        whole_checksums(sys.argv[2])
        return
    for link in sys.argv[1:3]:
        whole_checksums(link)
    carry(opened(sys.argv[1]), opened(sys.argv[2]))


def whole_checksums(link: str) -> None:
    """Switches every offload of a link off."""
    import array

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in (_SET_TX, _SET_TSO, _SET_GSO, _SET_GRO):
            value = array.array("B", struct.pack("II", command, 0))
            try:
                request = struct.pack("16sP", link.encode(), value.buffer_info()[0])
                fcntl.ioctl(control, _SIOCETHTOOL, request)
            except OSError as error:
                print(f"{link} {command:#x}: {error}", file=sys.stderr)


def opened(link: str) -> socket.socket:
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    found.bind((link, _ETH_P_ALL))
    number = socket.if_nametoindex(link)
    # SOL_PACKET, PACKET_ADD_MEMBERSHIP, promiscuous: frames to other addresses too
    found.setsockopt(263, 1, struct.pack("IHH8s", number, 1, 0, b""))
    found.setblocking(False)
    return found


def carry(one: socket.socket, other: socket.socket) -> None:
    delay = loss = 0.0
    waiting: list[tuple[float, int, socket.socket, bytes]] = []
    count = itertools.count()
    chance = random.Random(7)
    ready = selectors.DefaultSelector()
    ready.register(one, selectors.EVENT_READ, other)
    ready.register(other, selectors.EVENT_READ, one)
    ready.register(sys.stdin, selectors.EVENT_READ, None)
    print("ready", flush=True)
    while True:
        wait = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for key, _ in ready.select(wait):
            if key.data is None:
                line = sys.stdin.readline()
                if not line:
                    return
                delay, loss = (float(word) for word in line.split())
                continue
            for frame in received(key.fileobj):
                if chance.random() >= loss:
                    heapq.heappush(waiting, (time.monotonic() + delay, next(count), key.data, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, link, frame = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # the link is down: the frame is lost
                link.send(frame)


def received(link: socket.socket) -> list[bytes]:
    frames: list[bytes] = []
    while len(frames) < 64:
        try:
            frame, sender = link.recvfrom(65_600)
        except OSError:
            return frames  # nothing more, or the link went down
        if sender[2] != _OUTGOING:
            frames.append(frame)
    return frames


if __name__ == "__main__":
    main()
