"""Discovery of machines and their addresses: announcements, files, presence."""
