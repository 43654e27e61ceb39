"""``rappd chat``: one sentence, or a conversation."""

from __future__ import annotations

import re
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import click

from envelopes.errors import ReportableError
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import (
    dim,
    interactive,
    print_err,
    print_error,
    print_out,
    redraws,
    status_mark,
    strip_control,
    terminal_width,
    wrapped,
)
from rappd.cli.formatting import count, took
from rappd.cli.printer import Printer, json_option
from rappd.cli.tables import cells, middle
from rappd.control_client import ControlClient, ResponseError
from rappd.daemon.home import Home
from rappd.errors import RappdError, UsageProblemError
from rappd.features.conversations.turn_renderer import EDGE, TurnRenderer
from rappd.features.operator.text import thinking

if TYPE_CHECKING:
    from envelopes.codecs.pictures import Picture

Verb = TypeVar("Verb", bound=Callable[..., None])

_HELP = """\
/help    this list
/new     forget this conversation and start anew
/agents  what I can use
/model   which model answers here; /model NAME: another, auto: the usual
/exit    leave (or Ctrl-D); Ctrl-C stops an answer"""
_KEYS = "/help  /exit"
_REMEMBERED = 200  # messages that go along as history
_BRAINSTEM = "brainstem"  # as conversations name it


@dataclass(slots=True, frozen=True)
class ChatTarget:
    """The partner of a chat: ``path`` comes before ``/chat``, ``command`` is what was typed to talk to it."""

    name: str
    path: str
    command: str
    agents: Callable[[], Sequence[str]]


def talks(command: Verb) -> Verb:
    """Gives a verb the options of all that talk; their values are what ``talk`` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.argument("text", nargs=-1),
    json_option("The whole answer as one JSON object."),
    click.option("--user", "user_guid", default="", help="Whose memory to use (a GUID)."),
    click.option("--session", "session_id", default="", help="Go on with this conversation."),
    click.option(
        "--model", default="", help="The model that answers this conversation; auto is the usual one."
    ),
    click.option(
        "--picture",
        "files",
        type=click.Path(path_type=Path),
        multiple=True,
        help="A PNG, JPEG, GIF or WebP that goes with the sentence; repeatable.",
    ),
)


@cli_command()
@talks
def chat(**given: Any) -> None:
    """Talk. Without TEXT, a conversation."""
    daemon = ControlClient(Home.here(), timeout=600)
    status = daemon.get("/operator/status")
    host = ChatTarget(str(status["name"]), "", "rappd chat", lambda: daemon.get("/health")["agents"])
    talk(daemon, host, status, **given)


def talk(
    daemon: ControlClient,
    partner: ChatTarget,
    status: dict[str, Any],
    *,
    text: Sequence[str],
    printer: Printer,
    user_guid: str,
    session_id: str,
    model: str,
    files: Sequence[Path],
) -> None:
    """One sentence and its answer, or a conversation where there is a terminal and no sentence.

    The pictures in ``files`` go with the first sentence.
    """
    session = _ChatSession(daemon, partner, session_id or str(uuid.uuid4()), user_guid)
    if session_id:
        session.remember()
    if files:
        from rappd.features.conversations.picture_files import read_pictures

        session.pictures = read_pictures(files)
    sentence = " ".join(text).strip()
    if not sentence and not sys.stdin.isatty():
        sentence = sys.stdin.read().strip()
    if not sentence and (printer.for_scripts or not sys.stdin.isatty()):
        raise UsageProblemError("TEXT is missing.", do=f'{partner.command} "what can you do?"')
    if model:
        session.choose_model(model)
    if not sentence:
        _converse(session, status)
        return
    answer = session.ask(sentence, None if printer.for_scripts else TurnRenderer(""))
    printer.note(session.tell_news)
    printer.result({"chat": answer}, lambda _: None)  # the words were printed as they came


class _ChatSession:
    """A session with its history."""

    def __init__(self, daemon: ControlClient, partner: ChatTarget, session_id: str, user_guid: str) -> None:
        self.partner = partner
        self._daemon = daemon
        self._user_guid = user_guid
        self._session_id = session_id
        self._history: list[dict[str, Any]] = []
        self.pictures: list[Picture] = []
        """Files that go with the next sentence."""
        self._model = ""

    def remember(self) -> None:
        """Takes along what was said before in the conversation, wherever that was."""
        partner, whose = self.partner.path.rpartition("/")[2] or _BRAINSTEM, {"user_guid": self._user_guid}
        before: str | None = ""
        while before is not None:
            query = urlencode({"limit": _REMEMBERED, "before": before, **whose})
            page = self._daemon.get(f"/conversations?{query}")
            for row in page["conversations"]:
                if (row["session"], row["with"]) == (self._session_id, partner):
                    query = urlencode({"limit": _REMEMBERED // 2, **whose})
                    for turn in self._daemon.get(f"/conversations/{row['id']}?{query}")["turns"]:
                        if turn["user"] and turn["text"]:
                            self._remember(turn["user"], turn["text"])
                    return
            before = page["next"]

    def _remember(self, text: str, answer: str, **beside: Any) -> None:
        self._history += [
            {"role": "user", "content": text, **beside},
            {"role": "assistant", "content": answer},
        ]

    def choose_model(self, model: str) -> str:
        """Has ``model`` answer this conversation, and those begun anew. Returns the one that answers now."""
        chosen = self._about_model({"model": model})
        self._model = model
        return chosen

    def model(self) -> str:
        """The model that answers here."""
        return self._about_model({})

    def _about_model(self, fields: dict[str, str]) -> str:
        body = {"session_id": self._session_id, **fields}
        if self._user_guid:
            body["user_guid"] = self._user_guid
        return str(self._daemon.post(f"{self.partner.path}/chat/model", body)["model"])

    def tell_news(self) -> None:
        """Prints what happened while nobody looked, a line each, once."""
        with suppress(ReportableError):  # the answer counts; they go on waiting
            for line in self._daemon.do("notices.tell")["told"]:
                print_err(f"{status_mark('note', sys.stderr)} {strip_control(line)}")

    def begin_anew(self) -> None:
        """Forgets what was said."""
        self._history.clear()
        self.pictures = []
        self._session_id = str(uuid.uuid4())
        if self._model:
            self.choose_model(self._model)

    def ask(self, text: str, spoken: TurnRenderer | None) -> dict[str, Any]:
        """Sends one sentence and shows what happens as it happens. Returns the answer's fields.

        Raises what the turn ended with. Ctrl-C stops the turn in the daemon too, then goes on up.
        """
        turn_id = str(uuid.uuid4())
        body: dict[str, Any] = {
            "user_input": text,
            "conversation_history": self._history[-_REMEMBERED:],
            "session_id": self._session_id,
            "turn_id": turn_id,
        }
        if self._user_guid:
            body["user_guid"] = self._user_guid
        sent, self.pictures = self.pictures, []
        beside = {"pictures": sent} if sent else {}
        body |= beside
        try:
            last = self._follow(body, spoken)
        except KeyboardInterrupt:
            with suppress(ReportableError):  # it may have ended by itself
                self._daemon.post("/chat/cancel", {"turn_id": turn_id})
            raise
        finally:
            if spoken:
                spoken.end()
        self._remember(text, str(last["response"]), **beside)
        return last

    def _follow(self, body: dict[str, Any], spoken: TurnRenderer | None) -> dict[str, Any]:
        if spoken:
            spoken.begin()
        with closing(self._daemon.events(f"{self.partner.path}/chat/stream", body)) as events:
            for event in events:
                kind = event["type"]
                if kind == "error":
                    raise ResponseError(event, int(event.get("status", 500)))
                if kind == "done":
                    if spoken:
                        spoken.answer(str(event["response"]))
                        spoken.answered(event)
                    return {key: value for key, value in event.items() if key != "type"}
                if spoken:
                    spoken.event(event)
        raise RappdError("The connection ended before the answer.", do="rappd status")


def _converse(talk: _ChatSession, status: dict[str, Any]) -> None:
    _header(talk, status)
    if talk.pictures:
        names = strip_control(", ".join(one.get("name", "a picture") for one in talk.pictures))
        print_out(dim(f"With your first sentence: {names}"))
    _line_editing()
    who = middle(talk.partner.name, 12)
    width = max(3, cells(who)) + 2
    label = who + " " * (width - cells(who))
    while True:
        try:
            if not _goes_on(talk, label):
                return
        except KeyboardInterrupt:  # wherever it came: it stops what was going on, never the conversation
            print_out()


def _goes_on(talk: _ChatSession, label: str) -> bool:
    """Reads one line and does what it asks; False when it was the last."""
    try:
        text = input(f"{'you':<{cells(label)}}").strip()
    except EOFError:
        print_out()
        return False
    if text in ("/exit", "/quit"):
        return False
    try:
        if text and not _is_order(talk, text):
            _one_turn(talk, text, label)
    except ReportableError as problem:
        print_error(str(problem), problem.do, problem.code, as_json=False)
    return True


def _header(talk: _ChatSession, status: dict[str, Any]) -> None:
    partner = talk.partner
    who = thinking({**status, "model": talk.model()}) if status["has_model"] else "no model"
    left = f"{partner.name}, {strip_control(who)}, {count(len(partner.agents()), 'agent')}"
    room = min(terminal_width(), EDGE) - len(_KEYS)
    print_out(f"{left:<{room}}{dim(_KEYS)}" if cells(left) + 2 <= room else left)


def _is_order(talk: _ChatSession, text: str) -> bool:
    """Carries out a command of the conversation; False when the line is none."""
    match text:
        case "/help":
            print_out(wrapped(_HELP, 0))
        case "/new":
            talk.begin_anew()
            print_out(dim("A new conversation."))
        case "/agents":
            for name in talk.partner.agents():
                print_out(f"  {strip_control(name)}")
        case "/model":
            print_out(f"  {strip_control(talk.model())}")
        case _ if text.startswith("/model "):
            print_out(dim(f"{strip_control(talk.choose_model(text.split(maxsplit=1)[1]))} answers here."))
        case _ if re.fullmatch(r"/\w+", text):
            print_out(wrapped(f"{text} is none of these:\n{_HELP}", 0))
        case _:
            return False
    return True


def _one_turn(talk: _ChatSession, text: str, label: str) -> None:
    started = time.monotonic()
    try:
        talk.ask(text, TurnRenderer(label))
        talk.tell_news()
    except KeyboardInterrupt:
        line = "" if redraws(sys.stderr) else "\n"  # below the ^C that the terminal shows
        print_err(dim(f"{line}{' ' * cells(label)}Stopped after {took(time.monotonic() - started)}."))


def _line_editing() -> None:
    """Arrow keys and history in the prompt, where the platform has readline."""
    if interactive():
        try:
            import readline  # noqa: F401 - importing it is what switches line editing on
        except ImportError:
            return
