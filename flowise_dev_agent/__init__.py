"""Flowise Dev Agent: a sentence becomes a tested chatflow on your Flowise server."""

__version__ = "0.2.0"
