"""Azure OpenAI."""

from __future__ import annotations

from tests.agents.providers.recorded.shape import Shape, body, chunk, stream

_CHECKED = {"hate": {"filtered": False, "severity": "safe"}}

SHAPES = [
    Shape(
        "a first piece without choices, of the filter of the question",
        "learn.microsoft.com, Azure OpenAI: content filtering, streaming",
        stream({"object": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
               chunk({"role": "assistant", "content": ""}), chunk({"content": "Hello."}), chunk({}, "stop")),
        text="Hello.",
    ),
    Shape(
        "pieces of the filter alone, after the text (asynchronous filter)",
        "learn.microsoft.com, Azure OpenAI: content streaming",
        stream(chunk({"content": "Hello."}),
               {"object": "", "choices": [{"index": 0, "finish_reason": None, "content_filter_results": _CHECKED,
                                           "content_filter_offsets": {"check_offset": 0}}]},
               chunk({}, "stop")),
        text="Hello.",
    ),
    Shape(
        "the rest of an answer withheld",
        "learn.microsoft.com, Azure OpenAI: content filtering",
        stream(chunk({"content": "Hel"}), chunk({}, "content_filter")), text="Hel", ending="filter",
    ),
    Shape(
        "a question withheld",
        "learn.microsoft.com, Azure OpenAI: content filtering, errors",
        body({"error": {"code": "content_filter", "status": 400, "param": "prompt", "type": None,
                        "message": "The response was filtered due to the prompt triggering the content policy.",
                        "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
        400, meaning="filter", said="content policy",
    ),
    Shape(
        "a deployment that is not there",
        "learn.microsoft.com, Azure OpenAI: reference, errors",
        body({"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."}}),
        404, meaning="no_model", said="does not exist",
    ),
    Shape(
        "the quota of a minute used up",
        "learn.microsoft.com, Azure OpenAI: quotas and limits",
        body({"error": {"code": "429", "message": "Requests have exceeded the token rate limit of your tier. "
                                                  "Please retry after 6 seconds."}}),
        429, meaning="limit", said="rate limit",
    ),
]  # fmt: skip
