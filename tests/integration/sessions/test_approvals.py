"""Who has to decide: somebody other than who started the session, or two persons, where the settings say so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from langgraph.types import interrupt

from flowise_dev_agent.caller import ALL_SCOPES, Caller, acting_for, with_implied
from flowise_dev_agent.errors import ApprovalNeededError, ScopeMissingError, SessionConflictError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.patch import SetParam
from flowise_dev_agent.persistence import AuditFilter, Database
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow
from flowise_dev_agent.schemas.requests import ResumeSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.sessions.approvals import ApprovalRules
from flowise_dev_agent.settings import ServerSettings
from tests import runtime_world
from tests.fixtures.interrupts import interrupt_of
from tests.runtime_world import FAST, World, make_agent, script
from tests.writing_world import BOT, Servers, writing_service

ADA, GRACE, LINUS = (Caller(name, ALL_SCOPES, key_id=f"key-of-{name}") for name in ("Ada", "Grace", "Linus"))
SHARED = Caller("AGENT_API_KEY", ALL_SCOPES)
#: The name of the flow of `interrupt_of("plan_approval")`.
FLOW = interrupt_of("plan_approval").data.contract.flow_name


@pytest.fixture(autouse=True)
def _questions_are_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(state: Any) -> Any:
        asked = {"plan": "plan_approval", "result": "result_review"}[state["script"][state["pc"]].partition(":")[2]]
        answer = interrupt(interrupt_of(asked).as_value())
        return runtime_world._done(state, answers=[answer])

    monkeypatch.setitem(runtime_world.NODES, "ask", ask)


@asynccontextmanager
async def service(dsn: str, **rules: Any) -> AsyncIterator[Runtime]:
    world = World(dsn)
    await world.prepare()
    agent = replace(make_agent(world), approved_plan=lambda interrupt, answer: None)
    database = Database(dsn, min_size=1, max_size=8, connect_timeout=2)
    approvals = ApprovalRules(**rules)
    async with Runtime.assemble(database, dsn, agent, worker=True, timings=FAST, approvals=approvals) as engine:
        yield engine


async def asked(engine: Runtime, by: Caller, *words: str) -> SessionView:
    with acting_for(by):
        started = await engine.service.start(script(*words))
    return await engine.service.wait(started.thread_id, 20)


async def answered(engine: Runtime, view: SessionView, by: Caller, **answer: Any) -> SessionView:
    assert view.interrupt
    with acting_for(by):
        given = await engine.service.resume(
            view.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer=answer)
        )
    return given if given.interrupt else await engine.service.wait(view.thread_id, 20)


async def test_who_starts_does_not_approve_where_the_settings_say_so(database_dsn: str) -> None:
    async with service(database_dsn, separate=True) as engine:
        for starter, other in ((ADA, GRACE), (SHARED, ADA), (ADA, SHARED)):
            view = await asked(engine, starter, "ask:plan", "work:a", "end:accepted")
            renamed = replace(starter, name="Ada from another browser") if starter.key_id else starter
            with pytest.raises(ApprovalNeededError, match="You started this session"):
                await answered(engine, view, renamed, action="approve")
            assert (await engine.service.get(view.thread_id)).status == "pending_interrupt"
            assert (await answered(engine, view, other, action="approve")).outcome == "accepted"


async def test_who_starts_may_still_ask_for_changes_and_take_back(
    database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The flow of the script has no nodes that could be edited.
    monkeypatch.setattr("flowise_dev_agent.sessions.manual_edits.edit_findings", lambda *_: [])
    async with service(database_dsn, separate=True, two=frozenset({"*"})) as engine:
        view = await asked(engine, ADA, "ask:plan", "ask:result", "ask:result", "end:rolled_back")
        view = await answered(engine, view, ADA, action="request_changes", feedback="other")
        with pytest.raises(ApprovalNeededError):
            await answered(engine, view, ADA, action="accept")
        with pytest.raises(ApprovalNeededError):
            await answered(engine, view, ADA, action="iterate", ops=[{"op_type": "RemoveNode", "node_id": "x"}])
        view = await answered(engine, view, ADA, action="iterate", feedback="shorter")
        assert (await answered(engine, view, ADA, action="rollback")).status == "completed"


async def test_without_the_settings_one_person_does_it_all(database_dsn: str) -> None:
    async with service(database_dsn) as engine:
        view = await asked(engine, ADA, "ask:plan", "end:accepted")
        assert (await answered(engine, view, ADA, action="approve")).outcome == "accepted"


@pytest.mark.parametrize("named", [FLOW.casefold(), "*"])
async def test_two_persons_decide_on_a_named_flow(database_dsn: str, named: str) -> None:
    async with service(database_dsn, two=frozenset({named})) as engine:
        view = await asked(engine, ADA, "ask:plan", "work:a", "end:accepted")
        first = await answered(engine, view, ADA, action="approve")
        assert first.status == "pending_interrupt"
        assert first.interrupt
        assert first.interrupt.type == "plan_approval"
        assert [(one.by, one.action) for one in first.interrupt.data.approvals] == [("Ada", "approve")]
        with pytest.raises(SessionConflictError, match="You have given this answer already"):
            await answered(engine, view, ADA, action="approve")
        assert (await answered(engine, view, GRACE, action="approve")).outcome == "accepted"
        page = await engine.audit.page(AuditFilter(session_id=view.thread_id), limit=10, cursor=None)
    assert [(row.actor, row.action) for row in page.rows[::-1]] == [
        ("Ada", "start"),
        ("Ada", "plan_approval.approve.first"),
        ("Grace", "plan_approval.approve"),
    ]


async def test_two_persons_have_to_give_the_same_answer(database_dsn: str) -> None:
    async with service(database_dsn, two=frozenset({"*"})) as engine:
        view = await asked(engine, ADA, "ask:plan", "end:accepted")
        await answered(engine, view, ADA, action="approve", approach="one")
        second = await answered(engine, view, GRACE, action="approve", approach="two")
        assert second.status == "pending_interrupt"
        third = await answered(engine, view, LINUS, action="approve", approach="three")
        assert third.interrupt
        assert [one.by for one in third.interrupt.data.approvals] == ["Ada", "Grace", "Linus"]  # type: ignore[union-attr]
        # Ada comes round to what Grace said.
        assert (await answered(engine, view, ADA, action="approve", approach="two")).outcome == "accepted"


async def test_an_approval_that_its_person_has_replaced_no_longer_counts(database_dsn: str) -> None:
    async with service(database_dsn, two=frozenset({"*"})) as engine:
        view = await asked(engine, ADA, "ask:plan", "end:accepted")
        await answered(engine, view, ADA, action="approve", approach="one")
        await answered(engine, view, ADA, action="approve", approach="two")
        assert (await answered(engine, view, GRACE, action="approve", approach="one")).status == "pending_interrupt"
        assert (await answered(engine, view, LINUS, action="approve", approach="two")).outcome == "accepted"


async def test_of_approvals_at_once_two_are_enough_and_one_is_taken(database_dsn: str) -> None:
    async with service(database_dsn, two=frozenset({"*"})) as engine:
        view = await asked(engine, ADA, "ask:plan", "work:a", "end:accepted")

        async def approve(number: int) -> bool:
            try:
                await answered(engine, view, Caller(f"P{number}", ALL_SCOPES), action="approve")
            except SessionConflictError:
                return False
            return True

        results = await asyncio.gather(*map(approve, range(6)))
        assert sum(results) == 2
        assert (await engine.service.wait(view.thread_id, 20)).outcome == "accepted"


async def test_other_flows_need_one_person_and_the_scope(database_dsn: str) -> None:
    async with service(database_dsn, two=frozenset({"payments"})) as engine:
        view = await asked(engine, ADA, "ask:plan", "end:accepted")
        builder = Caller("Builder", with_implied(["build"]), key_id="b")
        with pytest.raises(ScopeMissingError):
            await answered(engine, view, builder, action="approve")
        assert (await answered(engine, view, GRACE, action="approve")).outcome == "accepted"


@pytest.mark.parametrize(
    ("rules", "refused"),
    [
        (ApprovalRules(separate=True), True),
        (ApprovalRules(two=frozenset({BOT})), True),
        (ApprovalRules(two=frozenset({"bot"})), True),
        (ApprovalRules(two=frozenset({"another"})), False),
        (ApprovalRules(), False),
    ],
)
async def test_a_write_without_a_plan_is_refused_where_nobody_writes_alone(
    database_dsn: str, catalogue: NodeStore, rules: ApprovalRules, refused: bool
) -> None:
    servers = Servers(catalogue)
    change = ApplyToFlow(ops=[SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.2)])
    async with writing_service(database_dsn, servers, approvals=rules) as engine:
        dry = await engine.flow_writer.apply(BOT, change.model_copy(update={"dry_run": True}))
        assert dry.valid
        if not refused:
            assert (await engine.flow_writer.apply(BOT, change)).status == "in_progress"
            return
        with pytest.raises(ApprovalNeededError):
            await engine.flow_writer.apply(BOT, change)
        assert (await engine.service.list()).sessions == []


def test_the_settings_name_flows_by_id_and_name() -> None:
    server = ServerSettings.model_validate({"TWO_APPROVALS": " Payments , ABC-1 ", "SEPARATE_APPROVAL": "true"})
    rules = ApprovalRules.from_settings(server)
    assert rules == ApprovalRules(separate=True, two=frozenset({"payments", "abc-1"}))
    assert rules.needs_two(None, "PAYMENTS ")
    assert rules.needs_two("abc-1", None)
    assert not rules.needs_two("abc", "pay")
