"""Every body of ``POST /pairing`` and every answer to one, read strictly. Bytes travel as lower-case hex."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

from neighborhoods.errors import BadStepError

State = Literal["asking", "words", "waiting", "paired", "differ", "stopped", "expired"]
"""asking: no words yet; words: people compare; waiting: yes here, nothing yet there; the rest are ends."""

_UUID4 = r"\A[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z"
AttemptId = Annotated[str, msgspec.Meta(pattern=_UUID4)]
Hex32 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Hex33 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{66}\Z")]
Hex64 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{128}\Z")]


class Offer(msgspec.Struct, frozen=True, tag_field="step", tag="offer"):
    """I am this one, I ask, and promise a nonce."""

    attempt: AttemptId
    introduction: dict[str, Any]
    commitment: Hex32


class Reveal(msgspec.Struct, frozen=True, tag_field="step", tag="reveal"):
    """The nonce that was promised."""

    attempt: AttemptId
    nonce: Hex32


class OwnerVerdict(msgspec.Struct, frozen=True, tag_field="step", tag="verdict"):
    """The verdict of the other owner on the words."""

    attempt: AttemptId
    same: bool
    signature: Hex64


class Poll(msgspec.Struct, frozen=True, tag_field="step", tag="poll"):
    """Asks for the state of a session."""

    attempt: AttemptId


class Stop(msgspec.Struct, frozen=True, tag_field="step", tag="stop"):
    """The owner over there does not want any more."""

    attempt: AttemptId


class Code(msgspec.Struct, frozen=True, tag_field="step", tag="code"):
    """I am this one, and begin a try with the code that is shown."""

    attempt: AttemptId
    introduction: dict[str, Any]
    message: Hex33


class Confirm(msgspec.Struct, frozen=True, tag_field="step", tag="confirm"):
    """I knew the code, and own my key."""

    attempt: AttemptId
    proof: Hex32
    signature: Hex64


Step = Offer | Reveal | OwnerVerdict | Poll | Stop | Code | Confirm


class OfferAnswer(msgspec.Struct, frozen=True):
    """To an offer: who answers, and its nonce."""

    introduction: dict[str, Any]
    nonce: Hex32


class SimultaneousOpenReply(msgspec.Struct, frozen=True):
    """To an offer, when this machine's own attempt is kept: SHA-256 (hex) of that attempt's id."""

    kept: Hex32 = msgspec.field(name="yield")


class VerdictReply(msgspec.Struct, frozen=True):
    """A verdict within an answer."""

    same: bool
    signature: Hex64


class StatusReply(msgspec.Struct, frozen=True):
    """To reveal, verdict, poll and stop: how it stands, and what the owner here said, once that is so."""

    state: State
    verdict: VerdictReply | None = None


class CodeAnswer(msgspec.Struct, frozen=True):
    """To a code: who answers, and its message."""

    introduction: dict[str, Any]
    message: Hex33


class ConfirmAnswer(msgspec.Struct, frozen=True):
    """To a right confirmation: the same from here."""

    proof: Hex32
    signature: Hex64
    state: State = "paired"


_Answer = TypeVar("_Answer", bound=msgspec.Struct)


def read_step(body: object) -> Step:
    """The step that a JSON value says. Raises ``BadStepError``."""
    try:
        step: Step = msgspec.convert(body, Step)
        return step
    except msgspec.ValidationError as error:
        raise BadStepError("That is no step of a pairing.", do="Update both machines, try again.") from error


def read_answer(body: object, kind: type[_Answer]) -> _Answer:
    """The answer that a JSON value says. Raises ``BadStepError``."""
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise BadStepError(
            "The other machine's answer belongs to no pairing.", do="Update both machines, try again."
        ) from error


def as_json(message: msgspec.Struct) -> dict[str, Any]:
    """A step or an answer as the JSON object that travels."""
    found: dict[str, Any] = msgspec.to_builtins(message)
    if found.get("verdict", ...) is None:
        del found["verdict"]
    return found
