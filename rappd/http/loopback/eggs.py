"""``/eggs``: packing, looking, planning, hatching and taking back, for the operator."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from envelopes.events import Emit
from rappd.daemon.request_signatures import Signature
from rappd.errors import NotFoundError
from rappd.features.eggs.operations import which_egg
from rappd.http.app_keys import DAEMON
from rappd.http.loopback import long_operations
from rappd.http.loopback.long_operations import answering, progress_to
from rappd.http.loopback.security import operator_only
from rappd.http.loopback.signed_requests import OPERATOR_KEY, streams_body
from rappd.http.request_body import InvalidBodyError, json_object, text_field
from rappd.http.responses import ok
from rappd.operations.daemon_eggs import whole_path
from rappd.operations.egg_packing import PackRequest
from rappd.operations.uploaded_eggs import new_file
from twins.installer.errors import from_disk
from twins.work_progress import Cancellation

routes = web.RouteTableDef()

MAX_BYTES = 8 << 30
_CHUNK = 1 << 20
_LINK_SECONDS = 3600
_LINK_KEY = secrets.token_bytes(32)
"""Links end with the process that gave them."""


@routes.post("/eggs")
@operator_only
@streams_body
async def lay_down(request: web.Request) -> web.StreamResponse:
    """Takes an egg in (the body is the file, `?name=` what it is called) and says what it is and would do.

    `?signature=` is the text of the `.sig` that came with it. It waits, unhatched, under `id`, for a day.
    With `Accept: text/event-stream` it tells how far the check is, once the egg is here.
    """
    daemon = request.app[DAEMON]
    waiting, name = daemon.eggs.waiting, request.query.get("name", "")
    signature = request.query.get("signature", "").encode()
    part = await asyncio.to_thread(waiting.part)
    try:
        digest = await _receive(request, part)
        path = await asyncio.to_thread(waiting.keep, part, digest, name, hold=True)
    finally:
        await asyncio.to_thread(part.unlink, missing_ok=True)

    async def work(emit: Emit) -> dict[str, Any]:
        try:
            await asyncio.to_thread(waiting.keep_signature, path, signature)
            return {"file": name, **await daemon.eggs.look(path, progress_to(emit))}
        except BaseException:
            await asyncio.to_thread(waiting.discard, path)
            raise

    return await answering(request, work)


@routes.post("/eggs/look")
@operator_only
async def look(request: web.Request) -> web.StreamResponse:
    """Looks at an egg on this machine (`path`) as at an uploaded one: `id` of the copy, what it is, and the plan."""
    body, daemon = await json_object(request), request.app[DAEMON]
    path = whole_path(text_field(body, "path"))

    async def work(emit: Emit) -> dict[str, Any]:
        return {"file": path.name, **await daemon.eggs.look_at_copy(path, progress_to(emit))}

    return await answering(request, work)


@routes.post("/eggs/hatch")
@operator_only
async def hatch(request: web.Request) -> web.StreamResponse:
    """Hatches an egg (`id` or `path`). `approved` is the digest of the plan that was said yes to.

    A plan that is another one by now is refused with `plan_changed`. With `Accept: text/event-stream` it tells
    how far each phase is before it answers. `work` is an id of your own, for `/eggs/cancel`.
    """
    body = await json_object(request)
    daemon = request.app[DAEMON]
    path = which_egg(daemon.eggs, body.get("id"), body.get("path"))
    source = str(body.get("source") or "")[:200]
    approved = str(body.get("approved") or "")

    cancellation = Cancellation()

    async def work(emit: Emit) -> dict[str, Any]:
        return await daemon.eggs.hatch(
            path,
            overwrite=_overwrite(body),
            approved=approved,
            source=source,
            progress=progress_to(emit),
            cancellation=cancellation,
        )

    return await answering(request, work, id=_work(body), stop=cancellation.cancel)


@routes.post("/eggs/cancel")
@operator_only
async def cancel(request: web.Request) -> web.Response:
    """Cancels the hatching or packing that was begun with the id `work`, and answers once it has ended.

    Nothing is written then. Once files are moved into place it is refused with `too_late`, and goes on.
    """
    return await long_operations.cancel(request, text_field(await json_object(request), "work"))


@routes.post("/eggs/pack")
@operator_only
async def pack(request: web.Request) -> web.StreamResponse:
    """Packs a `twin`, or the brainstem; `form`, `item`, `into`, `exclude_memory`, `allow` as `rappd egg pack`.

    `to` seals it for that peer, and then there is no link. `work` is an id of your own, for `/eggs/cancel`.

    `link` is where the page that packed it lets the browser fetch the egg, for an hour: what is dragged out
    of the page is asked for without headers, so the page signs that path, and puts the signature into it, once for
    each drag. With `Accept: text/event-stream` it tells how far each phase is before it answers.
    """
    body = await json_object(request)
    text = {key: value for key, value in body.items() if isinstance(value, str)}
    allow = body.get("allow")
    order = PackRequest(
        twin=text.get("twin", ""),
        form=text.get("form", ""),
        item=text.get("item", ""),
        into=text.get("into", ""),
        exclude_memory=body.get("exclude_memory") is True,
        allow=frozenset(str(one) for one in allow) if isinstance(allow, list) else frozenset(),
        overwrite=body.get("overwrite") is True,
    )
    if text.get("to"):
        return ok(await request.app[DAEMON].egg_transfer.pack_for(order, text["to"]))

    cancellation = Cancellation()

    async def work(emit: Emit) -> dict[str, Any]:
        done = await request.app[DAEMON].eggs.pack(order, cancellation.watching(progress_to(emit)))
        public = request.get(OPERATOR_KEY)
        if order.into or public is None:
            return done
        return {**done, "link": _link(Path(done["packed"]["path"]), public)}

    return await answering(request, work, id=_work(body), stop=cancellation.cancel)


@routes.get("/eggs/laid/{folder}/{name}")
@operator_only
async def laid(request: web.Request) -> web.StreamResponse:
    """An egg that was packed here, as a download."""
    return await _download(request)


@routes.get("/eggs/out/{ticket}/{signed}/{folder}/{name}")
async def dragged_out(request: web.Request) -> web.StreamResponse:
    """The same by the link that packing gave, signed by the page that it was given to; good once."""
    until, _, mac = request.match_info["ticket"].partition("-")
    public, _, signature = request.match_info["signed"].partition(".")
    place = f"{request.match_info['folder']}/{request.match_info['name']}"
    if (
        not hmac.compare_digest(mac.encode(), _ticket(place, until, public).encode())
        or int(until) < time.time()
    ):
        raise NotFoundError("This link is too old.", do="Pack it again.")
    request.app[DAEMON].request_signatures.check(
        Signature.parse(signature),
        public=public,
        method=request.method,
        host=request.headers["Host"],
        target=request.raw_path.replace(f"/{request.match_info['signed']}/", "/", 1),
        window=_LINK_SECONDS * 1000,
    )
    return await _download(request)


def _work(body: dict[str, Any]) -> str:
    given = body.get("work")
    return given[:100] if isinstance(given, str) else ""


def _overwrite(body: dict[str, Any]) -> list[str]:
    given = body.get("overwrite")
    return [str(one) for one in given] if isinstance(given, list) else []


async def _download(request: web.Request) -> web.FileResponse:
    root = (request.app[DAEMON].home.root / "eggs").resolve()
    try:
        path = (root / request.match_info["folder"] / request.match_info["name"]).resolve()
        found = path.parent.parent == root and path.suffix == ".egg" and path.is_file()
    except (OSError, ValueError):  # a name too long, a zero byte
        found = False
    if not found:
        raise NotFoundError("There is no such egg.", do="rappd egg pack")
    return web.FileResponse(
        path,
        headers={
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f'attachment; filename="{path.name}"',
        },
    )


def _link(path: Path, public: str) -> str:
    place, until = f"{path.parent.name}/{path.name}", str(int(time.time()) + _LINK_SECONDS)
    return f"/eggs/out/{until}-{_ticket(place, until, public)}/{quote(place)}"


def _ticket(place: str, until: str, public: str) -> str:
    """Ties the path of an egg to the key of the session that packed it: another key signs nothing for it."""
    return hmac.new(_LINK_KEY, f"{until} {public} {place}".encode("utf-8", "replace"), "sha256").hexdigest()


async def _receive(request: web.Request, part: Path) -> str:
    """Streams the body into a new file and returns its SHA-256."""
    digest, size = hashlib.sha256(), 0
    try:
        with await asyncio.to_thread(new_file, part) as file:
            async for chunk in request.content.iter_chunked(_CHUNK):
                size += len(chunk)
                if size > MAX_BYTES:
                    raise InvalidBodyError(
                        f"The egg has more than {MAX_BYTES >> 30} GB.", do="Hatch it with rappd egg hatch."
                    )
                await asyncio.to_thread(file.write, chunk)
                digest.update(chunk)
    except ConnectionError as error:
        raise InvalidBodyError("The upload broke off; nothing was kept.", do="Send it again.") from error
    except OSError as error:
        raise from_disk(error, "The egg", needs=request.content_length or 0) from error
    if not size:
        raise InvalidBodyError("No file was sent", do="The body is the egg.")
    return digest.hexdigest()
