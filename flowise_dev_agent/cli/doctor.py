"""`doctor`: check the parts that the settings name, with one line for each and what to do when it fails."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from functools import partial

from flowise_dev_agent.access.signing import CertificateSigner
from flowise_dev_agent.cli.console import print_json, say
from flowise_dev_agent.cli.startup import require_database
from flowise_dev_agent.errors import AgentError, ConfigurationError, DatabaseUnavailableError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.support import TESTED, is_tested, missing_rights
from flowise_dev_agent.models.local_model import local_models, offer
from flowise_dev_agent.ops.connections import Connections
from flowise_dev_agent.ops.models import model_view
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.persistence.queue_stats import is_paused
from flowise_dev_agent.persistence.schema import check_whole, compare
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.settings import Settings

Check = Callable[[], Awaitable[str]]


async def examine(settings: Settings, *, as_json: bool = False) -> bool:
    """Run every check and print its result; True when all pass."""
    # Its check says what is wrong with the database.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    checks: list[JsonObject] = []
    async for name, check in _checks(settings):
        try:
            checks.append({"name": name, "passed": True, "text": await check()})
        except AgentError as error:
            checks.append(
                {"name": name, "passed": False, "text": error.message, "hint": error.hint, "code": error.code}
            )
        if not as_json:
            _show(checks[-1])
    passed = all(one["passed"] for one in checks)
    if as_json:
        print_json({"passed": passed, "checks": checks})
    return passed


def _show(check: JsonObject) -> None:
    say(f"{'✓' if check['passed'] else '✗'} {check['name']}: {check['text']}", None if check["passed"] else "red")
    if hint := check.get("hint"):
        say(f"    {hint}")


async def _checks(settings: Settings) -> AsyncGenerator[tuple[str, Check]]:
    yield "Database", partial(_database, settings)
    connections = await _connections(settings)
    try:
        for instance in connections.instances.ids:
            yield f"Flowise '{instance}'", partial(_flowise, connections.instances, instance)
        yield "Reasoning", partial(_model, connections)
        yield "Certificates", partial(_certificates, settings)
    finally:
        await connections.aclose()


async def _connections(settings: Settings) -> Connections:
    """The connections of the service: from the settings, or stored in a database that answers and has its tables."""
    dsn = settings.database.dsn
    database = Database(dsn.get_secret_value() if dsn else "", min_size=1, max_size=2)
    connections = Connections(settings, database)
    if dsn:
        # Whether it answers is a check of its own.
        with suppress(DatabaseUnavailableError):
            async with database:
                async with database.connection() as connection:
                    fit = await compare(connection)
                if not fit.pending:
                    await connections.refresh()
    return connections


async def _database(settings: Settings) -> str:
    named = require_database(settings).database
    dsn = named.dsn
    assert dsn is not None  # noqa: S101 - require_database has checked it
    await check_whole((named.direct_dsn or dsn).get_secret_value())
    async with Database(dsn.get_secret_value(), min_size=1, max_size=2) as database:
        row = await database.fetch_one("SELECT current_setting('server_version') AS version")
        async with database.connection() as connection:
            fit = await compare(connection)
        paused = not fit.pending and await is_paused(database)
    wait = "; paused: workers wait for `flowise-dev-agent resume`" if paused else ""
    return f"Postgres {row['version'] if row else '?'} answers{wait}"


async def _flowise(instances: Instances, instance: str) -> str:
    client = instances.client(instance)
    version = await client.version()
    lacking = await missing_rights(client)
    if needed := [right.name for right in lacking if not right.purpose]:
        raise ConfigurationError(
            f"The API key at {client.endpoint} lacks what every session needs: {', '.join(needed)}.",
            hint="Give it these permissions in Flowise, under API Keys; see docs/operations.md#flowise.",
        )
    page = await client.list_chatflows(limit=1)
    said = [f"version {version} at {client.endpoint}, {page.total} chatflows"]
    if not is_tested(version):
        said.append(f"tested are {' and '.join(TESTED)}, not this version")
    said += [f"without {right.name}: no {right.purpose}" for right in lacking]
    return "; ".join(said)


async def _certificates(settings: Settings) -> str:
    for key in CertificateSigner.from_settings(settings).keys.keys:
        if key.state == "current":
            return f"signed with the key {key.id}; its public key is {key.public_key}"
    return "none are signed: SECRETS_KEY is not set, or all of its keys are revoked"


async def _model(connections: Connections) -> str:
    if problem := connections.problem():
        raise problem
    settings = connections.reasoning
    if settings.engine == "deterministic":
        return f"rules. {offer(await local_models())}"
    # The model layer takes half a second to import.
    from flowise_dev_agent.models.check import check_model
    from flowise_dev_agent.models.engine import ModelEngine

    engine = ModelEngine(settings, connections.capabilities)
    try:
        found = await check_model(engine)
        view = model_view(engine.model_id(), settings, await engine.capabilities())
    finally:
        await engine.aclose()
    size = f"reads {found.window} tokens, answers with up to {found.output_tokens}."
    when = f"Checked at {found.checked_at:%Y-%m-%d %H:%M} UTC."
    return " ".join([f"{settings.engine} answers with {view.model}, {size}", when, *view.lacks])
