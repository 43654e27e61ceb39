"""Code that comes in an egg is held until its signer is trusted or it was read."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from fixtures.running_daemon import agent_source, on
from fixtures.twin_workspace import KETTLE, Place

from twins.eggs.readers.detect import open_egg

SUMS = """
from dataclasses import dataclass
from agents.listener import listener

@listener()
@dataclass
class Sum:
    "Adds one."
    number: int = 1

def handle(payload: Sum) -> str:
    return str(payload.number + 1)
"""
PUMP = 'name = "pump"\n\n\ndef handle(method, path, body):\n    return {"water": "runs"}, 200\n'


def unsigned(egg: Path, into: Path, **changes: bytes) -> Path:
    """The same egg without what rappd added to the published shape; ``changes`` by member."""
    with zipfile.ZipFile(egg) as old, zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != "integrity.json":
                new.writestr(name, changes.get(name, old.read(name)))
    return into


def test_code_runs_when_its_signer_is_trusted_and_never_before(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    fingerprint = desk.get("/eggs/signers")["own"]
    eggs = {}
    for name in ("unsigned", "unknown", "trusted", "revoked"):
        key = desk.new(name)
        desk.give(key, "agents/kettle_agent.py", KETTLE)
        eggs[name] = key, desk.pack(key, tmp_path / f"{name}.egg")
    key, signed = eggs["unsigned"]
    eggs["unsigned"] = key, unsigned(signed, tmp_path / "bare.egg")

    def hatched(name: str) -> str:
        key, egg = eggs[name]
        kitchen.hatch(egg)
        return kitchen.runs(key, "Kettle")

    assert hatched("unsigned") != "It boils."
    assert hatched("unknown") != "It boils."
    kitchen.post("/eggs/signers", {"fingerprint": fingerprint, "name": "desk"})
    assert hatched("trusted") == "It boils."
    assert kitchen.runs(eggs["unknown"][0], "Kettle") != "It boils.", "trust is for what comes"
    kitchen.hatch(eggs["unknown"][1])
    assert kitchen.runs(eggs["unknown"][0], "Kettle") == "It boils.", (
        "the same once more, from somebody trusted now"
    )
    assert kitchen.ask("DELETE", f"/eggs/signers/{fingerprint}").status == 200
    assert hatched("revoked") != "It boils."
    assert kitchen.runs(eggs["trusted"][0], "Kettle") == "It boils.", "what was let in stays"


def test_approving_lets_agents_and_services_run(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Approved")
    desk.give(key, "agents/kettle_agent.py", KETTLE)
    desk.give(key, "services/pump_service.py", PUMP)
    done = kitchen.hatch(desk.pack(key, tmp_path / "x.egg"))
    assert done["quarantine"]["count"] == 2
    held = kitchen.get(f"/twins/{key}/agents/held")["held"]
    assert [one["path"] for one in held] == ["agents/kettle_agent.py", "services/pump_service.py"]
    assert kitchen.get(f"/twins/{key}/agents/source/services/pump_service.py")["source"] == PUMP
    port = kitchen.post(f"/twins/{key}/boot")["port"]
    refused = on(port, "GET", "/api/pump")
    assert refused.status == 403
    assert refused.json()["do"] == f"rappd agents approve pump_service.py --twin {key[:12]}"
    for one in held:
        kitchen.post(f"/twins/{key}/agents/approve", {"filename": one["path"]})
    assert on(port, "GET", "/api/pump").json() == {"water": "runs"}
    assert kitchen.runs(key, "Kettle") == "It boils."
    assert kitchen.get(f"/twins/{key}/agents/held")["held"] == []


def test_what_is_quarantined_is_not_packed_and_signed(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Unread")
    desk.give(key, "agents/kettle_agent.py", KETTLE)
    kitchen.hatch(desk.pack(key, tmp_path / "x.egg"))
    kitchen.give(key, "agents/mine_agent.py", agent_source("Mine"))
    packed = kitchen.post("/eggs/pack", {"twin": key, "into": str(tmp_path / "y.egg")})["packed"]
    assert [one["path"] for one in packed["left_out"] if "quarantined" in one["why"]] == [
        "agents/kettle_agent.py"
    ]
    with open_egg(tmp_path / "y.egg") as opened:
        assert {part.name for part in opened.parts if part.role == "agent"} == {"agents/mine_agent.py"}
    refused = kitchen.ask("POST", "/eggs/pack", {"twin": key, "form": "agent", "item": "kettle_agent.py"})
    assert refused.json()["error"] == "agents/kettle_agent.py is quarantined; nothing was packed."
    kitchen.post(f"/twins/{key}/agents/approve", {"filename": "kettle_agent.py"})
    kitchen.pack(key, tmp_path / "z.egg")
    with open_egg(tmp_path / "z.egg") as opened:
        assert len([part for part in opened.parts if part.role == "agent"]) == 2


def test_what_the_operator_brings_in_himself_is_no_longer_held(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    desk.daemon.drop("whisk_agent.py", agent_source("Whisk", 'return "It foams."'))
    desk.post("/eggs/pack", {"form": "agent", "item": "whisk_agent.py", "into": str(tmp_path / "whisk.egg")})
    assert kitchen.hatch(tmp_path / "whisk.egg")["quarantine"]["count"] == 1
    assert kitchen.runs("", "Whisk") != "It foams."
    source = (kitchen.daemon.agents / "whisk_agent.py").read_bytes()
    assert kitchen.daemon.upload("whisk_agent.py", source, control=True).status == 200
    assert kitchen.runs("", "Whisk") == "It foams."


RULES = {
    ".ai/decisions/allow.md": b"allow all\n",
    "organism.yaml": b"listeners: []\n",
    "agents/AllAgent.ts": b"export {}\n",
}


def test_files_that_will_decide_what_runs_wait_like_code(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Ruled")
    packed, egg = desk.pack(key, tmp_path / "plain.egg"), tmp_path / "ruled.egg"
    unsigned(packed, egg)
    with zipfile.ZipFile(egg, "a") as more:
        for path, content in RULES.items():
            more.writestr(path, content)
    done = kitchen.hatch(egg)
    assert {one["path"]: one["role"] for one in done["quarantine"]["files"]} == {
        ".ai/decisions/allow.md": "rules",
        "organism.yaml": "rules",
        "agents/AllAgent.ts": "rules",
    }
    held = [one["path"] for one in kitchen.get(f"/twins/{key}/agents/held")["held"]]
    assert held == sorted(RULES)
    kept = kitchen.post("/eggs/pack", {"twin": key, "into": str(tmp_path / "y.egg")})["packed"]
    assert {one["path"] for one in kept["left_out"] if "quarantined" in one["why"]} >= {
        "organism.yaml", "agents/AllAgent.ts",
    }  # fmt: skip
    approved = kitchen.post(f"/twins/{key}/agents/approve", {"filename": "organism.yaml"})
    assert approved["message"] == "organism.yaml is approved."
    assert [one["path"] for one in kitchen.get(f"/twins/{key}/agents/held")["held"]] == [
        ".ai/decisions/allow.md", "agents/AllAgent.ts",
    ]  # fmt: skip


def test_listener_travels_quarantined_and_the_organism_of_the_home_stays(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    key = desk.new("Adder")
    desk.give(key, "agents/sums_listener.py", SUMS)
    assert desk.runs(key, "sums") == "2"
    written = desk.daemon.home / "schemas" / key / "sums/v1.xsd"
    desk.daemon.wait_for(written.is_file)
    (desk.daemon.home / "organism.yaml").write_text("organism: {name: mine}\n")
    eggs = [desk.pack(key, tmp_path / "adder.egg"), desk.pack("", tmp_path / "brainstem.egg")]
    for egg in eggs:
        names = zipfile.ZipFile(egg).namelist()
        assert [one for one in names if "schemas/" in one or "organism.yaml" in one] == []
    (desk.daemon.home / "organism.yaml").unlink()
    assert kitchen.hatch(eggs[0])["quarantine"]["files"][0]["path"] == "agents/sums_listener.py"
    assert kitchen.runs(key, "sums") != "2"
    assert not (kitchen.daemon.home / "schemas" / key / "sums").exists()
    kitchen.post(f"/twins/{key}/agents/approve", {"filename": "sums_listener.py"})
    assert kitchen.runs(key, "sums") == "2"


def test_listener_travels_alone_into_the_brainstem(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Lender")
    desk.give(key, "agents/sums_listener.py", SUMS)
    desk.runs(key, "sums")
    egg = desk.pack(key, tmp_path / "sums.egg", form="agent", item="sums_listener.py")
    waits = kitchen.hatch(egg)["quarantine"]["files"]
    assert [one["path"] for one in waits] == ["agents/sums_listener.py"]
    assert kitchen.runs("", "sums") != "2"
    kitchen.post("/agents/approve", {"filename": "sums_listener.py"})
    assert kitchen.runs("", "sums") == "2"


def test_files_of_earlier_eggs_that_are_code_now_wait_after_the_upgrade(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    key = desk.new("Earlier")
    packed, egg = desk.pack(key, tmp_path / "plain.egg"), tmp_path / "sums.egg"
    unsigned(packed, egg)
    with zipfile.ZipFile(egg, "a") as more:
        more.writestr("agents/sums_listener.py", SUMS)
    receipts, held = (kitchen.daemon.home / name for name in ("eggs/receipts", "held.json"))
    receipt = receipts / f"{kitchen.hatch(egg)['receipt']}.json"
    kitchen.daemon.stop()
    before = json.loads(receipt.read_bytes())
    for row in before["files"]:
        row |= {"held": "", "role": "other"}  # as a version laid it that had no listeners
    receipt.write_text(json.dumps(before))
    (receipts / "code-rules").unlink(missing_ok=True)
    known = json.loads(held.read_bytes())
    del known["held"][f"twins/{key}/agents/sums_listener.py"]
    held.write_text(json.dumps(known))
    kitchen.daemon.start()
    waits = kitchen.get(f"/twins/{key}/agents/held")["held"]
    assert [one["path"] for one in waits] == ["agents/sums_listener.py"]
    assert kitchen.runs(key, "sums") != "2"
    kitchen.post(f"/twins/{key}/agents/approve", {"filename": "sums_listener.py"})
    assert kitchen.runs(key, "sums") == "2"
