"""Agents lay links and pipes in their workspace: the daemon reads and writes nothing through them.

The links are laid from inside a real agent where workers may write. Where the sandbox refuses that, and in
``soul.md``, ``.env``, ``agents/``, ``senses/`` and ``rapps/``, which hold what decides execution, the test lays
them, as a home that was made by an earlier version may hold them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import pytest
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import agent_source, on
from fixtures.sandboxed_daemon import MODES, NO_SANDBOX, SandboxedDaemon, sandboxed_daemon_in

SECRET = "the daemon's own secret"
MANY = 40
_numbers = itertools.count(1)

LAY_LINK = """import os
from pathlib import Path
root = Path(__file__).parent.parent
place = root / {name!r}
if place.is_symlink() or place.is_file():
    place.unlink()
elif place.is_dir():
    place.rename(place.with_name(place.name + "-before"))
os.symlink({target!r}, place)
return os.readlink(place)
"""
LAY_FILE = """from pathlib import Path
place = Path(__file__).parent.parent / {name!r}
place.unlink(missing_ok=True)
place.write_bytes({content!r})
return "laid"
"""
LAY_PIPE = """import os
from pathlib import Path
place = Path(__file__).parent.parent / {name!r}
place.unlink(missing_ok=True)
os.mkfifo(place)
return "laid"
"""
SWAP = """import os, time
from pathlib import Path
root = Path(__file__).parent.parent
until = time.monotonic() + {seconds}
rounds = 0
while time.monotonic() < until:
    spare = root / "voice.spare"
    spare.write_bytes(b"mine")
    os.replace(spare, root / "voice.zip")
    os.symlink("../keys/operator.key", spare)
    os.replace(spare, root / "voice.zip")
    rounds += 1
return str(rounds)
"""
LINK_HARD = """import os
from pathlib import Path
root = Path(__file__).parent.parent
(root / ".brainstem_data" / "own").write_text("own")
(root / ".brainstem_data" / "other").unlink(missing_ok=True)
os.link(root / ".brainstem_data" / "own", root / ".brainstem_data" / "other")
try:
    os.link({target!r}, root / "voice.zip")
except OSError as error:
    return "refused, own files can be linked"
return "linked"
"""


class Attacked(NamedTuple):
    daemon: SandboxedDaemon
    model: FakeModel

    @property
    def root(self) -> Path:
        return self.daemon.home / "brainstem"

    @property
    def secrets(self) -> list[bytes]:
        """The content of every file under ``keys/``."""
        keys = self.daemon.home / "keys"
        return [path.read_bytes() for path in sorted(keys.iterdir()) if path.is_file()]

    def lay(self, code: str, **values: object) -> None:
        """Has an agent lay something in the workspace; the test does where the sandbox refuses it."""
        done = self.daemon.run_code(code.format(**values), f"Layer{next(_numbers)}")
        if not done["ok"]:
            assert self.daemon.mode != NO_SANDBOX, done
            assert str(done["result"]).startswith(("OSError", "PermissionError")), done
            self.run_here(code.format(**values))
            self.owned(self.root / str(values["name"]))

    def run_here(self, code: str) -> str:
        """Runs what an agent would have run, in the test's own process."""
        names: dict[str, object] = {"__file__": str(self.root / "agents" / "test_agent.py")}
        body = "\n    ".join(code.strip().splitlines())
        exec(f"def perform():\n    {body}\nresult = perform()", names)
        return str(names["result"])

    def lies_as_before(self, name: str) -> None:
        """Removes what was laid, and brings back a folder that was there."""
        place = self.root / name
        if place.is_symlink() or not place.is_dir():
            place.unlink(missing_ok=True)
        before = place.with_name(f"{place.name}-before")
        if before.exists():
            before.rename(place)

    def owned(self, path: Path) -> None:
        """Files that the test itself lays belong to the daemon's account."""
        owner = self.root.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)

    def holds_no_secret(self, content: bytes) -> None:
        assert all(secret not in content for secret in self.secrets)
        assert b"PRIVATE KEY" not in content


@pytest.fixture(scope="module", params=(*MODES, NO_SANDBOX))
def attacked(request: pytest.FixtureRequest, nobody_python: Path) -> Iterator[Attacked]:
    """A daemon as it is for its operator, with a scripted model, in one mode."""
    model = FakeModel()
    model.start()
    more = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "sk-key", "OPENAI_MODEL": "small"}
    with sandboxed_daemon_in(request.param, nobody_python, **more) as daemon:
        daemon.home.mkdir(parents=True)
        (daemon.home / ".env").write_text(f"SECRET_OF_THE_DAEMON={SECRET}\n")
        (daemon.home / "brainstem").mkdir()
        (daemon.home / "brainstem" / ".env").symlink_to("../.env")
        yield Attacked(daemon.start(), model)
    model.stop()


def _voice(attacked: Attacked) -> tuple[int, bytes]:
    answer = attacked.daemon.post("/voice/export", control=True)
    return answer.status, answer.body


def test_voice_export_of_a_link_gives_no_key(attacked: Attacked) -> None:
    attacked.lay(LAY_FILE, name="voice.zip", content=b"mine")
    assert _voice(attacked) == (200, b"mine"), "the probe works"
    attacked.lay(LAY_LINK, name="voice.zip", target="../keys/operator.key")
    status, body = _voice(attacked)
    assert status == 409
    assert json.loads(body)["code"] == "unsafe_file"
    attacked.holds_no_secret(body)
    assert attacked.daemon.get("/voice/config?password=x").status == 409


def test_voice_export_needs_the_operator(attacked: Attacked) -> None:
    attacked.lay(LAY_FILE, name="voice.zip", content=b"mine")
    for _ in range(2):
        assert attacked.daemon.post("/voice/export").status == 403
    assert attacked.daemon.get("/agents/export/layer1_agent.py").status == 403


def test_voice_export_while_links_are_swapped_gives_no_key(attacked: Attacked) -> None:
    attacked.lay(LAY_FILE, name="voice.zip", content=b"mine")
    swapped: list[dict[str, object]] = []
    code = SWAP.format(seconds=4)

    def swap() -> None:
        done = attacked.daemon.run_code(code, "Swapper")
        if not done["ok"] and attacked.daemon.mode != NO_SANDBOX:
            # Landlock lets it make no file in the workspace's root; in a namespace the file is a mount point, and busy.
            done = {"ok": True, "result": attacked.run_here(code)}
        swapped.append(done)

    attacker = threading.Thread(target=swap)
    attacker.start()
    seen = set()
    while attacker.is_alive():
        status, body = _voice(attacked)
        attacked.holds_no_secret(body)
        seen.add((status, body if status == 200 else b""))
    attacker.join()
    assert swapped[0]["ok"], swapped
    assert int(str(swapped[0]["result"])) > 100
    assert (200, b"mine") in seen, "the probe works"
    assert (409, b"") in seen, "the link was met, too"
    assert all(content in (b"mine", b"") for _, content in seen)


def test_key_cannot_be_linked_hard_from_a_sandbox(attacked: Attacked) -> None:
    if attacked.daemon.mode == NO_SANDBOX:
        pytest.skip("without a sandbox agents read the keys themselves")
    key = str(attacked.daemon.home / "keys" / "operator.key")
    done = attacked.daemon.run_code(LINK_HARD.format(target=key), "Linker")
    assert done["result"] == "refused, own files can be linked", done


def test_soul_as_a_link_is_not_sent_to_the_model(attacked: Attacked) -> None:
    soul = attacked.root / "soul.md"
    before = soul.read_bytes()
    soul.write_text("You are the positive control.")
    attacked.model.will(says("hello"))
    attacked.daemon.chat("hello")
    assert "positive control" in json.dumps(attacked.model.asked), "the probe works"
    soul.unlink()
    soul.symlink_to("../keys/identity.pem")
    attacked.owned(soul)
    attacked.model.will(says("hello"))
    attacked.daemon.chat("hello")
    asked = json.dumps(attacked.model.asked)
    assert "You are a helpful AI assistant." in asked
    attacked.holds_no_secret(asked.encode())
    soul.unlink()
    soul.write_bytes(before)
    attacked.owned(soul)


def test_env_as_a_link_gives_workers_no_secret(attacked: Attacked) -> None:
    probe = "import os\nreturn os.environ.get('SECRET_OF_THE_DAEMON', 'nothing')"
    assert attacked.daemon.run_code(probe, "Environ")["result"] == "nothing"
    attacked.daemon.stop()
    env = attacked.root / ".env"
    env.unlink()
    env.write_text("SECRET_OF_THE_DAEMON=mine\n")
    attacked.owned(env)
    attacked.daemon.start()
    assert attacked.daemon.run_code(probe, "Environ")["result"] == "mine", "the probe works"


@pytest.mark.parametrize("name", [".brainstem_data/kept", ".brainstem_data"])
def test_import_over_a_linked_folder_writes_no_key_folder(attacked: Attacked, name: str) -> None:
    keys = attacked.daemon.home / "keys"
    target = "../../keys" if "/" in name else "../keys"
    done = attacked.daemon.upload("kept_agent.py", agent_source("Kept").encode(), control=True)
    assert done.json()["status"] == "ok", "the probe works"
    attacked.lay(LAY_LINK, name=name, target=target)
    try:
        source = agent_source("Kept", 'return "changed"').encode()
        answer = attacked.daemon.upload("kept_agent.py", source, control=True)
        assert (answer.status, answer.json()["code"]) == (409, "unsafe_file")
        assert attacked.daemon.request("DELETE", "/agents/kept_agent.py", control=True).status == 409
        found = [
            path for path in keys.rglob("*") if path.is_dir() or path.suffix not in (".pem", ".key", ".txt")
        ]
        assert found == []
    finally:
        attacked.lies_as_before(name)
    answer = attacked.daemon.upload("kept_agent.py", source, control=True)
    assert answer.json()["status"] == "ok"


def test_import_over_a_link_copies_no_key(attacked: Attacked) -> None:
    link = attacked.daemon.agents / "linked_agent.py"
    link.symlink_to("../../keys/identity.pem")
    attacked.owned(link)
    try:
        answers = [
            attacked.daemon.upload(f"{name}_agent.py", agent_source("Linked").encode(), control=True)
            for name in ("linked", "plain", "plain")
        ]
        kept = attacked.root / ".brainstem_data" / "kept" / "generations"
        assert [answer.status for answer in answers] == [409, 200, 200]
        assert list((kept / "plain_agent.py").glob("*.py")), "the probe works: generations are kept"
        for path in kept.rglob("*"):
            if path.is_file():
                attacked.holds_no_secret(path.read_bytes())
    finally:
        link.unlink()


FOREIGN = {
    "foreign_agent.py": agent_source("Foreign"),
    "foreign_service.py": 'name = "foreign"\n\n\ndef handle(method, path, body):\n    return {}, 200\n',
    "foreign_sense.py": """name = "foreign"
delimiter = "|||FOREIGN|||"
response_key = "foreign_response"
system_prompt = "Then write |||FOREIGN||| and one word."
wrapper_tag = "foreign"
""",
}


def _is_served(attacked: Attacked, folder: str) -> bool:
    """True when the file of ``FOREIGN`` that belongs into a folder is in service."""
    if folder == "agents":
        return "Foreign" in attacked.daemon.agent_names()
    if folder == "services":
        return attacked.daemon.get("/api/foreign").status == 200
    attacked.model.will(says("hello"))
    attacked.daemon.chat("hello")
    return "FOREIGN" in json.dumps(attacked.model.asked)


@pytest.mark.parametrize("folder", ["agents", "services", "senses"])
def test_code_folder_as_a_link_is_not_read(attacked: Attacked, folder: str) -> None:
    place = attacked.root / folder
    outside = attacked.daemon.home / "outside"
    outside.mkdir()
    for name, source in FOREIGN.items():
        (outside / name).write_text(source)
    before = place.with_name(f"{folder}-before")
    if place.exists():
        place.rename(before)
    shutil.copytree(outside, place, dirs_exist_ok=True)  # the daemon makes a folder anew that it sees missing
    for path in (place, *place.iterdir()):
        attacked.owned(path)
    try:
        attacked.daemon.wait_for(lambda: _is_served(attacked, folder), what="the probe to work")
        _replace_by_link(place, outside)
        attacked.owned(place)
        attacked.daemon.wait_for(lambda: not _is_served(attacked, folder), what="the link to be refused")
        time.sleep(0.7)
        assert not _is_served(attacked, folder)
        assert attacked.daemon.get("/agents/export/foreign_agent.py", control=True).status == 404
    finally:
        place.unlink()
        if before.exists():
            before.rename(place)
        shutil.rmtree(outside)


def _replace_by_link(folder: Path, target: Path) -> None:
    """Puts a link in the place of a folder, which the daemon makes anew when it sees it missing."""
    while not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(FileExistsError):
            folder.symlink_to(target)


def test_rapplication_page_behind_a_link_is_not_served(attacked: Attacked) -> None:
    folder = attacked.root / "rapps" / "probe"
    (folder / "ui").mkdir(parents=True)
    (folder / "ui" / "index.html").write_text("a page")
    port = attacked.daemon.port
    host = {"Host": f"localhost:{port}"}
    assert on(port, "GET", "/rapps/probe/", **host).body == b"a page", "the probe works"
    shutil.rmtree(folder / "ui")
    (folder / "ui").symlink_to("../../../keys")
    answer = on(port, "GET", "/rapps/probe/identity.pem", **host)
    assert answer.status == 404
    attacked.holds_no_secret(answer.body)
    shutil.rmtree(attacked.root / "rapps")


def test_pipes_in_many_places_do_not_stop_the_daemon(attacked: Attacked) -> None:
    attacked.lay(LAY_PIPE, name="voice.zip")
    attacked.lay(LAY_PIPE, name=".brainstem_data/buddy.json")
    soul = (attacked.root / "soul.md").read_bytes()
    laid = []
    for name in ("soul.md", "agents/pipe_agent.py", "senses/pipe_sense.py", "services/pipe_service.py"):
        place = attacked.root / name
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
        os.mkfifo(place)
        place.chmod(0o666)
        attacked.owned(place)
        laid.append(place)
    laid += [attacked.root / "voice.zip", attacked.root / ".brainstem_data" / "buddy.json"]
    pool = ThreadPoolExecutor(MANY)
    try:
        answered, waiting = wait([pool.submit(_voice, attacked) for _ in range(MANY)], 100)
        assert not waiting, f"{len(waiting)} of {MANY} wait for somebody who writes into a pipe"
        assert {one.result()[0] for one in answered} == {409}
        assert attacked.daemon.get("/health").status == 200
        attacked.model.will(says("hello"))
        assert attacked.daemon.chat("hello")["response"] == "hello"
        assert attacked.daemon.get("/api/pipe").status == 404
    finally:
        writers = [os.open(place, os.O_RDWR) for place in laid]  # what waits goes on, and the daemon can end
        pool.shutdown()
        for writer in writers:
            os.close(writer)
        for place in laid:
            place.unlink()
        (attacked.root / "soul.md").write_bytes(soul)
        attacked.owned(attacked.root / "soul.md")


def test_links_of_an_earlier_home_are_named_at_start(attacked: Attacked) -> None:
    daemon = attacked.daemon
    soul = attacked.root / "soul.md"
    before = soul.read_bytes()
    daemon.stop()
    soul.unlink()
    soul.symlink_to("../my-soul.md")
    attacked.owned(soul)
    (attacked.root / "senses").mkdir(exist_ok=True)
    (attacked.root / "senses" / "old_sense.py").symlink_to("/nowhere/old_sense.py")
    daemon.start()
    try:
        for named in ("old_sense.py is a link", f"{soul} is a link to ../my-soul.md"):
            daemon.wait_for_log(named)
        lines = daemon.log.splitlines()
        (line,) = [line for line in lines if f"{soul} is a link to ../my-soul.md" in line]
        assert "rappd config set soul_path" in line
        found = daemon.cli("doctor").stdout
        assert "is a link to ../my-soul.md" in " ".join(found.split())
    finally:
        soul.unlink()
        soul.write_bytes(before)
        attacked.owned(soul)
        (attacked.root / "senses" / "old_sense.py").unlink()
