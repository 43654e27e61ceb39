"""A model server in a process of its own, which can be killed and started again at the same port."""

from __future__ import annotations

import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from fixtures.free_ports import free_port

from tests.models.packages import Packages

HERE = Path(__file__).parent
_START_SECONDS = 240


class RealServer:
    """``kind`` is "llama.cpp", or "llama.cpp for Python" with ``--chat_format chatml-function-calling``."""

    def __init__(
        self, packages: Packages, folder: Path, *, context: int = 2048, kind: str = "llama.cpp"
    ) -> None:
        self.port = free_port()
        self._log = folder / f"server-{self.port}.log"
        model = str(packages.model())
        if kind == "llama.cpp":
            packages.server()
            program = [str(HERE / "serve_llama_cpp.py"), str(self.port), model, str(context)]
        else:
            packages.python_server()
            program = ["-m", "llama_cpp.server", "--model", model, "--model_alias", "smollm2-135m", "--n_threads", "1",
                       "--host", "127.0.0.1", "--port", str(self.port), "--n_ctx", str(context),
                       "--chat_format", "chatml-function-calling"]  # fmt: skip
        self._command = [str(packages.python), *program]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> RealServer:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + _START_SECONDS
        while not self._lists():
            if self._process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"the server did not start:\n{self._log.read_text()[-2000:]}")
            time.sleep(0.2)
        return self

    def kill(self) -> None:
        """Ends it at once, whatever it is doing."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(20)

    def _lists(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/models", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
