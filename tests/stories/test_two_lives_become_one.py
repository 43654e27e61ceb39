"""A twin that went on in two places becomes one again; where its two lives contradict each other, both are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures.owned_machine import compare_words_and_pair, machines
from lan.network import Lan

pytestmark = pytest.mark.timeout(900)


def test_two_diverged_copies_of_a_twin_are_merged_and_the_contradiction_is_kept(
    lan: Lan, tmp_path: Path
) -> None:
    desk, pi = machines(lan, tmp_path, "desk", "pi")
    desk.sees("pi")
    pi.sees("desk")
    compare_words_and_pair(desk, pi)

    rose = desk.makes_twin("Rose", "You tend the garden.")
    desk.twin_says("Rose", "the garden has two beds", session="garden")
    base, ours, theirs = (tmp_path / f"{name}.egg" for name in ("base", "ours", "theirs"))
    desk.rappd("egg", "pack", "Rose", "-o", base)
    desk.rappd("egg", "send", base, "pi")
    (arrived,) = pi.told("egg", "arrived")["arrived"]
    pi.rappd("egg", "hatch", arrived["path"])

    desk.twin_says("Rose", "the roses are red", session="garden")
    desk.twin_says("Rose", "only the desk knows", session="desk")
    (desk.twin(rose) / "notes.txt").write_text("red")
    pi.twin_says("Rose", "the roses are white", session="garden")
    pi.twin_says("Rose", "only the pi knows", session="pi")
    (pi.twin(rose) / "notes.txt").write_text("white")

    desk.rappd("egg", "pack", "Rose", "-o", ours)
    pi.rappd("egg", "pack", "Rose", "-o", theirs)
    pi.rappd("egg", "send", theirs, "desk")
    (came,) = desk.told("egg", "arrived")["arrived"]
    merged = tmp_path / "merged.egg"
    done = desk.told("egg", "merge", base, ours, came["path"], "-o", merged)["merged"]
    assert done["contradicting"] > 0
    assert done["set_aside"] == ["notes.txt"]

    desk.rappd("egg", "hatch", merged, "--yes")
    said = json.dumps(desk.told("threads", "list"))
    assert "only the desk knows" in said and "only the pi knows" in said
    assert (desk.twin(rose) / "notes.txt").read_text() == "red"
    aside = json.loads((desk.twin(rose) / ".brainstem_data/alternates.json").read_text())
    assert "the roses are white" in json.dumps(aside["dimensions"])
    (notes,) = [file for file in aside["files"] if file["path"] == "notes.txt"]
    assert (desk.twin(rose) / notes["kept_as"]).read_text() == "white"
    assert desk.verified()
