"""The suite that each transport passes: probe, list, read and write a member."""

from __future__ import annotations

import os
import shutil
import tarfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from fixtures import member_homes as homes
from fixtures import warm_zygote
from fixtures.machines import Machine, pair
from fixtures.ssh_server import SshServer

from neighborhoods.errors import MemberError, MemberRefusedError, NoSuchMemberError, UnstableMemberError
from neighborhoods.snapshot.member_transport import AGENTS, MemberTransport
from neighborhoods.snapshot.tar_guard import UNEXPLAINED, TarGuard
from neighborhoods.snapshot.transports.folder import FolderTransport
from neighborhoods.snapshot.transports.rappd import RappdTransport
from rappd.daemon.home import Home
from rappd.daemon.open_home import open_home
from rappd.features.snapshots.members import PairedMachine
from rappd.settings.load import Settings


class Member(NamedTuple):
    home: Path
    transport: MemberTransport
    content: dict[str, bytes]


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine]]:
    folder = tmp_path_factory.mktemp("pair")
    desk, pi = (Machine(folder / name, name, LLM_FAKE="1", RAPPD_NEARBY="off") for name in ("desk", "pi"))
    try:
        desk.start()
        pi.start()
        pair(desk, pi)
        desk.stop()
        yield desk, pi
    finally:
        desk.stop()
        pi.stop()


@pytest.fixture(params=["ssh-gnu", "ssh-busybox", "ssh-bsdtar", "folder", "rappd"])
async def member(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Member]:
    way, _, tar = request.param.partition("-")
    if way == "ssh":
        with SshServer(tmp_path / "pi", tar=tar) as pi:
            transport: MemberTransport = pi.transport()
            yield Member(pi.home, transport, homes.fill_home(pi.home))
            await transport.aclose()
    elif way == "rappd":
        if "write" in request.node.name:
            pytest.skip("writing waits for the owner: tests/rappd/federation_service/test_peer_snapshots.py")
        desk, pi = request.getfixturevalue("machines")
        for folder in ("twins", "brainstem/agents"):
            shutil.rmtree(pi.home / folder, ignore_errors=True)
        content, home = homes.fill_home(pi.home), Home(desk.home)
        async with open_home(
            home, Settings.load(home, {**desk.environment, "PORT": "0"}), warm_zygote.launch
        ) as daemon:
            members = await daemon.members()
            (there,) = members.chosen(["pi"])
            transport = members.transport(there)
            assert isinstance(transport, RappdTransport)
            yield Member(pi.home, transport, content)
    else:
        home = tmp_path / "stick"
        content = homes.fill_home(home)
        transport = FolderTransport("stick", home)
        yield Member(home, transport, content)
        await transport.aclose()


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "scratch"
    folder.mkdir()
    yield folder


async def test_probe_member_that_is_there_is_reachable(member: Member) -> None:
    found = await member.transport.probe()
    assert found.reachable, found.detail
    assert found.free_bytes > 0
    assert found.took_ms > 0


async def test_probe_member_through_a_daemon_that_is_stopped_says_what_to_run(tmp_path: Path) -> None:
    home = Home(tmp_path)
    async with open_home(home, Settings.load(home), mode="read") as daemon:
        paired = PairedMachine(
            daemon.machines.peer_store,
            daemon.machines.peer_client,
            daemon.egg_transfer.send,
            "pi",
            "f" * 64,
        )
        found = await RappdTransport("pi", paired).probe()
    assert found.detail == "pi is read through rappd, which isn't running here — rappd start"


@pytest.mark.parametrize(
    ("what", "do", "line"),
    [
        ("pi is away.", "rappd peers list", "pi is away — rappd peers list"),
        ("pi does not answer.", "Wake it, rerun.", "pi does not answer. Wake it, rerun."),
        ("pictures has 5 pictures", "Send fewer.", "pictures has 5 pictures. Send fewer."),
        ("Nothing is known.", "", "Nothing is known."),
    ],
)
def test_error_on_one_line_parts_what_happened_from_what_to_do(what: str, do: str, line: str) -> None:
    assert MemberError(what, do=do).with_advice() == line


async def test_list_active_twins_and_agents(member: Member) -> None:
    found = await member.transport.list()
    assert [twin.hash for twin in found.twins] == [homes.TWIN, homes.OTHER]
    first = found.twins[0]
    assert first.rappid_json["name"] == "gardener"
    assert (first.lifecycle, first.has_soul, first.agents) == ("active", True, ("water_agent.py",))
    assert first.workspace_files >= len(member.content)
    assert first.workspace_bytes >= sum(map(len, member.content.values()))
    assert found.agent_files == ("clock_agent.py", "news_listener.py")
    assert found.host


async def test_list_with_archived_names_their_lifecycle(member: Member) -> None:
    found = await member.transport.list(include_archived=True)
    assert [(twin.hash, twin.lifecycle) for twin in found.twins][-1] == (homes.ARCHIVED, "archived")


async def test_list_fingerprint_changes_with_content_name_and_time_and_not_by_itself(member: Member) -> None:
    async def fingerprint() -> str:
        return (await member.transport.list()).twins[0].fingerprint

    twin = member.home / "twins" / homes.TWIN
    seen = [await fingerprint()]
    assert await fingerprint() == seen[0]
    (twin / "new.txt").write_bytes(b"1")
    seen.append(await fingerprint())
    (twin / "new.txt").rename(twin / "newer.txt")
    seen.append(await fingerprint())
    (twin / "newer.txt").write_bytes(b"12")
    seen.append(await fingerprint())
    os.utime(twin / "newer.txt", (1, 1))
    seen.append(await fingerprint())
    assert len(set(seen)) == 5
    (twin / "node_modules/x/more.js").write_bytes(b"not part of it")
    assert await fingerprint() == seen[-1]


async def test_read_twin_gives_every_file_with_any_name(member: Member) -> None:
    odd = member.home / "twins" / homes.TWIN
    (odd / "two\nlines.txt").write_bytes(b"x")
    Path(os.fsdecode(os.fsencode(odd) + b"/caf\xe9")).write_bytes(b"x")
    assert await homes.read(member.transport.read_twin(homes.TWIN)) == member.content


async def test_read_twin_names_what_is_made_anew(member: Member) -> None:
    twin = member.home / "twins" / homes.TWIN
    for path in (".venv/bin/python", "notes/node_modules/x/y.js", ".git/objects/ab/cd", ".DS_Store"):
        (twin / path).parent.mkdir(parents=True, exist_ok=True)
        (twin / path).write_bytes(b"no")
    guard = TarGuard()
    async for piece in member.transport.read_twin(homes.TWIN):
        guard.feed(piece)
    guard.close()
    named = [one.path for one in guard.left_out if one.reason == "is made anew where it is needed"]
    folders = [".git", ".venv", "agents/__pycache__", "node_modules", "notes/node_modules"]
    assert sorted(named) == [".DS_Store", "._soul.md", *folders]


async def test_read_twin_tells_what_was_there_and_did_not_come(member: Member) -> None:
    twin = member.home / "twins" / homes.TWIN
    for name in ("two\nlines.txt", "an end\n", "\n", "a\n/b\n\n"):
        (twin / name).parent.mkdir(exist_ok=True)
        (twin / name).write_bytes(b"x")
    Path(os.fsdecode(os.fsencode(twin) + b"/caf\xe9")).write_bytes(b"x")
    (twin / "private").mkdir()
    (twin / "private/diary.md").write_bytes(b"x")
    stream = b"".join([piece async for piece in member.transport.read_twin(homes.TWIN)])
    for lost in ("", "soul.md", ".brainstem_data/memory.json", "agents/water_agent.py"):
        guard = TarGuard()
        guard.feed(_without(stream, lost))
        guard.close()
        assert [one.path for one in guard.left_out if one.reason == UNEXPLAINED] == [lost] * bool(lost)


def _without(stream: bytes, name: str) -> bytes:
    """The tar stream without one file."""
    kept, at = b"", 0
    while at < len(stream):
        header, size = stream[at : at + 512], 0
        if header.strip(b"\0"):
            info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
            size = -(-info.size // 512) * 512
            if info.name.removeprefix("./") == name:
                at += 512 + size
                continue
        kept += stream[at : at + 512 + size]
        at += 512 + size
    return kept


async def test_read_twin_archived(member: Member) -> None:
    found = await homes.read(member.transport.read_twin(homes.ARCHIVED, archived=True))
    assert found["soul.md"] == b"You are a gardener.\n"


async def test_read_agents_gives_the_brainstems(member: Member) -> None:
    found = await homes.read(member.transport.read_agents())
    assert found == {"clock_agent.py": b"clock\n", "news_listener.py": b"news\n"}


async def test_read_twin_that_is_not_there_raises(member: Member) -> None:
    with pytest.raises(NoSuchMemberError):
        await homes.read(member.transport.read_twin("d" * 64))


async def test_read_twin_that_changes_meanwhile_raises_or_gives_one_state(member: Member) -> None:
    twin = member.home / "twins" / homes.TWIN
    (twin / "large.bin").write_bytes(os.urandom(24 << 20))  # more than every buffer on the way
    stream = member.transport.read_twin(homes.TWIN)
    first = await anext(stream)
    time.sleep(0.01)
    (twin / "soul.md").write_bytes(b"You are a butcher.\n\n")
    if isinstance(member.transport, RappdTransport):  # it sends a copy, which is of one moment
        found = await homes.read(_all(first, stream))
        assert found["soul.md"] == b"You are a gardener.\n"
        return
    with pytest.raises(UnstableMemberError):
        async for _ in stream:
            pass


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


async def test_write_twin_back_restores_the_same_files(member: Member, scratch: Path) -> None:
    packed = await homes.archive(member.transport.read_twin(homes.TWIN), scratch / "twin.tar.gz", homes.TWIN)
    twin = member.home / "twins" / homes.TWIN
    shutil.rmtree(twin)
    done = await member.transport.write_twin(homes.TWIN, packed)
    assert (done.created, done.overwritten, done.skipped) == (len(member.content), 0, 0)
    assert homes.files_in(twin) == member.content
    assert (twin / "soul.md").stat().st_mode & 0o7777 == 0o600
    assert (twin / "agents/water_agent.py").stat().st_mode & 0o7777 == 0o700
    assert twin.stat().st_mode & 0o077 == 0
    assert int((twin / "soul.md").stat().st_mtime) == 1_700_000_000


@pytest.mark.parametrize("is_there", [False, True])
async def test_write_twin_keeps_holes(member: Member, scratch: Path, is_there: bool) -> None:
    """BusyBox's tar alone writes all of it, as docs/eggs.md says."""
    twin = member.home / "twins" / homes.TWIN
    holes = {
        "disk.img": [(1 << 20, b"a disk"), (5 << 20, b"x" * 100_000), (20 << 20, b"")],
        "ends.img": [(0, b"begins"), (3 << 20, b"ends")],
        "many.img": [(at << 18, b"run %d" % at) for at in range(40)],
        f"{'long' * 40}.img": [(4 << 20, b"far")],
        "nothing.img": [(2 << 20, b"")],
    }
    for name, runs in holes.items():
        with (twin / name).open("wb") as file:
            for at, data in runs:
                file.seek(at)
                file.write(data)
            file.truncate(file.tell())
    (twin / "zeros.txt").write_bytes(bytes(70_000))  # a small file is a plain one
    before = homes.files_in(twin)
    packed = await homes.archive(member.transport.read_twin(homes.TWIN), scratch / "twin.tar.gz", homes.TWIN)
    if is_there:
        (twin / "soul.md").write_text("Another.")
    else:
        shutil.rmtree(twin)
    await member.transport.write_twin(homes.TWIN, packed, overwrite=is_there)
    found = homes.files_in(twin)
    assert {name: found[name] == before[name] for name in [*holes, "zeros.txt"]} == dict.fromkeys(
        [*holes, "zeros.txt"], True
    )
    taken = sum((twin / name).stat().st_blocks * 512 for name in holes)
    whole = sum((twin / name).stat().st_size for name in holes)
    if (member.home.parent / "bin" / "tar").resolve().name == "busybox":
        assert taken > whole * 0.9
    else:
        assert taken < whole / 8, f"{taken} of {whole}"


async def test_write_twin_that_exists_is_skipped_without_overwrite(member: Member, scratch: Path) -> None:
    packed = await homes.archive(member.transport.read_twin(homes.TWIN), scratch / "twin.tar.gz", homes.TWIN)
    soul = member.home / "twins" / homes.TWIN / "soul.md"
    soul.write_bytes(b"mine")
    done = await member.transport.write_twin(homes.TWIN, packed)
    assert (done.created, done.overwritten, done.skipped) == (0, 0, 1)
    assert soul.read_bytes() == b"mine"


async def test_write_twin_overwrite_keeps_what_the_archive_has_not(member: Member, scratch: Path) -> None:
    packed = await homes.archive(member.transport.read_twin(homes.TWIN), scratch / "twin.tar.gz", homes.TWIN)
    twin = member.home / "twins" / homes.TWIN
    outside = scratch / "outside"
    outside.mkdir()
    shutil.rmtree(twin / "agents")
    (twin / "agents").symlink_to(outside)
    (twin / "soul.md").unlink()
    (twin / "soul.md").symlink_to(outside / "soul.md")
    done = await member.transport.write_twin(homes.TWIN, packed, overwrite=True)
    assert done.overwritten >= len(member.content) - 2
    found = homes.files_in(twin)
    assert {path: found[path] for path in member.content} == member.content
    assert found[".env"] == b"KEY=1"
    assert list(outside.iterdir()) == []  # nothing was written through a link


async def test_write_twin_archived_goes_to_the_archive(member: Member, scratch: Path) -> None:
    packed = await homes.archive(member.transport.read_twin(homes.TWIN), scratch / "twin.tar.gz", homes.TWIN)
    await member.transport.write_twin(homes.TWIN, packed, archived=True)
    assert homes.files_in(member.home / "twins" / ".archive" / homes.TWIN) == member.content


async def test_write_agents_fills_gaps_and_overwrites_when_told(member: Member, scratch: Path) -> None:
    archive = homes.archive(member.transport.read_agents(), scratch / "agents.tar.gz", AGENTS)
    packed, agents = await archive, member.home / "brainstem" / "agents"
    (agents / "clock_agent.py").write_bytes(b"mine\n")
    (agents / "news_listener.py").unlink()
    done = await member.transport.write_agents(packed)
    assert (done.created, done.overwritten, done.skipped) == (1, 0, 1)
    assert homes.files_in(agents) == {"clock_agent.py": b"mine\n", "news_listener.py": b"news\n"}
    assert (agents / "news_listener.py").stat().st_mode & 0o7777 == 0o600
    (scratch / "outside").write_bytes(b"outside")
    (agents / "news_listener.py").unlink()
    (agents / "news_listener.py").symlink_to(scratch / "outside")
    done = await member.transport.write_agents(packed, overwrite=True)
    assert (done.created, done.overwritten, done.skipped) == (0, 1, 1)
    assert (agents / "clock_agent.py").read_bytes() == b"clock\n"
    assert (scratch / "outside").read_bytes() == b"outside"
    shutil.rmtree(member.home / "brainstem")
    assert (await member.transport.write_agents(packed)).created == 2
    assert [path.name for path in (member.home / "brainstem").iterdir()] == ["agents"]
    with pytest.raises(MemberRefusedError, match="Nobody trusted signed these agents"):
        await member.transport.write_agents(packed, is_trusted=False)


async def test_write_twin_hostile_archive_writes_nothing_outside(member: Member, scratch: Path) -> None:
    packed = homes.hostile_archive(scratch / "hostile.tar.gz", "e" * 64)
    await member.transport.write_twin("e" * 64, packed)
    assert homes.files_in(member.home / "twins" / ("e" * 64)) == {"fine.txt": b"fine"}
    assert not (member.home / "evil.txt").exists()
    assert not Path("/tmp/rappd-evil.txt").exists()
