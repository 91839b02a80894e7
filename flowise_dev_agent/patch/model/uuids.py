"""Ids that Flowise keeps in Postgres."""

import re

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def is_uuid(text: str) -> bool:
    """True for the canonical text form of a uuid, the only one that Postgres behind Flowise takes for sure."""
    return _UUID.fullmatch(text) is not None
