"""vLLM."""

from __future__ import annotations

from tests.agents.providers.recorded.shape import Shape, body, call, chunk, stream

SHAPES = [
    Shape(
        "a call in pieces, the id only in the first",
        "docs.vllm.ai, features: tool calling",
        stream(chunk({"role": "assistant", "content": ""}), chunk(call("Weather", "")),
               chunk(call(None, '{"city": "Ro', id=None)), chunk(call(None, 'me"}', id=None)),
               chunk({"content": ""}, "tool_calls")),
        calls=(("Weather", '{"city": "Rome"}'),),
    ),
    Shape(
        "thoughts by a parser of its own",
        "docs.vllm.ai, features: reasoning outputs",
        stream(chunk({"reasoning_content": "Short will do."}), chunk({"content": "Hello."}, "stop", usage=None)),
        text="Hello.", thoughts="Short will do.",
    ),
    Shape(
        "started without a parser of calls",
        "github.com/langchain4j/langchain4j issue 3475; github.com/vllm-project/vllm issue 9986",
        body({"object": "error", "type": "BadRequestError", "param": None, "code": 400,
              "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'}),
        400, meaning="no_tools", said="--tool-call-parser",
    ),
    Shape(
        "beyond the context",
        "docs.vllm.ai, serving: engine arguments (max-model-len)",
        body({"object": "error", "type": "BadRequestError", "param": None, "code": 400,
              "message": "This model's maximum context length is 4096 tokens. However, you requested 5200 tokens "
                         "(5200 in the messages, 0 in the completion). Please reduce the length of the messages."}),
        400, meaning="context", said="maximum context length", held=4096,
    ),
    Shape(
        "a model of another name",
        "docs.vllm.ai, serving: OpenAI-compatible server",
        body({"error": {"message": "The model `m` does not exist.", "type": "NotFoundError", "code": 404}}),
        404, meaning="no_model", said="does not exist",
    ),
]  # fmt: skip
