"""Secrets that do not lie open in one line: packed, encoded, in pieces, or alone in a file named after them."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import random
import tarfile
import time
import zipfile
import zlib

import pytest

from tests.twins.eggs.writers.nest import Nest
from twins.eggs.writers import exclusions
from twins.eggs.writers.archive_scan import MOST_UNPACKED, Allowance, unpacked
from twins.eggs.writers.secret_scan import SecretScan, SecretsFoundError

_DRAW = random.Random(33)
ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def drawn(count: int, alphabet: str = ALNUM) -> str:
    return "".join(_DRAW.choice(alphabet) for _ in range(count))


HEX = "0123456789abcdef"
AWS = drawn(39, ALNUM + "+/") + "7"
KEY = "ghp" + "_" + drawn(18) + "4x" + drawn(16)
TOKEN = "q7" + drawn(38)
P4SS = "Tr0ub" + "4dor&3"
LINE = f"# settings\nkey {KEY}\n".encode()


def zipped(content: bytes, name: str = "a/notes.txt") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def behind_encrypted(content: bytes) -> bytes:
    """A zip whose first member says that it is encrypted."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", b"nobody reads this")
        archive.writestr("b.txt", content)
        archive.filelist[0].flag_bits |= 1
    return file.getvalue()


def tarred(content: bytes, mode: str = "w:gz") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("notes.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def coded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def found(content: str | bytes, path: str = "notes.md") -> list[str]:
    scan = SecretScan()
    scan.look(path, content if isinstance(content, bytes) else content.encode())
    return [hit.what for hit in scan.findings]


PACKED = [
    gzip.compress(LINE), bz2.compress(LINE), lzma.compress(LINE), lzma.compress(LINE, format=lzma.FORMAT_ALONE),
    zlib.compress(LINE), zipped(LINE), tarred(LINE), tarred(LINE, "w:"), tarred(LINE, "w:bz2"), gzip.compress(gzip.compress(LINE)),
    zipped(gzip.compress(LINE), "x.gz"), zipped(zipped(LINE)), gzip.compress(b"prose\n") + gzip.compress(LINE),
    gzip.compress(b"a line of prose\n" * 100_000 + LINE), gzip.compress(LINE)[:-4], gzip.compress(f"db_password = {P4SS}\n".encode()),
    gzip.compress(f"aws_secret_access_key = {AWS}\n".encode()), behind_encrypted(LINE),
]  # fmt: skip


@pytest.mark.parametrize("content", PACKED, ids=range(len(PACKED)))
def test_secret_in_something_packed_is_found(content: bytes) -> None:
    assert any(what.endswith(" (packed)") for what in found(content, ".brainstem_data/old.bin"))


ENCODED = [
    coded(LINE), f'data = "{coded(f"api_key={TOKEN}".encode() * 2)}"', f'x = "{coded(gzip.compress(LINE))}"',
    f"data:text/plain;base64,{coded(LINE)}", LINE.hex(), LINE.hex().upper(), base64.encodebytes(LINE * 3).decode(),
    f'"{coded(LINE * 2).replace("+", "-").replace("/", "_")}"', '"' + base64.encodebytes(LINE * 3).decode().replace("\n", "\\n") + '"',
]  # fmt: skip


@pytest.mark.parametrize("text", ENCODED, ids=range(len(ENCODED)))
@pytest.mark.parametrize("path", ["notes.md", "x_agent.py"])
def test_secret_in_encoded_text_is_found(text: str, path: str) -> None:
    assert found(text, path)


A, B = KEY[:20], KEY[20:]
C, D = TOKEN[:20], TOKEN[20:]
IN_PIECES = [
    (f'KEY = (\n    "{A}"\n    "{B}"\n)\n', "a.py"), (f'k = "{A}" + "{B}"', "a.py"), (f"k = '{A}' + \\\n   '{B}'", "a.py"),
    (f'k = "{A}"\n  + "{B}"', "a.js"), (f"{A}\\\n{B}\n", "x.sh"), (f"{A}\n{B}\n", "notes.md"), (f"{A}\r\n  {B}\r\n", "notes.md"),
    (f'api_key = "{C}" "{D}"', "a.py"), (f'api_key = ("{C}"\n   "{D}")', "a.py"), (f"const apiKey = '{C}' +\n '{D}';", "a.js"),
    (f'password = "{P4SS[:5]}" + "{P4SS[5:]}"', "a.py"), (f"export API_KEY={C}\\\n{D}\n", "x.sh"),
    (f"api_key: >-\n  {TOKEN}\n", "x.yaml"), (f"api_key: |\n  {TOKEN}\n", "x.yml"), (f"api_key =\n  {TOKEN}\n", "x.ini"),
    (f'"token":\n   "{TOKEN}"', "x.json"), (f'api_key = (\n    "{TOKEN}"\n)', "a.py"), (f"aws_secret_access_key =\n  {AWS}\n", "x"),
    (f'k = f"{A}" f"{B}"', "a.py"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "path"), IN_PIECES, ids=range(len(IN_PIECES)))
def test_secret_over_several_pieces_is_found_once(text: str, path: str) -> None:
    assert len(found(text, path)) == 1


SETTINGS = [
    f"aws_secret_access_key = {AWS}", f"AWS_SECRET_ACCESS_KEY={AWS}", f'{{"SecretAccessKey": "{AWS}"}}', f"aws_session_token = {drawn(200)}",
    f"[default]\naws_access_key_id = x\naws_secret_access_key={AWS}\n", f"AZURE_CLIENT_SECRET={drawn(8)}~{drawn(29)}7a",
    f"DO_API_TOKEN={drawn(62, HEX)}1a", f"CLOUDFLARE_API_KEY={drawn(35, HEX)}1a", f"HCLOUD_TOKEN={drawn(62)}1a",
    f"ALIBABA_CLOUD_ACCESS_KEY_SECRET={drawn(28)}1a", f"TENCENTCLOUD_SECRET_KEY={drawn(30)}1a", f"OVH_CONSUMER_KEY={drawn(30)}1a",
    f"machine x.org login me password {P4SS}", f"machine x.org\n  login me\n  password {P4SS}\n", f"//registry.npmjs.org/:_authToken={TOKEN}",
    f"_auth={coded(b'me:' + P4SS.encode())}", f"Server=db;User Id=sa;Password={P4SS};", f"jdbc:mysql://h/x?user=a&password={P4SS}",
    f"mongodb+srv://me:{P4SS.replace('&', '')}@c.x.net/", f"redis://:{P4SS}@h:6379/0", f"host=db user=me password={P4SS}",
]  # fmt: skip


@pytest.mark.parametrize("text", SETTINGS, ids=range(len(SETTINGS)))
def test_setting_of_a_cloud_or_a_server_is_found(text: str) -> None:
    assert found(text, "config/settings.txt")


@pytest.mark.parametrize(
    "path",
    [
        "config/token.txt",
        "token",
        "config/api_key",
        "secret.txt",
        "password.txt",
        "slack-token.txt",
        "keys/api-key.txt",
        ".api_token",
    ],
)
@pytest.mark.parametrize(
    "value", [TOKEN, f"{TOKEN}\n", drawn(31, HEX) + "a1", f"\n  {TOKEN}  \n{TOKEN[::-1]}\n"], ids=range(4)
)
def test_value_alone_in_a_file_named_after_it_is_found(path: str, value: str) -> None:
    assert found(value, path)


HARMLESS = [
    (gzip.compress(b"a line of prose about tokens and passwords\n" * 900), "old.gz"), (zipped(b"prose\n"), "x.zip"), (b"\x1f\x8b", "x.gz"),
    (zipped(LINE)[:40], "cut.zip"), (b"BZh9" + bytes(200), "x"), (b"x\x9c" + bytes(99), "x"), (b"]\0\0" + bytes(300), "x"),
    ("data:image/png;base64," + coded(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4), "a.html"), (coded(b"a line of prose. " * 40), "x.txt"),
    ("the token is explained in the documentation\n", "token.txt"), ("", "token.txt"), ("your-token-here\n", "token.txt"),
    ("/home/me/.config/token1234567890abcdef\n", "token.txt"), ("https://example.com/oauth2/v1/token\n", "tokens.txt"),
    ("one\ntwo\nthree\n", "passwords.txt"), (f"{TOKEN}\n", "readings.txt"), ("tokenizer\nembedding\n", "tokens.txt"),
    ('x = ("a line of words "\n     "and another line 12")', "a.py"), ('password_label = ("Type it "\n  "here")', "a.py"),
    ("if token:\n    return_value()\n", "a.py"), ("def check(password):\n    something_1234567890()\n", "a.py"),
    ("password:\n  file: /run/x\n", "x.yaml"), ("api_key:\n  description_of_the_key\n", "x.yaml"), ("token:\n- one\n- two\n", "x.yaml"),
    ("a heading about the risk-management2\nsomething-else-entirely-here-9\n", "notes.md"), ("sha256\n" + drawn(64, HEX) + "\n", "notes.md"),
    (f"commit {drawn(40, HEX)}\ntree {drawn(40, HEX)}\n", "notes.md"), ('names = ["first_name_1", "second_name_2"]', "a.py"),
    ("machine learning and login forms: the password is asked later", "notes.md"), ("login with your password at the door", "notes.md"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "path"), HARMLESS, ids=range(len(HARMLESS)))
def test_what_is_no_secret_passes(content: str | bytes, path: str) -> None:
    assert found(content, path) == []


def test_two_whole_keys_below_each_other_are_two() -> None:
    other = "ghp" + "_" + drawn(34) + "1a"
    assert found(f"{KEY}\n{other}\n") == ["GitHub key"] * 2


def test_bomb_is_unpacked_to_its_bound_and_ends() -> None:
    bomb = gzip.compress(bytes(1 << 28), 9)
    ten = io.BytesIO()
    with zipfile.ZipFile(ten, "w") as archive:
        for number in range(10):
            archive.writestr(f"{number}.gz", bomb)
    allowance = Allowance()
    assert len(b"".join(content for _, content in unpacked(bomb, allowance))) == MOST_UNPACKED
    assert allowance.left == 0
    nested = bytes(1000)
    for _ in range(200):
        nested = gzip.compress(nested)
    begin = time.process_time()
    for content in (bomb, ten.getvalue(), nested):
        assert found(content, "x.bin") == []
    assert time.process_time() - begin < 20


@pytest.mark.parametrize("text", ['"abcdefgh1234"' * 20_000, "abcdefgh1234\n" * 20_000, "token =\n" * 30_000, 'key: ("' * 30_000, "Ab1" * 80_000,
    "password = (" + '"a" ' * 60_000, "api_key = " + "a1\\\n" * 60_000, coded(b"x" * 200_000), '"a1b2c3d4e5"+\n' * 20_000])  # fmt: skip
@pytest.mark.parametrize("path", ["notes.md", "x_agent.py"])
def test_hostile_text_takes_linear_time(text: str, path: str) -> None:
    begin = time.process_time()
    found(text, path)
    assert time.process_time() - begin < 4, "a quarter of a megabyte"


@pytest.mark.parametrize(
    "name",
    ["id_rsa", "id_ed25519.bak", "credentials.json", "x.pem", "x.p12", "x.kdbx", ".pgpass", "service-account-prod.json", ".netrc", ".npmrc",
     "krb5.keytab", "rootkey.csv", "AccessKeys.csv", "gha-creds-12ab.json", ".vault_pass", "vault_pass.txt", ".authinfo"],
)  # fmt: skip
def test_file_of_such_a_name_stays_behind(name: str) -> None:
    assert exclusions.by_name(name) is exclusions.ExclusionReason.SECRET


def test_packing_stops_at_a_packed_secret_and_at_a_token_file(nest: Nest) -> None:
    nest.put(".brainstem_data/old.gz", gzip.compress(LINE))
    nest.put("agents/config/token.txt", f"{TOKEN}\n".encode())
    with pytest.raises(SecretsFoundError) as stopped:
        nest.pack()
    assert sorted((one.path, one.line, one.what) for one in stopped.value.findings) == [
        (".brainstem_data/old.gz", 0, "GitHub key (packed)"), ("config/token.txt", 1, "secret"),
    ]  # fmt: skip
    packed = nest.pack(allow=[one.id for one in stopped.value.findings])
    assert len(packed.allowed) == 2
