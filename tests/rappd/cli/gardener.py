"""A twin whose eggs the tests of `rappd egg` pack, look at and hatch."""

from __future__ import annotations

import json
from pathlib import Path

from fixtures.running_daemon import RunningDaemon, agent_source

KETTLE = agent_source("Kettle", 'return "It boils."', description="Boils water in the kettle.")
PUMP = 'name = "pump"\n\n\ndef handle(method, path, body):\n    return {"water": "runs"}, 200\n'


def lies(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()
    }


class Gardener:
    """A twin on a home at rest, and the eggs of it."""

    def __init__(self, home: RunningDaemon, folder: Path) -> None:
        self.home = home
        self._folder = folder
        made = json.loads(home.cli("twins", "new", "gardener", "--kind", "place", "--json").stdout)
        self.key: str = made["twin"]["key"]
        self.root = home.home / "twins" / self.key

    def give(self, path: str, content: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content)

    def packed(self, name: str = "gardener.egg", *more: str) -> Path:
        egg = self._folder / name
        done = self.home.cli("egg", "pack", "gardener", "-o", str(egg), *more)
        assert done.returncode == 0, done
        return egg


def with_code(kitchen: Gardener) -> Path:
    """An egg with an agent and a service in it."""
    kitchen.give("agents/kettle_agent.py", KETTLE)
    kitchen.give("services/pump_service.py", PUMP)
    return kitchen.packed()


def fingerprint(home: RunningDaemon) -> str:
    own: str = json.loads(home.cli("egg", "signers", "--json").stdout)["own"]
    return own
