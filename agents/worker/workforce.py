"""All workers of this daemon: the template they are forked from, and a crew for each workspace."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.errors import WorkerRefused
from agents.worker.crew import Crew
from agents.worker.plan import CrewPlan
from agents.worker.sandbox import AUTO
from agents.worker.template_link import TemplateLink, TemplateSettings

OnOutput = Callable[[str, int, str], None]

_TICK = 0.02
_PROCESSES_OF_ALL = 4096


class Workforce:
    """Starts workers and keeps their crews.

    ``on_output(crew key, process id, line)`` gets what they print. ``environ`` is the template's
    environment and must hold nothing secret; workers get their plan's instead. ``preload`` are modules
    that hold rooms. ``sandbox`` is "auto", or one kind to use ("mount namespace", "landlock", "none").
    """

    def __init__(
        self,
        *,
        on_output: OnOutput | None = None,
        environ: Mapping[str, str] | None = None,
        preload: Sequence[str] = ("agents.room",),
        sandbox: str = AUTO,
    ) -> None:
        scrubbed = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        self._settings = TemplateSettings(environ or scrubbed, preload, sandbox, _PROCESSES_OF_ALL)
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._template: TemplateLink | None = None
        self._crews: dict[str, Crew] = {}
        self._busy: set[Crew] = set()
        self._ticker: asyncio.TimerHandle | None = None
        self._templates_started = 0
        self._closing = False
        self._ending: set[asyncio.Task[None]] = set()
