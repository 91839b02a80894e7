"""Imports, applied changes and promotions on a real Postgres: what is written, kept and said of failures."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from flowise_dev_agent.errors import (
    DatabaseUnavailableError,
    FlowiseRejectedError,
    FlowiseServerError,
    FlowiseTimeoutError,
    InvalidInputError,
    PatchError,
    ServerChangedError,
    SessionConflictError,
    StaleBaseError,
    WriteFailedError,
)
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.patch import SetParam, payload_sha256
from flowise_dev_agent.persistence import Blobs, Database, NewEvent, Queue, Sessions, Versions, WriteIntents
from flowise_dev_agent.publish import Base, Publisher
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow, FlowWriteResult, ImportFlow, PromoteFlow
from flowise_dev_agent.schemas.versions import TakenBack
from tests.fixtures.golden_flows import NOWHERE, chat
from tests.writing_world import BOT, PROD_KEY, Servers, writing_service

COLDER = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.3)


async def written(runtime: Runtime, taken: FlowWriteResult) -> FlowWriteResult:
    """The result of a write that was taken; raises as it failed."""
    assert taken.session_id is not None
    await runtime.service.wait(taken.session_id, 30)
    return await runtime.flow_writer.result(taken.session_id)


async def apply(runtime: Runtime, chatflow_id: str = BOT, **body: Any) -> FlowWriteResult:
    change = ApplyToFlow(**{"ops": [COLDER]} if not body.keys() & {"ops", "flow_data", "reach"} else {}, **body)
    return await written(runtime, await runtime.flow_writer.apply(chatflow_id, change))


async def promote(runtime: Runtime, **body: Any) -> FlowWriteResult:
    taken = await runtime.flow_writer.promote(BOT, PromoteFlow(target="prod", **body))
    return await written(runtime, taken)


async def reasons(runtime: Runtime, session_id: UUID | None) -> list[str]:
    assert session_id is not None
    return [item.reason for item in (await runtime.versions.of_session(session_id)).versions]


def edited(servers: Servers, chatflow_id: str, where: str = "dev") -> str:
    """A person changes the flow in Flowise; returns what it holds then."""
    flows = servers.client(where).flows
    row = flows[chatflow_id]
    text = row.flow_data.replace('"Buffer Memory"', '"My memory"')
    assert text != row.flow_data
    flows[chatflow_id] = row.model_copy(update={"flow_data": text, "updated_date": "2027-01-01T00:00:00.000Z"})
    return text


# --- what is written can be rolled back ------------------------------------------------------------------------------


async def test_p100_an_applied_change_is_a_session_whose_version_can_be_rolled_back(
    runtime: Runtime, servers: Servers
) -> None:
    before = servers.dev.flows[BOT].flow_data
    done = await apply(runtime)
    assert done.session_id is not None
    assert (done.status, done.chatflow_id, done.created, done.name) == ("completed", BOT, False, "Bot")
    after = servers.dev.flows[BOT].flow_data
    assert payload_sha256(after) == done.sha256
    assert '"temperature":0.3' in after
    assert await reasons(runtime, done.session_id) == ["before_apply", "apply"]
    view = await runtime.service.get(done.session_id)
    assert (view.status, view.outcome, view.operation_mode, view.chatflow_id) == ("completed", "accepted", "apply", BOT)
    events = await runtime.service.event_page(done.session_id)
    assert [event.type for event in events.events] == ["write", "done"]
    change = await runtime.flows.session_change(done.session_id)
    assert change is not None
    assert change.diff.summary == "1 field changed"
    assert [op["op_type"] for op in change.model_dump()["ops"]] == ["SetParam"]

    rolled = await runtime.versions.rollback(done.session_id, None)
    assert (rolled.label, rolled.already_there) == ("v1.0", False)
    assert servers.dev.flows[BOT].flow_data == before
    assert (await runtime.service.get(done.session_id)).outcome == "rolled_back"
    # A rollback is a write like any other: it can be rolled back.
    await runtime.versions.rollback(done.session_id, "v2.0")
    assert servers.dev.flows[BOT].flow_data == after
    history = (await runtime.versions.of_chatflow(BOT)).versions
    assert [item.reason for item in history] == ["rollback", "rollback", "apply", "before_apply"]


async def test_p100_a_flow_that_takes_the_place_of_another_can_be_rolled_back(
    runtime: Runtime, servers: Servers
) -> None:
    before = servers.dev.flows[BOT].flow_data
    other = before.replace("gpt-4o", "gpt-4-turbo")
    done = await apply(runtime, flow_data=other)
    assert servers.dev.flows[BOT].flow_data == other
    assert done.session_id is not None
    await runtime.versions.rollback(done.session_id, None)
    assert servers.dev.flows[BOT].flow_data == before


async def test_another_reach_is_a_write_that_leaves_the_flow_as_it_is(runtime: Runtime, servers: Servers) -> None:
    before = servers.dev.flows[BOT]
    reach = {"deployed": not before.deployed, "starters": ["What are your hours?"]}
    done = await apply(runtime, reach=reach)
    after = servers.dev.flows[BOT]
    assert (done.status, after.flow_data, after.deployed) == ("completed", before.flow_data, not before.deployed)
    read = await runtime.flows.reach(BOT, None)
    assert (read.deployed, read.starters, read.needs_key) == (after.deployed, ["What are your hours?"], False)
    assert (read.chat_url or "").endswith(f"/chatbot/{BOT}")
    taken = await runtime.flow_writer.apply(
        BOT, ApplyToFlow.model_validate({"reach": {"public": True}, "dry_run": True})
    )
    assert (taken.status, servers.dev.flows[BOT].is_public) == ("checked", before.is_public)


@pytest.mark.parametrize("content", ["flow_data", "ops"])
async def test_p100_an_imported_flow_can_be_rolled_back_to_what_was_imported(
    runtime: Runtime, servers: Servers, content: str
) -> None:
    given: dict[str, Any] = {"flow_data": servers.dev.flows[BOT].flow_data} if content == "flow_data" else {}
    body = ImportFlow(name="Second", **given or {"ops": chat(NOWHERE)})
    done = await written(runtime, await runtime.flow_writer.import_flow(body))
    assert (done.status, done.created, done.type) == ("completed", True, "CHATFLOW")
    assert done.chatflow_id is not None
    assert done.session_id is not None
    row = servers.dev.flows[done.chatflow_id]
    assert (row.name, row.deployed, row.tags, payload_sha256(row.flow_data)) == ("Second", False, (), done.sha256)
    assert await reasons(runtime, done.session_id) == ["create"]
    change = await runtime.flows.session_change(done.session_id)
    assert change is not None
    assert (change.before_label, change.before) == ("nothing", None)
    edited(servers, row.id)
    await runtime.versions.rollback(done.session_id, None)
    assert servers.dev.flows[row.id].flow_data == row.flow_data


@pytest.mark.parametrize("created", ["delete", "undeploy"])
async def test_p100_a_flow_that_a_session_made_is_taken_back_as_asked(
    runtime: Runtime, servers: Servers, created: TakenBack
) -> None:
    body = ImportFlow(name="Second", flow_data=servers.dev.flows[BOT].flow_data)
    done = await written(runtime, await runtime.flow_writer.import_flow(body))
    assert done.session_id is not None
    assert done.chatflow_id is not None
    with pytest.raises(InvalidInputError, match="say whether to delete or to undeploy"):
        await runtime.versions.rollback(done.session_id, None)
    back = await runtime.versions.rollback(done.session_id, None, created=created)
    assert (back.chatflow_id, back.created) == (done.chatflow_id, created)
    assert (done.chatflow_id in servers.dev.flows) is (created == "undeploy")
    assert created == "delete" or not servers.dev.flows[done.chatflow_id].deployed
    assert (await runtime.service.get(done.session_id)).outcome == "rolled_back"
    # Asked for again, it is done already.
    assert (await runtime.versions.rollback(done.session_id, None, created=created)).created == created


async def test_p100_a_flow_that_was_changed_since_or_is_not_the_sessions_is_never_taken_back(
    runtime: Runtime, servers: Servers
) -> None:
    body = ImportFlow(name="Second", flow_data=servers.dev.flows[BOT].flow_data)
    done = await written(runtime, await runtime.flow_writer.import_flow(body))
    assert done.session_id is not None
    assert done.chatflow_id is not None
    row = servers.dev.flows[done.chatflow_id]
    # Somebody has made it public: the text is the same.
    servers.dev.flows[row.id] = row.model_copy(update={"is_public": True, "updated_date": "2027-01-01T00:00:00.000Z"})
    for created in ("delete", "undeploy"):
        with pytest.raises(StaleBaseError):
            await runtime.versions.rollback(done.session_id, None, created=created)
    assert row.id in servers.dev.flows
    changed = await apply(runtime)
    assert changed.session_id is not None
    with pytest.raises(InvalidInputError, match="did not make"):
        await runtime.versions.rollback(changed.session_id, None, created="delete")
    assert BOT in servers.dev.flows


async def test_p100_a_promotion_over_a_flow_can_be_rolled_back(runtime: Runtime, servers: Servers) -> None:
    first = await promote(runtime, name="Real bot")
    assert first.chatflow_id is not None
    there = servers.prod.flows[first.chatflow_id]
    assert (there.name, PROD_KEY in there.flow_data, first.created) == ("Real bot", True, True)
    assert [(item.type, item.by) for item in first.credentials] == [("openAIApi", "name")]
    assert first.session_id is not None
    (write, _) = (await runtime.service.event_page(first.session_id)).events
    assert write.model_dump(exclude_none=True)["data"] == {"chatflow_id": there.id, "flow": first.sha256, "source": BOT}
    theirs = edited(servers, there.id, "prod")
    looks, limits = {"chatbot_config": '{"title":"Dev"}', "category": "a"}, {"api_config": '{"rateLimit":{}}'}
    servers.dev.flows[BOT] = servers.dev.flows[BOT].model_copy(update=looks | limits)
    servers.prod.flows[there.id] = servers.prod.flows[there.id].model_copy(update=limits)
    second = await promote(runtime, target_chatflow_id=there.id)
    assert (second.created, second.chatflow_id, second.name) == (False, there.id, "Real bot")
    assert servers.prod.flows[there.id].flow_data == there.flow_data
    assert (first.left_out, second.left_out) == ([], ["category", "chatbotConfig"])
    assert await reasons(runtime, second.session_id) == ["before_promotion", "promotion"]
    assert second.session_id is not None
    await runtime.versions.rollback(second.session_id, None)
    assert servers.prod.flows[there.id].flow_data == theirs


@pytest.mark.parametrize("path", ["create", "direct", "staged"])
async def test_p100_what_a_planned_session_writes_can_be_rolled_back(
    runtime: Runtime, servers: Servers, database: Database, path: str
) -> None:
    session_id = uuid4()
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO sessions (id, requirement, request, instance_id, status)"
            " VALUES (%s, 'r', '{}', 'dev', 'completed')",
            (session_id,),
        )
    client: Any = servers.dev
    publisher = Publisher(
        session_id=session_id,
        instance_id="dev",
        client=client,
        intents=WriteIntents(database),
        lease=None,
        versions=Versions(database, Blobs(database)),
    )
    row = servers.dev.flows[BOT]
    after = row.flow_data.replace("gpt-4o", "gpt-4-turbo")
    payload: dict[str, Any] = {"flow_data": after, "validated_sha256": payload_sha256(after), "iteration": 0}
    chatflow_id, expected = BOT, row.flow_data
    if path == "create":
        made = await publisher.create(name="New", kind="CHATFLOW", **payload)
        await publisher.accept(chatflow_id=made.chatflow_id, deploy=True, iteration=0)
        edited(servers, made.chatflow_id)
        chatflow_id, expected = made.chatflow_id, after
    else:
        if path == "staged":
            await publisher.create(name="Bot (draft)", kind="CHATFLOW", role="draft", **payload)
        base = Base(payload_sha256(row.flow_data), row.updated_date)
        reason = "promote" if path == "staged" else "update"
        await publisher.update(chatflow_id=BOT, base=base, reason=reason, **payload)
        assert servers.dev.flows[BOT].flow_data == after
    await runtime.versions.rollback(session_id, None)
    assert servers.dev.flows[chatflow_id].flow_data == expected


# --- what is checked -------------------------------------------------------------------------------------------------


async def test_a_dry_run_gives_findings_and_difference_and_writes_nothing(
    runtime: Runtime, servers: Servers, database: Database
) -> None:
    writer, flow_data = runtime.flow_writer, servers.dev.flows[BOT].flow_data
    loose = json.dumps({**json.loads(flow_data), "edges": []})
    applied = await writer.apply(BOT, ApplyToFlow(ops=[COLDER], dry_run=True))
    assert applied.difference is not None
    assert (applied.status, applied.session_id, applied.valid) == ("checked", None, True)
    assert applied.difference.summary == "1 field changed"
    replaced = await writer.apply(BOT, ApplyToFlow(flow_data=loose, dry_run=True))
    imported = await writer.import_flow(ImportFlow(flow_data=loose, dry_run=True))
    promoted = await writer.promote(BOT, PromoteFlow(target="prod", dry_run=True))
    for checked in (replaced, imported):
        assert not checked.valid
        assert "error" in {finding.severity for finding in checked.findings}
    assert (imported.chatflow_id, promoted.valid, promoted.created) == (None, True, True)
    assert (servers.dev.calls, servers.prod.calls) == ([], [])
    assert await database.fetch_all("SELECT id FROM sessions") == []


async def test_what_the_server_could_not_run_is_refused_without_a_session(
    runtime: Runtime, servers: Servers, database: Database
) -> None:
    writer, row = runtime.flow_writer, servers.dev.flows[BOT]
    servers.dev.flows[BOT] = row.model_copy(update={"flow_data": row.flow_data.replace("chatOpenAI", "noNode")})
    with pytest.raises(InvalidInputError, match="The flow was not written"):
        await writer.promote(BOT, PromoteFlow(target="prod"))
    with pytest.raises(PatchError):
        await writer.apply(BOT, ApplyToFlow(ops=[COLDER.model_copy(update={"node_id": "nobody"})]))
    with pytest.raises(PatchError):
        await writer.import_flow(ImportFlow(flow_data="[" * 100_000))
    with pytest.raises(InvalidInputError, match="The flow was not written"):
        await writer.import_flow(ImportFlow(flow_data=row.flow_data, type="AGENTFLOW"))
    assert (servers.dev.calls, servers.prod.calls) == ([], [])
    assert await database.fetch_all("SELECT id FROM sessions") == []


async def test_what_was_wrong_with_a_changed_flow_before_does_not_forbid_the_change(
    runtime: Runtime, servers: Servers
) -> None:
    row = servers.dev.flows[BOT]
    broken = json.loads(row.flow_data)
    broken["edges"] = broken["edges"][:1]
    servers.dev.flows[BOT] = row.model_copy(update={"flow_data": json.dumps(broken, separators=(",", ":"))})
    done = await apply(runtime)
    assert done.status == "completed"
    assert any(finding.severity == "warning" and "before the change" in finding.detail for finding in done.findings)


async def test_a_flow_of_another_type_is_not_written_over(runtime: Runtime, servers: Servers) -> None:
    there = str(uuid4())
    row = servers.dev.flows[BOT]
    servers.prod.flows[there] = row.model_copy(update={"id": there, "type": "AGENTFLOW"})
    with pytest.raises(InvalidInputError, match="of type AGENTFLOW"):
        await promote(runtime, target_chatflow_id=there)
    assert servers.prod.calls == []


async def test_p07_a_change_for_another_base_is_refused_at_once(runtime: Runtime, servers: Servers) -> None:
    base = payload_sha256(servers.dev.flows[BOT].flow_data)
    edited(servers, BOT)
    with pytest.raises(StaleBaseError, match="is not the flow that the change was made for"):
        await apply(runtime, base_sha256=base)
    assert servers.dev.calls == []


# --- what fails ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def waiting(database_dsn: str, servers: Servers) -> AsyncIterator[Runtime]:
    """A service without a worker: what it takes waits until another process works on it."""
    async with writing_service(database_dsn, servers, worker=False) as runtime:
        yield runtime


async def test_p07_a_person_who_saves_before_the_write_keeps_their_flow(
    database_dsn: str, waiting: Runtime, servers: Servers
) -> None:
    taken = await waiting.flow_writer.apply(BOT, ApplyToFlow(ops=[COLDER]))
    assert (taken.status, taken.chatflow_id) == ("in_progress", BOT)
    theirs = edited(servers, BOT)
    async with writing_service(database_dsn, servers) as runtime:
        with pytest.raises(StaleBaseError, match="changed on Flowise meanwhile; nothing was written") as caught:
            await written(runtime, taken)
    assert caught.value.details["written"] == "no"
    assert servers.dev.flows[BOT].flow_data == theirs
    assert servers.dev.calls == []


async def test_a_write_that_is_cancelled_before_a_worker_takes_it_is_not_done(
    database_dsn: str, waiting: Runtime, servers: Servers
) -> None:
    taken = await waiting.flow_writer.apply(BOT, ApplyToFlow(ops=[COLDER]))
    assert taken.session_id is not None
    await waiting.service.cancel(taken.session_id)
    async with writing_service(database_dsn, servers) as runtime:
        assert (await apply(runtime, flow_data=servers.dev.flows[BOT].flow_data)).status == "completed"
        assert (await written(runtime, taken)).status == "cancelled"
    assert servers.dev.calls == []


WRITES: dict[str, Callable[[Runtime], Awaitable[FlowWriteResult]]] = {
    "create": lambda runtime: promote(runtime),
    "update": lambda runtime: apply(runtime),
}


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("error", [FlowiseServerError, FlowiseRejectedError])
async def test_p09_a_refused_write_is_a_failed_session(
    runtime: Runtime, servers: Servers, database: Database, call: str, error: Any
) -> None:
    flows = dict(servers.dev.flows)
    for server in (servers.dev, servers.prod):
        server.before[call] = server.lose(error)
    with pytest.raises(WriteFailedError, match="lost Nothing was changed on Flowise") as caught:
        await WRITES[call](runtime)
    assert (caught.value.details["cause"], caught.value.details["written"]) == (error.code, "no")
    session_id = UUID(caught.value.details["session_id"])
    view = await runtime.service.get(session_id)
    assert (view.status, view.outcome) == ("error", None)
    events = (await runtime.service.event_page(session_id)).events
    assert events[-1].type == "error"
    assert (servers.dev.flows, servers.prod.flows) == (flows, {})
    assert [item.status for item in await WriteIntents(database).list_for(session_id)] == ["failed"]

    await runtime.service.retry(session_id)
    view = await runtime.service.wait(session_id, 30)
    assert (view.status, view.outcome) == ("completed", "accepted")


async def test_p09_p90_a_save_right_after_a_write_is_told_and_a_rollback_takes_either_text(
    runtime: Runtime, servers: Servers
) -> None:
    def someone_saves() -> None:
        edited(servers, BOT)

    servers.dev.after["update"] = someone_saves
    original = servers.dev.update_chatflow

    async def update(chatflow_id: str, **fields: Any) -> Any:
        answer = servers.dev.flows[chatflow_id].model_copy(update=fields)
        await original(chatflow_id, **fields)
        return answer

    servers.dev.update_chatflow = update
    before = servers.dev.flows[BOT].flow_data
    with pytest.raises(StaleBaseError, match="saved by someone else right after") as caught:
        await apply(runtime)
    servers.dev.update_chatflow = original
    assert caught.value.details["written"] == "yes"
    theirs = servers.dev.flows[BOT].flow_data
    assert "My memory" in theirs
    session_id = UUID(caught.value.details["session_id"])
    view = await runtime.service.get(session_id)
    assert view.result is not None
    (conflict,) = view.result.conflicts
    versions = (await runtime.versions.of_session(session_id)).versions
    shas = {version.reason: version.sha256 for version in versions}
    assert (conflict.chatflow_id, conflict.ours, conflict.theirs) == (BOT, shas["apply"], shas["after_apply"])
    for version in versions:
        await runtime.versions.rollback(session_id, version.label)
        assert payload_sha256(servers.dev.flows[BOT].flow_data) == version.sha256
    assert [version.reason for version in versions] == ["before_apply", "apply", "after_apply"]
    assert {payload_sha256(before), payload_sha256(theirs)} < set(shas.values())


async def test_p03_a_lost_answer_is_looked_for_and_the_write_is_done_once(runtime: Runtime, servers: Servers) -> None:
    servers.prod.after["create"] = servers.prod.lose(FlowiseTimeoutError)
    servers.dev.after["update"] = servers.dev.lose(FlowiseTimeoutError)
    assert (await promote(runtime)).status == "completed"
    assert (await apply(runtime)).status == "completed"
    assert (len(servers.prod.flows), servers.dev.calls) == (1, ["update"])


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_p02_a_write_whose_worker_is_lost_is_finished_by_another_one_exactly_once(
    database_dsn: str, servers: Servers, call: str, when: str
) -> None:
    """The worker ends at the very call, with or without its effect."""
    reached = asyncio.Event()
    server = servers.prod if call == "create" else servers.dev
    name = f"{call}_chatflow"
    original = getattr(server, name)

    async def hang(*args: Any, **fields: Any) -> Any:
        if when == "after":
            await original(*args, **fields)
        reached.set()
        await asyncio.Event().wait()

    setattr(server, name, hang)
    async with writing_service(database_dsn, servers) as first:
        writer = first.flow_writer
        taken = await (
            writer.promote(BOT, PromoteFlow(target="prod"))
            if call == "create"
            else writer.apply(BOT, ApplyToFlow(ops=[COLDER]))
        )
        await reached.wait()
    setattr(server, name, original)
    async with writing_service(database_dsn, servers) as second:
        done = await written(second, taken)
        assert done.status == "completed"
        assert await reasons(second, done.session_id) == (["create"] if call == "create" else ["before_apply", "apply"])
    assert len(server.flows) == 1
    assert {item.status for item in await intents(database_dsn, done.session_id)} == {"done"}


async def intents(dsn: str, session_id: UUID | None) -> list[Any]:
    assert session_id is not None
    async with Database(dsn, min_size=1, max_size=2) as database:
        return await WriteIntents(database).list_for(session_id)


async def test_the_same_request_under_the_same_key_is_one_write_and_a_failed_one_is_tried_again(
    runtime: Runtime, servers: Servers
) -> None:
    writer = runtime.flow_writer
    servers.dev.before["update"] = servers.dev.lose(FlowiseRejectedError)
    body = ApplyToFlow(ops=[COLDER])
    taken = await writer.apply(BOT, body, idempotency_key="k")
    with pytest.raises(WriteFailedError):
        await written(runtime, taken)
    again = await writer.apply(BOT, body, idempotency_key="k")
    assert again.session_id == taken.session_id
    done = await written(runtime, again)
    assert (done.status, servers.dev.calls) == ("completed", ["update", "update"])
    assert await writer.apply(BOT, body, idempotency_key="k") == done
    with pytest.raises(SessionConflictError):
        await writer.apply(BOT, ApplyToFlow(ops=[COLDER, COLDER]), idempotency_key="k")
    assert len((await runtime.service.list()).sessions) == 1


async def test_a_change_that_changes_nothing_sends_nothing(runtime: Runtime, servers: Servers) -> None:
    done = await apply(runtime, flow_data=servers.dev.flows[BOT].flow_data)
    assert (done.status, servers.dev.calls) == ("completed", [])
    assert done.session_id is not None
    (write, _) = (await runtime.service.event_page(done.session_id)).events
    assert write.summary == "Unchanged: 'Bot'"


# --- rollbacks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "outcome", "expected"),
    [("completed", "accepted", "rolled_back"), ("cancelled", "cancelled", "cancelled")],
)
async def test_a_rollback_is_part_of_the_sessions_story(
    runtime: Runtime, database: Database, database_dsn: str, status: str, outcome: str, expected: str
) -> None:
    session_id = uuid4()
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO sessions (id, requirement, request, instance_id, status, outcome)"
            " VALUES (%s, 'r', '{}', 'dev', %s, %s)",
            (session_id, status, outcome),
        )
    sessions = Sessions(database, Queue(database_dsn))
    data = {"version": "v1.0"}
    event = NewEvent("write", summary="Put 'Bot' back to v1.0", data=data)
    rollback = await WriteIntents(database).open(
        None,
        key=uuid4(),
        session_id=session_id,
        op="rollback",
        iteration=0,
        target_id=BOT,
        payload_sha256=None,
        base_sha256=None,
        tag=None,
    )
    await sessions.record_rollback(rollback, outcome="rolled_back", event=event)
    row = await sessions.get(session_id)
    assert (row.status, row.outcome) == (status, expected)
    (event,) = (await runtime.service.event_page(session_id)).events
    assert (event.type, event.summary) == ("write", "Put 'Bot' back to v1.0")
    assert event.model_dump(exclude_none=True)["data"] == data


async def test_a_rollback_that_was_cut_off_after_its_write_is_told_when_it_is_asked_for_again(
    runtime: Runtime, servers: Servers, database: Database
) -> None:
    before = servers.dev.flows[BOT].flow_data
    done = await apply(runtime)
    assert done.session_id is not None

    def cut_off() -> None:
        raise KeyboardInterrupt

    servers.dev.after["update"] = cut_off
    with pytest.raises(KeyboardInterrupt):
        await runtime.versions.rollback(done.session_id, None)
    assert servers.dev.flows[BOT].flow_data == before
    assert (await runtime.service.get(done.session_id)).outcome == "accepted"
    again = await runtime.versions.rollback(done.session_id, None)
    assert (again.label, again.already_there) == ("v1.0", False)
    assert (await runtime.service.get(done.session_id)).outcome == "rolled_back"
    assert {item.status for item in await WriteIntents(database).list_for(done.session_id)} == {"done"}
    assert servers.dev.calls.count("update") == 2
    assert (await runtime.versions.rollback(done.session_id, None)).already_there


async def test_a_rollback_that_was_lost_before_it_could_tell_is_told_when_it_is_asked_for_again(
    runtime: Runtime, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = await apply(runtime)
    assert done.session_id is not None

    async def away(*_: object, **__: object) -> None:
        raise DatabaseUnavailableError("away")

    with monkeypatch.context() as patch:
        patch.setattr(Sessions, "record_rollback", away)
        with pytest.raises(DatabaseUnavailableError):
            await runtime.versions.rollback(done.session_id, None)
    assert (await runtime.service.get(done.session_id)).outcome == "accepted"
    for _ in range(2):
        assert (await runtime.versions.rollback(done.session_id, None)).already_there
    assert (await runtime.service.get(done.session_id)).outcome == "rolled_back"
    told = (await runtime.service.event_page(done.session_id)).events
    assert [event.type for event in told].count("write") == 2
    assert servers.dev.calls.count("update") == 2


async def test_the_text_of_a_taken_write_is_stored_with_its_session(waiting: Runtime, database: Database) -> None:
    taken = await waiting.flow_writer.apply(BOT, ApplyToFlow(ops=[COLDER]))
    assert payload_sha256(await Blobs(database).get(taken.sha256)) == taken.sha256


async def test_p02_an_update_is_announced_for_all_to_see_before_it_is_sent(
    runtime: Runtime, servers: Servers, database_dsn: str
) -> None:
    seen: list[tuple[str, str]] = []

    def look() -> None:
        with psycopg.connect(database_dsn, connect_timeout=5) as connection:
            seen.extend(connection.execute("SELECT op, status FROM write_intents").fetchall())

    servers.dev.before["update"] = look
    await apply(runtime)
    assert seen == [("update", "open")]


async def test_a_rollback_while_the_session_works_is_a_conflict_and_asks_flowise_nothing(
    runtime: Runtime, servers: Servers, database: Database
) -> None:
    done = await apply(runtime)
    assert done.session_id is not None
    async with database.connection() as connection:
        await connection.execute("UPDATE sessions SET status = 'running' WHERE id = %s", (done.session_id,))
    before = servers.dev.flows[BOT]

    def asked() -> None:
        raise AssertionError("Flowise was asked")

    servers.dev.before |= {"get": asked, "update": asked}
    with pytest.raises(SessionConflictError):
        await runtime.versions.rollback(done.session_id, None)
    assert servers.dev.flows[BOT] == before


async def test_a_write_and_a_rollback_do_not_go_to_another_server_under_the_same_name(
    database_dsn: str, servers: Servers
) -> None:
    async with writing_service(database_dsn, servers) as runtime:
        done = await apply(runtime)
        assert done.session_id is not None
    async with writing_service(database_dsn, servers, worker=False) as api:
        waiting = await api.flow_writer.import_flow(ImportFlow(name="New", flow_data=servers.dev.flows[BOT].flow_data))
    servers.addresses["dev"] = "http://another.test"
    before = dict(servers.dev.flows)
    async with writing_service(database_dsn, servers) as runtime:
        with pytest.raises(WriteFailedError) as failed:
            await written(runtime, waiting)
        with pytest.raises(ServerChangedError):
            await runtime.versions.rollback(done.session_id, None)
    assert failed.value.details["cause"] == "server_changed"
    assert servers.dev.flows == before
