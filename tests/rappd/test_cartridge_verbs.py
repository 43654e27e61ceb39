"""Any content of a cartridge's file is worked with or refused in words, and what is saved loads again."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envelopes.errors import ReportableError
from rappd.daemon.home import Home
from rappd.features.cartridges.file_actions import SHAPES, CartridgeFiles
from tests.twins.cartridges.living_documents import buddies, objects, seeds, specs, texts, values
from twins.cartridges.cartridge_io import load
from twins.cartridges.field_specs import STAGES

NOON = datetime(2026, 4, 12, 12, 0, tzinfo=UTC)
sources = st.sampled_from(
    [
        "1", "(+ 1 prev-result)", "(define x (list 1 2)) x", "(display 1) (car 1)", "(", "(next-input)",
        "(define (run x) (list x echo-frame))", "(define n (if (= echo-frame 1) 0 (+ n 1))) (lambda (x) n)",
    ]
)  # fmt: skip
lispy = st.fixed_dictionaries(
    {"_meta": st.fixed_dictionaries({"type": st.just("lispy-cartridge")}, optional={"agent_id": texts})},
    optional={
        "programs": st.dictionaries(st.sampled_from(["main", "other"]), sources | texts, max_size=2),
        "entry": st.sampled_from(["main", "other"]),
        "env": objects,
        "env_wire": st.dictionaries(texts, objects, max_size=2),
        "echoes": st.lists(values, max_size=2),
        "continuation": objects | st.fixed_dictionaries({"frame": st.integers(0, 9), "image": objects}),
        "dialect": st.sampled_from(["core", "rappterbook", "other"]),
        "strange": values,
    },
)
inputs = st.lists(values | st.sampled_from(["feed", "post", {"action": "remember", "text": "x"}]), max_size=2)
several = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Desk:
    """A folder with one cartridge, and the verbs over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "some.file"
        self.out = folder / "out.file"
        self.verbs = CartridgeFiles(Home(folder / "home"), now=NOON)

    def lay(self, document: Any) -> bytes:
        """Writes the file anew; nothing lies beside it."""
        for path in (self.out, *self.folder.glob("*.sig")):
            path.unlink(missing_ok=True)
        self.path.write_text(json.dumps(document))
        return self.path.read_bytes()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def tried(verb: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """The answer of the verb, as JSON; None when it refuses, which it does in words."""
    try:
        answer = verb()
    except ReportableError as problem:
        assert str(problem)
        assert problem.exit_code in (2, 5, 9)
        return None
    found: dict[str, Any] = json.loads(json.dumps(answer))
    return found


@several
@given(st.one_of(buddies, seeds, specs, lispy), inputs, st.integers(1, 3), st.none() | st.integers(1, 30))
def test_whatever_runs_is_saved_whole_and_loads_again(
    desk: Desk, document: Any, given_in: list[Any], frames: int, steps: int | None
) -> None:
    before = desk.lay(document)
    inspected = tried(lambda: desk.verbs.inspect(desk.path))
    ran = tried(lambda: desk.verbs.run(desk.path, frames=frames, inputs=given_in, steps=steps, into=desk.out))
    assert desk.path.read_bytes() == before, "only what is saved is written"
    if ran is None or not ran["cartridge"]["saved"]:
        assert not desk.out.exists()
        return
    assert inspected is not None
    saved = load(desk.out)
    assert saved.signer == Home(desk.folder / "home").identity().fingerprint
    assert (saved.shape is None) == (inspected["cartridge"]["kind"] == "lispy")
    again = desk.verbs.inspect(desk.out)["cartridge"]
    assert again["shape"] == inspected["cartridge"]["shape"] or saved.shape is None
    once_more = tried(
        lambda: desk.verbs.run(desk.path, frames=frames, inputs=given_in, steps=steps, into=desk.out)
    )
    assert once_more is None, "the place is taken"
    desk.verbs.run(desk.path, frames=frames, inputs=given_in, steps=steps, into=desk.out, replace=True)
    assert load(desk.out).document == saved.document, "the same input at the same moment gives the same"


@several
@given(st.one_of(buddies, seeds, specs), st.sampled_from(sorted(SHAPES)))
def test_a_converted_buddy_is_the_same_buddy(desk: Desk, document: Any, to: str) -> None:
    desk.lay(document)
    if tried(lambda: desk.verbs.convert(desk.path, to, desk.out)) is None:
        return
    assert desk.verbs.diff(desk.path, desk.out)["diff"]["same"]
    one, other = (desk.verbs.inspect(path)["cartridge"]["buddy"] for path in (desk.path, desk.out))
    assert one == other
    assert one["stage"] in STAGES


@several
@given(st.one_of(buddies, seeds, specs, lispy, values), st.one_of(buddies, lispy, values))
def test_comparing_and_looking_never_fall_over(desk: Desk, one: Any, other: Any) -> None:
    desk.lay(other)
    desk.path.replace(desk.out)
    before = desk.lay(one)
    tried(lambda: desk.verbs.inspect(desk.path, force=True))
    tried(lambda: desk.verbs.convert(desk.path, "spec", desk.folder / "third", replace=True))
    desk.out.write_text(json.dumps(other))
    tried(lambda: desk.verbs.diff(desk.path, desk.out, force=True))
    assert desk.path.read_bytes() == before
