"""One session by its seed: the real graph, write path, executor and recovery, and everything that can happen to them.

Two worker processes share the tables; they are killed, frozen and drained, their database goes away, Flowise loses,
doubles, delays and refuses, a person answers, and people save flows in the editor meanwhile.
"""

import asyncio
import hashlib
import json
import random as global_random
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, cast
from unittest.mock import patch
from uuid import UUID

from flowise_dev_agent.agent import (
    AgentContext,
    FlowiseCapability,
    build_graph,
    can_wait,
    initial_state,
    project,
    result_of,
)
from flowise_dev_agent.agent.emit import NODE_PHASES
from flowise_dev_agent.agent.interrupts import check_answer
from flowise_dev_agent.errors import FlowiseServerError, FlowiseTimeoutError
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate, ChatflowPage
from flowise_dev_agent.ops.dependencies import RunBlobs, waiting_texts
from flowise_dev_agent.patch import GraphIR, SetParam, compile_ops, payload_sha256
from flowise_dev_agent.persistence import Lease
from flowise_dev_agent.persistence.saver import CanWait
from flowise_dev_agent.planning.requests import Reasoned
from flowise_dev_agent.publish import Publisher, flow_tag, is_draft
from flowise_dev_agent.schemas.base import read_as
from flowise_dev_agent.schemas.interrupts import INTERRUPT
from flowise_dev_agent.schemas.plan import Intent, OpsAnswer, PatchAnswer
from flowise_dev_agent.sessions import Agent, executor
from flowise_dev_agent.sessions.agent import Graph
from flowise_dev_agent.sessions.executor import RunExecutor
from flowise_dev_agent.sessions.recovery import LostWork, Recovery
from flowise_dev_agent.settings import LimitSettings
from flowise_dev_agent.timings import Timings, end_tasks
from tests.unit.agent.rig import OPENAI, BenchFlowise, BenchKnowledge, Script, plan
from tests.unit.agent.test_graph import credentials, ops
from tests.unit.publish.simulation import Server, reconcile
from tests.unit.sessions.simulation.clock import CURRENT, Faults, Outside, Process, run
from tests.unit.sessions.simulation.tables import Saver, Session, Tables

#: Seconds of simulated time within which a session must have ended.
_DEADLINE = 20_000.0
_MOST_RETRIES = 30
_MOST_ITERATIONS = 2
#: Enough for every frozen process to go on, and to learn that it has lost its lease.
_THAW = 120.0


@cache
def graph() -> Graph:
    return cast(Any, build_graph([FlowiseCapability()]))


@cache
def knowledge() -> BenchKnowledge:
    return BenchKnowledge(credentials(OPENAI))


class Flowise(Server, BenchFlowise):
    """The server of the publisher's simulation, with what the graph reads and asks."""

    def __init__(self, random: Random, world: "World") -> None:
        BenchFlowise.__init__(self)
        self.world = world
        Server.__init__(self, random)
        self.endpoint = "http://flowise.test"
        self.removing = False

    @property
    def acting(self) -> int:
        process = CURRENT.get()
        return process.number if process else 0

    @acting.setter
    def acting(self, number: int) -> None:
        del number

    @property
    def frozen_acts(self) -> bool:
        process, latest = CURRENT.get(), self.world.tables.runs[-1]
        return process is not None and (latest.epoch, latest.status) != (process.epoch, "running")

    @frozen_acts.setter
    def frozen_acts(self, value: bool) -> None:
        del value

    def make(self, row: ChatflowCreate) -> Chatflow:
        self._allowed()
        return super().make(row)

    def change(self, chatflow_id: str, *, is_late: bool = False, **fields: Any) -> Chatflow:
        self._allowed()
        return super().change(chatflow_id, is_late=is_late, **fields)

    def remove(self, chatflow_id: str, *, is_late: bool = False) -> None:
        self._allowed()
        self.removing = True
        try:
            super().remove(chatflow_id, is_late=is_late)
        finally:
            self.removing = False

    def _take(self, row: Chatflow, *, is_late: bool) -> None:
        """The session's own text is nobody's loss; neither is an edit of a draft that the person decided about."""
        texts = {item.payload_sha256 for item in self.world.tables.intents.rows.values()}
        decided = is_draft(row.category) and not self.removing
        if payload_sha256(row.flow_data) not in texts and not decided:
            super()._take(row, is_late=is_late)

    def _allowed(self) -> None:
        if CURRENT.get() is not None and not self.world.approved:
            self.world.wrong.append("a write before the approval")

    async def list_chatflows(self, page: int, limit: int) -> ChatflowPage:
        self._refuse(0.03)
        rows = list(self.flows.values())
        return ChatflowPage(data=rows[(page - 1) * limit : page * limit], total=len(rows))

    async def predict(self, chatflow_id: str, question: str | None = None, *, session_id: str, **given: Any) -> Any:
        if self.faults and self.random.random() < 0.03:
            raise self.random.choice([FlowiseServerError, FlowiseTimeoutError])("no answer")
        return await super().predict(chatflow_id, question, session_id=session_id, **given)


class Reasoner(Script):
    """Proposes another change each time it is asked, as a model does."""

    def __init__(self, random: Random, operation: Any) -> None:
        super().__init__()
        self.random = random
        self.intents = [Intent(operation=operation, ambiguity=0, title="Bot")]
        self.plans = [plan(operation=operation, flow_name="Bot", test_questions=["Hello"])]

    async def patch(self, request: Any) -> Reasoned[PatchAnswer]:
        colder = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=round(self.random.random(), 3))
        written = [colder] if request.flow.existing else [*ops(), colder]
        return Reasoned(value=OpsAnswer(ops=written), mode="llm_guided", usage=self.usage)


@dataclass
class World:
    seed: int
    random: Random = field(init=False)
    approved: bool = False
    wrong: list[str] = field(default_factory=list[str])
    happened: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - to be repeated
        self.operation = self.random.choice(["create", "update", "update", "copy"])
        self.mode = self.random.choice(["staged", "staged", "direct"]) if self.operation == "update" else None
        self.faults = Faults(self.random, left=self.random.randint(0, 10))
        session_id = UUID(int=self.random.getrandbits(128), version=4)
        self.tables = Tables(Session(session_id, {}))
        self.flowise = Flowise(self.random, self)
        self.target: Chatflow | None = None
        if self.operation != "create":
            self.target = self.flowise.make(ChatflowCreate(name="Theirs", flow_data=self._flow()))
            self._is_persons(self.target)
        # What only looks like the session's own.
        for name in ("Bot", "Mine"):
            row = ChatflowCreate(name=name, flow_data=self._flow(name), category=flow_tag(str(session_id)))
            self._is_persons(self.flowise.make(row))
        self.request = {
            "thread_id": str(session_id),
            "requirement": "A support bot",
            "operation": self.operation,
            "target": self.target and self.target.id,
            "write_mode": self.mode,
            "review_patch": self.random.random() < 0.2,
        }
        self.tables.session.request = self.request
        self.reasoner = Reasoner(self.random, self.operation)
        self.processes: list[Process] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.iterations = 0

    def _flow(self, by: str = "person") -> str:
        made = compile_ops(GraphIR.empty(), ops(), knowledge().store.schemas, credentials={"openAIApi": [OPENAI]})
        return json.dumps(json.loads(made.flow_data) | {"by": by})

    def _is_persons(self, row: Chatflow) -> None:
        self.flowise.persons.add(row.id)
        self.flowise.person_texts.add(row.flow_data)

    # --- processes ----------------------------------------------------------------------------------------------

    def _boot(self) -> None:
        process = Process(len(self.processes) + 1, self.faults)
        self.processes.append(process)
        tables: Any = Outside(self.tables)
        agent = Agent(
            graph=graph(),
            context=lambda session, lease, emit: self._context(lease),
            initial_state=initial_state,
            project=project,
            check_answer=cast(Any, check_answer),
            instances=cast(Any, None),
            chatflow_url=lambda endpoint, chatflow_id: f"{endpoint}/{chatflow_id}",
            lookups=cast(Any, None),
            node_phases=NODE_PHASES,
            result_of=result_of,
            can_wait=can_wait,
            waiting_texts=waiting_texts,
        )
        none: Any = None
        runs = RunExecutor(
            database=none, runs=tables, events=tables, agent=agent, flow_writer=none, timings=Timings(), attempts=50
        )
        recovery = Recovery(tables, Timings(), attempts=50)
        lost_work = LostWork(_always, [recovery.pass_once], Timings())
        self.tasks += [process.start(self._consume(process, runs)), process.start(lost_work.run())]

    def _context(self, lease: Lease) -> AgentContext:
        session_id, tables = self.tables.session.id, self.tables
        client, intents, versions, reasoner, blobs = (
            cast(Any, Outside(item)) for item in (self.flowise, tables.intents, tables.versions, self.reasoner, self)
        )
        return AgentContext(
            session_id=str(session_id),
            instance_id="default",
            endpoint="http://flowise.test",
            flowise=client,
            knowledge=knowledge(),
            reasoner=reasoner,
            blobs=RunBlobs(session_id, blobs),
            publisher=Publisher(
                session_id=session_id,
                instance_id="default",
                client=client,
                intents=intents,
                lease=lease,
                versions=versions,
            ),
            limits=LimitSettings(_env_file=None),
        )

    async def put(self, session_id: UUID, text: str) -> str:
        """The blobs."""
        assert session_id == self.tables.session.id
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        self.tables.blobs[sha256] = text
        return sha256

    async def get(self, sha256: str) -> str:
        return self.tables.blobs[sha256]

    async def _consume(self, process: Process, runs: RunExecutor) -> None:
        while True:
            job = self.tables.take(process)
            if job is None:
                await asyncio.sleep(0.2)
                continue
            if self.random.random() < 0.05 and self.faults.happens(1.0):
                asyncio.get_running_loop().call_later(self.random.uniform(0, 3), runs.request_drain)
            await runs.run(job.run_id, job.id)
            self.tables.jobs.pop(job.id, None)

    async def _manage(self) -> None:
        """Starts another process for each that was killed."""
        while True:
            dead = sum(process.killed.is_set() for process in self.processes)
            if len(self.processes) - dead < 2:
                self._boot()
            await asyncio.sleep(self.random.uniform(0.2, 2))

    # --- people -------------------------------------------------------------------------------------------------

    async def _edit(self) -> None:
        """People save flows in the editor, now and then from what they had opened earlier."""
        opened: list[Chatflow] = []
        while True:
            await asyncio.sleep(self.random.expovariate(0.3))
            if not self.faults.on or not self.flowise.flows:
                return
            opened = [*opened, *self.flowise.flows.values()][-12:]
            row = self.random.choice(opened)
            latest = self.flowise.flows.get(row.id)
            if latest is None or self.random.random() < 0.5:
                continue
            words = json.dumps(json.loads(row.flow_data) | {"by": f"edit {self.flowise.now()}"})
            self.flowise.person_texts.discard(latest.flow_data)  # people agree among themselves
            self.flowise.change(row.id, flow_data=words)
            self._is_persons(self.flowise.flows[row.id])

    async def _arrive(self) -> None:
        """Calls that broke off have their effect after all."""
        while True:
            await asyncio.sleep(self.random.expovariate(0.1))
            self._act_late(1)

    def _act_late(self, count: int) -> None:
        for late in [self.flowise.late.pop(0) for _ in self.flowise.late[:count]]:
            try:
                late()
            except Exception:  # noqa: BLE001, S112 - nobody waits for its answer
                continue

    async def _decide(self) -> None:
        """The person of the session: answers each question, and tries again what failed."""
        tables, session = self.tables, self.tables.session
        tables.start("start")
        retries = 0
        while session.status not in {"completed", "cancelled"}:
            await asyncio.sleep(self.random.uniform(0.1, 3))
            if session.status == "waiting":
                self._answer()
            elif session.status == "failed":
                retries += 1
                self.happened.append(f"failed: {(session.error or {}).get('code')}")
                assert retries <= _MOST_RETRIES, f"fails again and again: {session.error}"
                tables.retry()
            assert tables.now() < _DEADLINE, "the session does not end"
            self.flowise.faults = self.faults.on

    def _answer(self) -> None:
        question = read_as(INTERRUPT, self.tables.session.interrupt)
        actions = [option.value for option in question.options]
        likely = {"approve": 20, "accept": 8, "iterate": 3, "rollback": 4, "rebase": 4, "overwrite": 4, "continue": 6}
        if self.iterations >= _MOST_ITERATIONS:
            likely |= {"iterate": 0, "replan": 0, "request_changes": 0}
        weights = [likely.get(action, 1) for action in actions]
        assert sum(weights), f"no way on: {question.type} {actions}"
        action = self.random.choices(actions, weights)[0]
        answer: dict[str, Any] = {"action": action}
        if action in {"iterate", "replan", "request_changes"}:
            self.iterations += 1
            answer["feedback"] = "colder"
        self.happened.append(f"{question.type} ({question.reason}): {action}")
        self.approved = self.approved or action == "approve"
        self.tables.start("resume", question.id, check_answer(question, answer=answer, response=None))

    # --- the trial ----------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """From the start of the session to its end, and to that of everything that is still under way."""
        others = [asyncio.create_task(coroutine) for coroutine in (self._manage(), self._edit(), self._arrive())]
        try:
            await self._decide()
            self.faults.left = 0
            self.flowise.faults = False
            await asyncio.sleep(_THAW)
        finally:
            self.faults.over = True
            for process in self.processes:
                process.killed.set()
            await end_tasks([*others, *self.tasks])
        self._act_late(len(self.flowise.late))
        session_id = self.tables.session.id
        await reconcile(self.flowise, self.tables.intents, session_id)

    def check(self) -> None:
        """What must hold whatever happened."""
        server, session = self.flowise, self.tables.session
        assert not self.wrong, self.wrong
        ours = {id_ for id_ in server.flows if id_ not in server.persons}
        # A cancelled session leaves what it made to the person.
        known = {session.columns.get("chatflow_id")} - {None} if session.outcome != "rolled_back" else set[str]()
        assert ours <= known, f"twins or orphans: {sorted(ours - known)}"
        assert session.outcome != "accepted" or known <= set(server.flows), "the session's flow is gone"
        assert all(row.name != "Mine" for row in server.deleted), "a person's chatflow was deleted"
        assert self.target is None or self.target.id in server.flows, "the flow in use was deleted"
        kept = {flow_data for _, _, flow_data in self.tables.versions.rows}
        lost = set(server.taken) - kept
        assert not lost, f"read, then overwritten or deleted, and not kept: {sorted(text[-60:] for text in lost)}"
        assert len(set(self.tables.answered)) == len(self.tables.answered), "a question came back after its answer"
        ends = [event.type for event in self.tables.events if event.type == "done"]
        assert ends == ["done"], f"{len(ends)} ends"
        assert session.outcome in {"accepted", "rolled_back", "cancelled"}, session.outcome


def trial(seed: int) -> World:
    """One session by its seed; raises AssertionError when something that must hold does not."""
    world = World(seed)

    def saver(database: Any, lease: Lease, *, can_wait: CanWait, **_: Any) -> Saver:
        del database
        return Saver(world.tables, lease, can_wait)

    state = global_random.getstate()
    global_random.seed(seed)
    try:
        with patch.object(executor, "FencedSaver", saver):
            run(world.live())
        world.check()
    except AssertionError as error:
        told = f"{world.operation} {world.mode or ''}, {world.happened}"
        raise AssertionError(f"seed {seed} ({told}): {error}") from error
    finally:
        global_random.setstate(state)
    return world


async def _always() -> bool:
    return True
