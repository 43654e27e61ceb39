"""Opening eggs: from a file of any known kind to an ``Opened`` that can be inspected, compared and planned.

``sniffing.open_egg`` is the way in.
"""
