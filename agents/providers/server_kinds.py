"""Programs that serve models on this machine, told apart by what they say of themselves, not by their port.

The list of models often tells: ``owned_by``, a header, a key of one program alone. Where it does not, a few addresses
are asked that each exist in one program. The same answers tell how long a context is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec.structs import replace

from agents.providers.json_http import JsonReply
from agents.providers.model_help import size_in_name
from agents.providers.refusals import Meaning

OLLAMA, LLAMA_CPP, LLAMA_CPP_PYTHON = "Ollama", "llama.cpp", "llama.cpp for Python"
LM_STUDIO, VLLM, JAN, LOCAL_AI, LITE_LLM = "LM Studio", "vLLM", "Jan", "LocalAI", "LiteLLM"
UNKNOWN = "local model"

_OWNERS = {"llamacpp": LLAMA_CPP, "vllm": VLLM, "organization_owner": LM_STUDIO, "library": OLLAMA}
"""``owned_by`` of the entries of ``/v1/models``. "me" (llama.cpp for Python) is anybody's."""
_TITLES = {
    "llama.cpp python api": LLAMA_CPP_PYTHON,
    "litellm": LITE_LLM,
    "localai": LOCAL_AI,
    "jan api": JAN,
    "jan local": JAN,
}
"""Words in the title of ``/openapi.json`` or of the page at ``/``."""
_MOST_TOKENS = 1 << 24
_MOST_BILLIONS = 1e5

REMEDIES: Mapping[tuple[str, Meaning], str] = {
    (OLLAMA, Meaning.NO_MODEL): "`ollama pull {model}`, or choose another model",
    (OLLAMA, Meaning.CONTEXT): "ask a shorter question, or raise OLLAMA_CONTEXT_LENGTH",
    (LLAMA_CPP, Meaning.NO_TOOLS): "start it with `--jinja`, so that it can use agents",
    (LLAMA_CPP, Meaning.CONTEXT): "ask a shorter question, or start it with `-c 8192`",
    (LLAMA_CPP_PYTHON, Meaning.NO_TOOLS): "start it with `--chat_format chatml-function-calling`",
    (LLAMA_CPP_PYTHON, Meaning.CONTEXT): "ask a shorter question, or start it with `--n_ctx 8192`",
    (LM_STUDIO, Meaning.NO_MODEL): "load the model in LM Studio, or choose another",
    (LM_STUDIO, Meaning.CONTEXT): "ask a shorter question, or load the model with a longer context",
    (VLLM, Meaning.NO_TOOLS): "start it with `--enable-auto-tool-choice` and a `--tool-call-parser`",
    (VLLM, Meaning.CONTEXT): "ask a shorter question, or start it with a larger `--max-model-len`",
}
"""Remedies of one program, where it differs from what helps with any."""


class ServerFacts(msgspec.Struct, frozen=True):
    """The program that serves at an address, "" where nothing told, and what it tells of a model.

    ``context``: tokens, 0 unknown. ``billions``: parameters, 0 unknown. ``tools``: False where the model was never
    taught to call any, None unknown. ``whole``: False while the server is still loading, so that it tells more later.
    """

    kind: str = ""
    context: int = 0
    billions: float = 0.0
    tools: bool | None = None
    whole: bool = True


NOTHING_KNOWN = ServerFacts()


class Ask(Protocol):
    """One JSON question over HTTP, as ``json_http.ask`` asks it."""

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Mapping[str, Any] | None = None,
        within: float = 10.0,
    ) -> JsonReply: ...


_SILENT = JsonReply(0, {})


class _Answers(msgspec.Struct, frozen=True):
    """Answers of a server at the addresses that tell."""

    listed: JsonReply = _SILENT
    version: JsonReply = _SILENT
    loaded: JsonReply = _SILENT
    shown: JsonReply = _SILENT
    props: JsonReply = _SILENT
    studio: JsonReply = _SILENT
    described: JsonReply = _SILENT
    page: JsonReply = _SILENT


_NOTHING = _Answers()


async def facts(
    ask: Ask, base_url: str, model: str, headers: Mapping[str, str] | None = None, within: float = 2.0
) -> ServerFacts:
    """Asks a server of this machine what it is: one question after the other, ``within`` seconds for all."""
    kind, answers = "", _NOTHING
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            listed = await ask("GET", f"{base_url}/models", headers=headers, within=within)
            if not listed.status:
                return replace(NOTHING_KNOWN, whole=False)
            kind, answers = kind_of_listing(listed), replace(_NOTHING, listed=listed)
            parts = urlsplit(base_url)
            root = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
            answers = await _asked(ask, root, model, kind, answers, within)
    kind = kind or _kind_of(answers)
    context = _context(answers, model)
    return ServerFacts(
        kind,
        context if 0 < context <= _MOST_TOKENS else 0,
        _billions(answers, model),
        _tools(answers),
        whole=answers.listed.status != 503,
    )


async def _asked(ask: Ask, root: str, model: str, kind: str, answers: _Answers, within: float) -> _Answers:
    """The answers to what one program each knows; of a program that is known, only to what tells its context."""
    if kind in ("", OLLAMA):
        answers = replace(answers, version=await ask("GET", f"{root}/api/version", within=within))
        kind = kind or _kind_of(answers)
    if kind == OLLAMA:
        loaded = await ask("GET", f"{root}/api/ps", within=within)
        shown = await ask("POST", f"{root}/api/show", json={"model": model}, within=within)
        return replace(answers, loaded=loaded, shown=shown)
    if kind in ("", LLAMA_CPP):
        answers = replace(answers, props=await ask("GET", f"{root}/props", within=within))
        kind = kind or _kind_of(answers)
    if kind in ("", LM_STUDIO):
        answers = replace(answers, studio=await ask("GET", f"{root}/api/v0/models", within=within))
        kind = kind or _kind_of(answers)
    if not kind:
        described = await ask("GET", f"{root}/openapi.json", within=within)
        answers = replace(answers, described=described, page=await ask("GET", f"{root}/", within=within))
    return answers


def kind_of_listing(listed: JsonReply) -> str:
    """The program that sent a list of models, "" where the list does not tell."""
    if "x-litellm-version" in listed.headers:
        return LITE_LLM
    if listed.headers.get("server", "").lower().startswith("llama.cpp"):
        return LLAMA_CPP
    entries = _entries(listed)
    owners = {_OWNERS.get(str(entry.get("owned_by"))) for entry in entries}
    if len(owners) == 1 and (owner := owners.pop()):
        return owner
    return VLLM if entries and all("max_model_len" in entry for entry in entries) else ""


def remedy(kind: str, meaning: Meaning, model: str, otherwise: str) -> str:
    """Returns the remedy for a refusal of this program, else the one that helps with any."""
    return REMEDIES.get((kind, meaning), otherwise).replace("{model}", model)


def _is(reply: JsonReply, key: str) -> bool:
    return reply.status == 200 and key in reply.data


def _kind_of(answers: _Answers) -> str:
    if _is(answers.version, "version"):
        return OLLAMA
    if _is(answers.props, "default_generation_settings"):
        return LLAMA_CPP
    if any("max_context_length" in entry for entry in _entries(answers.studio)):
        return LM_STUDIO
    info = answers.described.data.get("info")
    title = str(info.get("title", "")) if isinstance(info, dict) else ""
    text = f"{title} {answers.page.text[:4000] if answers.page.status == 200 else ''}".lower()
    return next((kind for words, kind in _TITLES.items() if words in text), "")


def _context(answers: _Answers, model: str) -> int:
    """Tokens of the context that the model runs with, as the first of these answers tells."""
    settings = answers.props.data.get("default_generation_settings")
    if isinstance(settings, dict) and (found := _whole(settings.get("n_ctx"))):
        return found
    for entry in _entries(answers.studio):
        if entry.get("id") == model and (found := _whole(entry.get("loaded_context_length"))):
            return found
    running = answers.loaded.data.get("models")
    for entry in running if isinstance(running, list) else ():
        if isinstance(entry, dict) and entry.get("name") in (model, f"{model}:latest"):
            return _whole(entry.get("context_length"))
    parameters = answers.shown.data.get("parameters")
    for line in parameters.splitlines() if isinstance(parameters, str) else ():
        name, _, value = line.partition(" ")
        if name == "num_ctx" and value.strip().isdecimal() and len(value.strip()) < 9:
            return int(value)
    for entry in _entries(answers.listed):
        if entry.get("id") == model:
            return _whole(entry.get("max_model_len")) or _whole(entry.get("context_length"))
    return 0


def _billions(answers: _Answers, model: str) -> float:
    """Billions of parameters as llama.cpp and Ollama tell them."""
    sizes: list[object] = []
    for entry in _entries(answers.listed):
        meta = entry.get("meta")
        if entry.get("id") == model and isinstance(meta, dict):
            sizes.append(meta.get("n_params"))
    info = answers.shown.data.get("model_info")
    if isinstance(info, dict):
        sizes.append(info.get("general.parameter_count"))
    if found := next(filter(None, map(_whole, sizes)), 0):
        return min(found / 1e9, _MOST_BILLIONS)
    details = answers.shown.data.get("details")
    return size_in_name(str(details.get("parameter_size", ""))[:40]) if isinstance(details, dict) else 0.0


def _tools(answers: _Answers) -> bool | None:
    """True where a model's template has calls of tools (llama.cpp, Ollama), False where it has none."""
    capabilities = answers.shown.data.get("capabilities")
    if isinstance(capabilities, list):
        return "tools" in capabilities
    template = answers.props.data.get("chat_template_caps")
    declared = template.get("supports_tools") if isinstance(template, dict) else None
    return declared if isinstance(declared, bool) else None


def _entries(reply: JsonReply) -> list[dict[str, Any]]:
    data = reply.data.get("data")
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
