"""One workspace on disk: identity, soul, agent files, sources, lineage, checkpoints."""
