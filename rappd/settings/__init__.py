"""Settings: what can be set, where each value came from, and writing one down."""
