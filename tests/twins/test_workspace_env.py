"""Variables of a workspace's ``.env``: parsed without the daemon's environment, reserved names left out."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twins.errors import BadFileError
from twins.workspace.workspace_env import MAX_BYTES, decode, is_reserved, masked, parse

RESERVED = [
    *(
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "DYLD_INSERT_LIBRARIES",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PATH",
        "path",
    ),
    *("HTTP_PROXY", "https_proxy", "ALL_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_INDEX_URL"),
    *("UV_INDEX_URL", "HOME", "RAPP_HOME", "RAPPD_SANDBOX", "BASH_ENV", "ENV", "IFS", "GIT_SSH_COMMAND"),
    *("NODE_OPTIONS", "PERL5LIB", "PERL5OPT", "RUBYOPT", "RUBYLIB", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("OPENAI_API_KEY", "GITHUB_TOKEN", "VOICE_ZIP_PASSWORD", "ANTHROPIC_API_KEY", "Gh_Token", "ld_preload"),
]


@pytest.mark.parametrize("name", RESERVED)
def test_parse_reserved_name_is_left_out(name: str) -> None:
    found = parse(f"BEFORE=1\n{name}=x\nexport {name}=y\nAFTER=2\n")
    assert found.accepted == {"BEFORE": "1", "AFTER": "2"}
    assert found.left_out == (name,)


@pytest.mark.parametrize(
    "name", ["WEATHER_KEY", "PATHS", "MY_PATH", "HOME_TOWN", "ENVIRONMENT", "PIPE", "SLD_X"]
)
def test_parse_ordinary_name_is_taken(name: str) -> None:
    assert parse(f"{name}=x\n").accepted == {name: "x"}


def test_parse_refers_to_its_own_entries_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of the daemon")
    monkeypatch.setenv("MY_OWN", "of the daemon")
    text = (
        "BASE=https://x\nURL=${BASE}/v1\nLEAK=<${OPENAI_API_KEY}>\nMY=${MY_OWN}\n"
        "OR=${MY_OWN:-else}\nBASE=${BASE}/again\nLATE=${LATER}\nLATER=1\nPLAIN='$MY_OWN'\n"
    )
    assert parse(text).accepted == {
        "BASE": "https://x/again",
        "URL": "https://x/v1",
        "LEAK": "<>",
        "MY": "",
        "OR": "else",
        "LATE": "",
        "LATER": "1",
        "PLAIN": "$MY_OWN",
    }


def test_parse_published_spellings_as_before() -> None:
    text = "# note\nexport A=1\nB = 'two words'\nC=\"line\\nbreak\"\nD=x # note\nE=\nF\nnot a line\n"
    assert parse(text).accepted == {"A": "1", "B": "two words", "C": "line\nbreak", "D": "x", "E": ""}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=" + "x" * MAX_BYTES, "more than 64 KB"),
        ("A=x\0y\n", "zero byte"),
        ("A=1" + " " * 300 + "x", "blanks in a row"),
        ("".join(f"A{number}=\n" for number in range(1001)), "more than 1000 variables"),
        ("A=" + "x" * 9000 + "\n" + "".join(f"B{n}=${{A}}${{A}}\n" for n in range(70)), "grows past"),
        ("A=" + "x" * 9000 + "\nB=" + "${A}" * 9 + "\n", "B is too large"),
        (
            "A0=xxxxxxxxxx\n" + "".join(f"A{n}=${{A{n - 1}}}${{A{n - 1}}}\n" for n in range(1, 60)),
            "too large",
        ),
    ],
)
def test_parse_too_much_is_a_clear_error(text: str, message: str) -> None:
    with pytest.raises(BadFileError, match=message) as caught:
        parse(text)
    assert caught.value.do


def test_decode_bytes_that_are_no_text_is_a_clear_error() -> None:
    with pytest.raises(BadFileError, match="not UTF-8 in line 1"):
        decode(b"A=\xff\xfe\n")
    assert parse(decode(b"\xef\xbb\xbfA=1\n")).accepted == {"A": "1"}


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300) | st.text(st.sampled_from("AB=${}:-'\"\\\n# \t"), max_size=300))
def test_parse_any_text_gives_variables_that_a_process_can_have(text: str) -> None:
    try:
        found = parse(text)
    except BadFileError:
        return
    for name, value in found.accepted.items():
        assert name and "=" not in name and "\0" not in name + value
        assert not is_reserved(name)
    masked(text.encode("utf-8", "replace"))


@pytest.mark.parametrize(
    "text",
    [
        "A=" + "${" * 30_000,
        "A='" * 20_000,
        "A=x" + (" " * 199 + "x") * 300,
        'A="' + "\\" * 60_000,
        "\n" * 60_000,
    ],
)
def test_parse_takes_bounded_time(text: str) -> None:
    begin = time.process_time()
    with contextlib.suppress(BadFileError):
        parse(text)
    assert time.process_time() - begin < 3


def test_masked_shows_names_and_no_value() -> None:
    assert masked(b"KEY=hunter2\nEMPTY=\nPATH=/evil\n") == (
        "KEY=…\nEMPTY=\n# PATH: never taken from a workspace\n"
    )
    assert "hunter2" not in masked(b"KEY=hunter2\0")
