"""Eggs: packed, looked at, compared, planned, hatched, taken back; and whose are trusted (RAPP v1 §18.10).

Everything here blocks on the disk and needs no daemon. While one runs, it calls these in threads.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from envelopes.keys import IdentityKey
from rappd.errors import Mistyped
from rappd.home import Home
from rappd.transcript.frames import RecordedConversations
from rappd.version import __version__
from twins.amounts import amount
from twins.eggs.frames import ConversationSink
from twins.eggs.opened import Destination, Opened
from twins.eggs.opening import open_egg
from twins.eggs.packing.forms import Form, Maker, Packed
from twins.importer.ground import ground_for
from twins.importer.holding import Held
from twins.importer.importer import Hatched, Importer
from twins.importer.planning import Action, Plan
from twins.importer.rules import Category
from twins.importer.signers import Signers
from twins.listing import find
from twins.places import TwinPlaces
from twins.twin import adopt
from twins.workspace import Workspace

Progress = Callable[[int, int], None]
"""(bytes done, bytes in all), as often as there is something to tell."""

HOST_FORMS = frozenset({Form.BRAINSTEM, Form.AGENT, Form.RAPPLICATION, Form.RAPP1_RAPPLICATION})
"""What is packed out of the host's workspace when no twin is named."""


@dataclass(slots=True, frozen=True)
class Order:
    """What to pack. ``twin`` "" means the host; ``item`` an agent's file or a rapplication's id; ``into`` a
    file, or "" for a place among the home's eggs. ``allow``: ids of findings that may travel."""

    twin: str = ""
    form: str = ""
    item: str = ""
    into: str = ""
    exclude_memory: bool = False
    allow: frozenset[str] = frozenset()
    overwrite: bool = False


class EggVerbs:
    """One home's eggs. Answers are JSON objects; raises ``Problem``."""

    def __init__(
        self,
        home: Home,
        host: Workspace,
        identity: IdentityKey,
        *,
        machine: str,
        conversations: ConversationSink | None = None,
    ) -> None:
        self.home = self._home = home
        self._host = host
        self._key = identity
        self._machine = machine
        self._maker = Maker(version=__version__, host=machine)
        self._places = TwinPlaces(home.root)
        self.signers = Signers(home.signers)
        self.held = Held(home.held, home.root)
        self.importer = Importer(
            home.root,
            held=self.held,
            signers=self.signers,
            fingerprint=identity.fingerprint,
            host=host,
            pre_bond=self.lay_egg_before_bond,
            conversations=conversations,
        )

    def pack(self, order: Order, *, progress: Progress | None = None) -> dict[str, Any]:
        """Packs a twin, the brainstem, or one thing out of either. A running twin may go on meanwhile.

        Code that is quarantined stays behind: this house signs nothing that nobody has read.
        """
        from twins.eggs.packing.pack import pack  # brings the archive writer along

        form = _form(order)
        workspace, name = self._workspace(order)
        if not order.twin and not form.needs_item:
            self._adopt_host()
        target = Path(order.into).expanduser().absolute() if order.into else self._place(name, form)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        done = pack(
            workspace,
            target,
            form=form,
            item=order.item,
            key=self._key,
            maker=self._maker,
            conversations=self._said(workspace),
            held=self.held.is_held,
            exclude_memory=order.exclude_memory,
            allow=order.allow,
            overwrite=order.overwrite,
            progress=progress,
        )
        told = f"{done.name} is packed: {done.path}, {done.files} files, {amount(done.size)}."
        return {"packed": _packed(done), "message": told}

    def inspect(self, path: Path) -> dict[str, Any]:
        """What an egg is, quickly whatever its size."""
        from twins.eggs.opening.inspecting import inspect, look_at

        with look_at(path) as opened:
            return inspect(opened)

    def verify(self, path: Path) -> dict[str, Any]:
        """The same after every byte was read and compared. Raises ``BadEgg`` when something differs."""
        from twins.eggs.opening.inspecting import inspect

        with open_egg(path) as opened:
            return inspect(opened)

    def diff(self, before: Path, after: Path) -> dict[str, Any]:
        """What differs between two eggs, file by file."""
        from twins.eggs.opening.comparing import compare

        with open_egg(before) as old, open_egg(after) as new:
            return compare(old, new).as_json()

    def plan(self, path: Path, *, overwrite: Iterable[str] = ()) -> dict[str, Any]:
        """What hatching would do now; writes nothing. ``plan.digest`` is what a yes approves."""
        with open_egg(path) as opened:
            return {"plan": _planned(self.importer.plan(opened, overwrite=categories(overwrite)))}

    def hatch(
        self,
        path: Path,
        *,
        overwrite: Iterable[str] = (),
        approved: str = "",
        source: str = "",
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Carries the plan out, whole or not at all; the twin sleeps meanwhile."""
        with open_egg(path) as opened:
            done = self.importer.hatch(
                opened,
                overwrite=categories(overwrite),
                approved=approved,
                source=source or path.name,
                progress=(lambda _, done, whole: progress(done, whole)) if progress else None,
            )
            return _hatched(done, opened)

    def hatch_text(self, text: str, registry: Path, *, overwrite: Iterable[str] = ()) -> dict[str, Any]:
        """Hatches the agents that a compact egg string stands for, out of a registry's clone."""
        from twins.eggs.registry_clone import RegistryClone

        with RegistryClone.open(registry).open_string(text) as opened:
            done = self.importer.hatch(opened, overwrite=categories(overwrite), source=str(registry))
            return _hatched(done, opened)

    def extract(self, path: Path, into: Path) -> dict[str, Any]:
        """Lays an egg's files out as they are in it, into a folder that must not exist yet."""
        with open_egg(path) as opened:
            return {"extracted": _extracted(opened, into)}

    def key_of(self, path: Path) -> str:
        """The folder of the twin that an egg would touch; "" for none. Raises ``TwinConflict``."""
        with open_egg(path, check_up_to=0) as opened:
            if opened.destination is not Destination.TWIN:
                return ""
            return ground_for(opened, self._home.root, self._host).root.name

    def key_of_hatching(self, receipt: str) -> str:
        """The folder of the twin that a hatching touched; "" for none. Raises ``NoSuchHatching``."""
        found = self.importer.receipts.find(receipt)
        return Path(found.workspace).name if found.destination == Destination.TWIN.value else ""

    def signer_of(self, path: Path) -> tuple[str, str]:
        """(fingerprint of the key that signed an egg, what the egg calls its machine); "" where it says none."""
        with open_egg(path, check_up_to=0) as opened:
            return opened.seal.signer, _host(opened)

    def receipts(self) -> dict[str, Any]:
        """Every hatching that has a receipt, the latest first."""
        return {"hatchings": [receipt.summary() for receipt in self.importer.receipts.listing()]}

    def rollback(self, receipt: str, *, even_if_changed: bool = False) -> dict[str, Any]:
        """Undoes a hatching. Raises ``ChangedSince`` when files changed, unless told that it may."""
        return {"rolled_back": self.importer.rollback(receipt, even_if_changed=even_if_changed).as_json()}

    def list_signers(self) -> dict[str, Any]:
        """Whose eggs run without being read first."""
        rows = [
            {"fingerprint": one.fingerprint, "name": one.name, "since": one.since}
            for one in self.signers.listing()
        ]
        return {"signers": rows, "own": self._key.fingerprint}

    def trust_signer(self, fingerprint: str, name: str = "") -> dict[str, Any]:
        """Trusts a key by name, until it is revoked. Without a name it keeps the one it has."""
        known = self.signers.name_of(fingerprint)
        signer = self.signers.trust(fingerprint, name or known or fingerprint[:16])
        return {
            "fingerprint": signer.fingerprint,
            "name": signer.name,
            "message": f"{signer.name} is trusted.",
        }

    def revoke_signer(self, fingerprint: str) -> dict[str, Any]:
        """Ends the trust in a key."""
        signer = self.signers.revoke(fingerprint)
        return {"fingerprint": fingerprint, "message": f"{signer.name} is not trusted any more."}

    def _workspace(self, order: Order) -> tuple[Workspace, str]:
        if not order.twin:
            return self._host, order.item or "brainstem"
        twin = find(self._places, order.twin)
        return twin.workspace, twin.key

    def _place(self, name: str, form: Form) -> Path:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
        folder = name.removesuffix(".py").replace("/", "__")
        return self._places.eggs / folder / f"{at}-{form.value}.egg"

    def lay_egg_before_bond(self, root: Path) -> Path:
        """An egg of a workspace before another egg touches it; secrets in it are no reason to stop."""
        from twins.eggs.packing.pack import pack
        from twins.eggs.packing.secret_scan import SecretsFound

        is_host = os.path.realpath(root) == os.path.realpath(self._host.root)
        if is_host:
            self._adopt_host()
        form, workspace = (Form.BRAINSTEM, self._host) if is_host else (Form.TWIN, Workspace.at(root))
        target = self._place("brainstem" if is_host else root.name, form)
        target = target.with_name(f"{target.stem}-before.egg")
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        allow: frozenset[str] = frozenset()
        while True:
            try:
                pack(
                    workspace,
                    target,
                    form=form,
                    key=self._key,
                    maker=self._maker,
                    conversations=self._said(workspace),
                    held=self.held.is_held,
                    allow=allow,
                )
            except SecretsFound as found:  # it stays on this machine, in the owner's own folder
                known = len(allow)
                allow |= {one.id for one in found.findings}
                if len(allow) == known:
                    raise
            else:
                return target

    def _said(self, workspace: Workspace) -> RecordedConversations:
        return RecordedConversations(self._home.database, workspace.root.name)

    def _adopt_host(self) -> None:
        """A brainstem that no daemon ever ran has no rappid yet."""
        name = self._machine
        self._host.create()
        adopt(self._host, name, owner=name, host=name, platform=platform.system().lower())


def categories(names: Iterable[str]) -> list[Category]:
    """Overwrite options by name. Raises ``Mistyped``."""
    known = {one.value: one for one in Category}
    for name in names:
        if name not in known:
            raise Mistyped(f'There is nothing called "{name[:40]}" to overwrite.', do=", ".join(known))
    return [known[name] for name in names]


def _form(order: Order) -> Form:
    text = order.form or (
        Form.TWIN.value if order.twin else Form.AGENT.value if order.item else Form.BRAINSTEM.value
    )
    try:
        form = Form(text)
    except ValueError as error:
        raise Mistyped(f'There is no form "{text[:40]}".', do=", ".join(one.value for one in Form)) from error
    if form.needs_item and not order.item:
        raise Mistyped(f"Which {form.value.removeprefix('rapp1-')} shall be packed?", do="Name it.")
    if order.item and not form.needs_item:
        raise Mistyped(f"The form {form.value} packs a whole workspace.", do="Leave the item out.")
    if not order.twin and form is Form.TWIN:
        raise Mistyped("Which twin shall be packed?", do="rappd twins list")
    return form


def _planned(plan: Plan) -> dict[str, Any]:
    """The plan for a screen, with what only the egg itself tells besides."""
    opened, body = plan.opened, plan.as_json()
    return {
        **body,
        "egg": {**body["egg"], "file": opened.file, "packed_on": _host(opened)},
        "seal": {**body["seal"], "listed": opened.seal.listed},
    }


def _hatched(done: Hatched, opened: Opened) -> dict[str, Any]:
    key = done.receipt.key if done.receipt else opened.key
    return {
        "hatched": {**done.as_json(), "key": key, "name": opened.name},
        "message": _hatched_text(done, opened.name),
    }


def _hatched_text(done: Hatched, name: str) -> str:
    if done.receipt is None:
        return done.answer or f"{name} is here already; nothing had to be written."
    plan = done.plan
    stayed = sum(not row.same for row in plan.of(Action.KEEP))
    text = f"{name} hatched: {len(plan.placed)} files" + (f", {stayed} of yours stayed." if stayed else ".")
    if plan.quarantined:
        text += f" {len(plan.quarantined)} code files are quarantined until you approve them."
    return f"{text} Undo: rappd egg rollback {done.receipt.id}"


def _host(opened: Opened) -> str:
    """The machine that packed an egg, as its signed manifest says."""
    host = opened.manifest.get("host")
    return " ".join(host.split())[:60] if isinstance(host, str) and opened.seal.signer else ""


def _packed(done: Packed) -> dict[str, Any]:
    return {
        "path": str(done.path),
        "form": done.form.value,
        "name": done.name,
        "rappid": done.rappid.text if done.rappid else "",
        "size": done.size,
        "sha256": done.sha256,
        "files": done.files,
        "left_out": [{"path": one.path, "why": str(one.why.value)} for one in done.left_out],
        "allowed": [{"path": one.path, "line": one.line, "what": one.what} for one in done.allowed],
        "signature": str(done.signature) if done.signature else "",
    }


def _extracted(opened: Opened, into: Path) -> dict[str, Any]:
    from twins.eggs.extracting import lay_out

    return {"name": opened.name, "into": str(into), "files": lay_out(opened, into)}
