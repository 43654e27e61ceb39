"""Talking to the running daemon through its control socket."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

from envelopes.problem import Problem
from rappd.errors import NotRunning
from rappd.home import Home

_EXIT = {400: 2, 403: 5, 404: 4, 409: 9, 422: 2}


class Answered(Problem):
    """The daemon refused; it said why."""

    def __init__(self, body: dict[str, Any], status: int) -> None:
        super().__init__(str(body.get("error", f"rappd answered {status}.")), do=str(body.get("do", "")))
        self._body = body
        self._status = status

    @property
    def code(self) -> str:  # type: ignore[override]  # the daemon's own slug
        return str(self._body.get("code", "failed"))

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # from the daemon's status
        if self.code in ("bad_file", "unfit_egg", "not_operator"):
            return 5
        return _EXIT.get(self._status, 1)


class Daemon:
    """One conversation with the daemon of ``home``. Raises ``NotRunning`` when none answers."""

    def __init__(self, home: Home, *, timeout: float = 60.0) -> None:
        self._home = home
        self._timeout = timeout

    def running(self) -> bool:
        """Whether somebody answers."""
        try:
            self._connect().close()
        except NotRunning:
            return False
        return True

    def get(self, path: str) -> dict[str, Any]:
        """GET as JSON."""
        return self._ask("GET", path)

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """POST as JSON."""
        return self._ask("POST", path, json.dumps(body or {}).encode(), "application/json")

    def delete(self, path: str) -> dict[str, Any]:
        """DELETE as JSON."""
        return self._ask("DELETE", path)

    def upload(self, path: str, name: str, content: bytes) -> dict[str, Any]:
        """Sends one file as the multipart field ``file``."""
        edge = "----rappd-7f0b6a1e5c"
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = head.encode() + content + f"\r\n--{edge}--\r\n".encode()
        return self._ask("POST", path, body, f"multipart/form-data; boundary={edge}")

    def events(self, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Server-sent events as they come."""
        connection = self._connect()
        connection.request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status >= 400:
            raise Answered(_parsed(response.read()), response.status)
        for line in response:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
        connection.close()

    def _ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        connection = self._connect()
        headers = {"Content-Type": kind} if body is not None else {}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        found = _parsed(response.read())
        connection.close()
        if response.status >= 400:
            raise Answered(found, response.status)
        return found

    def _connect(self) -> http.client.HTTPConnection:
        connection = _Unix(str(self._home.socket), self._timeout)
        try:
            connection.connect()
        except OSError as error:
            raise NotRunning("rappd isn't running here.", do="rappd start") from error
        return connection


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        return {"error": raw.decode("utf-8", "replace")[:300], "do": "", "code": "failed"}
    return found if isinstance(found, dict) else {"value": found}
