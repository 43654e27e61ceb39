"""Authentication and authorization between machines: TLS, tokens, capabilities."""
