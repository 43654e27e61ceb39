"""Webhooks: what is posted to an address, or put into a folder, becomes a turn with everyday rights."""
