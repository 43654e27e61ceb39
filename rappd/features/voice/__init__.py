"""Voice: the settings of the spoken form of answers."""
