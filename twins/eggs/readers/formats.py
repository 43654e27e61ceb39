"""The family table: every kind of egg that is read here, and where it hatches to (RAPP v1 §18.10.1, §18.10.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from twins.eggs.parsed_egg import Family
from twins.errors import BadEggError
from twins.fs.untrusted_names import shown

ORGANISM = Family("brainstem-egg/2.2-organism", "organism", "ZIP", "a twin")
RAPPLICATION = Family("brainstem-egg/2.2-rapplication", "rapplication", "ZIP", "the brainstem")
SESSION = Family("brainstem-egg/2.3-session", "session", "JSON", "a replay")
OLD_SESSION = Family("rappterbox-cart/0.1", "session", "JSON", "a replay")
INVITATION = Family("brainstem-egg/2.3-neighborhood", "neighborhood", "JSON", "names a place to join")
GATE = Family("brainstem-egg/2.3-neighborhood", "neighborhood", "ZIP", "data, until you join it")
CUBBY = Family("brainstem-egg/2.3-cubby", "cubby", "ZIP", "cubbies/, as data")
ESTATE = Family("brainstem-egg/2.3-estate", "estate", "ZIP", "its eggs, each in place")

SCALES = {
    kind: Family("rapp-egg/2.0", kind, "ZIP", hatches_to)
    for kind, hatches_to in (
        ("agent", "the brainstem's agents"),
        ("twin", "a twin"),
        ("brainstem", "an empty home's brainstem"),
        ("neighborhood", "twins, also elsewhere"),
        ("swarm", "swarms/, as data"),
        ("factory", "factories/, as data"),
        ("industry", "industries/, as data"),
        ("estate", "estates/, as data"),
    )
}

TWIN_2_1 = Family("brainstem-egg/2.1", "twin", "ZIP", "a twin")
MERGED = {
    kind: Family("brainstem-egg/2.0", kind, "ZIP", "the brainstem")
    for kind in ("rapplication", "twin", "snapshot", "swarm")
}
BINDER = Family("rapp-egg/1.0", "rapplication", "ZIP", "the brainstem")
OLD_SWARM = Family("rapp-egg/1.0", "swarm", "ZIP", "swarms/, as data")
APPLICATION = Family("rapp-egg/1.0", "application", "ZIP", "a twin")
SEEDS = Family("rapp-egg/1.0", "seeds", "JSON", "agents of a registry")

RAPP1 = {
    kind: Family("rapp/1-egg", kind, container, hatches_to)
    for kind, container, hatches_to in (
        ("organism", "ZIP", "a twin"),
        ("rapplication", "ZIP", "the brainstem"),
        ("session", "JSON", "a replay"),
        ("invite", "JSON", "names a place to join"),
        ("neighborhood", "ZIP", "data, until you join it"),
        ("estate", "ZIP", "estates/, as data"),
    )
}

ORGANISM_FILE = Family('_format "egg"', "organism", "JSON", "a buddy, or organisms/")
BUDDY = Family('_meta.type "rappter.egg"', "buddy", "JSON", "a buddy")
BUDDY_SEED = Family("rappter-egg/1.0", "buddy", "JSON", "a buddy")
LISPY = Family('_meta.type "lispy-cartridge"', "lispy", "JSON", "the brainstem's agents")
PHYLOGENY = Family('_meta.format "phylogeny.v1"', "phylogeny", "JSON", "is read only")
NEIGHBORHOOD_FILE = Family("neighborhood-egg/1.0", "neighborhood", "JSON", "twins, here")
GAME = Family("orappter-cartridge/1.0", "game", "JSON", "is read only")

FAMILIES: tuple[Family, ...] = (
    *SCALES.values(),
    ORGANISM,
    RAPPLICATION,
    SESSION,
    OLD_SESSION,
    INVITATION,
    GATE,
    CUBBY,
    ESTATE,
    TWIN_2_1,
    *MERGED.values(),
    BINDER,
    OLD_SWARM,
    APPLICATION,
    SEEDS,
    *RAPP1.values(),
    ORGANISM_FILE,
    BUDDY,
    BUDDY_SEED,
    LISPY,
    PHYLOGENY,
    NEIGHBORHOOD_FILE,
    GAME,
)


_VERSIONED = re.compile(r"([a-z-]+)/([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")


def table(families: Iterable[Family] = FAMILIES) -> list[str]:
    """The family table as lines of at most 80 columns, the heading first."""
    rows = [("SCHEMA", "KIND", "FILE", "HATCHES TO")]
    rows += [(one.tag, one.kind, one.container, one.hatches_to) for one in families]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    ]


_SPOKEN = {
    "lispy": "LisPy cartridge",
    "game": "game cartridge",
    "phylogeny": "record of descent",
    "seeds": "list of agents",
}


def spoken(kind: str) -> str:
    """A kind as people say it, with its article."""
    word = _SPOKEN.get(kind, kind)
    return f"{'an' if word[:1] in 'aeio' else 'a'} {word}"


def unknown(file: str, what: str, *, schema: object = None) -> BadEggError:
    """The error for what is no egg of a known kind, with the family table, in the words of §18.10.2.

    ``what``: a clause that says what was found. ``schema``: the egg's, which a newer rappd may know.
    """
    lines = "\n".join(table())
    do = "Ask its maker for one of these kinds."
    if _is_newer(schema):
        do = "It was made by a newer rappd: update this one, or ask its maker for one of these kinds."
    return BadEggError(
        f"I don't know how to hatch this: {file} {what}. Refused whole; nothing was written.\n"
        f"The cartridge family:\n{lines}",
        do=do,
        code="unknown_egg",
    )


def _is_newer(schema: object) -> bool:
    """True when ``schema`` is a known one but for its version, which is above all that are known."""
    found_version = _version(schema)
    known = [
        found
        for family in FAMILIES
        if (found := _version(family.tag)) and found_version and found[0] == found_version[0]
    ]
    return (
        found_version is not None and bool(known) and found_version[1] > max(version for _, version in known)
    )


def _version(schema: object) -> tuple[str, tuple[int, int]] | None:
    found = _VERSIONED.match(schema) if isinstance(schema, str) else None
    return (found[1], (int(found[2]), int(found[3]))) if found else None


def no_egg(file: str, octets: bytes) -> BadEggError:
    """The error for a file that is neither a ZIP archive nor JSON: no table helps there."""
    what = "is empty" if not octets.strip() else "is not an egg: it is neither a ZIP archive nor JSON"
    return BadEggError(
        f"{file} {what}; nothing was written.", do="Get it again, or another file.", code="unknown_egg"
    )


def quoted(value: object) -> str:
    """A discriminator out of an egg, as it is shown when it is not known."""
    if value is None:
        return "none"
    return f'"{shown(value)}"' if isinstance(value, str) else "that is no text"
