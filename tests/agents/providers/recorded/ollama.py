"""Ollama, by its OpenAI-compatible address."""

from __future__ import annotations

from tests.agents.providers.recorded.shape import Shape, body, call, chunk, stream

SHAPES = [
    Shape(
        "a call whole in one piece, ended by stop",
        "github.com/ollama/ollama issue 11633; pull request 7963",
        stream(chunk({"role": "assistant", "content": "", **call("Weather", '{"city":"Rome"}')}),
               chunk({"role": "assistant", "content": ""}, "stop")),
        calls=(("Weather", '{"city":"Rome"}'),),
    ),
    Shape(
        "two calls that both have the index 0",
        "github.com/ollama/ollama issue 11633 (calls come whole); github.com/BerriAI/litellm pull request 37792",
        stream(chunk(call("Weather", '{"city":"Rome"}', id="call_a")),
               chunk(call("Weather", '{"city":"Oslo"}', id="call_b")), chunk({"content": ""}, "tool_calls")),
        calls=(("Weather", '{"city":"Rome"}'), ("Weather", '{"city":"Oslo"}')),
    ),
    Shape(
        "thoughts of a thinking model beside the text",
        "docs.ollama.com, capabilities: thinking",
        stream(chunk({"reasoning": "Short will do."}), chunk({"content": "Hello."}), chunk({"content": ""}, "stop")),
        text="Hello.", thoughts="Short will do.",
    ),
    Shape(
        "its own lines, where an address ends in /api/chat",
        "docs.ollama.com, API: chat",
        b'{"model":"m","message":{"role":"assistant","content":"Hel"},"done":false}\n'
        b'{"model":"m","message":{"role":"assistant","content":"lo."},"done":false}\n'
        b'{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n',
        text="Hello.",
    ),
    Shape(
        "a model that was never taught to call",
        "github.com/ollama/ollama, server: capability check of a model's template",
        body({"error": {"message": "registry.ollama.ai/library/gemma3:1b does not support tools", "type": "api_error"}}),
        400, meaning="no_tools", said="does not support tools",
    ),
    Shape(
        "a model that is not there",
        "docs.ollama.com, API: errors",
        body({"error": {"message": "model \"m\" not found, try pulling it first", "type": "api_error"}}),
        404, meaning="no_model", said="not found",
    ),
    Shape(
        "a model larger than the memory",
        "github.com/ollama/ollama, llm: check of available memory",
        body({"error": {"message": "model requires more system memory (5.6 GiB) than is available (3.1 GiB)"}}),
        500, meaning="memory", said="more system memory",
    ),
]  # fmt: skip
