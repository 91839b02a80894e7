"""A small agent for tests of the runtime: a graph that plays a script, with its effects kept in a table.

The requirement of a session is its script, words separated by spaces:

    work:x      record the effect x
    ask:q       interrupt with the question q; one that begins with "review" shows a result
    vow:q       ask, and kill this process the first time that the answer arrives
    gate:g      record the effect g, then wait until the gate g is opened
    fail        an error that a person must see
    bug         an exception that nobody expected
    flaky:n     a transient error, n times
    call:n      n requests to Flowise (only counted)
    cost:n      a model call of n tokens
    talk:n      n token events
    tell:n      n stored events
    die         kill this process, once
    poison:n,p  kill this process, the first time (p is always: each time), once n others are at the gate or it is open
    end:o       the outcome
"""

import asyncio
import json
import operator
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Annotated, Any, TypedDict
from uuid import UUID

import psycopg
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime as GraphRuntime
from langgraph.types import interrupt

from flowise_dev_agent.caller import SERVICE, acting_for
from flowise_dev_agent.errors import ConfigurationError, FlowiseAuthError, FlowiseTimeoutError, InvalidAnswerError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.schemas.event_data import CostData, DecisionData, TokenData
from flowise_dev_agent.schemas.events import NodeEvent
from flowise_dev_agent.schemas.interrupts import ClarificationData, ClarificationInterrupt, Interrupt
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.session import ApprovedPlan, ResultView
from flowise_dev_agent.schemas.verdict import Trial, Verdict
from flowise_dev_agent.sessions import Agent
from flowise_dev_agent.sessions.emission import count_call
from flowise_dev_agent.settings import FlowiseSettings, ServerSettings
from flowise_dev_agent.timings import Timings
from flowise_dev_agent.webhooks.service import WebhookConfig

FAST = Timings(heartbeat=0.2, stalled=1.2, recovery=0.2, drain=1.0, poll=0.5, backoff=0.05, backoff_max=0.2)
DEADLINE_SECS = 30.0

PLAN = Plan(goal="g", operation="create", flow_name="f")
RESULT = ResultView(summary="review", tests=[Trial(question="hi", passed=True)], verdict=Verdict(done=True))

TABLES = """
    CREATE TABLE IF NOT EXISTS effects (id bigserial, session_id uuid, name text, pid integer);
    CREATE TABLE IF NOT EXISTS gates (name text PRIMARY KEY);
"""


class World:
    """The outside world of one database: effects and gates, reached without the product's pool."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        async with await psycopg.AsyncConnection.connect(self.dsn, autocommit=True, connect_timeout=5) as connection:
            yield connection

    async def prepare(self) -> None:
        async with self._connect() as connection:
            await connection.execute(TABLES)

    async def fetch(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        async with self._connect() as connection:
            return await (await connection.execute(query, params)).fetchall()  # pyright: ignore[reportArgumentType]

    async def record(self, session_id: str, name: str) -> int:
        """Record an effect; how often it has happened in this session so far."""
        async with self._connect() as connection:
            await connection.execute(
                "INSERT INTO effects (session_id, name, pid) VALUES (%s, %s, %s)", (session_id, name, os.getpid())
            )
            row = await (
                await connection.execute(
                    "SELECT count(*) FROM effects WHERE session_id = %s AND name = %s", (session_id, name)
                )
            ).fetchone()
        return row[0] if row else 0

    async def effects(self, session_id: UUID) -> list[str]:
        rows = await self.fetch("SELECT name FROM effects WHERE session_id = %s ORDER BY id", session_id)
        return [row[0] for row in rows]

    async def pids(self, session_id: UUID) -> list[int]:
        rows = await self.fetch("SELECT pid FROM effects WHERE session_id = %s ORDER BY id", session_id)
        return [row[0] for row in rows]

    async def open_gate(self, name: str) -> None:
        async with self._connect() as connection:
            await connection.execute("INSERT INTO gates VALUES (%s) ON CONFLICT DO NOTHING", (name,))

    async def pass_gate(self, name: str) -> None:
        while True:
            try:
                async with self._connect() as connection:
                    while True:
                        cursor = await connection.execute("SELECT 1 FROM gates WHERE name = %s", (name,))
                        if await cursor.fetchone():
                            return
                        await asyncio.sleep(0.02)
            except psycopg.OperationalError:
                await asyncio.sleep(0.05)


@dataclass(frozen=True)
class Context:
    session_id: str
    world: World


class State(TypedDict, total=False):
    script: list[str]
    pc: int
    answers: Annotated[list[Any], operator.add]
    outcome: str | None


class _NoLookups:
    """Lookups of an instance that knows no node types and has no tools."""

    async def schemas(self, instance_id: str, /) -> dict[str, Any]:
        return {}

    def tools(self, instance_id: str, chosen: Mapping[str, str], /) -> Any:
        raise ConfigurationError("This agent has no tools.")


def _word(state: State) -> tuple[str, str]:
    name, _, argument = state.get("script", [])[state.get("pc", 0)].partition(":")
    return name, argument


def _next(state: State) -> str:
    return _word(state)[0] if state.get("pc", 0) < len(state.get("script", [])) else END


def _done(state: State, **more: Any) -> State:
    return State(pc=state.get("pc", 0) + 1, **more)


async def work(state: State, runtime: GraphRuntime[Context]) -> State:
    await runtime.context.world.record(runtime.context.session_id, _word(state)[1])
    return _done(state)


async def ask(state: State) -> State:
    question = _word(state)[1]
    answer = interrupt(
        ClarificationInterrupt(message=question, options=[], data=ClarificationData(questions=[question])).as_value()
    )
    return _done(state, answers=[answer])


async def vow(state: State, runtime: GraphRuntime[Context]) -> State:
    asked = await ask(state)
    await die(state, runtime)
    return asked


async def gate(state: State, runtime: GraphRuntime[Context]) -> State:
    name = _word(state)[1]
    await runtime.context.world.record(runtime.context.session_id, name)
    await runtime.context.world.pass_gate(name)
    return _done(state)


async def fail(state: State) -> State:
    raise FlowiseAuthError("Flowise at http://flowise.test refused the API key.", hint="Set FLOWISE_API_KEY.")


async def bug(state: State) -> State:
    raise KeyError("sk-a-secret-that-must-not-leave")


async def flaky(state: State, runtime: GraphRuntime[Context]) -> State:
    if await runtime.context.world.record(runtime.context.session_id, "flaky") <= int(_word(state)[1]):
        raise FlowiseTimeoutError("Flowise at http://flowise.test did not answer within 15 s.")
    return _done(state)


async def talk(state: State, runtime: GraphRuntime[Context]) -> State:
    for number in range(int(_word(state)[1])):
        runtime.stream_writer(NodeEvent("talk", "speech", "", TokenData(text=f"{number} ")))
        await asyncio.sleep(0)
    return _done(state)


async def tell(state: State, runtime: GraphRuntime[Context]) -> State:
    for number in range(int(_word(state)[1])):
        data = DecisionData(taken=str(number), why="y" * 9000)
        runtime.stream_writer(NodeEvent("tell", "speech", f"{number} \x00 {'x' * 300}", data))
    return _done(state)


async def call(state: State) -> State:
    for _ in range(int(_word(state)[1])):
        count_call("GET /nodes")
    return _done(state)


async def cost(state: State, runtime: GraphRuntime[Context]) -> State:
    data = CostData(model_calls=1, input_tokens=int(_word(state)[1]), output_tokens=1, usd=0.01)
    runtime.stream_writer(NodeEvent("cost", "speech", "cost", data))
    return _done(state)


async def die(state: State, runtime: GraphRuntime[Context]) -> State:
    if await runtime.context.world.record(runtime.context.session_id, "die") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return _done(state)


_IN_COMPANY = """
    SELECT 1 FROM effects WHERE pid = %s AND name = 'gate' HAVING count(DISTINCT session_id) >= %s
    UNION ALL SELECT 1 FROM gates
"""


async def poison(state: State, runtime: GraphRuntime[Context]) -> State:
    world, (company, _, name) = runtime.context.world, _word(state)[1].partition(",")
    if await world.record(runtime.context.session_id, f"poison {name}") > 1 and name != "always":
        return _done(state)
    await until(lambda: world.fetch(_IN_COMPANY, os.getpid(), int(company)), "others are at the gate")
    os.kill(os.getpid(), signal.SIGKILL)
    return _done(state)


async def end(state: State) -> State:
    return _done(state, outcome=_word(state)[1])


NODES = {
    "work": work,
    "ask": ask,
    "vow": vow,
    "gate": gate,
    "fail": fail,
    "bug": bug,
    "flaky": flaky,
    "talk": talk,
    "tell": tell,
    "call": call,
    "cost": cost,
    "die": die,
    "poison": poison,
    "end": end,
}


def build_graph() -> Any:
    builder = StateGraph(State, context_schema=Context)
    for name, node in NODES.items():
        builder.add_node(name, node)
    builder.add_conditional_edges(START, _next)
    for name in NODES:
        builder.add_conditional_edges(name, _next)
    return builder.compile()


def check_answer(interrupt: Interrupt, body: ResumeSession, /) -> Mapping[str, Any]:
    if body.response == "wrong":
        raise InvalidAnswerError("The answer does not fit.")
    return body.answer or {"text": body.response}


def make_agent(world: World) -> Agent:
    return Agent(
        graph=build_graph(),
        context=lambda session, lease, emit: Context(session_id=str(session.id), world=world),
        initial_state=lambda request: State(script=request["requirement"].split(), pc=0, answers=[]),
        project=lambda values: {
            "session_name": "A script",
            "outcome": values.get("outcome"),
            "iteration": values.get("pc"),
            "totals": {"model_calls": len(values.get("answers", []))},
            "degraded": [],
        },
        check_answer=check_answer,
        instances=Instances(
            FlowiseSettings(instances_json=json.dumps([{"id": "main", "endpoint": "http://flowise.test"}]))
        ),
        chatflow_url=lambda endpoint, chatflow_id: f"{endpoint}/canvas/{chatflow_id}",
        lookups=_NoLookups(),
        result_of=lambda interrupt: (
            RESULT.model_copy(update={"summary": interrupt.message}) if interrupt.message.startswith("review") else None
        ),
        approved_plan=lambda interrupt, answer: (
            ApprovedPlan(text=interrupt.message + "." * answer.get("dots", 0), contract=PLAN)
            if interrupt.message.startswith("plan")
            else None
        ),
        node_phases={name: "speech" if name in {"talk", "tell"} else "labour" for name in NODES},
    )


@asynccontextmanager
async def running_engine(
    dsn: str, *, worker: bool = True, timings: Timings = FAST, **options: Any
) -> AsyncIterator[Runtime]:
    world = World(dsn)
    await world.prepare()
    database = Database(dsn, min_size=1, max_size=8, connect_timeout=2)
    async with AsyncExitStack() as stack:
        # As in a process of its own: what the engine does by itself is nobody's.
        with acting_for(SERVICE):
            opened = Runtime.assemble(database, dsn, make_agent(world), worker=worker, timings=timings, **options)
            engine = await stack.enter_async_context(opened)
        yield engine


def script(*words: str) -> StartSession:
    return StartSession(requirement=" ".join(words))


async def until(condition: Any, what: str, deadline_secs: float = DEADLINE_SECS) -> Any:
    """The first true result of an awaitable check; fails with `what` after the deadline."""
    async with asyncio.timeout(deadline_secs) as limit:
        try:
            while not (result := await condition()):  # noqa: ASYNC110 - what is awaited is in another process
                await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            if limit.expired():
                raise AssertionError(f"not within {deadline_secs} s: {what}") from None
            raise
    return result


def serve(dsn: str, timings: Timings, environment: Mapping[str, str], ready: Connection) -> None:
    """A worker process, until SIGTERM: what a `Forked` runs. Its webhooks follow the variables of the environment."""
    os.environ.update(environment)
    asyncio.run(_serve(dsn, timings, ready))


async def _serve(dsn: str, timings: Timings, ready: Connection) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    webhooks = WebhookConfig.from_settings(ServerSettings())
    async with running_engine(dsn, timings=timings, webhooks=webhooks):
        ready.send(True)
        await stop.wait()
