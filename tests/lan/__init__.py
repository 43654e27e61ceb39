"""A network of several machines inside one, for tests."""
