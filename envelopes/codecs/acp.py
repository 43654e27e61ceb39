"""The Agent Client Protocol (version 1), which editors speak: prompts as sentences, a turn's events as session updates."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from envelopes.codecs import jsonrpc
from envelopes.codecs.jsonrpc import INVALID_PARAMS, Id, RpcCall, RpcError
from envelopes.codecs.pictures import ONLY_A_PICTURE

VERSION = 1
SESSION = "program:acp:"
KEY = "rappd/key"
"""In a request's ``_meta``: names it, so that it may be sent again."""
MOST_OF_A_PROMPT = 1 << 20
MOST_OF_A_SESSION = 200
_NEW_SESSION = re.compile(
    rf"{SESSION}[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}(?:\.[A-Za-z0-9_-]+)?"
)
_LONGEST_RESULT = 20_000
_LONGEST_KEY = 200


class Prompt(msgspec.Struct, frozen=True):
    """A prompt: its sentence with attached texts below it, pictures, and files that only the client can read."""

    text: str
    pictures: list[dict[str, str]]
    files: list[str]


def read_prompt(call: RpcCall) -> Prompt:
    """The prompt of a ``session/prompt``. Raises ``RpcError``."""
    blocks = call.params.get("prompt")
    if not isinstance(blocks, list) or not all(isinstance(one, dict) for one in blocks):
        raise _unfit(call, "prompt must be a list of blocks.")
    texts: list[str] = []
    attached: list[str] = []
    pictures: list[dict[str, str]] = []
    files: list[str] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            texts.append(_text(call, block, "text"))
        elif kind == "image":
            pictures.append({"type": _text(call, block, "mimeType"), "data": _text(call, block, "data")})
        elif kind == "resource_link":
            uri = _text(call, block, "uri")
            (files if uri.startswith("file://") else attached).append(uri)
        elif kind == "resource":
            found = block.get("resource")
            if not isinstance(found, dict) or not isinstance(found.get("text", found.get("blob")), str):
                raise _unfit(call, "A resource must have text or blob.")
            uri, media = _text(call, found, "uri"), str(found.get("mimeType") or "file")
            if "text" in found:
                attached.append(as_file(uri, found["text"]))
            elif media.startswith("image/"):
                pictures.append({"type": media, "data": found["blob"]})
            else:
                attached.append(f"{uri} [a file that is not taken: {media[:80]}]")
        else:
            raise _unfit(call, f"Blocks of type {str(kind)[:40]} are not taken.")
    text = "\n\n".join(["\n".join(texts).strip(), *attached]).strip()
    if len(text) > MOST_OF_A_PROMPT:
        raise _unfit(call, f"A prompt has {MOST_OF_A_PROMPT} characters at most.")
    if not text and not files:
        if not pictures:
            raise _unfit(call, "The prompt says nothing.")
        text = ONLY_A_PICTURE
    return Prompt(text, pictures, files)


def as_file(uri: str, text: str) -> str:
    """A file that goes with a sentence."""
    return f"{uri}\n```\n{text}\n```"


def new_session(uuid: str, cwd: str) -> str:
    """An id for a session; it carries the folder, which nothing else remembers."""
    coded = base64.urlsafe_b64encode(cwd.encode()).decode().rstrip("=")
    found = f"{SESSION}{uuid}.{coded}"
    return found if len(found) <= MOST_OF_A_SESSION else f"{SESSION}{uuid}"


def is_new_session(session: str) -> bool:
    """True for an id as ``new_session`` makes it, whether the session has a turn yet or not."""
    return _NEW_SESSION.fullmatch(session) is not None


def folder_of(session: str) -> str:
    """The folder that a session's id carries, "" for none."""
    _, _, coded = session.partition(".")
    try:
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode() if coded else ""
    except (binascii.Error, ValueError):
        return ""


def absolute_folder(call: RpcCall) -> str:
    """The ``cwd`` of a request. Raises ``RpcError`` for one that is no absolute path."""
    found = text_of(call, "cwd")
    if not (found.startswith("/") or found[1:3] == ":\\"):
        raise _unfit(call, "cwd must be an absolute path.")
    return found


def text_of(call: RpcCall, name: str) -> str:
    """A parameter that must be there, as text. Raises ``RpcError``."""
    return _text(call, call.params, name)


def key_of(call: RpcCall) -> str:
    """The name under which a prompt may be sent again, "" for none."""
    meta = call.params.get("_meta")
    found = (meta.get(KEY) if isinstance(meta, dict) else None) or call.params.get("messageId")
    return found[:_LONGEST_KEY] if isinstance(found, str) else ""


def welcome(version: str) -> dict[str, Any]:
    """The result of ``initialize``."""
    return {
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
        },
        "agentInfo": {"name": "rappd", "title": "rappd", "version": version},
        "authMethods": [],
    }


def session_row(session: str, folder: str, title: str, updated: int) -> dict[str, Any]:
    """A row of ``session/list``; ``updated`` is microseconds since 1970."""
    at = datetime.fromtimestamp(updated / 1e6, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"sessionId": session, "cwd": folder, "title": title, "updatedAt": at}


def update(session: str, update_type: str, **fields: Any) -> bytes:
    """A ``session/update``."""
    return jsonrpc.notification(
        "session/update", {"sessionId": session, "update": {"sessionUpdate": update_type, **fields}}
    )


def said(session: str, kind: str, text: str) -> bytes:
    """A piece of text: ``user_message_chunk``, ``agent_message_chunk`` or ``agent_thought_chunk``."""
    return update(session, kind, content=_block(text))


class Updates:
    """The events of one turn as updates of its session."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._plan: dict[str, tuple[int, int]] = {}
        self.has_spoken = False
        """True once a piece of the answer was told."""

    def of(self, event: Mapping[str, Any]) -> bytes | None:
        """The update that tells of an event, None for one that tells an editor nothing."""
        kind, session = event.get("type"), self._session
        if kind == "delta":
            self.has_spoken = True
            return said(session, "agent_message_chunk", str(event.get("text", "")))
        if kind in ("thought", "notice"):
            return said(session, "agent_thought_chunk", str(event.get("text", "")))
        if kind == "call":
            return update(
                session,
                "tool_call",
                toolCallId=event.get("call"),
                title=event.get("name"),
                kind="other",
                status="in_progress",
                rawInput=event.get("args"),
            )
        if kind == "piece":
            return self._of_call(event, "in_progress", str(event.get("text", "")))
        if kind == "result":
            text = str(event.get("result", ""))[:_LONGEST_RESULT]
            return self._of_call(event, "completed" if event.get("ok") else "failed", text)
        if kind == "progress":
            self._plan[str(event.get("phase"))] = int(event.get("done", 0)), int(event.get("whole", 0))
            return update(session, "plan", entries=list(self._entries()))
        return None

    def _of_call(self, event: Mapping[str, Any], status: str, text: str) -> bytes:
        content = [{"type": "content", "content": _block(text)}]
        return update(
            self._session, "tool_call_update", toolCallId=event.get("call"), status=status, content=content
        )

    def _entries(self) -> Iterable[dict[str, str]]:
        for phase, (done, whole) in self._plan.items():
            status = "completed" if whole and done >= whole else "in_progress"
            yield {"content": f"{phase}: {done} of {whole}", "priority": "medium", "status": status}


def permission(id: Id, session: str, matter: Mapping[str, str]) -> bytes:
    """The question for the owner's yes: ``key``, ``what`` it is about and its ``text``."""
    call = {
        "toolCallId": matter["key"],
        "title": matter["what"],
        "kind": "other",
        "status": "pending",
        "content": [{"type": "content", "content": _block(matter["text"][:_LONGEST_RESULT])}],
    }
    options = [
        {"optionId": "yes", "name": "Approve exactly this", "kind": "allow_once"},
        {"optionId": "no", "name": "Not now", "kind": "reject_once"},
    ]
    params = {"sessionId": session, "toolCall": call, "options": options}
    return jsonrpc.request(id, "session/request_permission", params)


def is_yes(answer: object) -> bool:
    """True for the answer to ``permission`` that is a yes; everything else is none."""
    outcome = answer.get("outcome") if isinstance(answer, dict) else None
    return (
        isinstance(outcome, dict)
        and outcome.get("outcome") == "selected"
        and outcome.get("optionId") == "yes"
    )


def reads_files(call: RpcCall) -> bool:
    """True for a client that says in ``initialize`` that it reads files for its agent."""
    capabilities = call.params.get("clientCapabilities")
    files = capabilities.get("fs") if isinstance(capabilities, dict) else None
    return isinstance(files, dict) and files.get("readTextFile") is True


def client_name(call: RpcCall) -> str:
    """The name that a client gives itself in ``initialize``, "" for none."""
    info = call.params.get("clientInfo")
    name = (info.get("title") or info.get("name")) if isinstance(info, dict) else None
    return name if isinstance(name, str) else ""


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _text(call: RpcCall, found: Mapping[str, Any], name: str) -> str:
    text = found.get(name)
    if not isinstance(text, str) or not text:
        raise _unfit(call, f"{name} must be a text.")
    return text


def _unfit(call: RpcCall, what: str) -> RpcError:
    return RpcError(INVALID_PARAMS, what, id=call.id, do="Send it as the protocol has it.")
