from __future__ import annotations

import asyncio
import json
from html.parser import HTMLParser
from typing import Any

import pytest

from agents.rapps.rapplication import read_rapplication
from agents.rapps.shipped_bundle import SHIPPED

NAMES = {"kanban": "Kanban", "webhook": "Webhook", "dashboard": "Dashboard"}
CATEGORIES = {"kanban": "workspace", "webhook": "integration", "dashboard": "analytics"}


@pytest.mark.parametrize("ident", NAMES)
def test_the_bundle_is_sound_and_goes_to_its_places(ident: str) -> None:
    rapp = read_rapplication(SHIPPED / ident)
    assert (rapp.id, rapp.name, rapp.category) == (ident, NAMES[ident], CATEGORIES[ident])
    assert rapp.manifest["singleton_sha256"]
    assert [file.path for file in rapp.files] == [
        f"rapps/{ident}/manifest.json",
        f"services/{ident}_service.py",
        f"agents/{ident}_agent.py",
        f"rapps/{ident}/ui/app.js",
        f"rapps/{ident}/ui/index.html",
        f"rapps/{ident}/ui/style.css",
    ]
    assert rapp.has_ui


@pytest.mark.parametrize("ident", NAMES)
def test_files_of_a_bundle_need_no_other(ident: str) -> None:
    files = {file.path: file.content.decode() for file in read_rapplication(SHIPPED / ident).files}
    store = (SHIPPED / ident / "store.py").read_text().partition("from typing import Any\n")[2]
    for code in (files[f"agents/{ident}_agent.py"], files[f"services/{ident}_service.py"]):
        assert store in code
        assert "agents.rapps" not in code
        compile(code, ident, "exec")
    assert files[f"rapps/{ident}/ui/app.js"].endswith((SHIPPED / "page/page.js").read_text())
    assert files[f"rapps/{ident}/ui/style.css"].startswith((SHIPPED / "page/page.css").read_text())


@pytest.mark.parametrize("ident", NAMES)
async def test_the_agent_passes_the_ten_contract_tests(shop: Any, ident: str) -> None:
    answer = await shop.ask("test", {"file": shop.file(NAMES[ident])})
    assert [one for one in answer["tests"] if not one["passed"]] == []


@pytest.mark.parametrize("ident", NAMES)
def test_the_page_obeys_a_strict_content_policy(ident: str) -> None:
    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.links: list[str] = []
            self.inline: list[str] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found = dict(attrs)
            self.links += [value for key in ("src", "href") if (value := found.get(key))]
            self.inline += [key for key in found if key.startswith("on") or key == "style"]
            self.inline += [tag] if tag == "style" or (tag == "script" and not found.get("src")) else []

    reader = Reader()
    reader.feed((SHIPPED / ident / "ui" / "index.html").read_text())
    assert reader.inline == []
    assert set(reader.links) == {"data:,", "style.css", "app.js"}
    files = {file.path: file.content.decode() for file in read_rapplication(SHIPPED / ident).files}
    script = files[f"rapps/{ident}/ui/app.js"]
    assert f'"/api/{ident}"' in script
    assert "innerHTML" not in script


async def test_the_board_is_one_whether_asked_by_agent_or_by_service(shop: Any) -> None:
    assert await shop.service("kanban", "GET") == (200, {"columns": ["To do", "Doing", "Done"], "tasks": []})
    status, made = await shop.service("kanban", "POST", "tasks", {"title": "Fix the gate"})
    assert (status, made["status"]) == (201, "success")
    assert len(made["task_id"]) == 8
    listed = await shop.agent("Kanban")
    assert listed["message"].splitlines()[:2] == ["**To do**", f"- Fix the gate ({made['task_id']})"]
    assert listed["data_slush"] == {"open": 1, "columns": {"To do": 1, "Doing": 0, "Done": 0}}
    moved = await shop.agent("Kanban", action="move", task="fix the GATE", column="done")
    assert moved["message"] == '"Fix the gate" is in Done now.'
    _, board = await shop.service("kanban", "GET")
    assert [(task["id"], task["column"]) for task in board["tasks"]] == [(made["task_id"], "Done")]
    assert json.loads((shop.data / "kanban" / "kanban.json").read_text()) == board
    path = f"tasks/{made['task_id']}"
    assert (await shop.service("kanban", "PUT", path, {"title": "Mend it", "column": "doing"}))[0] == 200
    _, board = await shop.service("kanban", "GET")
    assert (board["tasks"][0]["title"], board["tasks"][0]["column"]) == ("Mend it", "Doing")
    assert (await shop.service("kanban", "DELETE", path))[0] == 200
    assert (await shop.service("kanban", "DELETE", path))[0] == 404
    assert (await shop.agent("Kanban"))["message"] == "Nothing is on the board."


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "tasks", {}, 400),
        ("POST", "tasks", {"title": "x", "column": "Limbo"}, 400),
        ("POST", "tasks", {"title": "x" * 201}, 400),
        ("POST", "tasks", ["x"], 400),
        ("PUT", "tasks/nothere", {"title": "x"}, 404),
        ("POST", "elsewhere", {"title": "x"}, 404),
        ("DELETE", "", {}, 404),
    ],
)
async def test_the_board_refuses_what_is_wrong(
    shop: Any, method: str, path: str, body: Any, status: int
) -> None:
    found, answer = await shop.service("kanban", method, path, body)
    assert (found, answer["status"]) == (status, "error")
    assert answer["error"]


async def test_the_agent_does_everything_without_the_service(shop: Any) -> None:
    (shop.root / "services" / "kanban_service.py").unlink()
    added = await shop.agent("Kanban", task="Paint", column="doing", details="Blue")
    ident = added["task_id"]
    assert (await shop.agent("Kanban", action="update", task=ident, title="Paint it", column="To do"))[
        "status"
    ] == "success"
    listed = await shop.agent("Kanban", action="list", column="to-do")
    assert [(task["title"], task["description"]) for task in listed["tasks"]] == [("Paint it", "Blue")]
    assert (await shop.agent("Kanban", action="delete", task=ident))["status"] == "success"
    for wrong in (
        {"action": "move", "task": ident},
        {"action": "add"},
        {"action": "fly"},
        {"column": "Limbo"},
    ):
        assert (await shop.agent("Kanban", **wrong))["status"] == "error"


async def test_a_damaged_board_is_left_as_it_is(shop: Any) -> None:
    (shop.data / "kanban").mkdir()
    (shop.data / "kanban" / "kanban.json").write_text('{"columns": []}')
    assert "damaged" in (await shop.agent("Kanban", task="x"))["message"]
    status, answer = await shop.service("kanban", "POST", "tasks", {"title": "x"})
    assert status == 500
    assert "damaged" in answer["error"]
    assert (shop.data / "kanban" / "kanban.json").read_text() == '{"columns": []}'


async def test_changes_made_at_once_by_both_are_all_kept(shop: Any) -> None:
    await asyncio.gather(
        *(shop.agent("Kanban", task=f"a{number}") for number in range(20)),
        *(shop.service("kanban", "POST", "tasks", {"title": f"s{number}"}) for number in range(20)),
        *(shop.agent("Dashboard", metric="m", value=number) for number in range(10)),
        *(shop.service("webhook", "POST", "ingest", {"n": number}) for number in range(10)),
    )
    assert len((await shop.service("kanban", "GET"))[1]["tasks"]) == 40
    assert (await shop.service("dashboard", "GET", "m"))[1]["count"] == 10
    assert (await shop.service("webhook", "GET"))[1]["count"] == 10
    kept = [path for ident in NAMES for path in (shop.data / ident).iterdir()]
    assert sorted(path.name for path in kept) == ["dashboard.json", "kanban.json", "webhook.jsonl"]


async def test_events_come_in_by_service_and_are_listed_by_the_agent(shop: Any) -> None:
    body = {"source": "github", "event_type": "push", "payload": {"title": "Push to main", "by": "ada"}}
    assert await shop.service("webhook", "POST", "ingest", body) == (
        201,
        {"status": "success", "received": 1},
    )
    await shop.service("webhook", "POST", "ingest", {"type": "alarm", "message": "It rains"})
    (line, _) = (shop.data / "webhook" / "webhook.jsonl").read_text().splitlines()
    assert json.loads(line).keys() == {"received_at", "source", "event_type", "summary", "payload"}
    status, found = await shop.service("webhook", "GET", "events")
    assert status == 200
    assert [(event["source"], event["event_type"], event["summary"]) for event in found["events"]] == [
        ("unknown", "alarm", "It rains"),
        ("github", "push", "Push to main"),
    ]
    assert [event["summary"] for event in (await shop.agent("Webhook", source="GitHub"))["events"]] == [
        "Push to main"
    ]
    assert [event["summary"] for event in (await shop.agent("Webhook", query="rains alarm"))["events"]] == [
        "It rains"
    ]
    assert (await shop.agent("Webhook", action="summary"))["counts"] == {"unknown alarm": 1, "github push": 1}


async def test_the_last_fifty_events_are_shown(shop: Any) -> None:
    lines = [json.dumps({"source": "s", "event_type": "e", "summary": str(number)}) for number in range(60)]
    (shop.data / "webhook").mkdir()
    (shop.data / "webhook" / "webhook.jsonl").write_text("\n".join([*lines, '{"cut sho']))
    _, found = await shop.service("webhook", "GET")
    assert [event["summary"] for event in found["events"]] == [str(number) for number in range(59, 9, -1)]
    await shop.service("webhook", "POST", "ingest", {"summary": "after the cut"})
    assert (await shop.service("webhook", "GET"))[1]["events"][0]["summary"] == "after the cut"


async def test_old_events_make_room(shop: Any) -> None:
    line = json.dumps({"source": "s", "event_type": "e", "summary": "old", "payload": "x" * 5000})
    (shop.data / "webhook").mkdir()
    (shop.data / "webhook" / "webhook.jsonl").write_text(f"{line}\n" * 1100)
    await shop.service("webhook", "POST", "ingest", {"summary": "new"})
    assert (await shop.agent("Webhook", action="summary"))["data_slush"] == {"count": 1001}


async def test_events_are_recorded_without_the_service(shop: Any) -> None:
    (shop.root / "services" / "webhook_service.py").unlink()
    assert (await shop.agent("Webhook", action="record", source="me", summary="Hello"))["status"] == "success"
    assert (await shop.agent("Webhook"))["data_slush"] == {"count": 1, "newest": "Hello"}
    assert (await shop.agent("Webhook", action="record"))["status"] == "error"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("ingest", {}, 400),
        ("ingest", ["x"], 400),
        ("ingest", {"payload": "x" * (300 << 10)}, 413),
        ("", {"x": 1}, 404),
    ],
)
async def test_what_is_no_event_is_refused(shop: Any, path: str, body: Any, status: int) -> None:
    assert (await shop.service("webhook", "POST", path, body))[0] == status
    assert not (shop.data / "webhook" / "webhook.jsonl").exists()


async def test_numbers_are_logged_and_shown_by_both(shop: Any) -> None:
    assert await shop.service("dashboard", "GET") == (200, {"metrics": {}})
    assert (await shop.service("dashboard", "POST", "weight", {"value": 81.5}))[0] == 201
    assert (await shop.agent("Dashboard", metric="weight", value="80.5"))["data_slush"] == {
        "metric": "weight",
        "latest": 80.5,
        "change": -1.0,
    }
    status, found = await shop.service("dashboard", "GET", "weight")
    assert status == 200
    assert [point["value"] for point in found["points"]] == [81.5, 80.5]
    _, overview = await shop.service("dashboard", "GET")
    row = overview["metrics"]["weight"]
    assert (row["latest"], row["minimum"], row["maximum"], row["average"], row["count"]) == (
        80.5,
        80.5,
        81.5,
        81.0,
        2,
    )
    assert (await shop.agent("Dashboard"))["message"] == "- weight: 80.5 (average 81, 80.5 to 81.5, 2 points)"
    assert (await shop.service("dashboard", "DELETE", "weight"))[0] == 200
    assert (await shop.service("dashboard", "GET", "weight"))[0] == 404


async def test_the_last_hundred_points_are_shown(shop: Any) -> None:
    points = [{"value": number, "recorded_at": "2030-01-01T00:00:00+00:00"} for number in range(1000)]
    (shop.data / "dashboard").mkdir()
    (shop.data / "dashboard" / "dashboard.json").write_text(json.dumps({"metrics": {"m": points}}))
    await shop.service("dashboard", "POST", "m", {"value": 1000})
    _, found = await shop.service("dashboard", "GET", "m")
    assert [point["value"] for point in found["points"]] == list(range(901, 1001))
    assert found["count"] == 1000  # the oldest went
    assert len((await shop.agent("Dashboard", metric="M", limit=7))["points"]) == 7


@pytest.mark.parametrize("value", [None, "much", True, float("inf"), [], {}, "nan"])
async def test_without_a_number_nothing_is_logged(shop: Any, value: Any) -> None:
    sent = None if value == float("inf") else value  # JSON has no infinity; the agent may still get one
    assert (await shop.service("dashboard", "POST", "m", {"value": sent}))[0] == 400
    assert (await shop.agent("Dashboard", action="log", metric="m", value=str(value)))["status"] == "error"
    assert not (shop.data / "dashboard" / "dashboard.json").exists()


async def test_numbers_are_kept_without_the_service(shop: Any) -> None:
    (shop.root / "services" / "dashboard_service.py").unlink()
    await shop.agent("Dashboard", action="log", metric="page views", value=3)
    assert (await shop.agent("Dashboard", metric="Page Views"))["latest"] == 3
    assert (await shop.agent("Dashboard", action="delete", metric="page views"))["status"] == "success"
    assert (await shop.agent("Dashboard"))["message"] == "No number is kept yet."
    for wrong in ({"metric": "gone"}, {"action": "log", "metric": "../x", "value": 1}, {"action": "fly"}):
        assert (await shop.agent("Dashboard", **wrong))["status"] == "error"


async def test_a_task_is_understood_as_people_say_it(shop: Any) -> None:
    await shop.agent("Kanban", action="add", task="fix the gate to the kanban board")
    moved = await shop.agent("Kanban", action="move", task="move fix the gate to doing", column="doing")
    assert moved["message"] == '"fix the gate" is in Doing now.'


async def test_a_filter_that_fits_nothing_says_which(shop: Any) -> None:
    assert (await shop.agent("Webhook"))["message"] == "No event has come in yet."
    await shop.agent("Webhook", action="record", source="me", summary="Hello")
    assert (await shop.agent("Webhook", source="you"))["message"] == "None of the 1 events fits: source you."
