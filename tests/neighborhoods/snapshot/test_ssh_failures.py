"""Members over SSH that are wrong, away, full or hostile: one clear line each, and nothing half-written."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures import member_homes as homes
from fixtures.ssh_server import TOOLS, SshServer

from neighborhoods.errors import (
    BadMemberError,
    BadMemberStreamError,
    MemberDiskFullError,
    MemberError,
    MemberRefusedError,
    MemberUnreachableError,
)
from neighborhoods.snapshot.transports import shell_scripts
from neighborhoods.snapshot.transports.ssh import SshTransport
from neighborhoods.snapshot.transports.ssh_connections import SshConnections
from neighborhoods.snapshot.transports.ssh_destination import SshDestination

NEW = "e" * 64


@pytest.fixture
def pi(tmp_path: Path) -> Iterator[SshServer]:
    with SshServer(tmp_path / "pi") as server:
        homes.fill_home(server.home)
        yield server


async def refusal(transport: SshTransport) -> MemberError:
    """The error of listing, which the probe must tell too."""
    with pytest.raises(MemberError) as raised:
        await transport.list()
    probe = await transport.probe()
    assert not probe.reachable
    assert str(raised.value) in probe.detail
    assert "\n" not in f"{raised.value}{raised.value.do}"
    return raised.value


async def test_list_changed_host_key_refuses_and_sends_nothing(pi: SshServer) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", pi.folder / "other"], check=True)
    pi.trust("other")
    error = await refusal(pi.transport())
    assert isinstance(error, MemberRefusedError)
    assert str(error) == "pi answers with another SSH host key than the known one; nothing was sent."
    forget = f"ssh-keygen -R '[127.0.0.1]:{pi.port}' -f {pi.folder}/known_hosts"
    assert error.do == f"Reinstalled? {forget}, then ssh 127.0.0.1 once. Else keep away."


async def test_list_unknown_host_key_refuses_and_says_how_to_compare(pi: SshServer) -> None:
    (pi.folder / "known_hosts").write_text("")
    error = await refusal(pi.transport())
    assert isinstance(error, MemberRefusedError)
    assert "not known here" in str(error)
    assert (pi.folder / "known_hosts").read_text() == ""


async def test_list_password_wanted_is_never_asked_for(tmp_path: Path) -> None:
    with SshServer(tmp_path / "pi", options=["AuthorizedKeysFile=/dev/null"]) as pi:
        error = await refusal(pi.transport())
    assert isinstance(error, MemberRefusedError)
    assert "ssh-copy-id" in error.do


async def test_list_nobody_listens_says_so(pi: SshServer) -> None:
    pi.stop()
    error = await refusal(pi.transport())
    assert isinstance(error, MemberUnreachableError)
    assert "takes no SSH connections" in str(error)


async def test_list_unknown_name_says_so(pi: SshServer) -> None:
    transport = SshTransport(
        "pi",
        SshDestination.parse("no-such-host.invalid"),
        SshConnections(pi.control, config=pi.config),
    )
    assert "no machine is called" in str(await refusal(transport))


async def test_list_machine_asleep_ends_by_itself(pi: SshServer) -> None:
    transport = pi.transport()
    pi.pause()
    with pytest.raises(MemberUnreachableError, match="does not answer"):
        await transport.list()
    pi.pause(on=False)


async def test_read_banner_and_motd_before_the_stream_are_passed_over(tmp_path: Path) -> None:
    banner = tmp_path / "banner"
    banner.write_text("Welcome!\nAuthorized use only.\n" * 200)
    with SshServer(tmp_path / "pi", options=[f"Banner={banner}"], environment={"SHLVL": "0"}) as pi:
        content = homes.fill_home(pi.home)
        (pi.folder / ".bashrc").write_text(
            "echo Hello from bashrc; echo no line end >&2; printf 'no line end'\n"
        )
        transport = pi.transport()
        assert len((await transport.list()).twins) == 2
        assert await homes.read(transport.read_twin(homes.TWIN)) == content


async def test_list_shell_that_only_talks_is_told_apart(tmp_path: Path) -> None:
    with SshServer(tmp_path / "pi", options=["ForceCommand=echo This account is not available."]) as pi:
        error = await refusal(pi.transport())
    assert isinstance(error, BadMemberStreamError)
    assert "This account is not available" in str(error)


async def test_read_machine_without_tar_says_to_install_it(tmp_path: Path) -> None:
    with SshServer(tmp_path / "pi", tar="none") as pi:
        homes.fill_home(pi.home)
        transport = pi.transport()
        assert "has no tar" in (await transport.probe()).detail
        with pytest.raises(MemberError, match="has no tar"):
            await homes.read(transport.read_twin(homes.TWIN))


async def test_machine_without_gzip_is_read_and_written(tmp_path: Path) -> None:
    with SshServer(tmp_path / "pi", tools=[name for name in TOOLS if name != "gzip"]) as pi:
        content = homes.fill_home(pi.home)
        transport = pi.transport()
        assert await homes.read(transport.read_twin(homes.TWIN)) == content
        packed = await homes.archive(transport.read_twin(homes.TWIN), tmp_path / "twin.tar.gz", homes.TWIN)
        assert (await transport.write_twin(NEW, packed)).created == len(content)


@pytest.mark.parametrize(
    ("does", "said"), [("echo no gzip stream", "is damaged"), ("gzip.real", "is cut off")]
)
async def test_read_stream_that_gzip_spoils_is_refused(tmp_path: Path, does: str, said: str) -> None:
    with SshServer(tmp_path / "pi", tools=[*TOOLS, "head"]) as pi:
        homes.fill_home(pi.home)
        gzip = pi.folder / "bin/gzip"
        gzip.rename(gzip.with_name("gzip.real"))
        gzip.write_text(f"#!/bin/sh\n{does} | head -c 80\ncat >/dev/null\n")
        gzip.chmod(0o755)
        with pytest.raises(BadMemberStreamError, match=said):
            await homes.read(pi.transport().read_twin(homes.TWIN))


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another account")
def test_closed_folder_that_is_made_anew_fails_no_read() -> None:
    """A ``.git`` that belongs to root in the twin of an ordinary account: tar cannot open it."""
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name, *parts) for parts in ((), ("twins",), ("twins", homes.TWIN))]
        (folders[-1] / ".git").mkdir(parents=True)
        (folders[-1] / ".git").chmod(0o700)
        for folder in folders:
            folder.chmod(0o755)
        script = shell_scripts.read_twin("MARK", homes.TWIN, archived=False)
        environment = {**os.environ, "RAPP_HOME": name, "HOME": name}
        done = subprocess.run(
            ["sh", "-c", script], user=65534, env=environment, capture_output=True, check=False
        )
    assert b"\nMARK tar 0\n" in done.stderr, done.stderr


async def test_list_without_stat_compares_content(tmp_path: Path) -> None:
    tools = ("sh", "find", "dd", "df", "sed", "uname", "cksum")
    with SshServer(tmp_path / "pi", tools=tools, tar="gnu") as pi:
        (pi.folder / "bin/find").unlink()
        (pi.folder / "bin/find").write_text(  # a find without -printf
            '#!/bin/sh\nfor one; do [ "$one" = -printf ] && exit 1; done\nexec /usr/bin/find "$@"\n'
        )
        (pi.folder / "bin/find").chmod(0o755)
        content = homes.fill_home(pi.home)
        transport = pi.transport()
        before = (await transport.list()).twins[0]
        assert before.workspace_bytes >= sum(map(len, content.values()))
        assert await homes.read(transport.read_twin(homes.TWIN)) == content
        soul = pi.home / "twins" / homes.TWIN / "soul.md"
        at = soul.stat()
        soul.write_bytes(soul.read_bytes().upper())
        os.utime(soul, ns=(at.st_atime_ns, at.st_mtime_ns))
        assert (await transport.list()).twins[0].fingerprint != before.fingerprint


@pytest.mark.parametrize(
    "host", ["-oProxyCommand=touch x", "", "a b", "pi;id", "pi\n", "$(id)", "pi:99999", "[::1"]
)
def test_destination_host_that_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(BadMemberError):
        SshDestination.parse(host)


@pytest.mark.parametrize("user", ["-l", "a b", "x;id", "a\n", "$(id)"])
def test_destination_user_that_is_no_user_is_refused(user: str) -> None:
    with pytest.raises(BadMemberError):
        SshDestination.parse("pi", user)


@pytest.mark.parametrize("twin", ["../x", "", ".archive", "a/b", "-rf", "a\nb"])
async def test_read_and_write_hash_that_is_no_folder_is_refused(pi: SshServer, twin: str) -> None:
    with pytest.raises(BadMemberError):
        await homes.read(pi.transport().read_twin(twin))
    with pytest.raises(BadMemberError):
        await pi.transport().write_twin(twin, pi.folder / "none")


async def test_read_twin_with_a_name_for_a_shell_runs_nothing(pi: SshServer) -> None:
    name = "$(touch pwned) ;'\"touch pwned`touch pwned`"
    homes.fill_twin(pi.home / "twins" / name)
    found = await homes.read(pi.transport().read_twin(name))
    assert found["soul.md"]
    assert not list(pi.folder.rglob("pwned"))


async def test_write_disk_full_there_leaves_nothing(tmp_path: Path, pi: SshServer) -> None:
    small = pi.home / "twins"
    transport = pi.transport()
    packed = await homes.archive(transport.read_twin(homes.TWIN), tmp_path / "t.tar.gz", homes.TWIN)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", small], check=True)
    try:
        with pytest.raises(MemberDiskFullError, match="pi's disk is full"):
            await transport.write_twin(homes.TWIN, packed)
        assert not (small / homes.TWIN).exists()
        assert list((small / ".staging").iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", small], check=True)


async def test_read_link_cut_mid_stream_raises(pi: SshServer) -> None:
    (pi.home / "twins" / homes.TWIN / "large.bin").write_bytes(os.urandom(32 << 20))
    stream = pi.transport().read_twin(homes.TWIN)
    await anext(stream)
    pi.cut()
    with pytest.raises(MemberUnreachableError, match="broke"):
        async for _ in stream:
            pass


async def test_write_link_cut_anywhere_leaves_the_twin_as_it_was(pi: SshServer, tmp_path: Path) -> None:
    old = pi.home / "twins" / homes.TWIN
    (old / "large.bin").write_bytes(os.urandom(8 << 20))
    transport = pi.transport()
    packed = await homes.archive(transport.read_twin(homes.TWIN), tmp_path / "t.tar.gz", homes.TWIN)
    (old / "soul.md").write_bytes(b"mine")
    whole = homes.files_in(old)
    chance = random.Random(7)
    for _ in range(8):
        writing = asyncio.create_task(transport.write_twin(homes.TWIN, packed, overwrite=True))
        renewed = asyncio.create_task(transport.write_twin(NEW, packed))
        await asyncio.sleep(chance.uniform(0.05, 0.5))
        pi.cut()
        await asyncio.gather(writing, renewed, return_exceptions=True)
        async with asyncio.timeout(100):  # what runs there hears of the cut by itself
            while pi.programs():
                await asyncio.sleep(0.1)
        now = homes.files_in(old)
        assert now in (whole, {**whole, "soul.md": b"You are a gardener.\n"})
        if (pi.home / "twins" / NEW).exists():
            assert len(homes.files_in(pi.home / "twins" / NEW)) == len(whole) - 5  # what never travels
    await transport.write_twin(homes.TWIN, packed, overwrite=True)
    assert (old / "soul.md").read_bytes() == b"You are a gardener.\n"
    assert [left for left in (pi.home / "twins/.staging").iterdir() if left.name.startswith(homes.TWIN)] == []


async def test_read_reader_that_stops_leaves_no_program_running(pi: SshServer) -> None:
    (pi.home / "twins" / homes.TWIN / "large.bin").write_bytes(os.urandom(32 << 20))
    stream = pi.transport().read_twin(homes.TWIN)
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    async with asyncio.timeout(100):
        while pi.programs():
            await asyncio.sleep(0.1)


async def test_reads_at_once_share_one_connection(pi: SshServer) -> None:
    transport = pi.transport()
    await asyncio.gather(*(homes.read(transport.read_twin(homes.TWIN)) for _ in range(16)))
    accepted = (pi.folder / "sshd.log").read_text().count("Accepted publickey")
    assert accepted == 1


async def test_connection_serves_the_next_command(pi: SshServer) -> None:
    for _ in range(2):
        transport = pi.transport()
        await transport.list()
        await transport.aclose()
    assert (pi.folder / "sshd.log").read_text().count("Accepted publickey") == 1


async def test_connection_killed_between_reads_is_made_anew(pi: SshServer) -> None:
    transport = pi.transport()
    first = await transport.list()
    pi.cut()
    await asyncio.sleep(0.2)
    assert await transport.list() == first


async def test_control_folder_open_to_others_is_refused(pi: SshServer) -> None:
    pi.control.chmod(0o755)
    with pytest.raises(MemberError, match="not private"):
        await pi.transport().list()


async def test_folders_of_sockets_that_nobody_uses_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run))
    for name in ("rappd-ssh-old", "rappd-ssh-used", "rappd-ssh-new", "other"):
        (run / name).mkdir(mode=0o700)
    (run / "rappd-ssh-used/socket").touch()
    for name in ("rappd-ssh-old", "rappd-ssh-used", "other"):
        os.utime(run / name, (1_700_000_000, 1_700_000_000))
    connections = SshConnections(tmp_path / "control", config=Path("/dev/null"))
    with pytest.raises(MemberError):  # nobody listens there
        await SshTransport("pi", SshDestination.parse("127.0.0.1:1"), connections).list()
    left = {path.name for path in run.iterdir()}  # perhaps with the folder of this connection
    assert left & {"other", "rappd-ssh-new", "rappd-ssh-used", "rappd-ssh-old"} == {
        "other", "rappd-ssh-new", "rappd-ssh-used",
    }  # fmt: skip
