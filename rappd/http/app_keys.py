"""What doors are handed: the house they open into."""

from __future__ import annotations

from aiohttp import web

from rappd.daemon.app import Daemon

DAEMON = web.AppKey("house", Daemon)
