"""``utils.llm``: a model turn for an agent. The daemon thinks; no key and no address is here.

Callback ``llm`` takes ``{messages, tools, model}`` and gives ``{text, model}``, and ``tool_calls`` if any;
``llm_status`` takes nothing and gives what ``provider_status`` returns.
With ``LLM_FAKE=1`` in the environment nothing is asked: the answer is made here, for tests of agents.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from agents.runtimes.python.worker.channel import CallbackRefusedError, call

Messages = str | Sequence[Mapping[str, Any]]


def call_llm(messages: Messages, model: str | None = None, **_: Any) -> str:
    """The model's text for ``messages`` (a list of ``{role, content}``, or one question).

    Further options of other providers are taken and left aside. Raises ``CallbackRefusedError`` with the
    reason when no model turn is to be had.
    """
    return str(chat(messages, model=model).get("content") or "")


def chat(
    messages: Messages, tools: Sequence[Mapping[str, Any]] | None = None, model: str | None = None, **_: Any
) -> dict[str, Any]:
    """The model's message, ``{role, content, tool_calls}``; ``tool_calls`` is empty when it wants none."""
    asked = [{"role": "user", "content": messages}] if isinstance(messages, str) else [*map(dict, messages)]
    offered = [*map(dict, tools or ())]
    if _is_fake():
        return _fake(asked, offered)
    answer = call("llm", {"messages": asked, "tools": offered, "model": model})
    return {
        "role": "assistant",
        "content": answer.get("text") or "",
        "tool_calls": answer.get("tool_calls") or [],
    }


def provider_status() -> dict[str, Any]:
    """``{available, provider, model, reason}`` without spending a model turn; ``available`` is None where that cannot be told beforehand."""
    if _is_fake():
        return {"available": True, "provider": "fake", "model": "fake-llm", "reason": ""}
    try:
        return dict(call("llm_status", {}))
    except CallbackRefusedError as refused:
        return {"available": None, "provider": "", "model": "", "reason": str(refused)}


def _is_fake() -> bool:
    return os.environ.get("LLM_FAKE", "").lower() in ("1", "true", "yes")


def _fake(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    if tools:
        name = tools[0].get("function", tools[0]).get("name", "")
        wanted = {"id": "fake-call-0", "type": "function", "function": {"name": name, "arguments": "{}"}}
        return {"role": "assistant", "content": "", "tool_calls": [wanted]}
    texts = [message.get("content") for message in messages if message.get("role") == "user"]
    return {"role": "assistant", "content": f"fake-llm: {texts[-1] if texts else ''}", "tool_calls": []}
