from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from envelopes.errors import ReportableError
from neighborhoods.errors import (
    KeyChangedError,
    NoSuchPairingError,
    PairingStoppedError,
    PeerConflictError,
    PeerOfflineError,
)

Machine = Any
Network = Any


async def both_at_the_words(desk: Machine, pi: Machine) -> tuple[str, str]:
    asked = await desk.ask(pi)
    there = await pi.asked_by(desk)
    await desk.until(asked.id, "words")
    return asked.id, there.id


async def test_two_owners_see_the_same_words_and_pair(desk: Machine, pi: Machine) -> None:
    asked = await desk.ask(pi, None)
    there = await pi.asked_by(desk)
    here = await desk.until(asked.id, "words")
    assert here.words == there.words
    assert len(here.words) == 4
    assert (here.role, there.role) == ("asks", "answers")
    assert there.row(1000.0) == {
        "attempt": there.id,
        "role": "answers",
        "peer": "desk",
        "short": desk.key.fingerprint[:4],
        "address": desk.address,
        "state": "words",
        "words": list(here.words),
        "seconds_left": 120,
    }

    await desk.pairings.confirm(here.id, True, "mine")
    await asyncio.sleep(0.1)
    assert pi.pairings.get(there.id).state == "words"
    assert desk.paired == pi.paired == []

    await pi.pairings.confirm(there.id, True, "friend")
    await desk.until(here.id, "paired")
    await pi.until(there.id, "paired")
    assert desk.paired == [(pi.key.fingerprint, "mine", pi.address)]
    assert pi.paired == [(desk.key.fingerprint, "friend", desk.address)]
    assert pi.pairings.asking() == []


async def test_it_does_not_matter_who_says_yes_first(desk: Machine, pi: Machine) -> None:
    here, there = await both_at_the_words(desk, pi)
    assert (await pi.pairings.confirm(there, True, "mine")).state == "waiting"
    await asyncio.sleep(0.1)
    assert pi.paired == desk.paired == []
    await desk.pairings.confirm(here, True)
    await desk.until(here, "paired")
    await pi.until(there, "paired")
    assert len(pi.paired) == len(desk.paired) == 1


@pytest.mark.parametrize("who", ["asks", "answers"])
@pytest.mark.parametrize("after_a_yes", [False, True])
async def test_differ_on_one_side_ends_both_loudly(
    desk: Machine, pi: Machine, who: str, after_a_yes: bool
) -> None:
    here, there = await both_at_the_words(desk, pi)
    sides = [(desk, here), (pi, there)]
    (says_no, its), (other, theirs) = sides if who == "asks" else reversed(sides)
    if after_a_yes:
        await other.pairings.confirm(theirs, True, "mine")
    ended = await says_no.pairings.confirm(its, False)
    assert ended.state == "differ"
    for machine, attempt in sides:
        problem = (await machine.until(attempt, "differ")).problem()
        assert str(problem) == "The words differ; nothing was paired."
        assert problem is not None
        assert problem.do == "Retry once, then change network."
        with pytest.raises(PairingStoppedError, match="The words differ"):
            await machine.pairings.confirm(attempt, True, "mine")
    assert desk.paired == pi.paired == []


async def test_a_stop_is_told_to_the_other_side(desk: Machine, pi: Machine) -> None:
    here, there = await both_at_the_words(desk, pi)
    await desk.pairings.stop(here)
    await pi.until(there, "stopped")
    here, there = await both_at_the_words(desk, pi)
    await pi.pairings.stop(there)
    assert str((await desk.until(here, "stopped")).problem()).startswith("The pairing was stopped")
    assert (await desk.pairings.stop(here)).state == "stopped"


async def test_one_verb_on_both_sides_an_ask_joins_who_is_asking(desk: Machine, pi: Machine) -> None:
    here, there = await both_at_the_words(desk, pi)
    joined = await pi.ask(desk, "friend")
    assert joined.id == there
    again = await desk.ask(pi)
    assert again.id == here
    await desk.pairings.confirm(here, True)
    await pi.pairings.confirm(joined.id, True)
    await desk.until(here, "paired")
    assert pi.paired == [(desk.key.fingerprint, "friend", desk.address)]


@pytest.mark.parametrize("first", ["lower", "higher", "together"])
async def test_asks_that_cross_become_one(desk: Machine, pi: Machine, network: Network, first: str) -> None:
    """Neither knows of the other's question yet when it sends its own."""
    order = {"lower": [desk, pi], "higher": [pi, desk], "together": [desk, pi]}[first]
    both_sent = asyncio.Event()
    offers: list[str] = []

    async def cross(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        if body["step"] == "offer":
            offers.append(address)
            if len(offers) == 2:
                both_sent.set()
            await both_sent.wait()
            if first != "together" and sender is order[1]:
                await asyncio.sleep(0.1)
        return await deliver(address, body)

    network.between = cross
    by_desk = await desk.ask(pi, "mine")
    by_pi = await pi.ask(desk, "friend")
    here = await desk.until(by_desk.id, "words")
    there = await pi.until(by_pi.id, "words")
    assert here.words == there.words
    assert (here.role, there.role) == ("asks", "answers"), "the lower fingerprint asks"
    await pi.pairings.confirm(by_pi.id, True)
    await desk.pairings.confirm(by_desk.id, True)
    await desk.until(by_desk.id, "paired")
    await pi.until(by_pi.id, "paired")
    assert [whose for _, whose, _ in desk.paired + pi.paired] == ["mine", "friend"]
    assert pi.pairings.asking() == desk.pairings.asking() == []


@pytest.mark.parametrize("late", ["lower", "higher"])
async def test_an_ask_by_another_address_joins_as_well(desk: Machine, pi: Machine, late: str) -> None:
    """The owner typed a name, or the other side has two networks: the address alone does not tell."""
    early, second = (pi, desk) if late == "lower" else (desk, pi)
    asked, there = await both_at_the_words(early, second)
    other_way = f"{early.introduction.name}.local:7443"
    early.network.machines[other_way] = early
    also = await second.ask(early, "mine", other_way)
    joined = await second.until(also.id, "words")
    assert joined.id == there
    await early.pairings.confirm(asked, True)
    await second.pairings.confirm(also.id, True)
    await early.until(asked, "paired")
    assert len(second.paired) == 1


async def test_lost_questions_and_lost_answers_are_repeated(
    desk: Machine, pi: Machine, network: Network
) -> None:
    lost: list[tuple[str, str]] = []

    async def lossy(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        """Loses each kind of step once on its way there, and its answer once on its way back."""
        step = body["step"]
        if ("there", step) not in lost:
            lost.append(("there", step))
            raise PeerOfflineError("lost")
        answer = await deliver(address, body)
        if ("back", step) not in lost:
            lost.append(("back", step))
            raise PeerOfflineError("lost")
        return answer

    network.between = lossy
    here, there = await both_at_the_words(desk, pi)
    await asyncio.gather(desk.pairings.confirm(here, True), pi.pairings.confirm(there, True, "mine"))
    await desk.until(here, "paired")
    assert {("back", "offer"), ("back", "reveal"), ("back", "verdict")} <= set(lost)
    assert len(desk.paired) == len(pi.paired) == 1


async def test_nobody_there(desk: Machine, pi: Machine, network: Network) -> None:
    del network.machines[pi.address]
    asked = await desk.ask(pi)
    assert str((await desk.until(asked.id, "stopped")).problem()) == "pi does not answer; nothing was paired."


async def test_time_runs_out_on_both_sides(desk: Machine, pi: Machine, network: Network) -> None:
    here, there = await both_at_the_words(desk, pi)
    await pi.pairings.confirm(there, True, "mine")
    network.clock.now += 119
    assert (pi.pairings.get(there).state, desk.pairings.get(here).state) == ("waiting", "words")
    network.clock.now += 1
    assert (await pi.until(there, "expired")).row(network.clock.now)["seconds_left"] == 0
    await desk.until(here, "expired")
    with pytest.raises(PairingStoppedError, match="Time is up"):
        await desk.pairings.confirm(here, True)
    assert desk.paired == pi.paired == []
    network.clock.now += 601
    with pytest.raises(NoSuchPairingError):
        pi.pairings.get(there)
    assert (await both_at_the_words(desk, pi))[0] != here


async def test_a_wait_ends_with_a_change_or_its_time(desk: Machine, pi: Machine) -> None:
    here, there = await both_at_the_words(desk, pi)
    assert (await pi.pairings.wait(there, "words", 0.05)).state == "words"
    waiting = asyncio.create_task(pi.pairings.wait(there, "words", 60))
    await asyncio.sleep(0)
    await desk.pairings.confirm(here, False)
    async with asyncio.timeout(100):
        assert (await waiting).state == "differ"
    with pytest.raises(NoSuchPairingError):
        await pi.pairings.wait("nothing", "words", 60)


async def test_a_yes_needs_words_and_says_whose(desk: Machine, pi: Machine, network: Network) -> None:
    hold = asyncio.Event()

    async def slow(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        await hold.wait()
        return await deliver(address, body)

    network.between = slow
    asked = await desk.ask(pi, None)
    with pytest.raises(PeerConflictError, match="no words"):
        await desk.pairings.confirm(asked.id, True, "mine")
    hold.set()
    await desk.until(asked.id, "words")
    with pytest.raises(PeerConflictError, match="Whose is pi"):
        await desk.pairings.confirm(asked.id, True)
    assert desk.pairings.get(asked.id).state == "words"


async def test_name_of_another_key_is_refused_before_sending(
    desk: Machine, pi: Machine, make_machine: Callable[..., Machine]
) -> None:
    desk.peers["pi"] = "0" * 64
    with pytest.raises(KeyChangedError) as refused:
        await desk.ask(pi)
    assert str(refused.value) == "pi's key has changed; nothing was sent."
    assert pi.pairings.asking() == []
    asked = await pi.ask(desk)
    assert (await pi.until(asked.id, "stopped")).trouble.startswith(
        "desk knows another machine by this one's name"
    )
    assert desk.pairings.asking() == []
    with pytest.raises(PeerConflictError, match="this machine itself"):
        await desk.ask(desk)


async def test_a_peer_may_be_paired_anew_under_its_key(desk: Machine, pi: Machine) -> None:
    for whose in ("mine", "friend"):
        here, there = await both_at_the_words(desk, pi)
        await desk.pairings.confirm(here, True, whose)
        await pi.pairings.confirm(there, True, whose)
        await desk.until(here, "paired")
        assert (await desk.pairings.confirm(here, True)).state == "paired"
        with pytest.raises(PairingStoppedError, match="paired already"):
            await desk.pairings.confirm(here, False)
    assert [whose for _, whose, _ in desk.paired] == ["mine", "friend"]


async def test_a_peer_that_cannot_be_written_down_is_not_paired(desk: Machine, pi: Machine) -> None:
    here, there = await both_at_the_words(desk, pi)
    pi.disk_full = True
    await pi.pairings.confirm(there, True, "mine")
    await desk.pairings.confirm(here, True)
    assert (await pi.until(there, "stopped")).problem().do == "Free some."
    await desk.until(here, "stopped")
    assert desk.paired == pi.paired == []


async def test_nothing_secret_reaches_a_log(
    desk: Machine, pi: Machine, caplog: pytest.LogCaptureFixture, network: Network
) -> None:
    caplog.set_level(0)
    asyncio.get_running_loop().set_debug(True)
    said: list[str] = []

    async def listen(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        answer = await deliver(address, body)
        said.extend(
            value
            for value in [*body.values(), *answer.values()]
            if isinstance(value, str) and len(value) > 30
        )
        return answer

    network.between = listen
    here, there = await both_at_the_words(desk, pi)
    shown = await desk.pairings.offer_code()
    assert shown.code
    said.append(shown.code)
    assert shown.code not in repr(shown)
    await desk.pairings.confirm(here, False)
    await pi.until(there, "differ")
    assert said
    assert not [text for text in said if text in caplog.text]
    with pytest.raises(ReportableError):
        await desk.pairings.confirm(here, True)


async def test_what_nobody_foresaw_ends_the_attempt_too(
    desk: Machine, pi: Machine, network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> Any:
        raise OSError("no route")

    network.between = broken
    asked = await desk.ask(pi)
    await desk.until(asked.id, "stopped")
    assert "A pairing failed" in caplog.text
