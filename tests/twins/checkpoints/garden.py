"""A twin with everything, that lives on between checkpoints."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from envelopes.identity.keys import IdentityKey
from twins.eggs.frames import Frame, chained
from twins.eggs.writers.formats import EggMaker
from twins.installer.installer import Installer
from twins.trust.quarantine import QuarantineList
from twins.trust.signers import Signers
from twins.workspace.checkpoint_restore import RestoreResult, plan_restore, restore
from twins.workspace.checkpoints import Checkpoint, Checkpoints
from twins.workspace.twin import Twin, mint
from twins.workspace.workspace import TwinLayout, Workspace

NOW = datetime(2026, 11, 21, 9, 40, tzinfo=UTC)

THEN = {
    "soul.md": "You keep the garden.\n",
    "agents/water_agent.py": "WATER = 1\n",
    "agents/workspace_agents/seed_agent.py": "SEED = 1\n",
    "services/pump_service.py": "name = 'pump'\n",
    "senses/mood_sense.py": "delimiter = '|||MOOD|||'\n",
    "organs/heart_organ.py": "name = 'heart'\n",
    "utils/words.py": "WORD = 'dry'\n",
    ".brainstem_data/memory.json": '{"tomatoes": "dry"}',
    ".brainstem_data/2026/nov/21.json": "{}",
    ".brainstem_data/empty.json": "",
    "rapps/beds/ui/index.html": "<p>beds</p>",
    "tools/rake.sh": "#!/bin/sh\n",
    "README.md": "My twin.\n",
}
"""The content of a checkpoint."""
OTHERS = {
    "rappid.json": None,
    "bonds.json": None,
    ".env": "PUMP_KEY=one\n",
    ".deps/requests/__init__.py": "",
    ".brainstem_data/kept/good/water.py": "WATER = 0\n",
    ".brainstem_data/pump.key": "k",
    ".brainstem_data/private/diary.md": "Nobody reads this.",
    ".remote_agents/o__r/far_agent.py": "FAR = 1\n",
    "agents/basic_agent.py": "KERNEL = 1\n",
    "HATCH_RECEIPT.json": "{}",
}
"""Files that no egg holds, and that stay whatever one goes back to."""


class Said:
    """Conversations as a daemon hands them in."""

    def __init__(self) -> None:
        self.count = 3
        self.meanwhile: Callable[[], object] = lambda: None

    def frames(self, key: str) -> Iterator[Frame]:
        self.meanwhile()
        said = (("2026-11-21T09:00:00.000Z", "said", {"text": f"Hello {n}"}) for n in range(self.count))
        return chained("thread-1", said)


class Garden:
    """A home with a twin in it, and the checkpoints of that home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.places = TwinLayout(home)
        self.said = Said()
        self.held = QuarantineList(home / "held.json", home)
        self.checkpoints = Checkpoints(
            self.places,
            key=IdentityKey.generate(),
            maker=EggMaker("rappd", "1", "desk"),
            conversations=lambda key: self.said,
        )

    def plant(self) -> Twin:
        twin = mint(self.places, "gardener", owner="ada", kind="place", now=NOW, entropy=b"sixteen octets!!")
        self.root = twin.workspace.root
        for path, content in (THEN | OTHERS).items():
            if content is not None:
                self.put(path, content)
        (self.root / "tools" / "rake.sh").chmod(0o755)
        (self.root / "agents" / "linked.py").symlink_to("../utils/words.py")
        return twin

    @property
    def twin(self) -> Twin:
        [folder] = [path for path in self.places.twins.iterdir() if not path.name.startswith(".")]
        return Twin.read(folder)

    def put(self, path: str, content: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(".new")
        beside.write_text(content)
        beside.replace(target)
        return target

    def live_on(self) -> None:
        """Everything changes in every way there is."""
        self.put("soul.md", "You sell the garden.\n")
        self.put("agents/water_agent.py", "WATER = 2\n")
        self.put("agents/sly_agent.py", "SLY = 1\n")
        self.put(".brainstem_data/memory.json", '{"tomatoes": "sold", "price": 3}')
        self.put(".brainstem_data/2026/dec/24.json", "{}")
        self.put("new/folder/of.txt", "new")
        for gone in ("services/pump_service.py", "senses/mood_sense.py", ".brainstem_data/2026/nov/21.json"):
            (self.root / gone).unlink()
        (self.root / "README.md").unlink()
        self.put("README.md/part.md", "A folder where a file was.")
        (self.root / "rapps" / "beds" / "ui" / "index.html").unlink()
        (self.root / "rapps" / "beds" / "ui").rmdir()
        self.put("rapps/beds/ui", "A file where a folder was.")
        self.put("tools/rake.sh", "#!/bin/sh\nrm -r garden\n").chmod(0o755)
        self.put(".env", "PUMP_KEY=two\n")
        self.put(".brainstem_data/kept/good/sly.py", "SLY = 0\n")

    def make(self, *, hours: int = 0, **more: Any) -> Checkpoint:
        return self.checkpoints.make(self.twin, now=NOW + timedelta(hours=hours), **more)

    def look(self, selector: str = "") -> RestoreResult:
        return plan_restore(self.checkpoints, self.twin, selector)

    def go_back(self, selector: str = "", *, hours: int = 5) -> RestoreResult:
        return restore(
            self.checkpoints,
            self.places,
            self.twin,
            selector,
            quarantine=self.held,
            host=Workspace.at(self.home / "brainstem"),
            now=NOW + timedelta(hours=hours),
        )

    def importer(self) -> Installer:
        signers = Signers(self.home / "signers.json")
        return Installer(self.home, quarantine=self.held, signers=signers, fingerprint="aa" * 32)

    def recover(self) -> list[str]:
        """As the daemon does when it starts."""
        return [found.outcome for found in self.importer().recover()]

    def content(self) -> dict[str, str]:
        """Every file of the twin, and where its links lead."""
        return lies(self.root)

    def staged(self) -> list[str]:
        return [path.name for path in self.places.twins.iterdir() if path.name.startswith(".hatch")]


def lies(folder: Path) -> dict[str, str]:
    """Path to content below a folder, or to where a link leads."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            executable = path.stat().st_mode & stat.S_IXUSR
            found[name] = path.read_bytes().decode("utf-8", "replace") + (" (runs)" if executable else "")
    return found
