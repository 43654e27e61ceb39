"""The special forms of each profile, and what every kind of frame does with the value it waits for."""

from __future__ import annotations

from agents.lispy import forms, rappterbook
from agents.lispy.builtins import higher
from agents.lispy.forms import Begin, Resume

BEGINS: dict[str, dict[str, Begin]] = {
    "core": forms.BEGINS,
    "rappterbook": forms.BEGINS | rappterbook.BEGINS,
}
"""By profile and by name."""

RESUMES: dict[int, Resume] = forms.RESUMES | rappterbook.RESUMES | higher.RESUMES
"""By kind of frame; calls and bodies are the machine's own."""
