"""Which Postgres a command uses."""

from pydantic import SecretStr

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.settings import Settings


def with_database(settings: Settings, dsn: str) -> Settings:
    """The settings with `dsn` for the database."""
    database = settings.database.model_copy(update={"dsn": SecretStr(dsn), "direct_dsn": None})
    return settings.model_copy(update={"database": database})


def require_database(settings: Settings) -> Settings:
    """The settings, when POSTGRES_DSN is set; ConfigurationError naming both ways otherwise."""
    if settings.database.dsn is None:
        raise ConfigurationError(
            "There is no database to keep sessions in: POSTGRES_DSN is not set.",
            hint="Set POSTGRES_DSN (docker-compose.postgres.yml starts a server), or try `flowise-dev-agent serve "
            "--embedded`, which starts a Postgres of its own on this machine.",
        )
    return settings
