"""LisPy (``lispy-core@1``): the small language of agents that travel as a file.

Its machine can be frozen between any two steps, written as JSON, carried, and resumed.
"""
