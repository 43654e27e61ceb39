"""``rappd chat``: one sentence, or a conversation."""

from __future__ import annotations

import sys
import time
import uuid
from typing import Any

import click

from rappd.cli.daemon import Daemon
from rappd.cli.screen import complain, dim, interactive, note, print_json, say, terminal_width
from rappd.home import Home

_HELP = """\
/help    this list
/new     forget this conversation and start anew
/agents  what I can use
/exit    leave (or Ctrl-D)"""


@click.command()
@click.argument("text", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="The whole answer as one JSON object.")
@click.option("--user", "user_guid", default="", help="Whose memory to use (a GUID).")
@click.option("--session", "session_id", default="", help="Go on with this conversation.")
def chat(text: tuple[str, ...], as_json: bool, user_guid: str, session_id: str) -> None:
    """Talk. Without TEXT, a conversation."""
    daemon = Daemon(Home.here(), timeout=600)
    status = daemon.get("/operator/status")
    talk = _Talk(daemon, str(status["name"]), session_id or str(uuid.uuid4()), user_guid)
    sentence = " ".join(text).strip()
    if not sentence and not sys.stdin.isatty():
        sentence = sys.stdin.read().strip()
    if sentence:
        answer = talk.ask(sentence, show=not as_json)
        if as_json:
            print_json({"chat": answer})
        if "error" in answer:
            if not as_json:
                complain(answer["error"], answer.get("do", ""), answer.get("code", "failed"), as_json=False)
            raise click.exceptions.Exit(1)
        return
    _converse(talk, status)


class _Talk:
    """A session with its history."""

    def __init__(self, daemon: Daemon, name: str, session_id: str, user_guid: str) -> None:
        self.daemon = daemon
        self.name = name
        self.session_id = session_id
        self.user_guid = user_guid
        self.history: list[dict[str, str]] = []
        self.turn_id = ""

    def ask(self, text: str, *, show: bool, label: str = "") -> dict[str, Any]:
        """Sends one sentence; shows what happens as it happens. Returns the answer or the error."""
        self.turn_id = str(uuid.uuid4())
        body: dict[str, Any] = {
            "user_input": text,
            "conversation_history": self.history,
            "session_id": self.session_id,
            "turn_id": self.turn_id,
        }
        if self.user_guid:
            body["user_guid"] = self.user_guid
        last: dict[str, Any] = {"error": "The connection ended.", "do": "rappd status", "code": "gone"}
        for event in self.daemon.events("/chat/stream", body):
            match event["type"]:
                case "call" if show:
                    self._show_call(event, label)
                case "result" if show:
                    self._show_result(event)
                case "done" | "error":
                    last = event
        if show and last["type"] == "done":
            _show_answer(last["response"], label)
        if last["type"] == "done":
            self.history += [
                {"role": "user", "content": text},
                {"role": "assistant", "content": last["response"]},
            ]
        return last

    def _show_call(self, event: dict[str, Any], label: str) -> None:
        arguments = " ".join(f"{key}={value}" for key, value in event["args"].items())
        self._called = f"{' ' * len(label)}{event['name']} {arguments}".rstrip()

    def _show_result(self, event: dict[str, Any]) -> None:
        seconds = f"{event['seconds']:.1f} s" if event["seconds"] >= 0.05 else ""
        width = terminal_width()
        room = max(10, width - len(seconds) - 2)
        line = self._called if len(self._called) <= room else self._called[: room - 1] + "…"
        note(dim(f"{line:<{room}}{'' if event['ok'] else '✗ '}{seconds}".rstrip()))

    _called = ""


def _converse(talk: _Talk, status: dict[str, Any]) -> None:
    left = f"{talk.name}, {status['provider']}, {status['agents']} agents"
    say(f"{left:<62}/help  /exit" if terminal_width() >= 76 else left)
    _line_editing()
    label = f"{talk.name[:12]}  "
    while True:
        try:
            text = input(f"{'you':<{len(label)}}").strip()
        except EOFError:
            say()
            return
        except KeyboardInterrupt:
            say()
            continue
        match text:
            case "":
                continue
            case "/exit" | "/quit":
                return
            case "/help":
                say(_HELP)
                continue
            case "/new":
                talk.history.clear()
                talk.session_id = str(uuid.uuid4())
                say(dim("A new conversation."))
                continue
            case "/agents":
                for name in talk.daemon.get("/health")["agents"]:
                    say(f"  {name}")
                continue
        _one_turn(talk, text, label)


def _one_turn(talk: _Talk, text: str, label: str) -> None:
    started = time.monotonic()
    try:
        answer = talk.ask(text, show=True, label=label)
    except KeyboardInterrupt:
        talk.daemon.post("/chat/cancel", {"turn_id": talk.turn_id})
        note(dim(f"Stopped after {time.monotonic() - started:.1f} s."))
        return
    if "error" in answer:
        complain(answer["error"], answer.get("do", ""), answer.get("code", "failed"), as_json=False)


def _show_answer(text: str, label: str) -> None:
    if not label:
        say(text)
        return
    if sys.stdout.isatty() and any(sign in text for sign in ("**", "```", "\n- ", "\n1.", "](")):
        from rich.console import Console
        from rich.markdown import Markdown
        from rich.padding import Padding

        say(label.rstrip())
        Console().print(Padding(Markdown(text, hyperlinks=False), (0, 0, 0, len(label))))
        return
    indent = "\n" + " " * len(label)
    say(label + text.replace("\n", indent))


def _line_editing() -> None:
    """Arrow keys and history in the prompt, where the platform has readline."""
    if interactive():
        try:
            import readline  # noqa: F401 - importing it is what switches line editing on
        except ImportError:
            return
