"""Chains and graphs: several agents one after the other, or side by side, within one call."""
