"""``rappd egg``: what its screens say, what its exit codes mean, and that it works with the daemon down."""

from __future__ import annotations

import http.server
import json
import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from fixtures.running_daemon import REPO, RunningDaemon, agent_source
from fixtures.terminal import on_terminal

from envelopes.errors import ReportableError
from rappd.features.eggs import text as egg_view
from tests.rappd.cli.gardener import KETTLE, PUMP, Gardener, fingerprint, lies, with_code
from twins.eggs.parsed_egg import Destination, Family, ParsedEgg, Part, Role, Seal
from twins.eggs.writers.unread_kinds import NEVER_READ

# The plan.


def test_the_screen_of_a_plan(idle: RunningDaemon, kitchen: Gardener) -> None:
    for number in range(3):
        kitchen.give(f"agents/a{number}_agent.py", agent_source(f"A{number}"))
    for number in range(9):
        kitchen.give(f".brainstem_data/{number}.json", "{}")
    assert idle.cli("egg", "hatch", str(kitchen.packed("first.egg"))).returncode == 0
    here = idle.home / "twins" / kitchen.key
    for path in ("soul.md", ".brainstem_data/3.json", "agents/a1_agent.py"):
        (here / path).write_text("# mine\n")
    kitchen.give("services/pump_service.py", PUMP)
    for number in range(131):
        kitchen.give(f".brainstem_data/notes/{number}.json", "{}")
    egg = kitchen.packed()
    seen = on_terminal(idle, "egg", "plan", str(egg))
    assert seen.code == 0
    head, whole, signed, *rows, last = seen.lines
    assert re.fullmatch(r"gardener, a twin, \d+(\.\d)? kB, packed \d{1,2} [A-Z][a-z]{2}", head)
    assert whole == "✓ Complete: all 147 files match their hashes"
    assert signed == f'! signed by key {fingerprint(kitchen.home)[:16]} ("kitchen"), not paired'
    assert rows == [
        "  New          131  131 memories",
        "  Unchanged     15  3 of yours differ and stay (--overwrite soul,memory,agents)",
        "  For approval   1  1 code file; read, then: rappd agents approve",
        "  services/pump_service.py: may read your files and the network",
    ]
    assert last == f"Nothing was written. → rappd egg hatch {egg}"
    narrow = on_terminal(idle, "egg", "plan", str(egg), columns=40).lines[3:6]
    assert narrow == [
        "  New          131  131 memories",
        "  Unchanged     15  3 of yours differ…",
        "  For approval   1  1 code file",
    ]
    replaced = idle.cli("egg", "plan", str(egg), "--overwrite", "soul,agents").stdout.splitlines()
    assert "  Replaced       1  soul" in replaced
    assert "  Unchanged     13  1 of yours differs and stays (--overwrite memory)" in replaced
    assert "  For approval   2  2 code files; read, then: " in "\n".join(replaced)


def test_plan_of_first_and_of_unchanged_hatching(idle: RunningDaemon, kitchen: Gardener) -> None:
    egg = kitchen.packed()
    own = kitchen.home.cli("egg", "plan", str(egg)).stdout
    assert "✓ Complete: all 3 files match their hashes    ✓ signed by this machine" in own
    assert "  Unchanged    3  the same is there\n" in own
    assert "New" not in own
    assert own.splitlines()[-1] == "Nothing to do: all of it is here."
    assert "  New          3  rappid, soul, 1 other\n" in idle.cli("egg", "plan", str(egg)).stdout
    assert "is here already; nothing had to be written." in kitchen.home.cli("egg", "hatch", str(egg)).stdout


def test_a_plan_as_json_is_one_object(idle: RunningDaemon, kitchen: Gardener) -> None:
    plan = json.loads(idle.cli("egg", "plan", str(with_code(kitchen)), "--json").stdout)["plan"]
    assert plan["seal"]["standing"] == "unknown"
    assert plan["seal"]["signer"] == fingerprint(kitchen.home)
    assert plan["egg"]["packed_on"] == "kitchen"
    assert {row: plan[row]["count"] for row in ("create", "replace", "keep", "quarantine", "refuse")} == {
        "create": 3, "replace": 0, "keep": 0, "quarantine": 2, "refuse": 0,
    }  # fmt: skip
    assert len(plan["digest"]) == 64


def test_inspect_only_egg_offers_no_hatching(idle: RunningDaemon, tmp_path: Path) -> None:
    session = {
        "schema": "brainstem-egg/2.3-session",
        "type": "session",
        "rappid": f"rappid:@a/b:{'4' * 64}",
        "name": "s",
    }
    egg = tmp_path / "s.egg"
    egg.write_text(json.dumps(session))
    told = idle.cli("egg", "plan", str(egg)).stdout
    assert "Nothing was written.\n" in told
    assert "rappd egg hatch" not in told
    assert "  create" not in told


# Packing and looking.


def test_packing_names_the_file_and_what_stayed_behind(kitchen: Gardener, tmp_path: Path) -> None:
    kitchen.give(".env", "PUMP_TOKEN=abc\n")
    done = kitchen.home.cli("egg", "pack", "gardener", "-o", str(tmp_path / "g.egg"))
    assert re.match(
        r"✓ gardener: 3 files, [\d.]+ kB, signed\n  \S*g\.egg\n  left out: \.env may hold secrets\n",
        done.stdout,
    )
    assert done.stderr.count(NEVER_READ) == 1
    assert kitchen.home.cli("egg", "pack", "gardener", "-o", str(tmp_path / "g.egg")).returncode == 9
    packed = json.loads(kitchen.home.cli("egg", "pack", "gardener", "--json").stdout)["packed"]
    assert Path(packed["path"]).parent == kitchen.home.home / "eggs" / kitchen.key
    assert packed["left_out"] == [{"path": ".env", "why": "may hold secrets"}]


def test_the_brainstem_is_packed_before_it_ever_ran(idle: RunningDaemon, tmp_path: Path) -> None:
    done = idle.cli("egg", "pack", "-o", str(tmp_path / "desk.egg"))
    assert done.stdout.startswith("✓ desk: "), done
    assert "desk, a brainstem" in idle.cli("egg", "inspect", str(tmp_path / "desk.egg")).stdout
    idle.start()
    assert idle.chat("hello")["response"]


def test_brainstem_egg_hatches_into_empty_home_only(
    idle: RunningDaemon, make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    egg = tmp_path / "desk.egg"
    idle.start()
    idle.drop("kettle_agent.py", KETTLE)
    assert idle.cli("egg", "pack", "-o", str(egg)).returncode == 0
    assert idle.cli("egg", "hatch", str(egg)).returncode == 9
    fresh = make_daemon("fresh", LLM_FAKE="1")
    done = fresh.cli("egg", "hatch", str(egg))
    assert "rappd agents approve\n" in done.stdout, done
    assert fresh.cli("agents", "approve", "kettle").stdout == "✓ kettle_agent.py is approved, and runs.\n"
    fresh.start()
    assert fresh.cli("agents", "run", "Kettle").stdout == "It boils.\n"


def test_a_folder_is_told_from_an_egg(idle: RunningDaemon, tmp_path: Path) -> None:
    for folder in (".", str(tmp_path)):
        refused = idle.cli("egg", "hatch", folder)
        assert refused.returncode == 4
        assert f'"{folder}" is a folder, not an egg' in refused.stderr


def test_looking_verifying_and_comparing(kitchen: Gardener, tmp_path: Path) -> None:
    first = kitchen.packed("1.egg")
    kitchen.give("soul.md", "# Another\n")
    second = kitchen.packed("2.egg")
    home = kitchen.home
    assert "gardener, a twin, " in home.cli("egg", "inspect", str(first)).stdout
    assert (
        home.cli("egg", "verify", str(first)).stdout.splitlines()[0]
        == "✓ Complete: all 3 files match their hashes"
    )
    assert f"  key {fingerprint(home)}" in home.cli("egg", "verify", str(first)).stdout.splitlines()
    for verb in ("verify", "inspect"):
        assert "✓ signed by this machine\n" in home.cli("egg", verb, str(first)).stdout
    assert "soul.md" in home.cli("egg", "diff", str(first), str(second)).stdout
    assert json.loads(home.cli("egg", "inspect", str(first), "--json").stdout)["egg"]["kind"] == "twin"
    octets = bytearray(second.read_bytes())
    octets[len(octets) // 3] ^= 1
    second.write_bytes(octets)
    broken = home.cli("egg", "verify", str(second), "--json")
    assert broken.returncode == 5
    assert json.loads(broken.stderr)["code"] in ("bad_egg", "hostile_egg")


def test_inspect_reports_trust_in_the_signer(idle: RunningDaemon, kitchen: Gardener) -> None:
    egg, own = kitchen.packed(), fingerprint(kitchen.home)

    def looked(home: RunningDaemon) -> tuple[str, str, str]:
        """The line on the screen; and the two words of the object."""
        as_text = home.cli("egg", "inspect", str(egg)).stdout
        line = next(line for line in as_text.splitlines() if " signed" in line)
        as_object = json.loads(home.cli("egg", "inspect", str(egg), "--json").stdout)["egg"]
        assert as_object["signer"] == ("" if "not signed" in line else own)
        return line, as_object["standing"], as_object["signer_name"]

    assert looked(kitchen.home) == ("✓ signed by this machine", "self", "this machine")
    assert looked(idle) == (f'! signed by key {own[:16]} ("kitchen"), not paired', "unknown", "")
    assert idle.cli("egg", "signers", "--trust", own, "--name", "Grandma's").returncode == 0
    assert looked(idle) == ("✓ signed by Grandma's", "trusted", "Grandma's")
    assert idle.cli("egg", "signers", "--revoke", own).returncode == 0
    assert looked(idle) == (f'! signed by key {own[:16]} ("kitchen"), not paired', "unknown", "")
    with zipfile.ZipFile(egg) as old:
        members = {name: old.read(name) for name in old.namelist() if name != "integrity.json"}
    with zipfile.ZipFile(egg, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)
    assert looked(idle) == ("! not signed", "unsigned", "")


@pytest.mark.parametrize(
    ("form", "kind", "spoken"),
    [
        ("twin", "twin", "gardener, a twin, "),
        ("organism", "organism", "gardener, an organism, "),
        ("agent", "agent", "kettle_agent, an agent, "),
        ("rapp1-organism", "organism", "gardener, an organism, "),
    ],
)
def test_looking_names_the_kind_as_people_say_it(
    kitchen: Gardener, form: str, kind: str, spoken: str
) -> None:
    kitchen.give("agents/kettle_agent.py", KETTLE)
    item = ("--item", "kettle_agent.py") if form == "agent" else ()
    egg = str(kitchen.packed("one.egg", "--form", form, *item))
    said = kitchen.home.cli("egg", "inspect", egg).stdout
    assert said.startswith(spoken), said
    assert json.loads(kitchen.home.cli("egg", "inspect", egg, "--json").stdout)["egg"]["kind"] == kind


def test_existing_file_stays_until_force(kitchen: Gardener) -> None:
    egg = kitchen.packed()
    before = egg.read_bytes()
    kitchen.give("soul.md", "# Another\n")
    refused = kitchen.home.cli("egg", "pack", "gardener", "-o", str(egg))
    assert refused.returncode == 9
    assert "gardener.egg exists already; nothing was packed" in refused.stderr
    assert "→ Name another file, or --force" in refused.stderr
    assert egg.read_bytes() == before
    assert kitchen.home.cli("egg", "pack", "gardener", "-o", str(egg), "--force").returncode == 0
    assert egg.read_bytes() != before

    folder = egg.parent / "folder"
    folder.mkdir()
    refused = kitchen.home.cli("egg", "pack", "gardener", "-o", str(folder), "--force")
    assert refused.returncode == 9
    assert "folder is a folder; nothing was packed" in refused.stderr
    assert "--force" not in refused.stderr, "it does not help here"


def test_likely_secret_is_named_with_line_and_exception(kitchen: Gardener, tmp_path: Path) -> None:
    kitchen.give("agents/mail_agent.py", f'{KETTLE}\nPASSWORD = "hunter2-but-longer-9X"\n')
    line = KETTLE.count("\n") + 2
    done = kitchen.home.cli("egg", "pack", "gardener", "-o", str(tmp_path / "g.egg"))
    assert done.returncode == 5
    found = re.search(
        rf"✗ mail_agent.py line {line} holds a likely [\w ]+  --allow (\w{{16}})\n", done.stderr
    )
    assert found, done.stderr
    assert "not packed\n  → Move it to .env" in done.stderr
    told = json.loads(kitchen.home.cli("egg", "pack", "gardener", "--json").stderr)
    assert told["findings"] == [
        {"path": "mail_agent.py", "line": line, "what": told["findings"][0]["what"], "id": found[1]}
    ]
    assert told["code"] == "secret_found"
    assert (
        kitchen.home.cli(
            "egg", "pack", "gardener", "-o", str(tmp_path / "g.egg"), "--allow", found[1]
        ).returncode
        == 0
    )


def test_extracting_lays_files_out_and_nothing_hatches(
    idle: RunningDaemon, kitchen: Gardener, tmp_path: Path
) -> None:
    egg = with_code(kitchen)
    assert idle.cli("egg", "extract", str(egg), str(tmp_path / "out")).returncode == 0
    out = lies(tmp_path / "out")
    with zipfile.ZipFile(egg) as archive:
        assert {name: out[name] for name in out if name != "manifest.json"} == {
            name: archive.read(name)
            for name in archive.namelist()
            if name not in ("manifest.json", "integrity.json")
        }
    assert json.loads(out["manifest.json"])["scale"] == "twin"
    assert not (idle.home / "twins").exists()
    again = idle.cli("egg", "extract", str(egg), str(tmp_path / "out"))
    assert (again.returncode, lies(tmp_path / "out")) == (9, out)
    assert not list(tmp_path.glob(".out*"))


def test_files_that_would_be_one_are_not_laid_out(tmp_path: Path) -> None:
    from twins.eggs.extracting import lay_out

    def egg(*names: str) -> ParsedEgg:
        parts = tuple(Part(name, Role.OTHER, name, 1, lambda: iter([b"x"])) for name in names)
        family = Family("rapp-egg/2.0", "twin", "ZIP", "")
        return ParsedEgg(family, {}, "x", None, Destination.TWIN, "", parts, Seal(None), "", 1)

    for names in (("a", "A"), ("a", "a/b"), ("../a",), ("/a",), ("a", "a")):
        with pytest.raises(ReportableError):
            lay_out(egg(*names), tmp_path / "out")
        assert list(tmp_path.iterdir()) == []


# Agents of a registry, as a word.


def test_agents_of_a_registry_travel_as_a_short_text(idle: RunningDaemon, tmp_path: Path) -> None:
    from tests.twins.eggs.test_strings import clone, entry

    (tmp_path / "registry").mkdir()
    clone(tmp_path / "registry", entry("@kody/weather", 5), entry("@kody/tides", 1 << 65))
    registry = ("--registry", str(tmp_path / "registry"))
    text = idle.cli("egg", "forge", "@kody/weather", "@kody/tides", *registry).stdout.strip()
    assert text.startswith("v2.")
    told = json.loads(idle.cli("egg", "forge", "@kody/weather", *registry, "--json").stdout)["egg"]
    assert told == {"schema": "rapp-egg/1.0", "seeds": ["5"], "count": 1, "text": "AAAAAAAAAAU"}
    done = idle.cli("egg", "hatch-text", text, *registry)
    assert "! 2 code files wait for your approval: kept, not run." in done.stdout, done
    assert len(list(idle.agents.glob("*_agent.py"))) == 2
    assert idle.cli("egg", "hatch-text", "AAAA", *registry).returncode == 5


def test_mistyped_text_gets_a_suggestion(idle: RunningDaemon, tmp_path: Path) -> None:
    from tests.twins.eggs.test_strings import clone, entry

    (tmp_path / "registry").mkdir()
    clone(tmp_path / "registry", entry("@kody/weather", 5), entry("@kody/tides", 0xF9 << 56))
    registry = ("--registry", str(tmp_path / "registry"))
    for wrong in ("weather", "@kody/wether", "@cody/weather"):
        refused = idle.cli("egg", "forge", wrong, *registry)
        assert refused.returncode == 4
        assert "→ Did you mean @kody/weather?" in refused.stderr
    assert "→ Names look like @owner/agent" in idle.cli("egg", "forge", "xyz", *registry).stderr
    for verb in ("hatch", "inspect", "plan"):
        refused = idle.cli("egg", verb, "AAAAAAAAAAU")
        assert refused.returncode == 4
        assert "rappd egg hatch-text AAAAAAAAAAU --registry FOLDER" in refused.stderr
        assert "egg pack makes one" in idle.cli("egg", verb, "rose.egg").stderr
    dashed = idle.cli("egg", "forge", "@kody/tides", *registry).stdout.strip()
    assert dashed.startswith("-")
    assert "hatched: 1 file." in idle.cli("egg", "hatch-text", dashed, *registry).stdout


def test_a_registry_is_named_once_for_all(idle: RunningDaemon, tmp_path: Path) -> None:
    from tests.twins.eggs.test_strings import clone, entry

    (tmp_path / "registry").mkdir()
    clone(tmp_path / "registry", entry("@kody/weather", 5))
    for asked in (("forge", "@kody/weather"), ("hatch-text", "AAAAAAAAAAU")):
        refused = idle.cli("egg", *asked)
        assert refused.returncode == 2
        assert "There is no registry to look in" in refused.stderr
        assert "config set eggs.registry FOLDER" in refused.stderr
    idle.start()
    named = idle.cli("config", "set", "eggs.registry", str(tmp_path / "registry"))
    assert named.returncode == 0
    assert "next start" not in named.stderr, "each command reads it anew"
    assert idle.cli("egg", "forge", "@kody/weather").stdout.strip() == "AAAAAAAAAAU"
    assert "hatch-text AAAAAAAAAAU\n" in idle.cli("egg", "hatch", "AAAAAAAAAAU").stderr
    assert "hatched: 1 file." in idle.cli("egg", "hatch-text", "AAAAAAAAAAU").stdout
    elsewhere = idle.cli("egg", "forge", "@kody/weather", "--registry", str(tmp_path))
    assert elsewhere.returncode != 0


# What hints name.


def test_every_command_that_a_hint_names_exists() -> None:
    import click

    from rappd.cli.app import rappd

    named: dict[tuple[str, str], str] = {}
    for package in ("envelopes", "agents", "twins", "neighborhoods", "rappd"):
        for file in (REPO / package).rglob("*.py"):
            for found in re.finditer(
                r'do=f?"[^"\n]*?\brappd ([a-z]+)(?: ([a-z][a-z_-]*))?', file.read_text()
            ):
                named.setdefault((found[1], found[2] or ""), str(file))
    assert ("egg", "hatchings") in named
    context = click.Context(rappd)
    for (first, second), file in named.items():
        if first in ("is", "on", "running", "runs", "there", "tries"):  # "once rappd is running"
            continue
        verb = rappd.get_command(context, first)
        assert verb is not None, (first, file)
        if isinstance(verb, click.Group) and second:
            assert second in verb.list_commands(click.Context(verb)), (first, second, file)


@pytest.mark.parametrize("role", list(Role))
def test_plan_names_each_kind_of_file_that_it_counts(role: Role) -> None:
    assert egg_view._what({role.value: 2}), "a plan counts what it names"
    page = (Path(egg_view.__file__).parents[2] / "web/components/eggs/plan-rows.js").read_text()
    named = page[page.index("const CODE") : page.index("const CATEGORIES")]
    assert re.search(rf"\b{role.value}\b", named)


def test_web_address_is_fetched_by_each_command(
    idle: RunningDaemon, kitchen: Gardener, fake_web: Callable[[Path], str]
) -> None:
    url = fake_web(kitchen.packed())
    assert "✓ Complete" in idle.cli("egg", "inspect", url).stdout
    assert "  New          3  " in idle.cli("egg", "plan", url).stdout
    assert "hatched: 3 files" in idle.cli("egg", "hatch", url, "--yes").stdout
    assert "Nothing to do" in idle.cli("egg", "plan", url).stdout
    missing = idle.cli("egg", "plan", f"{url}.not.egg")
    assert (missing.returncode, "answered 404" in missing.stderr) == (1, True)


@pytest.fixture
def fake_web() -> Iterator[Callable[[Path], str]]:
    """Serves the folder of a file, and gives the file's address."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def serve(file: Path) -> str:
        handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(file.parent))
        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/{file.name}"

    yield serve
    for one in servers:
        one.shutdown()
