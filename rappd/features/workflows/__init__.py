"""Workflows: files of steps, and their runs in sessions."""
