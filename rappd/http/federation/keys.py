"""Application keys of the federation listener's routes."""

from __future__ import annotations

from aiohttp import web

from rappd.daemon.rate_limit import RateLimit
from rappd.federation.service import FederationService
from rappd.http.federation.admission import ConnectionAdmission

FEDERATION = web.AppKey("machines", FederationService)
ENTRANCE = web.AppKey("entrance", ConnectionAdmission)
HELLO_LIMIT = web.AppKey("hello_limit", RateLimit)
"""Limits HELLOs of unauthenticated callers, for each address."""
SIGNED_LIMIT = web.AppKey("signed_limit", RateLimit)
"""Limits other requests of unauthenticated callers, which take time to verify."""
