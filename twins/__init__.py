"""Layer 3, state on disk: workspaces, eggs, installing, lifecycle, cartridges."""
