"""Knowledge about each Flowise instance, and its refresh: a background job with progress for people."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from flowise_dev_agent.caller import serving
from flowise_dev_agent.errors import AgentError, DatabaseUnavailableError, FlowiseTimeoutError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.drift import knowledge_health
from flowise_dev_agent.knowledge.nodes import NodeKnowledge
from flowise_dev_agent.knowledge.templates import TemplateKnowledge
from flowise_dev_agent.observability import log_context
from flowise_dev_agent.persistence import Database, InstanceNodes, InstanceTemplates, Refreshes, RefreshRow
from flowise_dev_agent.schemas.base import Failure
from flowise_dev_agent.schemas.knowledge import (
    KnowledgeList,
    KnowledgeView,
    RefreshView,
    StepResult,
)
from flowise_dev_agent.texts import text
from flowise_dev_agent.timings import Timings

logger = logging.getLogger(__name__)

#: Steps of a refresh, in this order.
STEPS: Final = ("nodes", "templates", "credentials")
#: Seconds for one step; the Flowise client's own limits are tighter.
_STEP_SECS: Final = 60.0
#: Number of lost workers after which a refresh fails.
_ATTEMPTS: Final = 3
_LOST: Final = Failure(
    code="worker_lost",
    detail=text("error.refresh_lost_worker", count=_ATTEMPTS),
    hint=text("error.check_workers_refresh"),
)


Step = Callable[[str, FlowiseClient], Awaitable[StepResult]]


class KnowledgeService:
    """Knowledge for clients, from the database. Never asks a server itself."""

    def __init__(self, database: Database, refreshes: Refreshes, instances: Instances) -> None:
        self._nodes = InstanceNodes(database)
        self._templates = InstanceTemplates(database)
        self._refreshes = refreshes
        self._instances = instances

    async def list(self) -> KnowledgeList:
        """Knowledge about each instance: node types, templates, last refresh."""
        servers = [(id_, self._instances.endpoint(id_)) for id_ in self._instances.ids]
        report = await knowledge_health(self._nodes, servers)
        latest = await self._refreshes.latest()
        views: list[KnowledgeView] = []
        for id_, endpoint in servers:
            templates = await self._templates.listed(id_, endpoint)
            views.append(
                KnowledgeView(
                    instance=id_,
                    endpoint=endpoint,
                    nodes=report.instances[id_],
                    templates=len(templates[0]) if templates else None,
                    templates_age_secs=templates[1] if templates else None,
                    refresh=_view(latest[id_]) if id_ in latest else None,
                )
            )
        return KnowledgeList(snapshot=report.snapshot, instances=views)

    async def refresh(self, instance_id: str) -> RefreshView:
        """Queue a refresh of the instance, or join the running one. Raises InvalidInputError."""
        self._instances.endpoint(instance_id)
        return _view(await self._refreshes.start(instance_id))


class Refresher:
    """Runs the queued refreshes, and requeues those whose worker was lost."""

    def __init__(self, database: Database, refreshes: Refreshes, instances: Instances, timings: Timings) -> None:
        self._refreshes = refreshes
        self._instances = instances
        self._timings = timings
        self._nodes = NodeKnowledge(math.inf, InstanceNodes(database))
        self._templates = TemplateKnowledge(0, InstanceTemplates(database))

    async def run(self, refresh_id: UUID, job_id: int) -> None:
        """Make one attempt from the first unfinished step; does nothing when another job has taken over."""
        with log_context(refresh=refresh_id, job=job_id):
            try:
                row = await self._refreshes.claim(refresh_id, job_id)
                if row is not None:
                    with serving(row.owner):
                        await self._steps(row, job_id)
            except DatabaseUnavailableError:
                logger.warning("The database does not answer; the refresh continues when it does.")

    async def take_back_lost(self) -> None:
        """Requeue refreshes of lost workers."""
        if await self._refreshes.take_back_lost(self._timings.stalled, attempts=_ATTEMPTS, error=_LOST.as_row()):
            logger.warning("A refresh of an instance lost its worker; it is queued again.")

    async def _steps(self, row: RefreshRow, job_id: int) -> None:
        try:
            client = self._instances.client(row.instance_id)
            table: dict[str, Step] = {
                "nodes": self._read_nodes,
                "templates": self._read_templates,
                "credentials": self._read_credentials,
            }
            for number, name in enumerate(STEPS):
                if number < row.steps_done:
                    continue
                if not await self._refreshes.progress(row.id, job_id, step=name, done=number):
                    return
                async with asyncio.timeout(_STEP_SECS):
                    found = await table[name](row.instance_id, client)
                await self._refreshes.progress(
                    row.id, job_id, step=None, done=number + 1, found={name: found.model_dump(exclude_none=True)}
                )
        except DatabaseUnavailableError:
            raise
        except TimeoutError:
            late = FlowiseTimeoutError(text("error.flowise_late", seconds=f"{_STEP_SECS:.0f}"))
            await self._refreshes.conclude(row.id, job_id, error=Failure.of(late).as_row())
        except AgentError as error:
            await self._refreshes.conclude(row.id, job_id, error=Failure.of(error).as_row())
        else:
            await self._refreshes.conclude(row.id, job_id)

    async def _read_nodes(self, instance_id: str, client: FlowiseClient) -> StepResult:
        former = await self._nodes.store(instance_id, client)
        store = await self._nodes.store(instance_id, client, refresh=True)
        change = await self._nodes.changes_since(instance_id, former.fingerprint, store)
        return StepResult(
            count=len(store),
            flowise_version=store.flowise_version,
            changed=change.any,
            text=change.text if change.any else text("drift.none"),
        )

    async def _read_templates(self, instance_id: str, client: FlowiseClient) -> StepResult:
        return StepResult(count=len(await self._templates.refresh(instance_id, client)))

    async def _read_credentials(self, instance_id: str, client: FlowiseClient) -> StepResult:
        # Only checks that the key may read them: sessions read credentials themselves.
        del instance_id
        return StepResult(count=len(await client.list_credentials()))


def _view(row: RefreshRow) -> RefreshView:
    return RefreshView.model_validate(vars(row) | {"instance": row.instance_id, "steps": len(STEPS)})
