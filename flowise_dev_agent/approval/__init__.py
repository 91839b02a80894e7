"""Approval: what an approved plan covers, and what binds ops and edits to it."""
