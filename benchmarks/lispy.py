"""LisPy: steps per second against a plain recursive evaluator, and freezing a heap of 10,000 cells."""

from __future__ import annotations

import gc
import operator
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.machine import Machine
from agents.runtimes.lispy.reader import read
from agents.runtimes.lispy.values import Symbol

LIMITS = Limits(max_steps=100_000_000, max_call_depth=10_000)
PROGRAMS = {
    "calls (fib 20)": "(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (fib 20)",
    "a closure over 20,000 items": "(reduce + (map (lambda (x) (let ((y (* x x))) (% y 7))) (range 20000)) 0)",
    "arithmetic in a loop": "(define (f n t) (if (= n 0) t (f (- n 1) (+ t (* n 3) (- n 1))))) (map (lambda (i) (f 50 i)) (range 200))",
}
HEAPS = {
    "a chain of 10,000 pairs": "(define kept (reduce (lambda (l n) (cons n l)) (range 10000) nil)) 1",
    "10,000 items in 2,500 lists": "(define kept (map (lambda (n) (list n n n)) (range 2500))) 1",
    "2,500 closures": "(define kept (map (lambda (n) (lambda () n)) (range 2500))) 1",
}


def run() -> list[tuple[str, str]]:
    """Rows of (what, figure), medians."""
    rows = []
    for name, source in PROGRAMS.items():
        outcome = Machine(source, limits=LIMITS).run()
        assert outcome.value == _evaluate_all(source)  # or the comparison means nothing
        ours = _median(partial(_run_anew, source))
        naive = _median(partial(_evaluate_all, source))
        rows.append(
            (
                name,
                f"{outcome.steps / ours:,.0f} steps/s; {naive / ours:.2f} x a recursive evaluator that counts nothing",
            )
        )
    for name, source in HEAPS.items():
        machine = Machine(source, limits=LIMITS)
        machine.run()
        image = machine.freeze()
        text = machine.freeze_text()
        frozen = _median(machine.freeze)
        written = _median(machine.freeze_text) - frozen
        thawed = _median(partial(Machine.thaw, image))
        rows.append(
            (
                f"freeze {name}",
                f"{frozen * 1e3:.1f} ms; as text {written * 1e3:.1f} ms more, {len(text) / 1024:,.0f} KiB "
                f"(orjson alone {_median(partial(orjson.dumps, image)) * 1e3:.1f} ms); "
                f"thaw {thawed * 1e3:.1f} ms",
            )
        )
    machine = Machine(PROGRAMS["calls (fib 20)"], limits=LIMITS)
    machine.run(50_000)
    rows.append(("freeze in the midst of fib", f"{_median(machine.freeze) * 1e3:.2f} ms"))
    rows.append(("one step at a time", f"{_stepping():,.0f} steps/s"))
    return rows


def _median(work: Callable[[], object], rounds: int = 9) -> float:
    """Seconds that ``work`` takes."""
    taken = []
    for _ in range(rounds):
        gc.collect()
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def _run_anew(source: str) -> object:
    return Machine(source, limits=LIMITS).run()


def _stepping() -> float:
    machine = Machine(PROGRAMS["calls (fib 20)"], limits=LIMITS)
    started = time.perf_counter()
    for _ in range(20_000):
        machine.step()
    return 20_000 / (time.perf_counter() - started)


def _evaluate_all(source: str) -> Any:
    """The straightforward way: a function that calls itself, cannot stop, and cannot be frozen."""
    scope: dict[str, Any] = {
        "+": lambda *numbers: sum(numbers),
        "-": operator.sub,
        "*": operator.mul,
        "%": operator.mod,
        "<": operator.lt,
        "=": operator.eq,
        "range": lambda n: list(range(n)),
        "map": lambda f, items: [f(item) for item in items],
        "reduce": _reduce,
    }
    value = None
    for form in read(source, LIMITS):
        value = _evaluate(form, scope)
    return value


def _reduce(f: Callable[[Any, Any], Any], items: list[Any], value: Any) -> Any:
    for item in items:
        value = f(value, item)
    return value


def _evaluate(form: Any, scope: dict[str, Any]) -> Any:
    if type(form) is Symbol:
        return _look_up(form, scope)
    if type(form) is not list:
        return form
    head = form[0]
    if head == "if":
        return _evaluate(form[2] if _evaluate(form[1], scope) else form[3], scope)
    if head == "define":
        scope[form[1][0]] = _procedure(form[1][1:], form[2:], scope)
        return None
    if head == "lambda":
        return _procedure(form[1], form[2:], scope)
    if head == "let":
        inner = {"": scope} | {name: _evaluate(value, scope) for name, value in form[1]}
        return [_evaluate(one, inner) for one in form[2:]][-1]
    procedure, *arguments = [_evaluate(one, scope) for one in form]
    return procedure(*arguments)


def _procedure(names: list[Any], body: list[Any], scope: dict[str, Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        inner = {"": scope} | dict(zip(names, arguments, strict=True))
        value = None
        for form in body:
            value = _evaluate(form, inner)
        return value

    return call


def _look_up(name: str, scope: dict[str, Any] | None) -> Any:
    while scope is not None:
        if name in scope:
            return scope[name]
        scope = scope.get("")
    raise NameError(name)
