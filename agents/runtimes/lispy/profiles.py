"""The special forms of each profile, and what every kind of frame does with the value it waits for."""

from __future__ import annotations

from agents.runtimes.lispy import rappterbook, special_forms
from agents.runtimes.lispy.builtins import higher_order
from agents.runtimes.lispy.special_forms import Begin, Resume

BEGINS: dict[str, dict[str, Begin]] = {
    "core": special_forms.BEGINS,
    "rappterbook": special_forms.BEGINS | rappterbook.BEGINS,
}
"""By profile and by name."""

RESUMES: dict[int, Resume] = special_forms.RESUMES | rappterbook.RESUMES | higher_order.RESUMES
"""By kind of frame; calls and bodies are the machine's own."""
