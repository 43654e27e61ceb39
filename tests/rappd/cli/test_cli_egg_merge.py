"""``rappd egg merge``: one twin that lived on two machines becomes one again, with everything that was said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from hypothesis import given, settings
from hypothesis import strategies as st

from rappd.features.eggs.merging import merge_documents


class Lives:
    """A gardener who was packed on one machine, hatched on another, and talked to on both."""

    def __init__(self, here: RunningDaemon, there: RunningDaemon, folder: Path) -> None:
        self.here, self.there, self.folder = here, there, folder
        here.start()
        there.start()
        self.key: str = here.post("/twins", {"name": "Gardener"}, control=True).json()["key"]
        self.says(here, "shared", "the beginning")
        self.base = self.packed(here, "base")
        self.run(there, "egg", "hatch", str(self.base))
        self.says(here, "shared", "it goes on here")
        self.says(here, "garden", "only here")
        self.says(there, "shared", "it goes on there")
        self.says(there, "kitchen", "only there")
        for daemon, name in ((here, "here"), (there, "there")):
            self.write(daemon, f".brainstem_data/{name}.json", {"of": name})
            self.write(daemon, ".brainstem_data/counts.json", {"visits": 3 if daemon is here else 4})
            self.write(daemon, "notes.txt", name)
        self.ours, self.theirs = self.packed(here, "ours"), self.packed(there, "theirs")

    def run(self, daemon: RunningDaemon, *words: str, code: int = 0) -> str:
        done = daemon.cli(*words)
        assert done.returncode == code, (words, done)
        return done.stdout if code == 0 else done.stderr

    def says(self, daemon: RunningDaemon, session: str, text: str) -> None:
        body = {"user_input": text, "session_id": session}
        assert daemon.post(f"/twins/{self.key}/chat", body).status == 200

    def write(self, daemon: RunningDaemon, path: str, content: Any) -> None:
        target = daemon.home / "twins" / self.key / path
        target.write_text(content if isinstance(content, str) else json.dumps(content))

    def read(self, daemon: RunningDaemon, path: str) -> str:
        return (daemon.home / "twins" / self.key / path).read_text()

    def packed(self, daemon: RunningDaemon, name: str) -> Path:
        path = self.folder / f"{name}.egg"
        self.run(daemon, "egg", "pack", self.key, "-o", str(path))
        return path

    def merged(self, daemon: RunningDaemon, name: str, *eggs: Path) -> dict[str, Any]:
        path = self.folder / f"{name}.egg"
        told = self.run(daemon, "egg", "merge", *map(str, eggs), "-o", str(path), "--json")
        found: dict[str, Any] = json.loads(told)["merged"]
        return found

    def threads(self, daemon: RunningDaemon) -> dict[str, list[str]]:
        """The words of a person to the twin, by how each conversation begins."""
        found = {}
        for row in json.loads(self.run(daemon, "threads", "list", "--json"))["threads"]:
            shown = json.loads(self.run(daemon, "threads", "show", row["id"], "--json"))
            said = [event["data"].get("user_input") for event in shown["events"]]
            found[row["title"]] = [text for text in said if text]
        return found


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    folder = tmp_path_factory.mktemp("lives")
    daemons = [RunningDaemon(folder / name / "home", RAPPD_NAME=name) for name in ("desk", "kitchen")]
    for daemon in daemons:
        daemon.home.parent.mkdir()
    try:
        yield Lives(daemons[0], daemons[1], folder)
    finally:
        for daemon in daemons:
            daemon.stop()


def test_both_lives_are_in_it_and_what_contradicts_is_told(
    lives: Lives, make_daemon: Callable[..., RunningDaemon]
) -> None:
    done = lives.merged(lives.here, "merged", lives.base, lives.ours, lives.theirs)
    assert done["signed"]
    assert done["shared"] > 0
    assert done["contradicting"] > 0
    assert done["dimensions"] == 1
    assert set(done["taken"]) == {".brainstem_data/there.json", "bonds.json"}
    assert done["joined"] == [".brainstem_data/counts.json"]
    assert done["set_aside"] == ["notes.txt"]
    egg = lives.folder / "merged.egg"
    lives.run(lives.here, "egg", "verify", str(egg))

    # On a third machine it has all of it, and goes on.
    third = make_daemon("third").start()
    lives.run(third, "egg", "hatch", str(egg), "--yes")
    threads = lives.threads(third)
    assert threads["only here"] == ["only here"]
    assert threads["only there"] == ["only there"]
    assert threads["the beginning"] == ["the beginning", "it goes on here"], "the earlier of two is canon"
    assert json.loads(lives.read(third, ".brainstem_data/counts.json")) == {"visits": 7}
    assert lives.read(third, "notes.txt") == "here"
    aside = json.loads(lives.read(third, ".brainstem_data/alternates.json"))
    [dimension] = aside["dimensions"]
    assert "it goes on there" in json.dumps(dimension["frames"])
    assert dimension["seen_in"] == ["theirs.egg"]
    [kept] = [one for one in aside["files"] if one["path"] == "notes.txt"]
    assert lives.read(third, kept["kept_as"]) == "there"
    lives.says(third, "shared", "and on")
    assert lives.threads(third)["the beginning"][-1] == "and on"
    lives.run(third, "threads", "verify")

    # Where it came from, what was said there stays and the rest comes in.
    lives.run(lives.there, "egg", "hatch", str(egg), "--yes")
    threads = lives.threads(lives.there)
    assert threads["the beginning"] == ["the beginning", "it goes on there"]
    assert threads["only here"] == ["only here"]
    assert ["the beginning", "it goes on here"] in threads.values(), "as hatched, beside its own"
    lives.run(lives.there, "threads", "verify")


def test_merge_is_symmetric_and_idempotent(lives: Lives) -> None:
    lives.merged(lives.here, "one", lives.base, lives.ours, lives.theirs)
    other = lives.merged(lives.there, "other", lives.base, lives.theirs, lives.ours)
    assert other["contradicting"] > 0
    one, turned = lives.folder / "one.egg", lives.folder / "other.egg"
    found = []
    for egg in (one, turned):
        lives.run(lives.here, "egg", "extract", str(egg), str(lives.folder / egg.stem))
        found.append(next((lives.folder / egg.stem).rglob("frames.json")).read_bytes())
    assert found[0] == found[1]
    again = lives.merged(lives.here, "again", lives.base, one, lives.theirs)
    assert again["already"]
    forward = lives.merged(lives.here, "forward", lives.base, lives.ours, one)
    assert forward["forward"]
    for name in ("again", "forward"):
        diff = json.loads(
            lives.run(lives.here, "egg", "diff", str(one), str(lives.folder / f"{name}.egg"), "--json")
        )
        assert diff["diff"]["files"] == []


def test_merged_memory_replaces_what_it_was_merged_from(lives: Lives) -> None:
    lives.merged(lives.here, "whole", lives.base, lives.ours, lives.theirs)
    egg, counts = str(lives.folder / "whole.egg"), ".brainstem_data/counts.json"

    def visits(daemon: RunningDaemon) -> int:
        return int(json.loads(lives.read(daemon, counts))["visits"])

    def replaced(daemon: RunningDaemon, *more: str) -> dict[str, str]:
        told = json.loads(lives.run(daemon, "egg", "plan", egg, "--json", *more))["plan"]
        return {one["path"]: one.get("why", "") for one in told["replace"]["files"]}

    assert replaced(lives.there) == {}, "a signer who is not trusted names no ancestors"
    assert replaced(lives.here, "--no-memory") == {}
    lives.run(lives.here, "egg", "hatch", egg, "--yes", "--no-memory")
    assert visits(lives.here) == 3
    assert replaced(lives.here) == {counts: "yours was merged into it"}
    assert "Replaced" in lives.run(lives.here, "egg", "plan", egg)
    assert "yours was merged into it (--no-memory)" in lives.run(lives.here, "egg", "plan", egg)
    lives.run(lives.here, "egg", "hatch", egg, "--yes")
    assert visits(lives.here) == 7
    # A later version is merged from nothing, and stays; so does the trusted other side's own file.
    lives.write(lives.here, counts, {"visits": 8})
    assert replaced(lives.here) == {}
    desk = json.loads(lives.run(lives.here, "egg", "signers", "--json"))["own"]
    lives.run(lives.there, "egg", "signers", "--trust", desk, "--name", "desk")
    assert replaced(lives.there)[counts] == "yours was merged into it"
    lives.run(lives.there, "egg", "signers", "--revoke", desk)
    lives.write(lives.here, counts, {"visits": 3})


def test_without_a_base(lives: Lives) -> None:
    done = lives.merged(lives.here, "baseless", lives.ours, lives.theirs)
    assert done["removed"] == []
    assert done["contradicting"] > 0


def test_foreign_code_is_not_signed_for(lives: Lives) -> None:
    folder = lives.there.home / "twins" / lives.key / "agents"
    (folder / "kettle_agent.py").write_text(agent_source("Kettle"))
    theirs = lives.packed(lives.there, "with-code")
    path = lives.folder / "unsigned.egg"
    words = ("egg", "merge", str(lives.base), str(lives.ours), str(theirs), "-o", str(path))
    told = lives.run(lives.here, *words)
    assert "Not signed: 1 code file came from somebody who is not trusted here." in told
    plan = json.loads(lives.run(lives.here, "egg", "plan", str(path), "--json"))["plan"]
    assert plan["seal"]["standing"] == "unsigned"
    assert plan["quarantine"]["count"] == 1
    # Trusting whom it came from is enough.
    kitchen = json.loads(lives.run(lives.there, "egg", "signers", "--json"))["own"]
    lives.run(lives.here, "egg", "signers", "--trust", kitchen, "--name", "kitchen")
    assert lives.merged(lives.here, "trusted", lives.base, lives.ours, theirs)["signed"]
    lives.run(lives.here, "egg", "signers", "--revoke", kitchen)
    (folder / "kettle_agent.py").unlink()


def test_two_beings_and_other_mistakes_write_nothing(lives: Lives) -> None:
    other = lives.here.post("/twins", {"name": "Other"}, control=True).json()["key"]
    stranger = lives.folder / "stranger.egg"
    lives.run(lives.here, "egg", "pack", other, "-o", str(stranger))
    out = lives.folder / "never.egg"
    merge = ("egg", "merge")
    assert "two different beings" in lives.run(
        lives.here, *merge, str(lives.base), str(lives.ours), str(stranger), "-o", str(out), code=9
    )
    damaged = lives.folder / "damaged.egg"
    damaged.write_bytes(lives.theirs.read_bytes()[:-200])
    lives.run(lives.here, *merge, str(lives.base), str(lives.ours), str(damaged), "-o", str(out), code=5)
    lives.run(lives.here, *merge, str(lives.ours), str(lives.theirs), code=2)
    lives.run(lives.here, *merge, str(lives.ours), "-o", str(out), code=2)
    lives.run(lives.here, *merge, str(lives.ours), str(lives.folder / "gone.egg"), "-o", str(out), code=4)
    assert not out.exists()
    assert not list(lives.folder.glob(".merging-*"))
    before = lives.ours.read_bytes()
    lives.run(
        lives.here, *merge, str(lives.base), str(lives.ours), str(lives.theirs), "-o", str(lives.ours), code=9
    )
    assert lives.ours.read_bytes() == before


# JSON documents and deltas.


class Papers:
    """JSON files, and the command over them."""

    def __init__(self, daemon: RunningDaemon, folder: Path) -> None:
        self.daemon, self.folder = daemon, folder

    def file(self, name: str, content: Any) -> str:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def merge(self, *documents: Any, code: int = 0) -> tuple[str, str]:
        paths = [self.file(f"{number}.json", one) for number, one in enumerate(documents)]
        done = self.daemon.cli("egg", "merge", *paths, "--json-documents")
        assert done.returncode == code, done
        return done.stdout, done.stderr


@pytest.fixture
def papers(idle: RunningDaemon, tmp_path: Path) -> Papers:
    return Papers(idle, tmp_path)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ({"tags": ["a"]}, {"tags": ["a", "b"]}, {"tags": ["c", "a"]}, '{"tags":["a","b","c"]}'),
        ({"tags": ["a", "b"]}, {"tags": ["a"]}, {"tags": ["a", "b", "c"]}, '{"tags":["a","c"]}'),
        (
            {"text": "x", "updated_at": "2026-01-01T00:00:00Z"},
            {"text": "old", "updated_at": "2026-01-02T00:00:00Z"},
            {"text": "new", "updated_at": "2026-01-03T00:00:00Z"},
            '{"text":"new","updated_at":"2026-01-03T00:00:00Z"}',
        ),
        ({"n": 5}, {"n": 7}, {"n": 6}, '{"n":8}'),
        (
            {"items": {"a": 1, "b": {"n": 1}}},
            {"items": {"b": {"n": 2}}},
            {"items": {"a": 1}},
            '{"items":{"b":{"n":2}}}',
        ),
        ({"e": []}, {"e": [{"id": 1, "t": "x"}]}, {"e": [{"id": 1, "t": "x"}]}, '{"e":[{"id":1,"t":"x"}]}'),
        ({"é": 1, "a": 2}, {"é": 1, "a": 2, "z": None}, {"é": 1, "a": 2}, '{"a":2,"z":null,"é":1}'),
    ],
    ids=[
        "set union",
        "taken out",
        "later wins",
        "counter",
        "change beats deletion",
        "no repeat",
        "canonical",
    ],
)
def test_the_conformance_cases(papers: Papers, base: Any, ours: Any, theirs: Any, merged: str) -> None:
    assert papers.merge(base, ours, theirs)[0] == f"{merged}\n"
    assert papers.merge(base, theirs, ours)[0] == f"{merged}\n", "from both sides"


def test_documents_of_two_beings_are_refused(papers: Papers) -> None:
    stdout, stderr = papers.merge({"rappid": "a"}, {"rappid": "a"}, {"rappid": "b"}, code=9)
    assert stdout == ""
    assert "two different beings" in stderr
    stdout, stderr = papers.merge({"t": 1.5}, {"t": "x"}, {"t": "y"})
    assert stdout == '{"t":"y"}\n'
    assert '"x" was not taken' in stderr
    papers.merge({}, "[1]", {}, code=5)
    papers.merge({}, '{"a": 1, "a": 2}', {}, code=5)
    papers.merge({}, code=2)
    out = papers.folder / "out.json"
    words = (
        "egg",
        "merge",
        papers.file("a", {"x": 1}),
        papers.file("b", {"y": 2}),
        "--json-documents",
        "-o",
        str(out),
    )
    assert papers.daemon.cli(*words).returncode == 0
    assert out.read_text() == '{"x":1,"y":2}\n'
    assert papers.daemon.cli(*words).returncode == 9


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("abc", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)
documents = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@settings(max_examples=60, deadline=None)
@given(documents, documents, documents)
def test_documents_merge_to_the_same_from_both_sides(
    tmp_path_factory: pytest.TempPathFactory, base: Any, ours: Any, theirs: Any
) -> None:
    folder = tmp_path_factory.mktemp("documents")
    paths = [folder / name for name in ("base", "ours", "theirs")]
    for path, one in zip(paths, (base, ours, theirs), strict=True):
        path.write_text(json.dumps(one))
    merged, _ = merge_documents(*paths)
    assert merge_documents(paths[0], paths[2], paths[1])[0] == merged
    assert merge_documents(paths[1], paths[1], paths[2])[0] == theirs, "what only one side changed is taken"


def test_deltas_are_added_once_in_whatever_order(papers: Papers) -> None:
    def delta(stream: str, at: str, *numbers: int) -> dict[str, Any]:
        posts = [{"number": number, "created_at": at} for number in numbers]
        return {"frame": 7, "stream_id": stream, "completed_at": at, "posts_created": posts}

    state = papers.file("state.json", {"posts": [], "mine": 1})
    one = papers.file("frame-7-a.json", delta("a", "2026-04-12T14:00:00Z", 1, 2))
    two = papers.file("frame-7-b.json", delta("b", "2026-04-12T14:01:00Z", 2, 3))
    thin = papers.file("frame-7-c.json", delta("c", "2026-04-12T14:01:00Z", 3))

    def added(*paths: str) -> tuple[str, str]:
        done = papers.daemon.cli("egg", "merge", "--deltas", *paths)
        assert done.returncode == 0, done
        return done.stdout, done.stderr

    first, told = added(state, one, two, thin)
    assert first == added(state, thin, two, one)[0]
    assert "frame 7 of c: a fuller delta of the same moment stood for it" in told
    found = json.loads(first)
    assert sorted(post["number"] for post in found["posts"]) == [1, 2, 3]
    assert (found["counts"]["posts"], found["mine"]) == (3, 1)
    assert added(papers.file("state.json", first), one, two, thin)[0] == first
    late = added(papers.file("state.json", first), one)[1]
    assert "frame 7: its snapshot lacks b now; give all of a frame's deltas together" in late
    broken = papers.daemon.cli("egg", "merge", "--deltas", papers.file("broken.json", {"posts": 7}), one)
    assert broken.returncode == 5, broken
    assert "The state cannot be loaded: posts is not a list" in broken.stderr
    bad = papers.file("bad.json", {"frame": -1})
    assert papers.daemon.cli("egg", "merge", "--deltas", state, bad).returncode == 5
    assert papers.daemon.cli("egg", "merge", "--deltas", state).returncode == 2
    assert papers.daemon.cli("egg", "merge", "--deltas", "--json-documents", state, one).returncode == 2
