"""Code that declares its needs reaches these and its own storage, in each sandbox that this machine has."""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.sandbox.needs import Needs
from agents.runtimes.python.sandbox.sandbox import LANDLOCK, MOUNT_NAMESPACE
from tests.agents.runtimes.python.pools.trial_home import Home, supervised

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="Linux shuts workers in")]

FETCH = "import urllib.request\nanswer = urllib.request.urlopen({!r}, timeout=10).read().decode()"
START = "import subprocess\nanswer = subprocess.run({!r}, capture_output=True, text=True).stdout"


@pytest.fixture(params=[MOUNT_NAMESPACE, LANDLOCK])
async def shut_in(request: pytest.FixtureRequest) -> AsyncIterator[WorkerSupervisor]:
    async with supervised(request.param, is_own_port=lambda port: port == 7071) as made:
        yield made


@pytest.fixture
def furnished(home: Home, tmp_path: Path) -> Home:
    for folder in (home.workspace / ".brainstem_data", tmp_path / "shown", tmp_path / "beside"):
        folder.mkdir()
        (folder / "note").write_text("words")
    (home.workspace / "soul.md").write_text("kind")
    return home


@pytest.fixture
def site() -> Iterator[str]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"{self.path} of {self.headers['Host']}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def run(pool: WorkerPool, code: str, seen: list[tuple[str, bool]] | None = None) -> str:
    """The value of ``answer`` after ``code``, or what it raised."""
    wrapped = "\n".join(f"    {line}" for line in code.splitlines())
    guarded = f"try:\n{wrapped}\nexcept Exception as problem:\n    answer = f'{{type(problem).__name__}}: {{problem}}'"
    on_use = (lambda *use: seen.append(use)) if seen is not None else None
    return str(await pool.request("run", {"code": guarded}, timeout=100, on_use=on_use))


def refused(answer: str) -> bool:
    return answer.startswith(("FileNotFoundError", "PermissionError", "OSError", "URLError", "IndexError"))


async def test_nothing_declared_is_own_storage_alone(
    shut_in: WorkerSupervisor, furnished: Home, tmp_path: Path, site: str
) -> None:
    pool = shut_in.pool(str(tmp_path), furnished.plan(needs=Needs()))
    assert await run(pool, "answer = open('.brainstem_data/note', 'w').write('more')") == "4"
    assert await run(pool, "import tempfile\nanswer = tempfile.TemporaryFile().write(b'x')") == "1"
    assert (
        await run(pool, "import zoneinfo, ssl\nanswer = ssl.create_default_context() is not None") == "True"
    )
    for code in (
        f"open({str(tmp_path / 'shown' / 'note')!r})",
        "open('soul.md')",
        "open('.deps/planted.py', 'w')",
        "os.listdir('/home')[0]",
        "os.listdir('/var')[0]",
        "open('/dev/kmsg')",
        FETCH.format(f"http://{site}/"),
        "socket.socket(40, socket.SOCK_STREAM)",
        START.format(["/bin/cat", "/etc/hostname"]),
        START.format([sys.executable, "-c", "print(1)"]),
    ):
        assert refused(found := await run(pool, code)), (code, found)
    await run(pool, "open('soul.md', 'w')")
    assert (furnished.workspace / "soul.md").read_text() == "kind", (
        "at most a file of its own scratch is written"
    )


async def test_declared_folders_and_programs_are_given_and_no_others(
    shut_in: WorkerSupervisor, furnished: Home, tmp_path: Path
) -> None:
    shown, beside = tmp_path / "shown", tmp_path / "beside"
    reads = shut_in.pool(f"{tmp_path} r", furnished.plan(needs=Needs(read=(str(shown),), programs=("cat",))))
    assert await run(reads, f"answer = open({str(shown / 'note')!r}).read()") == "words"
    assert await run(reads, START.format(["cat", str(shown / "note")])) == "words"
    assert refused(await run(reads, f"open({str(shown / 'note')!r}, 'w')"))
    assert refused(await run(reads, f"open({str(beside / 'note')!r})"))
    assert refused(await run(reads, START.format(["ls", "/"])))
    tool = beside / "tool"
    tool.write_text("#!/usr/bin/env sh\necho made by a script\n")
    tool.chmod(0o755)
    scripts = shut_in.pool(f"{tmp_path} s", furnished.plan(needs=Needs(programs=(str(tool),))))
    assert await run(scripts, START.format([str(tool)])) == "made by a script\n"
    writes = shut_in.pool(f"{tmp_path} w", furnished.plan(needs=Needs(write=(str(shown),))))
    assert await run(writes, f"answer = open({str(shown / 'new')!r}, 'w').write('x')") == "1"
    assert refused(await run(writes, f"open({str(beside / 'note')!r}, 'w')"))


async def test_needs_only_narrow(shut_in: WorkerSupervisor, furnished: Home, tmp_path: Path) -> None:
    (tmp_path / "laid").symlink_to(tmp_path / "beside")  # in /tmp, where every agent may write
    wanted = (str(furnished.path), str(tmp_path / "laid"), "/etc")
    pool = shut_in.pool(str(tmp_path), furnished.plan(needs=Needs(read=wanted, write=wanted)))
    for secret in furnished.secrets:
        assert refused(await run(pool, f"open({str(secret)!r})")), secret
    for folder in ("laid", "beside"):
        assert refused(await run(pool, f"open({str(tmp_path / folder / 'note')!r})")), folder
    assert refused(await run(pool, "open('/etc/planted', 'w')"))


async def test_declared_hosts_are_reached_by_the_proxy_alone(
    shut_in: WorkerSupervisor, furnished: Home, tmp_path: Path, site: str
) -> None:
    if not shut_in.sandbox_report()["network"]:
        pytest.skip("a network of its own comes with a mount namespace")
    plan = furnished.plan(needs=Needs(hosts=(site, "$ELSEWHERE", "localhost:7071", "example.com:1")))
    plan.env["ELSEWHERE"] = f"http://localhost:{site.partition(':')[2]}/v0"  # type: ignore[index]
    pool = shut_in.pool(str(tmp_path), plan)
    seen: list[tuple[str, bool]] = []
    assert await run(pool, FETCH.format(f"http://{site}/a?b=c"), seen) == f"/a?b=c of {site}"
    at_home = site.replace("127.0.0.1", "localhost")
    assert at_home in await run(pool, FETCH.format(f"http://{at_home}/"), seen)
    tunnel = "import http.client\nmade = http.client.HTTPConnection('127.0.0.1', 3128)\n"
    tunnel += (
        f"made.set_tunnel({site!r})\nmade.request('GET', '/t')\nanswer = made.getresponse().read().decode()"
    )
    assert await run(pool, tunnel) == f"/t of {site}"
    assert seen == [(site, True), (at_home, True)]
    for address in (
        "http://localhost:7071/",
        "http://127.0.0.1:1/",
        "http://127.1:1/",
        "http://example.org/",
    ):
        told: list[tuple[str, bool]] = []
        assert (await run(pool, FETCH.format(address), told)).startswith("HTTPError"), address
        assert not any(given for _, given in told)
    direct = f"socket.create_connection(('127.0.0.1', {site.partition(':')[2]}))"
    assert "refused" in await run(pool, direct), "its own loopback, where nothing listens"
