from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

import agents.library
from agents.contract.loading import load_agent_file

LIBRARY = Path(agents.library.__path__[0])
FILE = "hacker_news_agent.py"


class Site:
    """A small Hacker News: forty stories, some of them odd. ``hang`` holds back stories from that number on."""

    def __init__(self) -> None:
        self.url = ""
        self.front: Any = list(range(1, 41))
        self.status = 200
        self.hang = 1000
        self.at_once = self.most_at_once = 0
        self.release = asyncio.Event()

    async def topstories(self, request: web.Request) -> web.Response:
        return web.json_response(self.front, status=self.status)

    async def item(self, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.02)
        self.at_once -= 1
        if number >= self.hang:
            await self.release.wait()
        if number == 3:
            return web.json_response(None)  # a deleted story
        story = {"id": number, "title": f"Story {number}", "by": "ada", "score": number, "descendants": 7}
        if number != 2:  # a question without a link
            story["url"] = f"https://example.com/{number}"
        if number == 4:
            story |= {"title": "Show [HN]:\n a thing", "url": "javascript:alert(1)"}
        return web.json_response(story)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    app = web.Application()
    app.router.add_get("/v0/topstories.json", made.topstories)
    app.router.add_get("/v0/item/{number:\\d+}.json", made.item)
    server = TestServer(app)
    await server.start_server()
    made.url = str(server.make_url("/v0"))
    yield made
    made.release.set()
    await server.close()


@pytest.fixture
def environment(site: Site) -> dict[str, str]:
    return {"HACKER_NEWS_API": site.url, "NO_PROXY": "127.0.0.1"}


async def news(desk: Any, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = await desk.json(FILE, "HackerNews", **arguments)
    return found


async def test_stories_arrive_in_order_with_a_summary(desk: Any) -> None:
    found = await news(desk, count=2)
    assert found["status"] == "success"
    assert found["stories"][0] == {
        "id": 1,
        "title": "Story 1",
        "url": "https://example.com/1",
        "score": 1,
        "author": "ada",
        "comments": 7,
    }
    assert found["stories"][1]["url"] == "https://news.ycombinator.com/item?id=2"
    assert found["summary"].splitlines() == [
        "1. [Story 1](https://example.com/1) 1 points, 7 comments",
        "2. [Story 2](https://news.ycombinator.com/item?id=2) 2 points, 7 comments",
    ]
    assert found["data_slush"] == {"count": 2, "top_url": "https://example.com/1"}


async def test_ten_are_asked_for_by_default_and_thirty_at_most(desk: Any, site: Site) -> None:
    assert len((await news(desk))["stories"]) == 9  # one of the ten was deleted
    assert len((await news(desk, count="99"))["stories"]) == 29
    assert len((await news(desk, count=0))["stories"]) == 1
    assert site.most_at_once > 1


async def test_odd_stories_cannot_break_the_summary(desk: Any) -> None:
    found = await news(desk, count=4)
    assert found["summary"].splitlines()[-1] == (
        "3. [Show (HN): a thing](https://news.ycombinator.com/item?id=4) 4 points, 7 comments"
    )


async def test_slow_stories_are_left_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.hang = 8
    monkeypatch.setenv("HACKER_NEWS_API", site.url)
    loaded = load_agent_file(LIBRARY / FILE)
    monkeypatch.setattr(loaded.module, "_SECONDS", 8.0)
    found = json.loads(await asyncio.to_thread(loaded.instances[0].perform, count=10))
    loaded.forget()
    assert [story["id"] for story in found["stories"]] == [1, 2, 4, 5, 6, 7]
    assert found["message"] == "6 of 10 stories arrived in time."


@pytest.mark.parametrize(("status", "front"), [(500, []), (200, {"error": "x"})])
async def test_a_broken_site_is_an_error_in_words(desk: Any, site: Site, status: int, front: Any) -> None:
    site.status, site.front = status, front
    found = await news(desk)
    assert found["status"] == "error"
    assert "Hacker News did not answer" in found["message"]
    assert "Check the network" in found["message"]


def test_without_a_network_it_says_so(elsewhere: Any) -> None:
    code = (
        "import os, sys, runpy; os.environ['HACKER_NEWS_API'] = 'http://127.0.0.1:9/v0';"
        f"sys.argv = ['x']; runpy.run_path({str(elsewhere.agents / FILE)!r}, run_name='__main__')"
    )
    assert '"status": "error"' in elsewhere.python("-c", code)


def test_only_web_addresses_are_asked(elsewhere: Any) -> None:
    code = (
        "import os, sys, runpy; os.environ['HACKER_NEWS_API'] = 'file:///etc';"
        f"sys.argv = ['x']; runpy.run_path({str(elsewhere.agents / FILE)!r}, run_name='__main__')"
    )
    assert "is no web address" in elsewhere.python("-c", code)
