"""The secret scan: likely secrets stop the packing and are named by file and line; prose and code do not."""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins.eggs.writers.nest import WHOLE, Nest, Told, contents
from twins.eggs import frames
from twins.eggs.writers.formats import EggFormat
from twins.eggs.writers.secret_scan import MOST, Finding, SecretScan, SecretsFoundError
from twins.errors import SecretFoundError

CHANCE = random.Random(7)
ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def drawn(count: int, alphabet: str = ALNUM) -> str:
    return "".join(CHANCE.choices(alphabet, k=count))


# Put together here, so that this file itself holds none.
KEYS = [
    *((f"{head}_" + drawn(36), "GitHub key") for head in ("ghp", "gho", "ghu", "ghs", "ghr")),
    ("github_pat" + f"_{drawn(22)}_{drawn(59)}", "GitHub key"),
    ("sk-" + drawn(48), "OpenAI key"),
    ("sk-" + "proj-" + drawn(60, ALNUM + "-_"), "OpenAI key"),
    ("sk-" + "ant-api03-" + drawn(93, ALNUM + "-_") + "AA", "Anthropic key"),
    *((head + drawn(16, ALNUM[:26] + "234567"), "AWS key") for head in ("AKIA", "ASIA")),
    *(
        (f"{head}-{drawn(12, '0123456789')}-{drawn(12, '0123456789')}-{drawn(24)}", "Slack key")
        for head in ("xoxb", "xoxp", "xoxa")
    ),
    ("https://hooks.slack." + f"com/services/T{drawn(8, ALNUM[:26])}/B{drawn(8, ALNUM[:26])}/1{drawn(23)}", "Slack address"),
    ("AIza" + drawn(35, ALNUM + "-_"), "Google key"),
    ("GOCSPX" + "-" + drawn(28), "Google key"),
    ("ey" + f"J{drawn(33)}.ey" + f"J{drawn(40)}.{drawn(43, ALNUM + '-_')}", "sign-in key (JWT)"),
    (
        "DefaultEndpointsProtocol=https;AccountName=me;Account" + f"Key={drawn(86, ALNUM + '+/')}==;EndpointSuffix=x",
        "Azure connection string",
    ),
    ("Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccess" + f"Key={drawn(43, ALNUM + '+/')}=", "Azure connection string"),
    ("sk_" + "live_" + drawn(24), "Stripe key"),
    ("glpat" + "-" + drawn(20), "GitLab key"),
    ("npm" + "_" + drawn(36), "npm key"),
    ("hf" + "_" + drawn(34), "Hugging Face key"),
    ("SG." + f"{drawn(22)}.{drawn(43)}", "SendGrid key"),
    (drawn(10, "123456789") + ":AA" + drawn(33), "Telegram key"),
    *(
        (f"-----BEGIN {kind}PRIVATE KEY-----\n{drawn(64)}\n{drawn(64)}\n-----END {kind}PRIVATE KEY-----", "private key")
        for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ")
    ),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n" + drawn(64), "private key"),
    (r"-----BEGIN PRIVATE KEY-----\n" + drawn(64) + r"\n-----END PRIVATE KEY-----\n", "private key"),
]  # fmt: skip
AROUND = [
    "{}", "KEY = '{}'", 'key: "{}"', "curl -H 'X: {}' x", '{{"a": "{}"}}', "({})", "x={},", "<b>{}</b>", "`{}`", "…{}…",
    r'"said\n{}"', "a%3D{}", "--key={}", "\t{}\r",
]  # fmt: skip

P4SS = "hun" + "ter2"
LITERALS = [
    *(f"{name} = {quote}{P4SS}{quote}" for name in ("password", "PASSWORD", "db_password", "self.password", "passwd", "PWD") for quote in "'\""),
    f'password: str = "{P4SS}"', f'connect(user, password="{P4SS}")', f'"password": "{P4SS}"', f"'db-password': '{P4SS}',",
    f'const dbPassword = "{P4SS}";', f"passphrase = b'{P4SS}'", f'if password == "{P4SS}":', f'os.environ["PASSWORD"] = "{P4SS}"',
    f'os.getenv("DB_PASSWORD", "{P4SS}")', f'config.get("password", "{P4SS}")', f'"text": "password = \\"{P4SS}\\""',
    f'url = "postgres://me:{P4SS}@db.local/x"', "password = 'swordfish'", "PASSWORD='correct-horse-battery'", 'password="S3cr3t!pa55"',
    f"api_key = '{drawn(15)}9'", f'API_KEY="{drawn(31)}1"', f"apiKey: '{drawn(20)}7x'", f'headers = {{"x-api-key": "{drawn(31)}1"}}',
    f'token = "{drawn(20)}3"', f'ACCESS_TOKEN = "{drawn(24)}8"', f"client_secret = '{drawn(12)}5z'", f'SECRET_KEY = "{drawn(30)}2"',
]  # fmt: skip

HARMLESS = [
    'password = os.environ["DB_PASSWORD"]', 'password = input("Password: ")', "password = getpass()", 'password = ""', "password = None",
    'password = "<your password>"', 'password = "changeme"', 'PASSWORD = "${DB_PASSWORD}"', 'password = f"{prefix}-{n}"', "def login(password):",
    'PASSWORD_FIELD = "user_password_1"', 'token_url = "https://example.com/oauth2/v1/token"', 'token = "refresh_token"', "tokens = text.split()",
    'api_version = "2024-02-15-preview"', 'secret = "your-secret-here"', 'api_key = "YOUR_API_KEY_12345678901234"', "max_tokens = 4096",
    'x = "AKIA' + 'IOSFODNN7EXAMPLE"', "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-...", "task-list-item-with-a-very-long-class-name-12345",
    '"-----BEGIN PRIVATE KEY-----"', 'if line.startswith("-----BEGIN RSA PRIVATE KEY-----"):', "-----BEGIN CERTIFICATE-----\n" + drawn(64),
    "http://user:password@example.com/", "https://host:8080/path@v1.2.3", "mail me@example.com: 5 times", "the password is on the note",
    "Password:", "password=", "sha256 = '" + drawn(64, "0123456789abcdef") + "'", "id = '550e8400-e29b-41d4-a716-446655440000'",
    "rappid:@kody/gaertner:" + drawn(64, "0123456789abcdef"), "data:image/png;base64," + drawn(400, ALNUM + "+/"), "eyJust a word",
    "token_1 = token_2", "pass", "passed = 'test_1234567'", "compass = 'north-by-northwest-1'", "http://[::1]:8080/@x", "pwd = '/home/me/work1'",
]  # fmt: skip


def found(text: str | bytes, path: str = "x_agent.py") -> list[Finding]:
    scan = SecretScan()
    scan.look(path, text if isinstance(text, bytes) else text.encode())
    return scan.findings


@pytest.mark.parametrize(("secret", "what"), KEYS, ids=[f"{n} {what}" for n, (_, what) in enumerate(KEYS)])
def test_every_makers_key_is_found_wherever_it_stands(secret: str, what: str) -> None:
    for around in AROUND:
        text = "first line\n" + around.format(secret) + "\nlast line\n"
        for path in ("x_agent.py", "notes.md", "frames.json", "x"):
            hits = found(text, path)
            assert [(hit.line, hit.what) for hit in hits] == [(2, what)], (around, hits)


def test_the_end_of_a_longer_word_is_no_key() -> None:
    for secret, _ in KEYS[:12]:
        assert found(f"before\nabc{secret}\n") == [], "it is the end of something longer"


@pytest.mark.parametrize("line", LITERALS)
def test_a_literal_given_to_a_telling_name_is_found(line: str) -> None:
    hits = found(f"import os\n\n{line}\n")
    assert [hit.line for hit in hits] == [3], hits
    assert hits[0].what in ("password", "secret")


@pytest.mark.parametrize(
    "line", [f"password={P4SS}", f"password: {P4SS}", f"  db_password = {P4SS}  ", f"- secret: {drawn(12)}4"]
)
def test_unquoted_settings_line_is_found(line: str) -> None:
    for path in ("settings.ini", "notes.md", "conf.yaml", "x"):
        assert [hit.line for hit in found(f"a: 1\n{line}\nb: 2", path)] == [2]
    assert found(f"{line}\n", "x_agent.py") == [], "in code that is a variable"


@pytest.mark.parametrize("line", HARMLESS)
def test_what_is_no_secret_stops_nobody(line: str) -> None:
    for path in ("x_agent.py", "notes.md"):
        assert found(f"before\n{line}\nafter\n", path) == []


def test_standard_library_holds_no_secrets() -> None:
    """678 files and 1,165 of tests; what is found in those are passwords of tests, spelled out."""
    root = Path(sysconfig.get_paths()["stdlib"])
    scan = SecretScan()
    for path in sorted(root.rglob("*.py")):
        parts = set(path.relative_to(root).parts)
        if (
            "site-packages" not in parts
            and path.stat().st_size < 300_000
            and not parts & {"lib2to3", "encodings"}
        ):
            scan.look(str(path.relative_to(root)), path.read_bytes())
    assert [hit for hit in scan.findings if "test" not in hit.path] == []
    assert len(scan.findings) < 10


def test_binary_file_is_searched_for_makers_keys() -> None:
    key, what = KEYS[0]
    hits = found(b"\0\1\2 SQLite \0" + key.encode() + b"\0 password = 'hunter2'\n", "memory.db")
    assert [(hit.line, hit.what) for hit in hits] == [(0, what)]
    assert str(hits[0]) == f"memory.db holds a likely {what}"
    assert found(random.Random(3).randbytes(1 << 20), "picture.jpg") == []


def test_text_in_utf16_is_text() -> None:
    hits = found(f"one\npassword = '{P4SS}'\n".encode("utf-16"), "notes.txt")
    assert [(hit.line, hit.what) for hit in hits] == [(2, "password")]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 12_000),
    st.integers(1, 30_000),
    st.sampled_from(KEYS + [(line, "") for line in LITERALS]),
    st.booleans(),
)
def test_where_a_file_is_cut_into_pieces_makes_no_difference(
    at: int, cut: int, secret: tuple[str, str], late: bool
) -> None:
    before = ("a line of prose, no more\n" * 500)[:at] + "\n"
    text = (before + secret[0] + "\n" + "after all of it\n" * (900 if late else 1)).encode()
    whole, pieces = SecretScan(), SecretScan()
    whole.look("x.py", text)
    cuts = [text[start : start + cut] for start in range(0, len(text), cut)]
    if len(cuts) > 60:
        return
    assert b"".join(pieces.watch("x.py", iter(cuts))) == text
    assert pieces.findings == whole.findings and len(whole.findings) == 1
    assert whole.findings[0].line == before.count("\n") + 1


@given(
    st.binary(max_size=400),
    st.sampled_from([b"", b"password = '", b"-----BEGIN ", b"sk-", b"://a:", b"token: "]),
)
def test_bytes_of_any_kind_never_crash(content: bytes, start: bytes) -> None:
    found(start + content, "x_agent.py")
    found(start + content, "x")


def test_finding_id_survives_moved_lines() -> None:
    line = f"password = '{P4SS}'\n"
    first, moved = found(line)[0], found("\n\n" + line)[0]
    assert first.id == moved.id and moved.line == 3
    assert found(line, "other.py")[0].id != first.id
    assert found(line.replace("2", "3"))[0].id != first.id
    assert P4SS not in first.id + str(first)


def test_the_packing_stops_in_the_words_agreed_on(nest: Nest) -> None:
    nest.put("agents/mail_agent.py", "\n" * 8 + f'PASSWORD = "{P4SS}"\n')
    with pytest.raises(SecretFoundError) as caught:
        nest.pack()
    assert str(caught.value) == "mail_agent.py line 9 holds a likely password; not packed."
    assert caught.value.do == "Move it to .env."
    assert caught.value.code == "secret_found" and caught.value.exit_code == 5
    assert not list(nest.folder.glob("*.egg")) and not list(nest.folder.glob(".*"))


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize(
    "place",
    ["agents/a_agent.py", "services/a_service.py", ".brainstem_data/m.json", "soul.md", "senses/x.md"],
)
def test_a_secret_stops_it_wherever_it_lies(nest: Nest, form: EggFormat, place: str) -> None:
    nest.put(place, f"\nkey {KEYS[0][0]} \n")
    with pytest.raises(SecretsFoundError) as caught:
        nest.pack(form)
    assert [(hit.path, hit.line) for hit in caught.value.findings] == [(place.removeprefix("agents/"), 2)]


@pytest.mark.parametrize("form", [EggFormat.AGENT, EggFormat.RAPPLICATION, EggFormat.RAPP1_RAPPLICATION])
def test_a_secret_in_a_part_stops_it_too(nest: Nest, form: EggFormat) -> None:
    for place in ("agents/mail_agent.py", "agents/kanban_agent.py"):
        nest.put(place, KEYS[0][0])
    with pytest.raises(SecretsFoundError):
        nest.pack(form)


def test_all_secrets_are_named_at_once_and_each_can_be_let_pass(nest: Nest) -> None:
    nest.put("agents/mail_agent.py", f"password = '{P4SS}'\n{KEYS[0][0]}\n")
    nest.put("soul.md", KEYS[5][0])
    nest.put(".brainstem_data/large.txt", "prose " * 400_000 + KEYS[6][0])
    with pytest.raises(SecretsFoundError) as caught:
        nest.pack()
    hits = caught.value.findings
    assert {hit.path for hit in hits} == {"mail_agent.py", "soul.md", ".brainstem_data/large.txt"} and len(
        hits
    ) == 4
    assert "(3 more like it)" in str(caught.value)
    for form in (EggFormat.TWIN, EggFormat.RAPP1_ORGANISM):
        with pytest.raises(SecretsFoundError) as fewer:
            nest.pack(form, allow=[hit.id for hit in hits[1:]])
        assert fewer.value.findings == hits[:1]
        packed = nest.pack(form, allow={hit.id for hit in hits})
        assert set(packed.allowed) == set(hits) and contents(packed.path)


def test_a_secret_said_in_a_conversation_is_named_by_its_line(nest: Nest) -> None:
    class Careless(Told):
        def frames(self, key: str) -> Iterator[frames.Frame]:
            said = ["Hello", f"My key is {KEYS[0][0]}", "Bye"]
            return frames.chained(
                "s", (("2026-11-22T04:34:00.000Z", "said", {"text": text}) for text in said)
            )

    with pytest.raises(SecretsFoundError) as caught:
        nest.pack(conversations=Careless())
    assert [(hit.path, hit.line) for hit in caught.value.findings] == [("data/frames.json", 3)]
    assert nest.pack(conversations=Careless(), exclude_memory=True)


def test_env_value_is_found_in_any_spelling(nest: Nest) -> None:
    nest.put(
        ".env",
        "HOUSE_PASSWORD=blue-elephant-garden\nPORT=7071\nSHORT_KEY=ab1\nexport GATE_KEY='open up 4 me'\n",
    )
    nest.put("agents/mail_agent.py", "x = 1\nlogin('me', 'blue-elephant-garden')\nport = 7071\nab1\n")
    nest.put(".brainstem_data/memory.db", b"\0open up 4 me\0")
    with pytest.raises(SecretsFoundError) as caught:
        nest.pack()
    assert [str(hit) for hit in caught.value.findings] == [
        "mail_agent.py line 2 holds a likely copy of HOUSE_PASSWORD",
        ".brainstem_data/memory.db holds a likely copy of GATE_KEY",
    ]
    with pytest.raises(SecretsFoundError):
        nest.pack(EggFormat.ORGANISM)


def test_a_file_full_of_secrets_is_not_counted_without_end() -> None:
    line = f"password = '{P4SS}'\n"
    assert len(found(line * (MOST + 50))) == MOST
