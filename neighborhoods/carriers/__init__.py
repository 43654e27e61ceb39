"""Ways an envelope takes to a peer: HTTPS requests, and a line that stays open."""
