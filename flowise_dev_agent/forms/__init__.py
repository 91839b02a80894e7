"""Flows without a model: a form becomes a plan, a plan becomes ops, and a plan becomes a form again."""
