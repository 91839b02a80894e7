"""How this process and the database are: for people, for load balancers, for Prometheus."""

from collections.abc import Iterator
from typing import Any, Final

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.drift import knowledge_health
from flowise_dev_agent.observability.metrics import GaugeMetricFamily, exposition, gauge
from flowise_dev_agent.persistence import Database, InstanceNodes
from flowise_dev_agent.persistence.queue import RUN_QUEUE
from flowise_dev_agent.persistence.queue_stats import QueueStats, read_database_health, read_queue_stats
from flowise_dev_agent.runtime.runs.worker import CONSUMERS, Worker
from flowise_dev_agent.runtime.sessions.feed import Feed
from flowise_dev_agent.runtime.sessions.views import public_statuses

#: What of the pool's own report is shown, and under which name.
_POOL: Final = {"pool_size": "open", "pool_available": "idle", "requests_waiting": "waiting"}


class HealthReporter:
    """Reports of one process; `worker` is None where others do that work, `silent` as in `read_database_health`."""

    def __init__(
        self, database: Database, instances: Instances, feed: Feed, worker: Worker | None, *, silent: float
    ) -> None:
        self._silent = silent
        self._database = database
        self._instances = instances
        self._feed = feed
        self._worker = worker

    async def health(self) -> dict[str, Any]:
        """State of this process and of the database, never raising: `status` is `ok`, `degraded` or `unavailable`."""
        worker = self._worker
        report: dict[str, Any] = {
            "status": "ok",
            "feed": "listening" if self._feed.listening else "polling",
            "worker": None
            if worker is None
            else {"state": "running" if worker.running else "restarting", "runs": worker.active_runs},
        }
        if not self._feed.listening or (worker is not None and not worker.running):
            report["status"] = "degraded"
        try:
            report |= await self._database_report()
        except DatabaseUnavailableError:
            report |= {"status": "unavailable", "database": {"state": "unavailable"}}
        return report

    async def readiness(self) -> dict[str, Any]:
        """What stands between a new session and its first step: the `database` with its latency in ms and the
        `pending_migrations`, and the `queue` with the number of runs that wait, the age of the oldest in seconds and
        the number of workers. Raises DatabaseUnavailableError.
        """
        report = await self._database_report()
        return {"database": report["database"], "queue": report["queue"]}

    async def metrics(self) -> bytes:
        """Everything that this process counts, and how the service stands, as Prometheus reads it. Never raises."""
        try:
            stats = await read_queue_stats(self._database, silent=self._silent)
        except DatabaseUnavailableError:
            stats = None
        return exposition([*self._of_process(), *_of_service(stats)])

    def _of_process(self) -> Iterator[GaugeMetricFamily]:
        pool = self._database.pool.get_stats()
        connections = {(name,): float(pool.get(key, 0)) for key, name in _POOL.items()}
        yield gauge("fda_pool_connections", "Connections of this process's pool.", connections, ["state"])
        yield gauge("fda_pool_connections_max", "As many as the pool may open.", pool["pool_max"])
        yield gauge("fda_streams_open", "Event streams that this process serves.", self._feed.readers)
        yield gauge("fda_feed_listening", "1 while LISTEN works, 0 while streams poll.", self._feed.listening)

    async def _database_report(self) -> dict[str, Any]:
        database_health = await read_database_health(self._database, silent=self._silent)
        servers = [(id_, self._instances.client(id_).endpoint) for id_ in self._instances.ids]
        missing = database_health.pending_migrations
        knowledge = {} if missing else await knowledge_health(InstanceNodes(self._database), servers)
        return {
            "database": {"state": "ok", "latency_ms": database_health.latency_ms, "pending_migrations": missing},
            "queue": {"name": RUN_QUEUE, **vars(database_health.runs), "workers": _workers(database_health.consumers)},
            "knowledge": knowledge,
        }


def _of_service(stats: QueueStats | None) -> Iterator[GaugeMetricFamily]:
    """The same from every process of a service."""
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
    yield gauge("fda_queue_oldest_seconds", "Since when the oldest of it waits.", age, ["queue"])
    yield gauge("fda_workers", "Workers that have been heard of lately.", _workers(stats.consumers))


def _workers(consumers: int) -> int:
    return -(-consumers // CONSUMERS)
