"""HTTP answers: JSON, and one shape for every error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from envelopes.envelope import Envelope
from envelopes.errors import ReportableError

JSON = "application/json"


def ok(body: dict[str, Any], status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.Response(body=orjson.dumps(body, default=str), status=status, content_type=JSON)


def file_answer(path: Path) -> web.FileResponse:
    """A file, to be saved under its name."""
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f'attachment; filename="{path.name}"',
    }
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
