"""Phones that joined: the code that they scan, and what each may do."""
