"""Python packages that agent files declare, installed into the workspace's ``.deps`` folder."""
