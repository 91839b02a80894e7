"""Domains of the agent, one file each."""
