"""The process behind a TCP port: found among the zygote's descendants, and nowhere else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agents.runtimes.python.network.tcp_owners import worker_serves
from agents.runtimes.python.sandbox.syscalls import LINUX

pytestmark = pytest.mark.skipif(not LINUX, reason="reads /proc")

LISTENS = """
import socket, sys, time
found = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print(found.getsockname()[1], flush=True)
accepted = [found.accept()] if sys.argv[2:] else []
if accepted:
    found.close()
    print("accepted", flush=True)
time.sleep(60)
"""
PARENT = (
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', *sys.argv[1:]]); time.sleep(60)"
)


@contextmanager
def _started(*words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that listens, or whose child does, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-c", *words], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        os.killpg(process.pid, 9)
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_listener_below_the_zygote_is_found(address: str) -> None:
    with _started(PARENT, LISTENS, address) as (parent, port):
        for host in ("127.0.0.1", "::1", "localhost"):
            reached = host == "localhost" or address in (host, "0.0.0.0", "::")
            assert worker_serves(parent.pid, (host, port)) is reached, host


def test_listener_elsewhere_is_no_worker() -> None:
    with (
        _started(PARENT, LISTENS, "127.0.0.1") as (_, port),
        _started(PARENT, LISTENS, "127.0.0.1") as (
            other,
            _,
        ),
    ):
        assert not worker_serves(other.pid, ("127.0.0.1", port))


def test_port_where_nobody_listens_is_no_worker(unused_tcp_port: int) -> None:
    assert not worker_serves(os.getpid(), ("127.0.0.1", unused_tcp_port))


def test_worker_at_another_address_does_no_harm() -> None:
    with _started(PARENT, LISTENS, "127.0.0.2") as (parent, port):
        assert not worker_serves(parent.pid, ("127.0.0.1", port))


def test_accepted_connection_is_found_after_its_listener_closed() -> None:
    with (
        _started(PARENT, LISTENS, "127.0.0.1", "accept") as (parent, port),
        socket.create_connection(("127.0.0.1", port)) as ours,
    ):
        assert parent.stdout is not None
        assert parent.stdout.readline() == "accepted\n"
        assert not worker_serves(parent.pid, ("127.0.0.1", port)), "nobody listens any more"
        assert worker_serves(parent.pid, ("127.0.0.1", port), ours.getsockname())


def test_check_is_quick_enough_for_each_request() -> None:
    with _started(PARENT, LISTENS, "127.0.0.1") as (parent, port):
        started = time.process_time()
        for _ in range(20):
            worker_serves(parent.pid, ("127.0.0.1", port))
        assert (time.process_time() - started) / 20 < 1
