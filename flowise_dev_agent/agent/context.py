"""Run-time dependencies of the nodes: resolved per session from its instance, never checkpointed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.knowledge.drift import CatalogueChange
from flowise_dev_agent.knowledge.flow_index import AllFlows, FlowSource
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.pattern_library import PatternLibrary
from flowise_dev_agent.knowledge.repair import Repair
from flowise_dev_agent.knowledge.templates import Template, TemplateStore
from flowise_dev_agent.planning.reasoner import Reasoner
from flowise_dev_agent.planning.session_files import SessionFiles
from flowise_dev_agent.publish import Publisher
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.events import NodeEvent
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.settings import DriftPolicy, LimitSettings


def _unheard(_: NodeEvent) -> None:
    """Discard the event."""


async def _no_tests(_: str) -> Sequence[TestCase]:
    """No flow has tests."""
    return ()


class Knowledge(Protocol):
    """Knowledge about the session's instance: live within its time to live, else the committed snapshot."""

    async def nodes(self, *, refresh: bool = False) -> NodeStore:
        """Node schemas, including repaired ones; `refresh` asks the server now or raises FlowiseError."""
        ...

    async def changes_since(self, fingerprint: str, store: NodeStore) -> CatalogueChange:
        """Changes of the catalogue since the one with this fingerprint."""
        ...

    async def credentials(self, *, refresh: bool = False) -> CredentialStore:
        """Ids, names and types of the instance's credentials, never values; `refresh` reads them again."""
        ...

    async def templates(self) -> TemplateStore:
        """The last known marketplace of the instance, else the committed list; asks no server."""
        ...

    async def template_flow(self, template: Template) -> str:
        """Flow of a marketplace template, from the cache or the server. Raises AgentError."""
        ...

    async def repair(self, name: str) -> Repair:
        """Fetch one node type from the server; `nodes` then has it for every session of the instance."""
        ...


class SessionBlobs(Protocol):
    """Content-addressed texts of the session."""

    async def put(self, text: str, *, at_once: bool = False) -> str:
        """Store a text; return the SHA-256 (hex) of its UTF-8 bytes. It is written with the session's next step, or at
        once if others read it before.
        """
        ...

    async def get(self, sha256: str) -> str:
        """Read a text by its SHA-256."""
        ...


class SessionNotes(Protocol):
    """Notes that the session's owner stored for the instance."""

    async def find(self, words: str, *, limit: int) -> Sequence[tuple[int, str]]:
        """(id, text) of the notes closest to the words, then of the newest."""
        ...


@dataclass(frozen=True)
class AgentContext:
    """The graph's `context_schema`."""

    session_id: str
    instance_id: str
    endpoint: str
    flowise: FlowiseClient
    knowledge: Knowledge
    reasoner: Reasoner
    blobs: SessionBlobs
    publisher: Publisher
    limits: LimitSettings
    drift_policy: DriftPolicy = "warn"
    #: The models inside the flows are the devkit's stand-in: their answers say nothing about content.
    model_stand_in: bool = False
    #: Searchable flows of the instance.
    flows: FlowSource = field(default_factory=AllFlows)
    #: Accepted flows that new ones may start from; None: patterns are neither used nor stored.
    patterns: PatternLibrary | None = None
    notes: SessionNotes | None = None
    files: SessionFiles | None = None
    #: Test set of a flow of the instance, by its id.
    test_set: Callable[[str], Awaitable[Sequence[TestCase]]] = _no_tests
    #: Takes an event at once, for what need not wait for the graph's stream.
    emit: Callable[[NodeEvent], None] = _unheard

    async def attachments(self) -> tuple[AttachmentFacts, ...]:
        """Facts about the session's attached files."""
        return tuple(await self.files.facts()) if self.files else ()

    def chatflow_url(self, chatflow_id: str, kind: str = "CHATFLOW") -> str:
        """Address of the flow in the Flowise editor."""
        return chatflow_url(self.endpoint, chatflow_id, kind)


def chatflow_url(endpoint: str, chatflow_id: str, kind: str = "CHATFLOW") -> str:
    """Address of a flow in the Flowise editor, which has a canvas for each kind."""
    canvas = {"AGENTFLOW": "v2/agentcanvas", "MULTIAGENT": "agentcanvas"}.get(kind, "canvas")
    return f"{endpoint.rstrip('/')}/{canvas}/{chatflow_id}"
