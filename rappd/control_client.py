"""Talking to the running daemon through its control socket."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from envelopes.errors import ReportableError
from rappd.daemon.home import Home
from rappd.errors import ConflictError, NotReadyError, NotRunningError, RappdError
from rappd.features.operation_paths import OPERATION_PATHS

_EXIT = {400: 2, 401: 5, 403: 5, 404: 4, 409: 9, 422: 2, 429: 8, 504: 8}
_UNFIT = (
    "bad_file", "bad_egg", "hostile_egg", "unknown_egg", "secret_found", "bad_cartridge", "bad_image",
    "not_a_snapshot", "unsafe_file", "path_refused",
    "bad_rappid", "bad_rapplication", "bad_sealing_key", "not_operator", "bad_peers_file", "bad_introduction", "bad_pairing",
    "pairing_stopped", "bad_estate", "bad_neighborhood", "bad_invite", "session_too_large",
)  # fmt: skip
_LATER = ("away", "not_now", "pairing_busy", "invite_expired")
_UNSAID = ("needs_yes", "unconfirmed")
_UNKNOWN_PATH_DO = "See /openapi.json"
_PIECE = 1 << 16
_BUSY_PAUSE = 0.02
_AGAIN = (0.05, 0.2, 0.5)
_IN_PATH = re.compile(r"\{(\w+)(?::[^}]*)?\}")
_ESCAPED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A", "\0": "%00"})


class ResponseError(ReportableError):
    """The daemon refused; it said why."""

    def __init__(self, body: dict[str, Any], status: int) -> None:
        super().__init__(str(body.get("error", f"rappd answered {status}.")), do=str(body.get("do", "")))
        self._body = body
        self._status = status

    def as_json(self) -> dict[str, Any]:
        """The daemon's answer, whole."""
        return {**self._body, **super().as_json()}

    @property
    def code(self) -> str:  # type: ignore[override]  # the daemon's own slug
        return str(self._body.get("code", "failed"))

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # from the daemon's status
        if self.code in _UNFIT:
            return 5
        if self.code in _LATER:
            return 8
        if self.code == "cancelled":
            return 130
        return 6 if self.code in _UNSAID else _EXIT.get(self._status, 1)


class ConnectionLostError(RappdError):
    """The connection ended before the answer came."""

    code = "gone"

    def __init__(self) -> None:
        super().__init__("rappd ended before it answered.", do="rappd status, then ask again")


class ControlClient:
    """One conversation with the daemon of ``home``.

    Everything raises ``NotRunningError`` when none answers, ``ResponseError`` when it refuses, ``ConnectionLostError`` when it
    ends meanwhile, and ``NotReadyError`` when it stays silent for ``timeout`` seconds.
    """

    def __init__(self, home: Home, *, timeout: float = 60.0) -> None:
        self._home = home
        self._timeout = timeout

    def running(self) -> bool:
        """True when a daemon listens."""
        try:
            self._connect().close()
        except NotRunningError:
            return False
        except NotReadyError:
            return True
        return True

    def do(self, name: str, /, **given: Any) -> dict[str, Any]:
        """Asks for an operation by its name, as ``docs/routes.md`` has it; an argument that is None is left out."""
        method, path, rest = _filled(name, given)
        if method in ("POST", "PUT"):
            return self._ask(method, path, json.dumps(rest).encode())
        asked = urlencode(
            {key: int(value) if value in (True, False) else value for key, value in rest.items()}
        )
        return self._ask(method, f"{path}?{asked}" if asked else path)

    def follow(
        self, name: str, on_event: Callable[[dict[str, Any]], object], /, **given: Any
    ) -> dict[str, Any]:
        """The same for an operation that takes a while; ``on_event`` gets the events that come before its answer."""
        _, path, rest = _filled(name, given)
        for event in self.events(path, rest, accept="text/event-stream"):
            kind = event.pop("type")
            if kind == "done":
                return event
            if kind == "error":
                raise ResponseError(event, event.pop("status"))
            on_event(event)
        raise ConnectionLostError

    def raw(self, name: str, content: bytes) -> bytes:
        """The answer to an operation that takes a small file, as it came."""
        method, path, _ = _filled(name, {})
        with self._asking(method, path, content, "application/octet-stream") as response:
            return response.read()

    def get(self, path: str) -> dict[str, Any]:
        """GET as JSON."""
        return self._ask("GET", path)

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """POST as JSON."""
        return self._ask("POST", path, json.dumps(body or {}).encode(), "application/json")

    def upload(self, path: str, name: str, content: bytes) -> dict[str, Any]:
        """Sends one file as the multipart field ``file``."""
        edge = "----rappd-7f0b6a1e5c"
        named = name.translate(_ESCAPED).encode("utf-8", "replace")
        head = b'--%s\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n'
        body = head % (edge.encode(), named) + content + f"\r\n--{edge}--\r\n".encode()
        return self._ask("POST", path, body, f"multipart/form-data; boundary={edge}")

    def events(
        self, path: str, body: dict[str, Any], *, accept: str = ""
    ) -> Generator[dict[str, Any], None, None]:
        """Server-sent events as they come; ``ConnectionLostError`` when the stream breaks off."""
        with self._asking("POST", path, json.dumps(body).encode(), accept=accept) as response:
            begun = b""
            while piece := response.read1(_PIECE):  # its lines end quietly where a stream breaks off
                *lines, begun = (begun + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: "):
                        yield json.loads(line[6:])

    def _ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        # A question may be asked of the next daemon as well; of anything else nobody knows whether it was done.
        # One that is dying takes callers in for a moment, and lets go of them.
        for pause in _AGAIN if method == "GET" else ():
            with suppress(ConnectionLostError):
                return self._answer(method, path, body, kind)
            time.sleep(pause)
        return self._answer(method, path, body, kind)

    def _answer(self, method: str, path: str, body: bytes | None, kind: str) -> dict[str, Any]:
        with self._asking(method, path, body, kind) as response:
            return _parsed(response.read())

    @contextmanager
    def _asking(
        self, method: str, path: str, body: bytes | None, kind: str = "application/json", accept: str = ""
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {
            **({"Content-Type": kind} if body is not None else {}),
            **({"Accept": accept} if accept else {}),
        }
        connection = self._connect()
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused midway: the answer says why
                connection.request(method, path, body, headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise _refusal(_parsed(response.read()), response.status)
            yield response
        except TimeoutError as error:
            raise NotReadyError(
                f"rappd did not answer within {self._timeout:g} s.", do="rappd logs"
            ) from error
        except (ConnectionError, http.client.HTTPException) as error:
            raise ConnectionLostError from error
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        return _UnixConnection(self._dial(self._home.socket), self._timeout)

    def _dial(self, path: Path) -> socket.socket:
        until = time.monotonic() + self._timeout
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.settimeout(self._timeout)
                connection.connect(str(path))
            except BlockingIOError as error:  # it has more callers than it has taken in yet
                connection.close()
                if time.monotonic() > until:
                    raise NotReadyError(
                        f"rappd did not answer within {self._timeout:g} s.", do="rappd logs"
                    ) from error
                time.sleep(_BUSY_PAUSE)
            except OSError as error:
                connection.close()
                raise NotRunningError("rappd isn't running here.", do="rappd start") from error
            except BaseException:
                connection.close()
                raise
            else:
                return connection


class _UnixConnection(http.client.HTTPConnection):
    auto_open = 0

    def __init__(self, connected: socket.socket, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self.sock = connected


def _filled(name: str, given: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Method and path of an operation, and the arguments that do not stand in the path."""
    method, path = OPERATION_PATHS[name]
    rest = {key: value for key, value in given.items() if value is not None}
    if path.startswith("@"):  # of the brainstem, or of a twin
        path = f"{'/twins/{twin}' if rest.get('twin') else ''}{path[1:]}"
        rest = {key: value for key, value in rest.items() if key != "twin" or value}

    def part(key: re.Match[str]) -> str:
        return quote(str(rest.pop(key[1])), safe="", errors="replace") or "%20"

    return method, _IN_PATH.sub(part, path), rest


def _refusal(body: dict[str, Any], status: int) -> ReportableError:
    """The daemon's refusal; where it knows no such path, it began before this command was updated, or after."""
    if status in (404, 405) and body.get("do") == _UNKNOWN_PATH_DO:
        return ConflictError(
            "The rappd that runs here does not know this; it is of another version.",
            do="rappd stop, then rappd start",
        )
    return ResponseError(body, status)


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        return {"error": raw.decode("utf-8", "replace")[:300], "do": "", "code": "failed"}
    return found if isinstance(found, dict) else {"value": found}
