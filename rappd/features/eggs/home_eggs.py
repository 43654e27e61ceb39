"""Eggs: looked at, compared, planned, hatched, taken back; and whose are trusted (RAPP v1 §18.10). All of it blocks on the disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict, cast

from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.features.arguments import MissingArgumentError
from rappd.features.eggs.answers import EggsCompared
from rappd.features.eggs.packing import EggPacking
from rappd.features.eggs.signer_view import paired_machine, planned, seen
from rappd.features.eggs.uploaded_eggs import UploadedEggs, whole_path
from rappd.features.estate.hatching import EstateHatching, touched_twins
from rappd.features.operation import OWNER, Text, operation
from rappd.transcript.frames import ThreadsHeld
from twins.eggs.frames import ConversationSink
from twins.eggs.parsed_egg import Destination, ParsedEgg
from twins.installer.installer import Installer
from twins.installer.placement_rules import Category, install_target
from twins.installer.receipts import ReceiptRow
from twins.installer.rollback import RolledBackRow
from twins.trust.signers import Signers
from twins.trust.trust import Trust
from twins.work_progress import Cancellation, Progress
from twins.workspace.workspace import Workspace

_ID = re.compile(r"[0-9a-f]{64}")


class WhichEgg(TypedDict, total=False):
    """An egg that waits here by its ``id``, or one by its whole ``path`` on this machine."""

    id: str
    path: str


class SignerRow(TypedDict):
    """A sender whose eggs run their code without asking."""

    fingerprint: str
    name: str
    since: str


class SignersListed(TypedDict):
    """The trusted senders, and the fingerprint of this machine's own key."""

    signers: list[SignerRow]
    own: str


class SignerTrusted(TypedDict):
    """A sender that is trusted from now on."""

    fingerprint: str
    name: str
    message: str


class SignerRevoked(TypedDict):
    """A sender that is trusted no more."""

    fingerprint: str
    message: str


class HomeEggs:
    """One home's eggs. Answers are JSON objects; raises ``ReportableError``."""

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
        self.signers = Signers(home.signers)
        self.trust = Trust(home.root)
        self.waiting = UploadedEggs(home.root / "eggs" / ".waiting")
        self.packing = EggPacking(home, host, identity, self.trust.is_held, machine=machine)
        self.importer = Installer(
            home.root,
            quarantine=self.trust.quarantine,
            signers=self.signers,
            fingerprint=identity.fingerprint,
            host=host,
            pre_bond=self.packing.lay_before_bond,
            conversations=conversations,
            known=ThreadsHeld(home.database),
        )
        self._estates = EstateHatching(home, self.importer)

    def which(self, id: object = "", path: object = "") -> Path:
        """The egg that waits here under ``id``, or lies at ``path``. Raises ``MissingArgumentError``, ``NotFoundError``."""
        if isinstance(id, str) and _ID.fullmatch(id):
            return self.waiting.find(id)
        if isinstance(path, str) and path:
            return whole_path(path)
        raise MissingArgumentError(
            "Which egg? Its id or whole path is needed.", do='Send {"id": "…"} or {"path": "/…"}.'
        )

    def inspect(self, path: Path) -> dict[str, Any]:
        """Describes an egg, quickly whatever its size."""
        from twins.eggs.readers.inspect import look_at

        with look_at(path) as opened:
            return seen(opened, self._home)

    @operation("eggs.diff", "POST", "/eggs/diff", right=OWNER)
    def diff(self, before: WhichEgg, after: WhichEgg) -> EggsCompared:
        """The differences between two eggs: `before` and `after`, each `{id}` or `{path}`."""
        from twins.eggs.readers.diff import compare_eggs

        with _opened(self.which(**before)) as old, _opened(self.which(**after)) as new:
            return cast(EggsCompared, compare_eggs(old, new).as_json())

    def look(self, path: Path, *, progress: Progress | None = None) -> dict[str, Any]:
        """``verify`` and ``plan`` in one reading."""
        with _opened(path, progress=progress) as opened:
            return {**seen(opened, self._home), "plan": self._plan(opened, [])}

    def plan(
        self, path: Path, *, overwrite: Iterable[str] = (), progress: Progress | None = None, **_: Any
    ) -> dict[str, Any]:
        """Plans a hatching; writes nothing. ``plan.digest`` is the plan that an approval refers to."""
        with _opened(path, progress=progress) as opened:
            return {"plan": self._plan(opened, categories(overwrite))}

    def hatch(
        self,
        path: Path,
        *,
        overwrite: Iterable[str] = (),
        source: str = "",
        progress: Progress | None = None,
        cancellation: Cancellation | None = None,
        approved: str = "",
    ) -> dict[str, Any]:
        """Carries the plan out, whole or not at all; the twin sleeps meanwhile. Raises ``WorkCancelledError``."""
        cancellation = cancellation or Cancellation()
        how: dict[str, Any] = {"progress": progress, "cancellation": cancellation, "approved": approved}
        with _opened(path, progress=cancellation.watching(progress)) as opened:
            hatching = self._estates if opened.is_estate else self.importer
            done = hatching.hatch(opened, overwrite=categories(overwrite), source=source or path.name, **how)
            return done if isinstance(done, dict) else done.as_json()

    def hatch_text(self, text: str, registry: str, *, overwrite: Iterable[str], **how: Any) -> dict[str, Any]:
        """Hatches the agents that a compact egg string stands for, out of a registry's clone, like ``hatch``."""
        from twins.eggs.registry_clone import RegistryClone

        with RegistryClone.open(whole_path(registry)).open_string(text) as opened:
            done = self.importer.hatch(opened, overwrite=categories(overwrite), source=registry, **how)
            return done.as_json()

    def merge(
        self,
        base: str,
        ours: str,
        theirs: str,
        into: str,
        *,
        cancellation: Cancellation,
        progress: Progress,
        **how: Any,
    ) -> dict[str, Any]:
        """Makes one egg of two lives of one being, see ``merge_eggs``."""
        from rappd.features.eggs.merging import merge_eggs

        return merge_eggs(
            whole_path(base) if base else None,
            *map(whole_path, (ours, theirs, into)),
            key=self._key,
            signers=self.signers,
            maker=self.packing.maker,
            progress=cancellation.watching(progress),
            **how,
        )

    def keys_of(self, path: Path) -> list[str]:
        """The folders of the twins that an egg would touch. Raises ``TwinConflictError``."""
        with _opened(path, check_up_to=0) as opened:
            if opened.is_estate:
                return touched_twins(opened, self._home.root)
            if opened.destination is not Destination.TWIN:
                return []
            return [install_target(opened, self._home.root, self._host).root.name]

    def _plan(self, opened: ParsedEgg, overwrite: list[Category]) -> dict[str, Any]:
        if opened.is_estate:
            return self._estates.plan(opened, overwrite)
        return planned(self.importer.plan(opened, overwrite=overwrite), self._home)

    def key_of_hatching(self, receipt: str) -> str:
        """The folder of the twin that a hatching touched; "" for none. Raises ``no_such_hatching``."""
        found = self.importer.receipts.find(receipt)
        return Path(found.workspace).name if found.destination == Destination.TWIN.value else ""

    @operation(
        "eggs.hatchings", "GET", "/eggs/hatchings", right=OWNER, agents="eggs.receipts", answers="hatchings"
    )
    def receipts(self) -> list[ReceiptRow]:
        """Every hatching that has a receipt, the latest first."""
        return [receipt.summary() for receipt in self.importer.receipts.listing()]

    def rollback(self, receipt: str, *, even_if_changed: bool = False) -> RolledBackRow:
        """Undoes a hatching. Raises ``changed_since`` when files changed, unless told that it may."""
        return self.importer.rollback(receipt, even_if_changed=even_if_changed).as_json()

    @operation("eggs.signers", "GET", "/eggs/signers", right=OWNER)
    def list_signers(self) -> SignersListed:
        """The senders whose eggs run their code without asking, and this machine's own key."""
        rows: list[SignerRow] = [
            {"fingerprint": one.fingerprint, "name": one.name, "since": one.since}
            for one in self.signers.listing()
        ]
        return {"signers": rows, "own": self._key.fingerprint}

    @operation("eggs.trust", "POST", "/eggs/signers", right=OWNER)
    def trust_signer(self, fingerprint: Text, name: str = "") -> SignerTrusted:
        """Trusts the key with `fingerprint`, called `name`, until it is revoked.

        Without a name it keeps the one it has, or gets the paired machine's.
        """
        known = self.signers.name_of(fingerprint) or paired_machine(self._home, fingerprint)[0]
        signer = self.signers.trust(fingerprint, name or known or fingerprint[:16])
        return {
            "fingerprint": signer.fingerprint,
            "name": signer.name,
            "message": f"{signer.name} is trusted.",
        }

    @operation("eggs.revoke", "DELETE", "/eggs/signers/{fingerprint}", right=OWNER)
    def revoke_signer(self, fingerprint: str) -> SignerRevoked:
        """Ends the trust in a key."""
        signer = self.signers.revoke(fingerprint)
        return {"fingerprint": fingerprint, "message": f"{signer.name} is not trusted any more."}


def categories(names: Iterable[str]) -> list[Category]:
    """Overwrite options by name. Raises ``UsageProblemError``."""
    known = {one.value: one for one in Category}
    for name in names:
        if name not in known:
            raise UsageProblemError(
                f'There is nothing called "{name[:40]}" to overwrite.', do=", ".join(known)
            )
    return [known[name] for name in names]


def _opened(path: Path, *, check_up_to: int | None = None, progress: Progress | None = None) -> ParsedEgg:
    from twins.eggs.readers.detect import open_egg  # a start must not wait for it

    return open_egg(path, check_up_to=check_up_to, progress=progress)
