"""The flags of ``meta``: who may ask ``core`` for lists, schemas, examples and prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from fixtures.running_daemon import RunningDaemon

from rappd.dispatch.rights import Caller
from rappd.features.organism.payload_operations import Introspection
from rappd.organism.organism import MetaFlags

HERE, OWNER = Caller("loopback"), Caller("control", operator=True)
PEER, MINE = Caller("federation", peer="ab", caps=("HELP.*",)), Caller("federation", caps=("*",), mine=True)


@pytest.mark.parametrize(
    ("flags", "caller", "lists", "schemas"),
    [
        (None, HERE, True, True),
        (None, PEER, True, True),
        ({}, HERE, True, True),
        ({}, PEER, False, False),
        ({"allow_remote": True}, PEER, True, True),
        ({"enabled": False, "allow_remote": True}, OWNER, False, False),
        ({"allow_list_capabilities": False}, OWNER, False, True),
        ({"allow_schema_requests": "admin"}, HERE, True, False),
        ({"allow_schema_requests": "admin"}, OWNER, True, True),
        ({"allow_schema_requests": "admin", "allow_remote": True}, MINE, True, False),
        ({"allow_schema_requests": "none"}, OWNER, True, False),
    ],
    ids=[
        "no section, here", "no section, a peer", "here", "a peer", "a peer that is let", "off", "no lists",
        "admin, a program", "admin, the owner", "admin, the owner's other machine", "none",
    ],
)  # fmt: skip
def test_who_may_ask_what(flags: dict[str, Any] | None, caller: Caller, lists: bool, schemas: bool) -> None:
    meta = None if flags is None else msgspec.convert(flags, MetaFlags)
    asked = Introspection(lambda form: 1, meta, caller)
    assert (asked.may_list(), asked.may_see("schema")) == (lists, schemas)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    running = RunningDaemon(tmp_path_factory.mktemp("meta") / "home")
    running.home.mkdir(parents=True, exist_ok=True)
    (running.home / "organism.yaml").write_text(
        "meta: {allow_list_capabilities: false, allow_schema_requests: admin, allow_prompt_requests: none}\n"
    )
    yield running.start()
    running.stop()


def test_the_loopback_goes_by_the_same_flags(daemon: RunningDaemon) -> None:
    assert daemon.get("/organism/listeners").status == 403
    seen = set(daemon.get("/organism/listeners/calculator").json())
    assert "example" in seen and not seen & {"xsd", "schema", "prompt"}
    owners = set(daemon.get("/organism/listeners/calculator", control=True).json())
    assert {"xsd", "schema", "example"} <= owners and "prompt" not in owners
