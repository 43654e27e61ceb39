"""``/eggs``: packing, looking, planning, hatching and taking back, for the operator."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from envelopes.events import Emit
from rappd.daemon.app import Daemon
from rappd.daemon.request_signatures import Signature
from rappd.errors import NotFoundError
from rappd.http.app_keys import DAEMON
from rappd.http.loopback import long_operations
from rappd.http.loopback.long_operations import answering, progress_to
from rappd.http.loopback.security import operator_only
from rappd.http.loopback.signed_requests import OPERATOR_KEY, streams_body
from rappd.http.request_body import InvalidBodyError, json_object, text_field
from rappd.http.responses import ok
from rappd.operations.daemon_eggs import whole_path
from rappd.operations.egg_packing import PackRequest
from rappd.operations.packed_eggs import packed_eggs
from rappd.operations.uploaded_eggs import new_file
from twins.installer.errors import from_disk
from twins.work_progress import Cancellation
from twins.workspace.workspace import TwinLayout

routes = web.RouteTableDef()

MAX_BYTES = 8 << 30
_ID = re.compile(r"[0-9a-f]{64}")
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


@routes.post("/eggs/plan")
@operator_only
async def plan(request: web.Request) -> web.Response:
    """The plan for hatching an egg (`id`, or `path` on this machine), with the given `overwrite`.

    A file given by its path is copied first; the answer's `id` is the copy that was planned.
    """
    body = await json_object(request)
    daemon = request.app[DAEMON]
    return ok(await daemon.eggs.plan(_egg(daemon, body), _overwrite(body)))


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
    path = _egg(daemon, body)
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


@routes.get("/eggs/laid")
@operator_only
async def packed_here(request: web.Request) -> web.Response:
    """Eggs that were packed here and lie on this machine, the latest first; `file` is a name after what is inside."""
    places = TwinLayout(request.app[DAEMON].home.root)
    return ok({"eggs": await asyncio.to_thread(packed_eggs, places)})


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


@routes.post("/eggs/diff")
@operator_only
async def diff(request: web.Request) -> web.Response:
    """The differences between two eggs: `before` and `after`, each `{id}` or `{path}`."""
    body = await json_object(request)
    daemon = request.app[DAEMON]
    before, after = body.get("before"), body.get("after")
    if not isinstance(before, dict) or not isinstance(after, dict):
        raise InvalidBodyError(
            "before and after are required", do='Send {"before": {"id": …}, "after": {"id": …}}.'
        )
    return ok(await asyncio.to_thread(daemon.eggs.verbs.diff, _egg(daemon, before), _egg(daemon, after)))


@routes.get("/eggs/hatchings")
@operator_only
async def hatchings(request: web.Request) -> web.Response:
    """Every hatching that has a receipt, the latest first."""
    return ok(await asyncio.to_thread(request.app[DAEMON].eggs.verbs.receipts))


@routes.post("/eggs/rollback")
@operator_only
async def rollback(request: web.Request) -> web.Response:
    """Undoes a hatching by its `receipt`; `even_if_changed` puts aside what changed since."""
    body = await json_object(request)
    forced = body.get("even_if_changed") is True
    return ok(await request.app[DAEMON].eggs.rollback(text_field(body, "receipt"), even_if_changed=forced))


@routes.get("/eggs/signers")
@operator_only
async def signers(request: web.Request) -> web.Response:
    """The senders whose eggs run their code without asking, and this machine's own key."""
    return ok(await asyncio.to_thread(request.app[DAEMON].eggs.verbs.list_signers))


@routes.post("/eggs/signers")
@operator_only
async def trust(request: web.Request) -> web.Response:
    """Trusts the key with `fingerprint`, called `name`."""
    body = await json_object(request)
    verbs = request.app[DAEMON].eggs.verbs
    fingerprint, name = text_field(body, "fingerprint"), text_field(body, "name")
    return ok(await asyncio.to_thread(verbs.trust_signer, fingerprint, name))


@routes.delete("/eggs/signers/{fingerprint}")
@operator_only
async def revoke(request: web.Request) -> web.Response:
    """Ends the trust in a key."""
    verbs = request.app[DAEMON].eggs.verbs
    return ok(await asyncio.to_thread(verbs.revoke_signer, request.match_info["fingerprint"]))


@routes.post("/eggs/send")
@operator_only
async def send(request: web.Request) -> web.Response:
    """Sends an egg (`id` or `path`) to a `peer`, sealed for it; there it waits for its owner.

    Is the peer away, it waits in the outbox (`state` `queued`).
    """
    body = await json_object(request)
    daemon = request.app[DAEMON]
    return ok(await daemon.egg_transfer.send(_egg(daemon, body), text_field(body, "peer")))


@routes.get("/eggs/arrived")
@operator_only
async def arrived(request: web.Request) -> web.Response:
    """Eggs that other machines sent, and nobody hatched yet."""
    return ok(await request.app[DAEMON].egg_transfer.arrived())


@routes.delete("/eggs/arrived/{id}")
@operator_only
async def throw_away(request: web.Request) -> web.Response:
    """Throws away an egg that another machine sent."""
    return ok(await request.app[DAEMON].egg_transfer.discard(request.match_info["id"]))


@routes.delete("/eggs/{id}")
@operator_only
async def discard(request: web.Request) -> web.Response:
    """Throws away an egg that waits here unhatched, unless another tab looks at it."""
    waiting = request.app[DAEMON].eggs.waiting
    path = await asyncio.to_thread(waiting.find, request.match_info["id"])
    await asyncio.to_thread(waiting.let_go, path)
    return ok({"status": "ok"})


def _egg(daemon: Daemon, body: dict[str, Any]) -> Path:
    ident, path = body.get("id"), body.get("path")
    if isinstance(ident, str) and _ID.fullmatch(ident):
        return daemon.eggs.waiting.find(ident)
    if isinstance(path, str) and path:
        return whole_path(path)
    raise InvalidBodyError(
        "Which egg? Its id or whole path is needed.", do='Send {"id": "…"} or {"path": "/…"}.'
    )


def _work(body: dict[str, Any]) -> str:
    given = body.get("work")
    return given[:100] if isinstance(given, str) else ""


def _overwrite(body: dict[str, Any]) -> list[str]:
    given = body.get("overwrite")
    return [str(one) for one in given] if isinstance(given, list) else []


async def _download(request: web.Request) -> web.FileResponse:
    root = (request.app[DAEMON].home.root / "eggs").resolve()
    path = (root / request.match_info["folder"] / request.match_info["name"]).resolve()
    if path.parent.parent != root or path.suffix != ".egg" or not path.is_file():
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
