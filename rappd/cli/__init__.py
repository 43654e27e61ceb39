"""The command line: one room per verb, screens as people see them."""
