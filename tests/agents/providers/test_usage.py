"""The use of model rounds, and their cost at the owner's prices."""

from __future__ import annotations

import pytest

from agents.providers.provider import BadPriceError, Completion, Prices, Usage, price_list


def round_of(model: str, read: int, written: int, *, prices: Prices | None = None) -> Completion:
    completion = Completion(model=model, input_tokens=read, output_tokens=written)
    completion.cost_usd = prices.cost(completion) if prices else None
    return completion


def test_read_and_written_tokens_have_own_prices() -> None:
    prices = Prices.of("2", "10")
    assert prices.cost(round_of("any", 1_000_000, 0)) == 2
    assert prices.cost(round_of("any", 0, 500_000)) == 5
    assert prices.cost(round_of("any", 1000, 100)) == pytest.approx(0.003)


def test_a_named_model_has_its_own_price_also_as_a_dated_release() -> None:
    prices = Prices.of("1, gpt-4o=2.5, gpt-4o-mini=0.15", "4,gpt-4o=10,gpt-4o-mini=0.6")
    million = 1_000_000
    for model, cost in (
        ("gpt-4o", 12.5),
        ("gpt-4o-2024-08-06", 12.5),
        ("gpt-4o-mini", 0.75),
        ("gpt-4o-mini-2024-07-18", 0.75),
        ("gpt-4o-audio", 5),
        ("qwen3", 5),
    ):
        assert prices.cost(round_of(model, million, million)) == pytest.approx(cost), model


@pytest.mark.parametrize(
    ("read", "written"),
    [("", ""), ("2", ""), ("", "2"), ("gpt-4o=1", "gpt-4o=1"), ("cheap", "2"), ("-1", "2")],
)
def test_without_both_prices_of_the_model_no_cost_is_known(read: str, written: str) -> None:
    assert Prices.of(read, written).cost(round_of("qwen3", 5, 5)) is None


@pytest.mark.parametrize("text", ["cheap", "-1", "nan", "inf", "gpt-4o=", "=x", "1,two", "2.5 USD"])
def test_what_is_no_price_is_named(text: str) -> None:
    with pytest.raises(BadPriceError):
        price_list(text)


def test_rounds_add_up_and_tell_both_kinds_of_tokens() -> None:
    prices, usage = Prices.of("2", "10"), Usage()
    usage.add(round_of("m", 100, 10, prices=prices))
    usage.add(round_of("m", 300, 20, prices=prices))
    assert usage.stated() == {
        "tokens": 430, "input_tokens": 400, "output_tokens": 30, "cost_usd": pytest.approx(0.0011),
    }  # fmt: skip
    other = Usage()
    other.include(usage)
    other.include(usage)
    assert (other.input_tokens, other.stated()["cost_usd"]) == (800, pytest.approx(0.0022))


def test_a_cost_that_is_only_half_known_is_not_told() -> None:
    usage = Usage()
    usage.add(round_of("m", 100, 10, prices=Prices.of("2", "10")))
    usage.add(round_of("other", 100, 10))
    assert usage.stated() == {"tokens": 220, "input_tokens": 200, "output_tokens": 20}
    sum_of_both = Usage()
    sum_of_both.include(usage)
    assert "cost_usd" not in sum_of_both.stated()


def test_free_is_a_price_and_no_tokens_are_no_statement() -> None:
    usage = Usage()
    assert usage.stated() == {}
    usage.add(round_of("no model", 0, 0))
    assert usage.stated() == {}
    usage.add(round_of("local", 7, 3, prices=Prices.of("0", "0")))
    assert usage.stated()["cost_usd"] == 0
    usage.add(round_of("no model", 0, 0))
    assert usage.stated()["cost_usd"] == 0, "a round without a model costs nothing"
