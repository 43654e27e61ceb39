"""Floor 2, the single-file agent, and the brainstem that runs a folder of them.

This package also answers the ``from agents.basic_agent import BasicAgent`` that agent files write,
so it imports nothing here: a worker that loads one agent must not pay for the daemon's rooms.
"""
