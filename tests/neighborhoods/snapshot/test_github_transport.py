"""A neighborhood in git repositories: local bare ones, read from clones and written as branches."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
import subprocess
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web
from fixtures import member_homes as homes

from neighborhoods.errors import MemberError, MemberRefusedError, MemberUnreachableError, NoSuchMemberError
from neighborhoods.snapshot.member_capture import SnapshotPeer
from neighborhoods.snapshot.tar_guard import TarGuard
from neighborhoods.snapshot.transports import git_clone
from neighborhoods.snapshot.transports.github import GithubTransport, GithubWrite
from tests.neighborhoods.snapshot.machines import Machine

ROSE, IRIS, FERN = "f" * 64, "1" * 64, "2" * 64


def git(*arguments: str | Path, cwd: Path | None = None) -> str:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "me"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "me@x"),
    }
    command = ["git", "-c", "init.defaultBranch=main", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment, check=True, capture_output=True, text=True
    ).stdout


def publish(bare: Path, tree: Path) -> None:
    git("init", "-q", "--bare", bare)
    git("init", "-q", tree)
    git("add", "--all", "--force", cwd=tree)
    git("commit", "-q", "-m", "first", cwd=tree)
    git("push", "-q", bare, "HEAD:main", cwd=tree)


class Neighborhood(NamedTuple):
    bare: Path
    tree: Path
    content: dict[str, bytes]
    url: str


@pytest.fixture
def garden(tmp_path: Path) -> Neighborhood:
    tree = tmp_path / "tree"
    content = homes.fill_twin(tree / "twins" / homes.TWIN)
    subprocess.run(["rm", "-rf", tree / "twins" / homes.TWIN / ".git"], check=True)
    rose = tmp_path / "rose"
    rose.mkdir()
    (rose / "soul.md").write_text("Rose\n")
    (tree / "members.json").write_text(
        json.dumps({"members": [{"name": "rose", "rappid": f"rappid:@me/rose:{ROSE}"}]})
    )
    publish(tmp_path / "hub/me/garden.git", tree)
    publish(tmp_path / "hub/me/rose.git", rose)
    bare = tmp_path / "hub/me/garden.git"
    return Neighborhood(bare, tree, content, f"file://{bare}")


async def transport(garden: Neighborhood, write: GithubWrite = "off") -> AsyncIterator[GithubTransport]:
    made = GithubTransport("garden", garden.url, write=write)
    yield made
    await made.aclose()


@pytest.fixture
async def reading(garden: Neighborhood) -> AsyncIterator[GithubTransport]:
    async for made in transport(garden):
        yield made


@pytest.fixture
async def writing(garden: Neighborhood) -> AsyncIterator[GithubTransport]:
    async for made in transport(garden, "branch"):
        yield made


async def test_list_twins_of_the_repository_and_of_its_members(reading: GithubTransport) -> None:
    assert (await reading.probe()).reachable
    found = {twin.hash: twin for twin in (await reading.list()).twins}
    assert list(found) == [homes.TWIN, ROSE]
    assert found[homes.TWIN].agents == ("water_agent.py",)
    assert found[ROSE].rappid_json["name"] == "rose"
    assert [found[one].has_rappid_json for one in (homes.TWIN, ROSE)] == [True, False]


async def test_read_repository_names_nothing_of_its_clone(reading: GithubTransport) -> None:
    guard = TarGuard()
    async for piece in reading.read_twin(ROSE):
        guard.feed(piece)
    assert (guard.files, guard.left_out) == (1, [])


async def test_list_repository_with_damaged_rappid_is_no_twin(garden: Neighborhood, tmp_path: Path) -> None:
    (tmp_path / "rose" / "rappid.json").write_text("{")
    git("add", "--all", cwd=tmp_path / "rose")
    git("commit", "-q", "-m", "damaged", cwd=tmp_path / "rose")
    git("push", "-q", tmp_path / "hub/me/rose.git", "HEAD:main", cwd=tmp_path / "rose")
    async for reading in transport(garden):
        found = {twin.hash: twin for twin in (await reading.list()).twins}
        assert (found[ROSE].has_rappid_json, found[ROSE].rappid_json["name"]) == (False, "rose")


@pytest.fixture
def partly(garden: Neighborhood) -> Neighborhood:
    """Beside rose: iris, whose repository nobody made, and fern, whose repository is empty."""
    rows = [f"rappid:@me/iris:{IRIS}", {"name": "fern", "rappid": f"rappid:@me/fern:{FERN}"}]
    members = json.loads((garden.tree / "members.json").read_text())["members"] + rows
    (garden.tree / "members.json").write_text(json.dumps({"members": members}))
    git("init", "-q", "--bare", garden.bare.parent / "fern.git")
    git("commit", "-q", "--all", "-m", "more", cwd=garden.tree)
    git("push", "-q", garden.bare, "HEAD:main", cwd=garden.tree)
    return garden


async def test_list_repository_that_cannot_be_cloned_has_its_reason_and_others_are_listed(
    partly: Neighborhood,
) -> None:
    async for reading in transport(partly):
        found = {twin.hash: twin for twin in (await reading.list()).twins}
        assert sorted(found) == sorted([homes.TWIN, ROSE, IRIS, FERN])
        assert (found[homes.TWIN].failure, found[ROSE].failure, found[ROSE].workspace_files) == ("", "", 1)
        assert found[IRIS].failure.startswith(
            f"garden does not open {partly.url.replace('garden', 'iris')}: "
        )
        assert "git failed" in found[FERN].failure
        assert [found[one].name for one in (IRIS, FERN)] == [IRIS[:8], "fern"]


async def test_list_waits_for_no_repository_before_it_asks_the_next(partly: Neighborhood) -> None:
    held = [partly.bare.parent / f"{name}.git/packed-refs" for name in ("rose", "fern")]
    for file in held:
        os.mkfifo(file)  # git waits in it
    async for reading in transport(partly):
        listing = asyncio.create_task(reading.list())
        opened = [await _once_read(file) for file in held]
        for file, handle in zip(held, opened, strict=True):
            file.unlink()
            os.close(handle)
        assert {twin.hash: twin.failure for twin in (await listing).twins}[ROSE] == ""


async def _once_read(fifo: Path) -> int:
    """The writing end, once somebody reads."""
    async with asyncio.timeout(100):
        while True:
            try:
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                await asyncio.sleep(0.02)


def test_snapshot_and_restore_of_repositories_name_the_one_that_cannot_be_cloned(
    partly: Neighborhood, tmp_path: Path
) -> None:
    desk = Machine(tmp_path / "desk", "desk")
    desk.brainstem()
    taken = desk.take([SnapshotPeer("garden", GithubTransport("garden", partly.url))])
    failed = {one.path: one.why for one in taken.failed}
    assert sorted(failed) == [f"garden/{IRIS[:8]}", "garden/fern"]
    assert "does not open" in failed[f"garden/{IRIS[:8]}"]
    with zipfile.ZipFile(taken.record.path) as egg:
        rows = {row["hash"]: row for row in json.loads(egg.read("members.json"))["peers"][0]["twins"]}
    assert {one: row["captured"] for one, row in rows.items()} == {
        homes.TWIN: True, ROSE: True, IRIS: False, FERN: False,
    }  # fmt: skip
    assert rows[IRIS]["detail"] == failed[f"garden/{IRIS[:8]}"]

    shutil.rmtree(partly.bare.parent / "rose.git")
    plan = desk.plan(Path(taken.record.path), lambda block: GithubTransport("garden", partly.url))
    steps = {step.twin.hash: (step.action, step.why) for step in plan.peers[0].steps}
    assert steps[ROSE][0] == "fail"
    assert "does not open" in steps[ROSE][1]
    assert steps[homes.TWIN][0] == "skip"


async def test_list_fingerprint_is_that_of_the_content(
    garden: Neighborhood, reading: GithubTransport
) -> None:
    first = {twin.hash: twin.fingerprint for twin in (await reading.list()).twins}
    other = GithubTransport("garden", garden.url)
    assert {twin.hash: twin.fingerprint for twin in (await other.list()).twins} == first
    await other.aclose()


async def test_read_twin_gives_its_files_and_no_links(garden: Neighborhood, reading: GithubTransport) -> None:
    assert await homes.read(reading.read_twin(homes.TWIN)) == garden.content
    assert await homes.read(reading.read_twin(ROSE)) == {"soul.md": b"Rose\n"}
    with pytest.raises(NoSuchMemberError):
        await homes.read(reading.read_twin("d" * 64))


async def test_write_without_the_opt_in_is_refused(
    garden: Neighborhood, reading: GithubTransport, tmp_path: Path
) -> None:
    packed = await homes.archive(reading.read_twin(ROSE), tmp_path / "t.tar.gz", ROSE)
    with pytest.raises(MemberRefusedError, match="only read"):
        await reading.write_twin("e" * 64, packed)
    assert git("branch", cwd=garden.bare).split() == ["*", "main"]


async def test_write_pushes_a_branch_and_leaves_main(
    garden: Neighborhood, writing: GithubTransport, tmp_path: Path
) -> None:
    before = git("rev-parse", "main", cwd=garden.bare)
    packed = await homes.archive(writing.read_twin(ROSE), tmp_path / "t.tar.gz", "e" * 64)
    done = await writing.write_twin("e" * 64, packed)
    assert (done.created, done.staged) == (1, True)
    branch = next(name for name in git("branch", cwd=garden.bare).split() if name.startswith("rapp-"))
    assert branch in done.detail
    assert git("show", f"{branch}:twins/{'e' * 64}/soul.md", cwd=garden.bare) == "Rose\n"
    assert git("rev-parse", "main", cwd=garden.bare) == before
    assert (await writing.write_twin(homes.TWIN, packed)).skipped == 1
    same = await homes.archive(writing.read_twin(homes.TWIN), tmp_path / "s.tar.gz", homes.TWIN)
    assert (await writing.write_twin(homes.TWIN, same, overwrite=True)).detail == "nothing differs"


async def test_write_dry_run_pushes_nothing(garden: Neighborhood, tmp_path: Path) -> None:
    async for dry in transport(garden, "dry-run"):
        packed = await homes.archive(dry.read_twin(ROSE), tmp_path / "t.tar.gz", "e" * 64)
        assert (await dry.write_twin("e" * 64, packed)).created == 1
    assert git("branch", cwd=garden.bare).split() == ["*", "main"]


async def test_write_into_a_repository_whose_folder_is_a_link_writes_nothing_outside(
    garden: Neighborhood, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (garden.tree / "twins" / ("e" * 64)).symlink_to(outside)
    git("add", "--all", cwd=garden.tree)
    git("commit", "-q", "-m", "link", cwd=garden.tree)
    git("push", "-q", garden.bare, "HEAD:main", cwd=garden.tree)
    async for made in transport(garden, "branch"):
        packed = await homes.archive(made.read_twin(ROSE), tmp_path / "t.tar.gz", "e" * 64)
        with pytest.raises(MemberError, match="in the way"):
            await made.write_twin("e" * 64, packed, overwrite=True)
    assert list(outside.iterdir()) == []


async def test_probe_repository_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    found = await GithubTransport("garden", f"file://{tmp_path}/none.git").probe()
    assert not found.reachable
    assert "garden does not open" in found.detail
    assert "\n" not in found.detail


async def test_a_host_that_says_nothing_is_given_up_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_clone, "ANSWER_SECONDS", 1.0)
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        repository = git_clone.GitRepository("garden", f"https://127.0.0.1:{port}/o/garden")
        with pytest.raises(MemberUnreachableError):
            await repository.clone(tmp_path / "clone")
    finally:
        server.close()


@asynccontextmanager
async def stopping_midway(folder: Path, asked: list[str]) -> AsyncIterator[str]:
    """The URL of a repository whose host lists what it has, then sends the first part of it and no more."""
    commit = "c" * 40
    shown = f"{commit} HEAD\0multi_ack_detailed side-band-64k ofs-delta shallow symref=HEAD:refs/heads/main agent=git/2\n"
    lines = ["# service=git-upload-pack\n", "", shown, f"{commit} refs/heads/main\n", ""]
    packets = [f"{len(line) + 4:04x}{line}" if line else "0000" for line in lines]

    async def listed(request: web.Request) -> web.Response:
        asked.append("list")
        kind = "application/x-git-upload-pack-advertisement"
        return web.Response(text="".join(packets), content_type=kind)

    async def packed(request: web.Request) -> web.StreamResponse:
        asked.append("pack")
        response = web.StreamResponse(headers={"Content-Type": "application/x-git-upload-pack-result"})
        await response.prepare(request)
        await response.write(f"0034shallow {commit}".encode())
        await asyncio.Event().wait()
        return response

    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-keyout", folder / "host.key", "-out", folder / "host.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "host.crt", folder / "host.key")
    app = web.Application()
    app.router.add_get("/me/garden/info/refs", listed)
    app.router.add_post("/me/garden/git-upload-pack", packed)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        yield f"https://127.0.0.1:{runner.addresses[0][1]}/me/garden"
    finally:
        await runner.cleanup()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
async def test_a_host_that_stops_midway_is_given_up_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answered(_: object) -> str:
        return ""

    monkeypatch.setattr(git_clone.GitRepository, "head", answered)
    monkeypatch.setattr(git_clone, "ANSWER_SECONDS", 1.0)
    monkeypatch.setitem(git_clone._SAFE, "http.sslVerify", "false")
    asked: list[str] = []
    async with stopping_midway(tmp_path, asked) as url, asyncio.timeout(100):
        with pytest.raises(MemberUnreachableError, match="git failed"):
            await git_clone.GitRepository("garden", url).clone(tmp_path / "clone")
    assert asked == ["list", "pack"]
