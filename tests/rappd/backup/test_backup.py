"""A home that was backed up comes back: conversations, twins, keys; and nothing of it leaks without a passphrase."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import orjson
import pytest
from fixtures import prefork
from fixtures.running_daemon import RunningDaemon, agent_source

from envelopes.identity.keys import IdentityKey
from rappd.backup import secrets
from rappd.backup.create import SEALED, back_up
from rappd.backup.restore import restore, verify
from rappd.backup.secrets import WrongPassphraseError, seal, unseal
from rappd.daemon.home import Home
from rappd.errors import ConflictError, RefusedError, UsageProblemError
from rappd.store.verify import verify as verify_record
from twins.eggs import integrity
from twins.errors import BadEggError
from twins.workspace.twin import mint
from twins.workspace.workspace import TwinLayout, exclusive_lock

Form = Literal["NFC", "NFD"]
PASSPHRASE = "four quiet brown owls"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a twin, an agent of its own, and secrets in every place that holds some."""
    found = Home(tmp_path / "home")
    found.create()
    found.identity()
    twin = mint(TwinLayout(found.root), "Rose", owner="ada")
    (twin.workspace.root / ".env").write_text("ROSE_TOKEN=thorny-secret\n")
    found.env_file.write_text("OPENAI_API_KEY=sk-house-secret\n")
    found.brainstem.mkdir()
    (found.brainstem / ".env").write_text("MAIL_PASSWORD=agent-secret\n")
    (found.brainstem / "notes.txt").write_text("plain")
    (found.brainstem / "run.sh").write_text("#!/bin/sh\n")
    (found.brainstem / "run.sh").chmod(0o700)
    (found.brainstem / "link").symlink_to("/etc/passwd")
    (found.brainstem / ".deps").mkdir()
    (found.brainstem / ".deps" / "big.py").write_text("made anew")
    return found


def made(home: Home, target: Path, passphrase: str = "") -> None:
    back_up(home.root, target, key=home.identity(), machine="desk", passphrase=passphrase)


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def test_passphrase_restores_keys_and_modes(home: Home, tmp_path: Path) -> None:
    made(home, tmp_path / "desk.backup", PASSPHRASE)
    done = restore(tmp_path / "desk.backup", tmp_path / "new", passphrase=PASSPHRASE)
    before = tree(home.root)
    del before["brainstem/.deps/big.py"]
    assert tree(tmp_path / "new") == before
    assert done.with_keys
    assert Home(tmp_path / "new").identity().fingerprint == home.identity().fingerprint
    assert (tmp_path / "new" / "brainstem" / "run.sh").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "new").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("passphrase", ["", PASSPHRASE])
def test_no_secret_is_readable_in_the_file(home: Home, tmp_path: Path, passphrase: str) -> None:
    made(home, tmp_path / "desk.backup", passphrase)
    with zipfile.ZipFile(tmp_path / "desk.backup") as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
    for secret in (b"thorny-secret", b"sk-house-secret", b"agent-secret", b"PRIVATE KEY"):
        assert secret not in everything
    assert b"plain" in everything


def test_without_passphrase_machine_gets_a_new_key(home: Home, tmp_path: Path) -> None:
    made(home, tmp_path / "desk.backup")
    done = restore(tmp_path / "desk.backup", tmp_path / "new")
    assert not done.with_keys
    assert "new one" in done.notes[0]
    assert not (tmp_path / "new" / "keys").exists()
    assert (tmp_path / "new" / "brainstem" / "notes.txt").read_text() == "plain"


def test_what_stays_behind_is_told(home: Home, tmp_path: Path) -> None:
    found = back_up(home.root, tmp_path / "b", key=home.identity(), machine="desk")
    left = dict(found.left_out)
    assert left["brainstem/link"] == "is a link, and links are not followed"
    assert left["keys/identity.pem"] == "holds keys, and no passphrase was given"


def test_key_that_an_agent_linked_in_is_in_no_backup(home: Home, tmp_path: Path) -> None:
    key = tmp_path / "id_of_the_owner"
    key.write_bytes(b"PRIVATE-OF-THE-OWNER")
    linked = home.brainstem / ".brainstem_data" / "notes.txt"
    linked.parent.mkdir(exist_ok=True)
    os.link(key, linked)
    found = back_up(home.root, tmp_path / "b", key=home.identity(), machine="desk")
    assert dict(found.left_out)["brainstem/.brainstem_data/notes.txt"].startswith("has another name")
    with zipfile.ZipFile(tmp_path / "b") as file:
        assert not [name for name in file.namelist() if b"PRIVATE-OF" in file.read(name)]


def test_only_rebuilt_files_are_left_out_silently(home: Home, tmp_path: Path) -> None:
    mine = {
        "brainstem/.brainstem_data/ports/lisbon.txt": "a harbour",
        "brainstem/.brainstem_data/pids/list.txt": "mine",
        "brainstem/.brainstem_data/.waiting/room.txt": "mine",
        "brainstem/.brainstem_data/draft.tmp": "mine",
        "brainstem/.brainstem_data/.draft.tmp": "mine",
    }
    anew = {
        "ports/x.port": "7081",
        "eggs/.waiting/aa/x.egg": "an egg",
        "twins/.staging/x/soul.md": "half",
        "brainstem/.brainstem_data/.memory.json.4711.0a1b2c3d.tmp": "half",
        ".backup-killed/rappd.db": "of a backup that was killed",
    }
    for path, text in {**mine, **anew}.items():
        (home.root / path).parent.mkdir(parents=True, exist_ok=True)
        (home.root / path).write_text(text)
    found = back_up(home.root, tmp_path / "b", key=home.identity(), machine="desk")
    restore(tmp_path / "b", tmp_path / "new")
    there = tree(tmp_path / "new")
    assert {path: there[path].decode() for path in mine} == mine
    assert there.keys().isdisjoint(anew)
    assert {path for path, _ in found.left_out}.isdisjoint(anew)
    assert not (home.root / ".backup-killed").exists()


def test_what_agents_take_away_meanwhile_stops_no_backup(home: Home, tmp_path: Path) -> None:
    memory = home.brainstem / "memory"
    memory.mkdir()
    for number in range(200):
        (memory / f"{number}.json").write_text("{}" * 5000)

    def take_away(done: int, whole: int) -> None:
        for path in list(memory.iterdir())[:5]:
            path.unlink()

    found = back_up(home.root, tmp_path / "b", key=home.identity(), machine="desk", progress=take_away)
    gone = [path for path, why in found.left_out if why == "went while the backup was made"]
    assert gone
    restore(tmp_path / "b", tmp_path / "new")
    assert not set(gone) & tree(tmp_path / "new").keys()


def test_a_wrong_a_missing_and_a_short_passphrase(home: Home, tmp_path: Path) -> None:
    with pytest.raises(UsageProblemError):
        made(home, tmp_path / "short", "seven77")
    assert not (tmp_path / "short").exists()
    made(home, tmp_path / "desk.backup", PASSPHRASE)
    with pytest.raises(RefusedError, match="sealed"):
        restore(tmp_path / "desk.backup", tmp_path / "new")
    with pytest.raises(WrongPassphraseError):
        restore(tmp_path / "desk.backup", tmp_path / "new", passphrase="five loud red owls")
    with pytest.raises(WrongPassphraseError):
        verify(tmp_path / "desk.backup", passphrase="five loud red owls")
    assert verify(tmp_path / "desk.backup", passphrase=PASSPHRASE)["with_keys"]
    assert not (tmp_path / "new").exists()
    assert [path.name for path in tmp_path.iterdir() if "restoring" in path.name] == []


def test_a_home_that_is_in_use_is_never_written_over(home: Home, tmp_path: Path) -> None:
    made(home, tmp_path / "desk.backup")
    before = tree(home.root)
    with pytest.raises(ConflictError):
        restore(tmp_path / "desk.backup", home.root)
    assert tree(home.root) == before


def test_flipped_byte_changes_nothing_restored(home: Home, tmp_path: Path) -> None:
    made(home, tmp_path / "desk.backup", PASSPHRASE)
    whole = (tmp_path / "desk.backup").read_bytes()
    before = tree(home.root)
    del before["brainstem/.deps/big.py"]
    refused = 0
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        (tmp_path / "bad").write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        try:
            restore(tmp_path / "bad", tmp_path / f"new{at}", passphrase=PASSPHRASE)
        except BadEggError:
            refused += 1
            assert not (tmp_path / f"new{at}").exists()
        else:  # a time of day in the archive's own headers
            assert tree(tmp_path / f"new{at}") == before
    assert refused > 50


def members_of(backup: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(backup) as whole:
        return {name: whole.read(name) for name in whole.namelist()}


def test_backup_whose_files_are_not_the_signed_ones_is_refused(home: Home, tmp_path: Path) -> None:
    """Written anew as an archive that is whole in itself; only the signed list tells."""
    made(home, tmp_path / "desk.backup")
    honest = members_of(tmp_path / "desk.backup")
    name = next(name for name in honest if name.endswith("soul.md"))
    without = {other: content for other, content in honest.items() if other != name}
    for number, members in enumerate(
        (
            {**honest, name: b"another soul"},
            {**honest, "home/brainstem/notes.txt": b"slipped in"},
            without,
            honest,
        )
    ):
        with zipfile.ZipFile(tmp_path / f"{number}.backup", "w") as written:
            for member, content in members.items():
                written.writestr(member, content)
        if members is honest:
            assert restore(tmp_path / f"{number}.backup", tmp_path / f"new{number}").files, "positive control"
            continue
        with pytest.raises(BadEggError, match="is damaged"):
            restore(tmp_path / f"{number}.backup", tmp_path / f"new{number}")
        assert not (tmp_path / f"new{number}").exists()


def test_a_backup_signed_by_somebody_else_is_refused(home: Home, tmp_path: Path) -> None:
    made(home, tmp_path / "desk.backup")
    assert verify(tmp_path / "desk.backup")["fingerprint"] == home.identity().fingerprint
    members = members_of(tmp_path / "desk.backup")
    del members[integrity.MEMBER]
    members["home/brainstem/notes.txt"] = b"slipped in"
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    members[integrity.MEMBER] = integrity.seal(hashes, at="2026-11-22T04:34:00Z", key=IdentityKey.generate())
    with zipfile.ZipFile(tmp_path / "forged.backup", "w") as forged:
        for name, content in members.items():
            forged.writestr(name, content)
    with pytest.raises(BadEggError, match="not signed by the machine it names"):
        restore(tmp_path / "forged.backup", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def written_by(home: Home, path: Path, members: dict[str, bytes]) -> None:
    """Writes a backup of these members, signed by the home's own key."""
    others = {name: content for name, content in members.items() if name != integrity.MEMBER}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in others.items()}
    seal = integrity.seal(hashes, at="2026-11-22T04:34:00Z", key=home.identity())
    with zipfile.ZipFile(path, "w") as written:
        for name, content in {**others, integrity.MEMBER: seal}.items():
            written.writestr(name, content)


def test_files_of_somebody_else_round_the_owners_keys_are_refused(home: Home, tmp_path: Path) -> None:
    """No passphrase is needed to put other agents beside the sealed keys, where one can write to a backup."""
    made(home, tmp_path / "desk.backup", PASSPHRASE)
    thief = Home(tmp_path / "thief")
    thief.create()
    (thief.brainstem / "agents").mkdir(parents=True)
    (thief.brainstem / "agents" / "weather_agent.py").write_text("take the keys")
    made(thief, tmp_path / "thief.backup", PASSPHRASE)
    members = members_of(tmp_path / "thief.backup") | {SEALED: members_of(tmp_path / "desk.backup")[SEALED]}
    written_by(thief, tmp_path / "mixed.backup", members)
    for name in ("desk.backup", "thief.backup"):
        assert verify(tmp_path / name, passphrase=PASSPHRASE)["with_keys"], "positive control"
    for act in (
        lambda: verify(tmp_path / "mixed.backup", passphrase=PASSPHRASE),
        lambda: restore(tmp_path / "mixed.backup", tmp_path / "new", passphrase=PASSPHRASE),
    ):
        with pytest.raises(BadEggError, match="of another machine than the one that signed it"):
            act()
    assert [path.name for path in tmp_path.iterdir() if "new" in path.name] == []


@pytest.mark.parametrize(("sealed", "typed"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_passphrase_opens_however_a_system_spells_its_letters(sealed: Form, typed: Form) -> None:
    words = "zwölf müde Käuze"
    assert unseal(seal(b"keys", normalize(sealed, words)), normalize(typed, words)) == b"keys"
    with pytest.raises(WrongPassphraseError):
        unseal(seal(b"keys", words), "zwolf mude Kauze")


def test_seal_of_an_earlier_version_opens_by_its_own_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    words = normalize("NFD", "zwölf müde Käuze")
    monkeypatch.setattr(secrets.unicodedata, "normalize", lambda form, text: text)
    former = seal(b"keys", words)
    monkeypatch.undo()
    assert unseal(former, words) == unseal(former, normalize("NFC", words)) == b"keys"


@pytest.mark.parametrize("words", [" " * 12, " seven77 ", "u\u0308" * 7, "\ud800" * 9])
def test_passphrase_of_nothing_much_is_refused(words: str) -> None:
    with pytest.raises(UsageProblemError):
        seal(b"keys", words)


def test_full_disk_leaves_no_home_and_says_so(home: Home, tmp_path: Path) -> None:
    (home.brainstem / "large.bin").write_bytes(os.urandom(300_000))
    made(home, tmp_path / "desk.backup", PASSPHRASE)
    (tmp_path / "words").write_text(PASSPHRASE)
    command = [
        sys.executable, "-c",
        "import resource, runpy, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "runpy.run_module('rappd', run_name='__main__')",
    ]  # fmt: skip
    tail = ["--passphrase-file", str(tmp_path / "words")]
    full = _run(Home(tmp_path / "new"), *command, "restore", str(tmp_path / "desk.backup"), *tail)
    assert (full.returncode, "nothing was restored" in full.stderr) == (9, True), full.stderr
    full = _run(home, *command, "backup", str(tmp_path / "other.backup"), *tail)
    assert (full.returncode, "nothing was packed" in full.stderr) == (9, True), full.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"home", "desk.backup", "words"}
    assert not list(home.root.glob(".backup-*"))


def test_home_that_is_a_link_is_restored_behind_it_and_a_file_is_kept(home: Home, tmp_path: Path) -> None:
    made(home, tmp_path / "desk.backup")
    assert (tmp_path / "desk.backup").stat().st_mode & 0o777 == 0o600
    (tmp_path / "other disk").mkdir()
    (tmp_path / "link").symlink_to("other disk")
    restore(tmp_path / "desk.backup", tmp_path / "link")
    assert (tmp_path / "other disk" / "brainstem" / "notes.txt").read_text() == "plain"
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConflictError, match="no empty folder"):
        restore(tmp_path / "desk.backup", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_killed_while_it_restores_it_leaves_no_home(home: Home, tmp_path: Path) -> None:
    made(home, tmp_path / "desk.backup", PASSPHRASE)
    program = (
        "import os, sys\nfrom pathlib import Path\nimport rappd.backup.restore as r\n"
        "real = r.extract\ndef half(*a, **k):\n    real(*a, **k)\n    os._exit(9)\nr.extract = half\n"
        "r.restore(Path(sys.argv[1]), Path(sys.argv[2]), passphrase=sys.argv[3])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "desk.backup", tmp_path / "new", PASSPHRASE]
    )
    assert done.returncode == 9
    assert not (tmp_path / "new").exists()
    (killed,) = tmp_path.glob(".new.*.restoring")
    busy = tmp_path / ".new.of-another.restoring"
    busy.mkdir()
    with exclusive_lock(busy):
        restore(tmp_path / "desk.backup", tmp_path / "new", passphrase=PASSPHRASE)
    assert Home(tmp_path / "new").identity().fingerprint == home.identity().fingerprint
    assert (killed.exists(), busy.exists()) == (False, True)


def test_the_seal_binds_what_stands_beside_it() -> None:
    sealed = seal(b"keys", PASSPHRASE)
    assert unseal(sealed, PASSPHRASE) == b"keys"
    with pytest.raises(WrongPassphraseError):
        unseal(sealed.replace(b'"p":1', b'"p":2'), PASSPHRASE)
    with pytest.raises(WrongPassphraseError):
        unseal(sealed.replace(b'"n":65536', b'"n":99999999999'), PASSPHRASE)
    with pytest.raises(WrongPassphraseError):
        unseal(b"[]", PASSPHRASE)


@pytest.mark.parametrize(("name", "value"), [("_N", 1 << 19), ("_R", 9), ("_P", 5)])
def test_seal_that_asks_for_much_work_is_not_opened(
    monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    """Made by the honest way, so that its passphrase opens it for the attacker."""
    monkeypatch.setattr(secrets, "_N", 1 << 10)
    assert unseal(seal(b"keys", PASSPHRASE), PASSPHRASE) == b"keys", "positive control"
    monkeypatch.setattr(secrets, name, value)
    with pytest.raises(WrongPassphraseError):
        unseal(seal(b"keys", PASSPHRASE), PASSPHRASE)


def test_a_living_home_is_backed_up_and_goes_on_elsewhere(
    make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.drop("oak_agent.py", agent_source("Oak", 'return "oak"'))
    daemon.start()
    daemon.chat("remember the oak", session_id="s1")
    (tmp_path / "words").write_text(PASSPHRASE + "\n")
    target = tmp_path / "desk.backup"
    done = daemon.cli("backup", str(target), "--passphrase-file", str(tmp_path / "words"), "--json")
    assert done.returncode == 0, done.stderr
    daemon.chat("after the backup", session_id="s1")
    refused = daemon.cli("restore", str(target), "--passphrase-file", str(tmp_path / "words"))
    assert refused.returncode == 9
    daemon.stop()

    other = make_daemon("other", LLM_FAKE="1")
    back = other.cli("restore", str(target), "--passphrase-file", str(tmp_path / "words"))
    assert back.returncode == 0, back.stderr
    assert "is back" in back.stdout
    assert not list(verify_record(other.home / "rappd.db").problems)
    other.start()
    threads = other.cli("threads", "list", "--json").stdout
    assert "remember the oak" in threads
    assert "after the backup" not in threads
    assert other.post("/agents/run", {"agent": "Oak"}, control=True).json()["result"] == "oak"


def test_without_a_terminal_nobody_is_asked(home: Home, tmp_path: Path) -> None:
    command = ["backup", str(tmp_path / "b")]
    done = _rappd(home, *command)
    assert done.returncode == 2
    assert "passphrase" in done.stderr
    assert not (tmp_path / "b").exists()


def test_a_check_tries_the_passphrase_that_it_is_given(home: Home, tmp_path: Path) -> None:
    made(home, tmp_path / "b", PASSPHRASE)
    (tmp_path / "right").write_text(f"{PASSPHRASE}\n")
    (tmp_path / "wrong").write_text("five loud red owls\n")
    command = ["restore", "--check", str(tmp_path / "b")]
    assert "its keys were not opened" in _rappd(home, *command).stdout
    right = _rappd(home, *command, "--passphrase-file", str(tmp_path / "right"))
    assert "✓ the passphrase opens its keys" in right.stdout
    wrong = _rappd(home, *command, "--passphrase-file", str(tmp_path / "wrong"))
    assert (wrong.returncode, wrong.stdout) == (5, "")


def test_empty_passphrase_file_never_means_without_keys(home: Home, tmp_path: Path) -> None:
    """The file of a script whose secret did not come."""
    (tmp_path / "words").write_text("\r\n")
    command = ["backup", str(tmp_path / "b")]
    done = _rappd(home, *command, "--passphrase-file", str(tmp_path / "words"))
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "✗ words holds no passphrase")
    assert not (tmp_path / "b").exists()
    assert _rappd(home, *command, "--without-keys").returncode == 0


def test_names_and_dates_in_a_backup_do_not_steer_the_terminal(home: Home, tmp_path: Path) -> None:
    back_up(home.root, tmp_path / "b", key=home.identity(), machine="desk")
    members = members_of(tmp_path / "b")
    manifest = orjson.loads(members["manifest.json"])
    manifest |= {"machine": "\x1b[31mred", "backed_up_at": "\x1b]0;owned\x07\x1b[2J2026"}
    members["manifest.json"] = orjson.dumps(manifest)
    written_by(home, tmp_path / "b", members)
    said = _rappd(home, "restore", "--check", str(tmp_path / "b"))
    assert "whole, of red" in said.stdout
    assert "\x1b" not in said.stdout + said.stderr and "\x07" not in said.stdout


def _rappd(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "RAPP_HOME": str(home.root)}
    return prefork.run([*words], {**environment, "SSL_CERT_FILE": str(prefork.NO_AUTHORITY)}, "", 100)


def _run(home: Home, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={**os.environ, "LANG": "C.UTF-8", "RAPP_HOME": str(home.root)},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
