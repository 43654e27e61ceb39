"""OpenRouter."""

from __future__ import annotations

from tests.agents.providers.recorded.shape import Shape, body, chunk, stream

SHAPES = [
    Shape(
        "comments while a provider is looked for",
        "openrouter.ai/docs, API: streaming",
        stream(chunk({"role": "assistant", "content": "Hel"}), ": OPENROUTER PROCESSING\n\n",
               chunk({"content": "lo."}, "stop", provider="P"), comment="OPENROUTER PROCESSING"),
        text="Hello.",
    ),
    Shape(
        "an error in the midst of an answer",
        "openrouter.ai/docs, API: streaming, errors during streaming",
        stream(chunk({"content": "Hel"}),
               chunk({"content": ""}, "error", error={"code": 502, "message": "Provider disconnected unexpectedly"})),
        text="Hel", ending="refused", meaning="server", said="Provider disconnected",
    ),
    Shape(
        "no credits left",
        "openrouter.ai/docs, API: errors (402)",
        body({"error": {"code": 402, "message": "Insufficient credits. Add more and retry."}}),
        402, meaning="quota", said="Insufficient credits",
    ),
    Shape(
        "no provider that meets the wishes",
        "openrouter.ai/docs, API: errors (503)",
        body({"error": {"code": 503, "message": "No available model provider meets your routing requirements"}}),
        503, meaning="busy", said="No available model provider",
    ),
    Shape(
        "no provider of this model that can call",
        "openrouter.ai/docs, features: tool calling",
        body({"error": {"code": 404, "message": "No endpoints found that support tool use."}}),
        404, meaning="no_tools", said="tool use",
    ),
    Shape(
        "the wrong key",
        "openrouter.ai/docs, API: errors (401)",
        body({"error": {"code": 401, "message": "User not found."}}), 401, meaning="key", said="User not found",
    ),
]  # fmt: skip
