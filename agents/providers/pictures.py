"""Pictures in messages to a model: as content parts, or as words where a model takes none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agents.providers.provider import Message
from envelopes.codecs.pictures import Picture, data_url

_PICTURE = "image_url"
_OF_MODEL = re.compile(r"support|vision|multi-?modal|mmproj", re.IGNORECASE)
_OF_ONE_PICTURE = re.compile(
    r"format|(?:media|image|file|mime)[ _-]?type|size|large|decode|webp|gif", re.IGNORECASE
)


def with_pictures(message: Message) -> Message:
    """A message whose ``pictures`` became content parts, as OpenAI's servers take them."""
    rest = {key: value for key, value in message.items() if key != "pictures"}
    return {**rest, "content": parts(str(message.get("content") or ""), message["pictures"])}


def parts(text: str, pictures: Sequence[Picture]) -> list[dict[str, Any]]:
    """A sentence with pictures."""
    shown = ({"type": _PICTURE, _PICTURE: {"url": data_url(picture)}} for picture in pictures)
    return [{"type": "text", "text": text}, *shown]


def has_pictures(message: Message) -> bool:
    """True for a message with a picture among its parts."""
    content = message.get("content")
    return isinstance(content, list) and any(_is_picture(part) for part in content)


def says_blind(sentence: str) -> bool:
    """True when a server's refusal of a request with pictures speaks of its model, not of these pictures."""
    return bool(_OF_MODEL.search(sentence)) and not _OF_ONE_PICTURE.search(sentence)


def without_pictures(messages: Sequence[Message]) -> list[Message]:
    """The messages in words alone."""
    return [_in_words(message) if has_pictures(message) else message for message in messages]


def _in_words(message: Message) -> Message:
    texts = [str(part.get("text", "")) for part in message["content"] if not _is_picture(part)]
    count = len(message["content"]) - len(texts)
    texts.append(f"[{count} {'picture' if count == 1 else 'pictures'} that you cannot see]")
    return {**message, "content": "\n\n".join(texts)}


def _is_picture(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == _PICTURE
