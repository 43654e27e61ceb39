"""The rules of code: whether it may run, from the quarantine, approvals, origins; trusted signers."""
