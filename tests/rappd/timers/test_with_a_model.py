"""Talking about timers with a model, which asks for the agent Timer in its own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon


@pytest.fixture
def talk(make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel) -> Any:
    model = {"OPENAI_BASE_URL": f"{fake_model.url}/v1", "OPENAI_API_KEY": "k", "OPENAI_MODEL": "small"}
    return Talk(make_daemon(**model).start(), fake_model)


class Talk:
    """A conversation, in which the model asks once for the agent and then repeats what it said."""

    def __init__(self, daemon: RunningDaemon, model: FakeModel) -> None:
        self.daemon, self._model = daemon, model

    def asks(self, sentence: str, **arguments: str) -> str:
        """The result that the model got."""
        self._model.will(calls(("Timer", arguments)), says("Done."))
        body = {"user_input": sentence, "session_id": "one"}
        assert self.daemon.post("/chat", body, control=True).json()["response"] == "Done."
        return self._model.results()["Timer"]

    @property
    def timers(self) -> dict[str, str]:
        rows = self.daemon.get("/timers", control=True).json()["timers"]
        return {row["what"]: row["when"] for row in rows}


def test_a_model_lists_moves_and_cancels(talk: Talk) -> None:
    talk.asks("nudge me about mum", action="add", what="call mum", when="tomorrow at 9")
    talk.asks("and the dentist", action="add", what="go to the dentist", when="tomorrow at 11")
    told = talk.asks("what is coming up?", action="list")
    assert "- call mum: tomorrow, " in told and "- go to the dentist: tomorrow, " in told
    assert talk.asks("ten is better for mum", action="move", which="mum", when="ten").startswith("Moved.")
    assert "10:00" in talk.timers["call mum"] and "11:00" in talk.timers["go to the dentist"]
    assert "To when?" in talk.asks("shift mum", action="move", which="mum")
    assert "No timer about “cat” is set." in talk.asks("no cat", action="cancel", which="cat")
    assert talk.asks("forget mum", action="cancel", which="mum").startswith("Cancelled: call mum (")
    assert list(talk.timers) == ["go to the dentist"]
    assert talk.asks("forget it all", action="cancel", which="all") == "Cancelled: 1 timer."
    assert talk.asks("anything left?", action="list") == "You asked me for nothing: no timers are set."


def test_a_model_snoozes_what_was_told(talk: Talk) -> None:
    assert talk.asks("not now", action="snooze").startswith("Nothing was told yet.")
    talk.asks("nudge me", action="add", what="stretch", when="in 1 second")
    talk.daemon.wait_for(lambda: not talk.timers, what="the reminder to be told")
    assert "in 5 minutes: stretch" in talk.asks("give me five", action="snooze", when="in 5 minutes")
    assert list(talk.timers) == ["stretch"]


def test_a_models_bad_time_sets_nothing(talk: Talk) -> None:
    assert "nothing was set" in talk.asks("whenever", action="add", what="call mum", when="whenever")
    assert "Yesterday is over" in talk.asks("too late", action="add", what="call mum", when="yesterday at 9")
    assert talk.timers == {}
