"""The one way to install bytes: verify, plan, stage, move, receipt; and back again."""
