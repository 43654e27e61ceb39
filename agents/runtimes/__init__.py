"""Runtimes of agent code: Python in sandboxed processes, and LisPy."""
