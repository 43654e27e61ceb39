"""Code that is made ahead is that of the very file, and of no other."""

from __future__ import annotations

from pathlib import Path

import agents
from agents.contract.loading import code_of, compile_library
from agents.runtimes.python.worker.zygote import load_modules

LIBRARY = Path(next(iter(agents.__path__))) / "library"


def test_the_code_of_a_shipped_file_is_made_once() -> None:
    assert load_modules(["agents.contract.loading:compile_library"]) == {}
    path = LIBRARY / "twin_agent.py"
    assert code_of(path, path.read_bytes()) is code_of(path, path.read_bytes())


def test_other_content_or_another_file_gets_its_own_code() -> None:
    compile_library()
    path = LIBRARY / "twin_agent.py"
    changed = code_of(path, b"HERE = 'changed'\n")
    elsewhere = code_of(Path("/x/twin_agent.py"), path.read_bytes())
    assert "HERE" in changed.co_names
    assert elsewhere.co_filename == "/x/twin_agent.py"
    assert elsewhere.co_names == code_of(path, path.read_bytes()).co_names


def test_what_cannot_be_called_is_told() -> None:
    assert load_modules(["agents.contract.loading:no_such_thing"]).keys() == {
        "agents.contract.loading:no_such_thing"
    }
