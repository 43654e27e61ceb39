"""Operations on what exists here for typed messages."""
