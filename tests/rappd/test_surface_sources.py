"""Sources of agents: found in three ways on GitHub, and never believed more than they deserve."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.loopback_server import FakeGitHub
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

REPO = "owner/repo"
SOURCE = agent_source("Aaa", 'return "from the source"').encode()


@pytest.fixture(scope="module")
def github() -> Iterator[FakeGitHub]:
    server = FakeGitHub()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, github: FakeGitHub) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("sources") / "home", LLM_FAKE="1", **github.environment)
    daemon.start()
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(shared: RunningDaemon, github: FakeGitHub) -> Iterator[RunningDaemon]:
    github.files.clear()
    github.folders.clear()
    github.moved.clear()
    github.fetched.clear()
    yield shared
    for repo in shared.get("/repos").json()["repos"]:
        assert shared.post("/repos/disconnect", {"url": repo["url"]}, control=True).status == 200


def _manifest(github: FakeGitHub, agents: Any, **more: Any) -> None:
    github.files[f"{REPO}/main/manifest.json"] = json.dumps({"agents": agents, **more}).encode()


def _connect(daemon: RunningDaemon, url: str = REPO) -> Answer:
    return daemon.post("/repos/connect", {"url": url}, control=True)


def _toggle(daemon: RunningDaemon, agent_id: str, enable: bool = True, url: str = REPO) -> Answer:
    body = {"url": url, "agent_id": agent_id, "enable": enable}
    return daemon.post("/repos/toggle", body, control=True)


def test_a_manifest_names_what_there_is(daemon: RunningDaemon, github: FakeGitHub) -> None:
    _manifest(
        github,
        [
            {
                "id": "aaa",
                "name": "Triple A",
                "description": "Says where it is from.",
                "path": "deep/aaa_agent.py",
            },
            {"id": "bbb", "filename": "bbb_agent.py"},
        ],
    )
    github.files[f"{REPO}/main/deep/aaa_agent.py"] = SOURCE
    found = _connect(daemon).json()
    assert found["repo"] == REPO
    assert [(one["id"], one["name"], one["enabled"]) for one in found["agents"]] == [
        ("aaa", "Triple A", False),
        ("bbb", "Bbb", False),
    ]
    assert "Aaa" not in daemon.agent_names()
    enabled = _toggle(daemon, "aaa").json()
    digest = hashlib.sha256(SOURCE).hexdigest()
    reach = ["may read your files and the network"]
    assert enabled == {"status": "enabled", "loaded": ["Aaa"], "sha256": digest, "reach": reach}
    assert daemon.chat("go")["agent_logs"] == "[Aaa] from the source"
    assert _toggle(daemon, "aaa").json() == {"status": "no_change"}
    (repo,) = daemon.get("/repos").json()["repos"]
    assert (repo["url"], repo["repo"], repo["enabled_count"]) == (REPO, REPO, 1)
    assert {one["id"]: one["enabled"] for one in repo["agents"]} == {"aaa": True, "bbb": False}
    assert _toggle(daemon, "aaa", enable=False).json() == {"status": "disabled"}
    assert "Aaa" not in daemon.agent_names()
    assert _toggle(daemon, "aaa", enable=False).json() == {"status": "no_change"}


def test_without_a_manifest_an_index_is_read(daemon: RunningDaemon, github: FakeGitHub) -> None:
    names = ["aaa_agent.py", "../x_agent.py", "notes.txt", 7, None, {"a": 1}]
    github.files[f"{REPO}/main/agents/index.json"] = json.dumps({"agents": names}).encode()
    github.files[f"{REPO}/main/agents/aaa_agent.py"] = SOURCE
    assert [one["id"] for one in _connect(daemon).json()["agents"]] == ["aaa_agent"]
    assert _toggle(daemon, "aaa_agent").json()["loaded"] == ["Aaa"]


def test_without_either_githubs_listing_is_read(daemon: RunningDaemon, github: FakeGitHub) -> None:
    github.folders[REPO] = [{"name": "aaa_agent.py"}, {"name": "README.md"}, "odd", {"name": 4}, None]
    github.files[f"{REPO}/main/agents/aaa_agent.py"] = SOURCE
    assert [one["id"] for one in _connect(daemon).json()["agents"]] == ["aaa_agent"]
    assert _toggle(daemon, "aaa_agent").json()["loaded"] == ["Aaa"]


@pytest.mark.parametrize(
    "url",
    [
        "owner/repo",
        "https://github.com/owner/repo",
        "https://github.com/owner/repo.git/",
        "http://www.github.com/owner/repo",
        "git@github.com:owner/repo.git",
        "https://owner.github.io/repo",
        " owner.github.io/repo ",
    ],
)
def test_a_repository_may_be_written_in_many_ways(
    daemon: RunningDaemon, github: FakeGitHub, url: str
) -> None:
    _manifest(github, [{"id": "aaa", "path": "aaa_agent.py"}])
    assert _connect(daemon, url).json()["repo"] == "owner/repo"


@pytest.mark.parametrize(
    "url",
    [
        "owner",
        "a/b/c",
        "https://evil.example/o/r",
        "owner/..",
        "owner/.",
        "../..x/y",
        "-o/r",
        "o/r?x",
        "o r/x",
        "o/r#",
    ],
)
def test_what_is_no_source_is_refused_and_nothing_is_fetched(
    daemon: RunningDaemon, github: FakeGitHub, url: str
) -> None:
    answer = _connect(daemon, url)
    assert 400 <= answer.status < 500 or answer.json()["code"] == "unreachable", answer.body
    assert github.fetched == []
    assert daemon.get("/repos").json() == {"repos": []}


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "aaa", "path": "../../other/repo/main/aaa_agent.py"},
        {"id": "aaa", "path": "agents/../../../x_agent.py"},
        {"id": "aaa", "path": ".."},
        {"id": "aaa", "path": "http://evil.example/aaa_agent.py"},
        {"id": "aaa", "path": "https://evil.example/aaa_agent.py"},
        {"id": "aaa", "path": ["aaa_agent.py"]},
        {"id": "aaa", "path": 5},
        {"id": "aaa"},
        {"id": "../aaa", "path": "aaa_agent.py"},
        {"id": "a/b", "path": "aaa_agent.py"},
        {"id": "", "path": "aaa_agent.py"},
        {"id": 5, "path": "aaa_agent.py"},
        {"id": "x" * 101, "path": "aaa_agent.py"},
        {"path": "aaa_agent.py"},
        "aaa_agent.py",
        None,
        [],
        7,
    ],
)
def test_hostile_entries_of_a_manifest_are_passed_over(
    daemon: RunningDaemon, github: FakeGitHub, entry: Any
) -> None:
    _manifest(github, [entry, {"id": "good", "path": "good_agent.py"}])
    assert [one["id"] for one in _connect(daemon).json()["agents"]] == ["good"]
    _manifest(github, [entry])
    answer = _connect(daemon)
    assert (answer.status, answer.json()["code"]) == (502, "unreachable")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/agents/%2e%2e/x_agent.py",
        "a?b=../c",
        "a#b",
        "a%2f..%2fb",
        "a\\..\\b",
        "//evil.example/x",
    ],
)
def test_a_path_never_leads_out_of_its_repository(
    daemon: RunningDaemon, github: FakeGitHub, path: str
) -> None:
    _manifest(github, [{"id": "aaa", "path": path}])
    assert _connect(daemon).status == 200
    answer = _toggle(daemon, "aaa")
    assert (answer.status, answer.json()["code"]) == (502, "unreachable")
    assert github.fetched
    assert all(asked.startswith(f"/raw/{REPO}/main/") for asked in github.fetched)
    assert "/../" not in "".join(github.fetched)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"null", b'{"agents": 5}', b'{"agents": {"a": 1}}', b"<html>", b"\xff\xfe", b"[" * 5000],
)
def test_a_manifest_of_another_form_is_none(
    daemon: RunningDaemon, github: FakeGitHub, content: bytes
) -> None:
    github.files[f"{REPO}/main/manifest.json"] = content
    github.files[f"{REPO}/main/agents/index.json"] = content
    answer = _connect(daemon)
    assert (answer.status, answer.json()["code"]) == (502, "unreachable")
    github.folders[REPO] = [{"name": "aaa_agent.py"}]
    assert [one["id"] for one in _connect(daemon).json()["agents"]] == ["aaa_agent"]


def test_odd_names_and_descriptions_are_taken_as_text(daemon: RunningDaemon, github: FakeGitHub) -> None:
    entry = {"id": "aaa", "path": "a_agent.py", "name": ["x"] * 900, "description": {"a": "y" * 9000}}
    _manifest(github, [entry])
    (one,) = _connect(daemon).json()["agents"]
    assert isinstance(one["name"], str)
    assert len(one["name"]) <= 120
    assert len(one["description"]) <= 500


def test_a_huge_manifest_is_cut_off(daemon: RunningDaemon, github: FakeGitHub) -> None:
    github.files[f"{REPO}/main/manifest.json"] = b" " * (6 << 20)
    answer = _connect(daemon)
    assert (answer.status, answer.json()["code"]) == (502, "unreachable")
    _manifest(github, [{"id": f"a{n}", "path": f"a{n}_agent.py"} for n in range(5000)])
    assert len(_connect(daemon).json()["agents"]) == 2000


def test_redirect_of_a_source_is_not_followed(daemon: RunningDaemon, github: FakeGitHub) -> None:
    inside = f"{github.url}/raw/inner"
    github.files["inner"] = json.dumps({"agents": [{"id": "aaa", "path": "aaa_agent.py"}]}).encode()
    github.moved[f"{REPO}/main/manifest.json"] = inside
    assert _connect(daemon).status == 502
    _manifest(github, [{"id": "aaa", "path": "aaa_agent.py"}])
    del github.moved[f"{REPO}/main/manifest.json"]
    assert _connect(daemon).status == 200, "positive control"
    github.moved[f"{REPO}/main/agents/aaa_agent.py"] = inside
    assert _toggle(daemon, "aaa").status == 502
    assert "inner" not in github.fetched


def test_two_ids_that_would_share_a_file_are_one(daemon: RunningDaemon, github: FakeGitHub) -> None:
    _manifest(github, [{"id": "a.b", "path": "one_agent.py"}, {"id": "a_b", "path": "two_agent.py"}])
    assert [one["id"] for one in _connect(daemon).json()["agents"]] == ["a.b"]


def test_a_huge_agent_file_is_not_taken(daemon: RunningDaemon, github: FakeGitHub) -> None:
    _manifest(github, [{"id": "aaa", "path": "aaa_agent.py"}])
    github.files[f"{REPO}/main/agents/aaa_agent.py"] = b"#" * (6 << 20)
    _connect(daemon)
    assert _toggle(daemon, "aaa").status == 502
    assert daemon.get("/repos").json()["repos"][0]["enabled_count"] == 0


def test_an_agent_that_does_not_load_is_quarantined_not_served(
    daemon: RunningDaemon, github: FakeGitHub
) -> None:
    _manifest(github, [{"id": "aaa", "path": "aaa_agent.py"}])
    github.files[f"{REPO}/main/agents/aaa_agent.py"] = b"class A(:\n"
    _connect(daemon)
    assert _toggle(daemon, "aaa").json()["loaded"] == []
    assert [fault["file"] for fault in daemon.get("/health").json()["quarantined"]] == ["aaa_agent.py"]
    _toggle(daemon, "aaa", enable=False)
    assert daemon.get("/health").json()["quarantined"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"url": REPO, "agent_id": "none"}, 404),
        ({"url": "other/repo", "agent_id": "aaa"}, 404),
        ({"url": REPO}, 400),
        ({"url": REPO, "agent_id": 5}, 422),
        ({"url": REPO, "agent_id": "aaa", "enable": "yes"}, 422),
        ({"url": REPO, "agent_id": "../aaa"}, 404),
    ],
)
def test_what_is_not_offered_cannot_be_enabled(
    daemon: RunningDaemon, github: FakeGitHub, body: dict[str, Any], status: int
) -> None:
    _manifest(github, [{"id": "aaa", "path": "aaa_agent.py"}])
    _connect(daemon)
    answer = daemon.post("/repos/toggle", body, control=True)
    assert answer.status == status
    assert set(answer.json()) == {"error", "do", "code"}


def test_a_source_that_does_not_answer_leaves_what_is_there(
    daemon: RunningDaemon, github: FakeGitHub
) -> None:
    _manifest(github, [{"id": "aaa", "path": "aaa_agent.py"}])
    github.files[f"{REPO}/main/agents/aaa_agent.py"] = SOURCE
    _connect(daemon)
    _toggle(daemon, "aaa")
    github.files.clear()
    assert _connect(daemon).status == 502
    assert daemon.get("/repos").json()["repos"][0]["enabled_count"] == 1
    assert "Aaa" in daemon.agent_names()


def test_folders_whose_names_look_alike_stay_apart(daemon: RunningDaemon, tmp_path: Path) -> None:
    for folder, answer in (("ä", "first"), ("ö", "second")):
        path = tmp_path / folder / "agents"
        path.mkdir(parents=True)
        name = "Aaa" if folder == "ä" else "Bbb"
        (path / "same_agent.py").write_text(agent_source(name, f'return "{answer}"'))
        assert _connect(daemon, str(path.parent)).status == 200
        assert _toggle(daemon, "same_agent", url=str(path.parent)).json()["loaded"] == [name]
    assert {"Aaa", "Bbb"} <= set(daemon.agent_names())
    daemon.post("/repos/disconnect", {"url": str(tmp_path / "ä")}, control=True)
    assert "Bbb" in daemon.agent_names()
    assert "Aaa" not in daemon.agent_names()


def test_links_that_lead_out_of_a_folder_are_not_offered(daemon: RunningDaemon, tmp_path: Path) -> None:
    (tmp_path / "secret_agent.py").write_text("SECRET = 1\n")
    folder = tmp_path / "clone"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "hidden_agent.py").write_bytes(SOURCE)
    (folder / "link_agent.py").symlink_to(tmp_path / "secret_agent.py")
    (folder / "good_agent.py").write_bytes(SOURCE)
    assert [one["id"] for one in _connect(daemon, str(folder)).json()["agents"]] == ["good_agent"]
    (folder / "good_agent.py").unlink()
    (folder / "good_agent.py").symlink_to(tmp_path / "secret_agent.py")
    assert _toggle(daemon, "good_agent", url=str(folder)).status == 502
    assert daemon.get("/repos").json()["repos"][0]["enabled_count"] == 0


def test_a_whole_disk_is_no_source(daemon: RunningDaemon) -> None:
    answer = _connect(daemon, "/")
    assert answer.status in (400, 502)
    assert daemon.get("/repos").json() == {"repos": []}


@pytest.mark.parametrize("url", ["~nobody-of-that-name/x", "/" + "x" * 5000, "/a\0b", "/none/such"])
def test_folders_that_cannot_be_are_refused(daemon: RunningDaemon, url: str) -> None:
    answer = _connect(daemon, url)
    assert set(answer.json()) == {"error", "do", "code"}
    assert answer.json()["code"] in ("unreachable", "mistyped"), answer.body


def test_the_state_file_of_published_servers_is_read(
    make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "aaa_agent.py").write_bytes(SOURCE)
    workspace = daemon.home / "brainstem"
    workspace.mkdir(parents=True)
    legacy = {str(folder): {"enabled_agents": ["aaa_agent"]}, "odd/entry": 5}
    (workspace / ".repos.json").write_text(json.dumps(legacy))
    daemon.start()
    assert [repo["url"] for repo in daemon.get("/repos").json()["repos"]] == [str(folder)]
    assert _connect(daemon, str(folder)).status == 200
    assert _toggle(daemon, "aaa_agent", url=str(folder)).json()["loaded"] == ["Aaa"]
