"""What the nodes work with at run time: resolved per session from its instance, never checkpointed."""

from collections.abc import Callable, Sequence
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
from flowise_dev_agent.planning.session_files import SessionFiles
from flowise_dev_agent.publish import Publisher
from flowise_dev_agent.reasoning.reasoner import Reasoner
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.events import NodeEvent
from flowise_dev_agent.settings import DriftPolicy, LimitSettings


def _unheard(_: NodeEvent) -> None:
    """Nobody listens."""


class Knowledge(Protocol):
    """What is known about the session's instance; live within its time to live, else the committed snapshot."""

    async def nodes(self, *, refresh: bool = False) -> NodeStore:
        """Node schemas, repaired ones among them; `refresh` asks the server now or raises FlowiseError."""
        ...

    async def changes_since(self, fingerprint: str, store: NodeStore) -> CatalogueChange:
        """What changed since the catalogue with this fingerprint."""
        ...

    async def credentials(self, *, refresh: bool = False) -> CredentialStore:
        """Ids, names and types of the instance's credentials, never values; `refresh` reads them again."""
        ...

    async def templates(self) -> TemplateStore:
        """The last known marketplace of the instance, else the committed list; asks no server."""
        ...

    async def template_flow(self, template: Template) -> str:
        """The flow of a marketplace template; from the cache, else from the server. Raises AgentError."""
        ...

    async def repair(self, name: str) -> Repair:
        """One node type asked from the server; from then on `nodes` has it, for every session of the instance."""
        ...


class SessionBlobs(Protocol):
    """Content-addressed texts that belong to the session."""

    async def put(self, text: str, *, at_once: bool = False) -> str:
        """The SHA-256 (hex) of the UTF-8 text, which is stored with the step that the session takes, or at once: where
        others hear of it before."""
        ...

    async def get(self, sha256: str) -> str:
        """Read back."""
        ...


class SessionNotes(Protocol):
    """What the session's owner had remembered for the instance."""

    async def find(self, words: str, *, limit: int) -> Sequence[tuple[int, str]]:
        """(id, text) of those nearest to the words, then the newest."""
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
    #: What is searched of the instance's flows.
    flows: FlowSource = field(default_factory=AllFlows)
    #: Accepted flows that new ones may start from; None: patterns are neither used nor stored.
    patterns: PatternLibrary | None = None
    notes: SessionNotes | None = None
    files: SessionFiles | None = None
    #: Takes an event at once, for what need not wait for the graph's stream.
    emit: Callable[[NodeEvent], None] = _unheard

    async def attachments(self) -> tuple[AttachmentFacts, ...]:
        """What is known of the session's files."""
        return tuple(await self.files.facts()) if self.files else ()

    def chatflow_url(self, chatflow_id: str, kind: str = "CHATFLOW") -> str:
        """Where the flow opens in the Flowise editor."""
        return chatflow_url(self.endpoint, chatflow_id, kind)


def chatflow_url(endpoint: str, chatflow_id: str, kind: str = "CHATFLOW") -> str:
    """The editor's address of a flow: AgentFlow V2 has a canvas of its own."""
    canvas = "v2/agentcanvas" if kind == "AGENTFLOW" else "canvas"
    return f"{endpoint.rstrip('/')}/{canvas}/{chatflow_id}"
