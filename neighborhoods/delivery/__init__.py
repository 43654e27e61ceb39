"""Delivery of envelopes to peers: at once with retries, or by a durable queue; broadcast."""
