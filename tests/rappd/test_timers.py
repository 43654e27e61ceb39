"""Timers on a daemon: asked for in words, told in the conversation that asked, listed and changed in the terminal."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

WEATHER = agent_source("Weather", "return 'Sunny, 21 °C'", "Tells the weather.")
BROKEN = agent_source("Garden", "raise RuntimeError('no sensor')", "Tells how the garden is.")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = RunningDaemon(tmp_path_factory.mktemp("timers") / "home")
    running.drop("weather_agent.py", WEATHER)
    running.drop("garden_agent.py", BROKEN)
    yield running.start()
    running.stop()


def say(daemon: RunningDaemon, text: str, session: str, *, control: bool = True) -> str:
    answer = daemon.post(
        "/chat", {"user_input": text, "session_id": session, "turn_id": str(uuid.uuid4())}, control=control
    )
    assert answer.status == 200, answer.body
    return str(answer.json()["response"])


def turns(daemon: RunningDaemon, session: str) -> list[dict[str, Any]]:
    rows = daemon.get("/conversations", control=True).json()["conversations"]
    row = next((one for one in rows if one["session"] == session), None)
    if row is None:
        return []
    found: list[dict[str, Any]] = daemon.get(f"/conversations/{row['id']}", control=True).json()["turns"]
    return found


def timers(daemon: RunningDaemon) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.get("/timers", control=True).json()["timers"]
    return found


def notices(daemon: RunningDaemon) -> list[str]:
    return [one["what"] for one in daemon.get("/notices", control=True).json()["notices"]]


def answers(daemon: RunningDaemon, session: str, number: int) -> list[str]:
    daemon.wait_for(
        lambda: len([one for one in turns(daemon, session) if one["state"] != "open"]) >= number,
        what="a turn",
    )
    return [one["text"] or one.get("problem", {}).get("error", "") for one in turns(daemon, session)]


def test_a_reminder_is_told_where_it_was_asked_for(daemon: RunningDaemon) -> None:
    told = say(daemon, "remind me in 1 second to call mum", "mum")
    assert told.startswith("(no model) Reminder set: call mum (today, "), told
    assert answers(daemon, "mum", 2)[1] == "Reminder: call mum."
    daemon.wait_for(lambda: "Reminder: call mum." in notices(daemon), what="the notice")
    assert not [one for one in timers(daemon) if one["what"] == "call mum"]


def test_a_schedule_asks_its_sentence_as_its_setter(daemon: RunningDaemon) -> None:
    told = say(daemon, "every weekday at seven tell me the weather", "sky")
    assert "every weekday at 07:00" in told
    (row,) = [one for one in timers(daemon) if one["what"] == "tell me the weather"]
    ran = daemon.cli("timers", "run", row["id"])
    assert ran.returncode == 0, ran.stderr
    assert "Sunny, 21 °C" in answers(daemon, "sky", 2)[1]
    assert [one for one in timers(daemon) if one["id"] == row["id"]], "a repetition stays"


def test_timers_are_talked_about(daemon: RunningDaemon) -> None:
    say(daemon, "remind me tomorrow at 9 to water the tomatoes", "talk")
    say(daemon, "erinnere mich morgen um 18 Uhr an den Zahnarzt", "talk")
    told = say(daemon, "what did I ask you to remind me of?", "talk")
    assert "water the tomatoes: tomorrow" in told and "den Zahnarzt: tomorrow" in told
    assert "18:00" in say(daemon, "cancel the one about zahnarzt", "talk")
    assert "10:00" in say(daemon, "move it to ten", "talk")
    assert "Paused: water the tomatoes." in say(daemon, "pause the tomatoes reminder", "talk")
    assert "(paused)" in say(daemon, "list my timers", "talk")
    assert "Cancelled: water the tomatoes" in say(daemon, "cancel the reminder about tomatoes", "talk")


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("Remind me yesterday to call mum", "Yesterday is over; nothing was set."),
        ("remind me on 31 February to laugh", "There is no 31 February; nothing was set."),
        ("every 0 seconds tell me the time", "nothing was set"),
        ("remind me to call mum", "no time was understood"),
        ("every day at 25 tell me the weather", "There is no 25 o'clock"),
    ],
)
def test_bad_times_are_said_and_nothing_is_set(daemon: RunningDaemon, sentence: str, told: str) -> None:
    before = len(timers(daemon))
    answer = say(daemon, sentence, "bad")
    assert told in answer
    assert "tored" not in answer
    assert len(timers(daemon)) == before


def test_terminal_adds_lists_moves_and_cancels(daemon: RunningDaemon) -> None:
    added = daemon.cli("timers", "add", "remind", "me", "tomorrow", "at", "9", "to", "pay", "the", "rent")
    assert added.returncode == 0 and "Reminder set: pay the rent (tomorrow, " in added.stdout
    (row,) = [one for one in timers(daemon) if one["what"] == "pay the rent"]
    assert row["id"] in daemon.cli("timers", "list").stdout
    assert "10:00" in daemon.cli("timers", "move", row["id"], "ten").stdout
    assert daemon.cli("timers", "cancel", row["id"]).returncode == 0
    assert daemon.cli("timers", "cancel", row["id"]).returncode == 4
    bad = daemon.cli("timers", "add", "whenever", "you", "like")
    assert bad.returncode == 2 and "nothing was set" in bad.stderr


def test_snooze_tells_once_more(daemon: RunningDaemon) -> None:
    say(daemon, "remind me in 1 second to stretch", "snooze")
    answers(daemon, "snooze", 2)
    daemon.wait_for(lambda: "Reminder: stretch." in notices(daemon), what="the notice")
    assert "in 10 minutes: stretch" in say(daemon, "snooze", "snooze")
    assert [one for one in timers(daemon) if one["what"] == "stretch"]
    assert "Cancelled" in say(daemon, "cancel the reminder about stretch", "snooze")


def test_failures_are_said_where_it_would_have_answered_and_pause_it(daemon: RunningDaemon) -> None:
    say(daemon, "every day at 7 tell me how the garden is", "garden")
    (row,) = [one for one in timers(daemon) if "garden" in one["what"]]
    for number in range(3):
        assert daemon.post(f"/timers/{row['id']}/run", {}, control=True).status == 200
        assert "no sensor" in answers(daemon, "garden", number + 2)[-1]


def test_programs_of_this_machine_see_their_own_alone(daemon: RunningDaemon) -> None:
    say(daemon, "remind me tomorrow at 9 to feed the owner's cat", "own")
    told = say(daemon, "what did I ask you to remind me of?", "other", control=False)
    assert "cat" not in told
    assert daemon.get("/timers").status == 403


def test_a_twins_timers_are_told_in_its_own_conversation(daemon: RunningDaemon) -> None:
    rose = daemon.post("/twins", {"name": "Rose"}, control=True).json()["key"]
    (daemon.home / "twins" / rose / "agents" / "garden_agent.py").write_text(
        agent_source("Garden", "return 'The roses bloom.'", "Tells how the garden is.")
    )

    def ask(text: str) -> str:
        body = {"user_input": text, "session_id": "rose", "turn_id": str(uuid.uuid4())}
        answer = daemon.post(f"/twins/{rose}/chat", body, control=True)
        assert answer.status == 200, answer.body
        return str(answer.json()["response"])

    assert "Reminder set: water me" in ask("remind me in 1 second to water me")
    assert answers(daemon, "rose", 2)[1] == "Reminder: water me."
    assert "every day at 07:00" in ask("every day at 7 tell me how the garden is")
    (row,) = [one for one in timers(daemon) if one["workspace"] == rose]
    assert row["id"] in daemon.cli("timers", "list").stdout
    assert "how the garden is" in ask("what did I ask you to remind me of?")
    assert daemon.post(f"/twins/{rose}/stop", {}, control=True).status == 200
    assert daemon.cli("timers", "run", row["id"]).returncode == 0
    assert "The roses bloom." in answers(daemon, "rose", 5)[-1], "the twin's own agent, woken for it"
    assert daemon.post(f"/twins/{rose}/archive", {}, control=True).status == 200
    assert daemon.post(f"/timers/{row['id']}/run", {}, control=True).status == 200
    daemon.wait_for(lambda: any("Rose is archived." in one for one in notices(daemon)), what="the notice")
    assert answers(daemon, "rose", 6)[-1] == "Rose is archived."
