"""How cartridges look on a terminal (``rappd cartridge``)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rappd.cli.console import arrow, command, dim, mark, note, say, tame, tell, wrapped
from rappd.cli.formatting import count, size, tilde
from rappd.cli.tables import table
from rappd.errors import NotYet

Told = dict[str, Any]

_SHOWN = 40


def exit_code(ran: Told) -> int:
    """0 for what was done or frozen, 1 for a program that failed, 8 for one that waits."""
    return {"error": 1, "waiting": NotYet.exit_code}.get(str(ran["status"]), 0)


def show_ran(ran: Told, file: Path, verb: str) -> None:
    """What came of ``rappd cartridge <verb>``: its output first, then each frame, then where it stands."""
    _notes(ran)
    _output(ran["output"])
    for frame in ran["frames"]:
        if "error" in frame:
            tell("bad", f"Frame {frame['frame']}: {frame['error']['message']}", stream=sys.stderr)
        elif ran["kind"] == "buddy":
            say(f"{mark('good')} {tame(frame['result'])}")
        else:
            number = dim(f"frame {frame['frame']}")
            say(f"{number}  {tame(frame['result'])}")
    if ran["status"] == "waiting":
        again = f"rappd cartridge resume {file} --input JSON"
        tell("note", "It waits for input.", again if ran["saved"] else "", stream=sys.stderr)
    if ran["status"] == "frozen":
        say(f"{mark('good')} Frozen after {count(ran['steps'], 'step')}.")
        for line in ran["next"].splitlines():
            say(dim(f"  {tame(line)}"))
    _where(ran, file, verb)


def show_shelf(rows: list[Told]) -> None:
    """Those that lie here; what cannot be read is told below."""
    good = [row for row in rows if not row["problem"]]
    if good:
        lines = [
            [tame(row["name"]), tame(row["of"]) or "brainstem", _runs(row), tame(tilde(row["path"]))]
            for row in good
        ]
        table(["CARTRIDGE", "OF", "STATE", "FILE"], lines, shrink=0, whole=(3,))
    elif not rows:
        say("None lies beside your agents or your twins'.")
        say(f"  {arrow()} {command('rappd cartridge new NAME --program FILE.lispy')}")
    for row in rows:
        if row["problem"]:
            tell("note", row["problem"], f"look at {tilde(row['path'])}", stream=sys.stderr)


def show_saved(made: Told) -> None:
    """What was written."""
    _notes(made)
    say(f"{mark('good')} {tame(made['name'])}, {tame(made['shape'])}, signed")
    say(f"  {tilde(made['saved'])}")


def show_inspected(found: Told) -> None:
    """What a cartridge is."""
    _notes(found)
    what = "a LisPy agent" if found["kind"] == "lispy" else "a buddy"
    say(f"{tame(found['name'])}, {what}, {size(found['size'])}, {tame(found['shape'])}")
    say(f"{mark('good' if found['signer']['name'] else 'note')} {_signed(found['signer'])}")
    say()
    for label, value in _buddy(found["buddy"]) if found["kind"] == "buddy" else _lispy(found):
        if value:
            say(f"  {label:<10}{wrapped(tame(str(value)), 12)}")
    if found["frozen"]:
        say()
        say("Frozen in the middle of a frame:")
        for line in found["next"].splitlines():
            say(f"  {tame(line)}")


def show_diff(found: Told) -> None:
    """What differs, one line each."""
    _notes(found)
    if found["same"]:
        say(f"{mark('good')} They hold the same.")
    for line in found["lines"]:
        say(tame(line))


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


def _signed(signer: Told) -> str:
    if not signer["fingerprint"]:
        return "not signed"
    if signer["standing"] == "self":
        return "signed by this machine"
    who = tame(signer["name"]) if signer["name"] else f"{signer['fingerprint'][:16]}, not trusted here"
    return f"signed by {who}"


def _output(text: str) -> None:
    """What a program wrote: as it is where it goes on to another program, made harmless on a screen."""
    if not text:
        return
    if sys.stdout.isatty():
        say(tame(text).removesuffix("\n"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode() if text.endswith("\n") else f"{text}\n".encode())
    sys.stdout.buffer.flush()


def _where(ran: Told, file: Path, verb: str) -> None:
    if ran["saved"]:
        say(dim(f"Saved in {tilde(ran['saved'])}, signed."))
    elif ran["status"] != "error":
        say(dim(f"Nothing was saved. {arrow()} ") + command(f"rappd cartridge {verb} {file} --save"))


def _notes(found: Told) -> None:
    for text in found.get("notes", ()):
        note(f"{mark('note', sys.stderr)} {tame(text)}")
