"""Execution of runs: advance the graph to the next interrupt or the end, or make a write, under a lease.

A run may be killed, frozen or executed twice at any moment. Only its lease decides whether it may act; only the last
checkpoint decides what has been done; and each possible end of a run is one transaction.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command
from opentelemetry.trace import Span, SpanKind, get_current_span

from flowise_dev_agent.caller import acting_for, answering
from flowise_dev_agent.errors import AgentError, DatabaseUnavailableError, FlowiseUnreachableError, LeaseLostError
from flowise_dev_agent.models.limiter import calls_of
from flowise_dev_agent.observability import log_context
from flowise_dev_agent.observability.metrics import NODE_SECONDS, RUN_FAILURES, RUN_SECONDS, RUNS_ACTIVE
from flowise_dev_agent.observability.tracing import failed, span, traceparent
from flowise_dev_agent.persistence import Claim, Database, Events, FencedSaver, NewEvent, Runs
from flowise_dev_agent.persistence.database import patient
from flowise_dev_agent.persistence.read_model import public_status
from flowise_dev_agent.persistence.runs import RunResult
from flowise_dev_agent.persistence.saver import Standing, standing
from flowise_dev_agent.schemas.base import Failure
from flowise_dev_agent.schemas.event_data import (
    DoneData,
    ErrorData,
    InterruptData,
    NodeEndData,
    NodeErrorData,
    NodeStartData,
    RetryData,
)
from flowise_dev_agent.schemas.events import NodeEvent
from flowise_dev_agent.schemas.interrupts import (
    ClarificationInterrupt,
    Interrupt,
    SelectTargetInterrupt,
    raised_interrupt,
)
from flowise_dev_agent.schemas.session import ResultView
from flowise_dev_agent.sessions.agent import Agent, Graph
from flowise_dev_agent.sessions.emission import CallCount, EventWriter, counting, new_event
from flowise_dev_agent.sessions.flow_writer import FlowWriter, is_flow_write
from flowise_dev_agent.texts import text
from flowise_dev_agent.timings import Timings

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: LangGraph's private switch: a resume that does not match the open interrupt is refused instead of answering another.
STRICT_RESUME_KEY: Final = "__pregel_strict_resume"
_RECURSION_LIMIT: Final = 250
_DATABASE_RETRY_SECS: Final = (0.2, 2.0)
#: Seconds after the drain's 8: a process ends within 10 s, and other workers recover runs that it could not hand back.
_HAND_BACK_SECS: Final = 1.5
#: Seconds to wait for a connection; less than the limit of a round trip.
_PATIENCE_SECS: Final = 20.0
_MAX_RESULT_BYTES: Final = 256_000
#: The longest sleep of a run, in longest pauses between its attempts.
_SLEEP_TIMES: Final = 5


class Execution(Protocol):
    """One attempt at a run, from its claim to its result."""

    last_node: str | None

    async def drive(self, control: RunControl) -> RunResult:
        """Advance until a person has to answer or the session has ended. An error means a retry or a failed session."""
        ...

    async def columns(self) -> Mapping[str, Any]:
        """Columns of the session (see `RunResult`) that are known when the run fails."""
        ...


class RunExecutor:
    """Executes runs of this process.

    `attempts` is how often a run is tried when its infrastructure fails. One for which only Flowise is away sleeps then
    until it is back, up to `outage_secs` after it was asked for. `prepare` is awaited before each attempt.
    """

    def __init__(
        self,
        *,
        database: Database,
        runs: Runs,
        events: Events,
        agent: Agent,
        flow_writer: FlowWriter,
        timings: Timings,
        attempts: int,
        outage_secs: float = 0.0,
        prepare: Callable[[Claim], Awaitable[None]] | None = None,
    ) -> None:
        self._prepare = prepare
        self._database = database
        self._runs = runs
        self._events = events
        self._agent = agent
        self._flow_writer = flow_writer
        self._timings = timings
        self._attempts = attempts
        self._outage_secs = outage_secs
        self._controls: set[RunControl] = set()

    @property
    def active(self) -> int:
        """Number of runs in progress."""
        return len(self._controls)

    def request_drain(self) -> None:
        """Ask all runs to stop before their next step and return to the queue."""
        for control in self._controls:
            control.request_drain()

    async def run(self, run_id: UUID, job_id: int, owner: str | None = None) -> None:
        """Make one attempt at a run of `owner` for a job; does nothing when another job has taken over the run."""
        with log_context(run=run_id, job=job_id):
            claim = await _until_database_is_back(lambda: self._runs.claim(run_id, job_id, owner))
            if claim is None:
                logger.info("The run is over or has another job; nothing to do.")
                return
            about = {
                "session.id": str(claim.session.id),
                "fda.run.id": str(run_id),
                "fda.run.kind": claim.kind,
                "fda.run.attempt": claim.attempt,
            }
            with span(f"run {claim.kind}", about, kind=SpanKind.CONSUMER, parent=claim.request.traceparent) as current:
                request = replace(claim.request, traceparent=traceparent(current) or claim.request.traceparent)
                with (
                    log_context(session=claim.session.id, request=request.id or "none", trace=request.trace_id),
                    calls_of(str(claim.session.id)),
                    acting_for(claim.caller),
                    answering(request),
                ):
                    await self._timed(claim, current)

    async def _timed(self, claim: Claim, current: Span) -> None:
        """Make one attempt, and tell the log, the metrics and the span how it ended."""
        control, began, ending = RunControl(), time.monotonic(), _Ending("cut_off")
        self._controls.add(control)
        try:
            with RUNS_ACTIVE.track_inprogress(), patient(_PATIENCE_SECS):
                ending = await self._attempt(claim, control)
        finally:
            self._controls.discard(control)
            seconds = time.monotonic() - began
            RUN_SECONDS.labels(claim.kind, ending.end).observe(seconds)
            current.set_attribute("fda.run.end", ending.end)
            with log_context(step=ending.step, code=ending.code, ms=round(seconds * 1000)):
                logger.info("The run (%s) ended: %s.", claim.kind, ending.end)

    async def _attempt(self, claim: Claim, control: RunControl) -> "_Ending":
        """Make one attempt."""
        calls = CallCount()
        writer = EventWriter(self._events, claim.lease, claim.session.id, calls)
        run: Execution | None = None
        try:
            try:
                if self._prepare is not None:
                    await self._prepare(claim)
                run = self._execution(claim, writer)
                with counting(calls):
                    end = await run.drive(control)
                rest, made = await writer.finish()
            except GraphDrained:
                await writer.flush()
                await self._hand_back(claim)
                return _Ending("handed_back")
            except Exception as error:  # noqa: BLE001 - whatever a node raises ends here, as a retry or a failed session
                return await self._end_badly(claim, run, writer, error)
            else:
                await self._finalize(claim, end, rest, made)
                return _Ending(end.status, run.last_node, _code_of(end))
        except LeaseLostError:
            return _Ending("lost")
        except asyncio.CancelledError:
            # Cancelled by a client (the lease is gone, so this does nothing) or by a shutdown after its time limit.
            await asyncio.shield(self._hand_back_quickly(claim))
            raise
        finally:
            await writer.close()

    def _execution(self, claim: Claim, writer: EventWriter) -> Execution:
        if is_flow_write(claim.session.request):
            return self._flow_writer.execution(claim, writer.emit)
        return _GraphExecution(self._database, self._agent, claim, writer)

    async def _end_badly(self, claim: Claim, run: Execution | None, writer: EventWriter, error: Exception) -> "_Ending":
        if isinstance(error, LeaseLostError):
            raise error
        node = run.last_node if run else None
        problem = _problem(error, node, claim.lease.run_id)
        failed(get_current_span(), problem.code)
        # Our own errors explain themselves; any other is a bug, so its traceback is logged.
        foreign = None if isinstance(error, AgentError) else error
        logger.log(
            logging.ERROR if foreign else logging.WARNING,
            "The run stopped in %s (%s): %s",
            node or "no node",
            problem.code,
            problem.detail,
            exc_info=foreign,
        )
        is_last = claim.attempt + 1 >= self._attempts
        sleeps = is_last and isinstance(error, FlowiseUnreachableError) and claim.age_secs < self._outage_secs
        retried = sleeps or (_is_transient(error) and not is_last)
        RUN_FAILURES.labels(problem.code, "retried" if retried else "failed").inc()
        if retried:
            attempt = claim.attempt if sleeps else claim.attempt + 1
            pause = min(self._timings.backoff * 2**claim.attempt, self._timings.backoff_max)
            if sleeps:  # ever longer, so that a day has few events
                pause = min(max(pause, claim.age_secs / 4), _SLEEP_TIMES * self._timings.backoff_max)
            pause *= random.uniform(0.75, 1.25)  # noqa: S311 - only spreads retries
            event = new_event(
                RetryData(attempt=attempt + 1, of=self._attempts, code=problem.code),
                node=node,
                phase=self._agent.node_phases.get(node or ""),
                summary=text("event.flowise_away", seconds=round(pause), hours=round(self._outage_secs / 3600))
                if sleeps
                else text(
                    "event.attempt_after",
                    attempt=attempt + 1,
                    total=self._attempts,
                    seconds=round(pause),
                    reason=problem.worded("detail"),
                ),
            )
            await writer.flush()
            await _until_database_is_back(
                lambda: self._runs.requeue(claim.lease, claim.session.id, attempt=attempt, delay=pause, event=event)
            )
            return _Ending("retried", node, problem.code)
        columns = await run.columns() if run else {}
        end = failure(problem, node=node, phase=self._agent.node_phases.get(node or ""), columns=columns)
        await self._finalize(claim, end, *await writer.finish())
        return _Ending("failed", node, problem.code)

    async def _finalize(self, claim: Claim, end: RunResult, rest: Sequence[NewEvent], flowise_calls: int) -> None:
        await _until_database_is_back(lambda: self._runs.finalize(claim, end, rest, flowise_calls=flowise_calls))

    async def _hand_back(self, claim: Claim) -> None:
        await self._runs.requeue(claim.lease, claim.session.id, attempt=claim.attempt)

    async def _hand_back_quickly(self, claim: Claim) -> None:
        # When this fails too, the recovery of another worker finds the run without a living job.
        with suppress(LeaseLostError, DatabaseUnavailableError, TimeoutError):
            async with asyncio.timeout(_HAND_BACK_SECS):
                await self._hand_back(claim)


class _Ending(NamedTuple):
    """End of an attempt: the session's status or the fate of the run, the last step, and the type of a question, the
    outcome or the code of the error."""

    end: str
    step: str | None = None
    code: str | None = None


def _code_of(end: RunResult) -> str | None:
    return end.interrupt["type"] if end.interrupt else end.columns.get("outcome")


class _GraphExecution:
    """One attempt at running the graph."""

    def __init__(self, database: Database, agent: Agent, claim: Claim, writer: EventWriter) -> None:
        self._agent = agent
        self._claim = claim
        self._writer = writer
        self._saver = FencedSaver(
            database, claim.lease, fresh=claim.is_first, upgrade=agent.upgrade_state, can_wait=agent.can_wait
        )
        self._graph: Graph = agent.graph.copy(update={"checkpointer": self._saver})
        self._config: RunnableConfig = {
            # Nothing else belongs here: every key of `configurable` is written into every checkpoint.
            "configurable": {"thread_id": str(claim.session.id), STRICT_RESUME_KEY: True},
            "recursion_limit": _RECURSION_LIMIT,
        }
        self.last_node: str | None = None
        #: The node in progress, and its start time.
        self._running: str | None = None
        self._since = 0.0

    async def drive(self, control: RunControl) -> RunResult:
        """Advance the graph until it needs a person or has ended."""
        session, place = self._claim.session, await self._standing()
        if place is None:
            await self._stream(dict(self._agent.initial_state(session.request)), session, control)
        elif self._claim.interrupt_id in {interrupt.id for interrupt in place.interrupts}:
            await self._stream(Command(resume={self._claim.interrupt_id: self._claim.answer}), session, control)
        elif place.following and not place.interrupts:
            await self._stream(None, session, control)
        else:
            # An earlier attempt came this far and was lost before it could report it.
            return self._result_of(place)
        reached = await self._standing()
        assert reached is not None  # noqa: S101 - the graph has stored its steps
        return self._result_of(reached)

    async def _standing(self) -> Standing | None:
        found = await self._saver.aget_tuple(self._config)
        return found and standing(found)

    async def columns(self) -> Mapping[str, Any]:
        """Session columns from the state of the graph; empty when the database does not answer."""
        try:
            place = await self._standing()
        except DatabaseUnavailableError:
            return {}
        return self._agent.project(place.values) if place else {}

    async def _stream(self, graph_input: Any, session: Any, control: RunControl) -> None:
        context = self._agent.context(session, self._claim.lease, self._writer.emit)
        self._saver.texts = self._agent.waiting_texts(context)
        parts = self._graph.astream(
            graph_input,
            self._config,
            context=context,
            stream_mode=["tasks", "custom"],
            durability="sync",
            control=control,
            version="v2",
        )
        try:
            async for part in parts:
                if part["type"] == "custom":
                    self._take(part["data"])
                elif part["type"] == "tasks":
                    self._report(part["data"])
        except GraphDrained:
            await self._saver.flush()
            raise

    def _take(self, event: NodeEvent) -> None:
        match event.data:
            case NodeStartData():
                self._begin(str(event.node))
            case NodeEndData():
                self._end()
            case _:
                self._writer.emit(event)

    def _report(self, task: Mapping[str, Any]) -> None:
        """Report the start or end of a node from a graph task. Further nodes of the step report themselves."""
        if "input" in task:
            self._begin(task["name"])
        elif self._running == task["name"]:
            self._end(task["error"], asked=bool(task["interrupts"]))

    def _begin(self, node: str) -> None:
        if self._running == node:  # it began in the step before and ends in its own step
            return
        self.last_node = self._running = node
        self._since = time.monotonic()
        phase = self._agent.node_phases.get(node)
        self._writer.put(new_event(NodeStartData(), node=node, phase=phase, status="running"))

    def _end(self, error: BaseException | None = None, *, asked: bool = False) -> None:
        """Report the end of the current node, unless it interrupts: that is reported when the run is finalized."""
        node, self._running = self._running, None
        seconds, phase = time.monotonic() - self._since, self._agent.node_phases.get(node or "")
        status = "failed" if error is not None else "asked" if asked else "ok"
        NODE_SECONDS.labels(node, status).observe(seconds)
        if asked:
            return
        problem = error and _problem(error, node, self._claim.lease.run_id)
        self._writer.put(
            new_event(
                NodeErrorData(code=problem.code) if problem else NodeEndData(),
                node=node,
                phase=phase,
                status=status,
                duration_ms=round(seconds * 1000),
                summary=problem.detail if problem else "",
            )
        )

    def _result_of(self, place: Standing) -> RunResult:
        columns = dict(self._agent.project(place.values))
        if place.interrupts:
            raised = place.interrupts[0]
            node = next(iter(place.following), None)
            interrupt = raised_interrupt(raised.value, raised.id)
            result = self._agent.result_of(interrupt)
            return _waiting(interrupt, node, self._agent.node_phases.get(node or ""), columns, result)
        outcome = columns.get("outcome")
        status = "cancelled" if outcome == "cancelled" else "completed"
        event = new_event(
            DoneData(outcome=outcome, chatflow_id=columns.get("chatflow_id")),
            status=public_status(status),
            summary=f"Ended: {outcome}" if outcome else "Ended",
        )
        return RunResult(status=status, event=event, columns=columns)


def failure(
    problem: Failure,
    *,
    node: str | None = None,
    phase: str | None = None,
    columns: Mapping[str, Any] | None = None,
) -> RunResult:
    """Result of a run that failed and is not retried."""
    event = new_event(
        ErrorData(code=problem.code, hint=problem.hint),
        node=node,
        phase=phase,
        status=public_status("failed"),
        summary=problem.worded("detail"),
    )
    error = problem.model_dump(mode="json", exclude_none=True)
    return RunResult(status="failed", event=event, columns=columns or {}, error=error)


def _waiting(
    interrupt: Interrupt, node: str | None, phase: str | None, columns: Mapping[str, Any], result: ResultView | None
) -> RunResult:
    asked = InterruptData(interrupt_id=interrupt.id, type=interrupt.type, reason=interrupt.reason)
    if isinstance(interrupt, ClarificationInterrupt):
        asked = asked.model_copy(update={"questions": interrupt.data.questions})
    elif isinstance(interrupt, SelectTargetInterrupt):
        asked = asked.model_copy(update={"names": {one.id: one.name for one in interrupt.data.candidates}})
    event = new_event(
        asked,
        node=node,
        phase=phase,
        status=public_status("waiting"),
        summary=interrupt.worded("message"),
    )
    return RunResult(
        status="waiting",
        event=event,
        columns=columns,
        interrupt=interrupt.model_dump(mode="json"),
        result=result.fitted_json(_MAX_RESULT_BYTES) if result else None,
    )


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, AgentError):
        return error.transient
    # OSError covers refused and broken connections, and TimeoutError.
    return isinstance(error, OSError | psycopg.OperationalError)


def _problem(error: Any, node: str | None, run_id: UUID) -> Failure:
    """Error text for people: our own errors in full, of any other only its type."""
    if isinstance(error, AgentError):
        return Failure.of(error)
    if isinstance(error, TimeoutError):
        late = text("error.step_too_slow", step=node) if node else text("error.session_too_slow")
        return Failure(code="step_timeout", detail=late, hint=text("error.retry_session"))
    kind = type(error).__name__ if isinstance(error, BaseException) else "error"
    return Failure(
        code="internal_error",
        detail=text("error.step_failed", step=node, kind=kind) if node else text("error.session_failed", kind=kind),
        hint=text("error.retry_or_report", run=str(run_id)),
    )


async def _until_database_is_back(action: Callable[[], Awaitable[_T]]) -> _T:
    """Repeat `action`, which must be safe to repeat, until the database answers. Only cancellation ends it early."""
    pause, longest = _DATABASE_RETRY_SECS
    while True:
        try:
            return await action()
        except DatabaseUnavailableError:
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)
