"""Opening eggs: from a file of any known kind to an ``ParsedEgg`` that can be inspected, compared and planned.

``sniffing.open_egg`` is the way in.
"""
