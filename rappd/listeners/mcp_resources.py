"""Resources of MCP: the owner's conversations and shared memories, for programs that were given them."""

from __future__ import annotations

from typing import Any

import orjson

from envelopes.codecs import mcp
from envelopes.codecs.jsonrpc import INVALID_PARAMS, RpcError, cursor, refuse_cursor
from envelopes.codecs.mcp import McpRequest
from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import is_uuid
from rappd.errors import NotFoundError
from rappd.features.conversations.conversations import Conversations, ConversationTurns
from rappd.features.memories.operations import MemoryOperations
from rappd.listeners.programs import Program

CONVERSATIONS, MEMORIES = "READ.conversations", "READ.memories"
"""The capabilities that a token needs."""
MOST_TURNS = 200
_PAGE = 50
_OF_CONVERSATION = "rappd://conversations/"
_OF_MEMORIES = "rappd://memories"
_OLDER_NOT_FOUND = -32002


def has_any(program: Program) -> bool:
    """True for a program that may read something."""
    return _may(program, CONVERSATIONS) or _may(program, MEMORIES)


async def listed(program: Program, asked: McpRequest) -> dict[str, Any]:
    """The result of ``resources/list``: memories first, then conversations, the latest first."""
    rows: list[dict[str, Any]] = []
    before = cursor(asked.call)
    if before is None and _may(program, MEMORIES):
        rows.append(_row(_OF_MEMORIES, "Memories", "application/json"))
    if not _may(program, CONVERSATIONS):
        return {"resources": rows}
    found = await _conversations(program).latest(limit=_PAGE, before=before)
    rows += [
        _row(_OF_CONVERSATION + one["id"], one["title"], "text/markdown") for one in found["conversations"]
    ]
    return {"resources": rows, **({"nextCursor": found["next"]} if found["next"] else {})}


async def templates(program: Program, asked: McpRequest) -> dict[str, Any]:
    """The result of ``resources/templates/list``."""
    refuse_cursor(asked.call)
    if not _may(program, CONVERSATIONS):
        return {"resourceTemplates": []}
    row = {"uriTemplate": f"{_OF_CONVERSATION}{{id}}", "name": "A conversation", "mimeType": "text/markdown"}
    return {"resourceTemplates": [row]}


async def read(program: Program, asked: McpRequest) -> dict[str, Any]:
    """The result of ``resources/read``. Raises ``RpcError`` for what is not there for the program."""
    uri = mcp.text_parameter(asked.call, "uri")
    if uri == _OF_MEMORIES and _may(program, MEMORIES):
        found = await MemoryOperations(list).listing(program.daemon.host)
        return _contents(uri, "application/json", orjson.dumps(found, default=str).decode())
    if uri.startswith(_OF_CONVERSATION) and _may(program, CONVERSATIONS):
        thread = uri.removeprefix(_OF_CONVERSATION)
        if is_uuid(thread):
            try:
                shown = await _conversations(program).show(thread, limit=MOST_TURNS)
            except NotFoundError:
                raise _not_there(asked, uri) from None
            return _contents(uri, "text/markdown", _markdown(shown))
    raise _not_there(asked, uri)


def _may(program: Program, capability: str) -> bool:
    """A program at the control socket reads what its account's owner said; another one what its token says."""
    if program.control:
        return capability == CONVERSATIONS
    return bool(program.key) and program.caller.may(capability)


def _conversations(program: Program) -> Conversations:
    return Conversations(program.daemon.store, DEFAULT_USER_GUID)


def _row(uri: str, title: str, kind: str) -> dict[str, Any]:
    return {"uri": uri, "name": title or uri, "mimeType": kind}


def _contents(uri: str, kind: str, text: str) -> dict[str, Any]:
    return {"contents": [{"uri": uri, "mimeType": kind, "text": text}]}


def _markdown(shown: ConversationTurns) -> str:
    parts = [f"# {shown['conversation']['title']}"]
    if shown["earlier"]:
        parts.append(f"({shown['earlier']} earlier turns are left out.)")
    for turn in shown["turns"]:
        parts += [
            f"**{who}:** {text}" for who, text in (("Person", turn["user"]), ("Answer", turn["text"])) if text
        ]
    return "\n\n".join(parts)


def _not_there(asked: McpRequest, uri: str) -> RpcError:
    number = INVALID_PARAMS if asked.is_modern else _OLDER_NOT_FOUND
    return RpcError(number, "There is no such resource.", data={"uri": uri}, do="Ask for resources/list.")
