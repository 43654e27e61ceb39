"""Threads below threads: forked, spawned, found again, verified, exported, hatched."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from envelopes.envelope import DONE, HELP, THREAD_PATH, Envelope, new_id
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestContext
from rappd.errors import TooManyCallsError
from rappd.store.reader import Reader
from rappd.store.store import Store
from rappd.store.verify import verify
from rappd.transcript.frames import RecordedConversations, RestoredConversations
from rappd.transcript.markdown import export_markdown
from rappd.transcript.thread_tree import in_order, tree

DESK = "brainstem_desk"
OWNER = Caller("loopback")


class Desk:
    """A dispatcher whose handler does what the test says."""

    def __init__(self, store: Store, path: Path) -> None:
        self.store, self.path, self.dispatcher = store, path, Dispatcher(store)
        self.work: Any = None
        self.dispatcher.route(DESK, "rose", self._perform)

    async def _perform(self, context: RequestContext) -> dict[str, Any]:
        await self.work(context)
        return {"response": "done"}

    async def ask(self, work: Any, session: str = "s", names: tuple[str, ...] = ()) -> str:
        """The thread of a turn that does ``work``."""
        self.work = work
        asked = Envelope(new_id(), "ada", DESK, HELP, {"user_input": "hello"})
        thread, more = (await self.ask(nothing, session), {"names": names}) if names else ("", {})
        self.work = work
        reply = await self.dispatcher.submit(asked, OWNER, session=session, thread=thread, **more).reply()
        assert reply.verb == DONE
        return reply.thread

    def call(self, inner: RequestContext, agent: str) -> None:
        asked = self.dispatcher.record_call(inner, sender=DESK, recipient=agent, data={"agent": agent})
        self.dispatcher.record_result(inner, asked, DONE, {"agent": agent, "result": f"of {agent}"})

    async def paths(self, thread: str) -> list[list[str]]:
        await self.store.flush()
        return [one.names for one in await self.store.tree(thread)]


async def nothing(_: RequestContext) -> None:
    """A turn without calls."""


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    path = tmp_path / "rappd.db"
    made = Desk(await Store.open(path), path)
    yield made
    await made.dispatcher.stop()
    await made.store.close()


async def test_forks_have_their_callers_path_and_their_own_name(desk: Desk) -> None:
    async def work(context: RequestContext) -> None:
        for name in ("researcher", "calculator.add"):
            desk.call(desk.dispatcher.fork(context, name), name)
        inner = desk.dispatcher.fork(desk.dispatcher.fork(context, "researcher"), "search")
        desk.call(inner, "search")

    thread = await desk.ask(work)
    expected = [
        [thread],
        [thread, "researcher"],
        [thread, "calculator.add"],
        [thread, "researcher", "search"],
    ]
    assert await desk.paths(thread) == expected
    assert await desk.ask(work) == thread
    assert await desk.paths(thread) == expected, "the next call finds the same threads"
    assert [one.id for one in await desk.store.threads()] == [thread], "lists show roots"
    other = await desk.ask(work, session="another")
    assert not {one.id for one in await desk.store.tree(other)} & {
        one.id for one in await desk.store.tree(thread)
    }
    assert verify(desk.path).problems == []


async def test_spawned_threads_never_share_a_name(desk: Desk) -> None:
    async def work(context: RequestContext) -> None:
        await asyncio.gather(*(desk.dispatcher.spawn(context, "sub") for _ in range(3)))

    thread = await desk.ask(work)
    await desk.ask(work)
    names = [names[-1] for names in (await desk.paths(thread))[1:]]
    assert sorted(names) == ["sub", "sub-1", "sub-2", "sub-3", "sub-4", "sub-5"]


async def test_level_seventeen_is_refused(desk: Desk) -> None:
    async def work(context: RequestContext) -> None:
        for level in range(16):
            context = desk.dispatcher.fork(context, f"n{level}")
        with pytest.raises(TooManyCallsError):
            desk.dispatcher.fork(context, "seventeenth")

    await desk.ask(work)


async def test_steps_of_a_workflow_have_its_names_in_their_path(desk: Desk) -> None:
    async def work(context: RequestContext) -> None:
        desk.call(desk.dispatcher.fork(context, "search"), "search")

    thread = await desk.ask(work, names=("Coordinator", "Reporter"))
    assert await desk.paths(thread) == [[thread], [thread, "Coordinator", "Reporter", "search"]]
    assert verify(desk.path).problems == []


async def grown(desk: Desk) -> str:
    """A thread with a call of its own, and one below it that led to another."""

    async def work(context: RequestContext) -> None:
        desk.call(context, "Clock")
        inner = desk.dispatcher.fork(context, "researcher")
        asked = desk.dispatcher.record_call(
            inner, sender=DESK, recipient="researcher", data={"agent": "researcher"}
        )
        deeper = desk.dispatcher.fork(
            RequestContext(asked, OWNER, "rose", path=tuple(asked.extensions[THREAD_PATH])), "search"
        )
        desk.call(deeper, "search")
        desk.dispatcher.record_result(inner, asked, DONE, {"agent": "researcher", "result": "found"})

    return await desk.ask(work)


async def everything(desk: Desk, thread: str) -> Any:
    await desk.store.flush()
    threads = await desk.store.tree(thread)
    return threads, [event for one in threads for event in await desk.store.thread_events(one.id)]


async def test_tree_shows_each_call_below_what_it_was_made_for(desk: Desk) -> None:
    thread = await grown(desk)
    threads, events = await everything(desk, thread)
    (turn,) = tree(threads, events)["steps"]
    assert (turn["kind"], turn["path"], turn["answered"]) == ("turn", [thread], "done")
    clock, researcher = turn["steps"]
    assert (clock["name"], clock["thread"], clock["steps"]) == ("Clock", thread, [])
    assert researcher["path"] == [thread, "researcher"]
    (search,) = researcher["steps"]
    assert (search["path"], search["answered"]) == ([thread, "researcher", "search"], "of search")
    markdown = export_markdown(threads[0], in_order(events))
    assert markdown.index("Clock") < markdown.index("researcher") < markdown.index("of search")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE threads SET parent = NULL, path = NULL WHERE path LIKE '%search%'",
        "UPDATE threads SET path = replace(path, 'search', 'other') WHERE path LIKE '%search%'",
        "UPDATE threads SET parent = (SELECT id FROM threads WHERE parent IS NULL), path = json_remove(path, '$[1]')"
        " WHERE path LIKE '%search%'",
        "UPDATE threads SET path = 'no JSON' WHERE parent IS NOT NULL",
        "UPDATE threads SET parent = (SELECT id FROM threads WHERE parent IS NULL), path = '[\"x\"]'"
        " WHERE parent IS NULL",
    ],
)
async def test_thread_that_was_put_elsewhere_is_noticed(desk: Desk, change: str) -> None:
    await grown(desk)
    await desk.store.flush()
    assert verify(desk.path).problems == []
    with closing(sqlite3.connect(desk.path)) as db, db:
        db.execute(change)
    assert any("place below" in one.what for one in verify(desk.path).problems)


async def test_tree_hatches_with_its_paths(desk: Desk, tmp_path: Path) -> None:
    await grown(desk)
    await desk.store.flush()
    frames = list(RecordedConversations(desk.path, "rose").frames("rose"))
    elsewhere = tmp_path / "other.db"
    store = await Store.open(elsewhere)
    restored = RestoredConversations(store, elsewhere, asyncio.get_running_loop())
    for key, more in (("lily", len(frames)), ("lily", 0)):
        assert await asyncio.to_thread(restored.restore, key, frames) == more
    await store.close()
    with Reader(elsewhere) as record:
        (root,) = record.threads()
        found = record.tree(root.id)
        events = [event for one in found for event in record.thread_events(one.id)]
    assert [one.names[1:] for one in found] == [[], ["researcher"], ["researcher", "search"]]
    (turn,) = tree(found, events)["steps"]
    assert turn["steps"][1]["steps"][0]["name"] == "search"
    assert verify(elsewhere).problems == []


async def test_no_session_leads_into_a_thread_below_another(desk: Desk) -> None:
    async def work(context: RequestContext) -> None:
        desk.call(desk.dispatcher.fork(context, "search"), "search")

    thread = await desk.ask(work)
    inner = (await desk.store.tree(thread))[1].id
    named = (["search"], f'["{thread}","search"]', inner, f"{thread}.search", [thread, "search"])
    for caller in ("ada", thread, DESK):
        for session in named:
            asked = Envelope(new_id(), caller, DESK, HELP, {"user_input": "hi"})
            desk.work = nothing
            reply = await desk.dispatcher.submit(asked, OWNER, session=session).reply()
            assert reply.thread not in (thread, inner)
