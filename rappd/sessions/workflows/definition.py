"""Reads workflow files: JSON, every field checked; an error names the file, the field and what to write. Words the cues."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from agents.storage.text_file import SAVE_AS_UTF8, NotUtf8Error, decode
from rappd.sessions.errors import WorkflowError
from rappd.sessions.sentence_routing import MOST_TEXT

MOST_STEPS = 100
MOST_BYTES = 256 << 10
SCHEMA = "rappd-workflow/1.0"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_TITLE = re.compile(r"[^\W_](?:[\w .'-]{0,38}\w)?")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+")
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}\n]{1,120})\}|[{}]")
_COUNT = re.compile(r"-?[1-9]\d?")
_WHERE = re.compile(r"^(.*?)(?: - at `\$\.?(.*)`)?$", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[^\d\s][.!?…])[\"”’)]?\s+|\n+")

_Line = Annotated[str, Meta(min_length=1, max_length=200)]
_Text = Annotated[str, Meta(min_length=1, max_length=20_000)]
_Long = Annotated[str, Meta(max_length=4000)]


class Participant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A participant of a workflow. ``plays`` names the twin that answers; "" is the brainstem."""

    name: _Line
    role: Annotated[str, Meta(max_length=200)] = ""
    persona: _Long = ""
    plays: Annotated[str, Meta(max_length=200)] = ""


class Driver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one that asks, on the operator's behalf."""

    name: _Line = "Coordinator"
    persona: _Long = ""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One question. ``without_file`` is asked when a file of the cue is not there.

    ``without_model`` is what keyword matching answers to the cue: quotes, as no model argues for it.
    """

    participant: _Line
    cue: _Text
    without_file: Annotated[str, Meta(max_length=20_000)] = ""
    without_model: Annotated[str, Meta(max_length=20_000)] = ""


class Workflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One workflow file. ``files`` maps names in placeholders to files beside it."""

    name: _Line
    title: _Line
    participants: Annotated[list[Participant], Meta(min_length=1, max_length=20)]
    steps: Annotated[list[Step], Meta(min_length=1, max_length=MOST_STEPS)]
    schema: str = SCHEMA
    about: _Long = ""
    driver: Driver = msgspec.field(default_factory=Driver)
    files: Annotated[dict[str, str], Meta(max_length=10)] = {}

    @property
    def length(self) -> str:
        """The number of its steps: "1 step", "3 steps"."""
        return f"{len(self.steps)} {'step' if len(self.steps) == 1 else 'steps'}"

    @property
    def asked(self) -> list[Participant]:
        """The participants of its steps."""
        names = {one.participant for one in self.steps}
        return [one for one in self.participants if one.name in names]

    def participant(self, name: str) -> Participant:
        """The participant of that name; it is one of them."""
        return next(one for one in self.participants if one.name == name)


_HINTS = {
    "name": 'a name: "name": "debate"',
    "title": 'what screens show: "title": "Debate"',
    "participants": '"participants": [{"name": "Editor", "persona": "…", "plays": ""}]',
    "steps": '"steps": [{"participant": "Editor", "cue": "…"}]',
    "participant": 'the name of one of "participants"',
    "cue": 'the sentence to ask: "cue": "Sum up: {Reporter}"',
    "plays": 'the name of a twin, or "" for the brainstem',
    "driver": '"driver": {"name": "Coordinator", "persona": "…"}',
    "files": '"files": {"story": "story.txt"}',
    "schema": f'"schema": "{SCHEMA}"',
}


def read_workflow(file: str, content: bytes) -> Workflow:
    """The workflow in a file of that name. Raises ``WorkflowError``."""
    if len(content) > MOST_BYTES:
        raise _bad(file, "", f"It is longer than {MOST_BYTES >> 10} KiB", "a shorter file")
    try:
        found = msgspec.json.decode(decode(content).text, type=Workflow)
    except NotUtf8Error as error:
        raise WorkflowError(f"{file} {error}.", do=SAVE_AS_UTF8) from None
    except msgspec.ValidationError as error:
        raise _field_error(file, str(error)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _bad(file, "", f"It is no JSON: {error}", "one JSON object, as `rappd workflows show debate --json` prints") from None  # fmt: skip
    _check(file, found)
    return found


def placeholders(text: str) -> list[str]:
    """The texts between braces in a text; "" for a brace without its other one. ``{{`` and ``}}`` are braces."""
    return [found[1] or "" for found in _PLACEHOLDER.finditer(text) if found[0] not in ("{{", "}}")]


def filled(text: str, answers: Mapping[str, str], files: Mapping[str, str]) -> str:
    """The text with its placeholders replaced, once: what is put in is not looked at again."""

    def value(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0]
        kind, name, count = split_placeholder(found[1])
        return _sentences((files if kind == "file" else answers).get(name, ""), count)

    return _PLACEHOLDER.sub(value, text)


def split_placeholder(inner: str) -> tuple[str, str, int]:
    """``Reporter:2`` as ("answer", "Reporter", 2), ``file:story`` as ("file", "story", 0)."""
    kind = "answer"
    if inner.startswith("file:"):
        kind, inner = "file", inner[5:]
    name, colon, count = inner.rpartition(":")
    if colon and _COUNT.fullmatch(count):
        return kind, name, int(count)
    return kind, inner, 0


def wants_files(text: str) -> set[str]:
    """Names of the files in a text's placeholders."""
    parts = [split_placeholder(one) for one in placeholders(text)]
    return {name for kind, name, _ in parts if kind == "file"}


def _sentences(text: str, count: int) -> str:
    """The first ``count`` sentences, the last ones for a negative count, the whole text for 0."""
    text = text.strip()
    if not count:
        return text
    found = [one.strip() for one in _SENTENCE_END.split(text) if one and one.strip()]
    return " ".join(found[:count] if count > 0 else found[count:])


def _check(file: str, found: Workflow) -> None:
    if found.schema != SCHEMA:
        raise _bad(file, "schema", "This version does not know it", _HINTS["schema"])
    stem = file.removesuffix(".json")
    if not _NAME.fullmatch(found.name) or found.name != stem:
        raise _bad(
            file, "name", "It is the file's name, in small letters, digits, - and _", f'"name": "{stem}"'
        )
    seen: set[str] = set()
    names = [(f"participants[{n}].name", one.name) for n, one in enumerate(found.participants)]
    for field, name in [("driver.name", found.driver.name), *names]:
        if not _TITLE.fullmatch(name):
            raise _bad(file, field, "A name is at most 40 letters, digits and spaces", '"Debater A"')
        if name.casefold() in seen:
            raise _bad(file, field, f'"{name}" stands there twice', "another name")
        seen.add(name.casefold())
    for name, path in found.files.items():
        if not _TITLE.fullmatch(name):
            raise _bad(file, "files", f'"{name[:40]}" is no name', _HINTS["files"])
        if not _FILE.fullmatch(path) or path.endswith(".json"):
            raise _bad(file, f"files.{name}", "A file lies beside the workflow, has an ending and is no .json", _HINTS["files"])  # fmt: skip
    answered: set[str] = set()
    known = {one.name for one in found.participants}
    for n, step in enumerate(found.steps):
        if step.participant not in known:
            some = ", ".join(f'"{one}"' for one in sorted(known))
            raise _bad(file, f"steps[{n}].participant", f'"{step.participant}" is no participant', some)
        for field in ("cue", "without_file", "without_model"):
            for inner in placeholders(getattr(step, field)):
                _check_placeholder(file, f"steps[{n}].{field}", inner, answered, found.files)
        if wants_files(step.without_file):
            raise _bad(file, f"steps[{n}].without_file", "It is asked when a file is missing, and names one", "a cue without {file:…}")  # fmt: skip
        answered.add(step.participant)


def _check_placeholder(
    file: str, field: str, inner: str, answered: set[str], files: Mapping[str, str]
) -> None:
    kind, name, _ = split_placeholder(inner)
    if not inner:
        raise _bad(file, field, "A brace lacks its other one", "{{ and }} where a brace is meant")
    if kind == "file" and name not in files:
        raise _bad(file, field, f'{{{inner}}} names no file of "files"', _HINTS["files"])
    if kind == "answer" and name not in answered:
        raise _bad(file, field, f"{{{inner}}} is no participant of an earlier step", "the name of one that was asked before")  # fmt: skip


def _field_error(file: str, text: str) -> WorkflowError:
    found = _WHERE.match(text)
    assert found is not None
    problemlem, where = found[1], found[2] or ""
    missing = re.search(r"missing required field `(\w+)`|unknown field `(\w+)`", problemlem)
    if missing:
        where = f"{where}.{missing[1] or missing[2]}".removeprefix(".")
        problemlem = "It is missing" if missing[1] else "No such field"
    last = re.sub(r"\[[^\]]*\]", "", where).rpartition(".")[2]
    hint = (
        _HINTS.get(last, "a text" if where else "one JSON object")
        if "No such" not in problemlem
        else "nothing: remove it"
    )
    return _bad(file, where, problemlem.replace("`", ""), hint)


def _bad(file: str, field: str, problem: str, write: str) -> WorkflowError:
    place = f"{file}, {field}" if field else file
    return WorkflowError(f"{place}: {problem}.", do=f"Write {write}.")


def cue_of(step: Step, answers: Mapping[str, str], files: Mapping[str, str]) -> tuple[str, str]:
    """The cue, and what answers it without a model ("": the agents do). Raises ``WorkflowError``."""
    missing = wants_files(step.cue) - files.keys()
    cue_needs(step, files)
    cue = filled(step.without_file if missing else step.cue, answers, files)
    lacks = missing or wants_files(step.without_model) - files.keys()
    without_model = "" if lacks else filled(step.without_model, answers, files)
    return cue[:MOST_TEXT], without_model[:MOST_TEXT]


def cue_needs(step: Step, files: Mapping[str, str]) -> None:
    """Raises ``WorkflowError`` for a cue that lacks a file, and has no question to ask without."""
    missing = wants_files(step.cue) - files.keys()
    if missing and not step.without_file:
        names = sorted(missing)
        raise WorkflowError(
            f"It needs a text for {', '.join(names)}.",
            do=f"Give it: --text {names[0]}=WORDS, or --file {names[0]}=PATH; or put the file into the folder workflows.",
        )


def persona_of(played: Participant, driver: Driver) -> dict[str, str]:
    """The first message of the conversation that a participant gets."""
    lines = [f"You play {played.name}{f' ({played.role})' if played.role else ''}. {played.persona}".strip()]
    if driver.persona:
        lines.append(f"{driver.name} leads. {driver.persona}")
    return {"role": "assistant", "content": "\n".join(lines)}
