"""Guards on a real Postgres: runs on a schedule and after changes, alarms that are told once, a ceiling of money."""

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from flowise_dev_agent.caller import DEFAULT_OWNER, serving
from flowise_dev_agent.errors import FlowiseUnreachableError, GuardNotFoundError
from flowise_dev_agent.flowise.document_stores import DocumentStore
from flowise_dev_agent.ops.guards import GuardKeeper, GuardService
from flowise_dev_agent.persistence import Database, Guards
from flowise_dev_agent.persistence.deliveries import Result
from flowise_dev_agent.schemas.flow_tests import FlowTestView, GivenTest, TestFlow, TestSummary
from flowise_dev_agent.schemas.guards import GuardSettings, GuardView
from flowise_dev_agent.schemas.requests import StartSession
from flowise_dev_agent.schemas.verdict import Trial
from flowise_dev_agent.testing.regressions import REPEATED
from flowise_dev_agent.webhooks.service import WebhookConfig
from tests.fixtures.database import superuser

FLOW = "0a1b2c3d-0000-4000-8000-00000000f10e"
STORE = "5702e000-0000-4000-8000-00000000f10e"
HOOK = "https://hooks.example.com/x"


class World:
    """A flow whose tests fail as `fails` says, and a receiver of webhooks."""

    default_id = "main"

    def __init__(self, database: Database) -> None:
        self.fails: Callable[[str, int], bool] = lambda test, number: False
        self.flow_data, self.away, self.takes = "{}", False, True
        self.store = DocumentStore(id=STORE, name="Handbook", status="UPSERTED", updated_date="1")
        self.looks = 0
        self.asked: list[list[str]] = []
        self.sent: list[str] = []
        self.usd: float | None = 0.01
        self._views: dict[UUID, FlowTestView] = {}
        anything: Any = self
        self.guards = Guards(database)
        self.keeper = GuardKeeper(self.guards, anything, anything, anything)
        self.service = GuardService(self.guards, anything, WebhookConfig())

    # --- as Instances, FlowTestService and WebhookClient --------------------------------------------------------------

    def resolve(self, instance: str | None) -> str:
        return instance or self.default_id

    def client(self, _: str) -> Any:
        async def get_chatflow(_: str) -> Any:
            if self.away:
                raise FlowiseUnreachableError("Flowise is away.")
            return SimpleNamespace(flow_data=self.flow_data)

        async def list_document_stores() -> list[DocumentStore]:
            self.looks += 1
            return [self.store, DocumentStore(id=str(uuid4()), name="Another", updated_date=str(self.looks))]

        return SimpleNamespace(get_chatflow=get_chatflow, list_document_stores=list_document_stores)

    async def set_of(self, *_: str) -> list[GivenTest]:
        return [GivenTest(id=f"t{n}", turns=[f"Question {n}?"]) for n in (1, 2)]

    async def start(self, _: str, body: TestFlow, __: str) -> FlowTestView:
        self.asked.append([test.id for test in body.tests])
        trials = [
            Trial(question=test.turns[0], test=test.id, trial=number, passed=not failed, usd=self.usd, tokens=100,
                  category="LOGIC" if failed else None, error="nothing came" if failed else "")
            for test in body.tests
            for number in range(1, body.trials + 1)
            for failed in [self.fails(test.id, len(self.asked))]
        ]  # fmt: skip
        now = datetime.now(UTC)
        view = FlowTestView(
            id=uuid4(), instance="main", chatflow_id=FLOW, status="done", trials=trials,
            summary=TestSummary.of(trials), created_at=now, updated_at=now,
        )  # fmt: skip
        self._views[view.id] = view
        return view

    async def get(self, test_id: UUID) -> FlowTestView:
        return self._views[test_id]

    async def send(self, attempt: Any) -> Result:
        self.sent.append(attempt.body)
        return Result(delivered=self.takes)

    # --- what tests do ------------------------------------------------------------------------------------------------

    async def passes(self, count: int = 3) -> GuardView:
        for _ in range(count):
            await self.keeper.pass_once()
        with serving(DEFAULT_OWNER):
            return await self.service.view(FLOW, None)


@pytest.fixture
async def world(database: Database) -> World:
    world = World(database)
    with serving(DEFAULT_OWNER):
        await world.service.put(FLOW, GuardSettings(), None)
    return world


async def due(database: Database) -> None:
    async with superuser(database) as connection:
        await connection.execute("UPDATE guards SET due_at = now() - interval '1 second'")


async def hook(database: Database) -> None:
    async with superuser(database) as connection:
        await connection.execute("UPDATE guards SET settings = settings || %s", (f'{{"webhook_url": "{HOOK}"}}',))


async def test_a_flow_is_tested_once_an_interval_and_one_flaky_answer_is_no_alarm(
    world: World, database: Database
) -> None:
    view = await world.passes()
    assert (view.state, [one.passed for one in view.results], len(world.asked)) == ("ok", [2], 1)
    await due(database)
    world.fails = lambda test, number: test == "t1" and number == 2
    view = await world.passes()
    assert (view.state, len(view.results)) == ("ok", 2)
    assert world.asked[1:] == [["t1", "t2"], ["t1"]]
    assert view.usd_this_month == pytest.approx(0.01 * (2 + 2 + REPEATED))


async def test_an_alarm_says_what_failed_and_what_changed_and_is_told_until_it_is_taken(
    world: World, database: Database
) -> None:
    await hook(database)
    await world.passes()
    await due(database)
    world.fails, world.flow_data, world.takes = (lambda test, number: test == "t2"), '{"changed": 1}', False
    view = await world.passes()
    assert view.state == "failing"
    assert view.alarm is not None
    (test,) = view.alarm.tests
    assert (test.test, test.failures, test.held, test.error) == ("t2", REPEATED + 1, REPEATED + 1, "nothing came")
    assert view.alarm.changed == ["flow"]
    assert view.alarm.last_passed_at is not None
    StartSession.model_validate(view.alarm.repair)
    await world.passes(2)
    assert len(world.asked) == 3
    world.takes = True
    await world.passes(2)
    assert len(world.sent) == 3
    told = len(world.sent)
    # The same failure is not told again, and ends when the tests pass.
    await due(database)
    view = await world.passes()
    assert (view.state, len(world.sent)) == ("failing", told)
    await due(database)
    world.fails = lambda test, number: False
    view = await world.passes()
    assert (view.state, view.alarm) == ("ok", None)


async def test_a_receiver_that_is_away_holds_up_no_run(world: World, database: Database) -> None:
    await hook(database)
    world.fails, world.takes = (lambda test, number: True), False
    await world.passes()
    await due(database)
    world.fails = lambda test, number: False
    assert (await world.passes()).state == "ok"


async def test_a_change_of_the_node_types_is_tested_at_once(world: World, database: Database) -> None:
    await world.passes()
    async with superuser(database) as connection:
        await connection.execute(
            "INSERT INTO instance_nodes (instance_id, endpoint, fingerprint) VALUES ('main', 'http://x', 'new')"
        )
    view = await world.passes()
    assert len(world.asked) == 2
    async with superuser(database) as connection:
        await connection.execute("UPDATE instance_nodes SET fingerprint = 'newer'")
    view = await world.passes(6)
    assert ([one.cause for one in view.results], len(world.asked)) == (["nodes", "schedule", "schedule"], 3)


async def test_a_change_of_a_document_store_of_the_flow_is_tested_once(world: World) -> None:
    world.flow_data = f'{{"name": "documentStoreVS", "selectedStore": "{STORE}"}}'
    await world.passes()
    looks = world.looks
    await world.passes(3)
    assert (len(world.asked), world.looks - looks) == (1, 3)
    world.store = world.store.model_copy(update={"updated_date": "2"})
    world.fails = lambda test, number: test == "t1"
    view = await world.passes(6)
    assert [one.cause for one in view.results] == ["stores", "schedule"]
    assert (view.alarm and view.alarm.changed, len(world.asked)) == (["stores"], 3)
    # A store that is gone, and no money left: said once.
    world.store = DocumentStore(id=str(uuid4()), name="Handbook")
    with serving(DEFAULT_OWNER):
        await world.service.put(FLOW, GuardSettings(usd_per_month=0), None)
    await world.passes()
    view = await world.passes()
    assert ([one.state for one in view.results], len(world.asked)) == (["paused", "failing", "ok"], 3)


async def test_no_run_begins_beyond_the_ceiling_and_an_alarm_stays(world: World, database: Database) -> None:
    world.usd = None
    world.fails = lambda test, number: True
    view = await world.passes()
    # Of an unknown price: 14 trials of 100 tokens at 10 USD per million.
    assert view.usd_this_month == pytest.approx((2 + 2 * REPEATED) * 100 * 10 / 1_000_000)
    with serving(DEFAULT_OWNER):
        await world.service.put(FLOW, GuardSettings(usd_per_month=0.001), None)
    asked = len(world.asked)
    view = await world.passes()
    assert (view.results[0].state, view.state, len(world.asked)) == ("paused", "failing", asked)
    assert view.due_at > datetime.now(UTC)


async def test_a_server_that_is_away_is_no_alarm(world: World, database: Database) -> None:
    world.away = True
    view = await world.passes()
    assert (view.state, view.alarm, len(view.results)) == ("not_tested", None, 1)
    with serving("another"), pytest.raises(GuardNotFoundError):
        await world.service.view(FLOW, None)
    with serving(DEFAULT_OWNER):
        await world.service.remove(FLOW, None)
        with pytest.raises(GuardNotFoundError):
            await world.service.view(FLOW, None)


async def test_a_guard_that_cannot_be_read_holds_up_no_other(
    world: World, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async with superuser(database) as connection:
        await connection.execute(
            'INSERT INTO guards SELECT (jsonb_populate_record(one, \'{"chatflow_id": "0", "settings": {"every_hours": '
            '"x"}, "due_at": "2020-01-01"}\')).* FROM guards one'
        )
    view = await world.passes()
    assert view.state == "ok"
    assert "The guard of 0" in caplog.text
    caplog.clear()
