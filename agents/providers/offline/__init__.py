"""Keyword matching: picks an agent and fills its arguments from the words alone, without a model.

``next_step`` continues a conversation, ``route`` decides on one sentence (``spoken_commands`` has those with a form of
their own), ``tool_index`` finds agents, ``arguments`` fills schemas from ``typed_values`` and ``free_text``, ``responses``
words the answers. Pure functions: no network, no files, nothing learned.
"""
