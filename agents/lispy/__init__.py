"""LisPy: the small language of agents that travel as a file (``lispy-core@1``), on a machine that can
be frozen between any two steps, written as JSON, carried, and resumed.
"""
