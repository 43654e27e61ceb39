"""Configuration of a worker pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from agents.runtimes.python.sandbox.needs import Confines, Needs

GIB = 1 << 30
_MOST_WORKERS = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one worker.

    Bytes of address space, seconds of processor time over its whole life (a backstop; calls have their own
    deadlines), open files, and processes including all it starts.
    """

    memory: int = 2 * GIB
    cpu_seconds: int = 6 * 3600
    open_files: int = 1024
    processes: int = 256


@dataclass(frozen=True, slots=True)
class ReadOnlyPath:
    """A path of a workspace that its workers may read and not write.

    A missing one is made, so that nobody else makes it: a folder, or a file with ``content``; None leaves it
    missing.
    """

    path: Path
    folder: bool = False
    content: str | None = None


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """One workspace's workers.

    ``settings`` go to the room (``room``, as "module:Class") as they are; ``env`` is the workers' whole
    environment. Everything in ``private_root`` but the workspace is hidden from them. ``one_worker`` is
    for agents that keep state in memory: one request at a time, all in one process. After
    ``idle_seconds`` without a request (``inf``: never) the workers end. ``needs``: what they may reach beside
    the workspace's storage; None is everything that is not hidden. ``private``, ``shown`` and ``imported`` as in
    ``Confines``.
    """

    workspace: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    private_root: Path | None = None
    read_only: tuple[ReadOnlyPath, ...] = ()
    trusted: bool = False
    limits: Limits = field(default_factory=Limits)
    max_workers: int = 4
    one_worker: bool = False
    idle_seconds: float = 120.0
    room: str = "agents.runtimes.python.worker.worker_requests:WorkerHost"
    needs: Needs | None = None
    private: bool = False
    shown: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()

    def confined(self, to: Confines) -> PoolConfig:
        """The same plan for the code of these confines."""
        env = self.env if to.needs is None else to.needs.environment(self.env)
        return replace(self, env=env, **to._asdict())

    @property
    def most_workers(self) -> int:
        """The most workers at a time."""
        return 1 if self.one_worker else max(1, min(self.max_workers, _MOST_WORKERS))

    def encoded(self, resolve: Callable[[Path], Path] = Path.resolve) -> bytes:
        """The plan as workers read it; paths are resolved, since mounts and rules know no links."""
        return orjson.dumps(
            {
                "workspace": str(resolve(self.workspace)),
                "private_root": str(resolve(self.private_root)) if self.private_root else "",
                "settings": dict(self.settings),
                "env": dict(self.env),
                "read_only": [
                    {
                        # A link at its end is protected itself.
                        "path": str(resolve(one.path.parent) / one.path.name),
                        "folder": one.folder,
                        "content": one.content,
                    }
                    for one in self.read_only
                ],
                "trusted": self.trusted,
                "limits": self.limits,
                "room": self.room,
                "needs": self.needs.as_json() if self.needs is not None else None,
                "private": self.private,
                "shown": [str(resolve(Path(one).parent) / Path(one).name) for one in self.shown],
                "imported": [str(resolve(Path(one).parent) / Path(one).name) for one in self.imported],
            },
            option=orjson.OPT_NON_STR_KEYS,
        )
