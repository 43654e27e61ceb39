"""The ``/chat`` codec (RAPP v1 §8): a turn is ``HELP {user_input…}`` answered by ``DONE {response…}``."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from envelopes.codecs import pictures
from envelopes.codecs.pictures import Picture
from envelopes.codecs.privileged import refuse_privileged, refuse_privileged_text
from envelopes.codecs.strict_json import not_utf8
from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import DONE, HELP, PICTURES, Envelope, is_uuid, new_id
from envelopes.errors import MalformedError

_WHO_AND_HOW_LONG = ("provider", "seconds", "tokens", "input_tokens", "output_tokens", "cost_usd")
"""Keys of a DONE that an answer has where they are known: who answered, how long, and how many tokens."""
ANSWER_KEYS = frozenset(
    {
        *("response", "assistant_response", "session_id", "user_guid", "agent_logs", "agent_logs_text"),
        *("voice_mode", "twin_mode", "voice_response", "twin_response", "model", "requested_model", "notice"),
        *(
            "user_input",
            "conversation_history",
            "type",
            "thread",
            "turn_id",
            "streamed",
            "senses",
            "agents_used",
        ),
        *_WHO_AND_HOW_LONG,
        *("error", "do", "code", "detail", "status", "no_copilot_access", "copilot_username"),
    }
)
"""Keys of an answer, of a stream's last event or of an error: a workspace can give them no other meaning."""

AUTOMATIC = "auto"
MOST_OF_A_MODEL = 200
"""Characters of a model's name."""

TWIN_CHAT = "rapp-twin-chat/1.0"
MOST_OF_A_CLAIM = 300
_TWIN_CHAT_TEXTS = ("schema", "from_rappid", "to_rappid", "utc", "nonce", "kind")

ROLES = frozenset({"user", "assistant", "tool"})


class ChatRequest(msgspec.Struct):
    """One ``/chat`` request after checking.

    ``session_id`` is whatever truthy JSON value the client sent, or None; ``history`` holds only
    messages of known roles; ``turn_id`` is set when the client named the turn itself. ``follows`` names the turn that
    this one follows, "" for none, where it is not the one before: None otherwise. ``pictures`` go with the sentence;
    a message of the user's in ``history`` has a ``pictures`` of its own where some went with it. ``model`` is the one that
    is to answer this turn, "" for the one that would anyway.
    """

    user_input: str
    history: list[dict[str, Any]]
    session_id: Any
    user_guid: str
    turn_id: str | None = None
    twin_chat: dict[str, Any] | None = None
    follows: str | None = None
    pictures: list[Picture] = msgspec.field(default_factory=list)
    model: str = ""


def decode_request(raw: bytes) -> ChatRequest:
    """The request in ``raw``, whatever its Content-Type said. Raises ``MalformedError`` (400)."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        refuse_privileged_text(raw, listener="chat")
        problem = not_utf8(raw) or "Request body must be a JSON object"
        raise MalformedError(problem, do='Send {"user_input": "…"}.')
    refuse_privileged(body, listener="chat", octets=raw)
    text = body.get("user_input")
    if text is not None and not isinstance(text, str):
        raise MalformedError("user_input must be a string", do='Send {"user_input": "…"}.')
    twin_chat = _twin_chat(body.get("twin_chat_envelope"))
    text = (text or "").strip() or said_in(twin_chat)
    if not text:
        raise MalformedError("user_input is required", do='Send {"user_input": "…"}.')
    guid = body.get("user_guid") or DEFAULT_USER_GUID
    if not isinstance(guid, str):
        raise MalformedError("user_guid must be a string", do="Send a GUID, or leave it out.")
    turn = body.get("turn_id")
    if turn is not None and not is_uuid(turn):
        raise MalformedError("turn_id must be a UUID", do="Send a UUIDv4, or leave it out.")
    follows = body.get("follows")
    if follows is not None and follows != "" and not is_uuid(follows):
        raise MalformedError("follows must be a turn's id", do='Send a turn_id, "", or leave it out.')
    return ChatRequest(
        text,
        _history(body.get("conversation_history")),
        body.get("session_id") or None,
        guid,
        turn.lower() if turn else None,
        twin_chat,
        follows.lower() if isinstance(follows, str) else None,
        pictures.checked(body["pictures"]) if body.get("pictures") is not None else [],
        model_name(body.get("model")),
    )


def model_name(found: object) -> str:
    """A model's name as somebody sent it; "" for none, and for "auto". Raises ``MalformedError``."""
    if found is None:
        return ""
    if not isinstance(found, str):
        raise MalformedError("model must be a string", do="Send a model's name, or leave it out.")
    name = found.strip()
    if len(name) > MOST_OF_A_MODEL or not name.isprintable():
        raise MalformedError("model must be a model's name", do="GET /models lists them.")
    return "" if name == AUTOMATIC else name


def request_envelope(request: ChatRequest, *, recipient: str) -> Envelope:
    """The turn as a record. The caller is its ``user_guid``; the dispatcher adds the thread."""
    data: dict[str, Any] = {"user_input": request.user_input}
    if request.history:
        data["conversation_history"] = request.history
    if request.session_id is not None:
        data["session_id"] = request.session_id
    if request.twin_chat is not None:
        data["twin_chat_envelope"] = request.twin_chat
    if request.follows is not None:
        data["follows"] = request.follows
    if request.model:
        data["model"] = request.model
    extensions = {PICTURES: request.pictures} if request.pictures else {}
    return Envelope(request.turn_id or new_id(), request.user_guid, recipient, HELP, data, extensions)


def reply_body(reply: Envelope, *, session_id: Any, voice_mode: bool, twin_mode: bool) -> dict[str, Any]:
    """The 200 body for a ``DONE``: the union of every published server's keys, both reply keys alike, and what senses of the workspace add."""
    assert reply.verb == DONE
    data = reply.data
    text = data.get("response", "")
    body = {
        "response": text,
        "assistant_response": text,
        "session_id": session_id,
        "user_guid": reply.recipient,
        "agent_logs": data.get("agent_logs", ""),
        "voice_mode": voice_mode,
        "twin_mode": twin_mode,
        "model": data.get("model", ""),
        "requested_model": data.get("requested_model", ""),
    }
    if voice_mode:
        body["voice_response"] = data.get("voice_response", "")
    if twin_mode:
        body["twin_response"] = data.get("twin_response", "")
    if data.get("notice"):
        body["notice"] = data["notice"]
    if isinstance(data.get("agents_used"), list):
        body["agents_used"] = data["agents_used"]
    body |= {key: data[key] for key in _WHO_AND_HOW_LONG if key in data}
    return body | {key: text for key, text in data.get("senses", {}).items() if key not in ANSWER_KEYS}


def last_event(reply: Envelope, *, session_id: Any, voice_mode: bool, twin_mode: bool) -> dict[str, Any]:
    """The last event of a stream: ``{"type": "done", …}`` with the answer, or ``{"type": "error", …}`` with the refusal."""
    if reply.verb == DONE:
        body = reply_body(reply, session_id=session_id, voice_mode=voice_mode, twin_mode=twin_mode)
        return {"type": "done", "thread": reply.thread, "turn_id": reply.id, **body}
    data = reply.data
    return {
        "type": "error",
        "error": data.get("msg", ""),
        "do": data.get("do", ""),
        "code": data.get("reason", "failed"),
        "status": data.get("code", 500),
    }


def said_in(twin_chat: dict[str, Any] | None) -> str:
    """The sentence in a twin-chat envelope, "" when there is none."""
    payload = twin_chat.get("payload") if twin_chat else None
    text = payload.get("text") if isinstance(payload, dict) else None
    return text.strip() if isinstance(text, str) else ""


def _twin_chat(found: object) -> dict[str, Any] | None:
    """A ``rapp-twin-chat/1.0`` envelope beside the sentence. All it says of its sender is a claim.

    What is no such envelope is left aside, as every published server does; a ``console`` in the clear is
    refused, for that kind is defined sealed only.
    """
    if not isinstance(found, dict) or found.get("schema") != TWIN_CHAT:
        return None
    kind = found.get("kind")
    if isinstance(kind, str) and kind.strip().lower() == "console":
        raise MalformedError("A console message must be sealed", do="Send kind say.")
    kept = {key: found[key] for key in _TWIN_CHAT_TEXTS if isinstance(found.get(key), str)}
    return {
        **{key: text[:MOST_OF_A_CLAIM] for key, text in kept.items()},
        "payload": {"text": said_in(found)},
    }


def _history(found: object) -> list[dict[str, Any]]:
    if not isinstance(found, list):
        return []
    kept: list[dict[str, Any]] = []
    shown: list[Picture] = []
    for index, message in enumerate(found):
        if not isinstance(message, dict):
            raise MalformedError(
                f"conversation_history[{index}] must be an object", do="Send {role, content}."
            )
        role = message.get("role")
        if not isinstance(role, str) or role not in ROLES:
            continue
        content = message.get("content")
        if not isinstance(content, str) and not (content is None and message.get("tool_calls")):
            raise MalformedError(f"conversation_history[{index}].content must be a string", do="Send text.")
        if role == "user" and message.get("pictures"):
            some = pictures.checked(message["pictures"], f"conversation_history[{index}].pictures")
            shown += some
            message = {**message, "pictures": some}
        kept.append(message)
    pictures.check_together(shown, "conversation_history")
    return kept
