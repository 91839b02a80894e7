"""Signed webhooks: told by the transaction that brings a session to rest, delivered by jobs of their own queue."""
