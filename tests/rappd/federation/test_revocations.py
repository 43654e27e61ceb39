"""Revoked tokens and peers stay revoked whatever becomes of the database."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.test_tokens import ask, issued


def _remove(node: Node, copy: Path) -> None:
    for path in node.daemon.home.glob("rappd.db*"):
        path.unlink()


def _put_back(node: Node, copy: Path) -> None:
    _remove(node, copy)
    shutil.copy(copy, node.daemon.home / "rappd.db")


@pytest.mark.parametrize("damage", [_put_back, _remove], ids=["older database", "no database"])
def test_revoked_stays_revoked(
    make: Callable[..., Node], tmp_path: Path, damage: Callable[[Node, Path], None]
) -> None:
    node = make().start()
    mine, other = node.peer("mine"), node.peer("other")
    token = issued(node, ["HELP.brainstem.Clock"])
    assert ask(mine, token["text"], agent="Clock").verb == "DONE"
    node.daemon.stop()
    copy = tmp_path / "rappd.db"
    shutil.copy(node.daemon.home / "rappd.db", copy)
    node.start()
    assert node.owner("DELETE", f"/tokens/{token['jti']}")[0] == 200
    name = next(row["name"] for row in _peers(node) if row["fingerprint"] == other.fingerprint)
    assert node.owner("POST", f"/peers/{name}/revoke", {})[0] == 200
    node.daemon.stop()
    damage(node, copy)

    node.start()
    assert ask(mine, token["text"], agent="Clock").status == 401
    paired = {row["fingerprint"] for row in _peers(node) if row["paired"]}
    assert paired == ({mine.fingerprint} if damage is _put_back else set())
    with pytest.raises(OSError):  # its certificate is refused in the handshake
        other.post(other.help("Clock"))


def test_peer_paired_anew_after_revocation_stays(make: Callable[..., Node]) -> None:
    node = make().start()
    mine = node.peer("mine")
    name = _peers(node)[0]["name"]
    assert node.owner("POST", f"/peers/{name}/revoke", {})[0] == 200
    node.pair(mine)
    node.daemon.stop()
    node.start()
    assert mine.post(mine.help("Clock")).verb == "DONE"


def _peers(node: Node) -> list[dict[str, object]]:
    found: list[dict[str, object]] = node.owner("GET", "/peers")[1]["peers"]
    return found
