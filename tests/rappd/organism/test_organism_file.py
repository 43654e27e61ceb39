"""Reading ``organism.yaml``: what each section gives, and what a fault says of its place."""

from __future__ import annotations

import pytest

from rappd.organism.organism import ListedListener, ModelAgent, RemoteTool
from rappd.organism.organism_file import MOST_BYTES, read

WHOLE = """\
# the lab
organism: {name: research lab}
listeners:
  - name: calculator.add
  - {name: files, file: files_agent.py}
agents:
  - name: researcher
    prompt: prompts/researcher.md
    tools: [calculator.add, {name: search, gateways: [lab], mode: first-answer-wins}]
gateways:
  - {name: lab, fingerprint: 0123456789012345678901234567890123456789012345678901234567890123}
meta: {allow_remote: true, allow_prompt_requests: none}
oob: {bind: 127.0.0.1}
timers:
  - {name: morning, when: every weekday at 9, ask: what is new?}
"""


def test_every_section_is_read() -> None:
    found = read(WHOLE)
    assert not found.faults and not found.notes and found.organism is not None
    organism = found.organism
    assert organism.organism.name == "research lab"
    assert organism.listeners == (
        ListedListener(name="calculator.add"),
        ListedListener(name="files", file="files_agent.py"),
    )
    search = RemoteTool(name="search", gateways=("lab",), mode="first-answer-wins")
    assert organism.agents == (
        ModelAgent(name="researcher", prompt="prompts/researcher.md", tools=("calculator.add", search)),
    )
    assert organism.gateways[0].fingerprint == "0123456789" * 6 + "0123"
    assert organism.meta is not None and organism.meta.allow_remote
    assert organism.timers[0].when == "every weekday at 9"


@pytest.mark.parametrize(
    ("text", "offered", "hidden"),
    [
        ("", ["Dice", "Note"], []),
        ("organism: {name: x}", ["Dice", "Note"], []),
        ("listeners: [{name: dice}]", ["Dice"], ["Note"]),
        ("listeners: [{name: any, file: Note_agent.py}]", ["Note"], ["Dice"]),
        ("listeners:\n  # all taken out", [], ["Dice", "Note"]),
        ("agents: [{name: clerk, prompt: prompts/clerk.md}]", [], ["Dice", "Note"]),
    ],
    ids=["empty", "no list", "by name", "by file", "an empty list", "agents alone"],
)
def test_a_list_offers_what_it_names_alone(text: str, offered: list[str], hidden: list[str]) -> None:
    organism = read(text).organism
    assert organism is not None
    assert [one for one in offered + hidden if organism.offers(one, f"{one}_agent.py")] == offered


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("lisneters: []", (1, 1), "Did you mean `listeners`?"),
        ("listeners:\n  - nmae: x\n    name: y", (2, 5), "Did you mean `name`?"),
        ("listeners:\n  - {}", (2, 5), "lacks `name`"),
        ("listeners: {name: x}", (1, 12), "is a list"),
        ("listeners: [calculator]", (1, 13), "has keys"),
        ("listeners:\n- {name: a}\n- {name: A}", (3, 10), "already in line 2"),
        (
            "listeners: [{name: a}]\nagents: [{name: a, prompt: prompts/a.md}]",
            (2, 17),
            "already in line 1",
        ),
        (
            "listeners: [{name: a, payload_class: lib.tools.Add}]",
            (1, 23),
            "Name the installed file",
        ),
        ("listeners: [{name: a, file: ../a_agent.py}]", (1, 29), "the name of an installed file"),
        ("listeners: [{name: a b, file: a_listener.py}]", (1, 13), "like calculator.add"),
        ("listeners: [{name: a, name: b}]", (1, 23), "twice"),
        ("agents: [{name: a, prompt: brainstem/soul.md}]", (1, 28), "a file in the folder prompts"),
        ("agents: [{name: a, prompt: prompts/../keys/identity.pem}]", (1, 28), "folder prompts"),
        (
            "agents: [{name: a, prompt: prompts/a.md, tools: [{name: b, gateways: [lab]}]}]",
            (1, 71),
            "no gateway",
        ),
        ("organism: {identity: keys/identity.pem}", (1, 12), "no file names another one"),
        ("oob: {bind: 0.0.0.0}", (1, 13), "this machine: 127.0.0.1"),
        ("oob:\n  port: 8766", (2, 3), "has no TCP port"),
        ("meta: {enabled: yes}", (1, 17), "true or false"),
        ("gateways: [{name: lab}]", (1, 12), "`fingerprint` or `trusted_identity`"),
        ("gateways: [{name: lab, fingerprint: ab}]", (1, 37), "64 hex digits"),
        (
            "timers: [{name: a, when: in ten minutes, ask: b}]",
            (1, 26),
            "“in ten minutes” comes once: say it in the chat, “remind me …”.",
        ),
        ("timers: [{name: a, when: tomorrow at 9, ask: b}]", (1, 26), "“tomorrow at 9” comes once"),
        ("timers: [{name: a, when: whenever, ask: b}]", (1, 26), "such as “every weekday at 9”."),
        ("timers: [{name: a, when: 2026-12-24 18:00, remind: b}]", (1, 26), "comes once"),
        ("timers: [{name: a, when: every hour}]", (1, 10), "`ask` or `remind`"),
        (
            "timers: [{name: a, when: every hour, ask: b, zone: Mars/Phobos}]",
            (1, 52),
            "no time zone “Mars/Phobos”. Write one like",
        ),
        ("organism: &a {name: x}", (1, 11), "Anchors"),
        ("organism: !!python/object:os.system {}", (1, 11), "tag"),
        ("organism: {name: !!binary aGVsbG8=}", (1, 18), "tag"),
        ("a: [", (1, 5), "not YAML"),
        ("a: 1\n---\nb: 2", (2, 1), "not YAML"),
        ("\n" + "[" * 2000, (2, 1), "64 deep"),
        ("- 1", (1, 1), "has keys"),
        ("#" * (MOST_BYTES + 1), (1, 1), "bytes"),
    ],
    ids=lambda value: str(value)[:40] if not isinstance(value, tuple) else "",
)
def test_a_fault_names_its_place_and_what_to_write(text: str, place: tuple[int, int], said: str) -> None:
    found = read(text)
    assert found.organism is None
    assert any((one.line, one.column) == place and said in one.text for one in found.faults), found.faults
    assert ("comes once" in said) == any("comes once" in one.text for one in found.faults)


def test_published_keys_without_meaning_are_named_with_what_stands_for_them() -> None:
    found = read("organism: {name: x, port: 8765}\nthread_scheduling: breadth-first\nllm: {retries: 3}")
    assert found.organism is not None
    assert [(one.line, one.column) for one in found.notes] == [(1, 21), (2, 1), (3, 1)]
    assert "rappd config get port" in found.notes[0].text


def test_all_faults_are_said_at_once() -> None:
    assert len(read("lisneters: []\ngatewys: []\nmeta: {enabld: true}").faults) == 3
