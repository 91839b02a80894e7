"""A flow as people and prompts see it: canvas, summary, difference."""
