"""Views of recorded events: turns, a readable conversation, a JSONL export, one-line summaries."""
