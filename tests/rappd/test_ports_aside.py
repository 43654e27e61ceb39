"""Ports for daemons that start a moment after they were chosen."""

from __future__ import annotations

from pathlib import Path

from rappd.daemon.ports import aside, is_free


def test_no_connection_gets_one_of_them_by_chance() -> None:
    lent_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = aside(20)
    assert len(set(found)) == 20
    assert all(1024 < port < lent_from and is_free(port) for port in found)
