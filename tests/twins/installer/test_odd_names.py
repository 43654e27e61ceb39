"""Names that other systems reject stay in the egg, each with its reason, also beside what is there already."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.twins.installer.a_home import GARDENER, NOW, AHome, egg, gardener, part
from twins.eggs.parsed_egg import Destination
from twins.fs.untrusted_names import folded
from twins.installer.planning import Action

ODD = [
    "agents/CON.py",
    "agents/x.py.",
    "agents/x.py:evil",
    ".brainstem_data/nul",
    ".brainstem_data/a?.md",
    "agents/aux/x.py",
    "notes /x",
    "GARDEN~1",
]


@pytest.mark.parametrize("target", ODD)
def test_odd_name_is_refused_and_the_rest_hatches(home: AHome, target: str) -> None:
    done = home.importer().hatch(egg(GARDENER, part(target, b"x = 1\n")), now=NOW)
    (refused,) = done.plan.of(Action.REFUSE)
    assert refused.target == target and refused.why
    assert done.receipt is not None and done.receipt.refused == [{"path": target, "why": refused.why}]
    assert not (home.twin / target).exists() and (home.twin / "agents/water_agent.py").exists()


@pytest.mark.parametrize(
    ("present", "target"),
    [
        (".brainstem_data/Notes.md", ".brainstem_data/notes.md"),
        (".brainstem_data/Deep/er/x.md", ".brainstem_data/deep/er/y.md"),
        (".brainstem_data/caf\u00e9.md", ".brainstem_data/cafe\u0301.md"),
        (".brainstem_data/stra\u00dfe.md", ".brainstem_data/STRASSE.md"),
        (".brainstem_data/x.md.", ".brainstem_data/x.md"),
        (".brainstem_data/no\u200dte.md", ".brainstem_data/note.md"),
        (".brainstem_data/Thing", ".brainstem_data/thing/x.md"),
        (".brainstem_data/thing/x.md", ".brainstem_data/Thing"),
        ("agents/Water_agent2.py", "agents/water_agent2.py"),
    ],
)
def test_name_that_some_disk_joins_with_a_present_one_is_refused(
    home: AHome, present: str, target: str
) -> None:
    home.importer().hatch(gardener())
    home.live_in(home.twin, {present: b"mine"})
    done = home.importer().hatch(egg(GARDENER, part(target, b"theirs")), overwrite=["memory", "agents"])
    (refused,) = done.plan.of(Action.REFUSE)
    assert refused.target == target
    assert "is there, and some disks take both for one name" in refused.why
    assert (home.twin / present).read_bytes() == b"mine" and not (home.twin / target).exists()


def test_what_a_home_has_under_odd_names_stays(home: AHome) -> None:
    home.importer().hatch(gardener())
    odd = {".brainstem_data/CON.md": b"mine", ".brainstem_data/a:b": b"mine"}
    home.live_in(home.twin, odd)
    home.importer().hatch(egg({**GARDENER, ".brainstem_data/new.md": b"new"}))
    for path in odd:
        assert (home.twin / path).read_bytes() == b"mine"
    assert (home.twin / ".brainstem_data/new.md").exists()


def test_odd_name_is_refused_in_the_brainstem_too(home: AHome) -> None:
    home.start_brainstem()
    parts = [part("services/COM1_service.py", b"x"), part("services/con.py:x_service.py", b"x")]
    done = home.importer().hatch(egg(None, *parts, destination=Destination.HOST, rappid="", key=""))
    assert len(done.plan.of(Action.REFUSE)) == 1
    assert done.plan.of(Action.REFUSE)[0].target.startswith("services/con.py"), "COM1_service.py is no device"


_NAME = st.sampled_from(
    ["a", "A", "b", "é", "e\u0301", "É", "ss", "ß", "x.md", "X.MD", "nul", "q?", "t.", "t"]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    here=st.lists(st.lists(_NAME, min_size=1, max_size=3).map("/".join), max_size=4, unique=True),
    there=st.lists(st.lists(_NAME, min_size=1, max_size=3).map("/".join), max_size=4, unique_by=folded),
)
def test_no_two_names_that_some_disk_joins_lie_side_by_side(
    tmp_path_factory: pytest.TempPathFactory, here: list[str], there: list[str]
) -> None:
    from twins.errors import HostileEggError

    home = AHome(tmp_path_factory.mktemp("h") / "home")
    home.importer().hatch(gardener())
    laid = set()
    for path in here:
        try:
            home.live_in(home.twin, {f".brainstem_data/m/{path}": b"mine"})
            laid.add(f".brainstem_data/m/{path}")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    try:
        home.importer().hatch(
            egg(GARDENER, *(part(f".brainstem_data/m/{path}", b"theirs") for path in there))
        )
    except HostileEggError:
        return
    folder = home.twin / ".brainstem_data/m"
    came = (
        [p for p in folder.rglob("*") if p.is_file() and p.read_bytes() == b"theirs"]
        if folder.exists()
        else []
    )
    for path in came:
        for level in (path, *path.parents):
            if level == folder:
                break
            same = [one for one in level.parent.iterdir() if folded(one.name) == folded(level.name)]
            assert (
                same == [level]
                or level in {Path(home.twin / one) for one in laid}
                or _was_here(level, laid, home)
            )


def _was_here(folder: Path, laid: set[str], home: AHome) -> bool:
    """True when a folder was there before, beside another that some disk joins with it."""
    return any((home.twin / one).is_relative_to(folder) for one in laid)
