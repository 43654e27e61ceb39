from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from living_documents import buddies, seeds, specs

from twins.cartridges.crossing import convert
from twins.cartridges.documents import same
from twins.cartridges.shapes import Shape, shape_of

DRAWN = {Shape.SEED: seeds, Shape.BUDDY: buddies, Shape.SPEC: specs}


@pytest.mark.parametrize("shape", list(Shape))
@pytest.mark.parametrize("to", list(Shape))
@given(st.data())
@settings(max_examples=300, deadline=None)
def test_there_and_back_nothing_is_lost(shape: Shape, to: Shape, data: st.DataObject) -> None:
    document = data.draw(DRAWN[shape])
    given_ = copy.deepcopy(document)
    there = convert(document, to)
    assert same(document, given_)
    assert shape_of(there) is to
    back = convert(there, shape)
    assert same(back, document), (back, there, document)
