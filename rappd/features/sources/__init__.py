"""Sources: folders and repositories that offer agents."""
