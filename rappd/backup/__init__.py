"""The whole home in one file, and back: what load, run, save means for a machine (cartridges: backups)."""
