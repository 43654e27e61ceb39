"""Refusals of model servers: each meaning by the words that servers of the field use for it."""

from __future__ import annotations

from typing import Any

import pytest

from agents.errors import ModelUnavailableError
from agents.providers import error_messages, refusals
from agents.providers.refusals import MOST_SAID, REMEDIES, Meaning, Refusal


@pytest.mark.parametrize(
    ("error", "status", "meaning"),
    [
        ({"error": {"message": "model 'qwen9' not found, try pulling it first"}}, 404, "no_model"),
        ({"error": {"message": "gemma3:1b does not support tools", "type": "api_error"}}, 400, "no_tools"),
        (
            {
                "error": {
                    "message": "This model's maximum context length is 8192 tokens. Please reduce the length of the messages."
                }
            },
            400,
            "context",
        ),
        ({"error": {"message": "Requested tokens (2563) exceed context window of 2048"}}, 500, "context"),
        (
            {
                "error": "the first 5000 tokens overflow the context: it is loaded with a context length of only 4096 tokens"
            },
            400,
            "context",
        ),
        ({"error": {"message": "The prompt is too long: 210000 tokens > 200000 maximum"}}, 400, "context"),
        ({"error": {"message": "Incorrect API key provided"}}, 401, "key"),
        ({"error": "unauthorized"}, 401, "key"),
        (
            {
                "error": {
                    "message": "You exceeded your current quota, check your plan and billing",
                    "type": "insufficient_quota",
                }
            },
            429,
            "quota",
        ),
        (
            {"error": {"message": "Rate limit reached on tokens per min. Please try again in 6.5s."}},
            429,
            "limit",
        ),
        ({"error": {"message": "qwen is temporarily rate-limited upstream"}}, 429, "limit"),
        ({"error": {"code": 503, "message": "Loading model"}}, 503, "loading"),
        ({"error": {"message": "Model is currently loading, please retry"}}, 503, "loading"),
        ({"error": "model requires more system memory (5.6 GiB) than is available (3.1 GiB)"}, 500, "memory"),
        ({"error": {"message": "CUDA out of memory"}}, 0, "memory"),
        (
            {
                "error": {
                    "message": "The response was filtered by the content management policy",
                    "code": "content_filter",
                }
            },
            400,
            "filter",
        ),
        ("<html><body>Login</body></html>", 200, "not_a_model_server"),
        ({"error": {"message": "System role not supported"}}, 400, "no_system"),
        (
            {
                "error": {
                    "message": "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."
                }
            },
            500,
            "alternate",
        ),
        (
            {"error": {"message": "Error rendering prompt: Conversations must start with a user prompt"}},
            400,
            "alternate",
        ),
        ({"error": {"message": "Unknown field: stream_options"}}, 400, "no_stream_usage"),
        ({"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]}, 422, "no_tools"),
        ({"error": {"code": 500, "message": "tools param requires --jinja flag"}}, 500, "no_tools"),
        ({"error": {"message": "No endpoints found that support tool use", "code": 404}}, 404, "no_tools"),
        (
            {
                "error": {
                    "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'
                }
            },
            400,
            "no_tools",
        ),
        (
            {"error": {"message": "Unsupported value: 'tools' is not supported with this model."}},
            400,
            "no_tools",
        ),
        ({"error": {"message": "Only user and assistant roles are supported!"}}, 400, "no_tools"),
        ({"error": {"message": "Cannot use tools with stream"}}, 500, "no_tool_stream"),
        (
            {"error": {"message": "image input is not supported - hint: provide the mmproj"}},
            500,
            "no_pictures",
        ),
        ({"error": {"message": "this model does not support image input"}}, 400, "no_pictures"),
        ({"object": "error", "message": "The model `x` does not exist.", "code": 404}, 404, "no_model"),
        ({"error": {"message": "invalid model name passed in model=foo"}}, 400, "no_model"),
        ({"error": {"message": "Overloaded", "type": "overloaded_error"}}, 529, "busy"),
        ("upstream connect error", 503, "busy"),
        ({"error": {"message": "`max_tokens` is too large: 9999"}}, 400, "request"),
        ("", 500, "server"),
        ("", 418, "request"),
        ("", 302, "elsewhere"),
        ("", 402, "quota"),
        ("", 413, "context"),
    ],
)
def test_meaning_of_a_refusal(error: Any, status: int, meaning: str) -> None:
    assert refusals.read(error, status).meaning == meaning


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"error": {"message": "no"}}, "no"),
        ({"error": "no"}, "no"),
        ({"message": "no"}, "no"),
        ({"detail": "no"}, "no"),
        ({"detail": [{"loc": ["body", "tools"], "msg": "not permitted"}]}, "tools: not permitted"),
        ({"error": {"message": "Provider error", "metadata": {"raw": '{"error": {"message": "no"}}'}}}, "no"),
        ({"error": {"message": 'APIError: {"error": {"message": "no"}} (again)'}}, "no"),
        ({"error": {"message": "one\n\x1b[31mtwo\u202e"}}, "one [31mtwo"),
        ("upstream connect error", "upstream connect error"),
        ({"error": {"message": "//me:secret-1@host refused sk-abcdefgh1234"}}, "//***@host refused ***"),
        ({"error": {"message": "x" * 1000}}, "x" * (MOST_SAID - 1) + "…"),
        ({"error": {"code": 7}}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_sentence_of_a_refusal(error: Any, said: str) -> None:
    assert refusals.read(error, 400).server_sentence == said


def test_tokens_of_a_context_that_is_exceeded() -> None:
    error = {
        "error": {
            "message": "request exceeds the available context size",
            "n_ctx": 4096,
            "n_prompt_tokens": 5000,
        }
    }
    found = refusals.read(error, 400)
    assert (found.context_tokens, found.needed) == (4096, 5000)
    words = (
        "This model's maximum context length is 8192 tokens, however you requested 9000 tokens (8000 + 1000)"
    )
    assert (refusals.read(words, 400).context_tokens, refusals.read(words, 400).needed) == (8192, 9000)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "50"}, 50),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:50 GMT"}, 50),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "inf"}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:50 GMT"}, 0),
        ({}, 0),
    ],
)
def test_seconds_that_a_server_asks_to_wait(headers: dict[str, str], wait: float) -> None:
    assert refusals.seconds_to_wait(headers, 60.0) == wait


def test_every_meaning_has_a_remedy_and_a_sentence() -> None:
    for meaning in Meaning:
        assert meaning is Meaning.SILENT or REMEDIES[meaning]
        problem = error_messages.unavailable(
            Refusal(meaning), "Ollama", "m", silent_do="start it", seconds=60
        )
        assert isinstance(problem, ModelUnavailableError)
        assert str(problem).startswith("Ollama ")
        assert problem.do


def test_long_foreign_text_is_read_in_proportion() -> None:
    for text in ("(" * 200_000, "context " * 30_000, "tools not " * 30_000, "{" * 200_000):
        assert refusals.read(text, 400).server_sentence.endswith("…")
