"""Ids that Flowise keeps in Postgres."""

from uuid import UUID


def is_uuid(text: str) -> bool:
    """True for the canonical text form of a uuid, the only one that Postgres behind Flowise takes for sure."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
