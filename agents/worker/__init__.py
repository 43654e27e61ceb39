"""The processes that run agent code: template, workers, crews and what shuts them in.

Runs inside a worker: ``template``, ``preload``, ``birth``, ``serve``, ``line``, ``callback``, ``limits``,
``sandbox``, ``namespaces``, ``landlock``, ``privileges``, ``syscalls`` (standard library and orjson only).
Runs in the daemon: ``workforce``, ``crew``, ``shift``, ``worker_link``, ``template_link``, ``output``.
"""
