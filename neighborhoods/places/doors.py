"""Doors: the addresses at which a rappid can be found, by its text alone. Nothing is looked up."""

from __future__ import annotations

import re
from typing import Literal, NotRequired, TypedDict

from twins.workspace.rappid import Rappid

_FRONT = ("twin", "operator")
_FILES = ("rappid.json", "card.json", "holo.md", "holo.svg", "holo-qr.svg", "facets.json")
_REPOSITORY = re.compile(r"@github\.com/(?P<owner>[A-Za-z0-9._-]+)/(?P<repo>[A-Za-z0-9._-]+)(?:#|$)")


class Door(TypedDict):
    """The addresses at which what a rappid names is published; without ``repo`` where its text names none."""

    rappid: str
    type: Literal["front_door", "gate"]
    repo: NotRequired[str]
    front: NotRequired[str]
    files: NotRequired[dict[str, str]]
    part: NotRequired[str]


def door(rappid: Rappid, *, kind: str = "", has_account: bool = True) -> Door:
    """The door of a rappid: ``{rappid, type, repo, front, files}``; without ``repo`` where its text names none.

    ``has_account``: its owner is known to be an account of GitHub. Without that, only a text that says so names one.
    ``kind``: of what lives there, where that is known better than from the rappid. A twin's or an operator's
    is a ``front_door``, any other a ``gate``.
    """
    found = _REPOSITORY.search(rappid.text)
    owner, name = (found["owner"], found["repo"]) if found else (rappid.owner, rappid.slug)
    is_front = (kind or rappid.kind) in _FRONT
    if not owner or not name or not (found or has_account):
        return {"rappid": rappid.text, "type": "front_door" if is_front else "gate"}
    raw = f"https://raw.githubusercontent.com/{owner}/{name}/main"
    names = _FILES if is_front else (*_FILES, "neighborhood.json", "members.json")
    return {
        "rappid": rappid.text,
        "type": "front_door" if is_front else "gate",
        "repo": f"https://github.com/{owner}/{name}",
        "front": f"https://{owner.lower()}.github.io/{name}/",
        "files": {one: f"{raw}/{one}" for one in names},
    }
