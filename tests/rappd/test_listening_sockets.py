"""Sockets of the listeners on the network, and ports for daemons that start a moment after they were chosen."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import free_port

from rappd.daemon.ports import aside, is_free
from rappd.listeners import listening_sockets
from rappd.listeners.listening_sockets import listen

needs_ipv6 = pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def opened(stack: ExitStack, address: str, port: int) -> list[tuple[str, int]]:
    found = [stack.enter_context(one) for one in listen(address, port)]
    return [(str(one.getsockname()[0]), int(one.getsockname()[1])) for one in found]


@needs_ipv6
def test_any_listens_at_both_families_on_one_port(stack: ExitStack) -> None:
    port = free_port()
    assert opened(stack, "any", port) == [("0.0.0.0", port), ("::", port)]
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as line:
            line.connect((host, port))
            assert line.getpeername()[0] == host


@needs_ipv6
def test_free_port_is_one_for_both_families(stack: ExitStack) -> None:
    (_, first), (_, second) = opened(stack, "any", 0)
    assert first == second != 0


@needs_ipv6
def test_each_family_can_be_chosen_alone(stack: ExitStack) -> None:
    assert [host for host, _ in opened(stack, "0.0.0.0", free_port())] == ["0.0.0.0"]
    port = free_port()
    assert opened(stack, "::", port) == [("::", port)]
    with pytest.raises(OSError), socket.socket() as line:
        line.connect(("127.0.0.1", port))


@needs_ipv6
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_port_taken_in_one_family_moves_both(stack: ExitStack, host: str) -> None:
    port = free_port()
    taken = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
    taken.bind((host, port))
    taken.listen()
    (_, first), (_, second) = opened(stack, "any", port)
    assert first == second != port


def test_without_ipv6_the_other_family_is_listened_at(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    class WithoutIPv6(socket.socket):
        def __init__(self, family: int, *more: Any) -> None:
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, "no such family")
            super().__init__(family, *more)

    monkeypatch.setattr(listening_sockets.socket, "socket", WithoutIPv6)
    port = free_port()
    assert opened(stack, "any", port) == [("0.0.0.0", port)]


def test_address_of_another_machine_is_not_listened_at(stack: ExitStack) -> None:
    assert opened(stack, "192.0.2.1", free_port()) == []


def test_no_connection_gets_one_of_them_by_chance() -> None:
    lent_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = aside(20)
    assert len(set(found)) == 20
    assert all(1024 < port < lent_from and is_free(port) for port in found)
