"""Routes of listeners, and the paths below which refusals have a shape of their own, by module.

Made by docs/make_reference.py from the code.
"""

from typing import Any

# fmt: off
ROUTE_PATHS: dict[str, tuple[tuple[str, str, dict[str, Any]], ...]] = {
    "a2a": (
        ("GET", "/a2a/twin/{twin}/.well-known/agent-card.json", {}),
        ("GET", "/.well-known/agent-card.json", {}),
        ("POST", "/a2a/", {}),
        ("POST", "/a2a/twin/{twin}/", {}),
        ("POST", "/a2a", {}),
        ("POST", "/a2a/twin/{twin}", {}),
        ("POST", "/a2a/message:send", {}),
        ("POST", "/a2a/twin/{twin}/message:send", {}),
        ("POST", "/a2a/message:stream", {}),
        ("POST", "/a2a/twin/{twin}/message:stream", {}),
        ("GET", "/a2a/tasks/{id:[^/:]+}", {}),
        ("GET", "/a2a/twin/{twin}/tasks/{id:[^/:]+}", {}),
        ("GET", "/a2a/tasks", {}),
        ("GET", "/a2a/twin/{twin}/tasks", {}),
        ("POST", "/a2a/tasks/{id:[^/:]+}:cancel", {}),
        ("POST", "/a2a/twin/{twin}/tasks/{id:[^/:]+}:cancel", {}),
        ("GET", "/a2a/tasks/{id:[^/:]+}:subscribe", {}),
        ("GET", "/a2a/twin/{twin}/tasks/{id:[^/:]+}:subscribe", {}),
        ("POST", "/a2a/tasks/{id:[^/:]+}:subscribe", {}),
        ("POST", "/a2a/twin/{twin}/tasks/{id:[^/:]+}:subscribe", {}),
        ("GET", "/a2a/extendedAgentCard", {}),
        ("GET", "/a2a/twin/{twin}/extendedAgentCard", {}),
        ("POST", "/a2a/tasks/{id:[^/:]+}/pushNotificationConfigs", {}),
        ("POST", "/a2a/twin/{twin}/tasks/{id:[^/:]+}/pushNotificationConfigs", {}),
        ("GET", "/a2a/tasks/{id:[^/:]+}/pushNotificationConfigs", {}),
        ("GET", "/a2a/twin/{twin}/tasks/{id:[^/:]+}/pushNotificationConfigs", {}),
        ("GET", "/a2a/tasks/{id:[^/:]+}/pushNotificationConfigs/{push}", {}),
        ("GET", "/a2a/twin/{twin}/tasks/{id:[^/:]+}/pushNotificationConfigs/{push}", {}),
        ("DELETE", "/a2a/tasks/{id:[^/:]+}/pushNotificationConfigs/{push}", {}),
        ("DELETE", "/a2a/twin/{twin}/tasks/{id:[^/:]+}/pushNotificationConfigs/{push}", {}),
    ),
    "acp": (
        ("GET", "/acp", {}),
    ),
    "federation.envelopes": (
        ("POST", "/envelopes", {}),
        ("POST", "/envelopes/batch", {}),
        ("GET", "/envelopes/{id}", {}),
        ("GET", "/envelopes/{id}/stream", {}),
        ("GET", "/agents/{id}/capabilities", {}),
        ("GET", "/line", {}),
    ),
    "federation.pairing": (
        ("POST", "/pairing", {}),
    ),
    "federation.xml_messages": (
        ("GET", "/messages", {}),
    ),
    "loopback.chat": (
        ("POST", "/chat", {}),
        ("POST", "/chat/stream", {}),
        ("POST", "/chat/cancel", {}),
    ),
    "loopback.eggs": (
        ("GET", "/eggs/out/{ticket}/{signed}/{folder}/{name}", {}),
    ),
    "loopback.github_login_routes": (
        ("POST", "/login", {}),
        ("POST", "/login/poll", {}),
        ("GET", "/login/status", {}),
        ("POST", "/login/switch", {}),
    ),
    "loopback.health": (
        ("GET", "/health", {}),
        ("GET", "/version", {}),
        ("GET", "/healthz", {}),
        ("GET", "/readyz", {}),
        ("GET", "/metrics", {}),
    ),
    "loopback.http_tools": (
        ("GET", "/tether/healthz", {}),
        ("GET", "/tether/tools", {}),
        ("POST", "/tether/agent", {}),
    ),
    "loopback.openapi": (
        ("GET", "/openapi.json", {}),
    ),
    "loopback.operator_session_routes": (
        ("POST", "/operator/session", {}),
        ("GET", "/operator/session", {}),
        ("DELETE", "/operator/session", {}),
    ),
    "loopback.rapps": (
        ("GET", "/rapps/{id}/{name:.*}", {}),
    ),
    "loopback.replay_page_routes": (
        ("GET", "/sessions/frames/{key:[0-9a-f]{64}}/{id:[0-9a-f]{64}}", {}),
        ("GET", "/sessions/frames/{key:[0-9a-f]{64}}/{id:[0-9a-f]{64}}/own", {}),
    ),
    "loopback.service_routes": (
        ("POST", "/api/businessinsightbot_function", {}),
        ("GET", "/api/health", {}),
        ("*", "/api/{service}/{path:.*}", {}),
        ("*", "/api/{service}", {}),
    ),
    "loopback.static_files": (
        ("GET", "/", {}),
        ("GET", "/web/{name:.+}", {}),
    ),
    "loopback.voice_settings_routes": (
        ("GET", "/voice", {}),
        ("POST", "/voice", {}),
        ("GET", "/voice/toggle", {}),
        ("POST", "/voice/toggle", {}),
        ("GET", "/twin", {}),
        ("POST", "/twin", {}),
        ("GET", "/twin/toggle", {}),
        ("POST", "/twin/toggle", {}),
        ("GET", "/voice/config", {}),
        ("POST", "/voice/config", {}),
        ("POST", "/voice/import", {}),
    ),
    "loopback.well_known": (
        ("GET", "/.well-known/rapp-network.json", {}),
        ("GET", "/.well-known/rapp-estate.json", {}),
    ),
    "mcp": (
        ("POST", "/mcp", {}),
        ("GET", "/mcp", {'allow_head': False}),
    ),
    "ollama": (
        ("GET", "/ollama/", {}),
        ("GET", "/ollama", {}),
        ("GET", "/ollama/api/version", {}),
        ("GET", "/ollama/api/tags", {}),
        ("POST", "/ollama/api/chat", {}),
        ("POST", "/ollama/api/generate", {}),
        ("POST", "/ollama/api/show", {}),
    ),
    "openai": (
        ("GET", "/v1/models", {}),
        ("GET", "/v1/models/{model:.+}", {}),
        ("POST", "/v1/chat/completions", {}),
        ("POST", "/v1/audio/{what:speech|transcriptions|translations}", {}),
        ("POST", "/v1/embeddings", {}),
        ("POST", "/v1/messages", {}),
    ),
    "openai_responses": (
        ("POST", "/v1/responses", {}),
        ("GET", "/v1/responses/{id}", {}),
        ("DELETE", "/v1/responses/{id}", {}),
        ("POST", "/v1/responses/{id}/cancel", {}),
    ),
    "tether_listener": (
        ("GET", "/t", {}),
        ("GET", "/t/{name:.+}", {}),
        ("POST", "/tether/v2/offer", {}),
        ("GET", "/tether/v2/socket", {}),
    ),
    "webhooks": (
        ("POST", "/hooks/{id}", {}),
    ),
}
SHAPE_PATHS: dict[str, tuple[str, ...]] = {
    "a2a": ("/a2a", ),
    "mcp": ("/mcp", ),
    "ollama": ("/ollama", ),
    "openai": ("/v1/messages", "/v1", ),
}
