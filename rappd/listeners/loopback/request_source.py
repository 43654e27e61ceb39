"""The source of a request on this machine, for limits: agents are told apart from everything else."""

from __future__ import annotations

import asyncio

from aiohttp import web

from agents.runtimes.python.network.tcp_owners import Address, account_of, worker_serves
from agents.runtimes.python.sandbox.syscalls import LINUX
from envelopes.ip_addresses import source_text
from rappd.listeners.app_keys import DAEMON

AGENTS = "agents"
"""The source of everything that workers, and programs they started, ask for."""


async def source_of(request: web.Request) -> str:
    """``AGENTS``, or the account of the program that asks, or its address where the account cannot be told."""
    transport = request.transport
    peer = transport.get_extra_info("peername") if transport is not None else None
    here = transport.get_extra_info("sockname") if transport is not None else None
    if not (LINUX and isinstance(peer, tuple) and isinstance(here, tuple)):
        return source_text(request.remote or "")
    zygote = request.app[DAEMON].supervisor.zygote_pid
    return await asyncio.to_thread(_source, zygote, peer[:2], here[:2]) or source_text(str(peer[0]))


def _source(zygote: int | None, peer: Address, here: Address) -> str:
    if zygote and worker_serves(zygote, peer, here):
        return AGENTS
    account = account_of(peer, here)
    return "" if account is None else f"account {account}"
