"""Reads eggs of every known kind into a ``ParsedEgg``; ``detect.open_egg`` is the entry point."""
