"""Other machines, as this daemon lives with them: what it takes in, what it sends, whom it trusts."""
