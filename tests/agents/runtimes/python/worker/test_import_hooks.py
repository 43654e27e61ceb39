"""Held code beside approved code: however an agent reaches for it, it does not run in a worker."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from agents.runtimes.python.pools.errors import AgentRaisedError

WHY = "It came in an egg of kitchen."
OVEN = 'open("RAN", "w").close()\nHEAT = 200\n'
WAYS = {
    "a neighbour by its package": "from agents.oven import HEAT",
    "a neighbour by its name": "from oven import HEAT",
    "a neighbour, relatively": "from .oven import HEAT",
    "a module of utils": "from utils.oven import HEAT",
    "a package": "from stove import HEAT",
    "a module in a package": "from stove.oven import HEAT",
    "a file by its path": "HEAT = by_path('oven.py')",
    "a script": "import runpy; HEAT = runpy.run_path(str(here / 'oven.py'))['HEAT']",
    "text that says where it is from": (
        "made = {}; exec(compile((here / 'oven.py').read_text(), here / 'oven.py', 'exec'), made); HEAT = made['HEAT']"
    ),
    "a file by another name": "import os; os.path.lexists(here / 'kiln.py') or os.symlink('oven.py', here / 'kiln.py'); from kiln import HEAT",
    "a folder named from the workspace": "import sys; sys.path.insert(0, str(here.parent)); from services.oven import HEAT",
}
FILES = {
    "a module of utils": "utils/oven.py",
    "a package": "agents/stove/__init__.py",
    "a module in a package": "agents/stove/oven.py",
    "a folder named from the workspace": "services/oven.py",
}

AGENT = """
from pathlib import Path

from agents.basic_agent import BasicAgent

here = Path(__file__).parent


def by_path(name):
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("reached", here / name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.HEAT

{early}

class Baker(BasicAgent):
    def __init__(self):
        super().__init__("Baker", {{"name": "Baker", "description": "Bakes"}})

    def perform(self, **kwargs):
        {late}
        return f"at {{HEAT}}"
"""


def early(way: str) -> str:
    return AGENT.format(early=way, late="pass")


def late(way: str) -> str:
    return AGENT.format(early="", late=way)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Kitchen:
    """The daemon with code in it that may be held."""

    def __init__(self, worker_host: Any) -> None:
        self.worker_host = worker_host
        self.held: dict[str, dict[str, str]] = {}

    def put(self, name: str, text: str) -> Path:
        path: Path = self.worker_host.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name != "__init__.py" and path.parent.name == "stove":
            (path.parent / "__init__.py").touch()
        path.with_suffix(".tmp").write_text(text)
        path.with_suffix(".tmp").replace(path)
        return path

    def hold(self, path: Path) -> None:
        self.held = {**self.held, str(path.resolve()): {digest(path): WHY}}
        self.worker_host.standing = {"held": self.held}

    def approve(self) -> None:
        self.held = {}
        self.worker_host.standing = {}

    @property
    def ran(self) -> bool:
        return (self.worker_host.root / "RAN").exists()

    async def bakes(self, text: str) -> str:
        result: str = await self.worker_host.perform(self.worker_host.write("baker_agent.py", text), "Baker")
        return result

    async def refuses(self, text: str, where: str) -> str:
        with pytest.raises(AgentRaisedError) as raised:
            await self.bakes(text)
        said = raised.value.message
        assert f"{where} is quarantined until you approve it: {WHY}" in said
        assert not self.ran
        return said


@pytest.fixture
def kitchen(worker_host: Any) -> Kitchen:
    return Kitchen(worker_host)


@pytest.mark.parametrize("way", WAYS)
async def test_held_code_is_not_run_whichever_way_it_is_reached(kitchen: Kitchen, way: str) -> None:
    where = FILES.get(way, "agents/oven.py")
    kitchen.hold(kitchen.put(where, OVEN))
    await kitchen.refuses(late(WAYS[way]), where)
    await kitchen.refuses(early(WAYS[way]), where)
    described = await kitchen.worker_host.describe("baker_agent.py")
    assert described["waits"] is True
    assert f"{where} is quarantined until you approve it: {WHY}" == described["failure"]["reason"]
    inner = "by_path" in WAYS[way]  # which leads on into the agent's own function
    assert described["failure"]["line"] == early(WAYS[way]).splitlines().index(WAYS[way]) + (
        -2 if inner else 1
    )
    kitchen.approve()
    assert await kitchen.bakes(early(WAYS[way])) == "at 200"
    assert (await kitchen.worker_host.describe("baker_agent.py"))["waits"] is False
    assert kitchen.ran


async def test_the_same_worker_goes_on_when_code_is_approved_or_held(kitchen: Kitchen) -> None:
    oven = kitchen.put("agents/oven.py", OVEN)
    kitchen.hold(oven)
    await kitchen.refuses(late("from oven import HEAT"), "agents/oven.py")
    [worker] = kitchen.worker_host.pool.stats()["pids"]
    kitchen.approve()
    assert await kitchen.bakes(late("from oven import HEAT")) == "at 200"
    (kitchen.worker_host.root / "RAN").unlink()
    kitchen.hold(oven)
    await kitchen.refuses(late("from oven import HEAT"), "agents/oven.py")
    assert kitchen.worker_host.pool.stats()["pids"] == [worker]


async def test_code_replaced_by_quarantined_is_not_rerun(kitchen: Kitchen) -> None:
    kitchen.put("agents/oven.py", "HEAT = 90\n")
    text = early("from oven import HEAT")
    assert await kitchen.bakes(text) == "at 90"
    kitchen.hold(kitchen.put("agents/oven.py", OVEN))
    await kitchen.refuses(text, "agents/oven.py")
    kitchen.approve()
    assert await kitchen.bakes(text) == "at 200"


async def test_changed_bytes_are_held_like_those_that_came(kitchen: Kitchen) -> None:
    kitchen.hold(kitchen.put("agents/oven.py", OVEN))
    kitchen.put("agents/oven.py", OVEN.replace("200", "180"))
    await kitchen.refuses(late("from oven import HEAT"), "agents/oven.py")
    kitchen.approve()
    assert await kitchen.bakes(late("from oven import HEAT")) == "at 180"


async def test_optional_import_works_once_approved(kitchen: Kitchen) -> None:
    kitchen.hold(kitchen.put("agents/oven.py", OVEN))
    way = "try:\n    from oven import HEAT\nexcept ImportError as problem:\n    HEAT = str(problem)"
    text = early(way)
    assert await kitchen.bakes(text) == f"at agents/oven.py is quarantined until you approve it: {WHY}"
    assert not kitchen.ran
    kitchen.approve()
    assert await kitchen.bakes(text) == "at 200"


async def test_state_in_memory_outlives_what_does_not_concern_it(kitchen: Kitchen) -> None:
    counts = AGENT.format(early="HEAT = 0", late="global HEAT; HEAT += 1")
    file = kitchen.worker_host.write("baker_agent.py", counts)
    assert [await kitchen.worker_host.perform(file, "Baker") for _ in range(2)] == ["at 1", "at 2"]
    kitchen.hold(kitchen.put("agents/oven.py", OVEN))
    assert await kitchen.worker_host.perform(file, "Baker") == "at 3"
    kitchen.approve()
    assert await kitchen.worker_host.perform(file, "Baker") == "at 4"


async def test_a_held_agent_file_does_not_run_even_if_it_is_asked_for(kitchen: Kitchen) -> None:
    kitchen.put("agents/baker_agent.py", early("HEAT = 1; open('RAN', 'w').close()"))
    kitchen.hold(kitchen.worker_host.agents / "baker_agent.py")
    with pytest.raises(AgentRaisedError, match=r"agents/baker_agent\.py is quarantined until you approve it"):
        await kitchen.worker_host.perform(kitchen.worker_host.file("baker_agent.py"), "Baker")
    assert not kitchen.ran


@pytest.mark.parametrize("where", ["at its top", "in its handle"])
async def test_a_service_cannot_bring_held_code_in(kitchen: Kitchen, where: str) -> None:
    kitchen.hold(kitchen.put("agents/oven.py", OVEN))
    top, inner = ("from oven import HEAT", "pass") if where == "at its top" else ("", "from oven import HEAT")
    text = f"{top}\ndef handle(method, path, body):\n    {inner}\n    return {{'heat': HEAT}}, 200\n"
    path = kitchen.put("services/stove_service.py", text)
    asked = {"file": {"path": str(path), "sha256": digest(path)}, "method": "GET", "path": "", "body": {}}
    said = f"agents/oven.py is quarantined until you approve it: {WHY}"
    if where == "at its top":
        with pytest.raises(
            AgentRaisedError, match=r"stove_service\.py line 1: agents/oven\.py is quarantined"
        ):
            await kitchen.worker_host.ask("service", asked)
    else:
        answer = await kitchen.worker_host.ask("service", asked)
        assert (answer["status"], said in _text(answer)) == (500, True)
    assert not kitchen.ran
    kitchen.approve()
    assert '"heat":200' in _text(await kitchen.worker_host.ask("service", asked))


def _text(answer: dict[str, Any]) -> str:
    import base64

    return base64.b64decode(answer["body"]).decode()


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
async def test_a_compiled_module_is_not_loaded_either(kitchen: Kitchen) -> None:
    source = kitchen.put(
        "oven.c",
        '#include <Python.h>\nstatic struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "oven"};\n'
        "PyMODINIT_FUNC PyInit_oven(void) {\n"
        "PyObject *m = PyModule_Create(&def); PyModule_AddIntConstant(m, \"HEAT\", 7); return m; }\n",
    )  # fmt: skip
    library = kitchen.worker_host.agents / f"oven{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = sysconfig.get_path("include")
    if not (Path(include) / "Python.h").exists():
        pytest.skip("no headers of Python here")
    link = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    command = ["cc", "-shared", "-fPIC", f"-I{include}", *link, str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    kitchen.hold(library)
    await kitchen.refuses(late("from oven import HEAT"), f"agents/{library.name}")
    kitchen.approve()
    assert await kitchen.bakes(late("from oven import HEAT")) == "at 7"
