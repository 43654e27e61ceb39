"""``rappd agents test``: the contract tests of one file, run in a worker."""

from __future__ import annotations

from typing import Any

ORDER = [
    "has_manifest",
    "manifest_fields",
    "name_format",
    "has_basic_agent",
    "instantiation",
    "runtime_name_is_tool_safe",
    "perform_returns_str",
    "standalone_execution",
    "has_docstring",
    "no_hardcoded_secrets",
]
PLAIN = '''"""Says hello."""
from agents.basic_agent import BasicAgent


class Hello(BasicAgent):
    def __init__(self):
        super().__init__("Hello", {"name": "Hello", "description": "Says hello"})

    def perform(self, **kwargs):
        return "hello"
'''


async def tried(worker_host: Any, rel: str) -> tuple[bool, dict[str, tuple[bool, str]]]:
    answer = await worker_host.ask("test", {"file": worker_host.file(rel)})
    assert [one["test"] for one in answer["tests"]] == ORDER
    return answer["passed"], {one["test"]: (one["passed"], one["message"]) for one in answer["tests"]}


async def test_a_registry_agent_passes_everything(collection: Any) -> None:
    passed, tests = await tried(collection, "with_manifest_agent.py")
    assert passed
    assert all(done for done, _ in tests.values()), tests


async def test_a_plain_agent_passes_without_what_only_a_registry_wants(worker_host: Any) -> None:
    worker_host.write("hello_agent.py", PLAIN)
    passed, tests = await tried(worker_host, "hello_agent.py")
    assert passed
    assert {name for name, (done, _) in tests.items() if not done} == {
        "has_manifest",
        "manifest_fields",
        "name_format",
    }


async def test_faults_are_named(worker_host: Any) -> None:
    faulty = PLAIN.replace('"""Says hello."""', '__manifest__ = {"name": "hello", "version": "1"}')
    faulty = faulty.replace('super().__init__("Hello"', 'super().__init__("Hello there"')
    faulty = faulty.replace('return "hello"', 'token = "0123456789"\n        return 7')
    worker_host.write("hello_agent.py", faulty + '\n\nif __name__ == "__main__":\n    raise SystemExit(3)\n')
    passed, tests = await tried(worker_host, "hello_agent.py")
    assert not passed
    assert tests["runtime_name_is_tool_safe"] == (False, "'Hello there' is offered to models as Hello_there")
    assert tests["perform_returns_str"] == (False, "perform() returned int")
    assert tests["standalone_execution"] == (False, "as a script it ended with 3")
    assert tests["has_docstring"] == (False, "The file has no docstring")
    assert tests["no_hardcoded_secrets"] == (False, "line 10 holds a likely password; move it to .env")
    assert "missing: schema" in tests["manifest_fields"][1]
    assert "version '1' is not three numbers" in tests["manifest_fields"][1]
    assert tests["name_format"][0] is False


async def test_one_fault_does_not_hide_the_others(collection: Any) -> None:
    passed, tests = await tried(collection, "faulty_syntax_agent.py")
    assert not passed
    assert tests["has_basic_agent"] == (False, "faulty_syntax_agent.py line 5: expected ':'")
    assert tests["instantiation"] == (False, "Skipped — the file does not load")
    assert tests["perform_returns_str"] == (False, "Skipped — no instance")
    assert tests["has_docstring"] == (False, "Skipped — the file does not load")
    assert tests["standalone_execution"] == (False, "Skipped — the file does not load")
    assert tests["no_hardcoded_secrets"] == (True, "")


async def test_the_worker_survives_a_script_that_calls_the_daemon(worker_host: Any) -> None:
    script = (
        PLAIN + '\n\nif __name__ == "__main__":\n    from utils.host import request\n\n    request("x")\n'
    )
    worker_host.write("hello_agent.py", script)
    _, tests = await tried(worker_host, "hello_agent.py")
    assert tests["standalone_execution"] == (False, "as a script it ended with 1")
    assert await worker_host.perform(worker_host.file("hello_agent.py"), "Hello") == "hello"
