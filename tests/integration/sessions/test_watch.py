"""The watch: what people save in Flowise becomes versions, once each, and what sessions write does not."""

import json
from time import process_time
from typing import Any, cast
from uuid import uuid4

import pytest
from psycopg import sql

from flowise_dev_agent.caller import serving
from flowise_dev_agent.errors import FlowiseAuthError, StaleBaseError, VersionNotFoundError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import Chatflow, ChatflowPage
from flowise_dev_agent.flows.fleet import as_csv
from flowise_dev_agent.flows.watch import Tell, Watch
from flowise_dev_agent.knowledge.flow_index import FlowIndex
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.patch import Schemas
from flowise_dev_agent.persistence import Blobs, Database, Queue, Retention, Sessions, WatchedVersions
from flowise_dev_agent.persistence.fleet import FleetFilter
from flowise_dev_agent.schemas.base import JsonMapping
from flowise_dev_agent.schemas.fleet import FleetState
from flowise_dev_agent.schemas.flow_writes import RestoreVersion
from flowise_dev_agent.settings import RetentionSettings
from tests.fixtures.database import superuser
from tests.integration.sessions.test_flow_writes import apply, edited, written
from tests.writing_world import BOT, Servers


def watch_of(database: Database, instances: object, tell: Tell | None = None) -> Watch:
    async def schemas(_: str) -> Schemas:
        return NodeStore.from_snapshot().schemas

    return Watch(
        database,
        index=FlowIndex(database, watched=WatchedVersions(database)),
        blobs=Blobs(database),
        instances=cast(Instances, instances),
        schemas=schemas,
        every_secs=60,
        tell=tell,
    )


@pytest.fixture
def watch(runtime: Runtime, servers: Servers) -> Watch:
    return watch_of(runtime.db, servers)


def saved(servers: Servers, text: str, second: int, **columns: Any) -> None:
    """Somebody saves the flow in Flowise."""
    date = f"2027-06-01T00:00:{second:02}.000Z"
    servers.dev.flows[BOT] = servers.dev.flows[BOT].model_copy(
        update={"flow_data": text, "updated_date": date, **columns}
    )


def moved(text: str) -> str:
    document = json.loads(text)
    document["nodes"][0]["position"]["x"] += 400
    return json.dumps(document)


async def listed(runtime: Runtime) -> list[tuple[str, str, str]]:
    found = await runtime.versions.numbered(BOT, limit=50)
    return [(one.name, one.title, one.origin) for one in reversed(found.versions)]


async def test_each_state_seen_in_flowise_is_a_version_once(runtime: Runtime, servers: Servers, watch: Watch) -> None:
    first = servers.dev.flows[BOT].flow_data
    await watch.look("dev")
    second = edited(servers, BOT)
    for _ in range(2):
        await watch.look("dev")
    await watch_of(runtime.db, servers).look("dev")
    saved(servers, moved(second), 1)
    await watch.look("dev")
    saved(servers, moved(second), 2, name="Robot")
    await watch.look("dev")
    saved(servers, first, 3, name="Robot")
    await watch.look("dev")
    assert await listed(runtime) == [
        ("v1", "As it was found", "elsewhere"),
        ("v2", "Changed in Flowise", "elsewhere"),
        ("v3", "Nodes moved in Flowise", "elsewhere"),
        ("v4", "Renamed in Flowise", "elsewhere"),
        ("v5", "Changed in Flowise", "elsewhere"),
    ]
    folded = [one.moved for one in (await runtime.versions.numbered(BOT, limit=50)).versions]
    assert folded == [False, False, True, False, False]
    history = (await runtime.versions.of_chatflow(BOT)).versions
    assert {(one.source, one.by, one.session_id, one.label) for one in history} == {("flowise", None, None, "")}
    kept = [await runtime.flows.document(BOT, None)]
    assert kept[0].flow_data == first
    texts = Blobs(runtime.db)
    assert [await texts.get(one.sha256) for one in history] == [first, moved(second), moved(second), second, first]
    change = await runtime.flows.compare(BOT, "v1", "v2")
    assert len(change.diff.changed) == 1


@pytest.mark.parametrize("order", ["the version first", "the watch first"])
async def test_a_write_of_a_session_is_no_edit_of_a_stranger(
    order: str, runtime: Runtime, servers: Servers, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    await watch.look("dev")
    if order == "the watch first":
        keep = type(servers.dev).get_chatflow

        async def looked_at_first(self: Any, chatflow_id: str) -> Chatflow:
            await watch_of(runtime.db, servers).look("dev")
            return await keep(self, chatflow_id)

        monkeypatch.setattr(type(servers.dev), "get_chatflow", looked_at_first)
    await apply(runtime)
    await watch.look("dev")
    expected = [("v1", "As it was found", "elsewhere"), ("v2", "Change 'Bot'", "session")]
    assert await listed(runtime) == expected
    # A flow that is deployed has another date, and the same text.
    saved(servers, servers.dev.flows[BOT].flow_data, 5, deployed=True)
    await watch.look("dev")
    assert await listed(runtime) == expected
    async with runtime.db.connection() as connection:
        rows = await (await connection.execute("SELECT count(*) AS rows FROM watched_versions")).fetchone()
    assert rows == {"rows": 1}


async def test_what_a_stranger_puts_back_after_a_session_is_theirs(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    before = servers.dev.flows[BOT].flow_data
    await watch.look("dev")
    await apply(runtime)
    ours = servers.dev.flows[BOT].flow_data
    await watch.look("dev")
    for second, text in enumerate((before, ours)):
        saved(servers, text, second)
        await watch.look("dev")
    assert [(name, origin) for name, _, origin in await listed(runtime)] == [
        ("v1", "elsewhere"),
        ("v2", "session"),
        ("v3", "elsewhere"),
        ("v4", "elsewhere"),
    ]


async def test_a_rename_of_what_a_session_wrote_is_an_edit(runtime: Runtime, servers: Servers, watch: Watch) -> None:
    await apply(runtime)
    await watch.look("dev")
    saved(servers, servers.dev.flows[BOT].flow_data, 1, name="Robot")
    await watch.look("dev")
    assert (await listed(runtime))[-1] == ("v3", "Renamed in Flowise", "elsewhere")


async def test_an_edit_that_a_session_saw_first_is_seen_by_other_owners_too(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    await watch.look("dev")
    edited(servers, BOT)
    await apply(runtime)
    # The session kept it as what it found; the write that came over it belongs to its owner.
    assert [origin for _, _, origin in await listed(runtime)] == ["elsewhere", "elsewhere", "session"]
    saved(servers, edited_again(servers), 7)
    await watch.look("dev")
    with serving("legal"):
        theirs = await listed(runtime)
    assert [(name, origin) for name, _, origin in theirs] == [("v1", "elsewhere"), ("v4", "elsewhere")]
    assert [name for name, _, _ in await listed(runtime)] == ["v1", "v2", "v3", "v4"]


def edited_again(servers: Servers) -> str:
    return servers.dev.flows[BOT].flow_data.replace('"My memory"', '"Another memory"')


async def test_deleted_flows_are_noticed_but_not_those_that_only_left_the_page(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    await watch.look("dev")
    row = servers.dev.flows.pop(BOT)
    await watch.look("dev")
    async with runtime.db.connection() as connection:
        gone = await (await connection.execute("SELECT id, name, type FROM deleted_flows")).fetchall()
    assert gone == [{"id": BOT, "name": "Bot", "type": "CHATFLOW"}]
    servers.dev.flows[BOT] = row


async def test_of_what_was_seen_the_last_of_each_day_is_kept_for_90_days_and_the_newest_always(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    text = servers.dev.flows[BOT].flow_data
    for second in range(8):
        saved(servers, text.replace('"Buffer Memory"', f'"Memory {second}"'), second)
        await watch.look("dev")
    # v1 to v8; v3 has a bookmark.
    await runtime.versions.bookmark(BOT, 3, "")
    ages = [100, 100, 100, 30, 30, 8, 6, 6]
    async with superuser(runtime.db) as connection:
        for number, days in enumerate(ages, 1):
            await connection.execute(
                "UPDATE watched_versions SET created_at = now() - make_interval(days => %s) WHERE version = %s",
                (days, number),
            )
        await connection.execute("UPDATE watched_texts SET seen_at = now() - interval '2 hours'")
    retention = Retention(runtime.db, Sessions(runtime.db, Queue("")), RetentionSettings())
    removed = await retention.pass_once()
    assert [name for name, _, _ in await listed(runtime)] == ["v3", "v5", "v6", "v7", "v8"]
    assert removed["watched"] == 2 * 3
    servers.dev.flows.pop(BOT)
    await watch.look("dev")
    async with superuser(runtime.db) as connection:
        for table, column in (("watched_versions", "created_at"), ("deleted_flows", "noticed_at")):
            await connection.execute(
                sql.SQL("UPDATE {} SET {} = now() - interval '91 days'").format(
                    sql.Identifier(table), sql.Identifier(column)
                )
            )
    await retention.pass_once()
    assert [name for name, _, _ in await listed(runtime)] == ["v3"]


async def test_a_version_of_flowise_is_restored_byte_for_byte_with_its_name(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    odd = servers.dev.flows[BOT].flow_data.replace('"chatOpenAI"', '"noSuchNode"')
    saved(servers, odd, 1, name="Odd")
    await watch.look("dev")
    saved(servers, edited_again(servers), 2, name="Bot")
    config = '{"title":"Bot","fullFileUpload":{"status":false}}'
    beside = {"chatbot_config": config, "api_config": "{}"}
    servers.dev.flows[BOT] = servers.dev.flows[BOT].model_copy(update=beside)
    await watch.look("dev")
    done = await written(runtime, await runtime.flow_writer.restore(BOT, 1, RestoreVersion()))
    row = servers.dev.flows[BOT]
    assert (row.flow_data, row.name, done.created) == (odd, "Odd", False)
    assert done.left_out == []
    assert (row.chatbot_config, row.api_config) == (None, None)
    await watch.look("dev")
    assert await listed(runtime) == [
        ("v1", "As it was found", "elsewhere"),
        ("v2", "Renamed in Flowise", "elsewhere"),
        ("v3", "Back to v1", "restored"),
    ]
    # The write is a session, which can be undone.
    assert done.session_id is not None
    await runtime.versions.rollback(done.session_id, None)
    row = servers.dev.flows[BOT]
    assert (row.name, row.chatbot_config, row.api_config) == ("Bot", config, "{}")


CONFIG = '{"starterPrompts":{"0":{"prompt":"Wo ist mein Paket?"}},"n":0.10, "leads":{"status":false}}'
ANALYTIC = '{"langFuse":{"credentialId":"11111111-2222-4333-8444-555555555555","status":true}}'
LIMITED = '{"rateLimit":{"status":true,"limitMax":"5","limitDuration":"60","limitMsg":"Later."}}'


async def test_settings_saved_in_flowise_are_a_version_compared_and_put_back(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    text = servers.dev.flows[BOT].flow_data
    await watch.look("dev")
    saved(servers, text, 1, chatbot_config=CONFIG, analytic=ANALYTIC, category="sales; new")
    for _ in range(2):
        await watch.look("dev")
    saved(servers, text, 2, chatbot_config=CONFIG.replace("Paket", "Brief"), analytic=None, api_config=LIMITED)
    await watch.look("dev")
    assert await listed(runtime) == [
        ("v1", "As it was found", "elsewhere"),
        ("v2", "Settings changed in Flowise", "elsewhere"),
        ("v3", "Settings changed in Flowise", "elsewhere"),
    ]
    found = (await runtime.flows.compare(BOT, "v2", "v3")).diff
    assert [(one.path, one.before, one.after) for one in found.settings or ()][:1] == [
        ("chatbotConfig.starterPrompts.0.prompt", "Wo ist mein Paket?", "Wo ist mein Brief?")
    ]
    assert (found.settings or [])[0].texts["name"].code == "setting.starterPrompts"
    assert "11111111" not in found.model_dump_json()
    checked = await runtime.flow_writer.restore(BOT, 2, RestoreVersion(dry_run=True))
    assert checked.difference is not None
    assert {one.path.partition(".")[0] for one in checked.difference.settings or ()} == {
        "chatbotConfig",
        "apiConfig",
        "analytic",
    }
    done = await written(runtime, await runtime.flow_writer.restore(BOT, 2, RestoreVersion()))
    row = servers.dev.flows[BOT]
    assert (row.flow_data, row.chatbot_config, row.analytic, row.category) == (text, CONFIG, ANALYTIC, "sales; new")
    # Flowise lifts a limit only when it is told that it is off.
    assert row.api_config == '{"rateLimit":{"status":false}}'
    await watch.look("dev")
    assert [name for name, _, _ in await listed(runtime)] == ["v1", "v2", "v3", "v4"]
    assert done.session_id is not None
    back = await runtime.versions.rollback(done.session_id, None)
    assert (back.left_out, servers.dev.flows[BOT].api_config) == ([], LIMITED)


async def test_settings_of_somebody_else_are_not_overwritten_without_a_word(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    await watch.look("dev")
    saved(servers, servers.dev.flows[BOT].flow_data, 1, chatbot_config=CONFIG)
    await watch.look("dev")
    read = servers.dev.get_chatflow
    seen = 0

    async def saved_meanwhile(chatflow_id: str) -> Chatflow:
        """After the request has read the flow, somebody saves other settings."""
        nonlocal seen
        seen += 1
        row = await read(chatflow_id)
        if seen == 1:
            saved(servers, row.flow_data, 2, chatbot_config='{"title":"Theirs"}')
        return row

    servers.dev.get_chatflow = saved_meanwhile  # type: ignore[method-assign]
    taken = await runtime.flow_writer.restore(BOT, 1, RestoreVersion())
    with pytest.raises(StaleBaseError):
        await written(runtime, taken)
    assert servers.dev.flows[BOT].chatbot_config == '{"title":"Theirs"}'


async def test_a_version_of_an_earlier_release_leaves_the_settings_and_says_so(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    await watch.look("dev")
    async with superuser(runtime.db) as connection:
        await connection.execute("UPDATE watched_versions SET beside = NULL")
    saved(servers, edited_again(servers), 1, chatbot_config='{"title":"Shop"}', speech_to_text="{}")
    await watch.look("dev")
    assert (await runtime.flows.compare(BOT, "v1", "v2")).diff.settings is None
    done = await written(runtime, await runtime.flow_writer.restore(BOT, 1, RestoreVersion()))
    row = servers.dev.flows[BOT]
    assert (done.left_out, row.chatbot_config) == (["chatbotConfig", "speechToText"], '{"title":"Shop"}')


async def test_the_next_look_records_the_settings_of_a_version_of_an_earlier_release(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    saved(servers, servers.dev.flows[BOT].flow_data, 1, chatbot_config=CONFIG)
    await watch.look("dev")
    async with superuser(runtime.db) as connection:
        await connection.execute("UPDATE watched_versions SET beside = NULL")
        await connection.execute("UPDATE instance_flows SET settings_seen = false")
    await watch_of(runtime.db, servers).look("dev")
    assert [name for name, _, _ in await listed(runtime)] == ["v1"]
    saved(servers, servers.dev.flows[BOT].flow_data, 2, chatbot_config=None)
    await watch.look("dev")
    done = await written(runtime, await runtime.flow_writer.restore(BOT, 1, RestoreVersion()))
    assert (done.left_out, servers.dev.flows[BOT].chatbot_config) == ([], CONFIG)


async def test_a_deleted_flow_is_made_again_with_all_its_text(runtime: Runtime, servers: Servers, watch: Watch) -> None:
    saved(servers, servers.dev.flows[BOT].flow_data, 1, chatbot_config=CONFIG, category="sales")
    await watch.look("dev")
    gone = servers.dev.flows.pop(BOT)
    await watch.look("dev")
    done = await written(runtime, await runtime.flow_writer.restore(BOT, 1, RestoreVersion()))
    assert done.created
    assert done.left_out == []
    assert done.chatflow_id not in {None, BOT}
    made = servers.dev.flows[done.chatflow_id or ""]
    assert (made.name, made.type, made.flow_data) == (gone.name, gone.type, gone.flow_data)
    assert (made.chatbot_config, made.category) == (CONFIG, "sales")
    with pytest.raises(VersionNotFoundError):
        await runtime.flow_writer.restore(BOT, 9, RestoreVersion())


async def test_the_fleet_has_each_flow_with_its_states_and_is_filtered_by_them(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    await watch.look("dev")

    async def shown(state: FleetState | None = None) -> dict[str, list[str]]:
        page = await runtime.fleet.page(None, FleetFilter(state), limit=10, cursor=None)
        return {flow.id: list(flow.states) for flow in page.flows}

    first = (await shown())[BOT]
    assert "never_tested" in first
    assert not {"broken", "changed_outside", "not_checked", "healthy"} & set(first)
    saved(servers, servers.dev.flows[BOT].flow_data.replace('"chatOpenAI"', '"noSuchNode"'), 1, name="=1+1")
    await watch.look("dev")
    assert set((await shown())[BOT]) >= {"broken", "changed_outside"}
    assert (await shown("changed_outside")).keys() == {BOT}
    assert await shown("healthy") == {}
    page = await runtime.fleet.page(None, FleetFilter("broken"), limit=10, cursor=None)
    for wanted, found in ((FleetFilter(words="1+"), 1), (FleetFilter(words="%"), 0), (FleetFilter(owner="eve"), 0)):
        assert len((await runtime.fleet.page(None, wanted, limit=10, cursor=None)).flows) == found, wanted
    header, line = as_csv(page).splitlines()
    assert header.startswith("id,name,type,url,states,codes")
    assert line.startswith(f"{BOT},'=1+1,CHATFLOW,")
    with serving("legal"):
        assert (await shown()).keys() == {BOT}
    await written(runtime, await runtime.flow_writer.restore(BOT, 1, RestoreVersion()))
    (flow,) = (await runtime.fleet.page(None, limit=10, cursor=None)).flows
    assert flow.owner == "service"
    assert len((await runtime.fleet.page(None, FleetFilter(owner=flow.owner), limit=10, cursor=None)).flows) == 1
    servers.dev.flows.pop(BOT)
    await watch.look("dev")
    gone = (await runtime.fleet.page(None, limit=10, cursor=None)).deleted
    assert [one.id for one in gone] == [BOT]


async def test_edits_deletions_and_breaks_are_told_until_they_are_taken(runtime: Runtime, servers: Servers) -> None:
    told: list[tuple[str, JsonMapping]] = []
    takes = False

    async def tell(event: str, key: str, data: JsonMapping) -> bool:
        told.append((event, data))
        return takes

    telling = watch_of(runtime.db, servers, tell)
    await telling.look("dev")
    assert told == []  # as it was found
    saved(servers, servers.dev.flows[BOT].flow_data.replace('"chatOpenAI"', '"noSuchNode"'), 1)
    await telling.look("dev")
    assert [event for event, _ in told] == ["flow.changed", "flow.broken"]
    takes = True
    told.clear()
    for _ in range(2):
        await telling.look("dev")
    flow = {"instance": "dev", "chatflow_id": BOT}
    assert told[0] == ("flow.changed", {**flow, "version": "v2", "moved": False})
    assert told[1][0] == "flow.broken"
    assert "UNKNOWN_NODE_NAME" in cast(Any, told[1][1])["codes"]
    servers.dev.flows.pop(BOT)
    for _ in range(2):
        await telling.look("dev")
    assert told[2:] == [("flow.deleted", {**flow, "name": "Bot"})]


class Listed:
    """A server with many flows that counts requests."""

    endpoint = "http://many.test"
    ids = ("many",)

    def __init__(self, rows: list[Chatflow]) -> None:
        self.rows = rows
        self.sizes: list[int] = []
        self.refuses = False

    def client(self, _: str) -> "Listed":
        return self

    async def list_credentials(self) -> list[Any]:
        return []

    async def list_chatflows(self, page: int, limit: int) -> ChatflowPage:
        if self.refuses:
            raise FlowiseAuthError("no")
        rows = sorted(self.rows, key=lambda row: row.updated_date, reverse=True)[(page - 1) * limit : page * limit]
        self.sizes.append(len(rows))
        return ChatflowPage(data=rows, total=len(self.rows))


class Many:
    """Stands for `Instances`."""

    ids = ("many",)

    def __init__(self, server: Listed) -> None:
        self.server = server

    def client(self, _: str) -> Listed:
        return self.server

    def endpoint(self, _: str) -> str:
        return self.server.endpoint


def large(text: str, number: int, size: int = 40_000) -> Chatflow:
    """A flow like `text`, of at least `size` characters, that nobody else has."""
    document = json.loads(text)
    nodes = [node for node in document["nodes"] for _ in range(size // len(text) + 1)]
    document["nodes"] = [
        {**node, "id": f"{node['id']}_{number}_{place}", "position": {"x": number, "y": place * 7}}
        for place, node in enumerate(nodes)
    ]
    return Chatflow(
        id=str(uuid4()), name=f"Flow {number}", flow_data=json.dumps(document), updated_date=f"2026-01-01T{number:06}"
    )


async def test_while_nothing_changes_a_turn_is_one_request_for_one_flow(runtime: Runtime, servers: Servers) -> None:
    text = servers.dev.flows[BOT].flow_data
    server = Listed([large(text, number, 0) for number in range(120)])
    watch = watch_of(runtime.db, Many(server))
    sizes: list[list[int]] = []
    for turn in range(5):
        server.sizes = []
        if turn == 3:
            server.rows[7] = server.rows[7].model_copy(update={"updated_date": "2026-01-02"})
        await watch.look("many")
        sizes.append(server.sizes)
    assert sizes == [[50, 50, 20], [50], [1], [1, 50], [50]]


async def test_one_process_takes_each_turn_and_a_key_that_may_not_read_is_tried_seldom(runtime: Runtime) -> None:
    watched = WatchedVersions(runtime.db)
    takes = [await watched.claim("dev", "http://dev.test", 60) for _ in range(3)]
    assert takes == [True, False, False]
    server = Listed([])
    server.refuses = True
    await watched.claim("many", server.endpoint, 0)
    await watch_of(runtime.db, Many(server)).look("many")
    assert not await watched.claim("many", server.endpoint, 0)


async def test_a_flow_is_watched_from_where_the_watch_is_switched_on(
    runtime: Runtime, servers: Servers, watch: Watch
) -> None:
    await FlowIndex(runtime.db).current("dev", cast(Any, servers.dev))
    assert await listed(runtime) == []
    await watch.look("dev")
    assert len(await listed(runtime)) == 1


async def test_the_first_look_at_1_000_flows_takes_less_than_60_seconds_and_10_mb(
    runtime: Runtime, servers: Servers
) -> None:
    server = Listed([large(servers.dev.flows[BOT].flow_data, number) for number in range(1_000)])
    assert min(len(row.flow_data) for row in server.rows) >= 40_000
    began = process_time()
    await watch_of(runtime.db, Many(server)).look("many")
    spent = process_time() - began
    async with superuser(runtime.db) as connection:
        found = await (
            await connection.execute(
                "SELECT count(*) AS rows, (SELECT sum(pg_total_relation_size(one))"
                " FROM unnest(ARRAY['watched_versions', 'watched_texts']) AS one) AS bytes FROM watched_versions"
            )
        ).fetchone()
    print(f"{spent:.1f} s, {found}")
    assert found is not None
    assert found["rows"] == 1_000
    assert found["bytes"] < 10_000_000
    assert spent < 60
