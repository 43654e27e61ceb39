from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from envelopes.pairing_proof import BadCode, CodeExchange
from neighborhoods.errors import PeerAway

Machine = Any
Network = Any


async def use(machine: Machine, other: Machine, code: str, *, introduction: Any = None) -> Any:
    attempt = await machine.pairings.use_code(other.address, introduction or other.introduction, code, "mine")
    return await machine.until(attempt.id, "paired", "stopped", "expired", "differ")


async def test_the_right_code_pairs_both_as_each_chose(desk: Machine, pi: Machine) -> None:
    shown = await pi.pairings.offer_code("friend")
    row = shown.row(1000.0)
    assert (row["state"], row["seconds_left"], row["code"]) == ("asking", 600, shown.code)
    waiting = asyncio.create_task(pi.pairings.wait(shown.id, "asking", 60))
    used = await use(desk, pi, shown.code.upper().replace("-", " "))
    assert used.state == "paired"
    assert (await waiting).state == "paired"
    assert desk.paired == [(pi.key.fingerprint, "mine", pi.address)]
    assert pi.paired == [(desk.key.fingerprint, "friend", desk.address)]
    assert "code" not in pi.pairings.get(shown.id).row(1000.0)


async def test_a_code_is_for_one_pairing(
    desk: Machine, pi: Machine, make_machine: Callable[..., Machine]
) -> None:
    code = (await pi.pairings.offer_code()).code
    assert (await use(desk, pi, code)).state == "paired"
    assert (await use(make_machine("shed"), pi, code)).state == "stopped"
    assert len(pi.paired) == 1


async def test_a_wrong_code_burns_it_after_one_guess(desk: Machine, pi: Machine) -> None:
    shown = await pi.pairings.offer_code()
    number, *words = shown.code.split("-")
    wrong = "-".join([f"{(int(number) + 1) % 1000:03d}", *words])
    right = shown.code
    assert str((await use(desk, pi, wrong)).problem()) == "The code was wrong; nothing was paired."
    burnt = pi.pairings.get(shown.id)
    assert (burnt.state, burnt.code) == ("stopped", "")
    assert str(burnt.problem()) == "Somebody tried another code; nothing was paired."
    assert (await use(desk, pi, right)).state == "stopped"
    assert desk.paired == pi.paired == []


async def test_two_guesses_at_once_are_one(
    desk: Machine, pi: Machine, network: Network, make_machine: Any
) -> None:
    """Both tries begin before either is proved; the wrong one's proof comes first."""
    shed = make_machine("shed")
    shown = await pi.pairings.offer_code()
    right, wrong = shown.code, "000-" + shown.code[4:] if shown.code[:3] != "000" else "001-" + shown.code[4:]
    begun, burnt = asyncio.Event(), asyncio.Event()

    async def order(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        if body["step"] == "confirm" and sender is desk:
            begun.set()
            await burnt.wait()
        if body["step"] == "confirm" and sender is shed:
            await begun.wait()
        return await deliver(address, body)

    network.between = order
    honest = asyncio.create_task(use(desk, pi, right))
    assert (await use(shed, pi, wrong)).state == "stopped"
    burnt.set()
    assert (await honest).state == "stopped"
    assert pi.paired == desk.paired == []


async def test_a_try_without_a_proof_costs_the_code_nothing(
    desk: Machine, pi: Machine, network: Network, make_machine: Any
) -> None:
    shed = make_machine("shed")
    shown = await pi.pairings.offer_code()

    async def silent(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        if body["step"] == "confirm" and sender is shed:
            raise PeerAway("gone")
        return await deliver(address, body)

    network.between = silent
    attempt = await shed.pairings.use_code(pi.address, pi.introduction, "000-copper-otter-violin", "mine")
    await shed.until(attempt.id, "waiting")
    assert (await use(desk, pi, shown.code)).state == "paired"
    await shed.pairings.stop(attempt.id)


async def test_a_machine_in_the_middle_with_its_own_keys_fails(
    desk: Machine, pi: Machine, network: Network, make_machine: Any
) -> None:
    """It relays every message, but must name itself to each side: neither proof fits."""
    thief = make_machine("pi")
    steps: list[str] = []

    async def relay(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        steps.append(body["step"])
        if body["step"] == "code":
            answer = await pi.hears(body | {"introduction": thief.introduction.to_json()}, thief.host)
            return answer | {"introduction": thief.introduction.to_json()}
        return await pi.hears(body, thief.host)

    network.between = relay
    shown = await pi.pairings.offer_code()
    used = await use(desk, pi, shown.code, introduction=thief.introduction)
    assert used.state == "stopped"
    assert steps == ["code", "confirm"]
    assert pi.pairings.get(shown.id).state == "stopped"
    assert desk.paired == pi.paired == []


async def test_an_answer_without_the_code_is_not_believed(
    desk: Machine, pi: Machine, network: Network, make_machine: Any
) -> None:
    """A machine that shows no such code, or another, cannot make this one trust it."""
    thief = make_machine("pi")
    await thief.pairings.offer_code()

    async def claim(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        if body["step"] == "confirm":
            return {"proof": body["proof"], "signature": body["signature"], "state": "paired"}
        return await deliver(address, body)

    network.between = claim
    used = await use(desk, thief, "417-copper-otter-violin")
    assert str(used.problem()) == "The code was wrong; nothing was paired."
    assert desk.paired == []


async def test_lost_answers_are_repeated(desk: Machine, pi: Machine, network: Network) -> None:
    lost: list[str] = []

    async def lossy(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        answer = await deliver(address, body)
        if body["step"] not in lost:
            lost.append(body["step"])
            raise PeerAway("lost")
        return answer

    network.between = lossy
    shown = await pi.pairings.offer_code()
    assert (await use(desk, pi, shown.code)).state == "paired"
    assert lost == ["code", "confirm"]
    assert len(desk.paired) == len(pi.paired) == 1


async def test_a_code_ends_after_ten_minutes_or_with_a_new_one(
    desk: Machine, pi: Machine, network: Network
) -> None:
    first = await pi.pairings.offer_code()
    old = first.code
    network.clock.now += 599
    assert pi.pairings.get(first.id).state == "asking"
    network.clock.now += 1
    assert pi.pairings.get(first.id).state == "expired"
    assert (await use(desk, pi, old)).state == "stopped"

    second = await pi.pairings.offer_code()
    old = second.code
    third = await pi.pairings.offer_code()
    assert (second.state, second.code) == ("stopped", "")
    assert third.code != old
    assert (await use(desk, pi, old)).state == "stopped"
    assert pi.paired == []


async def test_no_code_is_shown(desk: Machine, pi: Machine) -> None:
    used = await use(desk, pi, "417-copper-otter-violin")
    assert used.trouble == "pi shows no code now; nothing was paired."
    with pytest.raises(BadCode):
        await use(desk, pi, "417-copper")


async def test_tries_are_few_at_a_time(pi: Machine, network: Network, make_machine: Any) -> None:
    shown = await pi.pairings.offer_code()
    answers = []
    for number in range(10):
        body = {
            "step": "code",
            "attempt": str(uuid4()),
            "introduction": make_machine(f"bot{number}").introduction.to_json(),
            "message": CodeExchange("x").message.hex(),
        }
        answers.append(await pi.hears(body, f"10.9.0.{number}"))
    assert [answer.get("code") for answer in answers] == [None] * 8 + ["pairing_busy"] * 2
    assert pi.pairings.get(shown.id).state == "asking"


async def test_a_repeated_try_gets_the_same_answer_a_changed_one_none(desk: Machine, pi: Machine) -> None:
    await pi.pairings.offer_code()
    body = {
        "step": "code",
        "attempt": str(uuid4()),
        "introduction": desk.introduction.to_json(),
        "message": CodeExchange("x").message.hex(),
    }
    first = await pi.hears(body, desk.host)
    assert first["message"]
    assert await pi.hears(body, desk.host) == first
    changed = await pi.hears(body | {"message": CodeExchange("x").message.hex()}, desk.host)
    assert changed["code"] == "bad_pairing"
