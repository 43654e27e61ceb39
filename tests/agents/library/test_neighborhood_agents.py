"""NeighborhoodSnapshot and NeighborhoodRun: what they ask of the daemon, what they answer, and what is understood without a model."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agents.library
from agents.contract.agent import is_structural
from agents.contract.readable_results import present
from agents.providers.offline.next_step import decide
from agents.providers.offline.route import Decision, route

TAKE, RUN = "neighborhood_snapshot_agent.py", "neighborhood_run_agent.py"
DRILL = {"at": "2026-11-21T10:00:00Z", "files": 9, "problem": ""}
ROW = {"name": "home", "path": "/e/home.egg", "machines": 2, "twins": 3, "missing": ["shed"], "restorable": True,
       "there": True, "drill": DRILL}  # fmt: skip
ZERO = {"created": 0, "overwritten": 0, "skipped": 0}
PLAN = {
    "egg": {"name": "home"},
    "seal": {"standing": "self", "signer_name": ""},
    "target": "in-place",
    "categories": dict.fromkeys(("agents", "core", "data", "global_state"), ZERO)
    | {"twins": {**ZERO, "created": 4}, "peer_twins": {**ZERO, "created": 1}},
    "local": [{"name": "Rose", "quarantined": 0}],
    "peers": [{"name": "pi", "twins": [{"name": "cook", "action": "create"}]}],
    "boot": [],
    "left_archived": 0,
    "problems": [],
    "digest": "d" * 64,
}
WORK = {
    "id": "w",
    "kind": "snapshot",
    "phase": "reading",
    "machines": [
        {"name": "desk", "state": "done", "done": 5, "whole": 5},
        {"name": "pi", "state": "reading", "done": 61, "whole": 100},
    ],
    "parts": {"done": 0, "whole": 0},
}
EGG = {"name": "home", "size": 9, "path": "/e/home.egg", "sha256": "a", "whole": True, "signer": "4f" * 32,
       "signer_name": "desk", "restorable": True, "drill": DRILL, "missing": ["shed"],
       "machines": [{"name": "desk", "twins": [{"name": "Rose", "captured": True}]},
                    {"name": "pi", "twins": [{"name": "atlas", "captured": False, "reason": "oversize"}]}]}  # fmt: skip


class FakeDaemon:
    """Answers as a daemon does; ``slow``: the work lasts longer than a call; ``others``: other machines would be written to."""

    def __init__(self, desk: Any) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.slow = self.others = self.busy = self.away = False
        desk.keeper.answer = self._answer

    def _answer(self, operation: str, given: dict[str, Any]) -> Any:
        self.asked.append((operation, given))
        match operation:
            case "neighborhood.status":
                return {"work": WORK if self.busy else None}
            case "neighborhood.snapshots":
                return {"snapshots": [ROW]}
            case "fleet.archive_estate":
                here = {"peer": "self", "ok": True, "would_archive": [], "errors": []}
                rows = [*([] if self.away else [here]), {"peer": "pi", "ok": False, "error": "pi is away."}]
                return {"ok": False, "action": "archive_estate", "mode": "dry-run", "per_peer": rows}
            case "neighborhood.places":
                rows = [("garden", 1, True), ("club", 3, True), ("invited only", 2, False)]
                return {"neighborhoods": [{"name": a, "count": b, "joined": c} for a, b, c in rows]}
            case "neighborhood.inspect":
                return {"snapshot": EGG}
            case "neighborhood.plan":
                return {"plan": PLAN}
            case "neighborhood.snapshot" if not self.slow:
                secret = {"path": "Rose/a.py", "why": "a likely password", "id": "9"}
                failed = [{"path": "shed", "why": "no answer"}]
                done = {"snapshot": ROW, "failed": failed, "oversize": [], "left_out": [secret]}
                return {**done, "message": "The snapshot home holds 2 machines."}
            case "neighborhood.hatch" if self.others and not given["confirm"]:
                return {"plan": PLAN, "needs_yes": True}
            case "neighborhood.hatch" if not self.slow:
                hatched = {**PLAN, "receipts": ["r"], "failed": [], "partial": False}
                return {"hatched": hatched, "message": "home is restored."}
        return {"work": WORK}


@pytest.fixture
def daemon(desk: Any) -> FakeDaemon:
    return FakeDaemon(desk)


@pytest.mark.parametrize("name", ["NeighborhoodSnapshot", "NeighborhoodRun"])
def test_neighborhood_agents_are_the_operators_alone(name: str) -> None:
    assert is_structural(name)


@pytest.mark.parametrize(
    ("away", "state", "begin"), [(False, "partial", "Not every"), (True, "error", "Fleet failed")]
)
async def test_archiving_failed_only_where_no_machine_answers(
    desk: Any, daemon: FakeDaemon, away: bool, state: str, begin: str
) -> None:
    daemon.away = away
    told = await desk.text("fleet_agent.py", "Fleet", action="archive_estate", filter={"kind": "project"})
    assert f'"status": "{state}"' in told
    shown = present([("Fleet", told)])
    assert shown.startswith(begin)
    assert "pi is away." in shown


async def test_neighborhoods_are_those_that_were_joined(desk: Any, daemon: FakeDaemon) -> None:
    told = await desk.json("fleet_agent.py", "Fleet", action="neighborhoods")
    assert told["message"] == "You are in:\n- garden: 1 member\n- club: 3 members"
    assert told["data_slush"] == {"neighborhoods": ["garden", "club"]}


async def test_snapshot_passes_published_flags_and_tells_what_is_missing(
    desk: Any, daemon: FakeDaemon
) -> None:
    flags = {"include_archived": True, "include_twin_workspaces": False, "max_twin_bytes": 5}
    told = await desk.text(TAKE, "NeighborhoodSnapshot", action="snapshot", name="home", **flags)
    assert daemon.asked == [("neighborhood.snapshot", {"name": "home", "options": flags})]
    shown = present([("NeighborhoodSnapshot", told)])
    assert shown == (
        "The snapshot home holds 2 machines.\n- shed: no answer\n"
        "- left out, a likely secret: Rose/a.py (a likely password)"
    )


async def test_snapshot_that_lasts_tells_how_far_each_machine_is(desk: Any, daemon: FakeDaemon) -> None:
    daemon.slow = daemon.busy = True
    for action in ("snapshot", "inspect"):
        told = await desk.json(TAKE, "NeighborhoodSnapshot", action=action)
        assert "- desk: done\n- pi: reading, 61 %" in told["message"]


async def test_snapshots_are_listed_with_their_drill(desk: Any, daemon: FakeDaemon) -> None:
    told = await desk.json(TAKE, "NeighborhoodSnapshot", action="list_eggs")
    assert "- home: 2 machines, 3 twins, restorable, tried 2026-11-21, without shed" in told["message"]
    looked = await desk.json(RUN, "NeighborhoodRun", action="inspect", egg_path="home")
    assert "- desk: Rose" in looked["message"]
    assert "missing: shed" in looked["message"]


async def test_plan_is_told_with_the_digest_for_the_yes(desk: Any, daemon: FakeDaemon) -> None:
    told = await desk.json(RUN, "NeighborhoodRun", action="plan", egg_path="home", overwrite_twins=True)
    options = {"target": "in-place", "overwrite_twins": True}
    assert daemon.asked == [("neighborhood.plan", {"egg": "home", "options": options})]
    assert "- files of twins: 4 new, 0 replaced, 0 stay\n" in told["message"]
    assert "- pi: cook (create)" in told["message"]
    assert told["message"].endswith("Nothing was written.")
    assert told["data_slush"]["digest"] == PLAN["digest"]


async def test_hatch_that_writes_elsewhere_asks_first(desk: Any, daemon: FakeDaemon) -> None:
    daemon.others = True
    told = await desk.json(RUN, "NeighborhoodRun", action="hatch", egg_path="home", confirm="yes")
    assert '"yes, restore home" does it' in told["message"]
    told = await desk.json(RUN, "NeighborhoodRun", action="hatch", egg_path="home", confirm=True)
    assert told["message"].startswith("home is restored.")


@pytest.mark.parametrize(
    ("file", "agent", "given"),
    [(TAKE, "NeighborhoodSnapshot", {"action": "dance"}), (RUN, "NeighborhoodRun", {"action": "snapshot"}),
     (RUN, "NeighborhoodRun", {"action": "hatch", "target": "elsewhere"})],
)  # fmt: skip
async def test_neighborhood_agents_unknown_word_is_named(
    desk: Any, daemon: FakeDaemon, file: str, agent: str, given: dict[str, Any]
) -> None:
    assert (await desk.text(file, agent, **given)).startswith("Error: there is no ")
    assert daemon.asked == []


def shipped_tools() -> list[dict[str, Any]]:
    tools = []
    for path in sorted(Path(agents.library.__path__[0]).glob("*_agent.py")):
        module = importlib.import_module(f"agents.library.{path.stem}")
        for name, cls in [*vars(module).items()]:  # names that are looked up late come meanwhile
            if name.endswith("Agent") and name not in ("BasicAgent", "BuddyAgent") and isinstance(cls, type):
                tools.append({"type": "function", "function": cls().metadata})
    return tools


@pytest.fixture(scope="module")
def understood() -> Callable[[str], Decision]:
    """Keyword matching with every shipped agent that anybody is offered."""
    tools = shipped_tools()
    return lambda text: route(text, tools)


@pytest.mark.parametrize(
    ("text", "agent", "given"),
    [
        ("snapshot my machines", "NeighborhoodSnapshot", {"action": "snapshot"}),
        ("please take a snapshot of all my machines", "NeighborhoodSnapshot", {"action": "snapshot"}),
        ("back up my machines into one file", "NeighborhoodSnapshot", {"action": "snapshot"}),
        ("back up everything", "NeighborhoodSnapshot", {"action": "snapshot"}),
        ("take a snapshot called sunday", "NeighborhoodSnapshot", {"action": "snapshot", "name": "sunday"}),
        (
            'snapshot my machines named "before the move"',
            "NeighborhoodSnapshot",
            {"action": "snapshot", "name": "before the move"},
        ),
        (
            "archive the twins of kind project on all machines",
            "Fleet",
            {"action": "archive_estate", "filter": {"kind": "project"}},
        ),
        ("what snapshots are there?", "NeighborhoodSnapshot", {"action": "list_eggs"}),
        ("show me the snapshots", "NeighborhoodSnapshot", {"action": "list_eggs"}),
        ("how far is the snapshot?", "NeighborhoodSnapshot", {"action": "inspect"}),
        ("what is in the last snapshot?", "NeighborhoodSnapshot", {"action": "inspect"}),
        ("plan the restore of home", "NeighborhoodRun", {"action": "plan", "egg_path": "home"}),
        ("plan the restore of the last snapshot", "NeighborhoodRun", {"action": "plan"}),
        (
            "restore home as a simulation",
            "NeighborhoodRun",
            {"action": "hatch", "egg_path": "home", "target": "local-simulate"},
        ),
        ("restore the last snapshot", "NeighborhoodRun", {"action": "hatch"}),
        ("restore third", "NeighborhoodRun", {"action": "hatch", "egg_path": "third"}),
        ("which neighborhoods am I in?", "Fleet", {"action": "neighborhoods"}),
        ("what neighbourhoods are there?", "Fleet", {"action": "neighborhoods"}),
        ("list my neighborhoods", "Fleet", {"action": "neighborhoods"}),
        (
            "restore neighborhood-20261121-100000",
            "NeighborhoodRun",
            {"action": "hatch", "egg_path": "neighborhood-20261121-100000"},
        ),
        (
            "yes, restore home",
            "NeighborhoodRun",
            {"action": "hatch", "egg_path": "home", "confirm": True},
        ),
    ],
)
def test_what_people_say_about_snapshots(
    understood: Callable[[str], Decision], text: str, agent: str, given: dict[str, Any]
) -> None:
    decision = understood(text)
    assert (decision.name, decision.arguments, decision.missing) == (agent, given, [])


@pytest.mark.parametrize(
    "text",
    ["back up everything I said about Rose", "archive the twins of kind people",
     "restore my faith in people", "make a checkpoint of Rose", "copy this text", "don't restore home-1",
     "show me Rose", "pack this brainstem", "what is in the news?"],
)  # fmt: skip
def test_sentences_about_other_things_stay_elsewhere(
    understood: Callable[[str], Decision], text: str
) -> None:
    assert not understood(text).name.startswith(("Neighborhood", "Fleet"))


@pytest.mark.parametrize(
    ("before", "asked", "answer", "arguments"),
    [
        (
            "archive all twins whose name starts with Sl",
            'It would be Slow. Nothing was done yet: "yes" does it.',
            "yes",
            {"action": "archive", "filter": {"name_prefix": "Sl"}, "confirm": True},
        ),
        (
            "purge Rose",
            'It would be deleted, with all it has. Nothing was done yet: "yes, purge Rose" does it.',
            "Yes, please!",
            {"action": "purge", "rappid_uuid": "Rose", "confirm": True},
        ),
        (
            "archive the twins of kind project on all machines",
            "Nothing was done yet: … does it. It would be:",
            "ok, go ahead",
            {"action": "archive_estate", "filter": {"kind": "project"}, "confirm": True},
        ),
        (
            "restore home as a simulation",
            'Other machines would be written to, so nothing was yet: "yes, restore home" does it.',
            "do it",
            {"action": "hatch", "egg_path": "home", "target": "local-simulate", "confirm": True},
        ),
        ("purge Rose", "Deleted: Rose.", "yes", None),
        ("purge Rose", "Nothing was done yet: …", "no", None),
        ("purge Rose", "Nothing was done yet: …", "yes, but not today", None),
    ],
)
def test_a_plain_yes_confirms_what_was_just_asked_and_nothing_else(
    before: str,
    asked: str,
    answer: str,
    arguments: dict[str, Any] | None,
) -> None:
    said = [
        {"role": "user", "content": before},
        {"role": "assistant", "content": f"(no model) {asked}"},
        {"role": "user", "content": answer},
    ]
    found = decide(said, shipped_tools(), 0)
    assert (found.arguments if isinstance(found, Decision) else None) == arguments
    assert arguments or not (isinstance(found, Decision) and found.arguments.get("confirm"))


@pytest.mark.parametrize(
    ("before", "answer"),
    [
        (
            "archive all twins whose name starts with Sl",
            {"mode": "dry-run", "archived": [], "would_archive": [{"name": "Slow"}]},
        ),
        ("purge Rose", {"mode": "dry-run", "name": "Rose"}),
        (
            "roll back Rose",
            {"mode": "dry-run", "name": "Rose", "restored": ["soul.md"], "removed": [],
             "checkpoint": {"at": "2026-11-21T10:00:00Z"}},
        ),
        (
            "archive the twins of kind project on all machines",
            {"mode": "dry-run", "ok": True, "per_peer": [{"peer": "self", "would_archive": [], "errors": []}]},
        ),
        ("restore home", {"needs_yes": True, "plan": PLAN}),
    ],
)  # fmt: skip
async def test_agents_questions_are_answered_by_a_plain_yes(
    desk: Any, before: str, answer: dict[str, Any]
) -> None:
    """In the words of the agents themselves, as the person sees them."""
    desk.keeper.answer = lambda operation, given: answer
    tools, said = shipped_tools(), [{"role": "user", "content": before}]
    call = decide(said, tools, 0)
    assert isinstance(call, Decision)
    file = {"Twin": "twin_agent.py", "Fleet": "fleet_agent.py", "NeighborhoodRun": RUN}[call.name]
    result = await desk.text(file, call.name, **call.arguments)
    asked = decide([*said, {"role": "tool", "name": call.name, "content": result}], tools, 1)
    said += [{"role": "assistant", "content": str(asked)}, {"role": "user", "content": "yes"}]
    confirmed = decide(said, tools, 0)
    assert isinstance(confirmed, Decision), asked
    assert (confirmed.name, confirmed.arguments) == (call.name, {**call.arguments, "confirm": True})


def test_restoring_what_is_no_snapshot_is_told_as_nothing_that_an_agent_does() -> None:
    said = [{"role": "user", "content": "restore calm"}]
    call = decide(said, shipped_tools(), 0)
    assert isinstance(call, Decision)
    result = {"role": "tool", "name": call.name, "content": 'Error: No snapshot "calm".'}
    told = decide([*said, result], shipped_tools(), 1)
    assert isinstance(told, str)
    assert told.startswith('(no model) No snapshot is called "calm", and none of my agents does that.')
