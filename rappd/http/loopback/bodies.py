"""Reading what a request carries, with one clear refusal when it is not what it should be."""

from __future__ import annotations

import zlib
from typing import Any

import orjson
from aiohttp import BodyPartReader, web

from agents.brainstem.json_depth import MAX_DEPTH, too_deep
from envelopes.problem import ReportableError


class InvalidBodyError(ReportableError):
    """A body that is not what the route takes."""

    code = "bad_body"
    status = 400
    exit_code = 2


class UnsupportedMediaTypeError(ReportableError):
    """A content type that the route does not take."""

    code = "media_type"
    status = 415
    exit_code = 2


class InvalidFieldError(ReportableError):
    """A field that is there but cannot be used."""

    code = "unfit"
    status = 422
    exit_code = 2


async def json_object(request: web.Request) -> dict[str, Any]:
    """The body as a JSON object; an empty body is an empty one. Raises ``InvalidBodyError``."""
    raw = await request.read()
    if not raw.strip():
        return {}
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise InvalidBodyError("Request body must be a JSON object", do="Send {…}.")
    check_depth(found)
    return found


def check_depth(value: object) -> None:
    """Raises ``InvalidBodyError`` for what is nested deeper than a record can hold."""
    if too_deep(value):
        raise InvalidBodyError(f"That is nested more than {MAX_DEPTH} deep.", do="Send something flatter.")


def text_field(body: dict[str, Any], name: str) -> str:
    """A required, non-empty text. Raises ``InvalidBodyError`` when missing, ``InvalidFieldError`` when not text."""
    found = body.get(name)
    if found is None or found == "":
        raise InvalidBodyError(f"{name} is required", do=f'Send {{"{name}": "…"}}.')
    if not isinstance(found, str):
        raise InvalidFieldError(f"{name} must be a string", do=f'Send {{"{name}": "…"}}.')
    return found


def switch_field(body: dict[str, Any], name: str, present: bool) -> bool:
    """A switch that may be left out to flip the present state. Raises ``InvalidFieldError``."""
    found = body.get(name)
    if found is None:
        return not present
    if not isinstance(found, bool):
        raise InvalidFieldError(f"{name} must be true or false", do=f'Send {{"{name}": true}}.')
    return found


async def upload(request: web.Request, *, fields: dict[str, str] | None = None) -> tuple[str, bytes]:
    """(file name, content) of the multipart field ``file``; other text fields go into ``fields``."""
    if not request.content_type.startswith("multipart/"):
        raise UnsupportedMediaTypeError(
            "Send the file as multipart/form-data.", do="The field is called file."
        )
    name, content = "", b""
    found = False
    try:
        reader = await request.multipart()
        async for part in reader:
            if not isinstance(part, BodyPartReader):
                raise InvalidBodyError("Nested multipart is not a file.", do="The field is called file.")
            if part.name == "file":
                found = True
                name, content = part.filename or "", bytes(await part.read(decode=True))
            elif fields is not None and part.name:
                fields[part.name] = await part.text()
    except (ValueError, AssertionError, LookupError, RuntimeError, zlib.error) as error:
        raise InvalidBodyError("The upload cannot be read.", do="Send multipart/form-data.") from error
    if not found:
        raise InvalidBodyError("No file was sent", do="The field is called file.")
    if not name:
        raise InvalidBodyError("The file has no name", do="Send its name along.")
    return name, content
