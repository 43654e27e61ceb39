"""Each shape of secret is found where people and programs write it, and its near misses are not."""

from __future__ import annotations

import base64
import hashlib
import random
import time

import pytest

from twins.eggs.writers.secret_scan import SecretScan
from twins.eggs.writers.vendor_key_shapes import MAKERS

CHANCE = random.Random(11)
ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
HEX = "0123456789abcdef"
MEMORY = ".brainstem_data/memory.json"


def drawn(count: int, alphabet: str = ALNUM) -> str:
    return "7" + "".join(CHANCE.choices(alphabet, k=count - 1))


def encoded(text: str, skipped: int = 0) -> str:
    return base64.b64encode(b"x" * skipped + text.encode()).decode()


def base58(octets: bytes) -> str:
    whole = octets + hashlib.sha256(hashlib.sha256(octets).digest()).digest()[:4]
    number, text = int.from_bytes(whole, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[digit] + text
    return text


def pem(label: str = "") -> str:
    return f"-----BEGIN {label}PRIVATE KEY-----\n{drawn(64)}\n{drawn(64)}\n-----END {label}PRIVATE KEY-----\n"


# Put together here, so that this file itself holds none. Name, secret, near miss.
SHAPES: list[tuple[str, str, str]] = [
    ("age key", "AGE-SECRET-" + "KEY-1" + drawn(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"), "AGE-SECRET-KEY-1"),
    ("OpenRouter key", "sk-or-" + "v1-" + drawn(64, HEX), "sk-or-v1-short"),
    ("Docker key", "dckr_" + "pat_" + drawn(27), "dckr_pat_short"),
    ("Groq key", "gs" + "k_" + drawn(52), "gsk_" + "a" * 8),
    ("xAI key", "xa" + "i-" + drawn(80), "xai-grok-code-fast-and-long-name-of-a-model"),
    ("Perplexity key", "pp" + "lx-" + drawn(48), "pplx-7b-online-and-a-long-name-of-a-model"),
    ("Replicate key", "r8" + "_" + drawn(37), "r8_short"),
    ("NVIDIA key", "nv" + "api-" + drawn(64), "nvapi-short"),
    ("Cerebras key", "cs" + "k-" + drawn(48, HEX), "csk-short"),
    ("Together key", "tgp" + "_v1_" + drawn(43), "tgp_v1_short"),
    ("Fireworks key", "fw" + "_" + drawn(24), "fw_update_firmware_image_of_a_device"),
    ("Tavily key", "tv" + "ly-" + drawn(32), "tvly-some-long-name-without-any-number"),
    ("Pinecone key", "pc" + "sk_" + drawn(70), "pcsk_short"),
    ("LangSmith key", "ls" + f"v2_pt_{drawn(32, HEX)}_{drawn(10, HEX)}", "lsv2_pt_" + "abc"),
    ("ElevenLabs key", "sk" + "_" + drawn(48, HEX), "sk_" + "f" * 10),
    ("Jina key", "ji" + "na_" + drawn(60), "jina_embeddings_v_and_a_very_long_name_that_goes_on_and_on_ok"),
    ("Firecrawl key", "f" + "c-" + drawn(32, HEX), "fc-list"),
    ("Mailgun key", "ke" + "y-" + drawn(32, HEX), "key-" + "abc" * 3),
    ("Twilio key", "S" + "K" + drawn(32, HEX), "SK" + drawn(12, HEX)),
    ("Mailchimp key", drawn(32, HEX) + "-us" + "12", "region-us12"),
    ("Brevo key", "xkey" + f"sib-{drawn(64, HEX)}-{drawn(16)}", "xkeysib-short"),
    ("Discord key", "M" + drawn(25) + "." + drawn(6) + "." + drawn(38), "M" + drawn(25) + "." + drawn(6)),
    ("Discord address", "https://discord" + f".com/api/webhooks/{drawn(18, '123456789')}/{drawn(68)}", "https://discord.com/api/webhooks/123/short"),
    ("Teams address", "https://x.webhook.office" + f".com/webhookb2/{drawn(36, HEX)}@{drawn(36, HEX)}/IncomingWebhook/{drawn(32, HEX)}/{drawn(20)}", "https://x.webhook.office.com/webhookb2/"),
    ("Tailscale key", "ts" + f"key-auth-{drawn(12)}-{drawn(32)}", "tskey-auth"),
    ("Cloudflare key", "v1" + f".0-{drawn(24, HEX)}-{drawn(146, HEX)}", "v1.0-beta"),
    ("Vercel key", "vercel_" + f"blob_rw_{drawn(40)}", "vercel_blob_rw_x"),
    ("Netlify key", "nf" + "p_" + drawn(40), "nfp_short"),
    ("Supabase key", "sb" + "p_" + drawn(40, HEX), "sbp_short"),
    ("Supabase key", "sb_" + "secret_" + drawn(31), "sb_secret_x"),
    ("Notion key", "nt" + "n_" + drawn(46), "ntn_short"),
    ("Notion key", "sec" + "ret_" + drawn(43), "secret_santa"),
    ("Linear key", "lin_" + "api_" + drawn(40), "lin_api_x"),
    ("Databricks key", "da" + "pi" + drawn(32, HEX), "dapi" + "abc"),
    ("Grafana key", "gl" + f"sa_{drawn(32)}_{drawn(8, HEX)}", "glsa_short"),
    ("Vault key", "hv" + "s." + drawn(90), "hvs.token"),
    ("1Password key", "ops" + "_ey" + "J" + drawn(200), "ops_eyJ"),
    ("1Password key", "A3" + f"-{'ABC123'}-{'D' * 6}-7{'E' * 4}-{'F' * 5}-{'G' * 5}-{'H' * 5}", "A3-paper-size-of-a-sheet"),
    ("Shopify key", "shp" + "at_" + drawn(32, HEX), "shpat_short"),
    ("Square key", "sq0" + "csp-" + drawn(43), "sq0csp-x"),
    ("Doppler key", "dp" + ".pt." + drawn(43), "dp.pt.x"),
    ("Pulumi key", "pu" + "l-" + drawn(40, HEX), "pul-short"),
    ("Postman key", "PM" + f"AK-{drawn(24, HEX)}-{drawn(34, HEX)}", "PMAK-x"),
    ("Atlassian key", "ATA" + "TT3" + drawn(180), "ATATT3x"),
    ("Figma key", "fi" + "gd_" + drawn(44), "figd_x"),
    ("Airtable key", "pa" + f"t{drawn(14)}.{drawn(64, HEX)}", "pattern12345678.py"),
    ("Sentry key", "sn" + "tryu_" + drawn(64, HEX), "sntryu_x"),
    ("New Relic key", "NR" + "AK-" + drawn(27, ALNUM[:26]), "NRAK-X"),
    ("Dropbox key", "sl" + "." + drawn(130), "sl.short"),
    ("Terraform key", drawn(14) + ".atlas" + "v1." + drawn(67), "x.atlasv1.y"),
    ("Fly key", "fo" + "1_" + drawn(43), "fo1_x"),
    ("Heroku key", "HR" + "KU-" + drawn(36, HEX + "-"), "HRKU-x"),
    ("PlanetScale key", "ps" + "cale_tkn_" + drawn(43), "pscale_tkn_x"),
    ("RubyGems key", "ruby" + "gems_" + drawn(48, HEX), "rubygems_org"),
    ("Alibaba key", "LT" + "AI" + drawn(20), "LTAIR"),
    ("Nostr key", "ns" + "ec1" + drawn(58, "023456789acdefghjklmnpqrstuvwxyz"), "nsec1x"),
    ("Bitcoin key", base58(b"\x80" + bytes(range(32)) + b"\1"), base58(b"\x80" + bytes(range(32)) + b"\1")[:-1] + "z"),
    ("GitLab key", "gl" + "dt-" + drawn(20), "gldt-x"),
    ("DigitalOcean key", "do" + "o_v1_" + drawn(64, HEX), "doo_v1_x"),
    ("AWS key", "AS" + "IA" + drawn(16, ALNUM[:26] + "234567"), "ASIA" + "x" * 16),
    ("Google key", "1/" + "/0" + drawn(50), "1//0"),
    ("Slack address", "https://hooks.slack" + f".com/triggers/T0{drawn(8)}/{drawn(13, '0123456789')}/{drawn(32)}", "https://hooks.slack.com/"),
    ("PyPI key", "py" + "pi-AgE" + drawn(100), "pypi-AgE"),
    ("Stripe key", "rk_" + "live_" + drawn(24), "rk_live_x"),
    ("Stripe key", "wh" + "sec_" + drawn(32), "whsec_x"),
    ("private key (base64)", encoded(pem("RSA ")), encoded(pem("RSA ").replace("PRIVATE", "PUBLIC"))),
    ("private key (base64)", encoded(pem(), 1)[2:], encoded("-----BEGIN CERTIFICATE-----\n" + drawn(90), 1)[2:]),
    ("private key (base64)", encoded(pem(), 2)[3:], encoded("-----BEGIN CERTIFICATE-----\n" + drawn(90), 2)[3:]),
    ("private key (OpenSSH)", encoded("openssh-key-" + "v1\0\0\0\0\4none" + drawn(90)), encoded("openssh-key-")),
    ("private key (JWK)", '{"kty":"EC","x":"' + drawn(43) + '","d":"' + drawn(43) + '"}', '{"kty":"EC","x":"' + drawn(43) + '"}'),
    ("private key (JWK)", '{"kty":"oct","k":"' + drawn(43) + '"}', '{"kty":"RSA","k":"' + drawn(43) + '"}'),
    (
        "private key (PuTTY)",
        "PuTTY-User-" + f"Key-File-3: ssh-ed25519\nEncryption: none\nPublic-Lines: 2\n{drawn(64)}\nPrivate-Lines: 1\n{drawn(48)}\n",
        "PuTTY-User-Key-File-3: ssh-ed25519",
    ),
    *(("private key", pem(label), pem(label)[:38]) for label in ("", "RSA ", "DSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "ANY ")),
    ("private key", "-----BEGIN PGP PRIVATE " + f"KEY BLOCK-----\n\n{drawn(64)}\n", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n" + drawn(64)),
    ("private key", "---- BEGIN SSH2 ENCRYPTED PRIVATE " + f'KEY ----\nComment: "x"\n{drawn(64)}\n', "---- BEGIN SSH2 PUBLIC KEY ----\n" + drawn(64)),
    ("Azure signature", "https://x.blob/c?sv=2024-01-01&sig=" + drawn(20) + "%2F" + drawn(22) + "%3D&se=2027", "sig=inspect.signature"),
]  # fmt: skip

TEXTS: list[tuple[str, str, str]] = [
    ("secret", f"[Interface]\nPrivateKey = {encoded(drawn(32))}\n", f"[Peer]\nPublicKey = {encoded(drawn(32))}\n"),
    ("secret", f"PresharedKey={encoded(drawn(32))}\n", "PresharedKey = <the key>\n"),
    ("sign-in header", f"Authorization: Bearer {drawn(40)}\n", "Authorization: Bearer YOUR_TOKEN\n"),
    ("sign-in header", f"curl -H 'Authorization: Basic {encoded('me:hunter2-x')}' x\n", "Authorization: Basic dXNlcg==\n"),
    ("sign-in header", f'{{"authorization": "token {drawn(30)}"}}\n', '{"authorization": "required for each request"}\n'),
    ("sign-in header", f"authorization = Bot {drawn(60)}\n", "authorization = granted by the operator of it\n"),
    ("secret", f'{{"auths": {{"x.io": {{"auth": "{encoded("me:hunter2-x")}"}}}}}}\n', '{"auth": "oauth2-with-a-browser-window"}\n'),
    ("cookie", f"Cookie: theme=dark; session={drawn(40)}; x=1\n", "Cookie: theme=dark; lang=en\n"),
    ("cookie", f"set-cookie: sid={drawn(32)}; Path=/; HttpOnly\n", "Set-Cookie: consent=accepted-everything; Path=/\n"),
    ("cookie file", f"# Netscape HTTP Cookie File\n.x.io\tTRUE\t/\tTRUE\t1799999999\tsid\t{drawn(32)}\n", "# Netscape HTTP Cookie File\n"),
    ("secret", f"MISTRAL_API_KEY={drawn(32)}\n", "MISTRAL_API_KEY=\n"),
    ("secret", f"cohere_api_key: {drawn(40)}\n", "cohere_api_key: ${COHERE_API_KEY}\n"),
    ("secret", f"CLOUDFLARE_API_TOKEN={drawn(40)}\n", "CLOUDFLARE_API_TOKEN=$TOKEN\n"),
    ("secret", f"TWILIO_AUTH_TOKEN={drawn(32, HEX)}\n", "TWILIO_AUTH_TOKEN=from-the-console\n"),
    ("secret", f"aws_secret_access_key = {drawn(40)}\n", "aws_secret_access_key = ...\n"),
    ("secret", f"PRIVATE_KEY=0x{drawn(64, HEX)}\n", f"rappid = {drawn(64, HEX)}\n"),
    ("secret", f'[auth]\nsigning_key = "{drawn(44)}"\n', f'public_key = "{drawn(44)}"\n'),
    ("secret", f"credentials: {drawn(24)}\n", "credentials: see the safe\n"),
    ("password", "password = hunter2 ; of the router\n", "password = required ; of the router\n"),
    ("password", "DB_PASS=hunter2\n", "BYPASS=hunter2\n"),
    ("password", "smtppass: hunter2\n", "compass: north7b\n"),
    ("password", "DATABASE_URL=postgres://me:hunter2@db/x\n", "DATABASE_URL=postgres://me@db/x\n"),
    ("password", 'note: "wifi pwd: Sunny7day"\n', 'note: "the pwd command"\n'),
    ("password", 'passphrase = "four quiet brown owls"\n', 'passphrase = "to be chosen"\n'),
    ("words of a wallet", "seed phrase: " + "abandon ability able about " * 3 + "\n", "seed phrase: twelve words you wrote down\n"),
    ("words of a wallet", 'mnemonic = "' + " ".join(["legal", "winner", "thank", "year"] * 6) + '"\n', 'mnemonic = "twelve words"\n'),
]  # fmt: skip

SAID = [
    "The wifi password is Sunflower77.", "My password is hunter2", "the password for the door is blue!fish", "password: hunter2",
    "His password was 'swordfish'", "Password is swordfish.", "The password is 482913.", "the passcode is now 77aab",
    "Das Passwort ist Sonne42.", "mein Passwort lautet blaues#Haus", "Kennwort: Regen2000", "Das Kennwort für den Router ist Regenbogen.",
    "My PIN is 1234", "the pin for the card is 4711.", "Meine PIN ist 9876", "Geheimzahl: 4321", "PIN-Code: 0815",
    "The alarm code is 5529", "door code: 4711", "Der Tür-Code ist 2580.", "the garage code is 1357",
]  # fmt: skip
NOT_SAID = [
    "The password is wrong.", "The password is on the note.", "the password is required", "a password is 8 characters long",
    "My pin is in the drawer", "PIN is 3 of the header", "the code is 200", "exit code: 1234", "error code is 4040", "status code: 4711",
    "Das Passwort ist falsch.", "Das Passwort ist gesetzt.", "spin: 1234", "pin 4711 of the connector", "The door is 1234 mm wide",
    "He forgot his password.", "password: ", "passwords are hashed", "the opinion is 1000 words", "Kennwort vergessen?",
]  # fmt: skip


def found(text: str | bytes, path: str = "notes.md") -> list[str]:
    scan = SecretScan()
    scan.look(path, text if isinstance(text, bytes) else text.encode())
    return [hit.what for hit in scan.findings]


@pytest.mark.parametrize(
    ("what", "secret", "near"), SHAPES, ids=[f"{n} {one[0]}" for n, one in enumerate(SHAPES)]
)
def test_shape_is_found_and_near_miss_is_not(what: str, secret: str, near: str) -> None:
    for around in ("{}", "first\n{}\nlast", 'x = "{}"', "(key: {})", r"said\n{}"):
        for path in ("notes.md", MEMORY, "x_agent.py"):
            assert found(around.replace("{}", secret), path) == [what], (around, path)
    assert found(f"first {near} \nlast") == []


def test_every_maker_has_a_shape_tested() -> None:
    from tests.twins.eggs.writers.test_secret_scan import KEYS

    tested = {what for what, _, _ in SHAPES} | {what for _, what in KEYS}
    assert {maker.what for maker in MAKERS} - tested == {"sign-in key (JWE)"}


@pytest.mark.parametrize(
    ("what", "text", "near"), TEXTS, ids=[f"{n} {one[0]}" for n, one in enumerate(TEXTS)]
)
def test_named_secret_is_found_and_near_miss_is_not(what: str, text: str, near: str) -> None:
    for path in ("notes.md", "conf.ini", MEMORY):
        assert found("first\n" + text + "last\n", path) == [what], path
        assert found("first\n" + near + "last\n", path) == [], path


@pytest.mark.parametrize("sentence", SAID)
def test_secret_told_in_a_memory_is_found(sentence: str) -> None:
    import json

    for text in (sentence, json.dumps({"said": sentence}, ensure_ascii=False), f"Hello.\n{sentence}\nBye."):
        assert len(found(text, MEMORY)) == 1, text


@pytest.mark.parametrize("sentence", NOT_SAID)
def test_sentence_that_tells_no_secret_is_left_alone(sentence: str) -> None:
    for path in (MEMORY, "notes.md", "x_agent.py"):
        assert found(sentence, path) == []
        assert found(f'{{"said": "{sentence}"}}', path) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_text(encoding: str) -> None:
    secret = SHAPES[3][1]
    text = ("a line of prose\n" * 3000 + f"key {secret}\npassword = hunter2\n").encode(encoding)
    scan = SecretScan()
    pieces = [text[at : at + 4097] for at in range(0, len(text), 4097)]
    assert b"".join(scan.watch("notes.txt", iter(pieces))) == text
    assert [(hit.line, hit.what) for hit in scan.findings] == [(3001, "Groq key"), (3002, "password")]


def test_text_in_a_database_is_looked_at() -> None:
    import sqlite3
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE said (password TEXT, token TEXT)")
            database.execute("INSERT INTO said VALUES ('The password is Sunflower77.', 'x')")
        database.close()
        assert found(path.read_bytes(), ".brainstem_data/memory.db") == ["password"]


@pytest.mark.parametrize(
    "text",
    [
        "password is " * 20_000, "pin " * 60_000, "authorization: " * 15_000, "cookie: a=" * 20_000, "key" * 80_000,
        "eyJ" + "a" * 200_000, "://" * 80_000 + "@" * 2000, "-----BEGIN PRIVATE KEY-----" * 8000, '"kty":"d":' * 20_000,
        "seed phrase " + "abandon " * 30_000, "PuTTY-User-Key-File-2: " + "x " * 100_000,
        "password" + " a" * 120_000, "sig=" + "%2B" * 80_000, "auth=" * 40_000, "\\" * 240_000, '"d":"' * 40_000, "1" * 240_000, "M1" * 120_000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["notes.md", "x_agent.py"])
def test_hostile_text_takes_linear_time(text: str, path: str) -> None:
    begin = time.process_time()
    found(text, path)
    assert time.process_time() - begin < 4, "a quarter of a megabyte"


def test_kinds_that_nobody_looks_into_are_counted() -> None:
    from twins.eggs.writers.unread_kinds import in_words, unread_kinds

    kinds = unread_kinds(
        ["a.png", "b.JPG", "data/x.zip", "y.pdf", "soul.md", "z.enc", "memory.db", "agents/x.py"]
    )
    assert kinds == {"picture": 2, "archive": 1, "document": 1, "encrypted file": 1}
    assert in_words(kinds) == "2 pictures, 1 archive, 1 document, 1 encrypted file"
    assert in_words({}) == ""
