"""Agents written in LisPy do what those written in Python do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fixtures.refusals import refused

from agents.contract.loaded_file import describe
from agents.runtimes.lispy.agent import BadLispyAgentError, LispyAgent
from agents.runtimes.lispy.errors import BadValueError
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.python.worker.invoke import perform

GREETER = """
; Says hello in several languages, and counts.
(define agent-name "Greeter")
(define agent-description "Greets somebody by name.")
(define agent-parameters '((name "string" "Who to greet") (language "string") loudly))
(define count 0)
(define words (make-dict "en" "Hello" "pl" "Cześć"))
(define (greeter-run context kwargs)
  (set! count (+ count 1))
  (let ((text (string-append (get words (get kwargs "language" "en")) ", " (get kwargs "name"))))
    (if (get kwargs "loudly") (string-upcase text) text)))
"""


def agent(body: str, parameters: str = "nil") -> LispyAgent:
    return LispyAgent(
        f'(define agent-name "Test") (define agent-description "Tests.") (define agent-parameters {parameters}) {body}'
    )


def test_describes_itself_as_python_agents_do() -> None:
    described = describe(LispyAgent(GREETER))
    assert (described.name, described.tool_name) == ("Greeter", "Greeter")
    assert described.description == "Greets somebody by name."
    assert described.parameters == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who to greet"},
            "language": {"type": "string"},
            "loudly": {"type": "string"},
        },
    }
    assert LispyAgent(GREETER).to_tool()["function"]["name"] == "Greeter"


def test_performs() -> None:
    greeter = LispyAgent(GREETER)
    done = perform(greeter, {"name": "Zoë", "language": "pl", "loudly": True}, user_guid="u")
    assert done.result == "CZEŚĆ, ZOË"
    assert greeter.perform(name="Ada") == "Hello, Ada"


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("nil", {"type": "object", "properties": {}}),
        (
            '(make-dict "type" "object" "properties" (make-dict "a" (make-dict "type" "integer")) "required" \'("a"))',
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        ),
        ('(make-dict "a" "number")', {"type": "object", "properties": {"a": {"type": "number"}}}),
        (
            '"{\\"type\\": \\"object\\", \\"properties\\": {\\"a\\": {}}}"',
            {"type": "object", "properties": {"a": {}}},
        ),
        ("'(a b)", {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
    ],
)
def test_parameters(written: str, schema: dict[str, Any]) -> None:
    found = describe(agent("(define (test-run context kwargs) 1)", written))
    assert found.parameters == schema


@pytest.mark.parametrize(
    ("body", "arguments", "result"),
    [
        ('(dict-set kwargs "more" (list 1 2.5 nil))', {"a": [True]}, {"a": [True], "more": [1, 2.5, None]}),
        ('(println "said" (get kwargs "n"))', {"n": 3}, "said 3\n"),
        ("(list 'symbol (cons 1 (cons 2 nil)))", {}, ["symbol", [1, 2]]),
        ('(+ 1 (get kwargs "n"))', {"n": 2**70}, 2**70 + 1),
        ("car", {}, "#<builtin car>"),
    ],
)
def test_results(body: str, arguments: dict[str, Any], result: Any) -> None:
    found = agent(f"(define (test-run context kwargs) {body})")
    assert found.perform(**arguments) == result


def test_what_it_hands_on_reaches_the_next_agent() -> None:
    body = '(define (test-run context kwargs) (make-dict "result" 1 "data_slush" (make-dict "seen" (get kwargs "q"))))'
    done = perform(agent(body), {"q": "x"}, user_guid="u")
    assert done.data_slush == {"seen": "x"}
    assert json.loads(done.result)["result"] == 1


def test_the_context_holds_what_the_file_names_and_nothing_else() -> None:
    body = (
        '(define (test-run context kwargs) (list (keys context) (get (get context "upstream_slush") "from")))'
    )
    done = perform(agent(body), {}, user_guid="u", upstream_slush={"from": "Clock"})
    assert json.loads(done.result) == [["upstream_slush"], "Clock"]
    body = '(define (test-run context kwargs) (has-key? (get context "temporal") "time_of_day"))'
    assert perform(agent(body), {}, user_guid="u").result == "True"


def test_it_remembers_from_call_to_call_and_errors_cost_nothing() -> None:
    counting = agent('(define n 0) (define (test-run context kwargs) (set! n (+ n (get kwargs "by"))) n)')
    assert [counting.perform(by=2), counting.perform(by=3)] == [2, 5]
    with refused("lispy_failed", match="Test: \\+: not a number"):
        counting.perform(by="x")
    assert counting.perform(by=1) == 6
    with pytest.raises(BadValueError):
        counting.perform(by=object())


def test_endless_call_is_stopped_and_next_has_all_steps() -> None:
    source = """
        (define agent-name "Spinner") (define agent-description "Spins.")
        (define (spin) (map (lambda (x) (spin)) '(1 2 3)))
        (define (spinner-run context kwargs) (if (get kwargs "spin") (spin) "calm"))
    """
    spinner = LispyAgent(source, limits=Limits(max_steps=3_000))
    for _ in range(2):
        with refused("lispy_failed", match="execution limit exceeded"):
            spinner.perform(spin=True)
        assert spinner.perform() == "calm"


@pytest.mark.parametrize(
    ("source", "reason", "line"),
    [
        ('(define agent-name "A")\n(define', "unclosed delimiter", 2),
        ("(car 1)", "car: not a pair: 1", None),
        ("(define x 1)", "does not define agent-name", None),
        ('(define agent-name "A B") (define agent-description "d")', "the procedure a-b-run", None),
        (
            '(define agent-name "A") (define agent-description "") (define (a-run c k) 1)',
            "agent-description",
            None,
        ),
    ],
)
def test_files_that_give_no_agent(source: str, reason: str, line: int | None) -> None:
    with pytest.raises(BadLispyAgentError, match=reason) as found:
        LispyAgent(source)
    assert found.value.line == line


@pytest.mark.parametrize(
    "parameters",
    [
        "5",
        "car",
        '(reduce (lambda (t i) (string-append t t)) (range 15) "[")',
        '"{"',
        "'(1)",
        "'((a b c d))",
        "(list car)",
    ],
)
def test_parameters_that_are_no_schema(parameters: str) -> None:
    with pytest.raises(BadLispyAgentError):
        agent("(define (test-run context kwargs) 1)", parameters)
