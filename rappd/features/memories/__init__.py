"""Memories of agents, for their owner to see, correct and delete."""
