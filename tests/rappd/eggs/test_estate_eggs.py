"""Estate eggs: packed with the eggs of their twins, hatched each as its own kind, and never with the private tier."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import Terminal

Make = Callable[..., RunningDaemon]
KEY = "0d51" + "a" * 60
OWNER = "rappid:@ada/desk:" + "e" * 64
SECRETS = ("private-estate-secret", "private-estate-map.json")


@pytest.fixture
def desk(make_daemon: Make) -> RunningDaemon:
    """A home at rest with two twins, a neighborhood, and a private tier."""
    daemon = make_daemon("desk", LLM_FAKE="1", RAPPD_NAME="desk", RAPPD_ESTATE_PRIVATE="ada/bones")
    for name in ("gardener", "cook"):
        assert daemon.cli("twins", "new", name).returncode == 0
    assert daemon.cli("neighborhood", "create", "Book club").returncode == 0
    for twin in (daemon.home / "twins").iterdir():
        if not twin.name.startswith("."):
            (twin / "agents").mkdir(exist_ok=True)
            (twin / "agents" / "clock_agent.py").write_text(agent_source("Clock"))
            for name in SECRETS:
                (twin / name).write_text("s3cret-of-the-private-tier")
            (twin / "private").mkdir()
            (twin / "private" / "note.md").write_text("s3cret-of-the-private-tier")
    for name in SECRETS:
        (daemon.home / name).write_text("s3cret-of-the-private-tier")
    return daemon


def done(daemon: RunningDaemon, *words: str | Path, code: int = 0) -> Any:
    found = daemon.cli(*words, "--json")
    assert found.returncode == code, (found.stdout, found.stderr)
    return json.loads(found.stdout or found.stderr)


def keys(daemon: RunningDaemon) -> set[str]:
    folder = daemon.home / "twins"
    return (
        {one.name for one in folder.iterdir() if not one.name.startswith(".")} if folder.exists() else set()
    )


def tree(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def packed(daemon: RunningDaemon, path: Path) -> Path:
    found = done(daemon, "estate", "pack", "-o", path)["packed"]
    assert len(found["members"]) == 3
    return path


def test_estate_egg_never_holds_the_private_tier(desk: RunningDaemon, tmp_path: Path) -> None:
    path = packed(desk, tmp_path / "estate.egg")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        whole = b"".join(map(archive.read, names))
        manifest = json.loads(archive.read("manifest.json"))
    assert b"s3cret-of-the-private-tier" not in whole
    assert not [name for name in names if "private" in name or "/keys" in name]
    assert (manifest["schema"], manifest["scale"]) == ("brainstem-egg/2.3-estate", "estate")
    assert manifest["private_estate_pointer"] == "ada/bones"
    assert {row["hash"] for row in manifest["members"]} >= keys(desk)


def test_estate_egg_of_a_running_daemon_has_the_pointer_as_it_is_set_now(
    make_daemon: Make, tmp_path: Path
) -> None:
    daemon = make_daemon("desk", LLM_FAKE="1", RAPPD_NAME="desk").start()
    assert daemon.cli("config", "set", "estate.private", "ada/elsewhere").returncode == 0
    done(daemon, "estate", "pack", "--no-twins", "-o", tmp_path / "estate.egg")
    with zipfile.ZipFile(tmp_path / "estate.egg") as archive:
        assert json.loads(archive.read("manifest.json"))["private_estate_pointer"] == "ada/elsewhere"


def test_each_egg_in_an_estate_hatches_as_its_own_kind(
    desk: RunningDaemon, make_daemon: Make, tmp_path: Path
) -> None:
    path = packed(desk, tmp_path / "estate.egg")
    attic = make_daemon("attic", LLM_FAKE="1", RAPPD_NAME="attic")
    plan = done(attic, "egg", "plan", path)["plan"]
    assert not attic.home.exists()
    assert sorted(row["kind"] for row in plan["members"]) == ["neighborhood", "twin", "twin"]
    assert (plan["estate"], plan["nothing_to_do"]) == ("adopted", False)
    found = done(attic, "egg", "hatch", path)["hatched"]
    assert not found["partial"]
    assert keys(attic) == keys(desk)
    for row in found["members"]:
        if row["kind"] == "twin":  # its code came from a key that nobody trusts here
            assert row["hatched"]["quarantine"]["count"] == 1
    own = {row["rappid"] for row in done(attic, "estate", "show")["estate"]["created"]}
    assert own == {row["rappid"] for row in done(desk, "estate", "show")["estate"]["created"]}
    again = done(attic, "egg", "hatch", path)["hatched"]
    assert not any(row["receipt"] for row in again["members"])


def test_plan_of_an_estate_settles_with_its_hatching(
    desk: RunningDaemon, make_daemon: Make, tmp_path: Path
) -> None:
    path = packed(desk, tmp_path / "estate.egg")
    attic = make_daemon("attic", LLM_FAKE="1", RAPPD_NAME="attic")

    def is_settled() -> bool:
        return bool(done(attic, "egg", "plan", path)["plan"]["nothing_to_do"])

    def hatches_again() -> bool:
        done(attic, "egg", "hatch", path)
        return is_settled()

    assert not is_settled()
    assert hatches_again()
    (attic.home / "twins" / sorted(keys(attic))[0] / "soul.md").unlink()  # something of one of its eggs
    assert not is_settled()
    assert hatches_again()
    (attic.home / "estate.json").unlink()
    assert not is_settled()


def test_member_that_cannot_hatch_is_told_and_the_others_do(
    desk: RunningDaemon, make_daemon: Make, tmp_path: Path
) -> None:
    path = packed(desk, tmp_path / "estate.egg")
    attic = make_daemon("attic", LLM_FAKE="1", RAPPD_NAME="attic")
    done(attic, "egg", "hatch", path)
    gone = sorted(keys(attic))[0]
    assert attic.cli("twins", "archive", gone[:12]).returncode == 0
    assert attic.cli("twins", "purge", gone[:12], "--yes").returncode == 0
    found = done(attic, "egg", "hatch", path, code=7)["hatched"]
    problems = {row["hash"]: row["problem"] for row in found["members"] if row["problem"]}
    assert list(problems) == [gone]
    assert "purged" in problems[gone]


def test_running_twin_of_an_estate_rests_and_wakes_again(
    desk: RunningDaemon, make_daemon: Make, tmp_path: Path
) -> None:
    path = packed(desk, tmp_path / "estate.egg")
    attic = make_daemon("attic", LLM_FAKE="1", RAPPD_NAME="attic").start()
    done(attic, "egg", "hatch", path)
    one = sorted(keys(attic))[0]
    assert attic.cli("twins", "boot", one[:12]).returncode == 0
    soul = attic.home / "twins" / one / "soul.md"
    soul.write_text("changed meanwhile")
    done(attic, "egg", "hatch", path, "--overwrite", "soul")
    assert soul.read_text() != "changed meanwhile"
    rows = done(attic, "twins", "list")["twins"]
    assert {row["key"]: row["state"] for row in rows}[one] == "awake"


def estate_egg(path: Path, eggs: dict[str, dict[str, Any]], estate: Any = None, **manifest: Any) -> Path:
    said = estate or {"schema": "rapp-estate/1.1", "owner": {"rappid": OWNER, "github": "ada"}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "manifest.json",
            json.dumps(
                {"schema": "brainstem-egg/2.3-estate", "scale": "estate", "owner_rappid": OWNER, **manifest}
            ),
        )
        archive.writestr("estate.json", json.dumps(said))
        for key, files in eggs.items():
            for name, content in files.items():
                archive.writestr(
                    f"members/{key}/{name}", content if isinstance(content, str) else json.dumps(content)
                )
    return path


def twin_files(key: str = KEY, soul: str = "I am Rose.") -> dict[str, Any]:
    rappid = f"rappid:@ada/rose:{key}"
    return {
        "manifest.json": {"schema": "rapp-egg/2.0", "scale": "twin", "rappid": rappid, "name": "Rose"},
        "rappid.json": {"schema": "rapp/1", "rappid": rappid, "name": "Rose"},
        "soul.md": soul,
    }


@pytest.mark.parametrize(
    "members",
    [
        {"b" * 64: twin_files()},  # under another's hash
        {"notahash": twin_files()},
        {"aaaa..bbbbcccc": twin_files()},
        {KEY: {**twin_files(), "../../soul.md": "outside"}},
        {KEY: {"manifest.json": {"schema": "rapp-egg/9.0", "scale": "twin"}, "soul.md": "x"}},
        {KEY: {"manifest.json": {"schema": "brainstem-egg/2.3-unheard-of", "type": "x"}, "soul.md": "x"}},
    ],
)
def test_bad_egg_in_an_estate_has_nothing_written(
    make_daemon: Make, tmp_path: Path, members: dict[str, dict[str, Any]]
) -> None:
    attic = make_daemon("attic", LLM_FAKE="1", RAPPD_NAME="attic")
    found = attic.cli("egg", "hatch", estate_egg(tmp_path / "bad.egg", members), "--json")
    assert found.returncode == 5, (found.stdout, found.stderr)
    assert keys(attic) == set()
    assert not (attic.home / "estates").exists()
    assert not (attic.home / "estate.json").exists()
    assert not list((attic.home / "eggs").glob(".nested-*"))


def test_estates_in_each_other_end_at_the_third(make_daemon: Make, tmp_path: Path) -> None:
    def wrapped(files: dict[str, Any], key: str) -> dict[str, Any]:
        inner = {f"members/{key}/{name}": content for name, content in files.items()}
        owner = f"rappid:@ada/desk:{key[0] * 64}"
        return {
            "manifest.json": {"schema": "brainstem-egg/2.3-estate", "scale": "estate", "owner_rappid": owner},
            "estate.json": {"schema": "rapp-estate/1.1", "owner": {"rappid": owner}},
            **inner,
        }

    attic = make_daemon("attic", LLM_FAKE="1", RAPPD_NAME="attic")
    two = estate_egg(tmp_path / "two.egg", {"c" * 64: wrapped(twin_files(), KEY) | {
        "estate.json": {"schema": "rapp-estate/1.1", "owner": {"rappid": f"rappid:@ada/desk:{'c' * 64}"}},
        "manifest.json": {"schema": "brainstem-egg/2.3-estate", "scale": "estate",
                          "owner_rappid": f"rappid:@ada/desk:{'c' * 64}"}}})  # fmt: skip
    done(attic, "egg", "hatch", two)
    assert keys(attic) == {KEY}
    deep = wrapped(wrapped(twin_files(), KEY), "d" * 64)
    found = attic.cli("egg", "plan", estate_egg(tmp_path / "deep.egg", {"c" * 64: deep}), "--json")
    assert found.returncode == 5


def test_private_files_of_a_foreign_estate_are_not_placed(make_daemon: Make, tmp_path: Path) -> None:
    attic = make_daemon("attic", LLM_FAKE="1", RAPPD_NAME="attic")
    path = estate_egg(tmp_path / "foreign.egg", {KEY: twin_files()})
    with zipfile.ZipFile(path, "a") as archive:
        for name in (*SECRETS, "keys/identity.pem"):
            archive.writestr(name, "theirs")
    done(attic, "egg", "hatch", path)
    assert keys(attic) == {KEY}
    assert not [name for name in tree(attic.home / "estates") if "private" in name or "keys" in name]


def test_estate_of_another_owner_leaves_mine_as_it_is(desk: RunningDaemon, tmp_path: Path) -> None:
    done(desk, "estate", "rebuild")
    before = (desk.home / "estate.json").read_bytes()
    theirs = {
        "schema": "rapp-estate/1.1",
        "owner": {"rappid": OWNER},
        "created": [{"rappid": OWNER, "via": "scan"}],
    }
    path = estate_egg(tmp_path / "theirs.egg", {KEY: twin_files()}, theirs)
    assert done(desk, "egg", "hatch", path)["hatched"]["estate"] == "kept apart"
    assert (desk.home / "estate.json").read_bytes() == before
    assert KEY in keys(desk)


def test_estate_that_lies_here_as_data_is_read_and_hatched_in_place(make_daemon: Make) -> None:
    attic = make_daemon("attic", LLM_FAKE="1", RAPPD_NAME="attic")
    folder = attic.home / "estates" / ("e" * 64)
    placed = estate_egg(attic.home.parent / "placed.egg", {KEY: twin_files()})
    with zipfile.ZipFile(placed) as archive:  # as it was placed before estates were hatched
        archive.extractall(folder)
    (folder / "HATCH_RECEIPT.json").write_text("{}")
    kept = done(attic, "estate", "show")["kept"]
    assert [(row["owner"], row["eggs"]) for row in kept] == [(OWNER, [KEY])]
    done(attic, "estate", "hatch", "eeee")
    assert (attic.home / "twins" / KEY / "soul.md").read_text() == "I am Rose."
    assert done(attic, "estate", "hatch", "nobody", code=4)["code"] == "not_in_estate"


def test_published_estate_with_its_own_hash_is_kept_as_data(make_daemon: Make, tmp_path: Path) -> None:
    attic = make_daemon("attic", LLM_FAKE="1", RAPPD_NAME="attic")
    estate = {"schema": "rapp-estate/1.1", "owner": {"rappid": OWNER}, "created": [], "member": []}
    digest = hashlib.sha256(json.dumps(estate).encode()).hexdigest()
    path = estate_egg(tmp_path / "published.egg", {}, estate, members=3, sha256=digest)
    found = done(attic, "egg", "hatch", path)["hatched"]
    assert (found["members"], found["estate"]) == ([], "none")
    assert (attic.home / "estates" / ("e" * 64) / "estate.json").exists()


def test_damaged_estate_is_set_aside_by_rebuild_alone(desk: RunningDaemon) -> None:
    (desk.home / "estate.json").write_text("{")
    assert done(desk, "estate", "add", OWNER, code=5)["code"] == "bad_estate"
    assert (desk.home / "estate.json").read_text() == "{"
    found = done(desk, "estate", "rebuild")
    assert Path(found["aside"]).read_text() == "{"
    assert len(found["estate"]["created"]) == 2


def test_beacon_is_served_only_while_it_is_on(make_daemon: Make) -> None:
    daemon = make_daemon("desk", LLM_FAKE="1", RAPPD_NAME="desk", RAPPD_ESTATE_PRIVATE="ada/bones").start()
    paths = ("/.well-known/rapp-network.json", "/.well-known/rapp-estate.json")
    done(daemon, "estate", "add", OWNER)
    assert [daemon.get(path).status for path in paths] == [404, 404]
    assert daemon.cli("config", "set", "estate.beacon", "on").returncode == 0
    daemon.wait_for(lambda: daemon.get(paths[0]).status == 200, what="the beacon")
    found = daemon.get(paths[0]).json()
    assert found["schema"] == "rapp-network-beacon/1.1"
    assert found["private_estate_pointer"] == "ada/bones"
    assert found["discovery"]["indexable"] is False
    assert daemon.get(paths[1]).json()["created"][0]["rappid"] == OWNER
    foreign = daemon.request("GET", paths[0], headers={"Host": "evil.example"})
    assert foreign.status == 403


def test_egg_in_json_hatches_out_of_an_estate(make_daemon: Make, tmp_path: Path) -> None:
    attic = make_daemon("attic", LLM_FAKE="1", RAPPD_NAME="attic")
    invite = {
        "schema": "brainstem-egg/2.3-neighborhood",
        "type": "neighborhood-invite",
        "rappid": f"rappid:@bob/club:{'b' * 64}",
        "display_name": "Club",
    }
    path = estate_egg(tmp_path / "json.egg", {"b" * 64: {"manifest.json": invite}})
    row = done(attic, "egg", "plan", path)["plan"]["members"][0]
    assert (row["kind"], row["plan"]["destination"]) == ("neighborhood", "answer")


def test_doors_name_an_account_only_once_the_owner_has_one(make_daemon: Make) -> None:
    desk = make_daemon("doors", RAPPD_NAME="kody")
    desk.cli("twins", "new", "Rose")
    done(desk, "estate", "rebuild")
    other, theirs = (
        f"rappid:@someone/{name}:{number * 64}" for name, number in (("place", "1"), ("club", "2"))
    )
    added = desk.cli("estate", "add", other).stdout
    assert "is listed in the estate" in added
    asked = Terminal(desk, "estate", "add", theirs)
    asked.read_until(lambda seen: "Did you make it?" in seen.words)
    asked.type("n\n")
    assert "is listed in the estate" in asked.to_end().text
    assert [row.get("repo", "") for row in done(desk, "estate", "show")["doors"]] == ["", "", ""]
    assert [line.split()[1] for line in desk.cli("estate", "show").stdout.splitlines()[2:]] == [
        "made",
        "listed",
        "member",
    ]
    desk.environment["RAPPD_ESTATE_GITHUB"] = "kody"
    doors = {row["rappid"]: row.get("repo", "") for row in done(desk, "estate", "show")["doors"]}
    assert doors.pop(other) == "", "what is listed as one's own and is another's has no door of theirs"
    assert doors.pop(theirs) == "https://github.com/someone/club"
    assert list(doors.values()) == ["https://github.com/kody/rose"]
