"""Flows without a model: form to plan, plan to ops, and plan back to form."""
