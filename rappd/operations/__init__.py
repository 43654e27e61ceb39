"""What the operator may have done: the one place behind page, command line and agents."""
