"""The procedures of the language, by what they work on."""
