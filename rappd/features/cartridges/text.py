"""Screens of ``rappd cartridge``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rappd.cli.console import (
    arrow,
    command,
    dim,
    print_err,
    print_out,
    print_status,
    status_mark,
    strip_control,
    wrapped,
)
from rappd.cli.formatting import count, tilde
from rappd.cli.tables import table
from rappd.errors import NotReadyError
from twins.byte_sizes import format_bytes

Told = dict[str, Any]

_SHOWN = 40


def exit_code(ran: Told) -> int:
    """0 for what was done or frozen, 1 for a program that failed, 8 for one that waits."""
    return {"error": 1, "waiting": NotReadyError.exit_code}.get(str(ran["status"]), 0)


def show_ran(ran: Told, file: Path, verb: str) -> None:
    """Shows a run: its output first, then each frame, then the state it ended in."""
    _notes(ran)
    _output(ran["output"])
    for frame in ran["frames"]:
        if "error" in frame:
            print_status("bad", f"Frame {frame['frame']}: {frame['error']['message']}", stream=sys.stderr)
        elif ran["kind"] == "buddy":
            print_out(f"{status_mark('good')} {strip_control(frame['result'])}")
        else:
            number = dim(f"frame {frame['frame']}")
            print_out(f"{number}  {strip_control(frame['result'])}")
    if ran["status"] == "waiting":
        again = f"rappd cartridge resume {file} --input JSON"
        print_status("note", "It waits for input.", again if ran["saved"] else "", stream=sys.stderr)
    if ran["status"] == "frozen":
        print_out(f"{status_mark('good')} Frozen after {count(ran['steps'], 'step')}.")
        for line in ran["next"].splitlines():
            print_out(dim(f"  {strip_control(line)}"))
    _where(ran, file, verb)


def show_cartridges(rows: list[Told]) -> None:
    """Prints the cartridges that lie here; what cannot be read is named below."""
    good = [row for row in rows if not row["problem"]]
    if good:
        lines = [
            [
                strip_control(row["name"]),
                strip_control(row["of"]) or "brainstem",
                _runs(row),
                strip_control(tilde(row["path"])),
            ]
            for row in good
        ]
        table(["CARTRIDGE", "OF", "STATE", "FILE"], lines, shrink=0, whole=(3,))
    elif not rows:
        print_out("None lies beside your agents or your twins'.")
        print_out(f"  {arrow()} {command('rappd cartridge new NAME --program FILE.lispy')}")
    for row in rows:
        if row["problem"]:
            print_status("note", row["problem"], f"look at {tilde(row['path'])}", stream=sys.stderr)


def show_saved(made: Told) -> None:
    """Shows a file that was written."""
    _notes(made)
    print_out(f"{status_mark('good')} {strip_control(made['name'])}, {strip_control(made['shape'])}, signed")
    print_out(f"  {tilde(made['saved'])}")


def show_inspected(found: Told) -> None:
    """Shows a cartridge."""
    _notes(found)
    what = "a LisPy agent" if found["kind"] == "lispy" else "a buddy"
    print_out(
        f"{strip_control(found['name'])}, {what}, {format_bytes(found['size'])}, {strip_control(found['shape'])}"
    )
    signer = found["signer"]
    mark = status_mark("good" if signer["standing"] in ("self", "trusted") else "note")
    print_out(f"{mark} {strip_control(signer['signed'])}")
    print_out()
    for label, value in _buddy(found["buddy"]) if found["kind"] == "buddy" else _lispy(found):
        if value:
            print_out(f"  {label:<10}{wrapped(strip_control(str(value)), 12)}")
    if found["frozen"]:
        print_out()
        print_out("Frozen in the middle of a frame:")
        for line in found["next"].splitlines():
            print_out(f"  {strip_control(line)}")


def show_diff(found: Told) -> None:
    """Shows differences, one line each."""
    _notes(found)
    if found["same"]:
        print_out(f"{status_mark('good')} They hold the same.")
    for line in found["lines"]:
        print_out(strip_control(line))


def _runs(row: Told) -> str:
    return "frozen" if row["frozen"] else f"{count(row['frame'], 'frame')} done"


def _lispy(found: Told) -> list[tuple[str, Any]]:
    programs = [
        f"{one['name']}, {count(one['lines'], 'line')}{' (a frame runs this)' if one['name'] == found['entry'] else ''}"
        for one in found["programs"]
    ]
    env = [f"{name} = {value}" for name, value in found["env"].items()]
    more = [f"and {len(env) - _SHOWN} more"] if len(env) > _SHOWN else []
    return [
        ("Programs", "\n".join(programs)),
        ("Dialect", found["dialect"]),
        ("Frames", f"{found['frame']:,} done"),
        ("Knows", "\n".join(env[:_SHOWN] + more)),
        ("Waiting", count(len(found["pending_inputs"]), "input") if found["pending_inputs"] else ""),
        ("Tools", ", ".join(found["tools"])),
        ("Last", found["echoes"][-1].get("result") if _told_last(found["echoes"]) else ""),
        ("Saved", found["exported_at"]),
    ]


def _told_last(echoes: list[Any]) -> bool:
    return bool(echoes) and isinstance(echoes[-1], dict)


def _buddy(buddy: Told) -> list[tuple[str, Any]]:
    how = f"mood {buddy['mood']:g}, energy {buddy['energy']:g}, experience {buddy['xp']:g}"
    return [
        ("Stage", buddy["stage"]),
        ("Feels", "" if buddy["stage"] == "egg" else f"{buddy['feels']}: {how}"),
        ("Character", ", ".join(str(one) for one in buddy["personality"])),
        ("Remembers", count(buddy["memories"], "thing") if buddy["memories"] else ""),
        ("Lived", count(buddy["frames_survived"], "frame") if buddy["frames_survived"] else ""),
        ("Hatched", buddy["hatched_at"]),
    ]


def _output(text: str) -> None:
    """Writes a program's output: unchanged into a pipe, without control characters on a screen."""
    if not text:
        return
    if sys.stdout.isatty():
        print_out(strip_control(text).removesuffix("\n"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode() if text.endswith("\n") else f"{text}\n".encode())
    sys.stdout.buffer.flush()


def _where(ran: Told, file: Path, verb: str) -> None:
    if ran["saved"]:
        print_out(dim(f"Saved in {tilde(ran['saved'])}, signed."))
    elif ran["status"] != "error":
        print_out(dim(f"Nothing was saved. {arrow()} ") + command(f"rappd cartridge {verb} {file} --save"))


def _notes(found: Told) -> None:
    for text in found.get("notes", ()):
        print_err(f"{status_mark('note', sys.stderr)} {strip_control(text)}")
