"""The ways to a member's twins: SSH, a folder, a paired peer, a git repository."""
