"""Defences of the program, and a run that takes them out one at a time to see which test notices."""
