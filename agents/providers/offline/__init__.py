"""Keyword matching: picks an agent and fills its arguments from the words alone, without a model.

``brain`` is the provider; ``route`` decides, ``match`` scores agents, ``arguments`` fills schemas,
``speak`` and ``present`` word the answers. Pure functions: no network, no files, nothing learned.
"""
