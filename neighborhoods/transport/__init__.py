"""Transport to peers: HTTPS requests, and a WebSocket connection that stays open."""
