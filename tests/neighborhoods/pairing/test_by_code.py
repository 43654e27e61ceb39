from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from fixtures.refusals import refused

from envelopes.identity.pairing_proof import CodeExchange
from neighborhoods.errors import PeerOfflineError
from neighborhoods.pairing.code_pairing import WRONG_IN_ALL, WRONG_OF_ONE_SOURCE, _source

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


def _wrong(code: str, number: int = 1) -> str:
    digits, *words = code.split("-")
    return "-".join([f"{(int(digits) + number) % 1000:03d}", *words])


async def test_right_code_pairs_after_wrong_ones(desk: Machine, pi: Machine, make_machine: Any) -> None:
    shown = await pi.pairings.offer_code()
    right = shown.code
    for number in range(1, WRONG_OF_ONE_SOURCE):
        used = await use(desk, pi, _wrong(right, number))
        assert str(used.problem()) == "The code was wrong; nothing was paired."
    assert pi.pairings.get(shown.id).state == "asking"
    assert (await use(desk, pi, right)).state == "paired"


async def test_source_of_wrong_codes_is_refused_and_others_are_not(
    desk: Machine, pi: Machine, make_machine: Any
) -> None:
    shed = make_machine("shed")
    shown = await pi.pairings.offer_code()
    right = shown.code
    for number in range(1, WRONG_OF_ONE_SOURCE + 1):
        assert (await use(shed, pi, _wrong(right, number))).state == "stopped"
    assert (await use(shed, pi, right)).state == "stopped", "it has used up its tries"
    assert pi.paired == []
    assert (await use(desk, pi, right)).state == "paired"


async def test_code_is_void_after_wrong_tries_of_many_sources(
    desk: Machine, pi: Machine, network: Network, make_machine: Any
) -> None:
    shown = await pi.pairings.offer_code()
    right = shown.code
    thief = make_machine("thief")
    for number in range(WRONG_IN_ALL):
        thief.host = f"10.{number}.0.1"
        assert (await use(thief, pi, _wrong(right, number + 1))).state == "stopped"
    burnt = pi.pairings.get(shown.id)
    assert (burnt.state, burnt.code) == ("stopped", "")
    assert str(burnt.problem()) == "Other codes were tried too often; nothing was paired."
    assert (await use(desk, pi, right)).state == "stopped"
    assert desk.paired == pi.paired == []


@pytest.mark.parametrize(
    ("hosts", "same"),
    [
        (("127.0.0.1", "127.9.8.7"), True),
        (("127.0.0.1", "::1"), True),
        (("2001:db8::1", "2001:db8::ffff:2"), True),
        (("fe80::1%eth0", "fe80::2%eth1"), True),
        (("2001:db8::1", "2001:db9::1"), False),
        (("192.0.2.1", "192.0.2.2"), False),
        (("192.0.2.1", "::ffff:192.0.2.1"), True),
        (("::ffff:192.0.2.1", "::ffff:192.0.2.2"), False),
        (("127.0.0.1", "::ffff:127.0.0.1"), True),
    ],
)
def test_addresses_of_one_machine_are_one_source(hosts: tuple[str, str], same: bool) -> None:
    assert (_source(hosts[0]) == _source(hosts[1])) is same


async def test_tries_of_one_source_are_bounded(desk: Machine, pi: Machine, make_machine: Any) -> None:
    shown = await pi.pairings.offer_code()
    for number in range(20):
        body = {
            "step": "code",
            "attempt": str(uuid4()),
            "introduction": make_machine(f"bot{number}").introduction.to_json(),
            "message": CodeExchange("x").message.hex(),
        }
        assert "code" not in await pi.hears(body, f"127.0.0.{number + 1}")
    assert (await use(desk, pi, shown.code)).state == "paired"


async def test_wrong_code_ends_no_right_one_under_way(
    desk: Machine, pi: Machine, network: Network, make_machine: Any
) -> None:
    """Both tries begin before either is proved; the wrong one's proof comes first."""
    shed = make_machine("shed")
    shown = await pi.pairings.offer_code()
    right, wrong = shown.code, _wrong(shown.code)
    begun, tried = asyncio.Event(), asyncio.Event()

    async def order(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        if body["step"] == "confirm" and sender is desk:
            begun.set()
            await tried.wait()
        if body["step"] == "confirm" and sender is shed:
            await begun.wait()
        return await deliver(address, body)

    network.between = order
    honest = asyncio.create_task(use(desk, pi, right))
    assert (await use(shed, pi, wrong)).state == "stopped"
    tried.set()
    assert (await honest).state == "paired"
    assert shed.paired == []


async def test_a_try_without_a_proof_costs_the_code_nothing(
    desk: Machine, pi: Machine, network: Network, make_machine: Any
) -> None:
    shed = make_machine("shed")
    shown = await pi.pairings.offer_code()

    async def silent(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        if body["step"] == "confirm" and sender is shed:
            raise PeerOfflineError("gone")
        return await deliver(address, body)

    network.between = silent
    attempt = await shed.pairings.use_code(pi.address, pi.introduction, "000-copper-otter-violin", "mine")
    await shed.until(attempt.id, "waiting")
    assert (await use(desk, pi, shown.code)).state == "paired"
    await shed.pairings.stop(attempt.id)


async def test_a_machine_in_the_middle_with_its_own_keys_fails(
    desk: Machine, pi: Machine, network: Network, make_machine: Any
) -> None:
    """The machine relays every message, but must name itself to each side: neither proof fits."""
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
    assert pi.pairings.get(shown.id).state == "asking"
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
            raise PeerOfflineError("lost")
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
    with refused("bad_code"):
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
