"""Rappids: the name of a living thing that never changes, in every form in circulation (RAPP/1 rev-5).

Forms, told apart by ``Rappid.form``:

    uuid     123e4567-e89b-42d3-a456-426614174000, or the 32 hex digits alone
    legacy   rappid:<slug>:<hex>, rappid:<hex>
    v2       rappid:v2:<kind>:[@]<owner>/<slug>[#part]:<hex>[@<host>/<owner>/<repo>]
    twin     rappid:<kind>:@<owner>/<slug>:<hex>  (as published: kind twin, 16 hex)
    rappid   rappid:@<owner>/<slug>:<64 hex>  (32 hex in older ones); the only form that is minted

The tail (hex or UUID) is the identity, owner and slug are labels on it: a tail is drawn at random and
never made from names. Older ids of 32 hex go on as their widened 64-hex tail.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import uuid

import msgspec

from twins.errors import BadRappidError

MAX_CHARACTERS = 512
MAX_OWNER = 39
MAX_SLUG = 63
"""RAPP/1 admits 100, the published Twin agent 63; what is made here satisfies both."""

_SPACE = b"rapp/1:rappid\n"
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_TAIL = rf"(?P<tail>{_UUID}|[0-9a-fA-F]{{8,64}})"
_WORD = r"(?!\.{1,2}(?![A-Za-z0-9._-]))[A-Za-z0-9._-]{1,100}"  # a name as GitHub has them, never "." or ".."
_LABEL = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_PLACE = rf"(?P<owner>{_WORD})/(?P<slug>{_WORD})(?:#{_WORD})?"
_KIND = r"(?P<kind>[a-z0-9][a-z0-9_-]{0,62})"
# Compiled when they are used: most are asked for only where something old is read.
_FORMS = (
    ("rappid", rf"rappid:@{_PLACE}:{_TAIL}"),
    ("uuid", rf"(?P<tail>{_UUID}|[0-9a-fA-F]{{32}})"),
    (
        "v2",
        rf"rappid:v2:{_KIND}:@?(?:{_PLACE}|(?P<alone>{_WORD})):{_TAIL}"
        rf"(?:@[A-Za-z0-9.-]{{1,100}}(?:/{_WORD}){{1,3}}(?:#{_WORD})?)?",
    ),
    ("twin", rf"rappid:{_KIND}:@{_PLACE}:{_TAIL}"),
    ("legacy", rf"rappid:(?:(?P<slug>{_WORD}):)?{_TAIL}"),
)
_STRICT = rf"rappid:@(?=[^/]{{1,39}}/){_LABEL}/(?=[^:]{{1,100}}:){_LABEL}:[0-9a-f]{{64}}"
_LONG = 32  # hex digits from which on a tail alone tells two identities apart


class Rappid(msgspec.Struct, frozen=True):
    """One rappid. ``text`` is byte for byte what was given and is what travels; the rest is read from it.

    ``owner``, ``slug`` and ``kind`` are "" where the form has none. ``tail`` is in lower case.
    """

    text: str
    form: str
    owner: str
    slug: str
    tail: str
    kind: str = ""

    @classmethod
    def parse(cls, text: str) -> Rappid:
        """Reads any form in circulation. Raises ``BadRappidError``; nothing is trimmed or repaired."""
        if not isinstance(text, str):
            raise BadRappidError("A rappid is text.", do=_LOOKS)
        if len(text) <= MAX_CHARACTERS:
            for form, pattern in _FORMS:
                match = re.fullmatch(pattern, text)
                if match is not None:
                    part = match.groupdict()
                    return cls(
                        text,
                        form,
                        part.get("owner") or "",
                        part.get("slug") or part.get("alone") or "",
                        part["tail"].lower(),
                        part.get("kind") or "",
                    )
        shown = "".join(letter if letter.isprintable() else "?" for letter in text[:60])
        raise BadRappidError(f'"{shown}{"…" if len(text) > 60 else ""}" is not a rappid.', do=_LOOKS)

    @classmethod
    def mint(cls, owner: str, slug: str, entropy: bytes | None = None) -> Rappid:
        """A new one, ``rappid:@owner/slug:<64 hex>``.

        ``entropy``: 16 or more octets that nobody else has (a UUID4's, or a public key in SPKI DER);
        drawn when absent. Raises ``BadRappidError`` when a label does not satisfy RAPP/1.
        """
        for what, label, limit in (("owner", owner, MAX_OWNER), ("slug", slug, 100)):
            if not re.fullmatch(_LABEL, label) or len(label) > limit:
                raise BadRappidError(
                    f'"{label[:60]}" cannot be the {what} of a rappid.',
                    do=f"Use 1 to {limit} of a-z, 0-9, single dashes between.",
                )
        octets = uuid.uuid4().bytes if entropy is None else entropy
        if len(octets) < 16:
            raise BadRappidError("A rappid is minted from at least 16 octets.", do="Leave them out.")
        return cls.parse(f"rappid:@{owner}/{slug}:{_widen(octets)}")

    @property
    def key(self) -> str:
        """The name of its folder: the tail, which is hex digits (a UUID's dashes too) and nothing else."""
        return self.tail

    @property
    def strict(self) -> bool:
        """True when RAPP/1 admits it as it stands; every other form is older and only read."""
        return re.fullmatch(_STRICT, self.text) is not None

    @property
    def digits(self) -> str:
        """The tail without dashes: how UUIDs compare."""
        return self.tail.replace("-", "")

    @property
    def wide(self) -> str:
        """The 64-hex tail that it goes on under; a tail that is neither 32 nor 64 digits stays as it is."""
        return _widen(bytes.fromhex(self.digits)) if len(self.digits) == 32 else self.digits

    @property
    def identity(self) -> str:
        """Equal for two rappids exactly when they are the ``same``: what to look one up by."""
        if len(self.digits) < _LONG:
            return f"{self.owner}/{self.slug}:{self.digits}".lower()
        return self.wide

    def __str__(self) -> str:
        return self.text


def same(a: Rappid, b: Rappid) -> bool:
    """True when two rappids, in whatever forms, name one identity.

    Tails decide, a UUID with or without dashes, 32 hex or widened. Tails below 32 digits are too short
    to decide alone: there the labels must agree too.
    """
    return a.identity == b.identity


def widened(old: Rappid, *, owner: str = "", slug: str = "") -> Rappid:
    """The RAPP/1 form under which an older rappid goes on; ``same`` holds between the two.

    Its writer keeps the old text as ``_migrated_from``. Labels come from ``old`` where it has
    them. Raises ``BadRappidError`` when the tail cannot be widened (it has neither 32 nor 64 digits).
    """
    if len(old.wide) != 64:
        raise BadRappidError(
            f"{old.text[:80]} has {len(old.digits)} digits and cannot be carried over.",
            do="Keep it as it is.",
        )
    labels = (label(old.owner or owner, MAX_OWNER), label(old.slug or slug))
    return Rappid.parse(f"rappid:@{labels[0]}/{labels[1]}:{old.wide}")


def label(text: str, limit: int = MAX_SLUG, *, otherwise: str = "twin") -> str:
    """A RAPP/1 label derived from free text: ``Käthe's Garten`` becomes ``kaethes-garten``.

    Text without a single letter or digit of a-z, 0-9 (an emoji, another script) gives ``otherwise``.
    """
    # Apostrophes belong to the word; lower case first, because some capitals fall apart (ẞ, İ).
    plain = re.sub(r"['’]", "", unicodedata.normalize("NFKC", text).lower().translate(_SPELLED))
    letters = "".join(one for one in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(one))
    found = re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:limit].rstrip("-")
    return found or otherwise


def _widen(octets: bytes) -> str:
    return hashlib.sha256(_SPACE + octets).hexdigest()


_LOOKS = "A rappid looks like rappid:@owner/name: and 64 hex digits."
_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "œ": "oe", "ø": "oe"})


def mint_rappid(owner: str, name: str, entropy: bytes | None = None) -> Rappid:
    """A new rappid whose labels are derived from free text."""
    return Rappid.mint(label(owner, MAX_OWNER, otherwise="local"), label(name), entropy)
