"""A restarted machine answers each call once, also one that came before it looked for interrupted work."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import agent_source

# Holds up the look for interrupted work, so that a call is taken before it.
_SITE = """
import asyncio
from rappd.store.inbox_table import InboxTable

really = InboxTable.unfinished

async def unfinished(self):
    await asyncio.sleep(2)
    return await really(self)

InboxTable.unfinished = unfinished
"""
_SLOW = 'import time\n        time.sleep(4)\n        return "ran"'


@pytest.mark.own_process
def test_restart_does_not_interrupt_its_own_work(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_SITE)
    desk, pi = Machine(tmp_path / "desk", "desk"), Machine(tmp_path / "pi", "pi")
    pi.drop("slow_agent.py", agent_source("Slow", _SLOW))
    try:
        desk.start(), pi.start()
        acquaint(desk, pi)
        pi.kill()
        desk.misses("pi")
        pi.environment["PYTHONPATH"] = f"{site}:{Path(__file__).parents[3]}"
        pi.start()
        desk.wait_for(lambda: desk.row("pi")["presence"] == "here", what="pi to be back")
        done = desk.call("pi", agent="Slow", args={}, wait=100)
        assert (done["state"], done["result"]) == ("done", "ran"), done
        for machine in (desk, pi):
            ends = [e["verb"] for rows in machine.threads() for e in rows if e["id"] == done["id"]]
            assert ends == ["HELP", "DONE"], (machine.name, ends)
    finally:
        desk.stop(), pi.stop()
