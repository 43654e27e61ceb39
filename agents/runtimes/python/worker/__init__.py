"""The worker's side: the zygote, the loop of calls, and the host of agents and services."""
