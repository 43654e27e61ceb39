"""Threads of several participants: who takes part, what is said in turn, workflows in them, and work at set times."""
