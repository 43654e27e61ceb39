"""The operations that paired machines may ask for: each of the table is served behind its right, and nowhere else."""

from __future__ import annotations

import re

import pytest

from rappd.features.features import all_operations
from rappd.features.operation import Operation
from rappd.listeners.federation.operation_routes import FEATURES as OF_PEERS
from tests.rappd.federation.conftest import Node
from tests.rappd.federation.test_snapshots_for_peers import share
from tests.rappd.federation.test_tokens import issued

OPERATIONS = all_operations(OF_PEERS)


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: one.name)
def test_operation_is_a_peers_with_its_capability_alone(node: Node, one: Operation) -> None:
    path = re.sub(r"\{\w+\}", "5f0c0d6e-8d0e-4f6c-9a55-3d2b6b8f1a11", one.path)
    assert one.right.kind == "peer" and one.right.scope
    friend = node.peer("friend", whose="friend")
    other = {"EGG": "SNAPSHOT", "SNAPSHOT": "EGG"}[one.right.scope]
    for held in (["HELP.*"], [other], [f"{one.right.scope}.brainstem"]):
        share(node, friend, *held)
        refused = friend.request(one.method, path)
        assert (refused.status, refused.json["code"]) == (403, "refused"), held
    share(node, friend, one.right.scope)
    assert friend.request(one.method, path).status in (200, 400, 404)
    text = issued(node, [one.right.scope])["text"]
    for shown in ({}, {"token": text}):
        refused = node.stranger().request(one.method, path, certificate=False, **shown)
        assert (refused.status, refused.json["code"]) == (401, "not_paired")


def test_no_operation_of_others_is_the_owners_or_twice() -> None:
    for key in (lambda one: one.name, lambda one: (one.method, one.path)):
        assert len({key(one) for one in OPERATIONS}) == len(OPERATIONS)
    here = all_operations()
    assert {one.right.kind for one in here} == {"owner", "anybody"}
    assert not {one.name for one in OPERATIONS} & {one.name for one in here}
