"""Shows a turn as it happens: calls in dim lines, the answer block by block under its name."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

from rappd.cli.console import (
    advice,
    colours,
    dim,
    print_err,
    print_out,
    runnable,
    status_mark,
    strip_control,
    terminal_width,
    utf8,
    wrapped,
)
from rappd.cli.formatting import count, took
from rappd.cli.progress import Progress
from rappd.cli.tables import beginning, cells

EDGE = 74
"""The column at which the right-hand words of a wide terminal end."""

OFFLINE = "no model"
"""The provider's name where no model answered."""
_NO_MODEL = "(no model)"

_MARKDOWN = re.compile(r"\*\*|^```|^#{1,6} |^\s*[-*+] |^\s*\d+[.)] |^\|.*\|$|`[^`\n]+`|\]\(", re.MULTILINE)
_MARKS = {"came": "[x]", "given up": "[-]"}
_STATES = {"open": "waited for"}
_TRAILING = re.compile(r"[ ]+(\x1b\[0m)?$")


class TurnRenderer:
    """One turn on the screen. ``label`` stands before the answer; without one it is printed bare."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._first = True  # the next block follows the label
        self._segment = ""  # the text since the last call
        self._waiting = ""  # what of it is not printed yet
        self._running: dict[str, str] = {}
        self._thought = ""  # the model's, since the last call
        self._plan: dict[tuple[str, str], str] = {}  # the states of entries that are on the screen
        self._progress = Progress()
        self._live = sys.stdout.isatty()

    def begin(self) -> None:
        """Says that an answer is awaited."""
        self._progress(f"{self._indent}…", at_once=True)

    def event(self, event: dict[str, Any]) -> None:
        """One event of the stream."""
        match event["type"]:
            case "delta":
                self._show_thought()
                self._segment += event["text"]
                if self._live:
                    self._waiting += event["text"]
                    self._print_blocks()
                    self._show_growing()
            case "thought":
                self._thought += event["text"]
                self._progress(f"{self._indent}thinking: {self._tail(self._thought)}")
            case "waiting":
                self._progress(
                    f"{self._indent}still waiting for {event['for']} ({event['seconds']} s)…", at_once=True
                )
            case "call":
                self._show_thought()
                self._end_segment()
                self._running[event["call"]] = _call(event)
                self._show_running()
            case "piece":
                self._progress(f"{self._indent}{event['name']}: {self._tail(event['text'])}")
            case "result":
                self._show_result(event)
                self._show_running()
            case "work" if event["work"].get("kind") == "plan":
                self._show_plan(event["work"])
            case "notice":
                self._progress.clear()
                print_err(f"{status_mark('note', sys.stderr)} {advice(event['text'], 2, stream=sys.stderr)}")

    def answer(self, text: str) -> None:
        """The whole answer, once it is known; what of it is on the screen is not repeated."""
        self._show_thought()
        if not self._live:
            self._progress.clear()
            print_out(self._label + strip_control(runnable(text)).replace("\n", f"\n{self._indent}"))
            return
        sentence = self._segment.strip()
        if sentence and text.strip().startswith(sentence):
            self._waiting += text.strip()[len(sentence) :]
        else:
            self._end_segment()
            self._waiting = text
        self._print_blocks(rest=True)

    def answered(self, done: dict[str, Any]) -> None:
        """Dim lines below the answer: who gave it, how long it took, how many tokens, and if no agent was used.

        Agents that were used stand above the answer.
        """
        alone = "no agent was used" if done.get("agents_used") == [] else ""
        for line in filter(None, (answered_by(done), alone)):
            self._progress.clear()
            room = max(10, terminal_width(sys.stderr) - cells(self._indent))
            print_err(dim(f"{self._indent}{beginning(line, room)}"))

    def end(self) -> None:
        """Leaves the screen in order, also after a turn that was stopped."""
        self._print_blocks(rest=True)
        self._progress.clear()

    @property
    def _indent(self) -> str:
        return " " * cells(self._label)

    def _show_running(self) -> None:
        if self._running:
            self._progress(f"{self._indent}{next(iter(self._running.values()))}", at_once=True)

    def _show_result(self, event: dict[str, Any]) -> None:
        self._progress.clear()
        called = self._running.pop(event["call"], str(event["name"]))
        time = ("" if event["ok"] else "✗ ") + took(event["seconds"])
        edge = min(terminal_width(sys.stderr), EDGE)
        room = max(10, edge - cells(self._indent) - cells(time) - 2)
        shown = beginning(called, room)
        print_err(dim(f"{self._indent}{shown}{' ' * (room - cells(shown))}  {time}"))

    def _show_plan(self, plan: dict[str, Any]) -> None:
        """A dim line for each entry of a listener's plan that is new, or has another state than before."""
        self._end_segment()
        self._progress.clear()
        for todo in plan["todos"]:
            key = plan["by"], todo["id"]
            if self._plan.get(key) == todo["state"]:
                continue
            self._plan[key] = todo["state"]
            mark = _MARKS.get(todo["state"], "[ ]")
            line = " ".join(
                strip_control(
                    f"{plan['by']}: {todo['text']}, {_STATES.get(todo['state'], todo['state'])}"
                ).split()
            )
            room = max(10, min(terminal_width(sys.stderr), EDGE) - cells(self._indent) - 4)
            print_err(dim(f"{self._indent}{mark} {beginning(line, room)}"))
        self._show_running()

    def _show_growing(self) -> None:
        """Shows the end of a block that is still growing: words appear as they come, the block when it is whole."""
        if self._waiting.strip():
            self._progress(f"{self._indent if not self._first else self._label}{self._tail(self._waiting)}")

    def _show_thought(self) -> None:
        """One dim line for the thoughts that came before an answer or a call."""
        thought, self._thought = " ".join(strip_control(self._thought).split()), ""
        if thought:
            self._progress.clear()
            room = max(10, min(terminal_width(sys.stderr), EDGE) - cells(self._indent) - 9)
            print_err(dim(f"{self._indent}thought: {beginning(thought, room)}"))

    def _tail(self, text: str) -> str:
        """The end of a text in the rest of one line."""
        room = max(10, terminal_width(sys.stderr) - cells(self._indent) - 14)
        shown = " ".join(strip_control(text[-4 * room :]).split())
        return shown if cells(shown) <= room else f"…{shown[-room:]}"

    def _end_segment(self) -> None:
        self._print_blocks(rest=True)
        self._segment = ""
        self._first = True

    def _print_blocks(self, *, rest: bool = False) -> None:
        while (cut := _block_end(self._waiting)) or (rest and self._waiting.strip()):
            block, self._waiting = (self._waiting[:cut], self._waiting[cut:]) if cut else (self._waiting, "")
            if block.strip():
                self._print(block.strip("\n"))

    def _print(self, block: str) -> None:
        self._progress.clear()
        if not self._first:
            print_out()
        for line in _lines(strip_control(runnable(block)), cells(self._label)):
            print_out(f"{self._label if self._first else self._indent}{line}")
            self._first = False


def answered_by(done: dict[str, Any]) -> str:
    """ "small, Ollama, 0.8 s, 7 tokens in, 3 out", "8 ms"; "" where nothing is known.

    Without a model the answer itself begins with ``(no model)``: it is said once.
    """
    provider = strip_control(str(done.get("provider") or ""))
    if not provider:
        return ""
    model = strip_control(str(done.get("model") or ""))
    says_so = str(done.get("response") or done.get("assistant_response") or "").startswith(_NO_MODEL)
    parts = [took(float(done.get("seconds") or 0))]
    if provider != OFFLINE:
        parts.insert(0, ", ".join(dict.fromkeys(filter(None, (model, provider)))))
    elif not says_so:
        parts.insert(0, "without a model")
    if done.get("tokens"):
        parts.append(f"{count(done['input_tokens'], 'token')} in, {done['output_tokens']:,} out")
    return ", ".join(parts)


def _call(event: dict[str, Any]) -> str:
    arguments = " ".join(f"{key}={value}" for key, value in event["args"].items())
    return " ".join(strip_control(f"{event['name']} {arguments}").split())


def _block_end(text: str) -> int:
    """Returns the end of the first block, its blank line included; 0 while it is still growing."""
    start = 0
    while (cut := text.find("\n\n", start)) >= 0:
        if text.count("```", 0, cut) % 2 == 0:
            return cut + 2
        start = cut + 2
    return 0


def _lines(block: str, indent: int) -> list[str]:
    if _MARKDOWN.search(block):
        return _rendered(block, max(20, terminal_width() - indent))
    return [line.strip() for line in wrapped(block, indent).split("\n")]


def _rendered(block: str, room: int) -> list[str]:
    """Markdown as lines of at most ``room`` columns, in the terminal's own sixteen colours."""
    from rich.console import Console
    from rich.markdown import Markdown

    page = io.StringIO()
    coloured = colours(sys.stdout)
    console = Console(
        file=page,
        width=room,
        force_terminal=coloured,
        color_system="standard" if coloured else None,
        highlight=False,
        safe_box=not utf8(sys.stdout),
    )
    console.print(Markdown(block, hyperlinks=False, code_theme="ansi_dark"))
    return [_TRAILING.sub(r"\1", line) for line in page.getvalue().strip("\n").split("\n")]
