"""Views of recorded events: turns, a readable conversation, a JSONL export."""
