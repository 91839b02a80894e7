"""Flows for people: search, pictures, comparison, trial conversations."""
