"""A machine between two steps as a JSON object, ``lispy-image/1.0``.

``limits``, ``usage {steps, peak_call_depth, cells}``, ``output`` so far, ``inputs`` that are still to be
given (null: the program cannot ask), ``next`` (what the registers hold), ``stack`` (oldest frame first),
``scopes`` (the globals first, without what is as a program starts with it), ``heap``.

Values are written with the tags of ``lispy-value@1``. What has parts lies in the heap once, and is
meant by ``{"tag": "ref", "id": place}``; so do long strings and integers. A thing in the heap refers only
to what lies before it, and a scope's parent is one before it: circles go through scopes alone.
"""
