"""Running agents and services of one workspace: registry, calls in workers, chains and graphs."""
