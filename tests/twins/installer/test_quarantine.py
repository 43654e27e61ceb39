"""Code that nobody trusted signed comes to its place and waits; some places no egg ever reaches."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.twins.installer.a_home import (
    AGENT,
    BY_KITCHEN,
    BY_SELF,
    GARDENER,
    KEY,
    KITCHEN,
    NOW,
    OWN,
    RAPPID,
    AHome,
    egg,
    gardener,
    part,
)
from twins.eggs.parsed_egg import Role, Seal
from twins.installer.planning import Action


def test_code_that_nobody_trusted_signed_is_held(home: AHome) -> None:
    done = home.importer().hatch(gardener(), now=NOW)
    code = {"agents/water_agent.py", "services/pump_service.py", ".env"}
    assert {row.target for row in done.plan.quarantined} == code
    assert {hold.path for hold in home.held.listing()} == {f"twins/{KEY}/{path}" for path in code}
    assert all(
        hold.origin == "gardener" and hold.at == "2026-11-21T09:40:00Z" for hold in home.held.listing()
    )


@pytest.mark.parametrize("seal", [Seal(None, OWN), Seal(None), Seal(True), BY_KITCHEN])
def test_half_a_reason_to_trust_is_none(home: AHome, seal: Seal) -> None:
    home.importer().hatch(gardener(seal=seal))
    assert len(home.held.listing()) == 3


def test_what_this_home_or_a_trusted_signer_sealed_runs(home: AHome) -> None:
    home.importer().hatch(gardener(seal=BY_SELF))
    assert home.held.listing() == []
    other = RAPPID.replace("4f", "5f")
    files = {**GARDENER, "rappid.json": json.dumps({"rappid": other}).encode()}
    home.signers.trust(KITCHEN, "kitchen")
    done = home.importer().hatch(egg(files, rappid=other, seal=BY_KITCHEN))
    assert home.held.listing() == []
    assert done.plan.as_json()["seal"]["signer_name"] == "kitchen"


def test_trust_given_later_releases_the_same_code(home: AHome) -> None:
    home.importer().hatch(gardener(seal=BY_KITCHEN))
    assert home.importer().plan(gardener(seal=BY_KITCHEN)).is_settled
    home.signers.trust(KITCHEN, "kitchen")
    assert not home.importer().plan(gardener(seal=BY_KITCHEN)).is_settled, "the code would wait no longer"
    done = home.importer().hatch(gardener(seal=BY_KITCHEN))
    assert home.importer().plan(gardener(seal=BY_KITCHEN)).is_settled
    assert sorted(done.released) == [".env", "agents/water_agent.py", "services/pump_service.py"]
    assert home.held.listing() == []


def test_trusted_code_in_the_place_of_held_code_runs(home: AHome) -> None:
    home.importer().hatch(gardener(seal=BY_KITCHEN))
    home.signers.trust(KITCHEN, "kitchen")
    newer = {**GARDENER, "agents/water_agent.py": AGENT + b"newer = 1\n"}
    home.importer().hatch(egg(newer, seal=BY_KITCHEN), overwrite=["agents"])
    assert f"twins/{KEY}/agents/water_agent.py" not in {one.path for one in home.held.listing()}
    path = home.twin / "agents/water_agent.py"
    assert not home.held.is_held(path, hashlib.sha256(path.read_bytes()).hexdigest())


def test_owners_file_that_a_rollback_brings_back_is_not_held(home: AHome) -> None:
    home.importer().hatch(gardener(seal=BY_SELF))
    path = home.twin / "agents/water_agent.py"
    newer = {**GARDENER, "agents/water_agent.py": AGENT + b"newer = 1\n"}
    done = home.importer().hatch(egg(newer), overwrite=["agents"])
    assert home.held.is_held(path, "ab" * 32)
    home.importer().rollback(done.receipt.id)  # type: ignore[union-attr]
    assert path.read_bytes() == AGENT
    assert home.held.listing() == []
    assert not home.held.is_held(path, "ab" * 32)
    assert home.held.is_held(path, hashlib.sha256(newer["agents/water_agent.py"]).hexdigest())


def test_packing_quarantined_code_here_does_not_approve_it(home: AHome) -> None:
    home.importer().hatch(gardener())
    home.importer().hatch(gardener(seal=BY_SELF))
    assert len(home.held.listing()) == 3
    other = RAPPID.replace("4f", "5f")
    files = {**GARDENER, "rappid.json": json.dumps({"rappid": other}).encode()}
    done = home.importer().hatch(egg(files, rappid=other, seal=BY_SELF))
    assert len(done.plan.quarantined) == 3


@pytest.mark.parametrize(
    "target", ["agents/tool.py", "utils/x.py", "services/a.so", "agents/deep/er/x_agent.py"]
)
def test_what_would_run_is_code_whatever_the_egg_calls_it(home: AHome, target: str) -> None:
    done = home.importer().hatch(egg(GARDENER, part(target, b"x = 1\n", Role.MEMORY)))
    assert target in {row.target for row in done.plan.quarantined}
    assert f"twins/{KEY}/{target}" in {hold.path for hold in home.held.listing()}


def test_approval_does_not_cover_replaced_code(home: AHome) -> None:
    home.importer().hatch(gardener(seal=BY_SELF))
    newer = {**GARDENER, "agents/water_agent.py": AGENT + b"newer = 1\n"}
    home.importer().hatch(egg(newer), overwrite=["agents"])
    assert [hold.path for hold in home.held.listing()] == [f"twins/{KEY}/agents/water_agent.py"]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (".deps/orjson.py", "never carried"),
        (".remote_agents/x_agent.py", "fetched anew"),
        (".brainstem_data/kept/generations/x.py", "stays its own"),
        ("HATCH_RECEIPT.json", "receipt of its own"),
        ("hatch_receipt.json", "receipt of its own"),
        ("agents/__pycache__/x_agent.cpython-311.pyc", "compiled"),
        ("agents/x.pth", "compiled"),
        ("Utils/x.py", "take its folder for utils"),
    ],
)
def test_daemons_files_are_refused_one_by_one(home: AHome, target: str, why: str) -> None:
    done = home.importer().hatch(egg(GARDENER, part(target, b"x = 1\n")), now=NOW)
    refused = done.plan.of(Action.REFUSE)
    assert [row.target for row in refused] == [target]
    assert why in refused[0].why
    assert done.receipt is not None
    assert done.receipt.refused == [{"path": target, "why": refused[0].why}]
    if "receipt" not in why:
        assert not (home.twin / target).exists()
