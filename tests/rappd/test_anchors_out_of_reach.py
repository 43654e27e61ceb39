"""No agent reaches the anchors of the event log, in any sandbox mode."""

from __future__ import annotations

import json

from fixtures.sandboxed_daemon import NO_SANDBOX, SandboxedDaemon, sandboxed_daemon_in

ATTACKS = {
    "read": "open({path!r}, 'rb').read(4)",
    "write": "open({path!r}, 'r+b').write(b'forged')",
    "remove": "__import__('os').unlink({path!r})",
    "replace": "__import__('os').rename('.brainstem_data/forged', {path!r})",
    "link": "__import__('os').link({path!r}, '.brainstem_data/link')",
    "list": "__import__('os').listdir({folder!r}) and open({path!r}, 'ab')",
}


def test_agent_cannot_reach_the_anchors(sandboxed_daemon: SandboxedDaemon) -> None:
    daemon = sandboxed_daemon
    daemon.start()
    path = daemon.home / "anchors.db"
    assert path.read_bytes().startswith(b"SQLite format 3")
    own = str(daemon.home / "brainstem" / ".brainstem_data" / "mine")
    control = daemon.run_code(f"return open({own!r}, 'wb').write(b'forged')", "Control")
    assert control["ok"], control
    daemon.run_code("return open('.brainstem_data/forged', 'wb').write(b'forged')", "Preparing")
    for name, attack in ATTACKS.items():
        code = attack.format(path=str(path), folder=str(daemon.home))
        tried = daemon.run_code(f"return repr({code})", f"Attack{name.capitalize()}")
        assert not tried["ok"], (name, tried)
    assert path.read_bytes().startswith(b"SQLite format 3")
    report = json.loads(daemon.cli("threads", "verify", "--json").stdout)["verify"]
    assert report["found"] == 0


def test_probe_reaches_the_anchors_without_a_sandbox() -> None:
    with sandboxed_daemon_in(NO_SANDBOX, LLM_FAKE="1") as daemon:
        daemon.start()
        path = str(daemon.home / "anchors.db")
        read = daemon.run_code(f"return repr(open({path!r}, 'rb').read(6))", "Reader")
    assert read["ok"], "the probe works where nothing stands against it"
    assert "SQLite" in str(read)
