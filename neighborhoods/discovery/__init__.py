"""Where other machines are, and whether they answer: announcements, files, addresses, presence."""
