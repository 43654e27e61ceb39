"""Sandboxed worker processes that run agent code.

In the daemon: ``supervisor`` (start here), ``pool``, ``worker_handle`` and the modules they import. In the zygote and
in workers, with the standard library and orjson only: ``zygote``, ``preload``, ``clone``, ``spawn``, ``worker_main``,
``channel`` (for agent code, too), ``zombie_reaper``, ``limits``, ``worker_watch``, ``cgroup_limit``, ``sandbox``,
``namespaces``, ``landlock``, ``privileges``, ``syscalls``. On both sides: ``protocol``, ``memfd``.
"""
