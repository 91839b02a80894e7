"""Counts of a whole session that no load of the machine changes: what exceeds a budget is work that was added."""
# pyright: reportCallIssue=false, reportArgumentType=false

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from psycopg import AsyncCursor
from pydantic import SecretStr

from flowise_dev_agent.agent.emit import NODE_PHASES
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.patch import SetParam
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.settings import DatabaseSettings, FlowiseSettings, ReasoningSettings, load_settings
from tests.chaos.fake_flowise import FakeFlowise
from tests.support.sessions import KEPT, new_flow

KEY = "costs"
#: Of a CREATE with acceptance: the create, its read-back, which is what is tested, three tests, and at the acceptance a
#: look and the change. The lists of node types and credentials are kept.
FLOWISE_CALLS = 7
#: Of a change by ops on a draft, with one question: the flow; at the approval a look, the draft, its baseline, the look
#: before the change, the change, what is tested, the test; at the acceptance two looks at the flow, its change, its
#: read-back, a look at the draft and its removal.
UPDATE_CALLS = 14
#: Of the new flow by a form; each is a round trip, in which it says for whom it acts, too. Events and notices
#: are not among them: how many go together depends on time. Nor is what the worker asks for its jobs and looks after
#: now and then, nor whether the node types are still those of a second ago.
#: Three of them are the first look of who waits, which the API's routes do without.
STATEMENTS = 36
#: Statements among them that store a step of the graph, with what belongs to it.
CHECKPOINTS = 9
#: Rows that the session leaves, and their bytes as Postgres has them.
ROWS = 91
KILOBYTES = 59
_TIMED = (
    *("SELECT set_config('role'", "SET LOCAL"),
    *("pg_notify", "UPDATE sessions SET event_seq", "SELECT EXISTS", "advisory", "lost_epoch"),
    "SELECT head.revision",
    *(
        "procrastinate_update_heartbeat",
        "WITH doing AS",
        "procrastinate_unregister",
        "stalled_workers",
    ),
    *("webhook_deliveries AS delivery", "knowledge_refreshes AS refresh", "flow_tests AS test"),
)


@asynccontextmanager
async def service(dsn: str) -> AsyncGenerator[Runtime]:
    with FakeFlowise(api_key=KEY, latency=0) as flowise:
        settings = load_settings(
            database=DatabaseSettings(POSTGRES_DSN=SecretStr(dsn)),
            flowise=FlowiseSettings(
                FLOWISE_API_ENDPOINT=f"http://127.0.0.1:{flowise.port}", FLOWISE_API_KEY=SecretStr(KEY)
            ),
            reasoning=ReasoningSettings(engine_choice="deterministic"),
        )
        async with Runtime.open(settings, worker=True) as runtime:
            yield runtime


async def settled(runtime: Runtime, view: SessionView) -> SessionView:
    view = await runtime.service.wait(view.thread_id, 60)
    assert view.error is None
    return view


async def created(runtime: Runtime) -> SessionView:
    return await accepted(runtime, new_flow())


async def accepted(runtime: Runtime, start: StartSession) -> SessionView:
    view = await runtime.service.start(start)
    for action in ("approve", "accept"):
        view = await settled(runtime, view)
        assert view.interrupt is not None
        body = ResumeSession(interrupt_id=view.interrupt.id, answer={"action": action})
        view = await runtime.service.resume(view.thread_id, body)
    return await settled(runtime, view)


async def test_a_session_stays_within_its_calls_and_statements(
    database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: Counter[str] = Counter()
    checkpoints = 0
    execute = AsyncCursor.execute

    async def counted(self: AsyncCursor[Any], query: Any, *args: Any, **options: Any) -> AsyncCursor[Any]:
        nonlocal checkpoints
        text = " ".join(str(query).split())
        checkpoints += "INTO checkpoint" in text
        if not any(word in text for word in _TIMED):
            statements[text[:100]] += 1
        return await execute(self, query, *args, **options)

    # What other work of the process reads in between is none of a session's: the least of three is what one costs.
    counts: list[Counter[str]] = []
    async with service(database_dsn) as runtime:
        await created(runtime)
        checkpoints = 0
        monkeypatch.setattr(AsyncCursor, "execute", counted)
        for _ in range(3):
            statements.clear()
            view = await created(runtime)
            assert view.outcome == "accepted"
            assert view.totals.flowise_calls <= FLOWISE_CALLS
            counts.append(statements.copy())
            kept = await runtime.db.fetch_one(KEPT, {"id": view.thread_id})
            assert kept is not None
            assert kept["n"] <= ROWS
            assert kept["bytes"] <= 1000 * KILOBYTES
    assert min(count.total() for count in counts) <= STATEMENTS, counts
    assert checkpoints <= 3 * CHECKPOINTS


async def test_a_change_on_a_draft_stays_within_its_calls(database_dsn: str) -> None:
    async with service(database_dsn) as runtime:
        made = await created(runtime)
        colder = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.2)
        change = {"ops": [colder.model_dump()], "target": made.chatflow_id, "test_questions": ["Hello?"]}
        view = await accepted(runtime, StartSession.model_validate(change))
    assert view.outcome == "accepted"
    assert view.totals.flowise_calls <= UPDATE_CALLS


async def test_each_of_several_nodes_in_a_step_begins_and_ends_in_the_log(database_dsn: str) -> None:
    async with service(database_dsn) as runtime:
        view = await created(runtime)
        page = await runtime.service.event_page(view.thread_id, limit=1_000, types=["node_start", "node_end"])
    log = [(event.node, event.phase, event.type) for event in page.events]
    for (node, phase, type_), following in pairwise(log):
        assert phase == NODE_PHASES[str(node)]
        if type_ == "node_start":  # one that asks begins again with the answer
            assert following in {(node, phase, "node_end"), (node, phase, "node_start")}
    assert all(event.duration_ms is not None for event in page.events if event.type == "node_end")
    nodes = [node for node, _, type_ in log if type_ == "node_end"]
    assert nodes[3:9] == [
        *("hitl_plan_v2", "define_patch_scope", "compile_patch_ir"),
        *("compile_flow_data", "validate", "preflight_validate_patch"),
    ]
