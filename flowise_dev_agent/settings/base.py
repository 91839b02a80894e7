"""Configuration that all groups of settings share."""

from pydantic_settings import SettingsConfigDict

CONFIG = SettingsConfigDict(
    env_file=".env",
    env_file_encoding="utf-8",
    env_ignore_empty=True,
    extra="ignore",
    frozen=True,
    populate_by_name=True,
)


def items(text: str) -> tuple[str, ...]:
    """The parts of a list with commas, without empty ones."""
    return tuple(item.strip() for item in text.split(",") if item.strip())
