"""The page: plain HTML, CSS and JavaScript as package data, served from here alone (no CDN, no build step)."""

from pathlib import Path
from typing import Final

STATIC_DIR: Final = Path(__file__).with_name("static")
