"""Trying a model server before it is used: whether it answers, and in plain words why it does not."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from agents.providers.json_http import JsonReply, ask
from agents.providers.local_servers import (
    WorkerServes,
    is_served_by_worker,
    model_entries,
    name_of,
)
from agents.providers.model_names import chat_models
from agents.providers.openai_server import Azure
from agents.providers.refusals import read as read_refusal
from agents.providers.server_kinds import OLLAMA, facts, kind_of_listing
from agents.providers.urls import base_url, is_web_address, on_this_machine, shown, without_login

_NAMED = 5
_QUESTION = [{"role": "user", "content": "Answer with the one word: yes"}]
_PREFERRED = "gpt-4o"


class CheckLimits(msgspec.Struct, frozen=True):
    """Seconds that a server has for its list of models, and a model for its answer."""

    listing: float = 5.0
    answer: float = 45.0


USUAL_LIMITS = CheckLimits()


class CheckResult(msgspec.Struct, frozen=True):
    """Outcome of a trial. ``reason`` is "" when the server answered, else a word for programs.

    ``text`` and ``do`` are for people, ``model`` is the one that was tried, ``models`` those that the server lists.
    ``address`` is one to use in place of the one that was tried, where another works. ``server`` is the program or the
    host that was asked, ``server_sentence`` its own sentence where it refused.
    """

    reason: str = ""
    text: str = ""
    do: str = ""
    model: str = ""
    models: tuple[str, ...] = ()
    seconds: float = 0.0
    address: str = ""
    server: str = ""
    server_sentence: str = msgspec.field(default="", name="said")

    @property
    def works(self) -> bool:
        return not self.reason


async def check_server(
    address: str,
    key: str,
    model: str,
    worker_serves: WorkerServes | None = None,
    limits: CheckLimits = USUAL_LIMITS,
) -> CheckResult:
    """Tries an OpenAI-compatible server: its list of models, then one short answer.

    Follows no redirect, and tells nothing of what the server said but its kind, names of models and the sentence of an
    error.
    """
    if refusal := unfit_address(address):
        return refusal
    url, headers = without_login(base_url(address))
    if await is_served_by_worker(url, worker_serves):
        return _served_by_agent(url)
    if key:
        headers = {**headers, "Authorization": f"Bearer {key}"}
    listed = await ask("GET", f"{url}/models", headers=headers, within=limits.listing)
    if listed.status == 404 or (listed.status == 200 and model_entries(listed) is None):
        return await _wrong_path(url, headers, listed, limits.listing)
    problem = _problem(url, listed, limits.listing, key)
    if problem is not None:
        return problem
    entries = model_entries(listed) or []
    every = tuple(entry["id"] for entry in entries)
    models = chat_models(every)
    if model and every and model not in every:
        return replace(_no_model(url, model, models), server=_kind(url, listed))
    asked = model or (_PREFERRED if _PREFERRED in models else next(iter(models), ""))
    if not asked:
        kind = kind_of_listing(listed)
        if not kind and on_this_machine(url):  # an empty list tells nothing
            kind = (await facts(ask, url, "")).kind
        kind = kind or _name(url)
        return CheckResult("no_model", f"{kind} has no model yet.", _fetch_one(kind), server=kind)
    found = await _answers(f"{url}/chat/completions", headers, asked, models, limits.answer, key)
    return replace(found, models=models, server=_kind(url, listed))


async def check_azure(
    azure: Azure, worker_serves: WorkerServes | None = None, limits: CheckLimits = USUAL_LIMITS
) -> CheckResult:
    """Tries an Azure OpenAI deployment with one short answer."""
    if refusal := unfit_address(azure.endpoint):
        return refusal
    if not azure.deployment:
        return CheckResult(
            "no_model", "The deployment is missing.", "type the name that you gave it in Azure"
        )
    endpoint, headers = without_login(azure.endpoint.strip().rstrip("/"))
    endpoint = endpoint if "://" in endpoint else f"https://{endpoint}"
    if await is_served_by_worker(endpoint, worker_serves):
        return _served_by_agent(endpoint)
    url = f"{endpoint}/openai/deployments/{azure.deployment}/chat/completions?api-version={azure.version}"
    if azure.key:
        headers = {**headers, "api-key": azure.key}
    found = await _answers(url, headers, azure.deployment, (), limits.answer, azure.key)
    return replace(found, server="Azure OpenAI")


def unfit_address(address: str) -> CheckResult | None:
    """The result for what is no web address at all, else None."""
    if is_web_address(address):
        return None
    return CheckResult(
        "bad_address", "That is not a web address.", "write it like https://models.example.org/v1"
    )


async def _answers(
    url: str, headers: dict[str, str], model: str, models: tuple[str, ...], within: float, key: str
) -> CheckResult:
    began = time.monotonic()
    body = {"model": model, "messages": _QUESTION}
    reply = await ask("POST", url, headers=headers, json=body, within=within)
    if reply.failure == "timeout":
        return CheckResult(
            "slow",
            f'"{model}" did not answer within {within:g} s.',
            "test again in a minute, it may still be loading; or choose a smaller model",
        )
    if reply.status in (400, 404, 422):
        return replace(_refused_model(url, model, models, reply), server_sentence=_sentence_of(reply, key))
    problem = _problem(url, reply, within, key)
    if problem is not None:
        return problem
    if not isinstance(reply.data.get("choices"), list) or not reply.data["choices"]:
        return _not_a_model_server(url, reply)
    return CheckResult(model=model, models=models, seconds=round(time.monotonic() - began, 1))


def _kind(url: str, listed: JsonReply) -> str:
    """The program that serves there where its list tells, else its host."""
    return kind_of_listing(listed) or shown(url)


def _sentence_of(reply: JsonReply, key: str) -> str:
    """A server's own sentence of an error, "" where it sent none that is JSON."""
    return read_refusal(reply.data, reply.status, secrets=(key,)).server_sentence if reply.data else ""


def _problem(url: str, reply: JsonReply, within: float, key: str) -> CheckResult | None:
    """The reason why a reply is none of a working server, as far as its status tells; None for 200."""
    if not reply.status:
        return _unanswered(url, reply.failure, within)
    found = _by_status(url, reply, has_key=bool(key))
    return (
        replace(found, server=shown(url), server_sentence=_sentence_of(reply, key))
        if found is not None
        else None
    )


def _by_status(url: str, reply: JsonReply, *, has_key: bool) -> CheckResult | None:
    where = shown(url)
    if reply.status in (401, 403):
        if has_key:
            return CheckResult("key_refused", f"{where} refused the key.", "copy the key again, whole")
        return CheckResult("key_missing", f"{where} asks for a key.", "type the key that you got there")
    if 300 <= reply.status < 400:
        there = shown(reply.location) or "another address"
        return CheckResult(
            "redirect", f"{where} sends visitors on to {there}.", "type the address where it really is"
        )
    if reply.status == 429:
        return CheckResult(
            "limit", f"{where} says that the limit is reached.", "wait, or look at your plan there"
        )
    if reply.status >= 500:
        return CheckResult(
            "server_error",
            f"{where} has trouble of its own ({reply.status}).",
            "try again later, or look there",
        )
    if reply.status != 200:
        return CheckResult("refused_request", f"{where} answered {reply.status}.", "check the address")
    return None


def _unanswered(url: str, failure: str, within: float) -> CheckResult:
    where, host = shown(url), urlsplit(url).hostname or ""
    start = f"start {_name(url)}" if on_this_machine(url) else "start the server there"
    if failure == "refused":
        return CheckResult(
            "refused", f"Nothing listens at {where}.", f"{start}, or check the number behind the colon"
        )
    if failure == "unknown_host":
        return CheckResult(
            "unknown_host", f'No computer is called "{host}".', "check how the address is written"
        )
    if failure == "timeout":
        return CheckResult(
            "timeout",
            f"{where} did not answer within {within:g} s.",
            "check that it runs, and that no firewall stands between",
        )
    if failure == "untrusted":
        return CheckResult(
            "untrusted",
            f"The certificate of {where} is not trusted on this computer.",
            "check the address; for a server of your own, add its certificate to this computer",
        )
    if failure == "no_tls":
        return CheckResult("no_tls", f"{where} does not speak https.", "begin the address with http://")
    return CheckResult(
        "broken", f"{where} broke the connection off.", "check http:// or https:// at the beginning"
    )


async def _wrong_path(url: str, headers: dict[str, str], reply: JsonReply, within: float) -> CheckResult:
    """A server answers, but not as a model server: its usual path is tried once, at the same host."""
    parts = urlsplit(url)
    usual = f"{parts.scheme}://{parts.netloc}/v1"
    if usual != url.rstrip("/"):
        there = await ask("GET", f"{usual}/models", headers=headers, within=within)
        if there.status == 200 and model_entries(there) is not None:
            return CheckResult(
                "wrong_path", f"The model server is at {shown(url)}/v1.", "use that address", address=usual
            )
    if reply.status == 404:
        return CheckResult(
            "wrong_path",
            f"{shown(url)} answers, but has no models at {parts.path or '/'}.",
            "check what stands behind the name; it often ends in /v1",
        )
    return _not_a_model_server(url, reply)


def _not_a_model_server(url: str, reply: JsonReply) -> CheckResult:
    if not reply.data:
        page = " but a web page" if reply.text.lstrip()[:1] == "<" else ""
        return CheckResult(
            "not_json",
            f"{shown(url)} answers, but does not send JSON{page}: it is no model server.",
            "check the address; it often ends in /v1",
        )
    return CheckResult(
        "not_openai",
        f"{shown(url)} answers, but not in the way of OpenAI.",
        "check the address; it often ends in /v1",
    )


def _refused_model(url: str, model: str, models: tuple[str, ...], reply: JsonReply) -> CheckResult:
    if reply.status == 404 or "model" in reply.text.lower():
        return _no_model(url, model, models)
    return CheckResult(
        "refused_request",
        f'{shown(url)} refused a question to "{model}" ({reply.status}).',
        "choose another model",
    )


def _no_model(url: str, model: str, models: tuple[str, ...]) -> CheckResult:
    others = [f'"{one}"' for one in models if one != model]
    do = f"choose one of: {', '.join(others[:_NAMED])}" if others else "check the name"
    return CheckResult("no_model", f'{shown(url)} has no model "{model}".', do, models=models)


def _served_by_agent(url: str) -> CheckResult:
    return CheckResult(
        "agent",
        f"An agent on this computer listens at {shown(url)}.",
        "remove the agent that you do not know",
    )


def _name(url: str) -> str:
    found = name_of(url) if on_this_machine(url) else "local model"
    return "the server" if found == "local model" else found


def _fetch_one(kind: str) -> str:
    return "`ollama pull llama3.2`" if kind == OLLAMA else "load one there"
