"""The checks behind ``rappd doctor``: they look, start nothing and change nothing."""
