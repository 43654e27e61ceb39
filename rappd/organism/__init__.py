"""The organism: listeners of this machine, and the schemas that are written from their payloads."""
