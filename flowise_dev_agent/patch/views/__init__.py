"""Views of a flow for people and prompts: canvas, summary, difference."""
