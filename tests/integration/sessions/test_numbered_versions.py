"""Versions of a flow as people count them: over all sessions, with titles, bookmarks and comparisons."""

import psycopg
import pytest

from flowise_dev_agent.caller import ALL_SCOPES, Caller, acting_for
from flowise_dev_agent.errors import InvalidInputError, SecretInTextError
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.persistence.schema import migrate
from tests.integration.sessions.test_flow_writes import apply, edited
from tests.runtime_world import World
from tests.writing_world import BOT, Servers


def warmer(value: float) -> list[dict[str, object]]:
    return [{"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "temperature", "value": value}]


async def test_versions_count_over_all_sessions_and_are_called_by_their_requirement(
    runtime: Runtime, servers: Servers
) -> None:
    first = await apply(runtime)
    edited(servers, BOT)
    with acting_for(Caller("Ada", ALL_SCOPES)):
        second = await apply(runtime, ops=warmer(0.7))
    assert first.session_id is not None
    assert second.session_id is not None
    await runtime.service.rename(second.session_id, "Add a calculator")
    with acting_for(Caller("Grace", ALL_SCOPES)):
        await runtime.versions.rollback(first.session_id, "v1.0")
    found = await runtime.versions.numbered(BOT, limit=10)
    assert [(one.name, one.title, one.origin) for one in found.versions] == [
        ("v5", "Back to v1", "restored"),
        ("v4", "Add a calculator", "session"),
        ("v3", "Changed in Flowise", "elsewhere"),
        ("v2", "Change 'Bot'", "session"),
        ("v1", "As it was found", "elsewhere"),
    ]
    assert [one.current for one in found.versions] == [True, False, False, False, False]
    assert [one.by for one in found.versions] == ["Grace", "Ada", None, "service", None]
    assert (found.versions[0].restores, found.next_before) == ("v1", None)
    # The labels within a session stay what they were.
    newest = found.versions[1]
    assert newest.label in [one.label for one in (await runtime.versions.of_session(second.session_id)).versions]

    page = await runtime.versions.numbered(BOT, limit=2)
    assert ([one.name for one in page.versions], page.next_before) == (["v5", "v4"], 4)
    rest = await runtime.versions.numbered(BOT, limit=3, before=page.next_before)
    assert ([one.name for one in rest.versions], rest.next_before) == (["v3", "v2", "v1"], None)


async def test_any_two_versions_can_be_compared_by_their_numbers(runtime: Runtime, servers: Servers) -> None:
    await apply(runtime)
    await apply(runtime, ops=warmer(0.7))
    change = await runtime.flows.compare(BOT, "v2", "v3")
    assert [(field.before, field.after) for node in change.diff.changed for field in node.fields] == [("0.3", "0.7")]
    assert (change.before_label, change.after_label) == ("v2", "v3")
    assert (await runtime.flows.compare(BOT, "v3", "live")).diff.text == "no difference"
    with pytest.raises(InvalidInputError):
        await runtime.flows.compare(BOT, "v9", "live")


async def test_a_rename_alone_is_a_version_that_can_be_undone(runtime: Runtime, servers: Servers) -> None:
    first = await apply(runtime)
    assert first.session_id is not None
    flows = servers.dev.flows
    flows[BOT] = flows[BOT].model_copy(update={"name": "Shop bot", "updated_date": "2027-01-01T00:00:00.000Z"})
    await apply(runtime, ops=warmer(0.7))

    found = (await runtime.versions.numbered(BOT, limit=10)).versions
    assert [(one.name, one.flow_name, one.renamed_from, one.title) for one in found] == [
        ("v4", "Shop bot", None, "Change 'Shop bot'"),
        ("v3", "Shop bot", "Bot", "Renamed in Flowise"),
        ("v2", "Bot", None, "Change 'Bot'"),
        ("v1", "Bot", None, "As it was found"),
    ]
    renamed = await runtime.flows.compare(BOT, "v2", "v3")
    assert (renamed.before_name, renamed.after_name, renamed.diff.text) == ("Bot", "Shop bot", "no difference")

    with acting_for(Caller("Grace", ALL_SCOPES)):
        await runtime.versions.rollback(found[1].session_id, found[1].label)
        assert (await runtime.versions.rollback(first.session_id, found[2].label)).already_there is False
    assert flows[BOT].name == "Bot"
    newest = (await runtime.versions.numbered(BOT, limit=1)).versions[0]
    assert (newest.title, newest.restores, newest.renamed_from, newest.by) == ("Back to v2", "v2", "Shop bot", "Grace")


async def test_a_rollback_leaves_the_name_where_no_version_has_another(runtime: Runtime, servers: Servers) -> None:
    done = await apply(runtime)
    flows = servers.dev.flows
    flows[BOT] = flows[BOT].model_copy(update={"name": "Shop bot", "updated_date": "2027-01-01T00:00:00.000Z"})
    assert done.session_id is not None
    await runtime.versions.rollback(done.session_id, "v1.0")
    assert flows[BOT].name == "Shop bot"


async def test_a_bookmark_is_kept_with_its_note_until_it_is_taken_away(runtime: Runtime, servers: Servers) -> None:
    await apply(runtime)
    await runtime.versions.bookmark(BOT, 1, "before the sale")
    await runtime.versions.bookmark(BOT, 2, "")
    await runtime.versions.bookmark(BOT, 1, "the good one")
    assert [one.bookmark for one in (await runtime.versions.numbered(BOT, limit=5)).versions] == ["", "the good one"]
    await runtime.versions.bookmark(BOT, 2, None)
    assert [one.bookmark for one in (await runtime.versions.numbered(BOT, limit=5)).versions] == [None, "the good one"]
    with pytest.raises(InvalidInputError):
        await runtime.versions.bookmark(BOT, 7, "")
    with pytest.raises(SecretInTextError):
        await runtime.versions.bookmark(BOT, 1, "key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789")


async def test_versions_of_before_are_numbered_when_the_database_is_brought_up_to_date(
    runtime: Runtime, servers: Servers, database_dsn: str
) -> None:
    await apply(runtime)
    edited(servers, BOT)
    await apply(runtime, ops=warmer(0.7))
    world = World(database_dsn)
    numbers = "SELECT version FROM flow_versions WHERE chatflow_id = %s ORDER BY id"
    before = await world.fetch(numbers, BOT)
    async with await psycopg.AsyncConnection.connect(database_dsn, autocommit=True) as connection:
        await connection.execute("DROP TABLE version_bookmarks")
        await connection.execute("ALTER TABLE flow_versions DROP COLUMN version")
        await connection.execute("DELETE FROM schema_migrations WHERE name LIKE '0740%'")
        await connection.execute("DELETE FROM schema_parts WHERE part LIKE '%version_bookmarks%'")
    await migrate(database_dsn)
    assert await world.fetch(numbers, BOT) == before == [(1,), (2,), (3,), (4,)]
