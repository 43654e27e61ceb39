"""Settings to paste into a program elsewhere, so that it finds this machine, trusts its certificate and shows its token."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import orjson

from rappd.errors import ConflictError, UsageProblemError
from rappd.federation.node_identity import dialled_names

PROTOCOLS = ("openai", "ollama", "mcp", "a2a", "acp")
_CERTIFICATE = "machine.pem"


class ClientSettings(TypedDict):
    """The lines to paste into a program, the address in them, and the certificate's file on this machine."""

    url: str
    certificate: str
    lines: list[str]


def client_settings(client: str, token: str, *, port: int, folder: Path) -> ClientSettings:
    """``url``, ``certificate`` (a file of this machine) and the ``lines`` to paste for a protocol.

    ``folder``: where the certificate is. Raises ``UsageProblemError``, and ``ConflictError`` where the port is closed.
    """
    if client not in PROTOCOLS:
        raise UsageProblemError(f'"{client[:20]}" is no protocol.', do=f"Choose {', '.join(PROTOCOLS)}.")
    if not port:
        raise ConflictError(
            "This machine does not listen for other machines.", do="rappd config set peers.listen on"
        )
    host = dialled_names()[1]
    url = f"{'wss' if client == 'acp' else 'https'}://{host}:{port}{_PATHS[client]}"
    return {"url": url, "certificate": str(folder / _CERTIFICATE), "lines": _lines(client, url, token)}


_PATHS = {
    "openai": "/v1",
    "ollama": "/ollama",
    "mcp": "/mcp",
    "a2a": "/.well-known/agent-card.json",
    "acp": "/acp",
}


def _lines(client: str, url: str, token: str) -> list[str]:
    trust = [f"SSL_CERT_FILE={_CERTIFICATE}", f"NODE_EXTRA_CA_CERTS={_CERTIFICATE}"]
    if client == "openai":
        return [f"OPENAI_BASE_URL={url}", f"OPENAI_API_KEY={token}", "OPENAI_MODEL=brainstem", *trust]
    if client == "ollama":
        return [f"OLLAMA_HOST={url}", f"OLLAMA_API_KEY={token}", *trust]
    if client == "mcp":
        server = {"url": url, "headers": {"Authorization": f"Bearer {token}"}}
        return [
            *orjson.dumps({"mcpServers": {"rappd": server}}, option=orjson.OPT_INDENT_2)
            .decode()
            .splitlines(),
            *trust,
        ]
    return [url, f"Authorization: Bearer {token}", *trust]
