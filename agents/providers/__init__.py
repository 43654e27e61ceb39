"""Model providers: chat completions with tools, and the offline provider that needs no model."""
