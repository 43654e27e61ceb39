"""A neighborhood as a place: a folder with a roster and shared agents that its members join.

``place`` reads and writes the folder, ``place_egg`` packs it, ``invite`` is the file that lets others join, and
``memberships`` is what this machine's owner joined and published, which never travels.
"""
