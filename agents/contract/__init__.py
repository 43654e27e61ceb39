"""The single-file agent: finding, loading, describing and checking agent files (RAPP v1 §5)."""
