"""Codes of authenticators: the vectors of the standard, each code once, and guessers are sent away."""

from __future__ import annotations

import base64

import pytest

from neighborhoods.auth.totp import BAN_SECONDS, STEP_SECONDS, CodeBanError, Guessers, accepted, code_at

SECRET = b"12345678901234567890"
NOW = 1_800_000_000.0
STEP = int(NOW) // STEP_SECONDS


@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (59, "287082"),
        (1111111109, "081804"),
        (1234567890, "005924"),
        (2000000000, "279037"),
        (20000000000, "353130"),
    ],
)
def test_codes_are_those_of_the_standard(seconds: int, code: str) -> None:
    assert code_at(SECRET, seconds // STEP_SECONDS) == code  # RFC 6238, appendix B, the last six digits


@pytest.mark.parametrize(("early", "counts"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_clock_may_be_one_step_off(early: int, counts: bool) -> None:
    found = accepted({"a": SECRET}, {}, code_at(SECRET, STEP + early), NOW)
    assert (found is not None) == counts


def test_each_step_counts_once() -> None:
    code = code_at(SECRET, STEP)
    assert accepted({"a": SECRET}, {"a": STEP - 1}, code, NOW) == ("a", STEP)
    assert accepted({"a": SECRET}, {"a": STEP}, code, NOW) is None
    assert accepted({"a": SECRET}, {"a": STEP + 1}, code, NOW) is None


@pytest.mark.parametrize("code", ["", "12345", "1234567", "abcdef", "١٢٣٤٥٦", "\ud800"])
def test_what_is_no_code_is_wrong(code: str) -> None:
    assert accepted({"a": SECRET}, {}, code, NOW) is None


def test_nobody_has_a_code() -> None:
    assert accepted({}, {}, code_at(b"\0" * 20, STEP), NOW) is None


def test_code_finds_the_access_among_those_of_one_name() -> None:
    other = base64.b32decode("JBSWY3DPEHPK3PXP")
    assert accepted({"a": SECRET, "b": other}, {}, code_at(other, STEP), NOW) == ("b", STEP)


def _after(*wrong: tuple[str, str]) -> Guessers:
    guessers = Guessers()
    for name, address in wrong:
        guessers.wrong(name, address, NOW)
    return guessers


def test_five_wrong_codes_ban_the_name_at_that_address_alone() -> None:
    guessers = _after(*[("ann", "10.0.0.1")] * 5)
    with pytest.raises(CodeBanError):
        guessers.check("ann", "10.0.0.1", NOW)
    guessers.check("ann", "10.0.0.2", NOW)  # she herself comes from elsewhere
    guessers.check("bob", "10.0.0.1", NOW)
    guessers.check("ann", "10.0.0.1", NOW + BAN_SECONDS)


def test_wrong_codes_for_many_names_ban_the_address() -> None:
    guessers = _after(*[(name, "10.0.0.1") for name in "abcde"])
    with pytest.raises(CodeBanError):
        guessers.check("f", "10.0.0.1", NOW)
    guessers.check("f", "10.0.0.2", NOW)


def test_four_wrong_codes_and_a_right_one_begin_anew() -> None:
    guessers = _after(*[("ann", "10.0.0.1")] * 4)
    guessers.right("ann", "10.0.0.1")
    for _ in range(4):
        guessers.wrong("ann", "10.0.0.1", NOW)
    guessers.check("ann", "10.0.0.1", NOW)


def test_memory_of_guessers_is_bounded() -> None:
    guessers = Guessers()
    for number in range(20_000):
        guessers.wrong("ann", str(number), NOW)
    assert len(guessers._wrong) <= 10_000
