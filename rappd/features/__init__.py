"""Operations of the owner, noun by noun; ``operation.py`` makes the table of them."""
