"""Files that never travel, however spelled and wherever they lie; and those that must not be left behind for it."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.twins.eggs.writers.nest import WHOLE, Nest, contents
from twins.eggs.writers import exclusions
from twins.eggs.writers.exclusions import ExclusionReason
from twins.eggs.writers.formats import EggFormat
from twins.eggs.writers.source_tree import SourceTree
from twins.errors import BadFileError, TwinConflictError

CANARY = b"canary-that-must-not-fly"

FILES = [
    *(
        ".env",
        ".env.local",
        ".envrc",
        "prod.env",
        ".copilot_token",
        ".copilot_session",
        ".copilot_pending",
        "voice.zip",
    ),
    *(
        ".DS_Store",
        "Thumbs.db",
        "api.token",
        "login.session",
        "client.secret",
        "server.key",
        "private-estate-secret",
    ),
    *(
        "private-estate-map.json",
        "brainstem.log",
        "lifecycle.log",
        "identity.pem",
        "device.crt",
        "device.p12",
        "device.pfx",
    ),
    *(
        "id_ed25519",
        "id_rsa",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "agent.pyc",
        "agent.pyo",
        "._agent.py",
    ),
    *(
        ".token",
        ".key",
        "API.KEY.bak",
        "server.key~",
        "server.key.1",
        "#server.key#",
        "server (1).key",
        "server.key (1)",
    ),
    *("credentials.json", "credentials", "secrets.json", "secrets.yaml", "app-secrets.toml", "wallet.dat"),
    *("service-account.json", "service_account_prod.json", "client_secret_12.apps.json", "kubeconfig"),
    *(
        "prod.kubeconfig",
        "terraform.tfstate",
        "terraform.tfstate.backup",
        "prod.tfvars",
        "prod.auto.tfvars.json",
    ),
    *(
        "office.ovpn",
        "Login Data",
        "Cookies",
        "cookies.txt",
        "key4.db",
        "logins.json",
        ".pgpass",
        ".htpasswd",
    ),
    *("id_ecdsa", "x.jks", "x.keystore", "x.ppk", "x.kdbx", "x.p8", "office.mobileconfig", "secring.gpg"),
    *(
        "shadow",
        "UTC--2026-11-21T09-40-00.0Z--4f2a",
        "login.keychain-db",
        ".dockercfg",
        ".my.cnf",
        "wg0.conf",
    ),
    *("application_default_credentials.json", "x-firebase-adminsdk-1.json", ".vault-token", "x.rdp"),
]
FOLDERS = [
    *(
        "__pycache__",
        ".pytest_cache",
        "venv",
        ".venv",
        "node_modules",
        "private",
        ".git",
        ".deps",
        "keys",
        ".ssh",
        ".aws",
    ),
    *("old.session", "the.secret", ".mypy_cache"),
]
PLACES = [
    "",
    "agents/",
    "agents/deep/er/",
    "services/",
    ".brainstem_data/",
    ".brainstem_data/a/b/",
    "rapps/kanban/ui/",
    "notes/",
]


def spelled(name: str) -> list[str]:
    fullwidth = "".join(chr(ord(one) + 0xFEE0) if "a" <= one <= "z" else one for one in name)
    return [name, name.upper(), name.title(), name.swapcase(), fullwidth]


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize("place", PLACES)
def test_no_excluded_file_travels_under_any_spelling(nest: Nest, form: EggFormat, place: str) -> None:
    for name in FILES:
        for spelling in spelled(name):
            nest.put(place + spelling, CANARY)
    members = nest.packed(form)
    assert not [name for name, content in members.items() if CANARY in content]


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize("place", PLACES)
def test_nothing_in_an_excluded_folder_travels(nest: Nest, form: EggFormat, place: str) -> None:
    for name in FOLDERS:
        for spelling in spelled(name):
            nest.put(f"{place}{spelling}/some/file.txt", CANARY)
    packed = nest.pack(form)
    assert not [name for name, content in contents(packed.path).items() if CANARY in content]


@pytest.mark.parametrize("form", WHOLE)
def test_what_is_this_machines_own_stays(nest: Nest, form: EggFormat) -> None:
    for path in (
        *(
            "HATCH_RECEIPT.json",
            "archived.json",
            "logs/today.txt",
            "src/x.py",
            ".bond/last-pre-bond.egg",
            ".repos.json",
        ),
        *(".remote_agents/o__r/x_agent.py", ".staging/x", ".brainstem_data/kept/x", ".brainstem_data/Kept/x"),
        *(
            ".brainstem_data/soul_history/x.md",
            ".brainstem_data/unplaced/x",
            ".brainstem_data/.memory.json.7.ab.tmp",
        ),
        *("agents/__init__.py", "agents/basic_agent.py", "services/__init__.py", "rapps/kanban/placed.json"),
    ):
        nest.put(path, CANARY)
    assert not [name for name, content in nest.packed(form).items() if CANARY in content]


@pytest.mark.parametrize("form", [EggFormat.AGENT, EggFormat.RAPPLICATION, EggFormat.RAPP1_RAPPLICATION])
def test_no_secret_file_travels_with_a_part_either(nest: Nest, form: EggFormat) -> None:
    for name in FILES:
        for place in ("agents/", "rapps/kanban/ui/", ".brainstem_data/kanban/", "services/"):
            nest.put(place + name, CANARY)
    nest.put(
        "rapps/kanban/placed.json",
        '["agents/kanban_agent.py","agents/server.key","services/.env","agents/api.token"]',
    )
    assert not [name for name, content in nest.packed(form).items() if CANARY in content]


def test_names_that_only_look_alike_travel(nest: Nest) -> None:
    kept = [
        *(
            "keyboard.md",
            "tokens_of_love.md",
            "secretary.txt",
            "environment.md",
            "sessions.json",
            "monkey",
            "my.keynote",
        ),
        *("privateer.txt", "key", "token.txt", "src.txt", "git.md", "venv.md", "kept.md", "logs.md"),
    ]
    for name in kept:
        nest.put(f".brainstem_data/{name}")
        nest.put(f"notes/{name}")
    nest.put(".brainstem_data/src/x")
    nest.put(".brainstem_data/game/kept/x")
    nest.put("agents/lib/__init__.py", "A = 1\n")
    members = nest.packed().keys()
    assert {f"data/{name}" for name in kept} | {f"notes/{name}" for name in kept} <= members
    assert {"data/src/x", "data/game/kept/x", "agents/lib/__init__.py"} <= members


def test_everything_left_behind_is_named_with_its_reason_and_nothing_empty(nest: Nest) -> None:
    nest.put("agents/__pycache__/x.pyc")
    nest.put(".brainstem_data/api.key")
    (nest.workspace.root / "link").symlink_to("soul.md")
    (nest.workspace.root / "logs" / "empty").mkdir(parents=True)
    nest.put("prod.env", "")
    nest.put("client.secret", "{}\n")
    left = dict(nest.pack().left_out)
    assert left == {
        ".brainstem_data/api.key": ExclusionReason.SECRET,
        ".brainstem_data/kept": ExclusionReason.LOCAL,
        ".brainstem_data/private": ExclusionReason.PRIVATE,
        ".brainstem_data/soul_history": ExclusionReason.LOCAL,
        ".deps": ExclusionReason.MADE_ANEW,
        ".env": ExclusionReason.SECRET,
        ".remote_agents": ExclusionReason.LOCAL,
        "agents/__pycache__": ExclusionReason.MADE_ANEW,
        "agents/basic_agent.py": ExclusionReason.MADE_ANEW,
        "link": ExclusionReason.LINK,
        "rapps/kanban/placed.json": ExclusionReason.LOCAL,
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_file_travels_or_is_named_and_nothing_else_comes(bare: Nest, data: st.DataObject) -> None:
    fresh = Nest(Path(tempfile.mkdtemp(dir=bare.folder)))
    component = st.text(st.sampled_from("abcKEYenv._ -é漢"), min_size=1, max_size=6).filter(
        lambda text: text.strip(". ") and text == text.strip()
    ) | st.sampled_from([*FILES, *FOLDERS, "agents", ".brainstem_data", "services", "data", "rapps"])
    paths = data.draw(st.lists(st.lists(component, min_size=1, max_size=3).map("/".join), max_size=12))
    laid = set()
    for path in paths:
        try:
            fresh.put(path, path.encode())
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
        laid.add(path)
    try:
        packed = fresh.pack()
    except BadFileError:
        names = [unicodedata.normalize("NFC", path).casefold() for path in laid]
        assert len(set(names)) < len(names) or any(path.casefold() != path for path in laid), (
            "nothing collided"
        )
        return
    members = contents(packed.path)
    left = [one.path for one in packed.left_out]
    for path in laid:
        name = (
            f"data/{path.removeprefix('.brainstem_data/')}" if path.startswith(".brainstem_data/") else path
        )
        if any(path == one or path.startswith(f"{one}/") for one in left):
            continue
        assert members[name] == path.encode()
    made = {"rappid.json", "soul.md", "bonds.json", "manifest.json", "integrity.json"}
    assert len(members.keys() - made) <= len(laid)


def test_file_with_another_name_on_the_disk_stays_behind(nest: Nest) -> None:
    key = nest.folder / "id_of_the_owner"
    key.write_bytes(CANARY)
    root = nest.workspace.root
    nest.put(".brainstem_data/own.txt", b"mine")
    for name in ("notes/readme.txt", "agents/readme_agent.py", ".brainstem_data/notes.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        os.link(key, root / name)
    for form in WHOLE:
        packed = nest.pack(form)
        members = contents(packed.path)
        assert not [name for name, content in members.items() if CANARY in content]
        assert any(content == b"mine" for content in members.values())
        left = {one.path for one in packed.left_out if one.why is ExclusionReason.OTHER_NAMES}
        assert left >= {"agents/readme_agent.py", ".brainstem_data/notes.txt"}


def test_file_that_becomes_a_hard_link_while_it_is_read_brings_nothing_in(nest: Nest) -> None:
    nest.put("notes/a.txt", b"mine")
    with SourceTree(nest.workspace.root) as tree:
        assert tree.open("notes/a.txt") == b"mine"
        os.link(nest.workspace.root / "notes/a.txt", nest.folder / "elsewhere")
        assert tree.open("notes/a.txt") is None
        assert tree.size("notes/a.txt") is None


def test_links_are_not_followed(nest: Nest) -> None:
    outside = nest.folder / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "plain.txt").write_bytes(CANARY)
    (outside / "x_agent.py").write_bytes(CANARY)
    root = nest.workspace.root
    (root / "notes").symlink_to(outside)
    (nest.workspace.agents / "x_agent.py").symlink_to(outside / "x_agent.py")
    (nest.workspace.agents / "more").symlink_to(outside)
    (nest.workspace.data / "loop").symlink_to(root)
    (nest.workspace.data / "broken").symlink_to("nowhere")
    for form in WHOLE:
        packed = nest.pack(form)
        assert not [name for name, content in contents(packed.path).items() if CANARY in content]
        assert ".brainstem_data/loop" in {
            left.path for left in packed.left_out if left.why is ExclusionReason.LINK
        }
    for name in ("soul.md", "agents", ".brainstem_data", "services"):
        (root / name).rename(nest.folder / f"was {name}")
        (root / name).symlink_to(outside if name != "soul.md" else outside / "x_agent.py")
    members = nest.packed()
    assert not [name for name, content in members.items() if CANARY in content]
    (root / "rappid.json").rename(outside / "rappid.json")
    (root / "rappid.json").symlink_to(outside / "rappid.json")
    with pytest.raises(Exception, match="nobody"):
        nest.pack()


def test_pipes_sockets_and_the_like_neither_travel_nor_hang(
    nest: Nest, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(nest.workspace.data / "pipe")
    monkeypatch.chdir(nest.workspace.data)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        left = dict(nest.pack().left_out)
    assert (
        left[".brainstem_data/pipe"] is ExclusionReason.NO_FILE
        and left[".brainstem_data/socket"] is ExclusionReason.NO_FILE
    )


def test_a_folder_that_turns_into_a_link_brings_nothing_in(nest: Nest) -> None:
    outside = nest.folder / "outside"
    outside.mkdir()
    for number in range(40):
        (outside / f"{number}.txt").write_bytes(CANARY)
        nest.put(f".brainstem_data/here/{number}.txt", b"own")
    here, aside, link = (nest.workspace.data / name for name in ("here", "aside", "link"))
    link.symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            here.rename(aside)
            link.rename(here)
            here.rename(link)
            aside.rename(here)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(30):
            try:
                members = nest.packed(key=None)
            except (TwinConflictError, BadFileError):
                continue
            assert not [name for name, content in members.items() if CANARY in content]
    finally:
        stop.set()
        swapping.join()


def test_a_file_that_shrinks_or_goes_while_it_is_read(bare: Nest) -> None:
    path = bare.put(".brainstem_data/large", bytes(3 << 20))
    with SourceTree(bare.workspace.root) as tree:
        content = tree.open(".brainstem_data/large")
        assert content is not None and not isinstance(content, bytes)
        next(content)
        os.truncate(path, 1 << 20)
        with pytest.raises(TwinConflictError, match="changed"):
            list(content)
        path.unlink()
        assert tree.open(".brainstem_data/large") is None and tree.size(".brainstem_data/large") is None


def test_folders_without_end_are_refused(bare: Nest) -> None:
    bare.put("/".join([".brainstem_data", *["d"] * 70, "x"]))
    with pytest.raises(BadFileError, match="too deep"):
        bare.pack()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_said_not_lost(bare: Nest) -> None:
    bare.put(".brainstem_data/closed").chmod(0)
    with pytest.raises(BadFileError, match="closed"):
        bare.pack()


@given(
    st.sampled_from(FILES + FOLDERS),
    st.lists(st.booleans(), min_size=40, max_size=40),
    st.sampled_from(["", " ", ".", " ."]),
)
def test_no_mixture_of_cases_lets_a_name_through(name: str, upper: list[bool], end: str) -> None:
    mixed = "".join(one.upper() if up else one.lower() for one, up in zip(name, upper, strict=False)) + end
    assert exclusions.by_name(mixed) is not None


@pytest.mark.parametrize(
    "name",
    [
        "credentials.md", "credentials_agent.py", "secrets.py", "secret_garden.json", "cookies.json", "shadow.md", "terraform.md",
        "kubeconfig_notes.md", "service-account.md", "wallet.json", "logins.md", "account.json",
    ],
)  # fmt: skip
def test_name_that_only_resembles_a_secret_file_travels(name: str) -> None:
    assert exclusions.by_name(name) is None


def test_odd_names_of_a_home_are_packed_and_told(nest: Nest) -> None:
    nest.put(".brainstem_data/CON.md", "mine")
    nest.put(".brainstem_data/picture.png", "x")
    packed = nest.pack()
    assert packed.odd_names == {".brainstem_data/CON.md": "CON.md is the name of a device on Windows"}
    assert packed.unread == {"picture": 1}
    assert contents(packed.path)["data/CON.md"] == b"mine"


def test_files_whose_names_are_not_utf8_stay_behind_alone(nest: Nest) -> None:
    nest.put("notes/good.md")
    notes = os.fsencode(nest.workspace.root / "notes")
    Path(os.fsdecode(notes + b"/f\xf6lder")).mkdir()
    for path in (b"/caf\xe9.md", b"/f\xf6lder/x.md"):
        Path(os.fsdecode(notes + path)).write_text("x")
    done = nest.pack()
    assert "notes/good.md" in contents(done.path)
    left = [one.path for one in done.left_out if one.why is ExclusionReason.NOT_UTF8]
    assert left == ["notes/caf\\xe9.md", "notes/f\\xf6lder/x.md"]
