"""A real daemon for tests: its own home, its own port, talked to as users talk to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import warm

from rappd.daemon.ports import aside

REPO = Path(__file__).parents[1]

AGENT = '''
from agents.basic_agent import BasicAgent


class {name}Agent(BasicAgent):
    """{description}"""

    def __init__(self):
        self.name = "{name}"
        self.metadata = {{
            "name": self.name,
            "description": "{description}",
            "parameters": {{"type": "object", "properties": {properties}, "required": []}},
        }}
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        {body}
'''


def agent_source(
    name: str, body: str = 'return "done"', description: str = "A test.", properties: str = "{}"
) -> str:
    return AGENT.format(name=name, body=body, description=description, properties=properties)


def free_port() -> int:
    """A port for a daemon that is started in a moment."""
    return aside(1)[0]


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)


class RunningDaemon:
    """One daemon process. ``environment`` is added to a scrubbed one."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.port = free_port()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home.parent),
            "LANG": "C.UTF-8",
            "RAPP_HOME": str(home),
            "PORT": str(self.port),
            "RAPPD_LOCAL_MODELS": "off",
            "RAPPD_PEERS_LISTEN": "off",
            "RAPPD_NEARBY": "off",
            "GH_CONFIG_DIR": str(home.parent / "no-gh"),
            "SSL_CERT_FILE": str(warm.NO_AUTHORITY),
            "SSL_CERT_DIR": str(home.parent / "no-authorities"),
            **environment,
        }
        self.process: warm.Process | subprocess.Popen[bytes] | None = None

    @property
    def agents(self) -> Path:
        return self.home / "brainstem" / "agents"

    @property
    def data(self) -> Path:
        """Where the agents of the brainstem may always write."""
        return self.home / "brainstem" / ".brainstem_data"

    @property
    def log(self) -> str:
        path = self.home / "rappd.log"
        return path.read_text() if path.exists() else ""

    def start(self) -> RunningDaemon:
        self.process = warm.start(["start", "--quiet"], self.environment)
        self.wait_for(self.is_ready, 40, "the daemon to be ready")
        return self

    def is_ready(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            assert self.process.stdout is not None
            raise AssertionError(f"the daemon ended: {self.process.stdout.read().decode()}\n{self.log}")
        try:
            return self.get("/readyz").status == 200
        except OSError:
            return False

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def wait_for(self, condition: Callable[[], Any], seconds: float = 20, what: str = "") -> Any:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = condition()
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"waited {seconds} s for {what or condition}; log:\n{self.log[-3000:]}")

    def request(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        *,
        control: bool = False,
    ) -> Answer:
        raw = json.dumps(body).encode() if isinstance(body, dict) else body
        connection = (
            _Control(str(self.home / "rappd.sock"))
            if control
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        )
        try:
            connection.request(method, path, raw, headers or {})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def stream(self, path: str) -> http.client.HTTPResponse:
        """Answers that come line by line, to the operator."""
        connection = _Control(str(self.home / "rappd.sock"))
        connection.request("GET", path)
        return connection.getresponse()

    def get(self, path: str, **more: Any) -> Answer:
        return self.request("GET", path, **more)

    def post(self, path: str, body: bytes | dict[str, Any] | None = None, **more: Any) -> Answer:
        return self.request("POST", path, body, **more)

    def chat(self, text: str, **fields: Any) -> dict[str, Any]:
        answer = self.post("/chat", {"user_input": text, **fields})
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json()
        return found

    def cli(
        self, *arguments: str | Path, stdin: str = "", timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        return warm.run([str(word) for word in arguments], self.environment, stdin, timeout)

    def drop(self, filename: str, source: str) -> None:
        self.agents.mkdir(parents=True, exist_ok=True)
        (self.agents / filename).write_text(source)

    def agent_names(self) -> list[str]:
        names: list[str] = self.get("/health").json()["agents"]
        return names

    def upload(self, name: str, content: bytes, **more: Any) -> Answer:
        edge = "edge-of-the-test"
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = head.encode() + content + f"\r\n--{edge}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={edge}"}
        return self.request("POST", "/agents/import", body, headers, **more)


def on(port: int, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """A request to a port of 127.0.0.1."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


class _Control(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(self._path)
