"""Assembly of the agent: the graph with its Flowise servers, knowledge, reasoner and publisher."""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from uuid import UUID

from flowise_dev_agent.agent import (
    NODE_PHASES,
    AgentContext,
    ToolRegistry,
    approved_plan,
    build_graph,
    can_wait,
    chatflow_url,
    initial_state,
    project,
    result_of,
    upgrade_state,
)
from flowise_dev_agent.agent.domain import DomainCapability, Domains, ToolScope
from flowise_dev_agent.agent.domains.installed import installed_domains
from flowise_dev_agent.agent.interrupts import check_answer
from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flows.test_sets import set_of_flow
from flowise_dev_agent.knowledge.credential_store import CredentialKnowledge, CredentialStore
from flowise_dev_agent.knowledge.drift import CatalogueChange
from flowise_dev_agent.knowledge.flow_index import FlowIndex
from flowise_dev_agent.knowledge.nodes import NodeKnowledge, NodeStore
from flowise_dev_agent.knowledge.pattern_library import PatternLibrary, terms_of
from flowise_dev_agent.knowledge.repair import Repair
from flowise_dev_agent.knowledge.templates import Template, TemplateKnowledge, TemplateStore
from flowise_dev_agent.ops.connections import Connections
from flowise_dev_agent.patch import Schemas
from flowise_dev_agent.persistence import (
    Attachments,
    Blobs,
    Database,
    InstanceNodes,
    InstanceTemplates,
    Lease,
    Notes,
    Patterns,
    SessionRow,
    TestSets,
    Versions,
    WatchedVersions,
    WriteIntents,
)
from flowise_dev_agent.persistence.blobs import encoded
from flowise_dev_agent.publish import Publisher
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.base import JsonMapping
from flowise_dev_agent.schemas.interrupts import Interrupt
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.sessions.agent import Agent
from flowise_dev_agent.sessions.emission import Emit
from flowise_dev_agent.settings import DriftPolicy, LimitSettings, ReasoningSettings, Settings
from flowise_dev_agent.texts import text

_FRESH_SECS: Final = 1.0


@asynccontextmanager
async def open_agent(settings: Settings, database: Database, connections: Connections) -> AsyncGenerator[Agent]:
    """Assemble the agent. `database` need not be open yet; the connections are closed at the end of the block."""
    domains = installed_domains(settings.domain_settings.names, settings.domain_settings.folder)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(connections.aclose)
        _ = connections.reasoner  # fail now if its configuration is incomplete
        contexts = _Contexts(
            connections=connections,
            nodes=NodeKnowledge(settings.flowise.discover_cache_ttl_secs, InstanceNodes(database)),
            credentials=CredentialKnowledge(settings.flowise.credential_snapshot_ttl_secs),
            templates=TemplateKnowledge(settings.flowise.template_snapshot_ttl_secs, InstanceTemplates(database)),
            blobs=Blobs(database),
            intents=WriteIntents(database),
            versions=Versions(database, Blobs(database)),
            limits=settings.limits,
            drift_policy=settings.flowise.schema_drift_policy,
            model_stand_in=settings.flowise.model_stand_in,
            patterns=Patterns(database),
            notes=Notes(database),
            domains=domains,
            files=Attachments(database),
            sets=TestSets(database),
            flows=FlowIndex(database, watched=WatchedVersions(database) if settings.flowise.watch_secs else None),
        )
        yield Agent(
            graph=build_graph(domains),
            context=contexts.for_run,
            initial_state=initial_state,
            project=project,
            check_answer=partial(_check_answer, settings.limits),
            check_start=partial(_check_start, settings.limits, connections),
            planned_with=connections.planned_with,
            instances=connections.instances,
            chatflow_url=chatflow_url,
            lookups=contexts,
            node_phases=NODE_PHASES,
            upgrade_state=upgrade_state,
            result_of=result_of,
            approved_plan=approved_plan,
            can_wait=can_wait,
            waiting_texts=waiting_texts,
        )


def _check_start(limits: LimitSettings, connections: Connections, request: StartSession) -> None:
    if problem := connections.problem():
        raise problem
    check_start(request, limits, connections.reasoning)


def _check_answer(limits: LimitSettings, interrupt: Interrupt, body: ResumeSession, /) -> JsonMapping:
    answer = check_answer(interrupt, answer=body.answer, response=body.response)
    if isinstance(raised := answer.get("budget"), dict):
        check_budget(raised, limits)
    return answer


@dataclass(frozen=True)
class _Contexts:
    """Resources shared by all runs of the process; makes the context of each run."""

    connections: Connections
    nodes: NodeKnowledge
    credentials: CredentialKnowledge
    templates: TemplateKnowledge
    blobs: Blobs
    intents: WriteIntents
    versions: Versions
    limits: LimitSettings
    drift_policy: DriftPolicy
    model_stand_in: bool
    patterns: Patterns
    notes: Notes
    domains: Sequence[DomainCapability]
    files: Attachments
    sets: TestSets
    flows: FlowIndex
    #: (instance id, address) -> (monotonic time until which it is used as it is, catalogue). Runs ask a dozen times
    #: within a second; after that time the changes of other workers are read.
    fresh: dict[tuple[str, str], tuple[float, NodeStore]] = field(default_factory=dict)

    def _knowledge(self, instance_id: str, client: FlowiseClient) -> "_InstanceKnowledge":
        return _InstanceKnowledge(instance_id, client, self.nodes, self.credentials, self.templates, self.fresh)

    def tools(self, instance_id: str, chosen: Mapping[str, str], /) -> ToolRegistry:
        """Lookup tools of an instance, for clients."""
        client = self.connections.instances.client(instance_id)
        knowledge = self._knowledge(instance_id, client)
        scope = ToolScope(flowise=client, knowledge=knowledge, flows=self.flows.of(instance_id), chosen=chosen)
        return Domains(self.domains).registry(scope)

    async def schemas(self, instance_id: str, /) -> Schemas:
        """Node types of an instance."""
        return (await self.nodes.store(instance_id, self.connections.instances.client(instance_id))).schemas

    def for_run(self, session: SessionRow, lease: Lease, emit: Emit, /) -> AgentContext:
        """Make the context of one run.

        Raises InvalidInputError when the settings no longer name the instance, and ServerChangedError when the instance
        now has another address.
        """
        client = self.connections.instances.client_at(session.instance_id, session.endpoint)
        return AgentContext(
            session_id=str(session.id),
            instance_id=session.instance_id,
            endpoint=client.endpoint,
            flowise=client,
            knowledge=self._knowledge(session.instance_id, client),
            reasoner=self.connections.reasoner,
            blobs=RunBlobs(session.id, self.blobs),
            publisher=Publisher(
                session_id=session.id,
                instance_id=session.instance_id,
                client=client,
                intents=self.intents,
                lease=lease,
                versions=self.versions,
            ),
            limits=self.limits,
            drift_policy=self.drift_policy,
            flows=self.flows.of(session.instance_id),
            model_stand_in=self.model_stand_in,
            patterns=PatternLibrary(self.patterns, instance_id=session.instance_id, owner=current_caller().owner),
            notes=_InstanceNotes(session.instance_id, self.notes),
            files=_SessionFiles(session.id, self.files, has_files=session.has_files),
            test_set=partial(set_of_flow, self.sets, session.instance_id),
            emit=emit,
        )


@dataclass(frozen=True)
class _InstanceKnowledge:
    """Knowledge about one instance, for one run."""

    instance_id: str
    client: FlowiseClient
    node_knowledge: NodeKnowledge
    credential_knowledge: CredentialKnowledge
    template_knowledge: TemplateKnowledge
    #: See `_Contexts`.
    fresh: dict[tuple[str, str], tuple[float, NodeStore]]

    @property
    def _place(self) -> tuple[str, str]:
        return self.instance_id, self.client.endpoint

    async def nodes(self, *, refresh: bool = False) -> NodeStore:
        now = time.monotonic()
        until, store = self.fresh.get(self._place, (0.0, None))
        if store is None or refresh or now >= until:
            store = await self.node_knowledge.store(self.instance_id, self.client, refresh=refresh)
            self.fresh[self._place] = (now + min(self.node_knowledge.ttl_secs, _FRESH_SECS), store)
        return store

    async def changes_since(self, fingerprint: str, store: NodeStore) -> CatalogueChange:
        return await self.node_knowledge.changes_since(self.instance_id, fingerprint, store)

    async def credentials(self, *, refresh: bool = False) -> CredentialStore:
        return await self.credential_knowledge.store(self.instance_id, self.client, refresh=refresh)

    async def templates(self) -> TemplateStore:
        return await self.template_knowledge.store(self.instance_id, self.client.endpoint)

    async def template_flow(self, template: Template) -> str:
        return await self.template_knowledge.content(self.instance_id, self.client, template.name, template.type)

    async def repair(self, name: str) -> Repair:
        self.fresh.pop(self._place, None)
        return await self.node_knowledge.repair(self.instance_id, self.client, name)


def waiting_texts(context: AgentContext) -> dict[str, bytes]:
    """Texts that the next step has to store, by SHA-256; the caller removes each one that it has stored."""
    return context.blobs.waiting if isinstance(context.blobs, RunBlobs) else {}


@dataclass(frozen=True)
class RunBlobs:
    """Write-behind cache of one run's blobs. A text never changes, since its SHA-256 is its key.

    Texts are stored with the next step, which refers to them, or at once.
    """

    session_id: UUID
    blobs: Blobs
    known: dict[str, str] = field(default_factory=dict)
    #: Hashes that are certainly stored for this session; other texts may belong to the session it continues.
    stored: set[str] = field(default_factory=set)
    #: Texts that the next step stores, by hash.
    waiting: dict[str, bytes] = field(default_factory=dict)

    async def put(self, text: str, *, at_once: bool = False) -> str:
        content, sha256 = encoded(text)
        if at_once and (sha256 in self.waiting or sha256 not in self.stored):
            await self.blobs.put(self.session_id, text)
            self.waiting.pop(sha256, None)
        elif sha256 not in self.stored:
            self.waiting[sha256] = content
        self.stored.add(sha256)
        self.known[sha256] = text
        return sha256

    async def get(self, sha256: str) -> str:
        if sha256 not in self.known:
            self.known[sha256] = await self.blobs.get(sha256)
        return self.known[sha256]


@dataclass(frozen=True)
class _InstanceNotes:
    """Notes of the run's owner for one instance."""

    instance_id: str
    notes: Notes

    async def find(self, words: str, *, limit: int) -> list[tuple[int, str]]:
        return [(row.id, row.text) for row in await self.notes.nearest(self.instance_id, terms_of(words), limit=limit)]


@dataclass(frozen=True)
class _SessionFiles:
    """Files of one session, read once: new ones come only with answers, which means before a run."""

    session_id: UUID
    attachments: Attachments
    has_files: bool
    known: list[tuple[AttachmentFacts, ...]] = field(default_factory=list)

    async def facts(self) -> tuple[AttachmentFacts, ...]:
        if not self.has_files:
            return ()
        if not self.known:
            rows = await self.attachments.of_session(self.session_id)
            self.known.append(tuple(AttachmentFacts.model_validate(row.facts) for row in rows))
        return self.known[0]

    async def content(self, name: str) -> tuple[str, bytes, str] | None:
        return await self.attachments.content(self.session_id, name)


def check_start(request: StartSession, limits: LimitSettings, reasoning: ReasoningSettings) -> None:
    """Raise InvalidInputError when a new session asks for a model or budget that the operator does not allow."""
    if request.model is not None and request.model not in reasoning.models:
        raise InvalidInputError(
            text("error.model_not_allowed", model=request.model),
            hint=text("error.models_allowed", names=sorted(reasoning.models)),
        )
    if request.budget is not None:
        check_budget(request.budget.model_dump(exclude_none=True), limits)


def check_budget(budget: Mapping[str, Any], limits: LimitSettings) -> None:
    """Raise InvalidInputError when `tokens` or `usd` are above the operator's ceilings."""
    for name, ceiling in limits.ceilings.items():
        if budget.get(name, 0) > ceiling:
            raise InvalidInputError(
                text("error.budget_ceiling", limit=f"{ceiling:g}", unit=name),
                hint=text("error.budget_ceiling_hint", variable=f"SESSION_BUDGET_{name.upper()}_CEILING"),
                details={"ceiling": ceiling},
            )
