"""The state of the daemon, and links that open its page."""
