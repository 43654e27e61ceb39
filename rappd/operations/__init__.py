"""Operations of the owner: the one place behind page, command line and agents."""
