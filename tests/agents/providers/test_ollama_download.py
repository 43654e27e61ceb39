"""Downloading a model by Ollama: progress over all parts, Ollama's words where it fails, bounds, cancelling."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.free_ports import free_port
from fixtures.scripted_ollama import DROP, OTHER, WAIT, WHOLE, ScriptedOllama, part

from agents.providers.ollama_download import (
    DownloadError,
    DownloadLimits,
    DownloadState,
    download,
    is_ollama,
    root_of,
)

PATIENT = DownloadLimits(silence=60.0, whole=60.0)
"""For what Ollama sends: it breaks off in no other way because this machine is busy."""
SOON = DownloadLimits(silence=0.3, whole=60.0)


@pytest.fixture
def ollama() -> Iterator[ScriptedOllama]:
    server = ScriptedOllama()
    yield server
    server.stop()


async def _fetched(
    server: ScriptedOllama, model: str = "llama3.2", limits: DownloadLimits = PATIENT
) -> list[DownloadState]:
    seen: list[DownloadState] = []
    await download(server.url, model, seen.append, limits=limits)
    return seen


async def test_progress_counts_all_parts_and_ends_with_success(ollama: ScriptedOllama) -> None:
    ollama.start()
    assert await is_ollama(ollama.url)
    seen = await _fetched(ollama)
    assert seen[0] == DownloadState("pulling manifest")
    assert seen[-1] == DownloadState("success", 1500, 1500)
    assert ollama.pulled == [{"model": "llama3.2", "name": "llama3.2", "stream": True}]


@pytest.mark.parametrize(
    ("script", "says", "do"),
    [
        (
            [{"status": "pulling manifest"}, {"error": "pull model manifest: file does not exist"}],
            "Ollama said: “pull model manifest: file does not exist”.",
            "check the name",
        ),
        ([part(10, 100), {"error": "write: no space left on device"}], "no space left on device", "look at Ollama"),
        ([part(10, 100), DROP], "broke off", "what has arrived is kept"),
        ([part(10, 100)], "broke off before llama3.2 was whole", "what has arrived is kept"),
        ([part(10, 100), WAIT], "said nothing more", "what has arrived is kept"),
        (
            [b'{"status": "' + b"x" * 200_000 + b'"}\n', {"status": "success"}],
            "broke off",
            "what has arrived is kept",
        ),
    ],
)  # fmt: skip
async def test_failure_is_told_in_ollamas_words(
    ollama: ScriptedOllama, script: list[Any], says: str, do: str
) -> None:
    ollama.pulls = script
    ollama.start()
    with pytest.raises(DownloadError) as raised:
        await _fetched(ollama, limits=SOON if WAIT in script else PATIENT)
    assert says in str(raised.value)
    assert do in raised.value.do


async def test_error_with_a_status_and_old_servers(ollama: ScriptedOllama) -> None:
    ollama.pull_status, ollama.pulls = 500, [{"error": "registry is down"}]
    ollama.start()
    with pytest.raises(DownloadError, match="registry is down"):
        await _fetched(ollama)
    old = ScriptedOllama()
    old.pull_status = 404
    old.start()
    try:
        with pytest.raises(DownloadError, match="cannot download models") as raised:
            await _fetched(old)
        assert "ollama pull llama3.2" in raised.value.do
    finally:
        old.stop()


async def test_nobody_there_and_names_that_are_none(ollama: ScriptedOllama) -> None:
    ollama.start()
    with pytest.raises(DownloadError, match="does not answer"):
        await download(f"http://127.0.0.1:{free_port()}", "llama3.2", lambda _: None, limits=PATIENT)
    for name in ("", "a b", "../x", "x?y=1", "http://evil/x", "-x", "x\ny", "a" * 300):
        with pytest.raises(DownloadError, match="no name"):
            await _fetched(ollama, name)
    assert ollama.pulled == []
    for name in ("llama3.2:1b", "hf.co/ann/Model-GGUF:Q4_K_M", "registry.local:5000/me/x"):
        await _fetched(ollama, name)


async def test_hostile_numbers_and_lines_are_bounded(ollama: ScriptedOllama) -> None:
    ollama.pulls = [
        {"status": "x" * 5000, "digest": OTHER, "total": 1 << 60, "completed": -5},
        {"status": 7, "digest": ["x"], "total": "y"},
        b"[1]\nno json\n\n",
        part(300, 200),
        {"status": "success"},
    ]
    ollama.start()
    seen = await _fetched(ollama)
    assert len(seen[0].status) <= 200
    assert (seen[-1].completed, seen[-1].total) == (200, 200)


async def test_cancelling_hangs_up_on_ollama(ollama: ScriptedOllama) -> None:
    ollama.pulls = [part(10, 100), WAIT, *WHOLE]
    ollama.start()
    begun = asyncio.Event()
    task = asyncio.create_task(
        download(ollama.url, "llama3.2", lambda _: begun.set(), limits=DownloadLimits(60, 60))
    )
    await asyncio.wait_for(begun.wait(), 100)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ollama.left.wait, 60)


@pytest.mark.parametrize(
    ("address", "root"),
    [
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434"),
        ("localhost:11434", "http://localhost:11434"),
        ("https://me:pw@models.example.org/ollama/v1", "https://models.example.org"),
    ],
)
def test_download_is_asked_for_at_the_configured_host(address: str, root: str) -> None:
    assert root_of(address) == root
