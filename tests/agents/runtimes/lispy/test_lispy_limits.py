"""No program takes more time, memory or stack than it may, however it is built."""

from __future__ import annotations

import json

import pytest

from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.machine import Machine, Outcome

ROOMY = Limits(max_steps=1_000_000)
DEEP = "(define deep (reduce (lambda (inner n) (list inner)) (range 20000) nil))"
NESTED = "(define-macro (nested n) (reduce (lambda (form i) (list 'let '((x 1)) form)) (range n) 'x))"
DOUBLED = "(define (doubled) (reduce (lambda (x n) (list x x)) (range 60) 1))"


def run(source: str, **limits: int) -> Outcome:
    return Machine(source, limits=Limits(**({"max_steps": 1_000_000} | limits))).run()


def passed(source: str, **limits: int) -> str | None:
    outcome = run(source, **limits)
    assert outcome.fault is not None, outcome.shown(200)
    return outcome.fault.resource


def test_depth_of_data_is_no_depth_of_calls() -> None:
    machine = Machine(
        f"{DEEP} (define other (list (first deep))) (println (= deep other)) deep", limits=ROOMY
    )
    outcome = machine.run()
    assert outcome.stdout == "#t\n"
    assert outcome.shown().startswith("((((") and outcome.as_json()["wire"] is None
    text = machine.freeze_text()
    assert Machine.thaw(json.loads(text)).freeze_text() == text


def test_depth_of_code_made_by_a_macro() -> None:
    source = """
        (define-macro (deep n) (reduce (lambda (form i) (list '+ 1 form)) (range n) 0))
        (deep 5000)
    """
    machine = Machine(source, limits=ROOMY)
    machine.run(50_000)
    assert len(machine.freeze()["stack"]) > 2000
    assert Machine.thaw(machine.freeze()).run().value == 5000


@pytest.mark.parametrize(
    "use",
    ["(println x)", "(->string x)", "(json-dump x)", "(flatten x)", "(error x)", "(string-append (car x))"],
)
def test_a_value_that_is_small_but_long_to_say(use: str) -> None:
    outcome = run(f"{DOUBLED} (define x (doubled)) {use}")
    assert outcome.status == "failed"
    assert outcome.fault is not None and len(outcome.fault.message) < 1000


def test_two_such_values_are_compared_at_once() -> None:
    outcome = run(f"{DOUBLED} (= (doubled) (doubled))")
    assert outcome.value is True and outcome.steps < 2000


def test_such_a_value_is_frozen_and_shown() -> None:
    machine = Machine(f"{DOUBLED} (doubled)")
    outcome = machine.run()
    assert len(machine.freeze_text()) < 20_000
    assert outcome.shown(100) == "(longer than 100 characters)"
    assert outcome.as_json()["wire"] is None
    assert machine.inspect()


@pytest.mark.parametrize(
    ("source", "resource"),
    [
        ('(define (f s) (f (string-append s s))) (f "ab")', "collection_items"),
        ("(define (f l) (f (append l l))) (f '(1))", "collection_items"),
        ("(define (f n) (f (* n n))) (f 3)", "integer_bits"),
        ("(expt 10 (expt 10 100))", "integer_bits"),
        ("(expt 2 65536)", "integer_bits"),
        ("9" * 20_000, "integer_bits"),
        ("(range (expt 10 30))", "collection_items"),
        ('(string->number (reduce (lambda (s i) (string-append s s)) (range 15) "9"))', "integer_bits"),
        ('(json-parse (reduce (lambda (s i) (string-append "[" s "]")) (range 300) "1"))', "reader_depth"),
        (
            '(string-replace (reduce (lambda (s i) (string-append s s)) (range 16) "a") "a" "bbb")',
            "collection_items",
        ),
        ("(define-macro (m) '(m)) (m)", "steps"),
        (f"{NESTED} (nested 1100)", "scope_depth"),
        ("(define (f) (map (lambda (x) (f)) '(1 2))) (f)", "call_depth"),
        ("(" * 300 + ")" * 300, "reader_depth"),
        ("'" * 300 + "a", "reader_depth"),
    ],
)
def test_runaway(source: str, resource: str) -> None:
    assert passed(source) == resource


@pytest.mark.parametrize(
    ("source", "resource", "used"),
    [
        ("(range 8)", "collection_items", 8),
        ('(string-append "abcd" "efgh")', "collection_items", 8),
        ('(display "12345678")', "output_bytes", 8),
        ("(expt 2 299)", "integer_bits", 300),
        ("(+ 1 (* 2 3))", "steps", 9),
    ],
)
def test_all_of_a_limit_may_be_used(source: str, resource: str, used: int) -> None:
    assert run(source, **{f"max_{resource}": used}).ok
    assert passed(source, **{f"max_{resource}": used - 1}) == resource


def test_scopes_nest_as_deep_as_anybody_writes() -> None:
    assert run(f"{NESTED} (nested 900)").value == 1


def test_source_and_output_count_bytes() -> None:
    assert passed("éé", max_source_bytes=3) == "source_bytes"
    assert run('(display "é")', max_output_bytes=2).ok
    outcome = run('(display "é") (display "é")', max_output_bytes=3)
    assert outcome.fault is not None and (outcome.fault.used, outcome.stdout) == (4, "é")


def test_memory_is_what_is_alive() -> None:
    churn = "(define (churn n) (if (= n 0) 'done (begin (range 100) (churn (- n 1))))) (churn 100)"
    assert run(churn, max_cells=3000).ok
    keep = "(define kept nil) (define (keep n) (set! kept (cons (range 100) kept)) (keep (+ n 1))) (keep 0)"
    assert passed(keep, max_cells=3000) == "cells"
    texts = '(define s (reduce (lambda (s i) (string-append s s)) (range 10) "abcd")) (map (lambda (i) (string-append s s)) (range 50))'
    assert run(texts).ok
    assert passed(texts, max_cells=3000) == "cells"


def test_no_step_does_unbounded_work() -> None:
    """A procedure that goes through many items counts as many steps."""
    lists = "(define a (range 16000)) (define b (range 16000))"
    for use in ("(equal? a b)", "(cdr a)", "(apply list a)", "(json-dump a)", "(->string a)"):
        outcome = run(f"{lists} {use}", max_steps=2_000_000)
        assert outcome.ok, outcome.fault
        base = run(lists).steps
        assert outcome.steps - base > 60, use


def test_a_pause_never_loses_or_repeats_anything() -> None:
    source = "(define (f n) (println n) (if (= n 0) 'end (f (- n 1)))) (f 20)"
    whole = Machine(source).run()
    machine = Machine(source)
    seen = 0
    while machine.run(7).status == "paused":
        seen += 7
        assert machine.outcome.steps == seen
    assert machine.outcome == whole
    limited = Machine(source, limits=Limits(max_steps=50))
    assert limited.run(50).status == "paused"
    outcome = limited.run(1)
    assert outcome.fault is not None and (outcome.fault.used, outcome.steps) == (51, 51)
