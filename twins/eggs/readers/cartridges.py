"""Cartridges as eggs: the three shapes of a buddy, LisPy agents, and two kinds that are only read.

What is in a cartridge is the business of ``twins/cartridges``; here it gets a place, byte for byte.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from twins.cartridges import buddy_schema, json_documents, lispy_file, shapes
from twins.cartridges.buddy_store import FILE, SHELL
from twins.cartridges.egg_spec import body_octets
from twins.cartridges.json_documents import Document
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import Shape, shape_of
from twins.eggs.parsed_egg import Destination, Family, ParsedEgg, Part, Role, Seal
from twins.eggs.readers.detected_egg import DetectedEgg, PartCollector, inside, part_of, text
from twins.eggs.readers.egg_destination import EggOwner, answering, lenient, minted, plain, somebody
from twins.eggs.readers.formats import BUDDY, BUDDY_SEED, GAME, LISPY, ORGANISM_FILE, PHYLOGENY
from twins.eggs.readers.workspace_paths import in_workspace
from twins.errors import BadCartridgeError, BadEggError
from twins.fs.untrusted_names import safe_component
from twins.workspace.rappid import label
from twins.workspace.souls import default_soul

BUDDY_FILE = f".brainstem_data/{SHELL}"
"""The cartridge that a twin of kind buddy hatched from, below its workspace."""
LIFE_FILE = f".brainstem_data/{FILE}"
"""The file of its life since."""


def buddy(found: DetectedEgg) -> ParsedEgg:
    """``_meta.type "rappter.egg"``, as the published Buddy writes it."""
    return _buddy(found, BUDDY, text((inside(found.manifest, "organism"), "name")))


def buddy_seed(found: DetectedEgg) -> ParsedEgg:
    """``rappter-egg/1.0``, the shape of the cartridge document."""
    return _buddy(found, BUDDY_SEED, text((found.manifest, "name")))


def organism_file(found: DetectedEgg) -> ParsedEgg:
    """``_format "egg"``: a daemon becomes a buddy; organisms of other scales have nothing here to live in."""
    _check(found, shapes.checked)
    organism, body = inside(found.manifest, "organism"), inside(found.manifest, "body")
    _check_body(found, body)
    seal = Seal(True, listed=1)
    name = text((organism, "name"), (organism, "instance"), (organism, "slug"))
    if is_buddy(found.manifest):
        return _buddy(found, ORGANISM_FILE, name, seal)
    key = found.seed().hex()
    part = _whole(found, Role.OTHER, safe_component(f"{_file_name(name, 'organism')}.egg"))
    found.notes.append(f"It is kept as data in organisms/{key}; nothing here runs an organism of its scale.")
    opened = plain(found, ORGANISM_FILE, seal, Destination.INERT, name=name, key=key, parts=(part,))
    opened.folder = f"organisms/{key}"
    return opened


def is_buddy(document: Document) -> bool:
    """True when this document, in any of the three shapes, is somebody who can live here as a buddy."""
    shape = shape_of(document)
    if shape is Shape.SPEC:
        kind = inside(document, "body").get("kind")
        return inside(document, "organism").get("scale") == "daemon" and kind == "state_json"
    return shape is not None


def lispy(found: DetectedEgg) -> ParsedEgg:
    """``_meta.type "lispy-cartridge"``: an agent in LisPy, beside those in Python."""
    _check(found, lispy_file.checked)
    meta = inside(found.manifest, "_meta")
    name = text((meta, "agent_id")) or found.file.removesuffix(".json").removesuffix(".lispy")
    target = f"agents/{safe_component(_file_name(name, 'cartridge'))}.lispy.json"
    part = _whole(found, Role.AGENT, target)
    return plain(found, LISPY, Seal(None), Destination.HOST, name=name, parts=(part,))


def phylogeny(found: DetectedEgg) -> ParsedEgg:
    """``_meta.format "phylogeny.v1"``: a creature's genome and ancestors, without anything that lives."""
    identity = inside(found.manifest, "identity")
    name = text((identity, "name"), (found.manifest, "species")) or found.file
    stage = text((identity, "stage"))
    answer = (
        f"{name}{f', {stage},' if stage else ''} is a record of descent. It is read, nothing here runs it."
    )
    return answering(found, PHYLOGENY, Seal(None), answer, name=name, parts=(_whole(found, Role.OTHER),))


def game(found: DetectedEgg) -> ParsedEgg:
    """``orappter-cartridge/1.0``: a game for another machine."""
    name = text((found.manifest, "name")) or found.file
    answer = f"{name} is a game cartridge for the ORAPPTER console. It is read, nothing here runs it."
    return answering(found, GAME, Seal(None), answer, name=name, parts=(_whole(found, Role.OTHER),))


def _buddy(found: DetectedEgg, family: Family, name: str, seal: Seal | None = None) -> ParsedEgg:
    _check(found, shapes.checked)
    name = name or "buddy"
    buddy = _converted(found, Shape.BUDDY)
    buddy_schema.complete(buddy)
    buddy["_meta"].pop("as_of", None)  # in a file no time passes
    organism = buddy["organism"]
    rappid = lenient(found, organism.get("rappid"), found.manifest.get("rappid"))
    if rappid is None:
        # The same buddy saved again, also in another shape, is the same one: what it never changes counts.
        born = text((organism, "created_at"), (organism, "hatched_at"))
        ident = text((_converted(found, Shape.SEED), "id"))
        own = "" if ident == label(name, otherwise="buddy") else ident
        rappid = minted(found, name, unchanging=born and f"{own} {born}")
    placing = PartCollector(found)
    placing.made(_whole(found, Role.MEMORY, BUDDY_FILE))
    for target, role, octets in (
        (LIFE_FILE, Role.MEMORY, json_documents.encode(buddy)),
        ("soul.md", Role.SOUL, _soul(name, organism).encode()),
    ):
        placing.made(part_of(found.file, role, target, octets))
    found.manifest = {**found.manifest, "name": name}
    settled = seal or Seal(None)
    return somebody(
        found, family, EggOwner(rappid), (), in_workspace, lambda: settled, placing=placing, kind="buddy"
    )


def _converted(found: DetectedEgg, to: Shape) -> Document:
    try:
        return convert(found.manifest, to)
    except BadCartridgeError as error:
        raise BadEggError(str(error), do=error.do) from error


def _soul(name: str, organism: Document) -> str:
    """A buddy's soul: every buddy's, its own character, and the notes it has on it."""
    traits = [trait for trait in organism["personality"] if isinstance(trait, str) and trait.strip()]
    character = [f"Your character: {', '.join(traits)}."] if traits else []
    notes = [organism["soul_notes"].strip()] if organism["soul_notes"].strip() else []
    return "\n\n".join([default_soul("buddy", name).rstrip(), *character, *notes]) + "\n"


def _check(found: DetectedEgg, checked: Callable[..., object]) -> None:
    try:
        checked(found.manifest, name=found.file)
    except BadCartridgeError as error:
        raise BadEggError(str(error), do=error.do) from error


def _check_body(found: DetectedEgg, body: dict[str, object]) -> None:
    """Hash and size of an Egg Spec v1 body."""
    octets = body_octets(str(body.get("kind")), body.get("content"))
    sha256 = hashlib.sha256(octets).hexdigest()
    if body.get("sha256") != sha256 or body.get("size_bytes", len(octets)) != len(octets):
        raise found.damaged("its body")


def _whole(found: DetectedEgg, role: Role, target: str = "") -> Part:
    """The file itself, as its only part."""
    return part_of(found.file, role, target or found.file, found.octets)


def _file_name(name: str, otherwise: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".-")[:80] or otherwise
