"""Conversations: the list beside the chat, what was said in each, titles, and the search."""
