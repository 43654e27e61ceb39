"""A thread as a conversation to read, in Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import orjson

from envelopes.codecs.pictures import data_url
from rappd.dispatch.envelope_rows import headline
from rappd.store.records import Event, ThreadRow
from rappd.transcript.exchanges import Exchange, Message, arguments_of, exchanges, round_summary
from rappd.transcript.speakers import Speakers

ARGUMENT_WIDTH = 40
_SESSION = "session"
"""The caller of threads whose records name their speakers: nobody from elsewhere writes there."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def export_markdown(thread: ThreadRow, events: Iterable[Event], speakers: Speakers | None = None) -> str:
    """Returns a conversation as Markdown: speakers, times (UTC), and agent calls folded as ``<details>``.

    Without ``speakers`` they have the ids of the record.

    Texts are quoted line by line and their HTML is made harmless, so that nothing in them can pass
    for another speaker or hide what follows.
    """
    parts = [
        f"# {_plain(headline(thread.title) or 'Untitled')}",
        f"Thread {thread.id}  \n{_day(thread.created)}, {_times(thread.count, 'record')}",
    ]
    today = _day(thread.created)
    named = _Names(speakers, thread.caller == _SESSION)
    for exchange in exchanges(events):
        first = exchange.asked or exchange.answered
        assert first is not None
        if (day := _day(first.event.at)) != today:
            today = day
            parts.append(f"## {day}")
        parts.extend(_call(exchange) if exchange.agent else _turn(exchange, named))
    return "\n\n".join(parts) + "\n"


class _Names(NamedTuple):
    """Names of speakers; ``by``: records say it themselves."""

    speakers: Speakers | None
    by: bool


def _turn(exchange: Exchange, named: _Names) -> Iterator[str]:
    if exchange.asked is not None:
        yield _heading(exchange.asked, named)
        yield _quoted(exchange.asked.text)
        for picture in exchange.asked.pictures:
            yield f"> ![{_plain(picture.get('name') or 'picture')}]({data_url(picture)})"
    yield from _steps(exchange)
    if exchange.answered is not None:
        yield _heading(exchange.answered, named)
        yield _quoted(exchange.answered.text)
    elif exchange.asked is not None and exchange.asked.event.verb == "HELP":
        yield "*No answer is recorded.*"


def _steps(exchange: Exchange) -> Iterator[str]:
    for step in exchange.steps:
        yield from _round(step) if isinstance(step, Message) else _call(step)
    if plan := exchange.plan:
        lines = (
            f"- [{' ' if one['state'] == 'open' else 'x'}] {_plain(one['text'])} ({one['state']})"
            for one in plan
        )
        yield "\n".join(lines)


def _round(message: Message) -> Iterator[str]:
    yield f"<details><summary>{html.escape(headline(round_summary(message)), quote=False)}</summary>"
    sent, digest = message.data.get("messages"), message.data.get("prompt_sha256")
    yield f"{_times(int(sent) if isinstance(sent, int) else 0, 'message')} sent, SHA-256 `{_plain(str(digest))}`"
    if isinstance(message.data.get("text"), str) and message.data["text"]:
        yield _fenced(message.data["text"])
    yield "</details>"


def _call(exchange: Exchange) -> Iterator[str]:
    asked, answered = exchange.asked, exchange.answered
    arguments = arguments_of(asked.data) if asked is not None else {}
    took = "" if exchange.seconds is None else f", {exchange.seconds:.1f} s"
    outcome = {"done": "", "failed": ", failed", "open": ", no answer"}[exchange.state]
    inline = "".join(f" {name}={_shown_short(value)}" for name, value in arguments.items())
    summary = html.escape(headline(f"{exchange.agent}{inline}"), quote=False)
    # Failed calls are open, as on the page.
    yield f"<details{' open' if exchange.state == 'failed' else ''}><summary>{summary}{took}{outcome}</summary>"
    if arguments:
        yield _fenced(orjson.dumps(arguments, option=orjson.OPT_INDENT_2).decode(), "json")
    yield from _steps(exchange)
    if answered is not None:
        yield _fenced(answered.text)
    yield "</details>"


def _heading(message: Message, named: _Names) -> str:
    failed = ", error" if message.failed else ""
    speaker = message.data.get("by") if named.by else None
    sender = message.event.sender
    name = named.speakers.name(sender) if named.speakers is not None else sender
    who = speaker if isinstance(speaker, str) and speaker else name
    return f"**{_plain(who)}** {_clock(message.event.at)}{failed}"


def _quoted(text: str) -> str:
    lines = []
    fence = ""
    for line in text.splitlines() or [""]:
        found = _FENCE.match(line)
        if fence:
            # Inside a code block HTML is shown, not obeyed. It ends with a fence of its own kind.
            if found and found[1].startswith(fence) and not line[found.end() :].strip():
                fence = ""
        elif found:
            fence = found[1]
        else:
            line = _TAG.sub("&lt;", line)
        lines.append(f"> {line}".rstrip())
    return "\n".join(lines)


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _plain(text: str) -> str:
    """On one line, with everything that Markdown would act on escaped."""
    return re.sub(r"([\\`*_\[\]<>#&~|])", r"\\\1", " ".join(text.split()))


def _shown_short(value: object) -> str:
    return headline(value if isinstance(value, str) else orjson.dumps(value).decode(), ARGUMENT_WIDTH)


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at // 1_000_000, UTC)


def _day(at: int) -> str:
    moment = _moment(at)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


# Not strftime: its month names follow the locale.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _clock(at: int) -> str:
    return f"{_moment(at):%H:%M:%S} UTC"


def _times(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
