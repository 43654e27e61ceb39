"""Requests of other machines, and requests to them."""
