"""Floor 3, what lives on disk: rappid, workspace, lifecycle, eggs, cartridges."""
