"""The loopback door as one web application; TCP and the control socket share it."""

from __future__ import annotations

from aiohttp import web

from rappd.doors.keys import HOUSE
from rappd.doors.loopback import (
    agent_files,
    chat,
    health,
    http_tools,
    models,
    modes,
    openapi,
    operator,
    page,
    rapps,
    services,
    sources,
)
from rappd.doors.loopback.guard import guard
from rappd.house import House


def build(house: House) -> web.Application:
    """Every route of the door, behind its guard."""
    app = web.Application(
        middlewares=[guard], client_max_size=max(1, house.settings.number("door.body_mb")) << 20
    )
    app[HOUSE] = house
    tables = [chat, health, agent_files, models, modes, sources, rapps, operator, page, openapi, services]
    if house.settings.on("door.http_tools"):
        tables.append(http_tools)
    for table in tables:
        app.add_routes(table.routes)
    return app
