"""Reading what other machines send: JSON in UTF-8, not too much of it, and not too slowly."""

from __future__ import annotations

import asyncio

from aiohttp import web

from envelopes.codecs import emergence, wire
from envelopes.errors import EnvelopeError

BODY_SECONDS = 30.0


class UnsupportedMediaTypeError(EnvelopeError):
    """A body that is not announced as plain JSON in UTF-8."""

    code = "media_type"
    status = 415


class BodyTooLargeError(EnvelopeError):
    """More than this caller may send at once."""

    code = "too_large"
    status = 413


class BodyTimeoutError(EnvelopeError):
    """A body that does not come to its end."""

    code = "too_slow"
    status = 408


class TruncatedBodyError(EnvelopeError):
    """A body that ended early, is framed wrongly, or is not JSON."""

    code = "bad_body"


async def body_of(request: web.Request, most: int) -> bytes:
    """The whole body. Raises ``EnvelopeError``."""
    if not wire.is_content_type(request.headers.get("Content-Type")):
        raise UnsupportedMediaTypeError(
            "The body is not application/json in UTF-8.", do=f"Send {emergence.CONTENT_TYPE}."
        )
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
        raise BodyTimeoutError("The body did not come to its end.", do="Send it at once.") from error
    except (web.RequestPayloadError, ConnectionError) as error:
        raise TruncatedBodyError("The request's body cannot be read.", do="Send it again.") from error
    return bytes(found)


def _too_large(most: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"More than {most} bytes cannot be sent at once.", do="Send less at once.")
