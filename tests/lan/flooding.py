"""Announces thousands of machines that do not exist: ``flooding.py ADDRESS COUNT VICTIM``.

Each claims a fingerprint of its own, every tenth that of VICTIM; many are malformed in some way.
"""

from __future__ import annotations

import hashlib
import socket
import sys
import time

from zeroconf import DNSAddress, DNSOutgoing, DNSPointer, DNSService, DNSText

SERVICE = "_rappd._tcp.local."
CLASS_IN, A, PTR, TXT, SRV, ANSWER = 1, 1, 12, 16, 33, 0x8400


def main(address: str, count: str, victim: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        out.bind((address, 5353))
        for number in range(int(count)):
            for packet in announced(number, victim):
                out.sendto(packet, ("224.0.0.251", 5353))
            time.sleep(0.001)


def announced(number: int, victim: str) -> list[bytes]:
    claimed = victim if number % 10 == 0 else hashlib.sha256(str(number).encode()).hexdigest()
    name = f"ghost{number}_{claimed[:16]}.{SERVICE}" if number % 17 else f"{number}.elsewhere.local."
    server = f"ghost{number}.local."
    texts = {
        3: b"",
        5: b"\x01v" * 400,
        7: text({"v": "1", "id": claimed, "name": "\x1b[2J\u202e" * 10, "port": "-1"}),
        11: text({"v": "1", "id": claimed.upper(), "name": "x", "port": "7443"}),
    }
    usual = text({"v": "1", "id": claimed, "name": f"ghost{number}", "port": "7443"})
    content = next((texts[one] for one in texts if number % one == 0), usual)
    out = DNSOutgoing(ANSWER)
    out.add_answer_at_time(DNSPointer(SERVICE, PTR, CLASS_IN, 4500, name), 0)
    out.add_answer_at_time(DNSService(name, SRV, CLASS_IN, 120, 0, 0, 7443, server), 0)
    out.add_answer_at_time(DNSText(name, TXT, CLASS_IN, 4500, content), 0)
    out.add_answer_at_time(
        DNSAddress(server, A, CLASS_IN, 120, bytes([10, 78, number >> 8 & 255, number & 255])), 0
    )
    return out.packets()


def text(fields: dict[str, str]) -> bytes:
    parts = [f"{key}={value}".encode()[:255] for key, value in fields.items()]
    return b"".join(bytes([len(part)]) + part for part in parts)


if __name__ == "__main__":
    main(*sys.argv[1:])
