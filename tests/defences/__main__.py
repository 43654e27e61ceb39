"""``make defences``: takes each defence of the table out, runs the tests that have to notice, and prints the survivors.

The program is changed in a copy of its tree, with a copy of the virtual environment, so that what tests start is the
changed program too. First the named tests run on the unchanged copy: a test that fails or is skipped there shows
nothing. Ends with 1 when a defence is not missed, does not apply, or when its tests hang instead of failing.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from . import table
from .table import REPO, Defence, TableError

NOTICED, SURVIVED, HUNG, BROKEN, UNUSABLE = "noticed", "SURVIVED", "HUNG", "BROKEN", "DOES NOT APPLY"
_FAILED = re.compile(r"^FAILED |^ERROR .* - Failed: ", re.MULTILINE)  # also what a fixture calls a failure
Task = TypeVar("Task")
_CONTROL_SECONDS = 600  # the longest of the suite's files takes three minutes on two processors


@dataclass(frozen=True)
class Outcome:
    """The end of one run of pytest."""

    kind: str
    seconds: float
    output: str


class Copy:
    """The tree and its virtual environment once more, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self._python = self.root / ".venv" / "bin" / "python"
        self._changes = 0
        self._running: subprocess.Popen[str] | None = None
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=REPO, stdout=subprocess.PIPE, check=True,
        ).stdout.decode()  # fmt: skip
        for name in filter(None, listed.split("\0")):
            if (REPO / name).is_file():  # not one that was removed and is not committed yet
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(REPO / name, self.root / name)
        environment = Path(sys.prefix)
        shutil.copytree(environment, self.root / ".venv", symlinks=True)
        self._point_here(environment)

    def _point_here(self, environment: Path) -> None:
        """The copied environment imports the copied tree, and its commands run in it."""
        for path in (self.root / ".venv" / "lib").glob("python*/site-packages/*.pth"):
            lines = path.read_text(errors="replace").split("\n")
            if str(REPO) in lines:
                path.write_text("\n".join(str(self.root) if line == str(REPO) else line for line in lines))
        for path in (self.root / ".venv" / "bin").iterdir():
            start = f"#!{environment}/".encode()
            if path.is_file() and not path.is_symlink() and (content := path.read_bytes()).startswith(start):
                path.write_bytes(content.replace(start, f"#!{self.root}/.venv/".encode(), 1))

        asked = [self._python, "-c", "import rappd; print(rappd.__file__)"]
        found = subprocess.run(asked, cwd="/", stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        assert found == str(self.root / "rappd" / "__init__.py"), f"the copy would run {found}"

    def run_changed(self, defence: Defence, seconds: float) -> Outcome:
        """Runs the defence's tests without it, and puts it back."""
        path = self.root / defence.file
        before, status = path.read_bytes(), path.stat()
        # A time of its own for each change: Python knows a compiled file by time and size.
        self._changes += 1
        path.write_text(defence.mutant(self.root))
        os.utime(path, (status.st_atime, status.st_mtime + 10 * self._changes))
        try:
            return self.run(defence.tests, seconds, "-x")
        finally:
            path.write_bytes(before)
            os.utime(path, (status.st_atime, status.st_mtime))

    def run(self, tests: Iterable[str], seconds: float, *options: str) -> Outcome:
        """Runs tests in this copy, for so many seconds at most."""
        command = [self._python, "-m", "pytest", "-p", "no:cacheprovider", "-rfEs", "--tb=short", *options]
        environment = {
            key: text for key, text in os.environ.items() if key not in ("PYTHONPATH", "PYTEST_ADDOPTS")
        }
        began = time.monotonic()
        environment["COLUMNS"] = "400"  # no reason is cut off
        process = subprocess.Popen(
            [*command, *tests], cwd=self.root, env=environment, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._running = process
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            output, hangs = "no end within the time\n", True
        else:
            hangs = "+ Timeout +" in output
        finally:
            _end_group(process)
        self._running = None
        return Outcome(HUNG if hangs else _kind(process.returncode, output), time.monotonic() - began, output)

    def stop(self) -> None:
        """Ends the run under way, if there is one."""
        if self._running is not None:
            _end_group(self._running)


def _end_group(process: subprocess.Popen[str]) -> None:
    """Ends what the run left behind, which may hold its output open."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def _kind(code: int, output: str) -> str:
    if code == 0:
        return SURVIVED
    # Without a test that fails, something else is wrong: no test was collected, or no daemon starts at all.
    return NOTICED if code == 1 and _FAILED.search(output) else BROKEN


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))  # what it began ends with it
    rows = [
        row for row in table.read_table() if all(word in f"{row.name} {row.file}" for word in options.words)
    ]
    print(f"{len(rows)} defences, {options.processes} at a time", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="rappd-defences-"))
    folder.chmod(0o755)  # some tests run as another account
    try:
        copies = [Copy(folder / str(number)) for number in range(options.processes)]
        useless = {} if options.no_control else _control(rows, copies)
        outcomes = _without_each(rows, copies, options.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _report(rows, outcomes, useless, options.output)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m defences", description=__doc__)
    parser.add_argument("words", nargs="*", help="only rows with all these words in their name or file")
    parser.add_argument("--processes", type=int, default=2, help="how many run at a time")
    parser.add_argument(
        "--seconds", type=float, default=300, help="how long the tests of one defence may take"
    )
    parser.add_argument("--no-control", action="store_true", help="do not run the tests unchanged first")
    parser.add_argument(
        "--output", type=Path, help="folder for what pytest printed, of each that was not noticed"
    )
    return parser.parse_args()


def _control(rows: list[Defence], copies: list[Copy]) -> dict[str, Outcome]:
    """Runs all named tests unchanged, file by file; returns the files where one fails or is skipped."""
    files: dict[str, list[str]] = {}
    for test in dict.fromkeys(test for row in rows for test in row.tests):
        files.setdefault(test.partition("::")[0], []).append(test)
    found: dict[str, Outcome] = {}

    def look(copy: Copy, file: str) -> None:
        outcome = copy.run(files[file], _CONTROL_SECONDS)
        if outcome.kind != SURVIVED or "\nSKIPPED " in outcome.output:
            found[file] = outcome
            print(f"useless as it is: {file} ({outcome.seconds:.0f} s)", flush=True)

    _spread(list(files), copies, look)
    return found


def _without_each(rows: list[Defence], copies: list[Copy], seconds: float) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}

    def look(copy: Copy, row: Defence) -> None:
        try:
            outcome = copy.run_changed(row, seconds)
        except TableError as error:
            outcome = Outcome(UNUSABLE, 0, str(error))
        outcomes[_key(row)] = outcome
        print(f"{outcome.kind:9} {outcome.seconds:4.0f} s  {row.name[:100]}", flush=True)

    _spread(rows, copies, look)
    return outcomes


def _spread(tasks: list[Task], copies: list[Copy], work: Callable[[Copy, Task], None]) -> None:
    """Does the tasks, one at a time in each copy. Raises what one of them raised."""
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)

    def run(copy: Copy) -> None:
        while True:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                return
            work(copy, task)

    with ThreadPoolExecutor(len(copies)) as threads:
        try:
            for _ in threads.map(run, copies):
                pass
        except BaseException:
            with suppress(queue.Empty):
                while True:
                    waiting.get_nowait()
            for copy in copies:
                copy.stop()
            raise


def _key(row: Defence) -> str:
    return f"{row.file}: {row.text}"


def _report(
    rows: list[Defence], outcomes: dict[str, Outcome], useless: dict[str, Outcome], output: Path | None
) -> int:
    found = [(row, outcomes[_key(row)]) for row in rows if outcomes[_key(row)].kind != NOTICED]
    for row, outcome in found:
        print(f"\n{outcome.kind}: {row.name}\n  {row.file}: {row.text.strip()}")
        print("".join(f"  {test}\n" for test in row.tests), end="")
    for file, outcome in useless.items():
        print(f"\nFAILS OR IS SKIPPED AS IT IS: {file}\n{outcome.output[-2000:]}")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        for number, (row, outcome) in enumerate(found):
            (output / f"{number}.txt").write_text(f"{row}\n\n{outcome.output}")
    print(f"\n{len(rows) - len(found)} of {len(rows)} noticed")
    return 1 if found or useless else 0


if __name__ == "__main__":
    sys.exit(main())
