"""A phone that connects and leaves again and again: ``python cycling_phone.py HOME KEPT CYCLES``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fixtures.running_daemon import RunningDaemon

from tests.rappd.tether.aiortc_client import AiortcClient


async def main(home: Path, kept: Path, cycles: int) -> None:
    """Pairs at the first visit."""
    phone = AiortcClient(RunningDaemon(home))
    if kept.exists():
        phone.remember(kept.read_text())
    else:
        await phone.pair()
        kept.write_text(phone.kept())
        await phone.leave()
    for _ in range(cycles):
        await phone.resume()
        await phone.leave()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
