"""What this door's routes are handed."""

from __future__ import annotations

from aiohttp import web

from rappd.limits import RateLimit
from rappd.machines.machines import Machines

MACHINES = web.AppKey("machines", Machines)
HELLO_LIMIT = web.AppKey("hello_limit", RateLimit)
"""How often strangers at one address may say HELLO."""
