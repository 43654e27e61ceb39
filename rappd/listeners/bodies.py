"""Bodies of requests and answers of all listeners: JSON, fields and uploads; one shape for every error."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from aiohttp import BodyPartReader, MultipartReader, StreamReader, web
from aiohttp.http_exceptions import HttpProcessingError

from envelopes.codecs import emergence, wire
from envelopes.codecs.privileged import refuse_privileged, refuse_privileged_text
from envelopes.codecs.strict_json import MAX_RECORDED_DEPTH, not_utf8, too_deep
from envelopes.envelope import Envelope
from envelopes.errors import ReportableError
from rappd.errors import RappdError

BODY_SECONDS = 30.0


class InvalidBodyError(ReportableError):
    """A body that ended early, is framed wrongly, or is not what the route takes."""

    code = "bad_body"
    status = 400
    exit_code = 2


class UnsupportedMediaTypeError(ReportableError):
    """A content type that the route does not take."""

    code = "media_type"
    status = 415
    exit_code = 2


class BodyTooLargeError(ReportableError):
    """More than this caller may send at once."""

    code = "too_large"
    status = 413


class HttpRefusalError(ReportableError):
    """A request that no route takes, or that failed inside: the status tells which."""

    def __init__(self, status: int, message: str, code: str, *, do: str = "") -> None:
        super().__init__(message, do=do)
        self.status, self.code = status, code


SHAPES = web.AppKey("shapes", Mapping[str, Callable[[ReportableError], web.Response]])
"""By the beginnings of paths, the answer that a refusal becomes there: protocols of others have shapes of their own."""


def in_shape(request: web.Request, found: ReportableError) -> web.Response:
    """A refusal in the shape of the path that was asked; in the one error shape where it has none."""
    for path, shape in request.app.get(SHAPES, {}).items():
        if request.path == path or request.path.startswith(f"{path}/"):
            return shape(found)
    return problem(found)


async def whole_body(request: web.Request) -> bytes:
    """The body of a caller on this machine, unpacked. Raises ``BodyTooLargeError``, ``InvalidBodyError``."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise BodyTooLargeError(
            "The request is too large.", do="Send less, or raise http.body_mb."
        ) from error
    except (HttpProcessingError, web.RequestPayloadError) as error:
        raise InvalidBodyError("The request's body cannot be read.", do="Send it whole, as it is.") from error


async def json_object(request: web.Request) -> dict[str, Any]:
    """The body as a JSON object; an empty body is an empty one. Raises ``InvalidBodyError``."""
    raw = await request.read()
    return object_in(raw, listener="loopback") if raw.strip() else {}


def object_in(raw: bytes, *, listener: str) -> dict[str, Any]:
    """The JSON object that a body of ``listener`` is. Raises ``InvalidBodyError`` and ``PrivilegedMessageError``."""
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        refuse_privileged_text(raw, listener=listener)
        raise InvalidBodyError(not_utf8(raw) or "Request body must be a JSON object", do="Send {…}.")
    check_depth(found)
    refuse_privileged(found, listener=listener, octets=raw)
    return found


def check_depth(value: object) -> None:
    """Raises ``InvalidBodyError`` for what is nested deeper than a record can hold."""
    if too_deep(value):
        raise InvalidBodyError(
            f"That is nested more than {MAX_RECORDED_DEPTH} deep.", do="Send something flatter."
        )


def text_field(body: dict[str, Any], name: str) -> str:
    """A required, non-empty text. Raises ``InvalidBodyError`` when missing, ``unfit`` when not text."""
    found = body.get(name)
    if found is None or found == "":
        raise InvalidBodyError(f"{name} is required", do=f'Send {{"{name}": "…"}}.')
    if not isinstance(found, str):
        raise RappdError(f"{name} must be a string", do=f'Send {{"{name}": "…"}}.', code="unfit")
    return found


def switch_field(body: dict[str, Any], name: str, present: bool) -> bool:
    """A switch that may be left out to flip the present state. Raises ``unfit``."""
    found = body.get(name)
    if found is None:
        return not present
    if not isinstance(found, bool):
        raise RappdError(f"{name} must be true or false", do=f'Send {{"{name}": true}}.', code="unfit")
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
        raw = await request.read()  # all of it: what a signature covers is what is read here
        content_of = StreamReader(request.protocol, limit=len(raw) + 1)
        content_of.feed_data(raw)
        content_of.feed_eof()
        async for part in MultipartReader(request.headers, content_of):
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


async def body_of(request: web.Request, most: int) -> bytes:
    """The body of a remote caller as ``read_body`` reads it, of JSON."""
    if not wire.is_content_type(request.headers.get("Content-Type")):
        raise UnsupportedMediaTypeError(
            "The body is not application/json in UTF-8.", do=f"Send {emergence.CONTENT_TYPE}."
        )
    return await read_body(request, most)


async def read_body(request: web.Request, most: int) -> bytes:
    """Reads the body of a remote caller: at most ``most`` bytes, within ``BODY_SECONDS``. Raises ``ReportableError``."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise UnsupportedMediaTypeError("The body is packed.", do="Send it as it is.")
    if (request.content_length or 0) > most:
        raise _too_large(most)
    found = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.content.iter_any():
                found += piece
                if len(found) > most:
                    raise _too_large(most)
    except TimeoutError as error:
        raise RappdError(
            "The body did not come to its end.", do="Send it at once.", code="too_slow"
        ) from error
    except (web.RequestPayloadError, ConnectionError) as error:
        raise InvalidBodyError("The request's body cannot be read.", do="Send it again.") from error
    return bytes(found)


_LOOKED_AT = 1 << 16
_LOOK_SECONDS = 1.0


async def refused(request: web.Request, found: ReportableError, *, listener: str) -> web.Response:
    """A refusal in the shape of its path. A privileged message in a body that nobody read so far is a security event."""
    if not request.content.at_eof():
        with contextlib.suppress(ReportableError, TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                refuse_privileged_body(await read_body(request, _LOOKED_AT), listener=listener)
    return in_shape(request, found)


def refuse_privileged_body(raw: bytes, *, listener: str) -> None:
    """Raises ``PrivilegedMessageError`` for a privileged message, in JSON or in XML."""
    refuse_privileged_text(raw, listener=listener)
    with contextlib.suppress(orjson.JSONDecodeError):
        refuse_privileged(orjson.loads(raw), listener=listener)


def _too_large(most: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"More than {most} bytes cannot be sent at once.", do="Send less at once.")


JSON = "application/json"


def ok(body: Mapping[str, Any], status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.Response(body=orjson.dumps(body, default=str), status=status, content_type=JSON)


def file_answer(
    path: Path, content: bytes | None = None, kind: str = "application/octet-stream"
) -> web.StreamResponse:
    """A file, or ``content`` in its place, to be saved under its name."""
    headers = {"Content-Type": kind, "Content-Disposition": f'attachment; filename="{path.name}"'}
    if content is not None:
        return web.Response(body=content, headers=headers)
    return web.FileResponse(path, headers=headers)


def problem(found: ReportableError) -> web.Response:
    """A refusal in the one error shape."""
    return ok(found.as_json(), found.status)


def refusal(envelope: Envelope) -> web.Response:
    """An ERROR envelope as an HTTP response: its code is the status."""
    data = envelope.data
    return plain(
        int(data.get("code", 500)), data.get("msg", ""), data.get("reason", "failed"), data.get("do", "")
    )


def plain(status: int, error: str, code: str, do: str = "") -> web.Response:
    """A refusal that no exception stands for (unknown path, wrong method)."""
    return ok({"error": error, "do": do, "code": code}, status)
