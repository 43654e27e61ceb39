"""Rapplications: agents with pages of their own."""
