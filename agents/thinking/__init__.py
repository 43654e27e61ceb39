"""What thinks: providers that answer chat-completions with tools, and the offline brain."""
