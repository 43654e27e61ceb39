"""Rows of machines as the daemon sends them, and the requests of the page."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PI, SHED, KITCHEN = "91c3" * 16, "5ed0" * 16, "c0de" * 16
SOURCES = [
    {"source": "nearby", "found": 1, "trouble": ""},
    {"source": "last address", "found": 2, "trouble": ""},
    {"source": "list", "found": 0, "trouble": ""},
    {"source": "typed", "found": 0, "trouble": ""},
]
ATTEMPT = "8c9ff8a2-94d2-4c1a-9b6e-0123456789ab"
OTHER = "1d9ff8a2-94d2-4c1a-9b6e-0123456789ab"
THREAD = "7c1e0000-0000-4000-8000-000000000000"


def paired(name: str, key: str, **more: Any) -> dict[str, Any]:
    row = {"name": name, "fingerprint": key, "short": key[:4], "paired": True, "legacy": False}
    row |= {"whose": "mine", "presence": "here", "ms": 2.1, "since": time.time() - 60, "reached": "nearby"}
    row |= {"address": "192.168.1.31:7443", "agents": 3, "waiting": 0, "trouble": "", "scopes": ["*"]}
    row |= {"offered": False, "called": name, "paired_at": time.time() - 90_000, "seen_at": time.time()}
    return row | more


def found(name: str, key: str = KITCHEN, **more: Any) -> dict[str, Any]:
    row = {"name": name, "fingerprint": key, "short": key[:4], "paired": False, "legacy": False}
    row |= {"presence": "found", "reached": "nearby", "address": "192.168.1.40:7443", "since": time.time()}
    return row | more


def legacy(name: str) -> dict[str, Any]:
    row = {"name": name, "fingerprint": "", "short": "", "paired": False, "legacy": True, "reached": "typed"}
    return row | {"presence": "written down", "address": "http://192.168.1.50:7071"}


def listing(*peers: dict[str, Any], **more: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {"peers": list(peers), "asking": [], "sources": SOURCES}
    whole |= {"listener": {"port": 7443, "open": True}}
    return whole | {"self": {"name": "desk", "fingerprint": "4f2a" * 16, "short": "4f2a"}} | more


def attempt(state: str = "words", **more: Any) -> dict[str, Any]:
    row = {"attempt": ATTEMPT, "role": "asks", "peer": "kitchen", "short": "c0de", "state": state}
    row |= {"address": "192.168.1.40:7443", "words": ["copper", "lantern", "otter", "violin"]}
    return row | {"seconds_left": 118} | more


def asks(**more: Any) -> dict[str, Any]:
    who = {"attempt": OTHER, "role": "answers", "peer": "pi", "short": "91c3"}
    return attempt(**who, address="192.168.1.12:7443", **more)


def ended(state: str, trouble: str, do: str = "") -> tuple[int, Any]:
    return 200, {"pairing": attempt(state, trouble=trouble, do=do, seconds_left=0)}


def waiting(id: str = "81aa", state: str = "queued", **more: Any) -> dict[str, Any]:
    row = {"id": id, "to": "shed", "peer": SHED, "what": "read the rain gauge", "state": state, "tries": 3}
    row |= {"next": time.time() + 30, "expires": time.time() + 79_300, "created": time.time() - 60}
    return row | {"thread": THREAD, "trouble": ""} | more


def bodies(site: Any, path: str) -> list[Any]:
    return [body for _, body in site.daemon.requests(path) if body is not None]


def sent(site: Any, method: str, path: str, status: int, answer: Any) -> None:
    site.daemon.scripted[f"{method} {path}"] = [(status, answer)]


def answer_and_then(site: Any, answer: Any, path: str, found: Any) -> Callable[[], Any]:
    """An answer after which a GET of ``path`` gives ``found``: not before, for the page looks again by itself."""

    def give() -> Any:
        sent(site, "GET", path, 200, found)
        return answer

    return give


def peer_shown(site: Any, row: dict[str, Any], **more: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(row))
    sent(
        site,
        "GET",
        f"/peers/{row['fingerprint']}",
        200,
        {"peer": row | {"agents_here": [], "twins_here": []} | more},
    )
