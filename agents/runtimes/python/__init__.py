"""Python code of agents and services, run in sandboxed worker processes.

``pools`` is in the daemon (start with ``pools.runner`` and ``pools.supervisor``). ``worker`` is in the zygote and in
workers, with the standard library and orjson until agent code is loaded. ``sandbox`` is on both sides, ``network`` in
the daemon but for ``network.own_network``.
"""
