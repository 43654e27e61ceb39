"""What this door's routes are handed."""

from __future__ import annotations

from aiohttp import web

from rappd.daemon.rate_limit import RateLimit
from rappd.federation.service import FederationService
from rappd.http.federation.admission import ConnectionAdmission

FEDERATION = web.AppKey("machines", FederationService)
ENTRANCE = web.AppKey("entrance", ConnectionAdmission)
HELLO_LIMIT = web.AppKey("hello_limit", RateLimit)
"""How often strangers at one address may say HELLO."""
SIGNED_LIMIT = web.AppKey("signed_limit", RateLimit)
"""How often they may show something else, for it takes time to verify."""
