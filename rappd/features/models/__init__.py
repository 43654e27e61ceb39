"""Models and their servers: which answer, which can be chosen, connected or downloaded."""
