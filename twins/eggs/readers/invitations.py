"""Invitations: eggs that name a neighborhood or an estate to join and hold nothing that lives."""

from __future__ import annotations

from twins.eggs.parsed_egg import ParsedEgg, Seal
from twins.eggs.readers.destinations import answering
from twins.eggs.readers.detected import DetectedEgg, text
from twins.eggs.readers.formats import INVITATION
from twins.eggs.readers.identity import lenient


def invitation(found: DetectedEgg) -> ParsedEgg:
    """``brainstem-egg/2.3-neighborhood`` as every published one is: JSON, an invitation."""
    said = found.manifest
    kind = text((said, "type"))
    if kind not in ("", "neighborhood-invite", "neighborhood"):
        found.notes.append(f'It calls itself "{kind}".')
    rappid = lenient(found, said.get("rappid"))
    name = text((said, "display_name"), (said, "name")) or (rappid.slug if rappid else "") or found.file
    answer = tell(
        "neighborhood",
        name,
        rappid.text if rappid else "",
        text((said, "neighborhood_url"), (said, "join_via"), most=500),
        text((said, "invite_expires_at")),
    )
    return answering(found, INVITATION, Seal(None), answer, rappid=rappid, name=name)


def tell(kind: str, name: str, rappid: str, url: str, until: str) -> str:
    """The text that a person reads about an invitation."""
    lines = [f"An invitation to the {kind} {name}" + (f", good until {until}" if until else "")]
    lines += [f"rappid {rappid}"] if rappid else []
    lines += [f"It is at {url}"] if url else []
    return "\n".join([*lines, "It holds nothing to hatch, and joining is not done by hatching."])
