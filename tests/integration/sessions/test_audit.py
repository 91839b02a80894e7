"""The audit log on a real Postgres: a row per answer and write, under the name of who did it, that nobody changes."""

import asyncio
import csv
import io
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from flowise_dev_agent.caller import ALL_SCOPES, Caller, Door, acting_for
from flowise_dev_agent.errors import FlowiseError, InvalidInputError, SessionConflictError
from flowise_dev_agent.flows.chat import ChatInput
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.patch import SetParam
from flowise_dev_agent.persistence import AuditFilter, AuditLog, Database, Fact, WriteIntents
from flowise_dev_agent.persistence.audit import SERVICE_CHAIN
from flowise_dev_agent.schemas.audit import AuditRow
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow
from flowise_dev_agent.schemas.keys import NewKey
from flowise_dev_agent.schemas.requests import ResumeSession
from flowise_dev_agent.schemas.session import SessionView
from tests.fixtures.database import superuser
from tests.runtime_world import script
from tests.writing_world import BOT, Servers, writing_service

Tamper = Callable[[str], None]


def person(name: str, door: Door = "page") -> Caller:
    return Caller(name, ALL_SCOPES, key_id=f"key-of-{name}", door=door)


@pytest.fixture
def tamper(database_dsn: str) -> Tamper:
    """Does what somebody with the rights of the owner of the tables could do."""

    def run(statement: str) -> None:
        with psycopg.connect(database_dsn) as connection:
            connection.execute("SET session_replication_role = replica")  # triggers do not fire
            connection.execute(statement)  # type: ignore[arg-type]

    return run


async def rows_of(engine: Runtime, **which: Any) -> list[AuditRow]:
    page = await engine.audit.page(AuditFilter(**which), limit=100, cursor=None)
    return page.rows[::-1]


async def asked(engine: Runtime, by: Caller, *words: str) -> SessionView:
    with acting_for(by):
        started = await engine.service.start(script(*words))
    return await engine.service.wait(started.thread_id, 20)


async def answered(engine: Runtime, view: SessionView, by: Caller, **answer: Any) -> SessionView:
    assert view.interrupt
    with acting_for(by):
        await engine.service.resume(view.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer=answer))
    return await engine.service.wait(view.thread_id, 20)


async def test_each_answer_is_a_row_with_who_by_which_door_and_in_what_words(engine: Runtime) -> None:
    view = await asked(engine, person("Ada"), "ask:Which_model?", "ask:sure?", "end:accepted")
    view = await answered(engine, view, person("Grace", "cli"), action="answer", answers=["the small one"])
    await answered(engine, view, person("Linus", "webhook"), action="go_on")
    rows = await rows_of(engine, session_id=view.thread_id)
    assert [(row.seq, row.actor, row.key_id, row.door, row.action, row.words) for row in rows] == [
        (1, "Ada", "key-of-Ada", "page", "start", "ask:Which_model? ask:sure? end:accepted"),
        (2, "Grace", "key-of-Grace", "cli", "clarification.answer", "Which_model?\n-> the small one"),
        (3, "Linus", "key-of-Linus", "webhook", "clarification.go_on", None),
    ]
    assert {row.instance_id for row in rows} == {"main"}
    assert [row.prev_hash for row in rows] == [None, rows[0].hash, rows[1].hash]
    report = await engine.audit.verify(None)
    assert (report.rows, report.chains, report.findings) == (3, 1, [])


async def test_of_concurrent_answers_only_the_one_that_won_is_a_row(engine: Runtime) -> None:
    view = await asked(engine, person("Ada"), "ask:q", "end:accepted")

    async def answer(name: str) -> bool:
        try:
            await answered(engine, view, person(name), action="go_on")
        except SessionConflictError:
            return False
        return True

    names = [f"P{number}" for number in range(8)]
    won = await asyncio.gather(*map(answer, names))
    rows = await rows_of(engine, session_id=view.thread_id, action="clarification.go_on")
    assert [row.actor for row in rows] == [name for name, yes in zip(names, won, strict=True) if yes]


async def test_cancel_retry_and_deletion_are_rows_which_outlive_the_session(engine: Runtime) -> None:
    failed = await asked(engine, person("Ada"), "fail")
    with acting_for(person("Grace")):
        await engine.service.retry(failed.thread_id)
        await engine.service.wait(failed.thread_id, 20)
        await engine.service.delete(failed.thread_id)
    waiting = await asked(engine, person("Ada"), "ask:q")
    with acting_for(person("Grace")):
        await engine.service.cancel(waiting.thread_id)
        await engine.service.cancel(waiting.thread_id)
    assert [(row.actor, row.action) for row in await rows_of(engine, session_id=failed.thread_id)] == [
        ("Ada", "start"),
        ("Grace", "retry"),
        ("Grace", "delete"),
    ]
    assert [(row.actor, row.action) for row in await rows_of(engine, session_id=waiting.thread_id)] == [
        ("Ada", "start"),
        ("Grace", "cancel"),
    ]
    assert (await engine.audit.verify(None)).findings == []


async def test_a_write_is_a_row_of_whoever_asked_for_it_with_version_and_hashes(
    database_dsn: str, catalogue: NodeStore
) -> None:
    servers = Servers(catalogue)
    async with writing_service(database_dsn, servers) as engine:
        change = ApplyToFlow(ops=[SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.2)])
        with acting_for(person("Ada", "cli")):
            made = await engine.flow_writer.apply(BOT, change, instance=None, idempotency_key=None)
        assert made.session_id
        await engine.service.wait(made.session_id, 20)
        with acting_for(person("Grace")):
            await engine.versions.rollback(made.session_id, None)
        rows = await rows_of(engine, chatflow_id=BOT)
    assert [(row.actor, row.door, row.action, row.version) for row in rows] == [
        ("Ada", "cli", "write.update", "v2.0"),
        ("Grace", "page", "write.update", "v3.0"),
        ("Grace", "page", "rollback", "v1.0"),
    ]
    applied, undone = rows[:2]
    assert None not in {applied.before_sha256, applied.after_sha256}
    assert (undone.before_sha256, undone.after_sha256) == (applied.after_sha256, applied.before_sha256)
    assert {row.instance_id for row in rows} == {"dev"}


async def test_what_was_not_written_is_no_row(engine: Runtime, database: Database) -> None:
    ends: list[tuple[Any, dict[str, Any], list[str]]] = [
        ("done", {"chatflow_id": "c", "sha256": "after"}, ["write.update"]),
        ("done", {"chatflow_id": "c", "sha256": "after", "unchanged": True}, []),
        ("failed", {"code": "flowise_rejected"}, []),
        ("failed", {"chatflow_id": "c", "expected": "after"}, ["write.update"]),
    ]
    intents = WriteIntents(database)
    for status, result, actions in ends:
        view, key = await asked(engine, person("Ada"), "end:accepted"), uuid4()
        await intents.open(
            None,
            key=key,
            session_id=view.thread_id,
            op="update",
            iteration=0,
            target_id="c",
            payload_sha256="after",
            base_sha256="before",
            tag="t",
        )
        for _ in range(2):
            await intents.finish(None, key, status=status, result=result)
        rows = (await rows_of(engine, session_id=view.thread_id))[1:]
        assert [row.action for row in rows] == actions
        assert {(row.chatflow_id, row.before_sha256, row.after_sha256) for row in rows} <= {("c", "before", "after")}


async def test_nobody_changes_or_removes_rows(engine: Runtime, database: Database) -> None:
    await asked(engine, person("Ada"), "end:accepted")
    for statement in (
        "UPDATE audit_log SET actor = 'Grace'",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
        "DELETE FROM audit_heads",
        "UPDATE audit_words SET words = 'other'",
        "TRUNCATE audit_words",
    ):
        async with superuser(database) as connection:
            with pytest.raises(psycopg.Error, match="rows are only added"):
                await connection.execute(statement.encode())
    assert len(await rows_of(engine)) == 1


TABLES = ("audit_heads", "audit_log", "audit_words")
KEEP = ";".join(f"CREATE TABLE kept_{table} AS TABLE {table}" for table in TABLES)
PUT_BACK = ";".join(
    f"DELETE FROM {table}; INSERT INTO {table} OVERRIDING SYSTEM VALUE TABLE kept_{table}"  # noqa: S608
    for table in TABLES
)


async def three_rows(engine: Runtime) -> SessionView:
    view = await asked(engine, person("Ada"), "ask:q", "ask:r", "end:accepted")
    view = await answered(engine, view, person("Ada"), action="answer", answers=["x"])
    await answered(engine, view, person("Ada"), action="go_on")
    return view


async def test_a_missing_or_changed_row_shows(engine: Runtime, tamper: Tamper) -> None:
    view = await three_rows(engine)
    changes = [
        ("DELETE FROM audit_log WHERE seq = 2", 2, "missing"),
        ("DELETE FROM audit_log WHERE seq = 1", 1, "missing"),
        ("DELETE FROM audit_log WHERE seq = 3", 3, "missing"),
        ("DELETE FROM audit_log", None, "missing"),
        ("DELETE FROM audit_log; DELETE FROM audit_heads", None, "missing"),
        ("UPDATE audit_log SET actor = 'Grace' WHERE seq = 2", 2, "changed"),
        ("UPDATE audit_log SET ts = ts + interval '1 s' WHERE seq = 3", 3, "changed"),
        ("UPDATE audit_log SET version = 'v9.0' WHERE seq = 1", 1, "changed"),
        ("UPDATE audit_log SET prev_hash = NULL WHERE seq = 2", 2, "changed"),
        ("UPDATE audit_words SET words = 'other' WHERE seq = 1", 1, "words_changed"),
    ]
    tamper(KEEP)
    for statement, seq, problem in changes:
        assert (await engine.audit.verify(view.thread_id)).findings == []
        tamper(statement)
        findings = (await engine.audit.verify(None)).findings
        assert (findings[0].chain, findings[0].seq, findings[0].problem) == (view.thread_id, seq, problem)
        assert (await engine.audit.verify(view.thread_id)).findings == findings
        assert (await engine.audit.verify(uuid4())).findings == []
        tamper(PUT_BACK)


async def test_a_row_that_was_changed_with_its_hash_shows_by_its_successor_or_the_end(
    engine: Runtime, tamper: Tamper
) -> None:
    view = await three_rows(engine)
    rows = await rows_of(engine, session_id=view.thread_id)
    tamper(KEEP)
    for row, found in zip(rows, [(2, "changed"), (3, "changed"), (3, "missing")], strict=True):
        new = row.model_copy(update={"actor": "Grace"}).computed_hash()
        tamper(f"UPDATE audit_log SET actor = 'Grace', hash = '{new}' WHERE seq = {row.seq}")  # noqa: S608
        findings = (await engine.audit.verify(None)).findings
        assert [(finding.seq, finding.problem) for finding in findings] == [found]
        tamper(PUT_BACK)


async def test_erased_words_are_gone_and_the_chain_still_holds(engine: Runtime, database: Database) -> None:
    first = await asked(engine, person("Ada"), "ask:q", "end:accepted")
    await answered(engine, first, person("Grace"), action="answer", answers=["my address"])
    second = await asked(engine, person("Grace"), "end:accepted")
    with acting_for(person("Root")):
        gone = await engine.audit.erase_words(session_id=first.thread_id, person="Grace")
        assert gone.erased == 1
        assert (await engine.audit.erase_words(session_id=None, person="Grace")).erased == 1
        with pytest.raises(InvalidInputError, match="Name a session or a person"):
            await engine.audit.erase_words(session_id=None, person=None)
    words = {(row.session_id, row.seq): row.words for row in await rows_of(engine)}
    assert words[first.thread_id, 1] == "ask:q end:accepted"
    assert words[first.thread_id, 2] is None
    assert words[second.thread_id, 1] is None
    assert [row.actor for row in await rows_of(engine, action="audit.erase_words")] == ["Root", "Root"]
    assert (await engine.audit.verify(None)).findings == []
    left = await database.fetch_all("SELECT words FROM audit_words")
    assert "my address" not in str(left)
    assert "(erased)" in (await engine.summaries.of(first.thread_id)).summary


async def test_pages_are_newest_first_and_filters_narrow_them(engine: Runtime) -> None:
    audit_log = engine.audit_log
    sessions = [uuid4(), uuid4()]
    for number in range(7):
        with acting_for(person("Ada" if number % 2 else "Grace")):
            await audit_log.add(Fact("write.update", sessions[number % 2], chatflow_id=f"flow-{number % 3}"))
    seen: list[AuditRow] = []
    cursor: int | None = None
    while True:
        page = await engine.audit.page(AuditFilter(), limit=3, cursor=cursor)
        seen += page.rows
        cursor = page.next_cursor
        if cursor is None:
            break
    assert [(row.session_id, row.seq) for row in seen] == [(sessions[n % 2], n // 2 + 1) for n in reversed(range(7))]
    assert len(await rows_of(engine, actor="Ada")) == 3
    assert len(await rows_of(engine, chatflow_id="flow-0")) == 3
    assert len(await rows_of(engine, session_id=sessions[0], chatflow_id="flow-0")) == 2
    assert await rows_of(engine, since=seen[0].ts, until=seen[0].ts) == []
    assert await rows_of(engine, since=seen[0].ts) == [seen[0]]


async def test_exports_hold_every_row_and_no_formulas(engine: Runtime) -> None:
    with acting_for(person("=Ada")):
        for number in range(3):
            await engine.audit_log.add(Fact("start", UUID(int=5), words=f"=HYPERLINK({number})\nsecond line"))
    lines = "".join([line async for line in engine.audit.export(AuditFilter(), "jsonl")]).splitlines()
    assert [AuditRow.model_validate_json(line) for line in lines] == await rows_of(engine)
    text = "".join([line async for line in engine.audit.export(AuditFilter(), "csv")])
    table = list(csv.DictReader(io.StringIO(text)))
    assert [row["words"] for row in table] == [f"'=HYPERLINK({number})\nsecond line" for number in range(3)]
    assert {row["actor"] for row in table} == {"'=Ada"}
    assert [row["hash"] for row in table] == [json.loads(line)["hash"] for line in lines]


async def test_rows_added_at_once_make_one_chain(database: Database) -> None:
    audit_log = AuditLog(database)
    session = uuid4()
    await asyncio.gather(*(audit_log.add(Fact("write.update", session)) for _ in range(40)))
    rows, _ = await audit_log.page(AuditFilter(), limit=100)
    assert sorted(row.seq for row in rows) == list(range(1, 41))
    assert (await audit_log.verify()).findings == []


async def test_the_chain_of_the_service_holds_keys_and_what_it_does_itself(engine: Runtime) -> None:
    with acting_for(person("Root")):
        made = await engine.keys.make(NewKey(name="ci", scopes=["read"]))
        await engine.keys.rotate(made.id, keep_old_secs=0)
        await engine.keys.revoke(made.id)
    rows = await rows_of(engine)
    assert [(row.chain, row.actor, row.action) for row in rows] == [
        (SERVICE_CHAIN, "Root", "key.create"),
        (SERVICE_CHAIN, "Root", "key.rotate"),
        (SERVICE_CHAIN, "Root", "key.revoke"),
    ]
    assert rows[0].words == "ci of default: read"
    assert made.key not in str(rows)


async def test_the_summary_says_who_did_what_with_questions_and_answers(engine: Runtime) -> None:
    view = await asked(engine, person("Ada"), "ask:Which_model?", "end:accepted")
    await answered(engine, view, person("Grace", "mcp"), action="answer", answers=["the small one"])
    told = (await engine.summaries.of(view.thread_id)).summary.partition("## Who did what")[2]
    lines = [line for line in told.splitlines() if line.strip()]
    assert lines[0].endswith("**Ada** (page) started the session")
    assert lines[1].endswith("**Grace** (mcp) answered")
    assert lines[2:4] == ["  > Which_model?", "  > -> the small one"]


async def test_titles_refreshes_and_trying_out_are_recorded_under_who_did_them(engine: Runtime) -> None:
    ada = person("ada")
    view = await asked(engine, ada, "ask:q")
    with acting_for(person("bo")):
        await engine.service.rename(view.thread_id, "The support bot")
        await engine.knowledge.refresh("main")
        # It joins the first: nothing more is done.
        await engine.knowledge.refresh("main")
        # Flowise is not there; whether it was asked, nobody knows.
        with pytest.raises(FlowiseError):
            await engine.flows.ask(str(uuid4()), None, ChatInput(question="Where is my parcel?"), None)
    rows = [row for row in await rows_of(engine) if row.actor == "bo"]
    assert [(row.action, row.session_id, row.instance_id, row.words) for row in rows] == [
        ("rename", view.thread_id, "main", "The support bot"),
        ("refresh", None, "main", None),
        ("try", None, "main", None),
    ]
    assert rows[2].chatflow_id
    assert (await engine.audit.verify(None)).findings == []
