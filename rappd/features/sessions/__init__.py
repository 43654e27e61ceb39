"""Sessions: conversations of several participants, phones among them."""
