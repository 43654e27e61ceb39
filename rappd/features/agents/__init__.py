"""Agents of the brainstem and of twins: files, quarantine, running and testing them."""
