"""Needs read from the text of files that are not run, and how they are told to people."""

from __future__ import annotations

from pathlib import Path

import pytest

import agents.library
import agents.rapps
from agents.contract.declared_needs import declared_in
from agents.runtimes.python.sandbox.needs import NOTHING, Needs, in_words, unheld, yes_digest

CLASS = "class A:\n    def __init__(self):\n        {}\n"
LIBRARY = sorted(Path(agents.library.__path__[0]).glob("[a-z]*_*.py"))
RAPPS = sorted(Path(agents.rapps.__path__[0]).glob("*/*/*_*.py"))


@pytest.mark.parametrize(
    ("name", "source", "needs"),
    [
        pytest.param("a_agent.py", "x = 1", None, id="agent that declares nothing"),
        pytest.param("a_listener.py", "x = 1", NOTHING, id="listener that declares nothing"),
        pytest.param("a.lispy", "(needs)", NOTHING, id="LisPy"),
        pytest.param(
            "a_agent.py",
            CLASS.format("self.metadata = {'needs': {'read': ['~/a/', '/b'], 'programs': ['git']}}"),
            Needs(read=("/b", "~/a"), programs=("git",)),
            id="metadata",
        ),
        pytest.param(
            "a_agent.py",
            CLASS.format("metadata = {'needs': {'hosts': ['B.org', '*.a.org:8443', '$API']}}"),
            Needs(hosts=("$API", "*.a.org:8443", "b.org")),
            id="metadata in a variable",
        ),
        pytest.param(
            "a_agent.py",
            CLASS.format("self.metadata['needs'] = {'write': ['~']}"),
            Needs(write=("~",)),
            id="entry",
        ),
        pytest.param("a_agent.py", "__manifest__ = {'needs': {}}", NOTHING, id="manifest"),
        pytest.param(
            "a_agent.py",
            "__manifest__ = {'needs': {'hosts': ['a.org']}}\n"
            + CLASS.format("self.metadata = {'needs': {'hosts': ['b.org']}}"),
            Needs(hosts=("a.org", "b.org")),
            id="all of a file together",
        ),
        pytest.param(
            "a_listener.py",
            "@listener(needs={'hosts': ['[::1]:80']})\nclass P: pass",
            Needs(hosts=("[::1]:80",)),
            id="decorator",
        ),
        pytest.param(
            "a_agent.py", "def f():\n    metadata = {'needs': x}", None, id="a variable of a function"
        ),
    ],
)
def test_needs_are_read_from_the_text(name: str, source: str, needs: Needs | None) -> None:
    found = declared_in(name, source.encode())
    assert (found.needs, found.fault) == (needs, "")


@pytest.mark.parametrize(
    ("needs", "fault"),
    [
        pytest.param("THEM", "not written out", id="no literal"),
        pytest.param("'all'", "no dict", id="no dict"),
        pytest.param("{'reads': []}", '"reads"', id="unknown kind"),
        pytest.param("{'read': '~/a'}", "no list", id="no list"),
        pytest.param("{'read': ['a']}", "neither / nor ~/", id="relative"),
        pytest.param("{'write': ['agents']}", "neither / nor ~/", id="writing among the agents"),
        pytest.param("{'read': ['~/../other']}", '".."', id="upwards"),
        pytest.param("{'hosts': ['http://a.org']}", "no host", id="address of the web"),
        pytest.param("{'hosts': ['a.org:99999']}", "no host", id="port"),
        pytest.param("{'hosts': ['1.2.3']}", "no address", id="half an address"),
        pytest.param("{'programs': ['rm -rf']}", "no program", id="command line"),
        pytest.param("{'read': ['/a\\n']}", "no text", id="line break"),
        pytest.param("{'read': ['~/a\\u202egnp']}", "no text", id="written backwards"),
        pytest.param("{'read': ['/']}", "not given to any agent", id="everything"),
        pytest.param("{'read': ['//.']}", "not given to any agent", id="everything in other letters"),
        pytest.param("{'write': ['/proc/self/root/etc']}", "not given to any agent", id="through a process"),
        pytest.param("{'read': ['//proc/1/root']}", "not given to any agent", id="two slashes"),
        pytest.param("{'read': ['/sys', '/dev/mem']}", "not given to any agent", id="the kernel"),
        pytest.param("{'read': ['~/*']}", "name each one", id="pattern"),
        pytest.param("{'read': ['~root/x']}", "neither / nor ~/", id="another's home"),
        pytest.param("{'read': ['$RAPP_HOME/keys']}", "neither / nor ~/", id="variable"),
        pytest.param("{'hosts': ['one@two.org']}", "no host", id="account and server"),
        pytest.param("{'hosts': ['a.org/b']}", "no host", id="server and path"),
        pytest.param("{'hosts': ['a.*']}", "no host", id="star at the end"),
        pytest.param("{'hosts': ['*a.org']}", "no host", id="half a star"),
        pytest.param("{'hosts': ['2130706433']}", "no address", id="address as a number"),
        pytest.param("{'hosts': ['b\\u00fccher.org']}", "no host", id="other letters"),
        pytest.param("{'programs': ['/bin/../../x']}", "no program", id="program upwards"),
        pytest.param("{'programs': ['a/b']}", "no program", id="program in a folder"),
        pytest.param("{'variables': ['a b']}", "no variable", id="no variable"),
        pytest.param("{'variables': ['*']}", "no variable", id="all variables"),
        pytest.param("dict(read=[])", "not written out", id="made when it runs"),
        pytest.param("{'read': ['~/a' + 'b']}", "not written out", id="put together"),
    ],
)
def test_bad_needs_are_a_fault_with_a_line(needs: str, fault: str) -> None:
    found = declared_in("a_agent.py", f"\n__manifest__ = {{'needs': {needs}}}".encode())
    assert found.needs == NOTHING, "nothing more than its own storage"
    assert fault in found.fault and found.line == 2


def test_every_shipped_file_declares() -> None:
    assert LIBRARY and RAPPS
    for file in (*LIBRARY, *RAPPS):
        content = file.read_bytes()
        assert b'"needs": {' in content and not declared_in(file.name, content).fault, file.name


def test_needs_in_words_and_a_yes_to_them() -> None:
    asked = Needs(("~/a", "~/b"), ("~/c",), ("$API", "a.org"), ("git",))
    assert in_words(asked) == [
        "reads ~/a and ~/b", "changes ~/c", "talks to the server that your API names and a.org", "starts the program git",
    ]  # fmt: skip
    assert in_words(Needs(hosts=("*",))) == ["talks to every server of the internet"]
    assert in_words(Needs(variables=("KEY", "WORD"))) == ["is given your KEY and WORD"]
    assert asked.servers({"API": "http://10.0.0.1:8080/v1"}) == ("10.0.0.1:8080", "a.org")
    assert (
        len({yes_digest("a", asked), yes_digest("b", asked), yes_digest("a", None), yes_digest("a", NOTHING)})
        == 4
    )


def test_environment_has_ordinary_variables_and_named_ones() -> None:
    ordinary = {"PATH": "/bin", "HOME": "/home/a", "LANG": "C", "LC_TIME": "C", "TZ": "UTC"}
    proxy = {"HTTPS_PROXY": "http://me:word@proxy:1", "no_proxy": "a"}
    given = ordinary | proxy | {"KEY": "1", "OTHER": "2", "API": "http://a", "AWS_SECRET": "3"}
    assert NOTHING.environment(given) == ordinary
    assert Needs(variables=("KEY", "MISSING")).environment(given) == ordinary | {"KEY": "1"}
    assert Needs(hosts=("$API",)).environment(given) == ordinary | proxy | {"API": "http://a"}


@pytest.mark.parametrize(
    ("needs", "sandbox", "is_held"),
    [
        pytest.param(
            Needs(hosts=("a",)), {"kind": "mount namespace", "network": True}, True, id="network of its own"
        ),
        pytest.param(Needs(hosts=("a",)), {"kind": "landlock", "network": False}, False, id="files alone"),
        pytest.param(NOTHING, {"kind": "landlock", "network": False}, True, id="no network"),
        pytest.param(NOTHING, {"kind": "landlock", "unfiltered": "x"}, False, id="no filter"),
        pytest.param(NOTHING, {"kind": "none"}, False, id="none"),
    ],
)
def test_machine_says_what_it_cannot_hold(needs: Needs, sandbox: dict[str, object], is_held: bool) -> None:
    assert (unheld(needs, sandbox) == "") is is_held
