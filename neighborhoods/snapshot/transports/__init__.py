"""The ways to a member's twins: SSH, a folder, git repositories, a paired machine's rappd."""
