"""``/models/download``: models that Ollama downloads because the operator said so."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from agents.providers.ollama_download import DownloadState
from rappd.http.app_keys import DAEMON
from rappd.http.bodies import InvalidBodyError, json_object, text_field
from rappd.http.loopback.long_operations import following
from rappd.http.loopback.security import operator_only

routes = web.RouteTableDef()


@routes.post("/models/download")
@operator_only
async def download(request: web.Request) -> web.StreamResponse:
    """Lets Ollama download a `model`; for callers that accept events, with its progress. `server` names one found here."""
    body = await json_object(request)
    model, server = text_field(body, "model"), body.get("server", "")
    if not isinstance(server, str):
        raise InvalidBodyError("server must be a string", do='Send {"model": "…"}.')
    begun = await request.app[DAEMON].model_downloads.begin(model, server)
    assert begun.turn is not None

    def shown(event: bytes) -> dict[str, Any]:
        told = orjson.loads(event)
        state = DownloadState(told["phase"], told["done"], told["whole"])
        return {"type": "progress", **begun.shown(state)}

    return await following(request, begun.turn, shown=shown)
