"""A ``.env`` on its way into an egg: keys stay, secret values go, whatever way they are written."""

from __future__ import annotations

import io

import pytest
from dotenv import dotenv_values
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins.eggs.writers.nest import Nest, contents
from twins.eggs.writers.env_blanking import blanked
from twins.eggs.writers.exclusions import ExclusionReason
from twins.eggs.writers.formats import EggFormat

SECRET = "hunter2"

PUBLISHED = ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASS", "CREDENTIAL", "PAT", "API_KEY"]
KEYS = [
    *PUBLISHED,
    *(f"X_{key}" for key in PUBLISHED),
    *(key.lower() for key in PUBLISHED),
    *(f"my{key.title()}" for key in PUBLISHED),
    *(
        "TOKENS",
        "API_KEYS",
        "GITHUB_PAT_2",
        "TOKEN1",
        "PASSPHRASE",
        "DB_PASSWD",
        "db_pwd",
        "CREDENTIALS",
        "apiKey",
        "ApiKey",
    ),
    *(
        "API-KEY",
        "api.key",
        "KEY_OF_THE_HOUSE",
        "SECRET_NAME_IS",
        "AUTH",
        "BEARER",
        "OPENAIKEY",
        "SESSION_COOKIE",
        "X_Token",
    ),
    *(
        "PRIVATE_KEY_PEM",
        "DATABASE_DSN",
        "SLACK_WEBHOOK_URL",
        "MY TOKEN",
        "PASSWORD_HINT",
        "apikey_old",
        "MySecretsOfOld",
        "my secret key",
        "Api Key",
    ),
]
WAYS = [
    *("{key}={v}", "{key} = {v}", "{key}\t=\t{v}", "  {key}={v}", "{key}=  {v}  ", '{key}="{v}"', "{key}='{v}'", "{key}=`{v}`"),
    *("export {key}={v}", "EXPORT {key}={v}", "export   {key} = '{v}'", "set {key}={v}", '$env:{key} = "{v}"'),
    *("# {key}={v}", "#{key}={v}", "##  {key} = {v}", "; {key}={v}", "// {key}={v}", "# export {key}={v}", '# {key}="{v}"'),
    *("{key}: {v}", '"{key}": "{v}",', "'{key}'='{v}'", '"{key}"={v}', "# {key}: {v}", "{key}={v} # of the daemon"),
    *("{key}=a b {v}", '{key}="a\n{v}\nb"', "{key}='a\n{v}'", '{key}="""a\n{v}"""', "{key}=a\\\n{v}", '{key}="a \\" {v}"'),
    *("{key}=-----BEGIN RSA PRIVATE KEY-----\n{v}\n-----END RSA PRIVATE KEY-----", '{key}="-----BEGIN X-----\n{v}==\n-----END X-----"'),
    *('# {key}="a\n# {v}"', '{key}="{v}', "{key}='{v}", '{key}="a\n{v}', "{key}=={v}", "{key}:={v}", "{key}={v};", "{key}={v},"),
    *('{key}="a\nPORT={v}\n"', "{key}='a\nPORT={v}\nX=1'", "{key}=a\\\nPORT={v}"),
    *("declare -x {key}={v}", "let {key} = '{v}'", "{key}={v}\r", "{key}=\u00a0{v}", "{key}={{{v}}}", "{key}=$({v})"),
]  # fmt: skip
HARMLESS = "PORT=7071\nMODEL=llama-3.1-8b-instruct\nNAME='my twin'\n"


@pytest.mark.parametrize("way", WAYS)
def test_every_spelling_that_ever_leaked_is_blanked(way: str) -> None:
    for key in KEYS:
        text = HARMLESS + way.format(key=key, v=SECRET) + "\n"
        out = blanked(text.encode()).decode()
        assert SECRET not in out, f"{text!r} became {out!r}"
        assert out.startswith(HARMLESS), "what is harmless stays"


def test_keys_stay_so_that_one_sees_what_to_fill_in() -> None:
    text = "# For mail\nTOKEN=a1\nexport X_KEY='b2'\n#OLD_PASSWORD=c3\n\nmulti_secret=\"d\n4\"\nPORT=1\n"
    out = "# For mail\nTOKEN=\nX_KEY=\n# OLD_PASSWORD=\n\nmulti_secret=\nPORT=1\n"
    assert blanked(text.encode()).decode() == out


@pytest.mark.parametrize("line", [
    "PORT=7071", "DEBUG=true", "MODEL_PATH=/models/llama-3.1-8b.gguf", "URL=http://localhost:11434/v1", "GREETING='hello there'",
    "MAX_TOKENS=4096", "KEYBOARD=de", "TOKENIZER=bpe", "EMPTY=", "MONKEYS", "# A word about this file", "LANG=de_DE.UTF-8",
])  # fmt: skip
def test_what_is_harmless_stays_as_it_is(line: str) -> None:
    expected = f"{line}\n" if "=" in line or line.startswith("#") else ""
    assert blanked(f"{line}\n".encode()).decode() == expected


@pytest.mark.parametrize("value", [
    "postgres://me:hunter2@host/db", "https://hooks." + "slack.com/services/T0001/B0001/abcdefghijkl012345678901", "AK" + "IAABCDEFGHIJKLMNOP",
    "gh" + "p_0123456789abcdefghijABCDEFGHIJ012345", "sk" + "-proj-abcdefghijklmnopqrstuvwxyz0123456789", "a8f5f167f44f4964e6c998dee827110c",
    "AccountName=x;AccountKey=abc", "TOKEN=hunter2", "x; PASSWORD=hunter2",
])  # fmt: skip
def test_a_value_that_looks_secret_goes_whatever_its_key_says(value: str) -> None:
    assert blanked(f"HARMLESS={value}\n".encode()) == b"HARMLESS=\n"


@pytest.mark.parametrize("line", [
    "my password is hunter2", "hunter2", "TOKEN hunter2", "MIIEpAIBAAKCAQEAhunter2==", "Пароль=hunter2", "пароль: hunter2",
    "ＴＯＫＥＮ=hunter2", "# the password is hunter2", "# token hunter2 of the daemon", 'set "TOKEN=hunter2"', "{hunter2}", "=hunter2",
    "the password hunter2 of the daemon = x", "password hunter2=x", "1TOKEN=hunter2",
])  # fmt: skip
def test_a_line_that_is_not_understood_is_left_out(line: str) -> None:
    assert blanked(f"A=1\n{line}\nB=2\n".encode()) == b"A=1\nB=2\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028"])
def test_a_line_ends_wherever_some_reader_ends_it(end: str) -> None:
    out = blanked(f"A=1{end}TOKEN=hunter2{end}B=2{end}".encode()).decode()
    assert out == "A=1\nTOKEN=\nB=2\n" or (SECRET not in out and out.startswith("A=1\n"))


def test_what_is_no_text_comes_out_empty() -> None:
    for content in (b"\xff\xfeT\0O\0K\0E\0N\0=\0a\0", b"TOKEN=\xe9", b"A=1\0TOKEN=b"):
        assert blanked(content) == b""
    assert blanked(b"") == b""
    assert blanked("\ufeffTOKEN=hunter2\n".encode()) == b"TOKEN=\n"


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(WAYS)), max_size=5),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_no_mixture_of_spellings_leaks(lines: list[tuple[str, str]], end: str) -> None:
    text = end.join(way.format(key=key, v=f"{SECRET}{number}") for number, (key, way) in enumerate(lines))
    assert SECRET not in blanked(text.encode()).decode()


@settings(max_examples=300)
@given(st.text(st.sampled_from("TOKEN=\"'\n\\# :ax$`\r-"), max_size=60))
def test_no_reader_of_variables_finds_a_secret_that_was_there(text: str) -> None:
    before = dotenv_values(stream=io.StringIO(text), interpolate=False)
    after = dotenv_values(stream=io.StringIO(blanked(text.encode()).decode()), interpolate=False)
    for key, value in after.items():
        if key.upper().endswith(tuple(PUBLISHED)):
            assert not value, f"{text!r}: {before} became {after}"


@given(st.binary(max_size=200))
def test_fuzzed_bytes_never_crash_or_grow(content: bytes) -> None:
    once = blanked(content)
    assert len(blanked(once)) <= len(once)


def test_only_an_organism_carries_it(nest: Nest) -> None:
    nest.put(".env", "TOKEN=hunter2\nPORT=1\n")
    nest.put("agents/.env", "TOKEN=hunter2\n")
    for form in EggFormat:
        packed = nest.pack(form)
        found = {
            name: content for name, content in contents(packed.path).items() if name.lower().endswith(".env")
        }
        assert found == ({".env": b"TOKEN=\nPORT=1\n"} if form is EggFormat.ORGANISM else {})
    assert (".env", ExclusionReason.SECRET) in nest.pack(EggFormat.TWIN).left_out
