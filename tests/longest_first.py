"""Which files take longest: they are begun first, so that no process works alone at the end.

The order is all that counts, and a file that is missing here costs nothing but a little of that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LONGEST = (
    "rappd/page/test_page_machines.py",
    "lan/test_discovery.py",
    "rappd/cli/test_cli_peers.py",
    "rappd/cli/test_cli_start.py",
    "rappd/cli/test_cli_egg_merge.py",
    "twins/importer/test_crash.py",
    "rappd/test_machines_in_the_page.py",
    "rappd/page/test_page_cartridges.py",
    "rappd/cli/test_cli_twins.py",
    "rappd/machines/test_legacy.py",
    "rappd/cli/test_cli_outbox.py",
    "rappd/machines/test_ask_peer.py",
    "rappd/page/test_page_twins.py",
    "rappd/federation/test_strangers.py",
    "rappd/cli/test_cli_egg.py",
    "rappd/test_eggs_on_the_daemon.py",
    "twins/checkpoints/test_going_back_killed.py",
    "lan/test_meeting.py",
    "rappd/machines/test_eggs_that_wait.py",
    "agents/worker/test_crew_mishaps.py",
    "rappd/cli/test_cli_verbs.py",
    "rappd/page/test_page_access.py",
    "rappd/test_twins_on_the_daemon.py",
    "rappd/test_twins_in_the_page.py",
    "rappd/cli/test_cli_cartridge.py",
    "agents/worker/test_crew_requests.py",
    "lan/test_delivery.py",
    "rappd/cli/test_cli_pairing_time.py",
    "lan/test_crashes.py",
    "rappd/page/test_page_talk.py",
    "rappd/cli/test_cli_agents.py",
    "twins/eggs/packing/test_pack_killed.py",
    "neighborhoods/discovery/test_nearby.py",
    "rappd/cli/test_cli_demo.py",
    "rappd/cli/test_cli_logs.py",
    "rappd/machines/test_peer_agents.py",
    "rappd/test_crash.py",
    "rappd/page/test_page_changes.py",
    "agents/worker/test_worker_processes.py",
    "rappd/test_agents_live.py",
    "test_docs_true.py",
    "rappd/test_surface_login.py",
    "lan/test_network.py",
    "lan/test_hostile.py",
    "rappd/page/test_cartridges_js.py",
    "agents/lispy/test_lispy_freezing.py",
    "rappd/machines/test_broadcast.py",
    "rappd/cli/test_cli_restarts.py",
    "rappd/cli/test_cli_doctor.py",
    "twins/cartridges/test_shapes_and_crossing.py",
    "rappd/federation/test_streaming.py",
    "twins/lifecycle/test_lifecycle_crash.py",
    "neighborhoods/discovery/test_presence.py",
    "rappd/cli/test_cli_pairing.py",
    "lan/test_compose.py",
    "rappd/test_page_on_the_daemon.py",
    "rappd/federation/test_turns_of_peers.py",
    "rappd/machines/test_twin_chat.py",
    "rappd/page/test_lispy_js.py",
    "agents/library/test_twin_agents.py",
)


def longest_first(items: list[pytest.Item]) -> None:
    """Sorts what was collected; within a file, and among those not listed, the order stays."""
    ranks = {TESTS / file: rank for rank, file in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))
