"""Session eggs (``brainstem-egg/2.3-session``): one JSON file, its page and its transcript pinned by SHA-256."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import orjson

from envelopes.codecs.canonical import canonical
from twins.eggs.readers.sessions import TRANSCRIPT_PIN
from twins.eggs.session_content import (
    MOST_EVENTS,
    MOST_FILE_BYTES,
    MOST_PAGE_BYTES,
    MOST_TRANSCRIPT_BYTES,
    SessionContent,
)
from twins.errors import TwinError

SCHEMA = "brainstem-egg/2.3-session"


def session_egg(content: SessionContent) -> bytes:
    """The file of a session; its ``transcript`` is what is written. Raises ``session_too_large``."""
    page, transcript = content.page.encode(), canonical(content.transcript)
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        "type": "session",
        "rappid": content.rappid,
        "name": content.title,
        "title": content.title,
        "description": content.description,
        "parent_rappid": content.parent_rappid or None,
        "branch_at_event": content.branch_at_event,
        "participants": [msgspec.structs.asdict(one) for one in content.participants],
        "runtime": {"type": "html", "sha256": hashlib.sha256(page).hexdigest(), "payload": content.page},
        "transcript": content.transcript,
        TRANSCRIPT_PIN: hashlib.sha256(transcript).hexdigest(),
        "exported_at": content.made_at,
        "minted_at": content.made_at,
        "minted_by": content.made_by,
        "implements": ["article-xlvi", "article-xlix"],
    }
    file = orjson.dumps(manifest, option=orjson.OPT_INDENT_2)
    if (
        len(content.transcript) > MOST_EVENTS
        or len(transcript) > MOST_TRANSCRIPT_BYTES
        or len(page) > MOST_PAGE_BYTES
        or len(file) > MOST_FILE_BYTES
    ):
        raise TwinError(
            f"This session is too long for one egg: at most {MOST_EVENTS} events and "
            f"{MOST_TRANSCRIPT_BYTES >> 20} MB fit in.",
            do="rappd sessions export --format jsonl",
            code="session_too_large",
        )
    return file
