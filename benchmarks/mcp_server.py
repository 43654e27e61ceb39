"""A server of one tool behind the ``mcp`` SDK's own server, by the Python of ``.venv/programs/mcp``.

``python mcp_server.py PORT stateful|stateless``: its default, and what its documentation advises for production.
"""

import sys

import uvicorn
from mcp.server import MCPServer

server = MCPServer("echo")


@server.tool(name="Echo")
def echo(query: str = "nothing") -> str:
    """Answers with what it was asked."""
    return "answered " + query


bare = sys.argv[2] == "stateless"
app = server.streamable_http_app(stateless_http=bare, json_response=bare)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
