"""Texts that a participant gets: the cue of a step, and who speaks to whom."""

from __future__ import annotations

from collections.abc import Mapping

from rappd.sessions.sentences import MOST_TEXT
from rappd.sessions.workflows.definition import Driver, Participant, Step, filled, wants_files
from rappd.sessions.workflows.errors import WorkflowError


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
