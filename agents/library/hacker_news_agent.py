"""HackerNews reads the front page of Hacker News: titles, links, points, comments.

Ask "hacker news?" or "the top 5 stories". Argument: `count`, 1 to 30, default 10. No key is needed.

The answer is JSON: `{status, stories: [{id, title, url, score, author, comments}], summary, data_slush}`,
where `summary` is a numbered Markdown list and `data_slush` is `{count, top_url}`. It arrives within about
8 seconds, with fewer stories (and a `message`) when the site is slow, and as `{status: "error", message}`
without a network. The environment variable HACKER_NEWS_API names another server with the same interface.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from typing import Any

try:
    from agents.basic_agent import BasicAgent
except ImportError:
    try:
        from openrappter.agents.basic_agent import BasicAgent  # type: ignore[import-not-found,no-redef]  # elsewhere
    except ImportError:

        class BasicAgent:  # type: ignore[no-redef]  # stands in where the file runs as a script
            def __init__(self, name: str = "", metadata: dict[str, Any] | None = None) -> None:
                self.name, self.metadata = name, metadata or {}


__manifest__ = {
    "schema": "rapp-agent/1.0",
    "name": "@rappd/hacker_news_agent",
    "version": "1.0.0",
    "display_name": "HackerNews",
    "description": "The top stories on Hacker News, with links, points and comments.",
    "summary": "Shows the top stories of Hacker News.",
    "author": "rappd",
    "tags": ["news", "hacker news", "web"],
    "category": "integrations",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "idempotent": True,
    "needs": {"hosts": ["hacker-news.firebaseio.com", "$HACKER_NEWS_API"]},
}

_API = "https://hacker-news.firebaseio.com/v0"
_DISCUSSION = "https://news.ycombinator.com/item?id="
_SECONDS = 8.0
_AT_ONCE = 10
_MOST_BYTES = 1 << 20


class HackerNewsAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "HackerNews"
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Fetches the current top stories from Hacker News (tech news headlines) "
            "with their links, points and comment counts.",
            "parameters": {
                "type": "object",
                "properties": {
                    "count": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 30,
                        "default": 10,
                        "description": "How many stories.",
                    }
                },
                "required": [],
            },
        }
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs: Any) -> str:
        count = _count(kwargs.get("count"))
        api = os.environ.get("HACKER_NEWS_API", _API).rstrip("/")
        if not api.startswith(("https://", "http://")):
            return _error(f"HACKER_NEWS_API is no web address: {api}")
        deadline = time.monotonic() + _SECONDS
        try:
            front = _fetch_all([f"{api}/topstories.json"], deadline)[0]
            if not isinstance(front, list):
                raise ValueError("the list of top stories is not a list")
            ids = [number for number in front if isinstance(number, int)][:count]
            items = _fetch_all([f"{api}/item/{number}.json" for number in ids], deadline)
        except (OSError, ValueError) as error:
            return _error(f"Hacker News did not answer: {_why(error)}. Check the network, then ask again.")
        stories = [_story(item) for item in items if isinstance(item, dict) and item.get("title")]
        if not stories:
            return _error("Hacker News sent no stories. Ask again in a minute.")
        reply = {
            "status": "success",
            "stories": stories,
            "summary": "\n".join(_line(number, story) for number, story in enumerate(stories, 1)),
            "data_slush": {"count": len(stories), "top_url": stories[0]["url"]},
        }
        if len(stories) < len(ids):
            reply["message"] = f"{len(stories)} of {len(ids)} stories arrived in time."
        return json.dumps(reply, ensure_ascii=False)


def _fetch_all(urls: list[str], deadline: float) -> list[Any]:
    """The parsed answers in the order of `urls`, None for those that did not come before the deadline.

    Raises the first failure when nothing came. Daemon threads: one that hangs in a name look-up
    holds up neither the answer nor the end of the process.
    """
    waiting: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
    arrived: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    for job in enumerate(urls):
        waiting.put(job)

    def work() -> None:
        while time.monotonic() < deadline:
            try:
                index, url = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                arrived.put((index, _fetch(url, deadline)))
            except (OSError, ValueError) as error:
                arrived.put((index, error))

    for _ in range(min(_AT_ONCE, len(urls))):
        threading.Thread(target=work, name="hacker-news", daemon=True).start()
    answers: list[Any] = [None] * len(urls)
    failure: Exception = TimeoutError(f"nothing came within {_SECONDS:g} s")
    for _ in urls:
        try:
            index, answer = arrived.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(answer, Exception):
            failure = answer
        else:
            answers[index] = answer
    if urls and all(answer is None for answer in answers):
        raise failure
    return answers


def _fetch(url: str, deadline: float) -> Any:
    import urllib.request  # with http and ssl it weighs more than this whole file: only when it is used

    headers = {"User-Agent": "rapp-agent/1.0", "Accept": "application/json"}
    request = urllib.request.Request(url, headers=headers)
    pieces, size = [], 0
    with urllib.request.urlopen(request, timeout=max(0.1, deadline - time.monotonic())) as reply:
        while piece := reply.read1(1 << 16):
            pieces.append(piece)
            size += len(piece)
            if size > _MOST_BYTES:
                raise ValueError("an answer is far too long")
            if time.monotonic() > deadline:
                raise TimeoutError("an answer came too slowly")
    return json.loads(b"".join(pieces))


def _story(item: dict[str, Any]) -> dict[str, Any]:
    url = item.get("url")
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        url = f"{_DISCUSSION}{item.get('id')}"
    return {
        "id": item.get("id"),
        "title": " ".join(str(item["title"]).split()),
        "url": url,
        "score": item.get("score", 0),
        "author": item.get("by", ""),
        "comments": item.get("descendants", 0),
    }


def _line(number: int, story: dict[str, Any]) -> str:
    title = story["title"].replace("[", "(").replace("]", ")")
    url = story["url"].replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    return f"{number}. [{title}]({url}) {story['score']} points, {story['comments']} comments"


def _count(value: Any) -> int:
    try:
        return min(30, max(1, int(value)))
    except (TypeError, ValueError, OverflowError):
        return 10


def _why(error: Exception) -> str:
    if code := getattr(error, "code", None):
        return f"status {code}"
    reason = getattr(error, "reason", None) or error
    return str(getattr(reason, "strerror", None) or reason or type(reason).__name__)


def _error(message: str) -> str:
    return json.dumps({"status": "error", "message": message}, ensure_ascii=False)


if __name__ == "__main__":
    sys.stdout.write(HackerNewsAgent().perform(count=sys.argv[1] if sys.argv[1:] else None) + "\n")
