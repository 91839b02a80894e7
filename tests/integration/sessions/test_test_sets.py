"""The test set of a flow on a real Postgres: what people accepted, marked and gave, by owner."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from flowise_dev_agent.caller import ALL_SCOPES, Caller, acting_for, serving
from flowise_dev_agent.errors import FlowTestNotFoundError, InvalidInputError, SessionConflictError
from flowise_dev_agent.flows.test_sets import set_of_flow
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.persistence import Database, TestSets
from flowise_dev_agent.persistence.audit import AuditFilter
from flowise_dev_agent.schemas.flow_tests import MOST_IN_SET, PutTestSet, TestMark
from flowise_dev_agent.schemas.plan import Criterion, Expectation, Plan, TestCase
from flowise_dev_agent.schemas.requests import StartSession
from flowise_dev_agent.schemas.session import ApprovedPlan, ResultView
from flowise_dev_agent.schemas.verdict import CriterionVerdict, Trial, Verdict
from flowise_dev_agent.testing.test_files import write_tests
from tests.fixtures.database import superuser
from tests.runtime_world import running_engine

FLOW = "0a1b2c3d-0000-4000-8000-00000000f10e"
TESTS = [TestCase(id="t1", turns=["Hello?"], expect=Expectation(contains=["hi"])), TestCase(id="t2", turns=["Bye?"])]
CRITERIA = [Criterion(id="c1", text="It greets.", tests=["t1"]), Criterion(id="c2", text="Both.", tests=["t1", "t2"])]
PLAN = Plan(goal="g", operation="update", flow_name="f", tests=TESTS, criteria=CRITERIA)
RESULT = ResultView(
    tests=[
        Trial(question="Hello?", test="t1", passed=True, answer="hi there"),
        Trial(question="Bye?", test="t2", passed=True, answer="x" * 400),
    ],
    verdict=Verdict(
        done=True, headline="works", criteria=[CriterionVerdict(id="c1", state="not_shown"), CriterionVerdict(id="c2")]
    ),
)


@pytest.fixture
async def engine(database_dsn: str) -> AsyncIterator[Runtime]:
    async with running_engine(database_dsn) as engine:
        with acting_for(Caller("ada", ALL_SCOPES)):
            yield engine


async def session(engine: Runtime, database: Database, *, outcome: str = "accepted", plan: Plan = PLAN) -> Any:
    """A session that ended with the result of its tests."""
    started = await engine.service.start(StartSession(requirement="work:x end:accepted"))
    view = await engine.service.wait(started.thread_id, 20)
    async with superuser(database) as connection:
        await connection.execute(
            "UPDATE sessions SET chatflow_id = %s, plan = %s, result = %s, outcome = %s WHERE id = %s",
            (FLOW, ApprovedPlan(contract=plan).model_dump_json(), RESULT.model_dump_json(), outcome, view.thread_id),
        )
    return view.thread_id


def asked(tests: list[TestCase]) -> list[str]:
    return [one.turns[0] for one in tests]


async def test_the_tests_of_accepted_sessions_are_the_set_until_a_person_gives_another(
    engine: Runtime, database: Database
) -> None:
    sets, instance = engine.test_sets, engine.instances.default_id
    assert (await sets.view(FLOW, None, "json")).tests == []
    await session(engine, database, outcome="rolled_back")
    assert (await sets.view(FLOW, None, "json")).tests == []
    await session(engine, database)
    await session(engine, database)
    found = await sets.view(FLOW, None, "yaml")
    assert found.tests == TESTS
    assert found.text is not None
    given = await sets.put(FLOW, PutTestSet(text="- turns: ['Only this?']\n", format="yaml"), None)
    assert asked(given.tests) == ["Only this?"]
    assert asked((await sets.view(FLOW, None, "csv")).tests) == ["Only this?"]
    with serving("another"):
        assert await set_of_flow(TestSets(database), instance, FLOW) == []


async def test_the_set_expects_what_an_accepted_change_left_of_it(engine: Runtime, database: Database) -> None:
    asked_first = [
        TestCase(id="t1", turns=["Pay it."], human=["reject"], expect=Expectation(contains=["no"])),
        TestCase(id="t2", turns=["Hello?"], expect=Expectation(branch=["old_0"], contains=["hi"])),
    ]
    given = PutTestSet(text=write_tests(asked_first, "yaml"), format="yaml")
    await engine.test_sets.put(FLOW, given, None)
    left = [
        TestCase(id="t1", turns=["Pay it."]),
        TestCase(id="t2", turns=["Hello?"], expect=Expectation(contains=["hi"])),
    ]
    await session(engine, database, plan=PLAN.model_copy(update={"tests": left}))
    # Beside one that began before a person gave the set, that set holds.
    assert {one.turns[0]: one.expect for one in (await engine.test_sets.view(FLOW, None, "json")).tests} == {
        one.turns[0]: one.expect for one in left
    }
    await session(engine, database)
    await engine.test_sets.put(FLOW, given, None)
    async with superuser(database) as connection:
        await connection.execute("UPDATE sessions SET updated_at = now() + interval '1 minute'")
    assert (await engine.test_sets.view(FLOW, None, "json")).tests[:2] == asked_first


async def test_a_persons_mark_counts_first_and_its_test_goes_into_the_set(engine: Runtime, database: Database) -> None:
    session_id = await session(engine, database, outcome="rolled_back")
    marked = await engine.test_sets.mark(session_id, 1, TestMark(good=True, contains=["Ada"]), "ada")
    assert marked.mark is not None
    view = await engine.service.get(session_id)
    assert view.result is not None
    assert view.result.verdict is not None
    criteria = {one.id: (one.state, one.judged_by, one.level) for one in view.result.verdict.criteria}
    # The other test of the second one is not judged.
    assert criteria == {"c1": ("shown", "person", "person"), "c2": ("not_tested", "code", None)}
    (kept,) = (await engine.test_sets.view(FLOW, None, "json")).tests
    assert (kept.turns, kept.expect.contains) == (["Hello?"], ["hi", "Ada"])

    await engine.test_sets.mark(session_id, 1, TestMark(good=False), "ada")
    view = await engine.service.get(session_id)
    assert view.result is not None
    assert view.result.verdict is not None
    assert view.result.verdict.headline == "fails"
    assert {one.state for one in view.result.verdict.criteria} == {"failed"}
    (kept,) = (await engine.test_sets.view(FLOW, None, "json")).tests
    assert (kept.expect.contains, kept.expect.excludes) == ([], ["hi there"])
    # Of a long answer nothing is known that could be checked again.
    await engine.test_sets.mark(session_id, 2, TestMark(good=False), "ada")
    assert len((await engine.test_sets.view(FLOW, None, "json")).tests) == 1
    told = [
        (row.action, row.words)
        async for row in engine.audit_log.all(AuditFilter(session_id))
        if row.action.startswith("test.")
    ]
    assert told == [("test.mark_good", "1"), ("test.mark_wrong", "1"), ("test.mark_wrong", "2")]
    # What a person takes back makes the flow fail no more.
    for number in (1, 2):
        await engine.test_sets.mark(session_id, number, TestMark(good=True), "ada")
    view = await engine.service.get(session_id)
    assert view.result is not None
    assert view.result.verdict is not None
    assert view.result.verdict.headline == "runs"


async def test_what_cannot_be_marked_or_stored_is_refused(engine: Runtime, database: Database) -> None:
    session_id = await session(engine, database)
    with pytest.raises(FlowTestNotFoundError):
        await engine.test_sets.mark(session_id, 3, TestMark(good=True), "ada")
    async with superuser(database) as connection:
        await connection.execute("UPDATE sessions SET status = 'running' WHERE id = %s", (session_id,))
    with pytest.raises(SessionConflictError):
        await engine.test_sets.mark(session_id, 1, TestMark(good=True), "ada")
    too_many = json.dumps([{"turns": ["a"]}] * (MOST_IN_SET + 1))
    for text in ("- turns: []\n  input: chat\n", "- 3\n", too_many, "a: [\n", '- turns: ["a\\0"]\n'):
        with pytest.raises(InvalidInputError):
            await engine.test_sets.put(FLOW, PutTestSet(text=text, format="yaml"), None)


def test_a_plan_takes_tests_of_the_set_as_far_as_there_is_room() -> None:
    more = [*TESTS, *(TestCase(id=f"t{n}", turns=[f"Question {n}?"]) for n in range(1, 15))]
    plan, left_out = PLAN.with_tests(more)
    assert len(plan.tests) == 10
    assert plan.tests[:2] == TESTS
    assert len({one.id for one in plan.tests}) == 10
    assert asked([*plan.tests[2:], *left_out]) == [f"Question {n}?" for n in range(1, 15)]
    assert plan.with_tests(more)[0] == plan
    # What an earlier test expects, the plan's own one that asks the same expects, too.
    marked = TESTS[0].model_copy(update={"expect": Expectation(contains=["Ada"])})
    same = PLAN.with_tests([marked])[0].tests[0]
    assert same.expect.contains == ["hi", "Ada"]
