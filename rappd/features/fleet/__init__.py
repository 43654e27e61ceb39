"""All machines at once."""
