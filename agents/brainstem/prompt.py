"""The system text of a turn: the soul file, texts of agents, the list of agents, and slot instructions."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from agents.brainstem.answer_slots import TWIN, VOICE, SenseOutput
from agents.contract.agent import Agent
from agents.providers.provider import ROSTER
from agents.storage.safe_fs import SafeTree, in_file_pool
from agents.storage.text_file import fault_of, readable

_VOICE_TEXT = f"""\
## Spoken form
After your full answer write {VOICE} and then one or two short sentences to be read aloud:
plain words, no Markdown, no lists, no links."""

_TWIN_TEXT = f"""\
## Twin
After everything else write {TWIN} and then a short first-person aside of the owner's twin:
what it notices, hints or questions, in a few lines."""

_PROGRAM = "## Instructions of the program that asks"


def build(
    soul: str,
    contexts: Iterable[str],
    agents: Sequence[Agent],
    unavailable: Sequence[str],
    waiting: Sequence[str],
    *,
    voice: bool,
    twin: bool,
    sensed: SenseOutput,
    program: str = "",
) -> str:
    """The whole text; parts that are empty leave no trace. Each sense has a paragraph of its own.

    ``program``: instructions of the program that asks. They stand behind everything of this workspace's.
    """
    parts = [
        soul.strip(),
        *(context.strip() for context in contexts),
        _agents_section(agents, unavailable, waiting),
    ]
    if voice:
        parts.append(sensed.prompts.get(VOICE, _VOICE_TEXT))
    if twin:
        parts.append(sensed.prompts.get(TWIN, _TWIN_TEXT))
    parts.extend(slot.prompt for slot in sensed.slots)
    if program.strip():
        parts.append(f"{_PROGRAM}\n{program.strip()}")
    return "\n\n".join(part for part in parts if part)


def _agents_section(agents: Sequence[Agent], unavailable: Sequence[str], waiting: Sequence[str]) -> str:
    if not agents and not unavailable and not waiting:
        return ""
    lines = [f"{ROSTER}: {len(agents)}"]
    lines += [f"- {agent.tool_name}: {_first_sentence(agent.description)}" for agent in agents]
    if unavailable:
        lines.append(f"Not running, because their files have faults: {', '.join(unavailable)}.")
    if waiting:
        lines.append(f"Not running until the owner has read and approved them: {', '.join(waiting)}.")
    return "\n".join(lines)


def _first_sentence(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line.split(". ", 1)[0].rstrip(".")[:200]


log = logging.getLogger(__name__)

FALLBACK = "You are a helpful AI assistant."
MAX_BYTES = 16 << 20


class Soul:
    """The soul's text, read again whenever its file changed."""

    def __init__(self, path: Path, files: SafeTree | None = None) -> None:
        """``files``: the tree that ``path`` is in."""
        self.path = path
        self._files = files or SafeTree(path.parent)
        self._where = path if files else path.name
        self._stamp: tuple[int, int, int] | None = None
        self._text = FALLBACK
        self._problem = ""

    async def text(self) -> str:
        """The text in force. A missing or unreadable file, or a link, gives the fallback, and is tried again."""
        return await in_file_pool(self._read)

    def _read(self) -> str:
        try:
            found = self._files.stat_file(self._where)
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp != self._stamp:
                content = self._files.read(self._where, MAX_BYTES)
                self._text = readable(content)
                self._stamp = stamp
                if (fault := fault_of(content)) is not None:
                    log.warning("%s %s; what can be read of it is used", self.path, fault)
            self._problem = ""
        except FileNotFoundError:
            self._stamp = None
            return FALLBACK
        except OSError as error:
            self._stamp = None
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("the soul is not used: %s", error)
            return FALLBACK
        return self._text
