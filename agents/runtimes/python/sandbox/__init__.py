"""Limits of a worker: mount namespaces or Landlock, system calls, privileges, memory, declared needs."""
