"""Runs: a worker drives the graph from where it is to the next interrupt or the end."""
