"""Results of agents as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

_TEXTS = ("summary", "message", "result", "response", "output", "content", "answer", "text")
_ERRORS = ("error", "error_message", "errors")
_HIDDEN = frozenset(
    [
        "data_slush",
        "status",
        "success",
        "ok",
        "code",
        "agent",
        "agent_name",
        "source_agent",
        "timestamp",
        "request_id",
        "slush",
        "upstream_slush",
    ]
)
_TITLES = ("title", "name", "subject", "label", "headline", "summary", "text", "message", "id")
_LINKS = ("url", "link", "href", "html_url", "permalink")
_MOST_LINES = 50
_LONGEST_LINE = 300
_DEEPEST = 4
_FAILED = frozenset(("error", "failed", "failure"))


def present(results: Sequence[tuple[str, str]]) -> str:
    """One text for the results ``(agent name, what it returned)`` of a turn.

    Objects show their summary first, then lists as numbered lines, then what else they say;
    ``status``, ``data_slush`` and fields with a leading underscore stay hidden. Errors are said plainly.
    """
    shown = [_shown(name, content) for name, content in results]
    if len(shown) == 1:
        return shown[0]
    return "\n\n".join(
        text if text.startswith(f"{name} ") else f"{name}: {text}"
        for (name, _), text in zip(results, shown, strict=True)
    )


def failure_of(content: str) -> str:
    """The message of a result that reports an error, ``Error: …`` or a JSON object that says so; else ""."""
    plain = content.strip()
    value = _parsed(plain) if plain else ""
    if isinstance(value, dict):
        return _failure(value) or ""
    if isinstance(value, str) and value.startswith("Error: "):
        return value.removeprefix("Error: ").strip()
    return ""


def _shown(name: str, content: str) -> str:
    plain = content.strip()
    if not plain:
        return f"{name} returned nothing."
    if failure := failure_of(plain):
        return f"{name} failed: {failure}"
    value = _parsed(plain)
    return _text(value, 0) or f"{name} is done and returned nothing to show."


def _parsed(text: str) -> Any:
    if text[0] in '{["':
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text


def _failure(value: dict[str, Any]) -> str | None:
    """The error message, if the object reports an error."""
    failure = next((value[key] for key in _ERRORS if value.get(key)), None)
    status = value.get("status")
    failed = status != "partial" and (value.get("success") is False or value.get("ok") is False)
    if failure is None and not failed and not (isinstance(status, str) and status.casefold() in _FAILED):
        return None
    if isinstance(failure, dict):
        failure = _first_text(failure) or _text(failure, 1)
    elif isinstance(failure, list):
        failure = "; ".join(_line(one) for one in failure[:5])
    if failure is None or failure is True:
        failure = _first_text(value)
    return str(failure) if failure else "it gave no reason."


def _first_text(value: dict[str, Any]) -> str:
    return next(
        (value[key].strip() for key in _TEXTS if isinstance(value.get(key), str) and value[key].strip()), ""
    )


def _text(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        return _object(value, depth)
    if isinstance(value, list):
        return _list(value)
    return _scalar(value)


def _object(value: dict[str, Any], depth: int) -> str:
    shown = {
        key: one for key, one in value.items() if not key.startswith("_") and key.casefold() not in _HIDDEN
    }
    parts: list[str] = []
    main = next((key for key in _TEXTS if shown.get(key) not in (None, "", [], {})), None)
    if main is not None:
        parts.append(_text(shown.pop(main), depth + 1))
    details: list[str] = []
    for key, one in shown.items():
        if one in (None, "", [], {}):
            continue
        if isinstance(one, list):
            listed = _list(one)
            if not all(_is_shown(entry, parts) for entry in one):
                parts.append(listed if depth == 0 and len(shown) == 1 else f"{_label(key)}:\n{listed}")
        elif isinstance(one, dict):
            inner = _object(one, depth + 1) if depth < _DEEPEST else _line(one)
            if inner:
                parts.append(f"{_label(key)}:\n{inner}")
        elif not _is_shown(one, parts):
            text = _scalar(one)
            details.append(f"{_label(key)}: {text}")
    if details:
        parts.insert(1 if main is not None else 0, "\n".join(details))
    return "\n\n".join(part for part in parts if part)


def _list(value: list[Any]) -> str:
    lines = []
    for number, one in enumerate(value[:_MOST_LINES], 1):
        lines.append(f"{number}. {_line(one)}" if isinstance(one, dict | list) else f"- {_line(one)}")
    if len(value) > _MOST_LINES:
        lines.append(f"… and {len(value) - _MOST_LINES} more")
    return "\n".join(lines)


def _line(value: Any) -> str:
    """One entry of a list: its title and link, or all it holds."""
    if isinstance(value, dict):
        title = next((_scalar(value[key]) for key in _TITLES if isinstance(value.get(key), str | int)), "")
        link = next((value[key] for key in _LINKS if isinstance(value.get(key), str)), "")
        known = [part for part in (title, link) if part]
        if title and (link or len(value) <= 2):
            text = " ".join(known)
        else:
            text = ", ".join(
                f"{_label(key)}: {_scalar(one)}"
                for key, one in value.items()
                if not key.startswith("_")
                and key.casefold() not in _HIDDEN
                and not isinstance(one, dict | list)
            )
    elif isinstance(value, list):
        text = ", ".join(_scalar(one) for one in value[:20])
    else:
        text = _scalar(value)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_LINE else text[:_LONGEST_LINE] + "…"


def _is_shown(value: Any, parts: list[str]) -> bool:
    """True when the text so far already tells ``value``, so that it need not be repeated."""
    if not parts or isinstance(value, bool):
        return False
    if isinstance(value, dict):
        title = next((value[key] for key in _TITLES if isinstance(value.get(key), str)), "")
        return bool(title) and title in parts[0]
    return _scalar(value) in parts[0]


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    return str(value)


def _label(key: str) -> str:
    return key.replace("_", " ").strip() or key
