"""A twin that is running has a port of its own, which answers as it, and to whom it should."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import pytest
from fixtures.loopback_server import calls, says
from fixtures.operator_page import OperatorPage
from fixtures.running_daemon import on
from fixtures.twin_farm import AGENT, Farm, closed

from rappd.daemon.ports import TWIN_PORTS
from rappd.features.features import all_operations
from rappd.features.operation import OWNER, Operation
from rappd.listeners.loopback import chat


def test_booted_twin_answers_on_its_port_with_its_agents(farm: Farm) -> None:
    key = farm.new("gardener")
    (farm.folder(key) / "agents" / "kettle_agent.py").write_text(AGENT)
    port = farm.boot(key)
    assert port in TWIN_PORTS
    health = on(port, "GET", "/health").json()
    assert health["name"] == "gardener"
    assert health["brainstem_dir"] == str(farm.folder(key))
    farm.model.will(calls(("Kettle", {})), says("there"))
    said = on(port, "POST", "/chat", {"user_input": "go"}).json()
    assert said["response"] == "there"
    assert said["agent_logs"] == "[Kettle] It boils."
    assert farm.rows()[key] | {"last_talk": 0} == farm.rows()[key] | {
        "state": "awake", "port": port, "last_talk": 0,
    }  # fmt: skip
    assert time.time() - farm.rows()[key]["last_talk"] < 60
    assert "Kettle" not in farm.daemon.agent_names(), "the brainstem has no part in it"


def test_booting_again_and_again_at_once_gives_one_port(farm: Farm) -> None:
    key = farm.new("eager")
    with ThreadPoolExecutor(8) as pool:
        ports = set(pool.map(lambda _: farm.boot(key), range(16)))
    assert len(ports) == 1
    farm.post(f"/twins/{key}/stop")
    assert closed(farm, *ports)
    assert farm.rows()[key]["state"] == "asleep"
    assert farm.rows()[key]["port"] is None


def test_concurrent_boot_and_stop_end_in_one_state(farm: Farm) -> None:
    key = farm.new("torn")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: farm.post(f"/twins/{key}/{'boot' if n % 2 else 'stop'}"), range(24)))
    row = farm.rows()[key]
    farm.model.will(says("I am here"))
    if row["state"] == "awake":
        assert on(row["port"], "POST", "/chat", {"user_input": "well?"}).json()["response"] == "I am here"
    else:
        assert farm.says_to(key, "well?")["response"] == "I am here"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example", ""])
def test_a_twins_port_answers_to_this_machines_names_only(farm: Farm, host: str) -> None:
    port = farm.boot(
        next((key for key, row in farm.rows().items() if row["name"] == "named"), "") or farm.new("named")
    )
    for path in ("/health", "/agents"):
        answer = on(port, "GET", path, Host=host)
        assert (answer.status, answer.json()["code"]) == (403, "refused")
    assert on(port, "POST", "/chat", {"user_input": "x"}, Host=host).status == 403
    for right in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert on(port, "GET", "/health", Host=right).status == 200


def test_a_twins_port_has_no_page_no_operator_and_no_other_twins(farm: Farm) -> None:
    key = farm.new("alone")
    port = farm.boot(key)
    for method, path in (
        ("GET", "/"), ("GET", "/twins"), ("GET", f"/twins/{key}"), ("POST", f"/twins/{key}/chat"),
        ("POST", "/operator/key"), ("GET", "/operator/status"), ("GET", "/threads"), ("GET", "/settings"),
    ):  # fmt: skip
        assert on(port, method, path, {}).status == 404, path
    for method, path in (("POST", "/agents/new"), ("POST", "/agents/run"), ("DELETE", "/agents/x_agent.py")):
        assert on(port, method, path, {}).json()["code"] == "not_operator", path


def test_operators_session_opens_nothing_at_a_twins_port(farm: Farm) -> None:
    key = farm.new("sealed")
    source = farm.folder(key) / "agents" / "kettle_agent.py"
    source.write_text(AGENT)
    port = farm.boot(key)
    daemon = farm.daemon
    page = OperatorPage(daemon)
    assert page.get(f"/twins/{key}/agents/source/kettle_agent.py").status == 200
    body = {"name": "Pot", "agent": "Kettle"}
    for one in _owners_of_a_tenant():
        path = re.sub(r"\{(file)?name:[^}]*\}", "kettle_agent.py", one.path)
        raw, host = json.dumps(body).encode(), f"127.0.0.1:{port}"
        answer = on(port, one.method, path, body, **page.headers(one.method, path, raw, host=host))
        closed = (403, 429) if path.startswith("/agents") else (403, 404, 429)
        assert answer.status in closed, f"{one.method} {path}: {answer.status}"
    assert source.read_text() == AGENT
    assert [one.name for one in source.parent.glob("*.py")] == ["kettle_agent.py"]


def test_pages_of_other_sites_may_not_use_a_twins_port(farm: Farm) -> None:
    port = farm.boot(farm.new("shy"))
    answer = on(port, "POST", "/chat", {"user_input": "x"}, Origin="http://evil.example")
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def _owners_of_a_tenant() -> list[Operation]:
    return [one for one in all_operations() if one.of_tenant and one.right is OWNER and one.path]


def _structural() -> list[tuple[str, str]]:
    of_twins = [one for one in all_operations() if one.path.startswith("/twins")]
    own: list[tuple[str, str]] = [(one.method, one.path) for one in of_twins if one.right is OWNER]
    return own + [(one.method, f"/twins/{{twin}}{one.path}") for one in _owners_of_a_tenant()]


@pytest.mark.parametrize(("method", "path"), _structural())
def test_twins_and_their_agents_are_the_operators_business(
    farm: Farm, other_farm: Farm, method: str, path: str
) -> None:
    farm = farm if "/agents" in path else other_farm  # so many refusals by one would be slowed down
    key = next(iter(farm.rows()), "") or farm.new("watched")
    before = farm.rows()
    place = re.sub(r"\{filename:[^}]*\}", "x_agent.py", path.replace("{twin}", key))
    body = b'{"name": "x", "confirm": true, "filter": {"kind": "personal"}}'
    connection = HTTPConnection("127.0.0.1", farm.daemon.port, timeout=100)
    connection.request(method, place, body)
    answer = connection.getresponse()
    assert (answer.status, json.load(answer)["code"]) == (403, "not_operator")
    connection.close()
    assert farm.rows().keys() == before.keys()


def test_all_that_talks_to_the_brainstem_talks_to_a_twin_too(farm: Farm) -> None:
    paths = {route.path for route in chat.routes}  # type: ignore[attr-defined]
    paths |= {one.path for one in all_operations() if one.of_tenant and one.path}
    described = farm.daemon.get("/openapi.json").json()["paths"]
    below = {re.sub(r"\{(\w+):[^}]*\}", r"{\1}", f"/twins/{{twin}}{path}") for path in paths}
    assert below <= described.keys()
