"""The agents that come with rappd: portable single files, copied into a new workspace as they are."""
