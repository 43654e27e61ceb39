"""Rapplications as eggs: ``brainstem-egg/2.2-rapplication``, the binder of ``rapp-egg/1.0``, ``brainstem-egg/2.0``.

They come into the brainstem that is there, whose identity and soul are never touched; an application of
``rapp-egg/1.0`` becomes a twin.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import orjson

from twins.eggs.parsed_egg import Destination, Family, ParsedEgg, Part, Role
from twins.eggs.readers.detected_egg import UNPLACED, DetectedEgg, PartCollector, component, part_of, text
from twins.eggs.readers.egg_destination import lenient, owner_of, plain, said_by, somebody
from twins.eggs.readers.formats import APPLICATION, BINDER, MERGED, RAPPLICATION, quoted, unknown
from twins.eggs.readers.hash_check import HashCheck
from twins.eggs.readers.workspace_paths import Place, in_host, in_memory, in_workspace
from twins.errors import BadEggError
from twins.fs.untrusted_names import shown

_OWN = ("rappid.json", "soul.md")


def rapplication(found: DetectedEgg) -> ParsedEgg:
    """``agents/ organs/ rapp_ui/<id>/** data/<id>/**``; rappid and soul go to the rapplication's memory."""
    rapp = rapp_id(found, "rapp_id", "id")
    return in_brainstem(found, RAPPLICATION, rapp, lambda name: _place(name, rapp))


def binder(found: DetectedEgg) -> ParsedEgg:
    """``agent.py service.py ui/** state/**``, named by the manifest; some have ``<id>_agent.py`` instead."""
    rapp = rapp_id(found, "id")
    manifest = found.manifest
    agent = component((manifest, "agent_filename"))
    service = component((manifest, "service_filename"))
    page = text((manifest, "ui_filename"))

    def place(name: str) -> Place | None:
        first, slash, below = name.partition("/")
        if slash:
            if first == "ui":
                return page_place(rapp, below)
            return in_memory(f"{rapp}/{below}") if first == "state" else in_host(name)
        if name in ("agent.py", agent) or name.endswith("_agent.py"):
            declared = agent if name in ("agent.py", agent) else ""
            return Role.AGENT, f"agents/{_file_name(name, declared, rapp, '_agent.py')}"
        if name in ("service.py", service) or name.endswith(("_service.py", "_organ.py")):
            declared = service if name in ("service.py", service) else ""
            return Role.SERVICE, f"services/{_file_name(name, declared, rapp, '_service.py')}"
        if name == page or name == "ui.html":
            return page_place(rapp, "index.html")
        return in_memory(f"{rapp}/{name}") if name in _OWN else None

    return in_brainstem(found, BINDER, rapp, place)


def merged(found: DetectedEgg) -> ParsedEgg:
    """``brainstem-egg/2.0``: ``agents/ services/ rapp_ui/<id>/ data/`` of a whole or a part of a brainstem."""
    kind = found.manifest.get("type", "rapplication")
    family = MERGED.get(kind) if isinstance(kind, str) else None
    if family is None:
        raise unknown(found.file, f'says schema "brainstem-egg/2.0", type {quoted(kind)}')
    rapp = rapp_id(found, "id")
    whole = family.kind in ("twin", "snapshot")

    def place(name: str) -> Place | None:
        if whole and name in ("soul.md", ".env"):
            return (Role.SOUL if name == "soul.md" else Role.ENV), name
        first, _, below = name.partition("/")
        if first == "rapp_ui" and "/" in below:
            owner, _, page = below.partition("/")
            return page_place(owner, page)
        return in_host(name)

    listed = family.kind == "rapplication"
    return in_brainstem(found, family, rapp, place, listed=listed, agent_first=listed)


def in_brainstem(
    found: DetectedEgg,
    family: Family,
    rapp: str,
    place: Callable[[str], Place | None],
    *,
    listed: bool = True,
    agent_first: bool = True,
    wholeness: HashCheck | None = None,
) -> ParsedEgg:
    """Common parts of every egg for the host. ``listed``: it is shown among the rapplications."""
    wholeness = wholeness or HashCheck(found)
    placing = PartCollector(found, unplaced=f"{UNPLACED}/{rapp}")
    placing.put_every([name for name in found.names if name not in wholeness.wrapping], place)
    if agent_first and not placing.holds(Role.AGENT):
        wholeness.settle()  # where hashes tell of an agent, it is damaged
        raise _without_agent(found)
    if listed:
        placing.made(_listing(found, rapp))
    return plain(
        found,
        family,
        wholeness.settle(),
        Destination.HOST,
        rappid=lenient(found, said_by(found.manifest)),
        parts=placing.parts(),
    )


def _without_agent(found: DetectedEgg) -> BadEggError:
    """A rapplication's egg without its agent; published so: getting it again brings the same file."""
    publisher = text((found.manifest, "publisher")).lstrip("@")
    who = shown(publisher[:60]) if publisher else "its publisher"
    return BadEggError(
        f"{found.file} holds no agent: its publisher left it out; nothing was written.",
        do=f"Ask {who} for an egg with its agent.",
    )


def rapp_id(found: DetectedEgg, *keys: str) -> str:
    """The id that names folders, from the manifest; the file's name where it has none."""
    return component(*((found.manifest, key) for key in keys)) or _word(found.file.removesuffix(".egg"))


def page_place(rapp: str, below: str) -> Place | None:
    """The path that a rapplication's page is served from."""
    return (Role.PAGE, f"rapps/{_word(rapp)}/ui/{below}") if below else None


def _place(name: str, rapp: str) -> Place | None:
    if name in _OWN:
        return in_memory(f"{rapp}/{name}")
    if name.startswith(f"rapp_ui/{rapp}/"):
        return page_place(rapp, name.removeprefix(f"rapp_ui/{rapp}/"))
    if name.startswith("data/") and not name.startswith(f"data/{rapp}/"):
        return None  # the memory of others
    return in_host(name)


def _file_name(name: str, declared: str, rapp: str, suffix: str) -> str:
    """The name to install a file under: as the manifest tells, as it is, or made from the id."""
    for one in (declared, name):
        if one.endswith(suffix):
            return one
    return f"{_word(rapp)}{suffix}"


def _listing(found: DetectedEgg, rapp: str) -> Part:
    """``manifest.json`` of an installed rapplication, so that it is listed."""
    manifest = found.manifest
    fields = {
        "schema": "rapp-application/1.0",
        "id": _word(rapp),
        **{key: text((manifest, key)) for key in ("name", "version", "publisher", "description", "category")},
    }
    target = f"rapps/{_word(rapp)}/manifest.json"
    return part_of(target, Role.PAGE, target, orjson.dumps(fields, option=orjson.OPT_INDENT_2))


@lru_cache(256)
def _word(text: str) -> str:
    """An id as rapplications have them."""
    word = re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_")[:60]
    return word if word[:1].isalpha() else f"rapp_{word}".rstrip("_")


EGG = "EGG.json"


def application(found: DetectedEgg) -> ParsedEgg:
    """``twin/soul.md twin/agents/* state/**``; the application's other files stay beside them."""
    wholeness = HashCheck(found)
    wholeness.wrapping.add(EGG)
    egg = found.read_object(EGG)
    application = found.manifest
    # What the egg says of itself comes first; the application's manifest knows the rest.
    found.manifest = {**application, **egg}
    member = "twin/rappid.json" if "twin/rappid.json" in found else "rappid.json"
    who = owner_of(found, member)
    names = [name for name in found.names if name not in wholeness.wrapping]
    publisher = text((egg, "publisher"))
    return somebody(
        found, APPLICATION, who, names, _application_place, wholeness.settle, owner=publisher, kind="custom"
    )


def _application_place(name: str) -> Place | None:
    first, slash, below = name.partition("/")
    if slash and first == "twin":
        return in_workspace(below)
    if slash and first == "state":
        return in_memory(below)
    return in_workspace(name)
