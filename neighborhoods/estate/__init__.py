"""The owner's estate: the rappids of what is theirs, wherever it lives; doors, beacon and egg are made from it.

``estate_file`` keeps ``estate.json``, ``doors`` derives addresses, ``beacon`` the announcement of the owner, and
``estate_egg`` writes and reads the egg that holds all of it.
"""
