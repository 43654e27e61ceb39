"""QuickAnswers: the time, days, sums and units, as people type them; what is none of these; what is too large."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.library.quick_answers_agent import answer_to

FILE, NAME = "quick_answers_agent.py", "QuickAnswers"
NOW = datetime(2026, 11, 27, 19, 30, tzinfo=UTC)  # a Friday


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("17% of 80", "17% of 80 = 13.6"),
        ("What is 12*(3+4)?", "12*(3+4) = 84"),
        ("20% off 50", "20% off 50 = 40"),
        ("80 + 10%", "80 + 10% = 88"),
        ("0.1 + 0.2", "0.1 + 0.2 = 0.3"),
        ("10/3", "10/3 = 3.33333333333 (rounded)"),
        ("1,000 × 3", "1,000 × 3 = 3,000"),
        ("twenty five times four", "twenty five times four = 100"),
        ("how much is 3 plus 4 please?", "3 plus 4 = 7"),
        ("square root of 16", "square root of 16 = 4"),
        ("what is 1/3 of 90", "1/3 of 90 = 30"),
        ("2^1000", "2^1000 = 1.07150860719 × 10^301 (rounded)"),
        ("1/0", "Error: Nothing can be divided by zero."),
        ("sqrt(-1)", "Error: A negative number has no square root."),
        ("5 miles in km", "5 miles = 8.04672 km"),
        ("convert 70 F to C", "70 °F = 21.1111 °C (rounded)"),
        ("0 kelvin in celsius", "0 K = -273.15 °C"),
        ("5 ft 10 in in cm", "5 feet 10 inches = 177.8 cm"),
        ("how many grams in a pound?", "1 pound = 453.592 g (rounded)"),
        ("2,5 kg in pounds", "2.5 kg = 5.51156 pounds (rounded)"),
        ("100 km/h in mph", "100 km/h = 62.1371 mph (rounded)"),
        ("1 GiB in MB", "1 GiB = 1,073.74 MB (rounded)"),
        ("90 minutes in hours", "90 minutes = 1.5 hours"),
        ("3 cups in ml", "3 US cups = 709.765 ml (rounded)"),
        ("5 miles in kg", "Error: miles measures length, and kg mass."),
        ("-500 C in F", "Error: Nothing is that cold: the lowest temperature is -273.15 °C."),
        ("what time is it", "It is 19:30 on Friday, 27 November 2026."),
        ("can you tell me what time it is?", "It is 19:30 on Friday, 27 November 2026."),
        ("what's the time in Tokyo?", "It is 04:30 on Saturday, 28 November 2026, in Tokyo."),
        ("What time is it in São Paulo", "It is 16:30 on Friday, 27 November 2026, in São Paulo."),
        ("time in Germany", "It is 20:30 on Friday, 27 November 2026, in Germany."),
        ("what time is it in 90 minutes", "It will be 21:00 today."),
        ("what day is it in 10 days?", "In 10 days it will be Monday, 7 December 2026."),
        ("what day was it 10 days ago", "10 days ago it was Tuesday, 17 November 2026."),
        ("what date is it in 3 months", "In 3 months it will be Saturday, 27 February 2027."),
        ("what day is it?", "It is Friday, 27 November 2026."),
        ("what's the date tomorrow", "It will be Saturday, 28 November 2026."),
        ("what day of the week is 24 December 2026?", "It will be Thursday, 24 December 2026."),
        ("how many days until Christmas", "28 days until Friday, 25 December 2026."),
    ],
)  # fmt: skip
def test_question_is_answered(question: str, answer: str) -> None:
    assert answer_to(question, NOW) == answer


@pytest.mark.parametrize(
    "text",
    ["", "hello", "5", "2024", "2026-11-27", "555-1234", "030 123456", "10:30", "5 km", "in 3 days", "what is love",
     "what time is the meeting", "which day is the boiler serviced", "time in a bottle", "turn on the lights",
     "remember that 5 miles is 8 km", "__import__('os')", "(1).__class__", "open('x')", "1 if 1 else 2", "[1]*9",
     "lambda: 1", "x" * 300, "1+" * 120 + "1"],
)  # fmt: skip
def test_other_sentences_are_left_alone(text: str) -> None:
    assert answer_to(text, NOW) is None


@pytest.mark.parametrize(
    "text",
    ["9^9^9", "9**9**9**9", "5000**5000", "1" * 90 + "**" + "9" * 90, "(" * 90 + "1" + ")" * 90, "-" * 190 + "1",
     "sqrt(" * 30 + "2" + ")" * 30, "1 m" * 66, "5 miles " * 24 + "x", "0." * 90, "1,000" * 39, "9%" * 90,
     "what time is it in " + "a " * 80, "what day is it in 999999 years", "how many in" + " in" * 60],
)  # fmt: skip
def test_what_is_too_large_takes_no_time(text: str) -> None:
    began = time.thread_time()
    answer_to(text, NOW)
    assert time.thread_time() - began < 0.5


async def test_agent_answers_in_its_sandbox(desk: Any) -> None:
    assert await desk.text(FILE, NAME, question="12*(3+4)") == "12*(3+4) = 84"
    assert ", in Tokyo." in await desk.text(FILE, NAME, question="what time is it in Tokyo?")
    assert (await desk.text(FILE, NAME, question="write a poem")).startswith("Error: I answer the time")
