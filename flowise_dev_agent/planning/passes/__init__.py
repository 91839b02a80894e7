"""Passes of the planning pipeline: each completes a plan or finds its problems."""
