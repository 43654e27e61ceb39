"""The processes that run agent code: template, workers, crews and what shuts them in.

For the daemon: ``workforce`` (start here), ``crew``, ``plan``, ``raised``, ``ancestry``, ``privileges``;
behind them ``shift``, ``call``, ``callbacks``, ``worker_link``, ``template_link``, ``output``, ``fates``.
In the template and in workers, with the standard library and orjson only: ``template``, ``preload``,
``forking``, ``birth``, ``serve``, ``line``, ``callback`` (for agent code), ``orphans``, ``limits``,
``ceiling``, ``sandbox``, ``namespaces``, ``landlock``, ``privileges``, ``syscalls``.
On both sides: ``wire``, ``board``, ``memory``.
"""
