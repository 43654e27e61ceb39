from __future__ import annotations

import hashlib
import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.errors import BadRappidError
from twins.workspace.rappid import MAX_SLUG, Rappid, label, same, widened

HEX32 = "0d51" * 8
HEX64 = "c0ffee00" * 8
UUID = "123e4567-e89b-42d3-a456-426614174000"

IN_CIRCULATION = [
    (UUID, "uuid", "", "", UUID),
    (UUID.upper(), "uuid", "", "", UUID),
    (UUID.replace("-", ""), "uuid", "", "", UUID.replace("-", "")),
    (f"rappid:v2:organism:@kody-w/RAPP:{HEX32}@github.com/kody-w/RAPP", "v2", "kody-w", "RAPP", HEX32),
    (f"rappid:v2:cart:@kody-w/RAPP#vbrainstem:{HEX32}@github.com/kody-w/RAPP", "v2", "kody-w", "RAPP", HEX32),
    (f"rappid:v2:cart:@kody-w/RAPP:{HEX32}@github.com/kody-w/RAPP#console", "v2", "kody-w", "RAPP", HEX32),
    (f"rappid:v2:rapplication:rapp/bookfactory_1.2:{HEX32}", "v2", "rapp", "bookfactory_1.2", HEX32),
    (f"rappid:v2:rapplication:@rapp/senses:{HEX32}", "v2", "rapp", "senses", HEX32),
    (f"rappid:@kody-w/one:{HEX64}", "rappid", "kody-w", "one", HEX64),
    (f"rappid:@kody-w/RAPP:{HEX32}", "rappid", "kody-w", "RAPP", HEX32),
    (f"rappid:@kody-w/one:{HEX64.upper()}", "rappid", "kody-w", "one", HEX64),
    (f"rappid:grandma-rose:{HEX32}", "legacy", "", "grandma-rose", HEX32),
    (f"rappid:{UUID}", "legacy", "", "", UUID),
    ("rappid:twin:@source/gardener:0123456789abcdef", "twin", "source", "gardener", "0123456789abcdef"),
]

HOSTILE = [
    "",
    " ",
    "gardener",
    "rappid:",
    "rappid:@o/s:",
    "rappid:@o/s:xyz",
    f"rappid:@o/s:{HEX64}0",
    f"rappid:@../s:{HEX64}",
    f"rappid:@o/..:{HEX64}",
    f"rappid:@./s:{HEX64}",
    f"rappid:@o/s/../../etc:{HEX64}",
    f"rappid:@o/s:../../../{HEX64}",
    f"rappid:..:{HEX64}",
    f"rappid:v2:rapplication:../x:{HEX32}",
    f"rappid:v2:rapplication:..:{HEX32}",
    f"rappid:v2:cart:@o/r:{HEX32}@github.com/../r",
    f"rappid:v2:cart:@o/r:{HEX32}@github.com/o/r/../../x",
    f"rappid:@o/s#..:{HEX64}",
    f"rappid:@o\\s/x:{HEX64}",
    f"rappid:@o/s:{HEX64}\0",
    f"rappid:@o\0/s:{HEX64}",
    f"rappid:@o/s:{HEX64}\n",
    f" rappid:@o/s:{HEX64}",
    f"rappid:@ö/s:{HEX64}",
    f"rappid:@o/s:{'１' * 64}",
    f"RAPPID:@o/s:{HEX64}",
    f"rappid:{'a' * 480}:{HEX64}",
    f"rappid:v2:cart:@{'o' * 100}/{'r' * 100}:{HEX32}@github.com/{'o' * 100}/{'r' * 100}/{'x' * 100}",
    UUID[:-1],
    f"{{{UUID}}}",
]


@pytest.mark.parametrize(("text", "form", "owner", "slug", "tail"), IN_CIRCULATION)
def test_every_circulating_form_is_read_unchanged(
    text: str, form: str, owner: str, slug: str, tail: str
) -> None:
    found = Rappid.parse(text)
    assert (found.text, str(found)) == (text, text)
    assert (found.form, found.owner, found.slug, found.tail) == (form, owner, slug, tail)
    assert found.key == tail
    assert same(found, Rappid.parse(text))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_refused_in_one_printable_line(text: str) -> None:
    with pytest.raises(BadRappidError) as refused:
        Rappid.parse(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 100
    assert refused.value.do


def test_what_is_no_text_is_refused() -> None:
    for value in (None, 7, b"rappid", ["rappid"]):
        with pytest.raises(BadRappidError):
            Rappid.parse(value)  # type: ignore[arg-type]


def test_minting_matches_the_published_vectors() -> None:
    from_uuid = Rappid.mint("kody-w", "core", uuid.UUID(UUID).bytes)
    assert from_uuid.tail == "5c7df8a50ffa8ff68ede5d4bd52f5f96033d5af63ea5320562eecba0b2c38109"
    public_key = bytes.fromhex("302a300506032b6570032100") + b"\x11" * 32
    from_key = Rappid.mint("kody-w", "core", public_key)
    assert from_key.tail == "0a9d127d7d27e63cc63b16b15725e39305d53d5618f9edb07522eecdfc435e73"
    assert from_key.text == f"rappid:@kody-w/core:{from_key.tail}"
    assert from_key.strict


def test_no_two_mints_are_the_same_even_with_the_same_names() -> None:
    minted = {Rappid.mint("rose", "garden").tail for _ in range(200)}
    assert len(minted) == 200


@pytest.mark.parametrize(
    ("owner", "slug"),
    [
        ("", "x"),
        ("x", ""),
        ("Rose", "x"),
        ("a--b", "x"),
        ("-a", "x"),
        ("a" * 40, "x"),
        ("a", "x" * 101),
        ("a", "x_y"),
    ],
)
def test_minting_refuses_labels_that_rapp_1_does_not_admit(owner: str, slug: str) -> None:
    with pytest.raises(BadRappidError):
        Rappid.mint(owner, slug)
    with pytest.raises(BadRappidError, match="16 octets"):
        Rappid.mint("rose", "garden", b"short")


def test_strict_tells_rapp_1_from_the_forms_before_it() -> None:
    strict = [text for text, *_ in IN_CIRCULATION if Rappid.parse(text).strict]
    assert strict == [f"rappid:@kody-w/one:{HEX64}"]


def test_one_identity_in_different_forms_is_the_same() -> None:
    dashed, plain = Rappid.parse(UUID), Rappid.parse(UUID.replace("-", "").upper())
    wide = Rappid.mint("kody-w", "core", uuid.UUID(UUID).bytes)
    in_v2 = Rappid.parse(f"rappid:v2:twin:@o/r:{UUID.replace('-', '')}@github.com/o/r")
    for a in (dashed, plain, wide, in_v2):
        for b in (dashed, plain, wide, in_v2):
            assert same(a, b)
            assert a.identity == b.identity
    assert not same(dashed, Rappid.parse(str(uuid.uuid4())))


def test_a_short_tail_alone_does_not_make_two_the_same() -> None:
    rose = Rappid.parse("rappid:twin:@source/rose:0123456789abcdef")
    assert same(rose, Rappid.parse("rappid:twin:@SOURCE/Rose:0123456789ABCDEF"))
    assert not same(rose, Rappid.parse("rappid:twin:@source/iris:0123456789abcdef"))
    assert not same(rose, Rappid.parse(f"rappid:@source/rose:0123456789abcdef{'0' * 48}"))


def test_an_older_id_goes_on_under_its_widened_tail() -> None:
    old = Rappid.parse(f"rappid:v2:organism:@Kody_W/RAPP.core:{HEX32}@github.com/Kody_W/RAPP.core")
    new = widened(old)
    tail = hashlib.sha256(b"rapp/1:rappid\n" + bytes.fromhex(HEX32)).hexdigest()
    assert new.text == f"rappid:@kody-w/rapp-core:{tail}"
    assert new.strict
    assert same(old, new)
    assert widened(Rappid.parse(UUID), owner="rose", slug="garden").text.startswith("rappid:@rose/garden:")
    with pytest.raises(BadRappidError, match="cannot be carried over"):
        widened(Rappid.parse("rappid:twin:@o/s:0123456789abcdef"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Käthe's Garten", "kaethes-garten"),
        ("Größe ÄÖÜ ẞ", "groesse-aeoeue-ss"),
        ("Ångström & Žižek", "angstroem-zizek"),
        ("İstanbul", "istanbul"),
        ("ﬁve ②", "five-2"),
        ("  --Pi  4_b!! ", "pi-4-b"),
        ("🌱", "twin"),
        ("日本", "twin"),
        ("", "twin"),
        ("../../etc/passwd", "etc-passwd"),
        ("a" * 62 + " b", "a" * 62),
        ("x" * 500, "x" * 63),
    ],
)
def test_a_slug_is_derived_from_any_name(text: str, expected: str) -> None:
    assert label(text) == expected


@given(st.text(max_size=200))
def test_every_name_gives_a_label_that_can_be_minted(text: str) -> None:
    slug = label(text)
    assert len(slug) <= MAX_SLUG
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", slug)
    assert Rappid.mint("rose", slug).strict


_hex = st.text("0123456789abcdefABCDEF", min_size=8, max_size=64)
_label = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True)
_word = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,30}", fullmatch=True)
_kind = st.from_regex(r"[a-z][a-z0-9-]{0,12}", fullmatch=True)
_rappids = st.one_of(
    st.uuids().map(str),
    st.uuids().map(lambda one: one.hex),
    st.builds("rappid:@{}/{}:{}".format, _label, _label, _hex),
    st.builds("rappid:{}:{}".format, _word, _hex),
    st.builds("rappid:{}:@{}/{}:{}".format, _kind, _word, _word, _hex),
    st.builds("rappid:v2:{0}:@{1}/{2}:{3}@github.com/{1}/{2}".format, _kind, _word, _word, _hex),
    st.builds("rappid:v2:{0}:@{1}/{2}#{4}:{3}@github.com/{1}/{2}".format, _kind, _word, _word, _hex, _word),
    st.builds("rappid:v2:rapplication:{}/{}:{}".format, _word, _word, _hex),
)


@given(_rappids)
def test_any_rappid_comes_back_as_it_was(text: str) -> None:
    found = Rappid.parse(text)
    assert found.text == text
    assert found.key == found.tail == found.tail.lower()
    assert found.tail.replace("-", "") in text.lower().replace("-", "")
    assert same(found, Rappid.parse(text))
    if len(found.digits) in (32, 64):
        assert same(found, widened(found, owner="somebody", slug="else"))


@given(
    st.one_of(
        st.text(max_size=600),
        st.builds(
            lambda text, at, put: text[: at % (len(text) + 1)] + put + text[at % (len(text) + 1) :],
            _rappids,
            st.integers(0, 200),
            st.text("\0\n/\\.:@# é%", min_size=1, max_size=4),
        ),
        st.builds(lambda a, b: a + b, _rappids, _rappids),
    )
)
def test_whatever_is_read_names_a_safe_folder(text: str) -> None:
    try:
        found = Rappid.parse(text)
    except BadRappidError:
        return
    assert found.text == text
    assert re.fullmatch(r"[0-9a-f-]{8,64}", found.key)
    assert not set("/\\\0") & set(found.owner + found.slug)
    assert found.owner not in (".", "..")
    assert found.slug not in (".", "..")
