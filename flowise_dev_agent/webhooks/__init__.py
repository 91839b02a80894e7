"""Signed webhooks: stored by the transaction that ends a run, delivered by jobs of their own queue."""
