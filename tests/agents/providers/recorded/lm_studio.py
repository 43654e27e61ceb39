"""LM Studio."""

from __future__ import annotations

from tests.agents.providers.recorded.shape import Shape, body, call, chunk, stream

_OVERFLOW = (
    "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context "
    "length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or "
    "provide a shorter input"
)

SHAPES = [
    Shape(
        "a call in pieces",
        "lmstudio.ai/docs, developer: tool use",
        stream(chunk({"role": "assistant", **call("Weather", "")}), chunk(call(None, '{"city":', id=None)),
               chunk(call(None, '"Rome"}', id=None)), chunk({}, "tool_calls")),
        calls=(("Weather", '{"city":"Rome"}'),),
    ),
    Shape(
        "beyond the context, as a text",
        "github.com/lmstudio-ai/lmstudio-bug-tracker issues 237 and 546",
        body({"error": _OVERFLOW}), 400, meaning="context", said="context", held=4096,
    ),
    Shape(
        "beyond the context, as an event of a stream that began with 200",
        "github.com/lmstudio-ai/lmstudio-bug-tracker issue 2256",
        stream(f'event: error\ndata: {{"error": {{"message": "{_OVERFLOW}"}}}}\n\n', done=False),
        ending="refused", meaning="context", said="context", held=4096,
    ),
    Shape(
        "beyond the context, as an answer without a word",
        "github.com/lmstudio-ai/lmstudio-bug-tracker issue 2339",
        stream(chunk({"role": "assistant"}), chunk({}, "stop")),
    ),
    Shape(
        "no model is loaded",
        "lmstudio.ai/docs, developer: just-in-time loading",
        body({"error": {"message": "No models loaded. Please load a model in the developer page or use the 'lms load' command."}}),
        404, meaning="no_model", said="No models loaded",
    ),
]  # fmt: skip
