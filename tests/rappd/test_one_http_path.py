"""All TCP and Unix listeners serve HTTP through aiohttp: there is no second parser."""

from __future__ import annotations

import ast

from fixtures.running_daemon import REPO

_PROTOCOLS = {"Protocol", "BufferedProtocol"}
_SERVERS = {"create_server", "create_unix_server", "start_server", "start_unix_server"}


def _own_servers(source: str) -> list[str]:
    """Classes that are asyncio protocols, and calls that serve connections without aiohttp."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base) for base in node.bases}
            found += [node.name] if bases & {f"asyncio.{name}" for name in _PROTOCOLS} else []
        elif isinstance(node, ast.Attribute) and node.attr in _SERVERS:
            found.append(ast.unparse(node))
    return found


def test_daemon_has_no_http_parser_of_its_own() -> None:
    found = {
        str(file.relative_to(REPO)): own
        for file in sorted((REPO / "rappd").rglob("*.py"))
        if (own := _own_servers(file.read_text()))
    }
    assert found == {}


def test_own_servers_are_found() -> None:
    source = "class Lane(asyncio.Protocol): ...\nloop.create_server(Lane)"
    assert _own_servers(source) == ["Lane", "loop.create_server"]
