"""Results of agents, and their deeds to their process, through a real worker: the text that comes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.runtimes.python.pools.errors import AgentRaisedError

RETURNS = """
import datetime, decimal, math, pathlib
from agents.basic_agent import BasicAgent


class Odd(BasicAgent):
    def __init__(self):
        super().__init__("Odd", {"name": "Odd", "description": "Returns oddly."})

    def perform(self, code="", **kwargs):  # line 10
        circle = {}
        circle["me"] = circle
        return eval(code, globals(), {"circle": circle})


class Pieces(BasicAgent):
    def __init__(self):
        super().__init__("Pieces", {"name": "Pieces", "description": "Yields."})

    def perform(self, kind="", **kwargs):
        yield "one "
        if kind == "fails":
            raise ValueError("in the middle")
        yield {"two": math.nan}
        yield b"three"
        return "not this"


class AsyncPieces(Pieces):
    def __init__(self):
        super().__init__()
        self.name = "AsyncPieces"
        self.metadata["name"] = "AsyncPieces"

    async def perform(self, **kwargs):
        yield "uno "
        yield "dos"


class OnlyReturns(Pieces):
    def __init__(self):
        super().__init__()
        self.name = self.metadata["name"] = "OnlyReturns"

    def perform(self, **kwargs):
        return {"answer": 42}
        yield


class Endless(Pieces):
    def __init__(self):
        super().__init__()
        self.name = self.metadata["name"] = "Endless"

    def perform(self, **kwargs):
        while True:
            yield "x" * 1_000_000
"""

PROCESS = """
import argparse, os, sys
from agents.basic_agent import BasicAgent

class Tee:  # not a file at all, but what some put in the place of one
    def write(self, text):
        return sys.__stdout__.write(text)

    def flush(self):
        sys.__stdout__.flush()


if "tee" in __file__:
    sys.stdout = Tee()
parser = argparse.ArgumentParser()
parser.add_argument("--word", default="w")
given = parser.parse_args()


class Rude(BasicAgent):
    def __init__(self):
        super().__init__("Rude", {"name": "Rude", "description": "Does something to its process."})

    def perform(self, code="", **kwargs):
        exec(code)
        return given.word + " " + os.path.basename(sys.argv[0])
"""


async def perform(worker_host: Any, file: dict[str, Any], name: str, **arguments: Any) -> str:
    body = {"file": file, "name": name, "arguments": arguments, "user_guid": ""}
    found: str = (await worker_host.pool.request("perform", body, timeout=100))["result"]
    return found


async def test_values_become_text_that_says_something(worker_host: Any) -> None:
    file = worker_host.write("odd_agent.py", RETURNS)
    for code, text in {
        "None": "",
        "math.nan": "null",
        "{'v': math.nan, 'w': [math.inf, 1.5]}": '{"v": null, "w": [null, 1.5]}',
        "{1: 'a', None: 'b', (1, 2): math.nan}": '{"1": "a", "null": "b", "(1, 2)": null}',
        "{'at': datetime.date(2026, 1, 2), 'sum': decimal.Decimal('1.10')}": '{"at": "2026-01-02", "sum": "1.10"}',
        "{'b': b'caf\\xc3\\xa9', 's': {2, 1}}": '{"b": "café", "s": [1, 2]}',
        "pathlib.Path('/tmp/x')": "/tmp/x",
        "ValueError('as a value')": "as a value",
        "circle": "{'me': {...}}",
    }.items():
        assert await perform(worker_host, file, "Odd", code=code) == text, code


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("object()", "a value of type object"),
        ("dict", "the class dict"),
        ("lambda: 1", "the function <lambda>"),
        ("len", "the builtin_function_or_method len"),
        ("math", "the module math"),
        ("map(str, [])", "a value of type map"),
        ("{'deep': [object()]}", "a value of type object"),
    ],
)
async def test_value_without_text_of_its_own_is_an_error_with_the_line(
    worker_host: Any, code: str, named: str
) -> None:
    file = worker_host.write("odd_agent.py", RETURNS)
    with pytest.raises(AgentRaisedError) as caught:
        await perform(worker_host, file, "Odd", code=code)
    assert caught.value.message == f"{named} has no text of its own; perform returns text, or data for JSON"
    assert caught.value.line == 10


async def test_what_perform_yields_is_joined_and_followed(worker_host: Any) -> None:
    file = worker_host.write("odd_agent.py", RETURNS)
    joined = 'one {"two": null}\nthree'
    assert await perform(worker_host, file, "Pieces") == joined
    assert await perform(worker_host, file, "AsyncPieces") == "uno dos"
    assert json.loads(await perform(worker_host, file, "OnlyReturns")) == {"answer": 42}
    with pytest.raises(AgentRaisedError, match="in the middle"):
        await perform(worker_host, file, "Pieces", kind="fails")
    with pytest.raises(AgentRaisedError, match="yielded more than 60 million characters"):
        await perform(worker_host, file, "Endless")
    told: list[str] = []

    async def hear(operation: str, arguments: dict[str, Any]) -> None:
        assert operation == "piece"
        told.append(arguments["text"])

    body = {"file": file, "name": "Pieces", "arguments": {}, "user_guid": "", "follow": True}
    await worker_host.pool.request("perform", body, timeout=100, on_callback=hear)
    assert told == ["one ", '{"two": null}\n', "three"]


@pytest.mark.parametrize(
    "code",
    [
        "sys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
        "os.close(0); os.close(1); os.close(2)",
        "sys.stdout = sys.stderr = sys.stdin = None",
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
    ],
)
async def test_next_call_has_working_streams_whatever_one_did_to_them(
    worker_host: Any, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    file = worker_host.write("rude_agent.py", PROCESS)
    assert (
        await perform(worker_host, file, "Rude", code=f"{code}; self.pid = os.getpid()") == "w rude_agent.py"
    )
    print_all = (
        "print('to stdout'); os.write(1, b'raw\\n'); print('to stderr', file=sys.stderr); sys.stdin.read()"
    )
    same = "assert self.pid == os.getpid(), 'positive control: the same process'"
    assert await perform(worker_host, file, "Rude", code=f"{same}; {print_all}") == "w rude_agent.py"
    await worker_host.pool.close()
    assert {"to stdout", "raw", "to stderr"} <= set(capsys.readouterr().out.splitlines())


async def test_stream_of_a_files_own_stays_and_breaks_no_call(
    worker_host: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = worker_host.write("tee_agent.py", PROCESS)
    for _ in range(2):
        assert await perform(worker_host, file, "Rude", code="print('by tee')") == "w tee_agent.py"
    await worker_host.pool.close()
    assert capsys.readouterr().out.count("by tee") == 2
