"""The dispatcher: every envelope from every listener, its context, and turn streams."""
