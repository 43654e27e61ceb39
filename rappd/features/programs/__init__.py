"""Foreign programs: who connected, what they may use, what they asked."""
