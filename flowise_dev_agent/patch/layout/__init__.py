"""Positions of nodes."""
