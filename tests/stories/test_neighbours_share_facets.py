"""Two neighbours' machines share what their owners made public, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.owned_machine import FRIEND, compare_words_and_pair, machines
from lan.network import Lan

pytestmark = pytest.mark.timeout(900)


def test_two_neighbours_share_only_the_facets_their_owners_made_public(lan: Lan, tmp_path: Path) -> None:
    pizzeria, florist = machines(lan, tmp_path, "pizzeria", "florist")
    pizzeria.gets_agent("Hours", "Open from five to eleven.")
    pizzeria.gets_agent("Suppliers", "The flour is from Anna.")
    florist.gets_agent("Roses", "Forty red ones.")
    florist.gets_agent("Debts", "Nobody owes anything.")
    pizzeria.makes_twin("Luigi", "You know the recipe of the dough.")

    pizzeria.sees("florist")
    florist.sees("pizzeria")
    compare_words_and_pair(pizzeria, florist, FRIEND)
    for agent in ("Hours", "Suppliers"):
        assert "open from" not in florist.calls(f"pizzeria:{agent}", "tell me", code=5).lower()

    for owner, street, agent in ((pizzeria, "Our street", "Hours"), (florist, "My street", "Roses")):
        owner.rappd("neighborhood", "create", street)
        owner.rappd("neighborhood", "publish", street, agent, "--public")

    assert "from five to eleven" in florist.calls("pizzeria:Hours", "when?")
    assert "Forty red ones" in pizzeria.calls("florist:Roses", "how many?")
    for guest, private in ((florist, "pizzeria:Suppliers"), (pizzeria, "florist:Debts")):
        refused = guest.cli("call", private, "tell me")
        assert refused.returncode in (4, 5)
        assert "Anna" not in refused.stdout and "owes" not in refused.stdout
    assert "Luigi" not in str(florist.told("peers", "show", "pizzeria"))
    assert "✗ pizzeria" in florist.cli("neighborhood", "probe", "pizzeria").stdout, "no twin of it is read"

    pizzeria.rappd("neighborhood", "publish", "Our street", "Hours", "--personal")
    assert florist.cli("call", "pizzeria:Hours", "when?").returncode in (4, 5)
    assert "Forty red ones" in pizzeria.calls("florist:Roses", "how many?")
