"""The tables and the queue in memory, with the fences and transactions of the real ones."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple, copy_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import RESUME

from flowise_dev_agent.errors import DatabaseUnavailableError, LeaseLostError
from flowise_dev_agent.persistence import Claim, Lease, NewEvent, WriteIntent
from flowise_dev_agent.persistence.runs import Lost, RunResult
from flowise_dev_agent.persistence.saver import CanWait, next_nodes
from tests.unit.publish.fakes import FakeIntents, FakeVersions
from tests.unit.sessions.simulation.clock import CURRENT, Process, point


@dataclass
class Job:
    id: int
    run_id: UUID
    due: float
    worker: Process | None = None


@dataclass
class Run:
    id: UUID
    kind: str
    interrupt_id: str | None
    answer: Mapping[str, Any] | None
    job_id: int | None
    status: str = "queued"
    epoch: int = 0
    attempt: int = 0
    lost_at: str | None = None
    lost_epoch: int = 0
    updated_at: float = 0.0


@dataclass
class Session:
    """The one session of a simulation."""

    id: UUID
    request: dict[str, Any]
    instance_id: str = "default"
    status: str = "queued"
    interrupt: Mapping[str, Any] | None = None
    outcome: str | None = None
    error: Mapping[str, Any] | None = None
    columns: dict[str, Any] = field(default_factory=dict[str, Any])


class Tables:
    """All tables of a session. Runs as `Runs`, events as `Events`, and what a person does to the session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.runs: list[Run] = []
        self.jobs: dict[int, Job] = {}
        self.events: list[NewEvent] = []
        self.answered: list[str] = []
        self.saved = InMemorySaver()
        self.blobs: dict[str, str] = {}
        self.intents = Intents(self)
        self.versions = FakeVersions()
        self.recovering: Process | None = None
        self._numbers = count(1)

    # --- fences -------------------------------------------------------------------------------------------------

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def owned(self, lease: Lease) -> Run:
        process = CURRENT.get()
        if process is not None and process.faults.happens(process.faults.outage):
            raise DatabaseUnavailableError("away")
        run = self.runs[-1]
        if (run.id, run.epoch, run.status) != (lease.run_id, lease.epoch, "running"):
            raise LeaseLostError("Another worker owns this run now.")
        return run

    def checkpoint(self) -> str:
        return max(self.saved.storage[str(self.session.id)].get("", {}), default="")

    def _job(self, run_id: UUID, delay: float = 0.0) -> int:
        job = Job(next(self._numbers), run_id, self.now() + delay)
        self.jobs[job.id] = job
        return job.id

    # --- a person -----------------------------------------------------------------------------------------------

    def start(self, kind: str, interrupt_id: str | None = None, answer: Mapping[str, Any] | None = None) -> None:
        assert not self.runs or self.runs[-1].status not in {"queued", "running"}
        self.session.status, self.session.interrupt, self.session.error = "queued", None, None
        run = Run(uuid4(), kind, interrupt_id, answer, None, updated_at=self.now())
        run.job_id = self._job(run.id)
        self.runs.append(run)
        if kind == "resume":
            self.answered.append(str(interrupt_id))

    def retry(self) -> None:
        last = self.runs[-1]
        self.start("retry", last.interrupt_id, last.answer)

    # --- the queue ----------------------------------------------------------------------------------------------

    def take(self, process: Process) -> Job | None:
        for job in self.jobs.values():
            if job.worker is None and job.due <= self.now():
                job.worker = process
                return job
        return None

    # --- Runs ---------------------------------------------------------------------------------------------------

    async def claim(self, run_id: UUID, job_id: int, owner: str | None = None) -> Claim | None:
        run = self.runs[-1]
        if run.id != run_id or run.job_id != job_id or run.status not in {"queued", "running"}:
            return None
        run.epoch += 1
        run.status, run.updated_at, self.session.status = "running", self.now(), "running"
        process = CURRENT.get()
        assert process is not None
        process.epoch = run.epoch
        row: Any = SimpleNamespace(**vars(self.session))
        answer = None if run.answer is None else dict(run.answer)
        return Claim(
            Lease(run.id, run.epoch), job_id, row, run.kind, run.attempt, run.interrupt_id, answer, has_webhook=False
        )

    async def finalize(
        self, claim: Claim, end: RunResult, rest: Sequence[NewEvent] = (), *, flowise_calls: int = 0
    ) -> None:
        run = self.owned(claim.lease)
        run.status = "failed" if end.status == "failed" else "done"
        self._settle(end, rest)

    def _settle(self, end: RunResult, rest: Sequence[NewEvent] = ()) -> None:
        session = self.session
        session.status, session.interrupt, session.error = end.status, end.interrupt, end.error
        session.outcome = end.columns.get("outcome") or session.outcome
        session.columns |= {name: value for name, value in end.columns.items() if value is not None}
        self.events += [*rest, end.event]

    async def requeue(
        self, lease: Lease, session_id: UUID, *, attempt: int, delay: float = 0.0, event: NewEvent | None = None
    ) -> None:
        run = self.owned(lease)
        run.status, run.attempt, run.job_id, run.updated_at = "queued", attempt, self._job(run.id, delay), self.now()
        self.session.status = "queued"
        self.events += [event] if event else []

    @asynccontextmanager
    async def recovery_turn(self) -> AsyncGenerator[bool]:
        process = CURRENT.get()
        holder = self.recovering
        # Postgres drops the lock of a process that is gone.
        if holder is not None and not holder.killed.is_set():
            yield False
            return
        self.recovering = process
        try:
            yield True
        finally:
            self.recovering = None

    async def lost(self, seconds: float) -> list[Lost]:
        return [found for run in self.runs[-1:] if (found := self._lost(run, seconds))]

    def _lost(self, run: Run, seconds: float) -> Lost | None:
        if run.status not in {"queued", "running"}:
            return None
        job = self.jobs.get(run.job_id or 0)
        gone = job is None and self.now() - run.updated_at > seconds
        stalled = job is not None and job.worker is not None and job.worker.silent_for() > seconds
        if not (gone or stalled):
            return None
        stuck = run.status == "running" and run.epoch > run.lost_epoch and run.lost_at == self.checkpoint()
        return Lost(run.id, self.session.id, "default", run.job_id, run.attempt, stuck, job=cast(Any, job))

    async def take_back(self, lost: Lost, *, isolated: bool = False) -> bool:
        del isolated
        run = self.runs[-1]
        if run.id != lost.id or run.job_id != lost.job_id or run.status not in {"queued", "running"}:
            return False
        self.jobs.pop(lost.job_id or 0, None)
        run.job_id, run.attempt, run.updated_at = self._job(run.id), run.attempt + 1, self.now()
        if run.status == "running":
            run.lost_at, run.lost_epoch = self.checkpoint(), run.epoch
        return True

    async def give_up(self, lost: Lost, end: RunResult) -> bool:
        run = self.runs[-1]
        if run.id != lost.id or run.job_id != lost.job_id or run.status not in {"queued", "running"}:
            return False
        self.jobs.pop(lost.job_id or 0, None)
        run.epoch += 1
        run.status = "failed"
        self._settle(end)
        return True

    # --- Events -------------------------------------------------------------------------------------------------

    async def append(
        self, lease: Lease, session_id: UUID, events: Sequence[NewEvent], *, flowise_calls: int = 0
    ) -> None:
        self.owned(lease)
        self.events += events

    async def send_live(self, session_id: UUID, events: Any) -> None:
        del session_id, events


class Intents(FakeIntents):
    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self._tables = tables
        self.unsure: set[UUID] = set()

    async def open(self, lease: Any, *, key: UUID, **values: Any) -> WriteIntent:
        self._tables.owned(lease)
        if key in self.rows and self.rows[key].status == "open":
            self.unsure.add(key)
        return await super().open(lease, key=key, **values)

    async def finish(self, lease: Any, key: UUID, *, status: Any, result: dict[str, Any]) -> None:
        self._tables.owned(lease)
        await super().finish(lease, key, status=status, result=result)


class Saver(InMemorySaver):
    """As `FencedSaver`: fenced, and what the next checkpoint says as well is held until it matters."""

    def __init__(self, tables: Tables, lease: Lease, can_wait: CanWait) -> None:
        super().__init__()
        shared = tables.saved
        self.storage, self.writes, self.blobs = shared.storage, shared.writes, shared.blobs
        self._tables = tables
        self._lease = lease
        self._held: list[tuple[Any, ...]] = []
        self._can_wait = can_wait
        self._waiting: tuple[Any, ...] | None = None
        self._next: frozenset[str] = frozenset()
        self._ended: frozenset[str] = frozenset()
        self.texts: dict[str, bytes] = {}

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        await self.flush()
        await point()
        found = super().get_tuple(config)
        if found is None:
            return None
        self._next = next_nodes(found.checkpoint)
        return found._replace(checkpoint=copy_checkpoint(found.checkpoint))

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self._held.clear()
        self._ended, self._next = self._ended | self._next, next_nodes(checkpoint)
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            config, new_versions = waiting[0], {**waiting[3], **new_versions}
        if not self._can_wait(self._ended, self._next):
            saved = await self._put(config, checkpoint, metadata, new_versions)
            await point()
            return saved
        self._waiting = config, checkpoint, metadata, new_versions
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

    async def _put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        await point()
        self._tables.owned(self._lease)
        thread = self.storage[config["configurable"]["thread_id"]]
        parents = [parent for kept in thread[""].values() if (parent := kept[2])]
        parent = config["configurable"].get("checkpoint_id")
        if checkpoint["id"] not in thread[""]:
            assert parent is None or parent not in parents, "two checkpoints follow the same one"
        self._ended = frozenset()
        self._tables.blobs |= {sha256: content.decode() for sha256, content in self.texts.items()}
        self.texts.clear()
        return super().put(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._held.append((config, writes, task_id, task_path))
        if any(channel in WRITES_IDX_MAP and channel != RESUME for channel, _ in writes):
            await self.flush()

    async def flush(self) -> None:
        held, self._held = self._held, []
        if self._waiting is not None:
            await self._put(*self._waiting)
            self._waiting = None
            for item in held:
                super().put_writes(*item)
            await point()
            return
        for item in held:
            await point()
            self._tables.owned(self._lease)
            super().put_writes(*item)
