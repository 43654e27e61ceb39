"""The network of workers: a proxy to declared hosts, and the owners of connections."""
