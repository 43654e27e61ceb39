"""LisPy beyond the published programs."""

from __future__ import annotations

import pytest

from agents.runtimes.lispy.errors import BadValueError
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.machine import Machine
from agents.runtimes.lispy.values import Pair, Symbol


def shown(source: str, profile: str = "core") -> str:
    outcome = Machine(source, profile=profile).run()
    assert outcome.ok, outcome.fault
    return outcome.shown()


def failed(source: str, **more: int) -> tuple[str, str]:
    outcome = Machine(source, limits=Limits(**more)).run()
    assert outcome.fault is not None, outcome.shown()
    return outcome.fault.category, outcome.fault.message


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("nil", "()"),
        ("()", "()"),
        ("(if () 1 2)", "2"),
        ("(if '() 1 2)", "1"),
        ("(null? '())", "#t"),
        ('(if "" 1 2)', "1"),
        ("[+ 1 2]", "3"),
        ("'(1 . 2)", "(1 . 2)"),
        ("(cons 1 '(2 3))", "(1 . (2 3))"),
        ("(list? (cons 1 '(2 3)))", "#f"),
        ("(car (cons 1 2))", "1"),
        ("(cdr '(1 2 3))", "(2 3)"),
        ("(length (cons 1 (cons 2 nil)))", "2"),
        ("(= (cons 1 nil) '(1))", "#f"),
        ("(= 1 #t)", "#f"),
        ("(= 1 1.0 1)", "#t"),
        ("(eq? 1 1.0)", "#f"),
        ('(equal? (make-dict "a" 1 "b" 2) (make-dict "b" 2.0 "a" 1))', "#t"),
        ("(!= 1 2)", "#t"),
        ("(- 5)", "-5"),
        ("(/ 4)", "0.25"),
        ("(+)", "0"),
        ("(< 1 2 3)", "#t"),
        ("(< 1 3 2)", "#f"),
        ('(< "Z" "a" "é" "😀")', "#t"),
        ("(nth '(1 2 3) -1)", "3"),
        ("(nth '(1 2 3) 9)", "()"),
        ("(get '(1 2) 5 'none)", "none"),
        ('(get (make-dict "a" nil) "a" 1)', "()"),
        ("(range 10 0 -4)", "(10 6 2)"),
        ("(range 0)", "()"),
        ("(zip '(1 2 3) '(a b))", "((1 a) (2 b))"),
        ('(sort (list "b" "a"))', '("a" "b")'),
        ("(sort '(1 2.5 -3))", "(-3 1 2.5)"),
        ("(sort > '(1 3 2))", "(3 2 1)"),
        ("(define (f a . r) r) (f 1 2 3)", "(2 3)"),
        ("((lambda (. r) r) 1)", "(1)"),
        ("(define x 5)", "5"),
        ("(define x 1) (set! x 2)", "2"),
        ("(let ((x 1)) (define x 2) x)", "2"),
        ("(begin)", "()"),
        ("((lambda ()))", "()"),
        ("(cond (#f 1))", "()"),
        ("(string-append)", '""'),
        ('(concat "a" 1 (list "b"))', '"a1(\\"b\\")"'),
        ("(concat '(1) nil '(2))", "(1 2)"),
        ('(string->number "0x1")', "()"),
        ('(->number " 12.50 ")', "12.5"),
        ('(string-ref "añ😀" 2)', '"😀"'),
        ('(string-length "😀é")', "2"),
        ("(symbol->string 'abc)", '"abc"'),
        ('(list (string->symbol "a") "a")', '(a "a")'),
        ("(list 1e3 .5 -2. 1_000 +7)", "(1000.0 0.5 -2.0 1000 7)"),
        ("(list 'a+b '... '-)", "(a+b ... -)"),
        ('"tab\\t quote\\" other\\q"', '"tab\\t quote\\" other\\\\q"'),
        ("(list car (lambda (x) x)) ", "(#<builtin car> #<procedure>)"),
        ("(define (twice f) f) twice", "#<procedure twice>"),
        (
            "(list (boolean? #f) (procedure? car) (procedure? 'car) (symbol? 'a) (integer? 1.0))",
            "(#t #t #f #t #f)",
        ),
        ("(capabilities)", "()"),
        ('(get (runtime-info) "language")', '"lispy-core@1"'),
        (
            "(define-macro (my-if c a b) (list 'cond (list c a) (list 'else b))) (my-if #f (car nil) 'ok)",
            "ok",
        ),
        ("(define list2 list) (define (list . x) 'mine) (list2 (list 1))", "(mine)"),
        ("(expt 0 0)", "1"),
        ("(expt -8 3)", "-512"),
        ("(expt 2.0 3)", "8.0"),
        ("(round 0.5)", "0"),
        ("(round 1.5)", "2"),
        ("(flatten (list 1 (cons 2 (list 3)) nil))", "(1 2 3 ())"),
        ("(max 1 2.5 2)", "2.5"),
        ("(log 1)", "0.0"),
        ("(sin 0)", "0.0"),
        ("(apply max '(3 9 4))", "9"),
    ],
)
def test_value(source: str, value: str) -> None:
    assert shown(source) == value


@pytest.mark.parametrize(
    ("source", "category"),
    [
        ("(", "syntax"),
        ("(]", "syntax"),
        ('"abc', "syntax"),
        ('"abc\\"', "syntax"),
        ("'", "syntax"),
        ("(if)", "syntax"),
        ("(let (x) x)", "syntax"),
        ("(lambda (1) 1)", "syntax"),
        ("(lambda (a .) 1)", "syntax"),
        ("(define)", "syntax"),
        ("(cond 1)", "syntax"),
        ("(cond (else 1) (2 3))", "syntax"),
        ("(quote)", "syntax"),
        (",x", "unsupported"),
        ("(do 1)", "unsupported"),
        ("(set! nowhere 1)", "evaluation"),
        ("(1 2)", "evaluation"),
        ("((lambda (x) x))", "evaluation"),
        ("(car 1 2)", "evaluation"),
        ("(+ 1 #t)", "evaluation"),
        ("(/ 1 0)", "evaluation"),
        ("(% 1.5 0)", "evaluation"),
        ("(* 1e300 1e300)", "evaluation"),
        ("(+ 1.5 (expt 10 400))", "evaluation"),
        ("(sqrt -1)", "evaluation"),
        ("(expt -8 0.5)", "evaluation"),
        ("(expt 0 -1)", "evaluation"),
        ("(length (cons 1 2))", "evaluation"),
        ('(sort (list 1 "a"))', "evaluation"),
        ("(make-dict 'a 1)", "evaluation"),
        ('(make-dict "a")', "evaluation"),
        ("(reduce + '())", "evaluation"),
        ("(next-input)", "evaluation"),
        ("(map if '(1))", "evaluation"),
        ("(define-macro (m) 1) (map m '(1))", "evaluation"),
        ("(define-macro (m) 1) (apply m '())", "evaluation"),
        ('(json-parse "[1,]")', "invalid-data"),
        ('(json-parse "\\"\\\\ud800\\"")', "invalid-data"),
        ('(json-parse "1e999")', "invalid-data"),
        ("(json-dump car)", "serialization"),
        ("\ud800", "invalid-data"),
    ],
)
def test_failure(source: str, category: str) -> None:
    assert failed(source)[0] == category


def test_where_a_text_cannot_be_read() -> None:
    assert failed('(list 1\n  "two" é)]')[1] == "<vm>:2:11: unexpected closing delimiter ']'"
    outcome = Machine("(a\n(b", named="weather.lispy").run()
    assert outcome.fault is not None
    assert (outcome.fault.message, outcome.fault.line) == ("weather.lispy:2:1: unclosed delimiter '('", 2)


def test_nothing_is_written_when_the_text_cannot_be_read() -> None:
    outcome = Machine('(display "a") (').run()
    assert (outcome.status, outcome.stdout, outcome.steps) == ("failed", "", 0)


def test_stable_sort_by_a_procedure() -> None:
    pairs = "'((1 a) (0 b) (1 c) (0 d) (1 e) (0 f) (1 g))"
    source = f"(sort {pairs} (lambda (x y) (< (first x) (first y))))"
    assert shown(source) == "((0 b) (0 d) (0 f) (1 a) (1 c) (1 e) (1 g))"


def test_profile_adds_forms_and_takes_none_away() -> None:
    assert shown("(pipe 5 (- 3) (list 1))", "rappterbook") == "(2 1)"
    assert shown("(do anything at all)", "rappterbook") == "()"
    assert failed("(when #t 1)")[1] == "unbound variable: when"
    with pytest.raises(BadValueError, match="no LisPy profile"):
        Machine("1", profile="scheme")


def test_values_from_outside() -> None:
    machine = Machine(
        "(list given (next-input))", inputs=[Pair(1, Symbol("x"))], bindings={"given": {"a": [1.5]}}
    )
    assert machine.run().shown() == '((dict ("a" . (1.5))) (1 . x))'
    circle: list[object] = []
    circle.append(circle)
    for wrong in ([{1: 2}], [object()], [float("nan")], ["\ud800"], [circle], [(1, 2)]):
        with pytest.raises(BadValueError):
            Machine("1", inputs=wrong)
    with pytest.raises(BadValueError, match="takes no input"):
        Machine("1").give(1)


def test_procedures_called_outside_keep_their_state() -> None:
    machine = Machine("(define n 0) (define (add x) (println x) (set! n (+ n x)) n) (define x 1)")
    with pytest.raises(BadValueError, match="still running"):
        machine.call("add", 1)
    machine.run()
    machine.call("add", 2)
    assert machine.run().value == 2
    machine.call("add", "two")
    assert machine.run().status == "failed"
    machine.call("add", 3)
    outcome = machine.run()
    assert (outcome.value, outcome.stdout) == (5, "3\n")
    for name in ("x", "nothing"):
        with pytest.raises(BadValueError, match=f"no procedure {name}"):
            machine.call(name)
