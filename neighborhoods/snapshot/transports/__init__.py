"""The ways to a member's twins: SSH, a folder, git repositories."""
