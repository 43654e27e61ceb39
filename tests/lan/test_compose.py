"""``docker-compose.yml``: a proper one, whose every command exists, and does on three machines what it says.

The same scripts run here as in containers: each service is a network namespace, its volumes are folders.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema_rs
import pytest
import yaml
from fixtures.running_daemon import REPO

from lan.network import Lan, Machine
from rappd.cli.app import rappd
from rappd.settings.registry import BY_VARIABLE

COMPOSE = REPO / "docker-compose.yml"
DOCKERFILE = REPO / "Dockerfile"
SCRIPTS = sorted((REPO / "containers").glob("*.sh"))
SCHEMA = Path(__file__).with_name("compose_spec") / "compose_spec.json"
IN_IMAGE = "/app/containers/"
MACHINES = ("desk", "pi", "shed")
PATIENCE = 240.0


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return found


@pytest.fixture(scope="module")
def validator() -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()))


def test_it_is_what_the_specification_allows(
    compose: dict[str, Any], validator: jsonschema_rs.Validator
) -> None:
    assert [str(error) for error in validator.iter_errors(compose)] == []
    wrong = {**compose, "services": {"desk": {**compose["services"]["desk"], "comand": "x"}}}
    assert not validator.is_valid(wrong), "a schema that lets everything pass"


def test_all_that_it_refers_to_is_there(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert services.keys() == {*MACHINES, "pair", "demo"}
    for name, service in services.items():
        assert (REPO / service["build"] / "Dockerfile").exists()
        assert set(service["networks"]) <= compose["networks"].keys()
        assert service.get("depends_on", {}).keys() <= services.keys()
        for volume in service["volumes"]:
            source, _, target = volume.partition(":")
            assert source in compose["volumes"], f"{name}: {volume}"
            assert target == f"/homes/{source}"
            assert target in DOCKERFILE.read_text(), "else root owns the volume"
        for variable in service["environment"]:
            assert variable in BY_VARIABLE or variable in ("RAPP_HOME", "HOMES"), variable
    for name in MACHINES:
        assert services[name]["environment"] == {"RAPP_HOME": f"/homes/{name}", "RAPPD_NAME": name}
        assert services["pair"]["depends_on"][name] == {"condition": "service_healthy"}
    assert services["demo"]["profiles"] == ["demo"]
    assert services["demo"]["depends_on"]["pair"] == {"condition": "service_completed_successfully"}


def test_compose_opens_nothing_and_has_least_rights(
    compose: dict[str, Any],
) -> None:
    for service in compose["services"].values():
        assert not service.keys() & {"ports", "network_mode", "privileged", "cap_add", "pid", "devices"}
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True


def test_every_command_is_there_and_can_be_run(compose: dict[str, Any]) -> None:
    commands = [service["command"] for service in compose["services"].values()]
    commands.append(json.loads(re.findall(r"^CMD (.*)$", DOCKERFILE.read_text(), re.MULTILINE)[-1]))
    used = {here(command)[0] for command in commands}
    assert used == {str(script) for script in SCRIPTS}
    for script in SCRIPTS:
        assert os.access(script, os.X_OK)
        subprocess.run(["sh", "-n", script], check=True)


def test_every_verb_and_option_exists(compose: dict[str, Any]) -> None:
    lines = [probe(compose["services"][name]) for name in MACHINES]
    health = re.search(r"HEALTHCHECK .*CMD (\[.*\])", DOCKERFILE.read_text())
    assert health
    lines.append(json.loads(health[1]))
    comments = [line for line in COMPOSE.read_text().splitlines() if line.startswith("#   docker")]
    texts = [script.read_text() for script in SCRIPTS] + comments
    for text in texts:
        code = "\n".join(line for line in text.splitlines() if not re.match(r"#(?!   )", line))
        lines += [found.split() for found in re.findall(r"(?:rappd|\bon \"\$1\") ([a-z][^|;)\n]+)", code)]
    assert len(lines) > 8
    for words in lines:
        exists(words)


def exists(words: list[str]) -> None:
    """Fails unless the words after ``rappd`` are verbs and options of them."""
    verb: click.Command = rappd
    for word in words:
        if isinstance(verb, click.Group) and not word.startswith("-") and word != "rappd":
            found = verb.get_command(click.Context(verb), word)
            assert found is not None, words
            verb = found
    assert verb is not rappd, words
    options = {option for parameter in verb.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options, words


def test_image_is_small_and_unprivileged() -> None:
    text = DOCKERFILE.read_text()
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert set(bases) == {"python:3.11-slim"}, "no registry's host name"
    assert text.count("--require-hashes -r requirements/") == 2
    assert "--no-deps --no-build-isolation ." in text, "for rappd itself nothing is fetched"
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER (?!root|0)\w+$", last, re.MULTILINE)
    assert last.index("\nUSER ") < last.index("\nCMD ")
    installed = re.search(r"apt-get install .*--no-install-recommends (.*) \\\n", last)
    assert installed and set(installed[1].split()) == {"git", "openssh-client"}, "what snapshots are made by"
    let_in = {line[1:] for line in (REPO / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for name in let_in:
        assert (REPO / name).exists(), name
    project = (REPO / "pyproject.toml").read_text()
    packages = re.search(r"^packages = (\[.*\])$", project, re.MULTILINE)
    assert packages
    assert {*json.loads(packages[1]), "containers", "requirements", "pyproject.toml"} <= let_in


# The same commands, on three machines.


def here(command: list[str]) -> list[str]:
    """A command of the image, as it is called in this checkout."""
    assert command[0].startswith(IN_IMAGE)
    return [str(REPO / "containers" / command[0].removeprefix(IN_IMAGE)), *command[1:]]


def probe(service: dict[str, Any]) -> list[str]:
    """The program of its health check."""
    kind, *words = service["healthcheck"]["test"]
    assert kind == "CMD"
    return list(words)


class Started:
    """The services as machines of a network; volumes are folders of one place."""

    def __init__(self, lan: Lan, compose: dict[str, Any], folder: Path) -> None:
        self._services, self._folder = compose["services"], folder
        self._machines: dict[str, Machine] = {}
        for name in MACHINES:
            self._machines[name] = lan.machine(name)
            volume = folder / name
            volume.mkdir(mode=0o700)
        self._elsewhere = lan.machine("elsewhere")  # containers that only talk through sockets

    def up(self) -> None:
        """Starts the machines, and waits until each is healthy."""
        for name in MACHINES:
            self._machines[name].start(
                self._scrubbed(name, here(self._services[name]["command"])),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=(self._folder / f"{name}.out").open("wb"),
                stderr=subprocess.STDOUT,
            )
        for name in MACHINES:
            until = time.monotonic() + PATIENCE
            while (checked := self._run(self._machines[name], name, probe(self._services[name]))).returncode:
                assert time.monotonic() < until, f"{checked.stderr}\n{self.log(name)}"
                time.sleep(0.3)

    def ends(self, name: str) -> str:
        """Runs a service to its end; what it printed."""
        done = self._run(self._elsewhere, name, here(self._services[name]["command"]))
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n" + "".join(map(self.log, MACHINES))
        return done.stdout

    def types(self, name: str, *words: str) -> str:
        """Runs what a machine's owner types there, as ``docker compose exec`` has it."""
        done = self._run(self._machines[name], name, ["rappd", *words])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def log(self, name: str) -> str:
        told = (self._folder / f"{name}.out").read_text()
        log = self._folder / name / "rappd.log"
        return f"{name}: {told}{log.read_text()[-2000:] if log.exists() else ''}"

    def _run(self, machine: Machine, name: str, words: list[str]) -> subprocess.CompletedProcess[str]:
        return machine.run(self._scrubbed(name, words), cwd="/", stdin=subprocess.DEVNULL, timeout=PATIENCE)

    def _scrubbed(self, name: str, words: list[str]) -> list[str]:
        """As in a container: the image's environment, then the service's, and nothing of this process's."""
        ours = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "LANG": "C.UTF-8",
            "HOME": str(self._folder),
            **self._services[name]["environment"],
        }
        moved = (
            f"{key}={value.replace('/homes', str(self._folder), 1)}" for key, value in ours.items() if value
        )
        return ["env", "-i", *moved, *words]


@pytest.fixture
def started(lan: Lan, compose: dict[str, Any], tmp_path: Path) -> Iterator[Started]:
    made = Started(lan, compose, tmp_path)
    made.up()
    yield made
    lan.close()


@pytest.mark.needs_root
@pytest.mark.timeout(900)
def test_three_machines_find_trust_and_ask_each_other(started: Started) -> None:
    until = time.monotonic() + PATIENCE
    while (found := _rows(started, "desk")).keys() != {"pi", "shed"}:
        assert time.monotonic() < until, f"found only {sorted(found)}"
        time.sleep(0.3)
    assert {(row["presence"], row["paired"], row["reached"]) for row in found.values()} == {
        ("found", False, "nearby")
    }
    assert "Found, not trusted:" in started.types("desk", "peers", "list")

    assert started.ends("pair").count("Paired.") == 6
    for name in MACHINES:
        rows = _rows(started, name)
        assert rows.keys() == {*MACHINES} - {name}
        assert all(row["paired"] and row["whose"] == "mine" for row in rows.values())
        for other, row in rows.items():
            assert row["fingerprint"] == _self(started, other)

    told = started.ends("demo")
    assert re.search(r"^pi +here, \d+ ms +nearby ", told, re.MULTILINE), told
    assert re.search(r"^\$ rappd call pi:Thermometer\n.*°C", told, re.MULTILINE), told
    assert re.search(r"^today: \d+ mm$", told, re.MULTILINE), told
    for sentence in re.findall(r'exec desk rappd chat "(.+)"', COMPOSE.read_text()):
        assert "°C" in started.types("desk", "chat", sentence)

    assert started.ends("pair").count("Paired.") == 6, "it can be run again"
    assert {row["paired"] for row in _rows(started, "desk").values()} == {True}


@pytest.mark.needs_root
def test_machine_on_its_computers_network_lets_a_phone_join(lan: Lan, tmp_path: Path) -> None:
    """The way of the comment for phones: a container of the image, with no more than the image's environment."""
    ran = re.search(r"^#   docker run .* --network host --volume \w+:(\S+) rappd$", COMPOSE.read_text(), re.M)
    assert ran and f"RAPP_HOME={ran[1]}\n" in DOCKERFILE.read_text()
    computer = lan.machine("computer")
    image = ["env", "-i", f"RAPP_HOME={tmp_path}", "LANG=C.UTF-8", f"PYTHONPATH={REPO}"]
    image.append(f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}")
    computer.start([*image, *here([f"{IN_IMAGE}machine.sh"])], cwd="/", stdin=subprocess.DEVNULL)
    until = time.monotonic() + PATIENCE
    while computer.run([*image, "rappd", "status", "--json"], cwd="/", timeout=PATIENCE).returncode:
        assert time.monotonic() < until
        time.sleep(0.3)
    pairing = computer.run([*image, "rappd", "pair", "--ttl", "1", "--json"], cwd="/", timeout=PATIENCE)
    shown = json.loads(pairing.stdout.splitlines()[0])
    assert f"//{computer.address}:7072/" in json.dumps(shown), shown


def _rows(started: Started, name: str) -> dict[str, dict[str, Any]]:
    listed = json.loads(started.types(name, "peers", "list", "--json"))
    return {row["name"]: row for row in listed["peers"]}


def _self(started: Started, name: str) -> str:
    listed = json.loads(started.types(name, "peers", "list", "--json"))
    return str(listed["self"]["fingerprint"])
