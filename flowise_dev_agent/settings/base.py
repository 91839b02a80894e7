"""Configuration that all groups of settings share."""

import os
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from platformdirs import user_data_path
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from flowise_dev_agent.errors import ConfigurationError


class _Files(PydanticBaseSettingsSource):
    """Values that stand in files: `NAME_FILE` names the file of `NAME`, where that is not set."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The value of one field, without the space around it. Raises ConfigurationError."""
        name = f"{field.alias}_FILE"
        path = field.alias and (os.environ.get(name) or dotenv_values(".env").get(name))
        if not path:
            return None, field_name, False
        try:
            return Path(path).read_text(encoding="utf-8").strip(), field.alias or field_name, False
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{name} names a file that cannot be read ({type(error).__name__}).",
                hint="Correct the variable in the environment or in .env and start again.",
            ) from None

    def __call__(self) -> dict[str, Any]:
        """All values that files have."""
        found = (self.get_field_value(field, name) for name, field in self.settings_cls.model_fields.items())
        return {key: value for value, key, _ in found if value}


class Group(BaseSettings):
    """Settings from the environment, `.env` and files, in this order."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The sources, the first one that has a value first."""
        return init_settings, env_settings, dotenv_settings, _Files(settings_cls)


def data_folder() -> Path:
    """The folder of this user in which the service keeps what is not in Postgres."""
    return user_data_path("flowise-dev-agent", appauthor=False)


def items(text: str) -> tuple[str, ...]:
    """The parts of a list with commas, without empty ones."""
    return tuple(item.strip() for item in text.split(",") if item.strip())
