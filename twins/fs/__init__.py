"""File operations in folders that other programs write to."""
