"""News for the owner, as an owner meets them: on two real machines, across stops, in a turn, by a command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import RunningDaemon, agent_source

from rappd.errors import NotFoundError, StoreError
from rappd.notices.command import NotifyCommand, as_argument
from rappd.notices.notices import Notices
from rappd.store.notice_table import Notice, NoticeTable
from rappd.store.store import Store
from rappd.tether import phone_session
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable

WEATHER = agent_source("Weather", 'return "rain"')


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Callable[[str], Machine]]:
    running: list[Machine] = []

    def start(name: str) -> Machine:
        running.append(Machine(tmp_path / name, name, LLM_FAKE="1").start())
        return running[-1]

    yield start
    for one in running:
        one.stop()


def waiting(daemon: RunningDaemon) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(daemon.cli("notices", "list", "--json").stdout)["notices"]
    return found


def notice_of(daemon: RunningDaemon, kind: str) -> dict[str, Any]:
    def look() -> list[dict[str, Any]]:
        return [one for one in waiting(daemon) if one["kind"] == kind]

    daemon.wait_for(look, what=f"a notice of {kind}")
    return look()[0]


@pytest.mark.own_process
def test_received_egg_and_late_answer_wait_across_a_stop(
    machines: Callable[..., Machine], tmp_path: Path
) -> None:
    desk, pi = machines("desk"), machines("pi")
    acquaint(desk, pi)
    egg = tmp_path / "rose.egg"
    pi.cli("twins", "new", "Rose", "--kind", "place")
    assert pi.cli("egg", "pack", "Rose", "-o", egg).returncode == 0
    assert pi.cli("egg", "send", egg, "desk").returncode == 0
    assert notice_of(desk, "egg")["what"] == "pi sent rose.egg; it waits to be hatched."

    pi.stop()
    desk.misses("pi")
    assert "Queued" in desk.cli("call", "pi", "hello").stdout
    pi.start()
    late = notice_of(desk, "answer")
    assert late["what"] == "pi answered: hello"

    desk.kill()
    desk.start()
    assert {one["kind"] for one in waiting(desk)} == {"egg", "answer"}, "kept across a kill"
    screen = desk.cli("status").stdout
    assert "rose.egg" in screen and "pi answered" in screen
    assert "notice" not in desk.talk("hi"), "news are no part of an answer"
    told = desk.cli("chat", "hi").stderr
    assert "pi sent rose.egg" in told and late["what"] in told
    assert "rose.egg" not in desk.cli("chat", "hi").stderr, "told once"

    shown = desk.cli("notices", "list").stdout
    command = shown.split("rose.egg; ")[1].split("→ rappd ")[1].splitlines()[0]
    assert desk.cli(*command.replace("egg plan", "egg hatch").split()).returncode == 0
    assert [one["kind"] for one in waiting(desk)] == ["answer"], "an egg that was hatched waits no more"
    assert desk.cli("notices", "dismiss", late["key"][:10]).stdout == "1 notice dismissed.\n"
    assert waiting(desk) == []
    missing = desk.cli("notices", "dismiss", "nothing")
    assert missing.returncode == 4


def test_machine_that_asks_to_pair_is_a_notice_while_it_asks(machines: Callable[..., Machine]) -> None:
    desk, pi = machines("desk"), machines("pi")
    begun = pi.owner("POST", "/pairings", {"peer": desk.address})["pairing"]
    found = notice_of(desk, "pairing")
    assert found["what"] == "pi (127.0.0.1) wants to pair with this machine."
    assert found["do"] == "rappd peers pair pi"
    pi.owner("DELETE", f"/pairings/{begun['attempt']}")
    desk.wait_for(lambda: not waiting(desk), what="the notice to go")


def test_quarantined_file_is_a_notice_until_it_is_approved(
    make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    kitchen, desk = make_daemon("kitchen", LLM_FAKE="1"), make_daemon("desk", LLM_FAKE="1")
    kitchen.drop("weather_agent.py", WEATHER)
    egg = tmp_path / "weather.egg"
    packed = kitchen.cli("egg", "pack", "--form", "agent", "--item", "weather_agent.py", "-o", egg)
    assert packed.returncode == 0, packed.stderr
    desk.start()
    assert desk.cli("egg", "hatch", egg).returncode == 0
    found = notice_of(desk, "approval")
    assert found["what"] == "weather_agent.py waits for your approval: kept, and not run."
    assert desk.cli("agents", "approve", "weather_agent.py").returncode == 0
    desk.wait_for(lambda: not waiting(desk), what="the notice to go")


def test_notify_command_gets_words_and_no_shell(machines: Callable[..., Machine], tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"""sh -c 'printf "%s|" "$@" >> {told}' tell"""
    desk, pi = machines("desk"), machines("pi id")
    assert desk.cli("config", "set", "notify.command", f"{script} 'for me' $(id)").returncode == 0
    begun = pi.owner("POST", "/pairings", {"peer": desk.address})["pairing"]
    assert begun["state"]
    desk.wait_for(told.exists, what="the command to run")
    assert told.read_text() == (
        "for me|$(id)|pi-id (127.0.0.1) wants to pair with this machine.|rappd peers pair pi-id|"
    )


async def test_notify_command_gets_no_option_and_no_file_from_a_strangers_name(tmp_path: Path) -> None:
    told = tmp_path / "told"
    notifying = NotifyCommand(lambda: f"""sh -c 'printf "%s|" "$@" >> {told}' tell""")
    running = asyncio.create_task(notifying.follow())
    notifying.tell(Notice("1", "pairing", 0.0, "--config=/tmp/x (10.0.0.9) wants to pair.", "-rf", ""))
    async with asyncio.timeout(100):
        while not told.exists() or told.read_text().count("|") < 2:
            await asyncio.sleep(0.02)
    running.cancel()
    assert told.read_text() == "Notice: --config=/tmp/x (10.0.0.9) wants to pair.|Notice: -rf|"


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("-x", "Notice: -x"), ("@/etc/passwd", "Notice: @/etc/passwd"), ("+x", "Notice: +x"), (":x", "Notice: :x"),
        ("<img>", "Notice: <img>"), ("pi wants to pair.", "pi wants to pair."), ("Überall", "Überall"), ("", ""),
        ("“pi” waits.", "“pi” waits."), ("7 eggs", "7 eggs"),
    ],
)  # fmt: skip
def test_text_of_a_notice_is_text_to_any_program(text: str, argument: str) -> None:
    assert as_argument(text) == argument


async def test_notices_are_bounded_and_hold_no_control_signs() -> None:
    notices = Notices()
    for number in range(150):
        notices.add(f"egg {number}\x1b[2J\nsecond line {'x' * 1000}", "do")
    found = notices.waiting()
    assert len(found) == 100
    assert all(one.what.isprintable() and len(one.what) <= 300 for one in found)
    assert {one.what.split("[")[0] for one in found} == {f"egg {number} " for number in range(50, 150)}


async def test_notice_is_told_once_in_plain_words_and_listed_until_it_is_dismissed() -> None:
    notices = Notices()
    notices.add("pi sent rose.egg.", "rappd egg held", kind="egg", key="rose")
    assert notices.take() == ["pi sent rose.egg."]
    assert notices.take() == []
    assert [one.key for one in notices.waiting()] == ["rose"]
    notices.add("A copy of /home/me/.rapp/eggs/rose.egg was not made.", "rappd logs")
    assert notices.take() == ["A copy of rose.egg was not made."]
    assert [one.key for one in notices.waiting()] == ["rose"], "nothing is left to do about a failure"


async def test_notice_is_dismissed_once_that_is_recorded(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "rappd.db")
    table = _FillableTable(store)
    notices = Notices(table)
    for name in ("rose", "lily"):
        notices.add(f"pi sent {name}.egg.", "rappd egg held", kind="egg", key=f"egg-{name}")
    await notices.close()
    table.full = True
    for refused in (notices.dismiss("egg-rose"), notices.dismiss_all()):
        with pytest.raises(StoreError, match="The disk is full"):
            await refused
    notices.add("pi sent fern.egg.", "rappd egg held", kind="egg", key="egg-fern")
    notices.settle("egg-lily")
    await notices.close()
    assert {one.key for one in notices.waiting()} == {"egg-rose", "egg-fern"}, "it still waits"
    table.full = False
    notices.add("A copy was not made.", "rappd logs", key="copy")
    await notices.close()
    after = Notices(table)
    await after.load()
    assert {one.key for one in after.waiting()} == {"egg-rose", "egg-fern", "copy"}, (
        "what had no room is there"
    )
    assert (await after.dismiss("egg-rose")).key == "egg-rose"
    await after.load()
    assert {one.key for one in after.waiting()} == {"egg-fern", "copy"}
    await store.close()


class _FillableTable(NoticeTable):
    """Notices on a disk that a test can fill."""

    full = False

    async def set(self, notice: Notice) -> None:
        self._refuse()
        await super().set(notice)

    async def remove(self, key: str) -> None:
        self._refuse()
        await super().remove(key)

    def _refuse(self) -> None:
        if self.full:
            raise StoreError("The disk is full; rappd.db cannot grow.")


@pytest.mark.parametrize("key", ["rose", "ros", "", "lily-"])
async def test_key_that_means_several_notices_or_none_dismisses_none(key: str) -> None:
    notices = Notices()
    for name in ("rose-1", "rose-2", "tulip-1"):
        notices.add(f"pi sent {name}.", "rappd egg held", kind="egg", key=name)
    with pytest.raises(NotFoundError):
        await notices.dismiss(key)
    assert len(notices.waiting()) == 3
    assert (await notices.dismiss("tuli")).key == "tulip-1"
    assert [one.key for one in notices.waiting()] == ["rose-2", "rose-1"]


def test_only_the_operator_sees_notices(fake_daemon: RunningDaemon) -> None:
    for method, path in (("GET", "/notices"), ("POST", "/notices/dismiss")):
        assert fake_daemon.request(method, path, {"all": True}).status in (401, 403)


async def test_news_come_to_pages_and_phones_and_leave_them_at_once(
    make_daemon: Callable[..., RunningDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        phone_session, "PING_SECONDS", 600.0
    )  # nothing else makes a phone's list be looked at
    monkeypatch.setattr(phone_session, "DEAD_SECONDS", 1200.0)
    desk = make_daemon("desk", **reachable())
    await asyncio.to_thread(desk.start)
    mine, guest = (
        await AiortcClient(desk).pair("mine", name="Mine"),
        await AiortcClient(desk).pair(name="Guest"),
    )
    for phone in (mine, guest):
        path = f"/devices/{phone.id}"
        await asyncio.to_thread(desk.request, "POST", path, {"notices": phone is mine}, control=True)
    await mine.sees(lambda: mine.waiting.get("may") is True)
    page = await asyncio.to_thread(desk.stream, "/activity/stream")
    added = {"text": "remind me in 1 second to call mum"}
    await asyncio.to_thread(desk.request, "POST", "/timers", added, control=True)
    await mine.sees(lambda: [row["what"] for row in mine.waiting["rows"]] == ["Reminder: call mum."])
    came = await asyncio.to_thread(told, page, "notice")
    dismissed = {"key": came["key"]}
    await asyncio.to_thread(desk.request, "POST", "/notices/dismiss", dismissed, control=True)
    await mine.sees(lambda: mine.waiting["rows"] == [])
    assert (await asyncio.to_thread(told, page, "notice_gone"))["key"] == came["key"]
    assert guest.waiting == {}, "news are for phones that may see them"
    page.close()
    await mine.leave()
    await guest.leave()


def told(page: object, kind: str) -> dict[str, str]:
    """The next message of a kind on a page's stream."""
    for line in page:  # type: ignore[attr-defined]  # an HTTPResponse
        text = line.decode().removeprefix("data:").strip()
        if text.startswith("{") and (found := json.loads(text)).get("type") == kind:
            return dict(found)
    raise AssertionError(f"the stream ended without {kind}")
