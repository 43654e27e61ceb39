"""Layer 4, other machines: discovery, pairing, auth, transport, delivery."""
