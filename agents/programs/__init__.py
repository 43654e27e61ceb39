"""Programs that the daemon starts: found where no worker can replace them, with a clean environment."""
