"""Health of this process and of the database, for people, load balancers and Prometheus, and the shown settings."""

from collections.abc import Iterator
from typing import Final

from flowise_dev_agent import __version__
from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.drift import knowledge_health
from flowise_dev_agent.observability.metrics import GaugeMetricFamily, exposition, gauge
from flowise_dev_agent.ops.worker import CONSUMERS, Worker
from flowise_dev_agent.persistence import Database, InstanceNodes
from flowise_dev_agent.persistence.queue import RUN_QUEUE
from flowise_dev_agent.persistence.queue_stats import QueueStats, read_database_health, read_queue_stats
from flowise_dev_agent.persistence.read_model import public_statuses
from flowise_dev_agent.schemas.knowledge import KnowledgeReport
from flowise_dev_agent.schemas.service import (
    DatabaseState,
    InstanceSettings,
    PhaseSettings,
    ProcessHealth,
    PublicSettings,
    QueueState,
    Readiness,
    WorkerState,
)
from flowise_dev_agent.sessions.feed import Feed
from flowise_dev_agent.settings import Phase, ReasoningSettings, Settings

_PHASES: Final[tuple[Phase, ...]] = ("classify", "plan", "patch", "judge")
#: Reported statistics of the pool -> their names in the metric.
_POOL: Final = {"pool_size": "open", "pool_available": "idle", "requests_waiting": "waiting"}


class HealthReporter:
    """Health of one process. `worker` is None if other processes run the jobs; `silent`: see `read_database_health`."""

    def __init__(
        self, database: Database, instances: Instances, feed: Feed, worker: Worker | None, *, silent: float
    ) -> None:
        self._silent = silent
        self._database = database
        self._instances = instances
        self._feed = feed
        self._worker = worker

    async def health(self) -> ProcessHealth:
        """State of this process and of the database. Never raises."""
        worker = self._worker
        status = "ok" if self._feed.listening and (worker is None or worker.running) else "degraded"
        feed = "listening" if self._feed.listening else "polling"
        state = worker and WorkerState(state="running" if worker.running else "restarting", runs=worker.active_runs)
        try:
            ready = await self.readiness()
            fits = not (ready.database.pending_migrations or ready.database.newer_migrations)
            known = await self._knowledge() if fits else None
            if ready.paused:
                status, state = "degraded", state and state.model_copy(update={"state": "paused"})
        except DatabaseUnavailableError:
            database = DatabaseState(state="unavailable")
            return ProcessHealth(status="unavailable", feed=feed, worker=state, database=database)
        return ProcessHealth(
            status=status,
            feed=feed,
            worker=state,
            database=ready.database,
            queue=ready.queue,
            paused=ready.paused,
            knowledge=known,
        )

    async def readiness(self) -> Readiness:
        """State of the database and the queue, which a new session needs. Raises DatabaseUnavailableError."""
        found = await read_database_health(self._database, silent=self._silent)
        return Readiness(
            database=DatabaseState(
                state="ok",
                latency_ms=found.latency_ms,
                pending_migrations=found.fit.pending,
                newer_migrations=found.fit.newer,
            ),
            queue=QueueState(name=RUN_QUEUE, **vars(found.runs), workers=_workers(found.consumers)),
            paused=found.paused,
        )

    async def metrics(self) -> bytes:
        """Counters of this process and gauges of the whole service, for Prometheus. Never raises."""
        try:
            stats = await read_queue_stats(self._database, silent=self._silent)
        except DatabaseUnavailableError:
            stats = None
        return exposition([*self._of_process(), *_of_service(stats)])

    def _of_process(self) -> Iterator[GaugeMetricFamily]:
        pool = self._database.pool.get_stats()
        connections = {(name,): float(pool.get(key, 0)) for key, name in _POOL.items()}
        yield gauge("fda_pool_connections", "Connections of this process's pool.", connections, ["state"])
        yield gauge("fda_pool_connections_max", "The most that the pool may open.", pool["pool_max"])
        yield gauge("fda_streams_open", "Event streams that this process serves.", self._feed.readers)
        yield gauge("fda_feed_listening", "1 while LISTEN works, 0 while streams poll.", self._feed.listening)

    async def _knowledge(self) -> KnowledgeReport:
        servers = [(id_, self._instances.endpoint(id_)) for id_ in self._instances.ids]
        return await knowledge_health(InstanceNodes(self._database), servers)


def _of_service(stats: QueueStats | None) -> Iterator[GaugeMetricFamily]:
    """Gauges of the whole service; every process reports the same values."""
    yield gauge("fda_database_up", "1 when the database answers.", stats is not None)
    if stats is None:
        return
    sessions = {
        (public,): float(sum(stats.sessions.get(row, 0) for row in rows)) for public, rows in public_statuses().items()
    }
    backlogs = {"runs": stats.runs, "webhooks": stats.deliveries}
    depth = {(queue,): float(backlog.queued) for queue, backlog in backlogs.items()}
    age = {(queue,): backlog.oldest_secs for queue, backlog in backlogs.items()}
    yield gauge("fda_sessions", "Sessions by status.", sessions, ["status"])
    yield gauge("fda_queue_depth", "What waits for a worker.", depth, ["queue"])
    yield gauge("fda_queue_oldest_seconds", "Age of the oldest of it.", age, ["queue"])
    yield gauge("fda_workers", "Workers with a recent heartbeat.", _workers(stats.consumers))


def _workers(consumers: int) -> int:
    return -(-consumers // CONSUMERS)


def public_settings(settings: Settings, reasoning: ReasoningSettings) -> PublicSettings:
    """Select the settings that matter to people. `reasoning` may come from a stored connection."""
    server, flowise, limits, retention = settings.server, settings.flowise, settings.limits, settings.retention
    return PublicSettings(
        version=__version__,
        auth=server.api_key is not None,
        engine=reasoning.engine,
        phases={
            phase: PhaseSettings(mode=reasoning.mode_of(phase), model=reasoning.model_for(phase)) for phase in _PHASES
        },
        fallback_enabled=reasoning.fallback_enabled,
        retry_count=reasoning.retry_count,
        instances=[InstanceSettings(id=item.id, default=index == 0) for index, item in enumerate(flowise.instances)],
        schema_drift_policy=flowise.schema_drift_policy,
        limits=limits.model_dump(),
        retention_days={
            "sessions": retention.sessions_days,
            "threads": retention.threads_days,
            "events": retention.events_days,
            "artifacts": retention.artifacts_days,
        },
        rate_limit_sessions_per_min=server.rate_limit_sessions_per_min,
        worker_concurrency=server.worker_concurrency,
        webhooks_signed=bool(server.webhook_secrets),
        public_base_url=str(server.public_base_url) if server.public_base_url else None,
        tracing=settings.tracing.key is not None,
    )
