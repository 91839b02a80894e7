"""Approval: the scope of an approved plan, and the checks that keep ops and manual edits inside it."""
