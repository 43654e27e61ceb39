"""Three hundred phones that come and go, one after the other; in the whole suite ``tests/lan`` does sixty."""

from __future__ import annotations

from pathlib import Path

import pytest
from lan.network import Lan, require
from lan.test_phone_cycles import growth, rounds_of_phones

from tests.storm.storm import SECONDS


@pytest.mark.timeout(900)
@pytest.mark.skipif(SECONDS == 0, reason="needs make storm")
def test_three_hundred_phones_leave_nothing(tmp_path: Path) -> None:
    require()
    with Lan() as lan:
        found = rounds_of_phones(lan, tmp_path, 3, 100)
    assert growth(found) == {}, found
