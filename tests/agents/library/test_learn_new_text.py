"""People's words to LearnNew stay text: no file it writes can run a word of them."""

from __future__ import annotations

import ast
import builtins
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import agents.library
from agents.contract.loading import load_agent_file

RUN = "import builtins; builtins.prose_ran = True"
PIECES = st.one_of(
    st.text(max_size=20),
    st.text(alphabet="\"'\\\n\r\t\0{}()#;:%$ ", max_size=12),
    st.sampled_from(
        [
            f'"""\n{RUN}\n"""',
            f"'''\n{RUN}\n'''",
            f'" + exec("{RUN}") + "',
            f"{{exec({RUN!r})}}",
            f"\\\n{RUN}",
            f'\\"""; {RUN} #',
            f"\r{RUN}",
            f"\x0c{RUN}",
            f"\u2028{RUN}",
            "\ud800",
            "```python\nprint(1)\n```",
            "read a file from a url, many, in Paris",
            "# -*- coding: utf-7 -*-",
        ]
    ),
)
PROSE = st.lists(PIECES, max_size=8).map("".join)
MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def learn_new(tmp_path: Path) -> Iterator[ModuleType]:
    """The agent's module, its file in a folder of its own."""
    path = tmp_path / "agents" / "learn_new_agent.py"
    path.parent.mkdir()
    shutil.copy(Path(agents.library.__path__[0]) / path.name, path)
    loaded = load_agent_file(path)
    assert loaded.module is not None
    yield loaded.module
    loaded.forget()


@MANY
@given(prose=PROSE, name=st.text(max_size=30))
@example(prose="x", name="Basic")
@example(prose="x", name="1 2 Agent")
@example(prose='ends in a quote"', name="")
@example(prose="ends in a backslash\\", name="")
def test_a_created_file_holds_the_words_and_runs_none(learn_new: ModuleType, prose: str, name: str) -> None:
    folder = Path(str(learn_new.__file__)).parent
    said = json.loads(learn_new.LearnNewAgent().perform(description=prose, name=name))
    if said["status"] == "error":
        assert "Say what" in said["message"]
        return
    path = folder / said["file"]
    assert re.fullmatch(r"[a-z0-9_]+_agent\.py", path.name)
    assert path.name != "basic_agent.py"
    source = path.read_text(encoding="utf-8")
    path.unlink()
    text = ast.get_docstring(ast.parse(source), clean=False)
    assert text is not None
    assert text.startswith(learn_new._clean(prose).strip())
    assert _shape(source) == _shape(learn_new._scaffold(said["agent"], "x", learn_new._hints(prose)))
    _perform(path, source, said["agent"])


@MANY
@given(first=PROSE, second=PROSE)
def test_recorded_feedback_stays_text_too(learn_new: ModuleType, first: str, second: str) -> None:
    source = learn_new._scaffold("Dice", "rolls dice", [])
    for feedback in (first, second):
        clean = learn_new._clean(feedback).strip()
        source, added = learn_new._recorded(source, ast.parse(source), clean)
        assert set(added) <= learn_new._HINTS.keys()
        assert clean in str(ast.get_docstring(ast.parse(source), clean=False))
    known = learn_new._hints(learn_new._clean(first)) + learn_new._hints(learn_new._clean(second))
    assert _shape(source) == _shape(learn_new._scaffold("Dice", "x", list(dict.fromkeys(known))))
    _perform(Path("dice_agent.py"), source, "Dice")


def _shape(source: str) -> str:
    """The code of a file with every string taken out: equal shapes run equal code."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def _perform(path: Path, source: str, name: str) -> None:
    loaded = load_agent_file(path, source=source.encode())
    loaded.forget()
    found = loaded.find(name)
    assert found is not None, loaded
    agent: Any = found[0]
    assert json.loads(agent.perform(query=source))["given"] == {"query": source}
    assert not hasattr(builtins, "prose_ran")
