"""A worker's own network: a loopback device that leads nowhere, and on it the socket that the daemon's proxy accepts at."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import socket
import struct
from collections.abc import Mapping

ADDRESS, PORT = "127.0.0.1", 3128
"""Of the proxy, within the worker's network."""
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_BACKLOG = 64


def environment() -> Mapping[str, str]:
    """The variables by which programs in the worker find the proxy."""
    address = f"http://{ADDRESS}:{PORT}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {spelled: address for name in names for spelled in (name, name.lower())}


def listen() -> socket.socket:
    """Start the loopback of this process's fresh network namespace; returns a socket that listens on it. Raises OSError."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        fcntl.ioctl(made, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
        made.bind((ADDRESS, PORT))
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def hand_over(listening: socket.socket, to: int) -> None:
    """Send a socket over the one with the number ``to``, and close both here."""
    with socket.socket(fileno=to) as channel, listening:
        socket.send_fds(channel, [b"."], [listening.fileno()])


def taken_over(channel: socket.socket) -> socket.socket | None:
    """The socket that a worker handed over; None where it handed over something else, or nothing."""
    message, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4 * array.array("i").itemsize))
    numbers = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    if message and len(numbers) == 1:
        with contextlib.suppress(OSError):
            return socket.socket(fileno=numbers[0])
    for number in numbers:
        os.close(number)
    return None
