"""One phone's part in a session, as a state table without I/O: what it may send, and what is done about it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from envelopes.envelope import is_uuid
from rappd.sessions.sentence_routing import Say, unfit
from rappd.tether import phone_requests

PING_SECONDS = 5.0
DEAD_SECONDS = 15.0
FRAMES_A_SECOND = 50
_MOST_GIVEN = 20
"""Participants, or texts, of a workflow."""
WORKFLOW_ACTIONS = ("start", "pause", "resume", "abort")


@dataclass(frozen=True, slots=True)
class Sync:
    """Send the session's events after ``last_seq``; all of them when it was in another session."""

    last_seq: int
    session: str


@dataclass(frozen=True, slots=True)
class RunWorkflow:
    """Start, pause, resume or abort a workflow; ``files`` and ``plays`` are texts and players for a start."""

    action: str
    name: str
    files: dict[str, str]
    plays: dict[str, str]


@dataclass(frozen=True, slots=True)
class EggToken:
    """Send a token for one request for an egg."""


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Remove one of the news that wait for the owner."""

    key: str


@dataclass(frozen=True, slots=True)
class Look:
    """Show the whole of a matter that waits for the owner's answer."""

    key: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a matter, as it was shown with this hash, with yes or no."""

    key: str
    sha256: str
    yes: bool


@dataclass(frozen=True, slots=True)
class Typing:
    """Show the others that it writes."""


@dataclass(frozen=True, slots=True)
class More:
    """Send the next page of events."""


@dataclass(frozen=True, slots=True)
class Clear:
    """Empty all screens."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Send this frame back."""

    frame: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Hang:
    """Close the connection; ``reason`` goes to the log."""

    reason: str


@dataclass(frozen=True, slots=True)
class Request:
    """Take a frame of a request."""

    frame: phone_requests.Frame


Action = (
    Request
    | Sync
    | Say
    | RunWorkflow
    | EggToken
    | Dismiss
    | Look
    | Answer
    | Typing
    | More
    | Clear
    | Reply
    | Hang
)


class PhoneSession:
    """Checks a paired phone's frames. Times are seconds of any steady clock."""

    def __init__(self, now: float, *, may_talk: bool) -> None:
        self.heard_at = now
        self._may_talk = may_talk
        self._greeted = False
        self._recent: deque[float] = deque(maxlen=FRAMES_A_SECOND)

    def allow(self, *, may_talk: bool) -> None:
        """The phone's scope was changed."""
        self._may_talk = may_talk

    def on_frame(self, frame: dict[str, Any], now: float, *, asked_for: bool = False) -> list[Action]:
        """A frame of the phone, as decoded JSON. One that the computer asked for counts as none too many.

        Parts of pictures and of long answers go as fast as the line and the computer take them.
        """
        self.heard_at = now
        if not asked_for:
            if len(self._recent) == FRAMES_A_SECOND and now - self._recent[0] < 1.0:
                return [Hang("too many frames")]
            self._recent.append(now)
        kind = frame.get("type")
        if not isinstance(kind, str):
            return [Hang("unknown kind")]
        if kind == "ping":
            return [Reply({"type": "pong"})]
        if kind == "pong":
            return []
        if kind == "bye":
            return [Hang("left")]
        if kind == "hello":
            return self._on_hello(frame)
        if not self._greeted:
            return [Hang("no hello")]
        if kind in phone_requests.KINDS:
            request = phone_requests.read_frame(frame)
            return [Request(request)] if request is not None else [Hang("malformed request")]
        if kind == "typing":
            return [Typing()] if self._may_talk else []
        if kind == "more":
            return [More()]
        if kind == "clear":
            return [Clear()] if self._may_talk else []
        if kind == "egg_token":
            return [EggToken()]
        if kind == "say":
            return self._on_say(frame)
        if kind == "dismiss":
            key = frame.get("key")
            return [Dismiss(key[:100])] if isinstance(key, str) else [Hang("malformed key")]
        if kind in ("look", "answer"):
            return self._on_matter(frame)
        if kind == "workflow":
            return self._on_workflow(frame)
        return [Hang("unknown kind")]

    def on_tick(self, now: float) -> list[Action]:
        """Call after each ``next_tick`` seconds."""
        if now - self.heard_at >= DEAD_SECONDS:
            return [Hang("silent")]
        return [Reply({"type": "ping"})]

    def next_tick(self, now: float) -> float:
        """Seconds until ``on_tick`` is due: silence is noticed at ``DEAD_SECONDS``, not at the ping after it."""
        return max(0.0, min(PING_SECONDS, self.heard_at + DEAD_SECONDS - now))

    def _on_hello(self, frame: dict[str, Any]) -> list[Action]:
        last, session = frame.get("last_seq", 0), frame.get("session", "")
        if type(last) is not int or last < 0 or not isinstance(session, str):
            return [Hang("malformed hello")]
        self._greeted = True
        return [Sync(last, session)]

    def _on_say(self, frame: dict[str, Any]) -> list[Action]:
        event_id, text, to = frame.get("event_id"), frame.get("text"), frame.get("to", "")
        if not (is_uuid(event_id) and isinstance(text, str) and isinstance(to, str)):
            return [Hang("malformed sentence")]
        refused = unfit(text) if self._may_talk else "This phone may only listen."
        if refused:
            return [Reply({"type": "refused", "event_id": event_id, "error": refused})]
        via = "mic" if frame.get("via") == "mic" else ""
        return [Say(str(event_id).lower(), text, to[:80], via)]

    def _on_matter(self, frame: dict[str, Any]) -> list[Action]:
        key, sha256, yes = frame.get("key"), frame.get("sha256"), frame.get("yes")
        if not isinstance(key, str):
            return [Hang("malformed key")]
        if frame["type"] == "look":
            return [Look(key[:500])]
        if not (isinstance(sha256, str) and isinstance(yes, bool)):
            return [Hang("malformed answer")]
        return [Answer(key[:500], sha256[:64], yes)]

    def _on_workflow(self, frame: dict[str, Any]) -> list[Action]:
        action, name = frame.get("action"), frame.get("name", "")
        files, plays = frame.get("files", {}), frame.get("plays", {})
        if action not in WORKFLOW_ACTIONS or not isinstance(name, str):
            return [Hang("malformed workflow")]
        if not (_is_texts(files) and _is_texts(plays)):
            return [Hang("malformed workflow")]
        return [RunWorkflow(str(action), name[:80], files, plays)]


def _is_texts(value: object) -> bool:
    """True for an object of texts, few enough for a workflow."""
    return (
        isinstance(value, dict)
        and len(value) <= _MOST_GIVEN
        and all(isinstance(one, str) for one in value.values())
    )
