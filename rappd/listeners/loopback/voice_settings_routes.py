"""``/voice*`` and ``/twin*``: the answer's extra slots, and the voice settings file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from agents.storage.safe_fs import in_file_pool
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import InvalidBodyError, json_object, ok, switch_field, upload
from rappd.listeners.loopback.request_guard import is_operator, tenant_of
from rappd.listeners.loopback.request_source import source_of
from twins.workspace import voice_file
from twins.workspace.voice_file import WrongPasswordError

routes = web.RouteTableDef()


def _add_switch(name: str, what: str) -> None:
    """Adds the routes of a slot of answers: ``/name`` and ``/name/toggle`` tell and switch it."""

    def shown(request: web.Request) -> web.Response:
        return ok({f"{name}_mode": getattr(tenant_of(request).settings, name)})

    async def show(request: web.Request) -> web.Response:
        return shown(request)

    async def switch(request: web.Request) -> web.Response:
        present = getattr(tenant_of(request).settings, name)
        on = switch_field(await json_object(request), "enabled", present)
        await request.app[DAEMON].live_settings.set(f"{name}_mode", "on" if on else "off")
        return shown(request)

    show.__doc__ = f"Tells if answers carry {what}."
    switch.__doc__ = f"Switches {what}; without `enabled` it flips."
    for path in (f"/{name}", f"/{name}/toggle"):
        routes.get(path)(show)
        routes.post(path)(switch)


_add_switch("voice", "the spoken form")
_add_switch("twin", "the twin's comment")


@routes.get("/voice/config")
async def voice_config(request: web.Request) -> web.Response:
    """The voice settings; `password` opens the file, {} when there is none."""
    password = request.query.get("password") or _kept_password(request)
    async with _few_guesses(request):
        return ok(await in_file_pool(voice_file.read, tenant_of(request).workspace.root, password))


@routes.post("/voice/config")
async def set_voice_config(request: web.Request) -> web.Response:
    """Writes the voice settings; `_password` encrypts the file."""
    daemon = request.app[DAEMON]
    body = await json_object(request)
    password = body.pop("_password", "") or daemon.settings.text("voice_zip_password")
    if not isinstance(password, str):
        raise InvalidBodyError("_password must be a string", do="Send the password as text.")
    await in_file_pool(voice_file.write, tenant_of(request).workspace.root, password, body)
    return ok({"status": "ok", "message": "The voice settings are kept."})


@routes.post("/voice/import")
async def import_voice(request: web.Request) -> web.Response:
    """Takes in a voice.zip (multipart `file` and `password`)."""
    daemon = request.app[DAEMON]
    fields: dict[str, str] = {}
    _, content = await upload(request, fields=fields)
    password = fields.get("password") or daemon.settings.text("voice_zip_password")
    root = tenant_of(request).workspace.root
    async with _few_guesses(request):
        return ok(await in_file_pool(voice_file.take, root, password, content))


@asynccontextmanager
async def _few_guesses(request: web.Request) -> AsyncIterator[None]:
    """Counts wrong passwords; a source with too many of them is refused before it tries another.

    A person's password may be short, so the limit comes first here. The operator's session has none.
    """
    if is_operator(request):
        yield
        return
    limit, source = request.app[DAEMON].failed_authentication, f"voice {await source_of(request)}"
    limit.take(source)
    try:
        yield
    except WrongPasswordError:
        raise
    except BaseException:
        limit.give_back(source)
        raise
    limit.give_back(source)


def _kept_password(request: web.Request) -> str:
    """The configured password opens the file for the operator alone; others bring it themselves."""
    return request.app[DAEMON].settings.text("voice_zip_password") if is_operator(request) else ""
