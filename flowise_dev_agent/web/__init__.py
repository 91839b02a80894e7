"""The page: its sources in `app/` (TypeScript, built by `make web`), what is served in `static/` (package data)."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

STATIC_DIR: Final = Path(__file__).with_name("static")


@cache
def build_id() -> str | None:
    """Short hash of the built page, which names all of its files; None where it is not built."""
    index = STATIC_DIR / "index.html"
    return hashlib.sha256(index.read_bytes()).hexdigest()[:12] if index.is_file() else None
