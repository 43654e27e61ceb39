"""The processes that run agent code: template, workers, pools and what shuts them in.

For the daemon: ``workforce`` (start here), ``pool``, ``plan``, ``raised``, ``ancestry``, ``privileges``;
behind them ``worker_handle``, ``worker_quota``, ``call``, ``callback_dispatch``, ``frame_socket``,
``leftovers``, ``template_link``, ``output``, ``fates``.
In the template and in workers, with the standard library and orjson only: ``template``, ``preload``,
``forking``, ``birth``, ``worker_main``, ``channel`` (for agent code, too), ``orphans``, ``limits``,
``worker_watch``, ``cgroup_limit``, ``sandbox``, ``namespaces``, ``landlock``, ``privileges``, ``syscalls``.
On both sides: ``protocol``, ``memory``.
"""
