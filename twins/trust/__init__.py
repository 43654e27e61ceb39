"""The rules of code: the quarantine and its files, trusted signers, the origin of code."""
