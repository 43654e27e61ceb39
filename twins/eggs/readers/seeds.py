"""A list of registry seeds as a file, ``{"schema": "rapp-egg/1.0", "seeds": […]}``: the long form of an egg string."""

from __future__ import annotations

from twins.eggs.egg_strings import encode
from twins.eggs.parsed_egg import ParsedEgg, Seal
from twins.eggs.readers.destinations import answering
from twins.eggs.readers.detected import DetectedEgg
from twins.eggs.readers.formats import SEEDS
from twins.errors import BadEggError


def seeds(found: DetectedEgg) -> ParsedEgg:
    """Names agents of a registry by number and holds none of them."""
    numbers = found.manifest.get("seeds")
    try:
        compact = encode(numbers)  # type: ignore[arg-type]  # encode refuses what is no list of numbers
    except BadEggError as error:
        raise found.damaged("its seeds") from error
    assert isinstance(numbers, list)
    # Numbers beyond 64 bits are more than most that read JSON can take.
    found.manifest = {**found.manifest, "seeds": [str(number) for number in numbers]}
    answer = (
        f"{len(numbers)} agents of a registry, by their seeds. With a copy of the registry they hatch as the "
        f"egg string\n{compact}"
    )
    return answering(found, SEEDS, Seal(None), answer)
