"""The one installer: verify, plan, stage, move, receipt; and rollback."""
