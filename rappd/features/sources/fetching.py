"""Fetching what a source offers: from GitHub, from a clone, or from a folder on this machine."""

from __future__ import annotations

import asyncio
import re
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from agents.contract.file_discovery import AGENT_SUFFIXES
from agents.storage.safe_fs import SafeTree
from agents.storage.safe_walk import LinkFreeFolder, pass_over
from rappd.errors import RappdError, UsageProblemError
from rappd.settings.load import Settings
from twins.fs.untrusted_names import folded
from twins.workspace.agent_files import proper_name
from twins.workspace.sources import OfferedAgent

MAX_BYTES = 5 << 20
MAX_AGENTS = 2000
MAX_LOOKED_AT = 20_000  # files in a folder; a whole home or disk is no source
_DISK = SafeTree("/")  # no link is followed, wherever the folder of a source lies
_SECONDS = 20
_REPO = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}"


class SourceUnreachableError(RappdError):
    """A source that does not answer, or offers nothing."""

    code = "unreachable"
    status = 502


def source_name(text: str) -> str:
    """``owner/repo`` for any way of writing a GitHub repository, or a folder's absolute path."""
    text = text.strip()
    if text.startswith(("/", "~", "./", "../", "file://")):
        try:
            return str(Path(text.removeprefix("file://")).expanduser().absolute())
        except RuntimeError as error:
            raise UsageProblemError(f'"{text[:120]}" is no folder.', do="Give its whole path.") from error
    short = re.sub(r"^(https?://)?(www\.)?github\.com/|^git@github\.com:", "", text).rstrip("/")
    short = short.removesuffix(".git")
    pages = re.fullmatch(r"(?:https?://)?([A-Za-z0-9-]+)\.github\.io/([A-Za-z0-9._-]+)", short)
    if pages:
        short = f"{pages[1]}/{pages[2]}"
    if not re.fullmatch(_REPO, "/".join(short.split("/")[:2])) or short.count("/") > 1:
        raise UsageProblemError(
            f'"{text[:120]}" is no source.', do="Give owner/repo, or a folder of agent files."
        )
    return short


async def discover(name: str, settings: Settings) -> list[OfferedAgent]:
    """Returns what the source offers. Raises ``SourceUnreachableError`` when there is nothing to find."""
    if name.startswith("/"):
        found = await asyncio.to_thread(_in_folder, Path(name))
    else:
        found = await _on_github(name, settings)
    if not found:
        raise SourceUnreachableError(f"{name} offers no agents.", do="A source holds agents/*_agent.py.")
    return _one_per_file(found)[:MAX_AGENTS]


async def fetch(location: str) -> bytes:
    """The bytes of one agent file. Raises ``SourceUnreachableError``."""
    if location.startswith("/"):
        return await asyncio.to_thread(_read, Path(location))
    content = await _get(location)
    if content is None:
        raise SourceUnreachableError(
            "The source does not have that file any more.", do="Connect the source again."
        )
    return content


def _in_folder(folder: Path) -> list[OfferedAgent]:
    try:
        root = (folder / "agents" if (folder / "agents").is_dir() else folder).resolve()
        found = root.is_dir()
    except (OSError, RuntimeError, ValueError):  # a name too long, a circle of links, a zero byte
        found = False
    if not found:
        raise SourceUnreachableError(
            f"There is no folder {str(folder)[:120]}.", do="Give a folder of agent files."
        )
    return [OfferedAgent(path.stem, _title(path.stem), "", str(path)) for path in sorted(_agent_files(root))]


def _agent_files(root: Path) -> list[Path]:
    """Agent files below ``root``, hidden folders and links left out."""
    found = []
    with LinkFreeFolder(root) as folder:
        below = folder.walk(enters=lambda path: not _is_hidden(path), failed=pass_over)
        for looked_at, (path, status) in enumerate(below, 1):
            if looked_at > MAX_LOOKED_AT:
                raise SourceUnreachableError(
                    f"{root} holds more than {MAX_LOOKED_AT} files.", do="Give the agents' own folder."
                )
            if path.endswith(AGENT_SUFFIXES) and stat.S_ISREG(status.st_mode) and not _is_hidden(path):
                found.append(root / path)
    return found


def _is_hidden(path: str) -> bool:
    return path.rpartition("/")[2].startswith(".")


def _read(path: Path) -> bytes:
    try:
        if _DISK.stat_file(path).st_size > MAX_BYTES:
            raise SourceUnreachableError(f"The file has more than {MAX_BYTES} bytes.", do="Ask its owner.")
        return _DISK.read(path, MAX_BYTES)
    except OSError as error:
        raise SourceUnreachableError(f"{path} cannot be read.", do="Connect the source again.") from error


def _one_per_file(offered: list[OfferedAgent]) -> list[OfferedAgent]:
    """The first of those that would become the same file."""
    kept: dict[str, OfferedAgent] = {}
    for one in offered:
        kept.setdefault(folded(proper_name(f"{one.id}.py")), one)
    return list(kept.values())


async def _on_github(name: str, settings: Settings) -> list[OfferedAgent]:
    raw = f"{settings.text('github.raw').rstrip('/')}/{name}/main"
    manifest = _json(await _get(f"{raw}/manifest.json"))
    if isinstance(manifest, dict) and isinstance(manifest.get("agents"), list):
        return [one for item in manifest["agents"] if (one := _from_manifest(item, raw))]
    index = _json(await _get(f"{raw}/agents/index.json"))
    names = index.get("agents") if isinstance(index, dict) else None
    if not isinstance(names, list):
        listing = _json(await _get(f"{settings.text('github.api').rstrip('/')}/repos/{name}/contents/agents"))
        items = listing if isinstance(listing, list) else []
        names = [item.get("name") for item in items if isinstance(item, dict)]
    return [
        OfferedAgent(file[:-3], _title(file[:-3]), "", f"{raw}/agents/{quote(file)}")
        for file in names
        if isinstance(file, str) and re.fullmatch(r"[A-Za-z0-9_.-]+_agent\.py", file)
    ]


def _from_manifest(item: Any, raw: str) -> OfferedAgent | None:
    if not isinstance(item, dict):
        return None
    agent_id, path = item.get("id"), item.get("path") or item.get("filename")
    if not isinstance(agent_id, str) or not re.fullmatch(r"[A-Za-z0-9_.@-]{1,100}", agent_id):
        return None
    if not isinstance(path, str) or ".." in path.split("/") or "://" in path:
        return None
    path = path if "/" in path else f"agents/{path}"
    return OfferedAgent(
        agent_id,
        str(item.get("name") or _title(agent_id))[:120],
        str(item.get("description") or "")[:500],
        f"{raw}/{quote(path.lstrip('/'))}",
    )


async def _get(url: str) -> bytes | None:
    import aiohttp

    limits = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=limits) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            if response.status != 200:
                return None
            content = bytearray()
            async for chunk in response.content.iter_chunked(1 << 16):
                content += chunk
                if len(content) > MAX_BYTES:
                    raise SourceUnreachableError(
                        f"The file has more than {MAX_BYTES} bytes.", do="Ask its owner."
                    )
    except (aiohttp.ClientError, TimeoutError) as error:
        raise SourceUnreachableError(
            "The source does not answer.", do="Check the network, or use a local clone."
        ) from error
    return bytes(content)


def _json(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None


def _title(stem: str) -> str:
    words = stem.removesuffix("_agent").split("_")
    return "".join(word.capitalize() for word in words)
