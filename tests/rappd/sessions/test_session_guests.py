"""Other machines in a session: agents of a paired one, who answers, and addresses that nobody is made to fetch."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from fixtures.free_ports import free_port
from fixtures.machines import Machine, pair
from fixtures.running_daemon import agent_source

from tests.rappd.tether.phone_client import PhoneClient

WEATHER = agent_source("Weather", "return f\"rain: {kwargs.get('query')}\"", "Tells the weather.")


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine]]:
    folder = tmp_path_factory.mktemp("guests")
    reachable = {"RAPPD_TETHER_ADDRESS": "127.0.0.1", "RAPPD_TETHER_PORT": str(free_port())}
    desk = Machine(folder / "desk", "desk", LLM_FAKE="1", **reachable)
    pi = Machine(folder / "pi", "pi", LLM_FAKE="1")
    pi.drop("weather_agent.py", WEATHER)
    try:
        for one in (desk, pi):
            one.start()
        pi.owner("POST", "/twins", {"name": "Ink", "text": "You are Ink."})
        pair(desk, pi)
        desk.knows("pi")
        desk.wait_for(lambda: "Weather" in str(desk.row("pi")["agents_here"]), what="pi's agents")
        yield desk, pi
    finally:
        for one in (desk, pi):
            one.stop()


@pytest.fixture
async def phone(machines: tuple[Machine, Machine]) -> AsyncIterator[PhoneClient]:
    """A phone in a new session."""
    desk, _ = machines
    await asyncio.to_thread(desk.owner, "POST", "/sessions")
    made = await PhoneClient(desk).pair()
    yield made
    await made.leave()
    await asyncio.to_thread(desk.owner, "DELETE", f"/devices/{made.id}")


class Published(BaseHTTPRequestHandler):
    """A brainstem as it is published, which repeats what it was asked."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = json.dumps(
            {"response": f"published: {asked['user_input']}", "session_id": asked["session_id"]}
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(said.encode())


@contextmanager
def published() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Published) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def command(desk: Machine, *words: str, status: int = 0) -> Any:
    done = await asyncio.to_thread(desk.cli, "sessions", *words, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout if status == 0 else done.stderr)


def names(phone: PhoneClient) -> list[str]:
    return [one["name"] for one in phone.welcome["participants"]]


async def test_agent_of_a_peer_answers_when_it_is_invited_and_named(
    machines: tuple[Machine, Machine], phone: PhoneClient
) -> None:
    desk, pi = machines
    refused = await phone.is_answered(await phone.say("and now?", to="Weather@pi"))
    assert refused["error"] and "rain" not in refused["text"]
    await command(desk, "invite", "weather@pi")
    await phone.sees(lambda: "Weather@pi" in names(phone))
    answer = await phone.is_answered(await phone.say("and now?", to="weather@PI"))
    assert (answer["by"], answer["text"]) == ("Weather@pi", "rain: and now?")
    asked = [one for one in phone.events if one["kind"] == "operator_input"]
    assert [one["to"] for one in asked][1:] == ["Weather@pi"]
    there = [event for thread in pi.threads() for event in thread if event["data"].get("agent") == "Weather"]
    assert phone.name not in json.dumps(there), "the other machine does not learn who asks"
    await command(desk, "uninvite", "Weather@pi")
    await phone.sees(lambda: "Weather@pi" not in names(phone))
    assert (await phone.is_answered(await phone.say("again?", to="Weather@pi")))["error"]


async def test_a_gateway_is_another_name_of_its_machine(
    machines: tuple[Machine, Machine], phone: PhoneClient
) -> None:
    desk, pi = machines
    file = desk.home / "organism.yaml"
    file.write_text(f"gateways: [{{name: lab, fingerprint: {'ab' * 32}}}]")
    await asyncio.to_thread(desk.owner, "POST", "/organism/reload", {})
    await command(desk, "invite", "weather@lab", status=4)
    file.write_text(f"gateways: [{{name: lab, fingerprint: {pi.fingerprint}}}]")
    await asyncio.to_thread(desk.owner, "POST", "/organism/reload", {})
    await command(desk, "invite", "weather@lab")
    await phone.sees(lambda: "Weather@pi" in names(phone))
    answer = await phone.is_answered(await phone.say("by gateway?", to="Weather@pi"))
    assert answer["text"] == "rain: by gateway?"
    await command(desk, "uninvite", "Weather@pi")
    file.unlink()


async def test_backend_answers_what_is_addressed_to_nobody(
    machines: tuple[Machine, Machine], phone: PhoneClient
) -> None:
    desk, _ = machines
    assert (await command(desk, "backend", "pi"))["backend"] == "pi"
    await phone.sees(lambda: names(phone)[0] == "pi")
    answer = await phone.is_answered(await phone.say("hello"))
    assert (answer["by"], answer["text"]) == ("pi", "fake-llm: hello")
    answer = await phone.is_answered(await phone.say("hello", to="desk"))
    assert (answer["by"], answer["text"]) == ("desk", "fake-llm: hello")
    assert [one["text"] for one in phone.events if one["kind"] == "operator_input"] == ["hello", "hello"]
    assert (await command(desk, "branch"))["current"]
    await phone.sees(lambda: names(phone)[0] == "pi")
    await command(desk, "backend", "brainstem")
    await phone.sees(lambda: names(phone)[0] == "desk")
    assert (await phone.is_answered(await phone.say("hello")))["by"] == "desk"


async def test_peer_that_is_away_is_shown_so_and_said_so(
    machines: tuple[Machine, Machine], phone: PhoneClient
) -> None:
    desk, pi = machines
    await command(desk, "invite", "Weather@pi")
    await asyncio.to_thread(pi.stop)
    try:
        await asyncio.to_thread(desk.misses, "pi")
        await phone.sees(
            lambda: (
                {"name": "Weather@pi", "role": "agent", "presence": "away"} in phone.welcome["participants"]
            )
        )
        answer = await phone.is_answered(await phone.say("and now?", to="Weather@pi"))
        assert answer["text"].startswith("pi is away since ")
        assert (answer["by"], answer["do"]) == ("Weather@pi", "Ask again when pi is here.")
        assert answer["again"]
    finally:
        await asyncio.to_thread(pi.start)
        await asyncio.to_thread(desk.knows, "pi")
    await phone.sees(
        lambda: {"name": "Weather@pi", "role": "agent", "presence": "here"} in phone.welcome["participants"]
    )
    assert (await phone.is_answered(await phone.say("now?", to="Weather@pi")))["text"] == "rain: now?"


async def test_device_cannot_make_the_daemon_fetch_an_address(
    machines: tuple[Machine, Machine], phone: PhoneClient
) -> None:
    desk, _ = machines
    with socket.create_server(("127.0.0.1", 0)) as canary:
        canary.settimeout(0.5)
        port = canary.getsockname()[1]
        for address in (
            f"http://127.0.0.1:{port}", f"127.0.0.1:{port}", f"Weather@127.0.0.1:{port}",
            f"Weather@http://127.0.0.1:{port}/chat", f"//127.0.0.1:{port}", f"pi@127.0.0.1:{port}", "Weather@pi", "pi",
        ):  # fmt: skip
            answer = await phone.is_answered(await phone.say("fetch it", to=address))
            assert answer["error"], address
            said = await command(desk, "invite", address, status=4) if ":" in address else None
            assert said is None or said["code"] == "not_found", said
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(canary.accept)


async def test_published_brainstem_is_asked_by_its_name_after_a_yes(
    machines: tuple[Machine, Machine], phone: PhoneClient
) -> None:
    desk, _ = machines
    with published() as address:
        await asyncio.to_thread(desk.owner, "POST", "/peers", {"address": address})
        name = next(one["name"] for one in (await command(desk, "invite"))["possible"] if one["plain"])
        assert (await command(desk, "backend", name, status=6))["code"]
        await command(desk, "backend", name, "--yes")
        answer = await phone.is_answered(await phone.say("hello"))
        assert (answer["by"], answer["text"]) == (name, "published: hello")
        await asyncio.to_thread(desk.owner, "POST", "/peers/forget", {"address": address})
        answer = await phone.is_answered(await phone.say("hello"))
        assert answer["text"] == f"{name} is not written down any more."


async def test_device_that_may_only_listen_asks_no_guest(machines: tuple[Machine, Machine]) -> None:
    desk, _ = machines
    await asyncio.to_thread(desk.owner, "POST", "/sessions")
    await command(desk, "backend", "pi")
    phone = await PhoneClient(desk).pair(scope="listen")
    id = await phone.say("hello")
    await phone.sees(lambda: id in phone.refused)
    await phone.leave()


PANEL: dict[str, Any] = {
    "name": "panel",
    "title": "Panel",
    "participants": [{"name": "Ann", "persona": "You doubt."}, {"name": "Bob"}, {"name": "Cy"}],
    "steps": [{"participant": one, "cue": f"{one}, rain?"} for one in ("Ann", "Bob", "Cy")],
}


def test_participants_of_a_workflow_are_on_another_machine(machines: tuple[Machine, Machine]) -> None:
    desk, pi = machines
    folder = desk.home / "brainstem" / "workflows"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "panel.json").write_text(json.dumps(PANEL))
    assert pi.cli("twins", "boot", "Ink").returncode == 0
    desk.owner("POST", "/sessions")
    desk.owner("POST", "/sessions/current/participants", {"name": "ink@pi"})
    shown = desk.owner("GET", "/workflows/panel")
    assert {"desk", "pi", "Weather@pi", "Ink@pi"} <= set(shown["players"])
    desk.owner("POST", "/sessions/current/say", {"text": "nobody else hears this", "wait": True})
    refused = desk.cli("workflows", "run", "panel", "--play", "Ann=Nobody@pi")
    assert refused.returncode == 2 and "Nobody plays Ann: pi offers no Nobody" in refused.stderr
    ran = desk.cli("workflows", "run", "panel", "--play", "Ann=ink@pi", "--play", "Bob=Weather@pi")
    assert ran.returncode == 0, ran.stderr

    def done() -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = desk.owner("GET", "/sessions/current")["events"]
        return events if events[-1].get("workflow", {}).get("status") == "done" else []

    answers = [one for one in desk.wait_for(done, what="the panel") if one["kind"] == "twin_response"][1:]
    assert [one["by"] for one in answers] == ["Ann", "Bob", "Cy"]
    assert "You play Ann. You doubt." in answers[0]["text"] and answers[0]["text"].endswith("Ann, rain?")
    assert answers[1]["text"] == "rain: Bob, rain?"
    assert "nobody else hears this" not in json.dumps(pi.threads())
