"""Eggs between a phone and the daemon: tokens, rights, limits, and the list where they wait."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from fixtures.running_daemon import RunningDaemon

from rappd.features.features import all_operations
from rappd.listeners.tether_listener import FEATURES as OF_PHONES
from rappd.tether.devices import Device
from rappd.tether.egg_tokens import SECONDS, EggTokens
from rappd.tether.errors import BadEggTokenError
from rappd.tether.phone_eggs import MOST_BYTES
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.phone_client import PhoneClient
from twins.eggs.readers.sessions import read_session

MakePhone = Callable[..., Awaitable[PhoneClient]]


async def owner(desk: RunningDaemon, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = await asyncio.to_thread(desk.request, method, path, body, control=True)
    return answer.json()


async def carrier(desk: RunningDaemon, phone: MakePhone, name: str = "Anna") -> PhoneClient:
    made = await phone(AiortcClient, name=name)
    await owner(desk, "POST", f"/devices/{name}", {"eggs": True})
    await made.sees(lambda: made.eggs.get("may"))
    return made


def device(**more: Any) -> Device:
    return Device(**{"id": "a1" * 32, "name": "Anna", "secret": "", "created_at": 0.0, "eggs": True, **more})


async def test_phone_fetches_its_session_as_an_egg(
    desk: RunningDaemon, phone: MakePhone, tmp_path: Path
) -> None:
    anna = await carrier(desk, phone)
    await anna.is_answered(await anna.say("from the phone"))
    status, body = await anna.fetch("session", await anna.egg_token())
    assert status == 200
    egg = tmp_path / "session.egg"
    egg.write_bytes(body)
    found = read_session(egg)
    assert found.page_pinned and found.transcript_pinned
    assert [one.text for one in found.events if one.kind == "operator_input"] == ["from the phone"]
    assert [one.role for one in found.participants if one.name == "Anna"] == ["observer"]
    waiting = desk.home / "eggs" / ".waiting"
    await asyncio.to_thread(desk.wait_for, lambda: not list(waiting.glob("*.part*")))


async def test_egg_of_a_phone_waits_among_the_received_ones(desk: RunningDaemon, phone: MakePhone) -> None:
    anna = await carrier(desk, phone)
    _, body = await anna.fetch("session", await anna.egg_token())
    status, _ = await anna.send_egg(await anna.egg_token(), body, "holiday.egg")
    assert status == 200
    (row,) = (await owner(desk, "GET", "/eggs/arrived"))["arrived"]
    assert (row["name"], row["from"], Path(row["path"]).read_bytes()) == ("holiday.egg", "Anna", body)
    status, answer = await anna.send_egg(await anna.egg_token(), b"this is no egg")
    assert (status, answer["code"]) == (400, "unknown_egg")


async def test_phone_without_the_right_gets_no_token(desk: RunningDaemon, phone: MakePhone) -> None:
    anna = await phone(name="Anna")
    assert await anna.egg_token() == ""
    assert "rappd devices scopes Anna --eggs" in anna.refused["egg_token"]
    assert (await anna.fetch("session", ""))[0] == 401


async def test_token_ends_with_the_right_and_with_the_device(desk: RunningDaemon, phone: MakePhone) -> None:
    anna = await carrier(desk, phone)
    await phone(name="Ben")  # the listener stays open for him
    first, second = await anna.egg_token(), await anna.egg_token()
    await owner(desk, "POST", "/devices/Anna", {"eggs": False})
    await owner(desk, "POST", "/devices/Anna", {"eggs": True})
    assert (await anna.fetch("session", first))[0] == 401
    third = await anna.egg_token()
    await owner(desk, "DELETE", "/devices/Anna")
    assert [(await anna.fetch("session", one))[0] for one in (second, third)] == [401, 401]


async def test_operations_of_phones_need_their_right(desk: RunningDaemon, phone: MakePhone) -> None:
    found = all_operations(OF_PHONES)
    assert {(one.right.kind, one.right.scope) for one in found} == {("device", "EGG")}
    asked = {f"{one.method} {one.path}" for one in found}
    assert asked == {"GET /tether/v2/eggs/{id}", "POST /tether/v2/eggs"}
    anna = await carrier(desk, phone)
    tokens = [await anna.egg_token() for _ in found]
    await owner(desk, "POST", "/devices/Anna", {"eggs": False})
    for token in ("", "a.b.c", *tokens):
        assert (await anna.fetch("session", token))[0] == 401
        assert (await anna.send_egg(token, b"egg"))[0] == 401


async def test_token_is_good_once_and_is_never_in_an_address(desk: RunningDaemon, phone: MakePhone) -> None:
    anna = await carrier(desk, phone)
    token = await anna.egg_token()
    assert (await anna.fetch(f"session?token={token}", ""))[0] == 401
    assert (await anna.fetch("session", token))[0] == 200
    assert (await anna.fetch("session", token))[0] == 401


async def test_egg_of_a_phone_that_is_too_large_is_refused_unread(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    anna = await carrier(desk, phone)
    reader, writer = await asyncio.open_connection(*anna.address)
    writer.write(
        b"POST /tether/v2/eggs HTTP/1.1\r\nHost: %b:%d\r\nAuthorization: Bearer %b\r\nContent-Length: %d\r\n\r\n"
        % (anna.address[0].encode(), anna.address[1], (await anna.egg_token()).encode(), MOST_BYTES + 1)
    )
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 100)
    writer.close()


async def test_phone_removed_while_it_sends_leaves_nothing(desk: RunningDaemon, phone: MakePhone) -> None:
    anna = await carrier(desk, phone)
    await phone(name="Ben")  # the listener stays open for him
    token, removed = await anna.egg_token(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"x" * 300_000
        await removed.wait()
        yield b"x" * 600_000

    sending = asyncio.ensure_future(anna.send_egg(token, body()))
    arrived = desk.home / "eggs" / ".arrived"
    while not list(arrived.glob("*.part")):
        await asyncio.sleep(0.02)
    await owner(desk, "DELETE", "/devices/Anna")
    removed.set()
    assert (await sending)[0] == 401
    assert list(arrived.iterdir()) == []


async def test_owner_sends_an_egg_that_the_phone_fetches_once(
    desk: RunningDaemon, phone: MakePhone, tmp_path: Path
) -> None:
    anna, ben = await carrier(desk, phone), await carrier(desk, phone, "Ben")
    _, body = await anna.fetch("session", await anna.egg_token())
    egg = tmp_path / "gardener.egg"
    egg.write_bytes(body)
    done = await asyncio.to_thread(desk.cli, "devices", "send", "Anna", str(egg))
    assert "gardener.egg waits for Anna" in done.stdout
    await anna.sees(lambda: anna.eggs["offers"])
    (offer,) = anna.eggs["offers"]
    assert (offer["name"], offer["size"]) == ("gardener.egg", len(body))
    assert (await ben.fetch(offer["id"], await ben.egg_token()))[0] == 404
    assert await anna.fetch(offer["id"], await anna.egg_token()) == (200, body)
    assert (await anna.fetch(offer["id"], await anna.egg_token()))[0] == 404


def test_token_names_device_purpose_and_end() -> None:
    now = [1_000_000.0]
    tokens, anna = EggTokens(lambda: now[0]), device(version=7)
    token = tokens.mint(anna)
    header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2])
    assert header["alg"] == "HS256"
    assert (claims["aud"], claims["sub"], claims["ver"]) == ("rappd-tether-eggs", anna.id, 7)
    assert claims["exp"] - claims["iat"] == SECONDS == 900
    now[0] += SECONDS - 1
    assert tokens.redeem(token, {anna.id: anna}.get) is anna


@pytest.mark.parametrize("late", [SECONDS, SECONDS * 10])
def test_token_that_expired_is_refused(late: int) -> None:
    now = [1_000_000.0]
    tokens, anna = EggTokens(lambda: now[0]), device()
    token = tokens.mint(anna)
    now[0] += late
    with pytest.raises(BadEggTokenError):
        tokens.redeem(token, {anna.id: anna}.get)


@pytest.mark.parametrize(
    "spoil",
    [
        {"aud": "another"}, {"sub": "b2" * 32}, {"ver": 1}, {"exp": 2**40}, {"exp": "soon"}, {"jti": 5}, {"sub": 5},
        {"exp": None}, {"jti": None}, {"ver": None}, {"aud": None},
    ],
)  # fmt: skip
def test_token_with_other_claims_is_refused(spoil: dict[str, Any]) -> None:
    tokens, anna = EggTokens(), device()
    claims = jwt.decode(tokens.mint(anna), options={"verify_signature": False})
    claims = {key: value for key, value in {**claims, **spoil}.items() if value is not None}
    with pytest.raises(BadEggTokenError):
        tokens.redeem(jwt.encode(claims, tokens._key, algorithm="HS256"), {anna.id: anna}.get)


def test_token_of_another_key_or_algorithm_is_refused() -> None:
    tokens, anna = EggTokens(), device()
    claims = jwt.decode(tokens.mint(anna), options={"verify_signature": False})
    for token in (
        EggTokens().mint(anna),
        jwt.encode(claims, "", algorithm="none"),
        jwt.encode(claims, tokens._key + bytes(32), algorithm="HS512"),
        "", "a.b.c", "x" * 5000,
    ):  # fmt: skip
        with pytest.raises(BadEggTokenError):
            tokens.redeem(token, {anna.id: anna}.get)


def test_token_of_a_device_that_paired_anew_is_refused() -> None:
    tokens = EggTokens()
    token = tokens.mint(device(version=1))
    with pytest.raises(BadEggTokenError):
        tokens.redeem(token, {"a1" * 32: device(version=2)}.get)
