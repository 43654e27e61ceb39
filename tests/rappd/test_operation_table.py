"""The table of operations: who may, what is taken and refused, and that every reader of it has all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import pytest
from fixtures.operation_answers import unfit
from fixtures.running_daemon import REPO, RunningDaemon

from envelopes.errors import ReportableError
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.features.features import FEATURES, all_operations
from rappd.features.operation import (
    OWNER,
    Download,
    OperationTable,
    Status,
    Stream,
    Text,
    Upload,
    operation,
    operations_of,
)
from rappd.listeners.federation.operation_routes import FEATURES as OF_PEERS
from rappd.listeners.later_routes import handler_itself
from rappd.listeners.loopback import app as loopback
from rappd.listeners.tether_listener import FEATURES as OF_PHONES


class Kettles:
    @operation("kettles.boil", "POST", "/kettles/{kettle}/boil", right=OWNER)
    async def boil(
        self,
        kettle: str,
        name: Text,
        cups: int = 1,
        whose: Literal["mine", "friend"] | None = None,
        tags: list[str] | None = None,
        gently: bool = False,
        more: dict[str, Any] | None = None,
        words: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """Boils water."""
        return {}


(BOIL,) = operations_of(Kettles)


def _read(**given: Any) -> dict[str, Any]:
    return BOIL.read({"kettle": "red", "name": "tea", **given}, as_text=False)


def test_arguments_are_those_of_the_method() -> None:
    assert _read(cups=3, tags=["a"], unknown=1, more=None) == {
        "kettle": "red",
        "name": "tea",
        "cups": 3,
        "whose": None,
        "tags": ["a"],
        "gently": False,
        "more": None,
        "words": None,
    }
    assert _read(whose="")["whose"] is None
    assert BOIL.read({"kettle": "red", "name": "tea", "cups": "2", "gently": "1"}, as_text=True)["cups"] == 2
    assert (BOIL.noun, BOIL.in_path, BOIL.about) == ("kettles", ["kettle"], "Boils water.")


@pytest.mark.parametrize(
    ("given", "status", "text", "do"),
    [
        ({"name": None}, 400, "name is required", 'Send {"name": "…"}.'),
        ({"name": ""}, 400, "name is required", 'Send {"name": "…"}.'),
        ({"cups": 1 << 63}, 422, "cups is too large a number", 'Send {"cups": 1}.'),
        ({"name": 7}, 422, "name must be a string", 'Send {"name": "…"}.'),
        ({"cups": "many"}, 422, "cups must be a whole number", 'Send {"cups": 1}.'),
        ({"cups": 1.5}, 422, "cups must be a whole number", 'Send {"cups": 1}.'),
        ({"gently": "yes"}, 422, "gently must be true or false", 'Send {"gently": true}.'),
        ({"tags": "a"}, 422, "tags must be a list", 'Send {"tags": ["…"]}.'),
        ({"tags": ["a", 1]}, 422, "tags must be a list of strings", 'Send {"tags": ["…"]}.'),
        ({"words": {"a": 1}}, 422, "words must be an object of strings", 'Send {"words": {"…": "…"}}.'),
        ({"more": []}, 422, "more must be an object", 'Send {"more": {}}.'),
        ({"whose": "his"}, 422, "whose is one of: mine, friend", 'Send {"whose": "mine"}.'),
        ({"whose": 1}, 422, "whose is one of: mine, friend", 'Send {"whose": "mine"}.'),
    ],
)
def test_unfit_arguments_are_refused_by_name(given: dict[str, Any], status: int, text: str, do: str) -> None:
    with pytest.raises(ReportableError) as refused:
        _read(**given)
    assert (refused.value.status, str(refused.value), refused.value.do) == (status, text, do)


def test_form_of_an_operation_is_in_the_types_of_its_method() -> None:
    class Teas:
        @operation("teas.bring", "POST", "/teas", right=OWNER)
        async def bring(self, file: Upload, caller: Caller, name: str = "") -> Annotated[Turn, Status]:
            """Takes a file in."""
            raise NotImplementedError

        @operation("teas.get", "GET", "/teas/{name}", right=OWNER)
        async def get(self, name: str) -> Download:
            """Gives a file out."""
            raise NotImplementedError

    bring, get = operations_of(Teas)
    assert bring.arguments.__struct_fields__ == ("name",)
    assert (bring.takes_file, bring.has_body, bring.is_long) == (True, False, True)
    assert (bring.result, bring.ending) == (Turn, Status)
    assert (get.takes_file, get.has_body, get.is_long, get.result) == (False, False, False, Download)


async def test_what_a_method_returns_may_be_one_field_of_the_answer() -> None:
    class Teas:
        @operation("teas.list", "GET", "/teas", right=OWNER, answers="teas")
        async def listing(self) -> list[str]:
            """Lists what there is."""
            return ["green"]

    ((listing, perform),) = OperationTable(Teas())
    answer = await perform()
    assert answer == {"teas": ["green"]}
    assert unfit(listing.ending, answer) == ""
    assert unfit(listing.ending, {"teas": [1]}) == "Expected `str`, got `int` - at `$.teas[0]`"


def test_no_operation_is_without_a_right_and_none_is_twice() -> None:
    with pytest.raises(TypeError):
        operation("kettles.fill", "POST", "/kettles/fill")  # type: ignore[call-arg]
    found = all_operations()
    assert all(one.right for one in found)
    of_others = [one for feature in (*OF_PEERS, *OF_PHONES) for one in operations_of(feature)]
    plain = [one.name for one in (*found, *of_others) if one.ending in (dict, dict[str, Any], Any)]
    assert not plain, f"no type says what these answer: {plain}"
    for key in (lambda one: one.name, lambda one: (one.method, one.path)):
        assert len({key(one) for one in found}) == len(found)


def test_the_daemon_serves_all_of_it_behind_its_rights(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    described = daemon.get("/openapi.json").json()["paths"]
    for one in all_operations():
        row = described[re.sub(r":[^}]*", "", one.path)][one.method.lower()]
        assert row["operationId"] == one.name.replace(".", "_")
        path = re.sub(r"\{(\w+)(:(\w+)[^}]*)?\}", lambda part: part[3] or part[1], one.path)
        if one.right is not OWNER:
            continue
        refused = daemon.request(one.method, path, {})
        assert (refused.status, refused.json()["code"]) == (403, "not_operator"), one.name
    taken = described["/eggs"]["post"]
    assert list(taken["requestBody"]["content"]) == ["application/octet-stream"]
    assert [one["name"] for one in taken["parameters"]] == ["name", "signature"]
    assert list(taken["responses"]["200"]["content"]) == ["application/json", "text/event-stream"]
    form = described["/agents/import"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert (list(form["properties"]), form["required"]) == (["keep", "file"], ["file"])
    given = described["/eggs/laid/{folder}/{name}"]["get"]["responses"]["200"]["content"]
    assert list(given) == ["application/octet-stream"]
    body = described["/peers/{peer}/rename"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert (list(body["properties"]), body["required"]) == (["name"], ["name"])
    found = described["/peers"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert found == {"$ref": "#/components/schemas/Peers"}
    asked = {one["name"]: one["in"] for one in described["/outbox"]["get"]["parameters"]}
    assert asked == {"waiting": "query", "restored": "query"}


def test_names_of_operations_are_used_as_they_are(make_daemon: Callable[..., RunningDaemon]) -> None:
    home = make_daemon(LLM_FAKE="1").start()
    assert home.cli("token", "issue", "Ada/Ben").returncode == 2
    assert json.loads(home.cli("outbox", "list", "--json").stdout) == {"outbox": []}
    lost = home.cli("peers", "show", "some/where?else")
    assert (lost.returncode, lost.stderr.splitlines()[0]) == (4, '✗ No peer "some/where?else"')


ODD = (
    "\x00",
    "/" + "a" * 5000,
    "~nobody",
    10**30,
    -1,
    True,
    ["x"],
    {"path": "/" + "a" * 5000},
    {"id": "\x00"},
)


def test_no_odd_argument_is_a_fault_inside(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    broken = []
    for one in (one for one in all_operations() if one.result is not Stream):  # they end with their reader
        fields = [name for name in one.arguments.__struct_fields__ if name not in one.in_path]
        usual = {name: 1 if name in ("limit", "days", "wait") else "x" for name in fields}
        cases = [{**usual, name: odd} for name in fields for odd in ODD]
        for in_path in ("x", "%00", "a" * 3000) if one.in_path else ("",):
            path = re.sub(r"\{[^}]*\}", in_path, one.path)
            for given in cases or [{}]:
                has_body = one.method in ("POST", "PUT")
                query = "" if has_body else "?" + urlencode(given)
                answer = daemon.request(one.method, path + query, given if has_body else None, control=True)
                if answer.status == 500:
                    broken.append((one.name, in_path[:4], str(given)[:100]))
    assert broken == []
    assert daemon.get("/eggs/laid/%00/x.egg", control=True).status == 404
    assert daemon.get(f"/eggs/laid/x/{'a' * 3000}.egg", control=True).status == 404
    assert daemon.post("/agents/test", {"path": "\x00"}, control=True).status == 404


def test_an_answer_that_is_not_as_declared_is_seen() -> None:
    revoked = next(one for one in all_operations() if one.name == "peers.revoke").ending
    row = {"jti": "1", "name": "Ada", "fingerprint": "ab"}
    assert unfit(dict[str, Any], row) == ""
    assert unfit(revoked, {"revoked": row}) == "Undeclared field `jti` - at `$.revoked`"
    assert (
        unfit(revoked, {"revoked": {"name": 1, "fingerprint": ""}})
        == "Expected `str`, got `int` - at `$.revoked.name`"
    )
    assert unfit(revoked, {}) == "Object missing required field `revoked`"


def test_no_route_by_hand_is_the_operators() -> None:
    listeners = list((REPO / "rappd" / "listeners").rglob("*.py"))
    by_hand = [path for path in listeners if "\n@operator_only\n" in path.read_text()]
    assert (len(listeners) > 30, by_hand) == (True, [])


_OUTSIDE = {
    "/chat": "a published surface with a codec of its own: a turn",
    "/voice": "a published surface: a file that a password opens, whose settings have any names",
    "/twin": "a published surface: a switch that flips",
    "/login": "a published surface: the sign-in at GitHub",
    "/api/": "a published surface: services of the workspace",
    "/health": "a sign of life, also of a daemon that is not ready",
    "/readyz": "a sign of life, also of a daemon that is not ready",
    "/version": "a sign of life, also of a daemon that is not ready",
    "/metrics": "text for Prometheus",
    "/openapi.json": "the description of the others",
    "/operator/session": "sets and takes back the cookie of a browser",
    "/web/": "files of the page",
    "/rapps/": "files of a page",
    "/eggs/out/": "a file that a browser asks for without headers; its address is the proof",
    "/sessions/frames/": "a page in a frame; its address is the proof",
    "/.well-known/": "published documents",
    "/a2a": "A2A, with its codec",
    "/acp": "ACP, with its codec",
    "/mcp": "MCP, with its codec",
    "/ollama": "Ollama's API, with its codec",
    "/v1/": "OpenAI's API, with its codec",
    "/hooks/": "a webhook: its address is the right, its body anybody's",
    "/tether/": "a published surface: tools over plain HTTP",
}
"""Beginnings of the paths that are no operations, and why."""


def test_each_route_outside_of_the_table_says_why() -> None:
    settings = SimpleNamespace(number=lambda name: 1, on=lambda name: True)
    table = OperationTable(*(feature.__new__(feature) for feature in FEATURES))
    daemon: Any = SimpleNamespace(settings=settings, host=None, hosts=frozenset())
    app = loopback.build(daemon, lambda: table)
    outside = {
        route.resource.canonical.removeprefix("/twins/{twin}")
        for route in app.router.routes()
        if route.resource is not None and not hasattr(handler_itself(route.handler), "operation")
    }
    told = {path: [one for one in _OUTSIDE if path.startswith(one)] for path in outside - {"/"}}
    assert [path for path, why in told.items() if not why] == []
    assert [one for one in _OUTSIDE if not any(one in why for why in told.values())] == []
