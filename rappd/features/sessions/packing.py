"""Packing a session of this machine into an egg; the daemon may run or not."""

from __future__ import annotations

import contextlib
import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.storage.atomic_write import write_atomically
from envelopes.envelope import agent_id
from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.sessions.participants import names_on_disk
from rappd.sessions.recorded_sessions import OPENED, SESSION_CALLER, find_session, session_rows
from rappd.store.reader import Reader
from rappd.store.records import Event
from rappd.tenants.tenant import HOST
from rappd.version import __version__
from twins.byte_sizes import format_bytes
from twins.eggs import integrity
from twins.eggs.writers.formats import SESSION_FORM
from twins.errors import TwinError
from twins.fs.atomic_file import atomic_file
from twins.workspace.identity_file import utc
from twins.workspace.listing import scan
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace

if TYPE_CHECKING:
    from rappd.sessions.session_export import Cast

_MOST_RECORDS = 200_000
"""Records of a thread that are read: far more than make the events of one egg."""


class SessionPacking:
    """Reads the event log and writes one file. Everything blocks on the disk."""

    def __init__(self, home: Home, host: Workspace, identity: IdentityKey, *, machine: str) -> None:
        self._home, self._host, self._key, self._machine = home, host, identity, machine

    def pack(self, session: str, target: Path, *, allow: frozenset[str], overwrite: bool) -> dict[str, Any]:
        """Packs the session whose id begins so; the newest for "".

        Raises ``NotFoundError``, ``AmbiguousError``, ``session_too_large``, ``SecretsFoundError`` for what looks
        like a secret and is not allowed, ``TwinConflictError`` where there is such a file.
        """
        from rappd.sessions.session_export import session_content
        from twins.eggs.writers.secret_scan import SecretScan, SecretsFoundError
        from twins.eggs.writers.sessions import session_egg

        at = datetime.now(UTC)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Reader(self._home.database) as reader:
            row = find_session(
                session_rows(reader.threads_by(SESSION_CALLER), reader.last_notes(SESSION_CALLER, OPENED)),
                session,
            )
            records = reader.thread_events(row.thread, first=_MOST_RECORDS)
        cast = self._cast(records)
        content = session_content(row, records, cast, at=at, made_by=f"rappd {__version__}")
        scan_ = SecretScan()
        for one in content.events:
            scan_.look(f"event {one.event}", one.text.encode(errors="replace"))
        for person in content.participants:
            scan_.look(f"persona of {person.name}", person.persona.encode(errors="replace"))
        if refused := [one for one in scan_.findings if one.id not in allow]:
            problem = SecretsFoundError(refused)
            problem.do = (
                f"Let it travel: rappd sessions export {row.id[:8]} --format egg --allow {refused[0].id}"
            )
            raise problem
        octets = session_egg(content)
        with atomic_file(target, overwrite=overwrite) as file:
            file.write(octets)
        digest = hashlib.sha256(octets).hexdigest()
        signature = target.with_name(target.name + integrity.SIGNATURE_SUFFIX)
        write_atomically(
            signature, integrity.seal({target.name: digest}, at=utc(at), key=self._key), mode=0o644
        )
        packed = {
            "path": str(target), "form": SESSION_FORM, "name": content.title, "rappid": content.rappid,
            "size": len(octets), "sha256": digest, "files": 1, "left_out": [], "unread": {}, "odd_names": [],
            "allowed": [{"path": one.path, "line": one.line, "what": one.what} for one in scan_.findings],
            "signature": str(signature), "session": row.id, "events": len(content.events),
        }  # fmt: skip
        message = (
            f"{content.title} is packed: {target}, {len(content.events)} events, {format_bytes(len(octets))}."
        )
        return {"packed": packed, "message": message}

    def _cast(self, records: list[Event]) -> Cast:
        places = TwinLayout(self._home.root)
        rappids = {one.name: one.rappid.text for one in scan(places).twins}
        with contextlib.suppress(TwinError):  # a brainstem that never packed has no rappid yet
            rappids[self._machine] = Twin.read(self._host.root).rappid.text
        host = agent_id(HOST, self._key.fingerprint)
        from rappd.sessions.session_export import Cast

        return Cast(self._machine, names_on_disk(places, host, self._machine, records), rappids)
