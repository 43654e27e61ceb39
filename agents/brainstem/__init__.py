"""The loop that turns a sentence into an answer: soul, roster, model rounds, agent calls, slots."""
