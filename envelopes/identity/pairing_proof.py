"""Proofs that two machines exchange while they pair: by words that people compare, or by a code.

*Words*: the one that asks commits to a nonce, the other shows its own, then the first is revealed. A machine that
stands between them with keys of its own gets other words, except for one try in 2^32. Each then signs its
owner's verdict. *Code*: SPAKE2 turns the short code into a key that nobody can guess at in the background,
and both confirm with it, and with their identity, that they saw the same two node cards. ``asks`` is always
the machine that began, ``answers`` the other. Nonces are 32 bytes.
"""

from __future__ import annotations

import hmac
import os
import re
import unicodedata
from collections.abc import Callable
from hashlib import sha256
from typing import Final, Literal

from envelopes.codecs.canonical import canonical
from envelopes.errors import EnvelopeError
from envelopes.identity.keys import IdentityKey, verify
from envelopes.identity.node_card import NodeCard

Role = Literal["asks", "answers"]

NONCE_BYTES: Final = 32
CODE_MESSAGE_BYTES: Final = 33
"""A side byte and a point of the curve."""

_NONCE: Final = b"rappd/pairing-nonce\n"
_WORDS: Final = b"rappd/pairing-words\n"
_VERDICT: Final = b"rappd/pairing-verdict\n"
_CODE: Final = b"rappd/pairing-code\n"
_CODE_WORDS: Final = 3


def commitment(nonce: bytes, asks: str, answers: str) -> str:
    """The promise (64 hex) of the nonce of ``asks`` towards ``answers``, both by fingerprint."""
    return sha256(_NONCE + nonce + asks.encode() + answers.encode()).hexdigest()


def keeps(promise: str, nonce: bytes, asks: str, answers: str) -> bool:
    """True when ``nonce`` is the one that was promised."""
    return len(nonce) == NONCE_BYTES and hmac.compare_digest(
        promise.encode(), commitment(nonce, asks, answers).encode()
    )


def transcript(asks: NodeCard, answers: NodeCard, nonce_asks: bytes, nonce_answers: bytes) -> bytes:
    """32 bytes that depend on every bit of both introductions and both nonces. Raises ``ValueError``."""
    if len(nonce_asks) != NONCE_BYTES or len(nonce_answers) != NONCE_BYTES:
        raise ValueError("a nonce has 32 bytes")
    transcript = canonical(asks.to_json()) + canonical(answers.to_json())
    return sha256(_WORDS + transcript + nonce_asks + nonce_answers).digest()


def pairing_words(of: bytes) -> tuple[str, ...]:
    """The four words that stand for a transcript."""
    return words_of(of)


def sign_verdict(key: IdentityKey, of: bytes, same: bool) -> bytes:
    """Signs the owner's verdict on the words."""
    return key.sign(_VERDICT + of + (b"1" if same else b"0"))


def verdict_holds(public: bytes, of: bytes, same: bool, signature: bytes) -> bool:
    """True when the owner of the key ``public`` gave that verdict on these words."""
    return verify(public, signature, _VERDICT + of + (b"1" if same else b"0"))


def new_code(random: Callable[[int], bytes] = os.urandom) -> str:
    """A fresh code, ``417-copper-otter-violin``: 34 bits."""
    number = int.from_bytes(random(8), "big") % 1000  # 2^64 hardly favours any
    return "-".join((f"{number:03d}", *words_of(random(_CODE_WORDS), _CODE_WORDS)))


def normal_code(typed: str) -> str:
    """The code that was meant: any case, any signs between, words by their first four letters. ``bad_code``."""
    parts = re.findall(r"[0-9a-z]+", unicodedata.normalize("NFKC", typed[:200]).casefold())
    shape = "A code looks like 417-copper-otter-violin; read it again on the other machine."
    if len(parts) != 1 + _CODE_WORDS or not re.fullmatch(r"[0-9]{3}", parts[0]):
        raise EnvelopeError("That is no code.", do=shape, code="bad_code")
    words = [word_meant(part) for part in parts[1:]]
    for part, word in zip(parts[1:], words, strict=True):
        if word is None:
            raise EnvelopeError(f'"{part[:20]}" is in no code.', do=shape, code="bad_code")
    return "-".join((parts[0], *filter(None, words)))


class CodeExchange:
    """One side of one try with a code: pure Python arithmetic, some 10 ms a step, so for a thread."""

    def __init__(self, code: str) -> None:
        from spake2 import SPAKE2_Symmetric  # with its tables it takes a moment, and few ever need it

        self._side = SPAKE2_Symmetric(code.encode(), idSymmetric=_CODE)
        self.message: bytes = self._side.start()
        """The message for the other side."""

    def key(self, message: bytes) -> bytes:
        """The key (32 bytes) that both have when their codes are the same. Once. Raises ``bad_pairing``."""
        from spake2 import SPAKEError
        from spake2.ed25519_basic import NotOnCurve

        if len(message) != CODE_MESSAGE_BYTES or message[:1] != b"S":
            raise _no_message()
        try:
            key: bytes = self._side.finish(message)
        except (SPAKEError, NotOnCurve, ValueError, AssertionError) as error:
            raise _no_message() from error
        return key


def code_transcript(asks: NodeCard, answers: NodeCard, message_asks: bytes, message_answers: bytes) -> bytes:
    """32 bytes that depend on both introductions and both messages of a try with a code."""
    transcript = canonical(asks.to_json()) + canonical(answers.to_json())
    return sha256(_CODE + transcript + message_asks + message_answers).digest()


def confirmation(key: bytes, role: Role, of: bytes) -> bytes:
    """Proof (32 bytes) that ``role`` has the key, and saw the transcript ``of``."""
    return hmac.digest(key, _CODE + role.encode() + b"\n" + of, "sha256")


def sign_code(identity: IdentityKey, role: Role, of: bytes) -> bytes:
    """Proof that ``role`` is who its introduction says: the code alone would let a knower bring another's."""
    return identity.sign(_CODE + role.encode() + b"\n" + of)


def confirms(key: bytes, role: Role, of: bytes, proof: bytes, *, public: bytes, signature: bytes) -> bool:
    """True when ``role`` knew the code, saw the same two node cards, and owns the key ``public``."""
    knew = hmac.compare_digest(proof, confirmation(key, role, of))
    return knew and verify(public, signature, _CODE + role.encode() + b"\n" + of)


def _no_message() -> EnvelopeError:
    return EnvelopeError(
        "That is no message of a pairing by code.", do="Update both machines, try again.", code="bad_pairing"
    )


_TEXT = """
abacus acorn alder anchor apple apron armchair artist aspen atlas autumn avocado azure badger bakery
balcony bamboo banjo barrel basket beacon beaver bicycle blossom bottle boulder bracelet bramble
bridge broccoli bronze brook buffalo button cabbage cactus camel candle canyon carpet cedar celery
chalk cherry chimney cinnamon circus clarinet clover cobalt cobbler coconut coffee compass copper
cricket crystal cupboard curtain cushion cypress daisy dancer desert diamond dolphin domino donkey
dragon drawer drummer dynamo eagle echo eclipse elbow elephant ember emerald engine fabric feather
fender fiddle finch flannel flute foghorn forest fossil fountain freckle galaxy gallop garlic
gazelle ginger giraffe glacier granite grape guitar hammer harbor hatchet hedgehog helmet hickory
hornet hurdle iceberg indigo insect island ivory jasmine jelly jigsaw jungle juniper kayak kernel
ketchup kitchen lagoon lantern lavender lemon leopard lettuce library lilac lizard lobster locket
magnet magpie mailbox mammoth marble meteor mirror mitten molasses mosaic muffin mushroom mustard
napkin nectar needle north nutmeg oasis oboe ocean octopus olive onion orbit orchid oregano ostrich
otter oxygen palace panther papaya parsley peacock peanut pebble piano pickle pirate plum polar
potato prairie pretzel prism pudding pumpkin puzzle pyramid quartz quilt rabbit radish raft rainbow
raisin raven reindeer rhubarb ribbon rosemary ruby saffron salmon sandal sapphire sardine satin
scarf sculptor seagull shadow shovel silver sketch skylark sleigh slipper snail sofa spade sparrow
spinach squirrel stable stork sugar sunset swan sycamore tadpole teapot temple thunder topaz
tortoise toucan tractor trumpet tulip twilight umbrella unicorn vacuum valley vanilla village
vinegar violin volcano vulture waffle walnut weasel whistle widow wombat yacht yogurt zigzag
"""

WORDS: Final[tuple[str, ...]] = tuple(_TEXT.split())
"""In order of the alphabet. No two begin with the same four letters, are fewer than three letters apart
or share the row of their consonants; a list once published never changes, both sides must have the same."""


def words_of(digest: bytes, count: int = 4) -> tuple[str, ...]:
    """A word for each of the first ``count`` bytes. Raises ``ValueError`` when there are fewer."""
    if len(digest) < count:
        raise ValueError("too few bytes for so many words")
    return tuple(WORDS[byte] for byte in digest[:count])


def word_meant(typed: str) -> str | None:
    """The word that starts with what was typed (four letters are enough), or None."""
    if len(typed) < 4:
        return None
    return next((word for word in WORDS if word.startswith(typed)), None)
