"""Wrong keys and passwords are limited by their source; the right one is taken whatever was tried before."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from fixtures.operator_page import SIGNATURE, BrowserKey, OperatorPage, sign_in
from fixtures.running_daemon import RunningDaemon
from fixtures.sandboxed_daemon import MODES, NO_SANDBOX, sandboxed_daemon_in

from rappd.daemon.operator_sessions import OperatorSessions

HAMMERS = """
import http.client, json
seen = {{}}
def ask(method, path, body=None, cookie=""):
    connection = http.client.HTTPConnection("127.0.0.1", {port}, timeout=10)
    connection.request(method, path, body, {{"Content-Type": "application/json", "Cookie": cookie}})
    status = connection.getresponse().status
    connection.close()
    seen.setdefault(path.split("?")[0], []).append(status)
for number in range(40):
    guess = {{"link": "guess%d" % number, "public_key": "x", "proof": "y"}}
    ask("POST", "/operator/session", json.dumps(guess))
    ask("GET", "/threads", cookie="rappd_operator=guess%d" % number)
    ask("GET", "/voice/config?password=guess%d" % number)
    ask("POST", "/login")
return json.dumps({{path: [found.count(403), found.count(429)] for path, found in seen.items()}})
"""


def _session(daemon: RunningDaemon, key: str) -> int:
    return sign_in(daemon, key).status


def _key(daemon: RunningDaemon) -> str:
    return str(daemon.post("/operator/key", control=True).json()["key"])


def test_right_key_signs_in_after_any_number_of_wrong_ones(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    key = _key(daemon)
    seen = [_session(daemon, f"guess{number}") for number in range(50)]
    assert set(seen) == {403, 429}
    assert seen.count(403) == 30
    assert _session(daemon, key) == 200
    assert _session(daemon, key) == 429, "a key is for one use, and using it again is a failure"
    assert _session(daemon, _key(daemon)) == 200


def test_session_is_held_while_others_are_refused(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    page = OperatorPage(daemon)
    for wrong in ({SIGNATURE: "x"}, page.headers("GET", "/settings"), {"Cookie": "rappd_operator=x"}):
        seen = {page.get("/threads", headers=wrong).status for _ in range(40)}
        assert seen <= {403, 429}
    assert 429 in seen
    assert page.get("/threads").status == 200


def test_voice_guesses_never_lock_out_the_operator(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    daemon.post("/voice/config", {"a": 1, "_password": "open"}, control=True)
    assert {daemon.get("/voice/config?password=open").status for _ in range(40)} == {200}, (
        "right ones are free"
    )
    assert {daemon.get("/voice/config?password=guess").status for _ in range(40)} == {403, 429}
    assert daemon.get("/voice/config?password=open").status == 429, "this source guesses no more"
    page, path = OperatorPage(daemon), "/voice/config?password="
    for ask in (page.get, partial(daemon.get, control=True)):
        assert {ask(f"{path}guess").status for _ in range(40)} == {403}
        assert ask(f"{path}open").json() == {"a": 1}


@pytest.mark.parametrize("mode", [*MODES, NO_SANDBOX])
def test_agent_that_hammers_locks_out_nobody(mode: str, nobody_python: Path) -> None:
    nowhere = "http://127.0.0.1:9"
    environment = {"LLM_FAKE": "1", "RAPPD_GITHUB_URL": nowhere, "RAPPD_AGENT_TIMEOUT": "100"}
    with sandboxed_daemon_in(mode, nobody_python, **environment) as daemon:
        daemon.start()
        daemon.post("/voice/config", {"a": 1, "_password": "open"}, control=True)
        key = _key(daemon)
        began = time.monotonic()
        hammered = daemon.run_code(HAMMERS.format(port=daemon.port), "Hammer")
        minutes = (time.monotonic() - began) / 60
        assert hammered["ok"], hammered
        seen = json.loads(hammered["result"])
        heard = seen["/operator/session"][0] + seen["/threads"][0]
        assert 30 <= heard <= 30 * math.ceil(minutes), f"30 in each minute: {seen}"
        assert seen["/operator/session"][1] + seen["/threads"][1] == 80 - heard
        assert seen["/voice/config"][1] > 0
        assert _session(daemon, key) == 200
        assert _session(daemon, "wrong") == 403, "other sources are told what is wrong, as before"
        assert daemon.get("/threads").status == 403
        assert daemon.get("/voice/config?password=open").json() == {"a": 1}
        assert daemon.post("/login").status != 429
        assert daemon.post("/login", control=True).status != 429


def test_operator_may_sign_in_20_times_and_import_120_times_a_minute(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_GITHUB_URL="http://127.0.0.1:9").start()
    for paths, most in (
        (("/login", "/login/switch"), 20),
        (("/agents/import", "/rapps/install", "/repos/connect"), 120),
    ):
        asked = itertools.islice(itertools.cycle(paths), most + 6)
        late = [
            (
                daemon.upload("x.txt", b"", control=True)
                if path == "/agents/import"
                else daemon.post(path, {"id": "nothing", "url": "nothing"}, control=True)
            ).status
            == 429
            for path in asked
        ]
        assert late == [False] * most + [True] * 6


def test_operator_key_of_odd_text_is_none() -> None:
    sessions = OperatorSessions(b"secret")
    key = sessions.mint_key()
    browser = BrowserKey()
    link, public, proof = browser.entry(key).values()
    for text in ("", "\ud800", "x" * 100_000, key, BrowserKey().public, f"{link} ", public[:-1], proof[:-1]):
        assert sessions.trade(text, public, proof) is None
        assert sessions.trade(link, text, proof) is None
        assert sessions.trade(link, public, text) is None
    assert sessions.trade(link, public, proof) is not None
    assert sessions.trade(link, public, proof) is None
