from __future__ import annotations

import pytest

from agents.providers import refusals, urls


@pytest.mark.parametrize(
    ("typed", "base"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("localhost:8080/", "http://localhost:8080/v1"),
        ("http://box:1234/v1/", "http://box:1234/v1"),
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1"),
        ("models.example.com/openai", "https://models.example.com/openai"),
    ],
)
def test_an_address_may_be_typed_in_any_of_the_usual_ways(typed, base):
    assert urls.base_url(typed) == base


def test_what_is_shown_of_an_address_has_no_password():
    assert urls.shown("https://me:secret@models.example.com:8443/v1") == "models.example.com:8443"


@pytest.mark.parametrize(
    "token", ["sk-proj-abcdef123456", "ghu_abcdef123456", "github_pat_11ABCDEFG_x", "tid=abc;exp=17;sku=free"]
)
def test_whatever_looks_like_a_key_is_blotted_out(token):
    assert refusals.scrub(f"bad token\n{token} given", ()) == "bad token *** given"


def test_a_key_of_any_form_is_blotted_out_when_it_is_ours():
    assert refusals.scrub("key hunter2 refused", ("hunter2", "")) == "key *** refused"
