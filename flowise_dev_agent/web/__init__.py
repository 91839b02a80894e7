"""The page: its sources in `app/` (TypeScript, built by `make web`), what is served in `static/` (package data)."""

from pathlib import Path
from typing import Final

STATIC_DIR: Final = Path(__file__).with_name("static")
