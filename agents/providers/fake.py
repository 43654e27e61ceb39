"""The model of ``LLM_FAKE=1``: predictable, instant, never on the network."""

from __future__ import annotations

from agents.providers.provider import Completion, Message, ModelRequest, ToolCall


class FakeModel:
    """Calls the first tool once per turn with ``{}``, then answers ``fake-llm: <last user text>``.

    With ``request.tools`` and no tool result after the last user message the answer is one call
    ``fake-call-0``. The system text is never built.
    """

    name = "fake model"
    model = "fake-llm"

    async def complete(self, request: ModelRequest) -> Completion:
        text = ""
        called = False
        for message in reversed(request.messages):
            role = message.get("role")
            if role == "user":
                text = _text(message)
                break
            if role == "tool":
                called = True
        if request.tools and not called:
            name = request.tools[0]["function"]["name"]
            return Completion(tool_calls=(ToolCall("fake-call-0", name, "{}"),), model=self.model)
        answer = f"fake-llm: {text}"
        if request.on_text is not None:
            request.on_text(answer)
        return Completion(answer, model=self.model)

    async def close(self) -> None:
        return None


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return ""
