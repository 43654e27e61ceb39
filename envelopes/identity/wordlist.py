"""256 words for a byte each: what two people compare, and what a code is spelled with."""

from __future__ import annotations

from typing import Final

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
