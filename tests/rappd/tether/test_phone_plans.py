"""Plans of eggs that wait, read and answered on a phone: bound to the plan's hash, once, and only over https."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.chromium import chromium, needs_chromium
from fixtures.free_ports import free_port
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Page, Route, expect

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_browser import PhonePage
from tests.rappd.tether.test_phone_approvals import answer, approver, read

Approver = Callable[[str], Any]


def node_of(folder: Path, **more: str) -> Node:
    here = {"RAPPD_PEERS_ADDRESS": "127.0.0.1", "RAPPD_PEERS_LOOPBACK": "on", "RAPPD_PEERS_LISTEN": "on"}
    port = {"RAPPD_PEERS_PORT": str(free_port())}
    desk = RunningDaemon(folder / "home", LLM_FAKE="1", **reachable(), **here, **port, **more)
    return Node(desk, folder / "machines").start()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A daemon that serves phones over https, and machines."""
    found = node_of(tmp_path_factory.mktemp("plans"), RAPPD_TETHER_TLS="on")
    yield found
    found.close()


@pytest.fixture(scope="module")
def kitchen(node: Node) -> PlainMachine:
    return node.peer("kitchen")


@pytest.fixture
async def phones(node: Node) -> AsyncIterator[Approver]:
    """``await phones("Anna")``: the owner's own phone, which may approve."""
    made: list[AiortcClient] = []

    async def one(name: str) -> AiortcClient:
        made.append(await approver(node.daemon, name))  # type: ignore[arg-type]
        return made[-1]

    yield one
    for phone in made:
        await phone.leave()
        await asyncio.to_thread(node.daemon.request, "DELETE", f"/devices/{phone.name}", None, control=True)


def egg_with(name: str) -> bytes:
    """An unsigned egg with an agent, a page and something to remember."""
    packed = io.BytesIO()
    manifest = {"schema": "brainstem-egg/2.0", "type": "rapplication", "id": name, "name": name.title(),
                "rappid": f"rappid:@kitchen/{name}:{hashlib.md5(name.encode()).hexdigest()}"}  # fmt: skip
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr(f"agents/{name}_agent.py", agent_source(name.title()))
        archive.writestr(f"data/{name}.json", "{}")
        archive.writestr(f"rapp_ui/{name}/index.html", "<p>")
    return packed.getvalue()


def sent(node: Node, machine: PlainMachine, name: str) -> str:
    """The key of the egg that a machine sent."""
    headers = {"Content-Type": "application/octet-stream", "X-Rappd-Name": f"{name}.egg"}
    reply = machine.request("POST", "/eggs", egg_with(name), headers=headers)
    assert reply.status == 200, reply.body
    return f"egg:{reply.json['arrived']['id']}"


def arrived(node: Node) -> list[str]:
    return [f"egg:{row['id']}" for row in node.owner("GET", "/eggs/arrived")[1]["arrived"]]


def agent(node: Node, name: str) -> Path:
    return node.daemon.home / f"brainstem/agents/{name}_agent.py"


async def test_plan_is_read_and_approved_by_its_hash_and_the_second_is_told(
    node: Node, kitchen: PlainMachine, phones: Approver
) -> None:
    key = await asyncio.to_thread(sent, node, kitchen, "oven")
    anna, ben = await phones("Anna"), await phones("Ben")
    matter = await read(anna, key)
    plan = matter["plan"]
    assert matter["kind"] == "egg" and matter["sha256"] == plan["digest"] and matter["egg"]["files"] == 4
    assert plan["quarantine"]["files"][0]["path"] == "agents/oven_agent.py"
    done = await answer(anna, key, matter["sha256"])
    assert done["done"] and done["text"].startswith("Oven hatched: 4 files."), done
    assert agent(node, "oven").exists() and key not in arrived(node)
    late = await answer(ben, key, matter["sha256"], yes=False)
    assert not late["done"] and late["text"].startswith("Anna hatched oven.egg on a phone")
    news = node.owner("GET", "/notices")[1]["notices"]
    assert any("Anna hatched oven.egg" in one["what"] and anna.id[:8] in one["do"] for one in news)


async def test_two_answers_to_a_plan_at_one_time_are_one(
    node: Node, kitchen: PlainMachine, phones: Approver
) -> None:
    key = await asyncio.to_thread(sent, node, kitchen, "stove")
    anna, ben = await phones("Anna"), await phones("Ben")
    digest = (await read(anna, key))["sha256"]
    found = await asyncio.gather(answer(anna, key, digest), answer(ben, key, digest, yes=False))
    assert sorted(one["done"] for one in found) == [False, True], found
    said_yes = next(one for one, who in zip(found, "ab", strict=True) if one["done"] and who)
    assert agent(node, "stove").exists() == ("hatched" in said_yes["text"]) and key not in arrived(node)


async def test_answer_to_another_plan_is_refused_and_it_is_shown_anew(
    node: Node, kitchen: PlainMachine, phones: Approver
) -> None:
    key = await asyncio.to_thread(sent, node, kitchen, "grill")
    anna = await phones("Anna")
    first = await read(anna, key)
    agent(node, "grill").write_text("# mine\n")  # what it would touch changed, the egg did not
    for sha256, yes in ((first["sha256"], True), (first["sha256"], False), (key[4:], True), ("", True)):
        had = len(anna.matters)
        told = await answer(anna, key, sha256, yes=yes)
        assert not told["done"], told
        await anna.sees(lambda had=had: len(anna.matters) > had)
    anew = anna.matters[-1]
    assert anew["sha256"] != first["sha256"]
    assert [one["path"] for one in anew["plan"]["keep"]["files"]] == ["agents/grill_agent.py"]
    assert agent(node, "grill").read_text() == "# mine\n" and key in arrived(node)
    done = await answer(anna, key, anew["sha256"], yes=False)
    assert done == {**done, "done": True, "text": "grill.egg was thrown away."} and key not in arrived(node)


async def test_egg_that_a_phone_sent_is_hatched_on_the_computer(
    node: Node, kitchen: PlainMachine, phones: Approver
) -> None:
    anna = await phones("Anna")
    await asyncio.to_thread(node.owner, "POST", "/devices/Anna", {"eggs": True})
    status, _ = await anna.send_egg(await anna.egg_token(), egg_with("toaster"), "toaster.egg")
    assert status == 200
    (key,) = arrived(node)
    await anna.sees(lambda: any(row["key"] == key for row in anna.waiting["rows"]))
    assert not any("sha256" in row for row in anna.waiting["rows"] if row["key"] == key)
    told = await answer(anna, key, key[4:])
    assert not told["done"] and told["text"] == "That is answered on the computer."
    assert not agent(node, "toaster").exists()
    assert node.owner("DELETE", f"/eggs/arrived/{key[4:]}")[0] == 200


async def test_egg_that_is_open_on_the_computer_is_answered_on_the_phone(
    node: Node, phones: Approver, tmp_path: Path
) -> None:
    anna, eggs = await phones("Anna"), (tmp_path / "fridge.egg", tmp_path / "freezer.egg")
    for egg, yes in zip(eggs, (True, False), strict=True):
        egg.write_bytes(egg_with(egg.stem))
        status, looked = await asyncio.to_thread(node.owner, "POST", "/eggs/look", {"path": str(egg)})
        assert status == 200
        key = f"plan:{looked['id']}"
        matter = await read(anna, key)
        assert matter["what"] == f"{egg.name} is open on the computer; nothing of it is in use yet."
        assert matter["sha256"] == looked["plan"]["digest"]
        assert (await answer(anna, key, matter["sha256"], yes=yes))["done"]
        assert agent(node, egg.stem).exists() == yes
        late = {"id": looked["id"], "approved": matter["sha256"]}
        assert (await asyncio.to_thread(node.owner, "POST", "/eggs/hatch", late))[0] == 404, "answered once"
        assert not (await answer(anna, key, matter["sha256"]))["done"]


@pytest.mark.browser
@needs_chromium
def test_phone_page_shows_the_plan_as_the_computers_page_does(node: Node, kitchen: PlainMachine) -> None:
    key = sent(node, kitchen, "kettle")
    with chromium() as browser:
        phone = PhonePage(browser, node.daemon, ignore_https_errors=True)
        page = phone.pair("Anna", "mine")
        phone.opens().locator("details.owners summary").click()
        page.get_by_role("button", name="Read and answer: kitchen").click()
        asked = page.locator("dialog.waiting")
        expect(asked.locator(".plan-row.quarantine .plan-about")).to_contain_text("1 code file")
        asked.locator(".plan-row.create summary").click()
        expect(asked.locator(".plan-row.create .path")).to_have_count(3)
        phone.looks_right("phone-plan")
        agent(node, "kettle").write_text("# mine\n")
        asked.get_by_role("button", name="Hatch 4 files").click()
        expect(asked).to_contain_text("changed since you looked")
        asked.get_by_role("button", name="Hatch 3 files").click()
        expect(asked).to_contain_text("Kettle hatched: 3 files, 1 of yours stayed.")
        phone.looks_right("phone-plan-hatched")
        assert key not in arrived(node)
        assert phone.errors == []
    node.owner("DELETE", "/devices/Anna")


ALTERED = """
const ask = Session.prototype.take;
Session.prototype.take = function(message) {
    if (message.type === "refused") (window.refused ??= []).push(message.error);
    if (message.type === "waiting" && message.rows.length)
        for (const {key} of message.rows) for (const sha256 of SHA) {
            this.frames.send({type: "look", key});
            this.frames.send({type: "answer", key, sha256, yes: true});
        }
    ask.call(this, message);
};"""
"""A script that says yes to all that waits, by hashes that the attacker knows: the egg is the attacker's own."""


@pytest.mark.browser
@needs_chromium
def test_page_whose_script_a_relay_changed_approves_nothing(tmp_path: Path) -> None:
    node = node_of(tmp_path)
    machine = node.peer("mallory")
    key = sent(node, machine, "poison")
    plan = node.owner(
        "POST", "/eggs/plan", {"path": node.owner("GET", "/eggs/arrived")[1]["arrived"][0]["path"]}
    )

    def relay(route: Route) -> None:
        body = route.fetch().text() + ALTERED.replace("SHA", json.dumps([key[4:], plan[1]["plan"]["digest"]]))
        route.fulfill(body=body, content_type="text/javascript")

    try:
        with chromium() as browser:
            phone = PhonePage(browser, node.daemon)
            phone.page.route("**/t/session.js", relay)
            page: Page = phone.pair("Anna", "mine")
            page.wait_for_function("() => (window.refused ?? []).length >= 4")
            assert all(text.startswith("Only on the computer.") for text in page.evaluate("window.refused"))
            assert key in arrived(node) and not agent(node, "poison").exists()
            assert node.owner("POST", "/devices/Anna", {"approve": True})[0] == 403
    finally:
        node.close()
