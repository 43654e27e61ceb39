"""Eggs that hold nothing living: invitations, and lists of registry seeds."""

from __future__ import annotations

from twins.eggs.egg_strings import encode
from twins.eggs.parsed_egg import ParsedEgg, Seal
from twins.eggs.readers.destinations import answering
from twins.eggs.readers.detected import DetectedEgg, text
from twins.eggs.readers.formats import INVITATION, SEEDS
from twins.eggs.readers.identity import lenient
from twins.errors import BadEggError


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


def seeds(found: DetectedEgg) -> ParsedEgg:
    """Names agents of a registry by number and holds none of them."""
    numbers = found.manifest.get("seeds")
    try:
        compact = encode(numbers)  # type: ignore[arg-type]  # encode refuses what is no list of numbers
    except BadEggError as error:
        raise found.damaged("its seeds") from error
    assert isinstance(numbers, list)
    # Numbers beyond 64 bits are more than most that read JSON can take.
    found.manifest = {**found.manifest, "seeds": [str(number) for number in numbers]}
    answer = (
        f"{len(numbers)} agents of a registry, by their seeds. With a copy of the registry they hatch as the "
        f"egg string\n{compact}"
    )
    return answering(found, SEEDS, Seal(None), answer)
