"""The invite egg in circulation: one JSON object of type ``neighborhood-invite``, good until its last moment.

It gives no rights: who joins has the place's files, and may do at other machines what their owners allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from neighborhoods.errors import BadInviteError, BadNeighborhoodError, NeighborhoodError
from neighborhoods.places.place import (
    LONGEST,
    MEMBERS_SCHEMA,
    PLACE_SCHEMA,
    Place,
    PlaceMember,
    decode_members,
    plain,
)
from twins.errors import BadRappidError
from twins.workspace.identity_file import indented, utc
from twins.workspace.rappid import Rappid

SCHEMA = "brainstem-egg/2.3-neighborhood"
TYPE = "neighborhood-invite"
PLACE_KEY = "_x_neighborhood"
MEMBERS_KEY = "_x_members"
LONGEST_DAYS = 365
_SKEW = timedelta(minutes=5)


class Invite(msgspec.Struct, frozen=True):
    """An invite that was read. ``members`` is the roster that came with it; it may be empty."""

    rappid: Rappid
    name: str
    about: str
    url: str
    expires_at: str
    members: tuple[PlaceMember, ...]

    def check_time(self, now: datetime) -> None:
        """Raises ``invite_expired`` when it is not good any more; one without an end is good."""
        if not self.expires_at:
            return
        try:
            until = datetime.fromisoformat(self.expires_at)
            if until.tzinfo is None:
                until = until.replace(tzinfo=UTC)
            is_over = now - _SKEW > until  # the end may be the last moment that there is
        except (ValueError, OverflowError):
            raise BadInviteError("The invite's end is no moment; nothing was joined.", do=_ANOTHER) from None
        if is_over:
            raise NeighborhoodError(
                f"The invite to {self.name} expired on {until:%Y-%m-%d}; nothing was joined.",
                do=_ANOTHER,
                code="invite_expired",
            )


def write_invite(
    place: Place, *, at: datetime, days: int, url: str, metadata_url: str, notes: str = ""
) -> bytes:
    """The invite as a file. ``url`` and ``metadata_url``: where the neighborhood would lie if it were published."""
    if not 1 <= days <= LONGEST_DAYS:
        raise BadInviteError(f"An invite lasts 1 to {LONGEST_DAYS} days.", do="--days 14")
    return indented(
        {
            "schema": SCHEMA,
            "type": TYPE,
            "version": "1.0",
            "rappid": place.rappid.text,
            "display_name": place.name,
            "soul_summary": place.about,
            "neighborhood_url": url,
            "neighborhood_json": metadata_url,
            "invite_created_at": utc(at),
            "invite_expires_at": utc(at + timedelta(days=days)),
            "notes": notes,
            PLACE_KEY: {**place.fields, "schema": PLACE_SCHEMA},
            MEMBERS_KEY: {
                "schema": MEMBERS_SCHEMA,
                "neighborhood_rappid": place.rappid.text,
                "members": [one.as_json() for one in place.members],
            },
        }
    )


def read_invite(fields: Mapping[str, Any]) -> Invite:
    """The invite in an object. Raises ``BadInviteError`` for another kind of it, and for what cannot be used."""
    kind = fields.get("type")
    if fields.get("schema") != SCHEMA or kind != TYPE:
        shown = plain(kind, 40) or "none"
        raise BadInviteError(f'It is of type "{shown}" and not {TYPE}; nothing was joined.', do=_ANOTHER)
    try:
        rappid = Rappid.parse(fields.get("rappid"))  # type: ignore[arg-type]  # parse refuses what is no text
    except BadRappidError as error:
        raise BadInviteError(f"The invite names no neighborhood: {error}", do=_ANOTHER) from error
    expires = fields.get("invite_expires_at")
    if expires is not None and not isinstance(expires, str):
        raise BadInviteError("The invite's end is no moment; nothing was joined.", do=_ANOTHER)
    listed = fields.get(MEMBERS_KEY)
    try:
        members = decode_members(indented(listed)) if listed is not None else ()
    except BadNeighborhoodError as error:
        raise BadInviteError(f"The invite's {error} Nothing was joined.", do=_ANOTHER) from error
    return Invite(
        rappid=rappid,
        name=plain(fields.get("display_name")) or rappid.slug or "neighborhood",
        about=plain(fields.get("soul_summary"), LONGEST),
        url=plain(fields.get("neighborhood_url") or fields.get("join_via"), LONGEST),
        expires_at=plain(expires) if expires else "",
        members=members,
    )


_ANOTHER = "Ask for a new invite."
