"""The application key under which routes find the daemon."""

from __future__ import annotations

from aiohttp import web

from rappd.daemon.app import Daemon

DAEMON = web.AppKey("daemon", Daemon)
