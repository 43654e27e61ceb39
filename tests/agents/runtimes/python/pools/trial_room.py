"""A room whose operations are the ways in which agent code behaves, and misbehaves."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from agents.runtimes.python.worker import channel as callback


class Room:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.count = 0
        if "break" in settings:
            raise RuntimeError(settings["break"])
        if "exit" in settings:
            os._exit(settings["exit"])

    def handle(self, op: str, body: dict[str, Any]) -> Any:
        self.count += 1
        return getattr(self, op)(**body)

    def echo(self, **body: Any) -> dict[str, Any]:
        return body

    def whoami(self) -> dict[str, Any]:
        return {"pid": os.getpid(), "count": self.count, "settings": self.settings, "env": dict(os.environ)}

    def where(self) -> dict[str, Any]:
        return {"cwd": str(Path.cwd()), "path": sys.path, "modules": sorted(sys.modules)}

    def can_import(self, name: str) -> bool:
        try:
            __import__(name)
        except ImportError:
            return False
        return True

    def append(self, path: str, line: str, pause: float = 0.0) -> int:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(fd, f"{line}\n".encode())
        os.close(fd)
        time.sleep(pause)
        return os.getpid()

    def read(self, path: str) -> str:
        return Path(path).read_text(errors="replace")

    def write(self, path: str, text: str) -> int:
        return Path(path).write_text(text)

    def listing(self, path: str) -> list[str]:
        return sorted(entry.name for entry in Path(path).iterdir())

    def shell(self, command: str) -> dict[str, Any]:
        done = subprocess.run(command, shell=True, capture_output=True, text=True, errors="replace")
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

    def run(self, code: str) -> Any:
        scope: dict[str, Any] = {
            "Path": Path,
            "os": os,
            "ctypes": ctypes,
            "socket": socket,
            "callback": callback,
        }
        exec(compile(code, "agent.py", "exec"), scope)
        return scope.get("answer")

    def run_file(self, path: str) -> None:
        exec(compile(Path(path).read_text(), path, "exec"), {})

    def sleep(self, seconds: float = 3600) -> str:
        time.sleep(seconds)
        return "awake"

    def spin(self) -> None:
        while True:
            pass

    def leave(self, code: int) -> None:
        os._exit(code)

    def polite_exit(self, code: int) -> None:
        sys.exit(code)

    def crash(self) -> None:
        ctypes.string_at(0)

    def hog(self, size: int) -> int:
        return len(bytearray(size))

    def bomb(self, patient: bool) -> None:
        while True:
            try:
                os.fork()
            except OSError:
                if not patient:
                    raise

    def fork_and_return(self) -> int:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        return os.getpid()

    def orphan(self, code: str) -> None:
        """Run ``code`` in a process that has left its parent and session."""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                exec(code, {"os": os, "time": time, "socket": socket, "Path": Path})
            os._exit(0)
        os.wait()

    def parallel(self, number: int) -> list[int]:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return pool.map(_square, range(number))

    def talk(self, lines: int, text: str = "line") -> int:
        for number in range(lines):
            print(f"{text} {number}")
        return lines

    def mutter(self, text: str) -> None:
        print(text, end="")
        print(text + "!", file=sys.stderr, end="")

    def ask(self, operation: str, arguments: dict[str, Any]) -> Any:
        return {"heard": callback.call(operation, arguments)}

    def ask_later(self, path: str) -> None:
        def later() -> None:
            time.sleep(0.1)
            try:
                callback.call("late", {})
            except callback.CallbackRefusedError as problem:
                Path(path).write_text(str(problem))

        threading.Thread(target=later).start()

    def garbage(self, data: str) -> None:
        from agents.runtimes.python.worker import channel as module

        module._channel._stream.sendall(data.encode("latin-1"))
        time.sleep(60)

    def hang_up(self) -> None:
        os.closerange(3, 100)
        time.sleep(60)


def _square(number: int) -> int:
    return number * number
