"""Cartridges: run, stepped, frozen, resumed, looked at, compared, converted, made; signed when they are saved.

Everything here works on files, in this process and without a daemon: LisPy reaches nothing outside its
machine. A LisPy cartridge runs in frames and steps; a buddy lives one action a frame.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.storage.text_file import SAVE_AS_UTF8, NotUtf8Error, decode
from rappd.daemon.home import Home
from rappd.errors import ConflictError, UsageProblemError
from rappd.features.cartridges.views import about_buddy, about_lispy, name_of, whose
from rappd.features.eggs.signer_view import standing
from twins.cartridges import buddy_actions, buddy_state, lispy_file
from twins.cartridges.buddy_actions import Action
from twins.cartridges.buddy_status_cache import buddy_status
from twins.cartridges.cartridge_io import load, save
from twins.cartridges.json_documents import Document, canonical, same
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import Shape, checked
from twins.errors import BadCartridgeError, BadFileError

SHAPES = {"seed": Shape.SEED, "legacy": Shape.BUDDY, "spec": Shape.SPEC}
"""The three shapes of a ``.rappter.egg`` by the names they go by here."""


class CartridgeFiles:
    """Verbs over cartridge files. Answers are JSON objects under ``cartridge`` or ``diff``; raises ``ReportableError``.

    ``now`` is the moment that counts, so that the same input gives the same file; the clock's without it.
    """

    def __init__(self, home: Home, *, now: datetime | None = None) -> None:
        self._home = home
        self._now = now

    def run(
        self,
        path: Path,
        *,
        frames: int | None = None,
        inputs: Sequence[Any] = (),
        steps: int | None = None,
        fuel: int | None = None,
        into: Path | None = None,
        replace: bool = False,
        force: bool = False,
    ) -> dict[str, Any]:
        """Runs a cartridge for ``frames`` (one; a buddy's are its ``inputs``, else heartbeats) and saves it ``into`` a file, if any.

        ``steps`` freezes a LisPy machine where it is by then; ``fuel`` is what a frame may use before it
        ends with an error.
        """
        found = load(path, force=force)
        _may_write(into, path, replace)
        notes = list(found.notes)
        if found.shape is None:
            notes += _overruled(found.document)
            document, outcome = _run_lispy(found.document, frames or 1, inputs, steps, fuel, self._moment())
        elif steps is not None or fuel is not None:
            raise UsageProblemError(
                f"{path.name} is a buddy; it has no machine.", do=f"rappd cartridge run {path.name}"
            )
        else:
            document, outcome = _live(path.name, found.document, found.shape, frames, inputs, self._moment())
        outcome["notes"] = [*notes, *outcome["notes"]]
        if outcome["status"] == "error" and not outcome["echo_frames_run"]:
            into = None  # a frame that fails leaves the cartridge as it was
        return {"cartridge": {**whose(path, found), **outcome, **self._save(document, into)}}

    def resume(
        self, path: Path, *, inputs: Sequence[Any] = (), into: Path | None = None, replace: bool = False
    ) -> dict[str, Any]:
        """Goes on with a machine that was frozen, to the end of its frame. Raises ``ConflictError`` for none."""
        found = load(path)
        if found.shape is not None or not found.document.get("continuation", {}).get("image"):
            raise ConflictError(f"{path.name} is not frozen.", do=f"rappd cartridge run {path.name}")
        return self.run(path, inputs=inputs, into=into, replace=replace)

    def inspect(self, path: Path, *, force: bool = False) -> dict[str, Any]:
        """Describes a cartridge: kind, content, place of freezing and signer. Runs nothing."""
        found = load(path, force=force)
        octets = path.read_bytes()
        about = about_lispy(found.document) if found.shape is None else about_buddy(found, self._moment())
        return {
            "cartridge": {
                **whose(path, found),
                **about,
                "size": len(octets),
                "sha256": hashlib.sha256(octets).hexdigest(),
                "signer": {"fingerprint": found.signer, **standing(self._home, found.signer)},
                "notes": list(found.notes),
            }
        }

    def diff(self, before: Path, after: Path, *, force: bool = False) -> dict[str, Any]:
        """Returns the difference of two cartridges: ``edits``, the same as ``lines``, and ``notes``."""
        from twins.cartridges.diff import compare

        old, new = load(before, force=force), load(after, force=force)
        found = compare(old.document, new.document)
        notes = [*old.notes, *new.notes]
        if found.shape:
            notes.append(f"They are of two shapes; both are compared as {found.shape}.")
        return {
            "diff": {
                "same": not found.found,
                "edits": found.found,
                "lines": found.lines(),
                "notes": list(dict.fromkeys(notes)),
            }
        }

    def new(
        self,
        name: str,
        programs: Sequence[Path],
        into: Path | None,
        *,
        entry: str = "",
        description: str = "",
        dialect: str = "core",
        replace: bool = False,
    ) -> dict[str, Any]:
        """A LisPy cartridge of program files, each called as its file is.

        Raises ``BadFileError`` for one that cannot be read, naming the line.
        """
        from twins.workspace.rappid import label

        sources: dict[str, str] = {}
        for program in programs:
            if program.stem in sources:
                raise UsageProblemError(
                    f'Two programs are called "{program.stem}".', do="Rename one of the files."
                )
            sources[program.stem] = _source(program)
        entry = entry or next(iter(sources)) if len(sources) == 1 or "main" not in sources else entry
        if entry and entry not in sources:
            raise UsageProblemError(
                f'There is no program "{entry[:60]}".', do=f"There are: {', '.join(sources)}."
            )
        document = lispy_file.new(name, sources, entry=entry, description=description)
        document["dialect"] = dialect
        lispy_file.checked(document)
        target = into or Path(f"{label(name, otherwise='agent')}.lispy.json")
        _may_write(target, None, replace)
        document = lispy_file.saved(document, self._moment())
        about = {"file": target.name, "name": name, "kind": "lispy", "shape": lispy_file.SCHEMA}
        return {"cartridge": {**about, **about_lispy(document), **self._save(document, target)}}

    def convert(
        self, path: Path, to: str, into: Path, *, replace: bool = False, force: bool = False
    ) -> dict[str, Any]:
        """A ``.rappter.egg`` in another of its shapes: seed, legacy or spec."""
        found = load(path, force=force)
        if found.shape is None:
            raise UsageProblemError(
                f"{path.name} is a LisPy agent; it has one shape.", do="Convert a .rappter.egg."
            )
        _may_write(into, path, replace)
        document = convert(found.document, SHAPES[to])
        report = {"file": into.name, "from": found.shape.value, "notes": list(found.notes)}
        about = {"name": name_of(document, SHAPES[to]), "kind": "buddy", "shape": SHAPES[to].value}
        return {"cartridge": {**report, **about, **self._save(document, into)}}

    def export(self, selector: str, to: str, into: Path | None, *, replace: bool = False) -> dict[str, Any]:
        """The ``.rappter.egg`` of a twin of kind buddy, which lives on here."""
        from rappd.features.twins.buddies import nest_of
        from twins.workspace.listing import find
        from twins.workspace.rappid import label
        from twins.workspace.workspace import TwinLayout

        twin = find(TwinLayout(self._home.root), selector)
        buddy = nest_of(twin).export(now=self._moment())
        buddy["organism"]["rappid"] = twin.rappid.text  # so that it is the same one wherever it hatches
        document = convert(buddy, SHAPES[to])
        target = into or Path(f"{label(twin.name, otherwise='buddy')}.rappter.egg")
        _may_write(target, None, replace)
        about = {"file": target.name, "name": twin.name, "kind": "buddy", "shape": SHAPES[to].value}
        return {"cartridge": {**about, "notes": [], **self._save(document, target)}}

    def _moment(self) -> datetime:
        return self._now or datetime.now(UTC)

    def _save(self, document: Document, into: Path | None) -> dict[str, Any]:
        if into is None:
            return {"saved": "", "sha256": ""}
        self._home.create()
        into = into.absolute()
        into.parent.mkdir(parents=True, exist_ok=True)
        save(into, document, key=self._home.identity(), at=self._moment())
        return {"saved": str(into), "sha256": hashlib.sha256(into.read_bytes()).hexdigest()}


def _source(path: Path) -> str:
    from agents.runtimes.lispy.errors import LispyError
    from agents.runtimes.lispy.limits import CEILING
    from agents.runtimes.lispy.reader import read
    from twins.errors import NoSuchFileError

    try:
        source = decode(path.read_bytes()).text
        read(source, CEILING, named=path.name)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise NoSuchFileError(f'There is no file "{path}".', do="Look at the path.") from error
    except NotUtf8Error as error:
        raise BadFileError(f"{path.name} {error}.", do=SAVE_AS_UTF8) from error
    except LispyError as fault:
        raise BadFileError(f"{path.name} cannot be read: {fault.message}.", do="Mend it.") from fault
    return source


def _may_write(into: Path | None, source: Path | None, replace: bool) -> None:
    """A file that lies there is replaced only when it is the one that was read, or when told so."""
    if into is None or replace or not into.exists():
        return
    if source is not None and source.exists() and into.samefile(source):
        return
    raise ConflictError(
        f"{into} exists already; nothing was written.", do="Choose another name, or add --replace."
    )


def _run_lispy(
    document: Document, frames: int, inputs: Sequence[Any], steps: int | None, fuel: int | None, now: datetime
) -> tuple[Document, dict[str, Any]]:
    """Runs frames of a LisPy agent: the cartridge as it is then, and the answer about it."""
    from agents.runtimes.lispy.limits import Limits
    from twins.cartridges import lispy_runner

    limits = Limits() if fuel is None else Limits(max_steps=fuel)
    ran = lispy_runner.run(document, frames=frames, steps=steps, inputs=inputs, limits=limits, now=now)
    return ran.document, {**ran.as_json(), "next": lispy_runner.inspect(ran.document)}


def _overruled(document: Document) -> list[str]:
    """Returns the changes to ``env`` made while the machine was frozen that its own values override."""
    from agents.runtimes.lispy.errors import BadValueError
    from agents.runtimes.lispy.value_codec import from_wire

    if document.get("continuation", {}).get("image") is None:
        return []
    changed = []
    plain = document.get("env", {})
    for name, wire in document.get("env_wire", {}).items():
        try:
            if name in plain and not same(plain[name], from_wire(wire)):
                changed.append(name)
        except BadValueError:  # a run reports it
            continue
    return [f"{name} was changed by hand; the frozen machine goes on with its own." for name in changed]


def _live(
    name: str, document: Document, shape: Shape, frames: int | None, inputs: Sequence[Any], now: datetime
) -> tuple[Document, dict[str, Any]]:
    """Actions of a buddy, one a frame; it goes back into the shape it came in."""
    _must_live(name, document, shape)
    buddy = convert(document, Shape.BUDDY)
    buddy["_meta"].pop("as_of", None)  # in a file no time passes
    actions = [_action(one) for one in inputs]
    actions += [(Action.HEARTBEAT, {})] * (
        (1 if frames is None and not actions else frames or 0) - len(actions)
    )
    events: list[dict[str, Any]] = []
    entropy = hashlib.sha256(canonical(document)).digest()[:2]
    for action, given in actions:
        lived = buddy_actions.act(buddy, action, now, entropy=entropy, **given)
        buddy = lived.document
        events.append(
            {"frame": buddy["organism"]["frames_survived"], "action": action.value, "result": lived.answer}
        )
    back = convert(buddy_state.exported(buddy, now), shape)
    checked(back, name=name)
    return back, {
        "status": "done",
        "output": "",
        "echo_frames_run": len(events),
        "frames": events,
        "steps": 0,
        "notes": [],
        "next": "",
        "buddy": buddy_status(buddy),
    }


def _must_live(name: str, document: Document, shape: Shape) -> None:
    if shape is not Shape.SPEC:
        return
    scale = document["organism"].get("scale", "daemon")
    if scale != "daemon" or document["body"]["kind"] == "cartridge_xml":
        what = f"of scale {scale}" if scale != "daemon" else "in XML"
        raise BadCartridgeError(
            f"{name} is an organism {what}; nothing here runs it.", do=f"rappd cartridge inspect {name}"
        )


def _action(given: Any) -> tuple[Action, dict[str, Any]]:
    """An input of a buddy: ``"feed"``, or ``{"action": "remember", "text": …, "kind": …}``."""
    action = {"action": given} if isinstance(given, str) else given
    name = action.get("action") if isinstance(action, dict) else None
    if not isinstance(name, str) or name not in set(Action):
        raise UsageProblemError(
            "A buddy takes actions.", do=f"""--input '"feed"'; there are: {", ".join(Action)}."""
        )
    rest = {key: value for key, value in action.items() if key in ("text", "kind")}
    if not all(isinstance(value, str) for value in rest.values()) or len(rest) + 1 != len(action):
        raise UsageProblemError(f"{name} takes text and kind, both text.", do="Leave the rest out.")
    return Action(name), rest
