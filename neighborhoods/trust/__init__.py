"""Trust between machines: whom a connection is with, who calls, and what it may do."""
