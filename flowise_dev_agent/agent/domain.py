"""Interface between a domain and the graph. Flowise is the first; others need no change here."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from flowise_dev_agent.agent.context import AgentContext, Knowledge, SessionBlobs
from flowise_dev_agent.agent.credentials import Available
from flowise_dev_agent.agent.registry import ToolRegistry
from flowise_dev_agent.agent.targets import FoundTargets
from flowise_dev_agent.agent.tools import DomainTools, ToolResult
from flowise_dev_agent.approval.ops import PatchScope
from flowise_dev_agent.errors import AgentError, ConfigurationError, InvalidInputError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.knowledge.flow_index import AllFlows, FlowSource
from flowise_dev_agent.knowledge.model_ends import UsedModel
from flowise_dev_agent.knowledge.pattern_library import PatternLibrary
from flowise_dev_agent.models.messages import DeltaSink, SessionBudget, Toolbox
from flowise_dev_agent.patch import Finding, GraphIR, NodeSchema, PatchOp, errors
from flowise_dev_agent.planning.requests import PatchRequest, ReadyTool, Reasoned, ServerNames
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.interrupts import CredentialCandidate
from flowise_dev_agent.schemas.plan import FunctionSample, Intent, PatchAnswer, Plan, TestCase
from flowise_dev_agent.schemas.verdict import Trace, Trial, Verdict
from flowise_dev_agent.testing.simulation import Simulation
from flowise_dev_agent.testing.trials import TrialConversation, TrialRun
from flowise_dev_agent.texts import Text

#: Code of a finding on a function whose result differs from the sample.
SAMPLE_FAILS: Final = "SAMPLE_FAILS"
#: Code of a finding on a plan for a domain that is not installed.
UNKNOWN_DOMAIN: Final = "UNKNOWN_DOMAIN"
#: Code of a finding on a domain that did not answer.
DOMAIN_FAILED: Final = "DOMAIN_FAILED"
_DISCOVER_SECS: Final = 30.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ToolScope:
    """Context of tool calls: an instance, and the parts of the session that a phase allows."""

    flowise: FlowiseClient
    knowledge: Knowledge
    flows: FlowSource = field(default_factory=AllFlows)
    patterns: PatternLibrary | None = None
    session_id: str = ""
    #: True if the session makes a new flow.
    is_new: bool = False
    #: Flow that the person has or approved: its values may be sent to the server to list options.
    stored: GraphIR | None = None
    #: Flow that the ops apply to, and the ids of its nodes that come from a pattern.
    base: GraphIR = field(default_factory=GraphIR.empty)
    seeded: Sequence[str] = ()
    #: The text of the flow before the session.
    original: str | None = None
    #: Set only after the person's approval.
    plan: Plan | None = None
    limits: PatchScope | None = None
    #: The person decided to go on without a credential.
    without_credentials: bool = False
    #: Credential type -> id, as code or the person chose.
    chosen: Mapping[str, str] = field(default_factory=dict[str, str])
    #: The flow that was tested.
    tested_id: str | None = None
    #: Blob hashes of the trials' traces, in order; None for a trial without a trace.
    traces: Sequence[str | None] = ()
    blobs: SessionBlobs | None = None


@dataclass(frozen=True)
class DiscoverRequest:
    """Input of a domain's discovery before planning."""

    requirement: str
    intent: Intent
    feedback: str | None = None
    #: Kind of the flow to change.
    kind: str = "CHATFLOW"
    #: Node types of similar flows.
    similar: tuple[str, ...] = ()
    #: Facts about the files attached to the requirement.
    attachments: tuple[AttachmentFacts, ...] = ()


@dataclass(frozen=True)
class DomainDiscoveryResult:
    """Result of a domain's discovery for a requirement. Only `summary` and the schema cards may reach a prompt.

    `facts`, `artifacts` and `debug` are for the state's entries of this domain.
    """

    summary: str
    facts: JsonObject = field(default_factory=dict)
    artifacts: JsonObject = field(default_factory=dict)
    debug: JsonObject = field(default_factory=dict)
    tool_results: tuple[ToolResult, ...] = ()
    candidates: tuple[NodeSchema, ...] = ()
    #: Credentials of the instance by type.
    credentials: Available = field(default_factory=dict[str, Sequence[CredentialCandidate]])
    #: Contribution of the domain to the plan; code adds it.
    ready_tools: tuple[ReadyTool, ...] = ()
    #: Instructions for a planner, from the domain's code only (trusted text).
    skill: str = ""


#: Ops for a plan, an amendment of the plan, or nothing to change; with the cost of the answer.
DomainPatchResult: TypeAlias = Reasoned[PatchAnswer]


@dataclass(frozen=True)
class ValidationReport:
    """Findings on a flow before a write."""

    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def ok(self) -> bool:
        """True if no finding blocks the write; warnings do not."""
        return not errors(self.findings)


@dataclass(frozen=True)
class TestSuite:
    """Test suite: conversations with the flow, each repeated `trials` times in its own session.

    `domain_scopes` are the domains that the suite is about, `integration_tests` the ids of the cases that show that
    they work together.
    """

    cases: tuple[TestCase, ...]
    trials: int = 1
    #: Ids of the cases that cannot run here, with the reason.
    not_testable: Mapping[str, str] = field(default_factory=dict[str, str])
    domain_scopes: tuple[str, ...] = ()
    integration_tests: tuple[str, ...] = ()
    #: Addresses that the tests really call, as a person named them.
    real: Sequence[str] = ()

    __test__ = False  # not a pytest class


@dataclass(frozen=True)
class WrittenCode:
    """Code that the ops of an approved plan write into a flow, with samples for it."""

    plan: Plan
    flow_data: str
    ops: Sequence[PatchOp]
    samples: Sequence[FunctionSample] = ()


@dataclass(frozen=True)
class EvaluateRequest:
    """All trials of one run of the suite, with full texts."""

    requirement: str
    plan: Plan
    results: tuple[Trial, ...]
    #: Trace of each trial.
    traces: tuple[Trace, ...]
    flow_data: str
    #: Traces of conversations that nobody judges: they count for the steps they reached.
    beside: tuple[Trace, ...] = ()
    #: The flow before the session; None for a new one.
    original: str | None = None
    clarifications: tuple[tuple[str, str], ...] = ()
    #: Later messages of the person, oldest first.
    later: tuple[str, ...] = ()
    model: str | None = None
    on_delta: DeltaSink | None = None
    budget: SessionBudget | None = None
    tools: Toolbox | None = None


class DomainCapability(ABC):
    """Operations that every domain provides to the graph."""

    name: str
    #: Its subject in one line, for people.
    about: str = ""
    #: Folder for the domain's stored knowledge; set when the domain is loaded.
    folder: Path = Path()

    @abstractmethod
    def domain_tools(self, scope: ToolScope) -> DomainTools:
        """Tools of the domain, bound to `scope`."""

    @abstractmethod
    async def discover(self, context: AgentContext, request: DiscoverRequest) -> DomainDiscoveryResult:
        """Retrieve what planning needs: node types, credentials."""

    @abstractmethod
    async def compile_ops(self, context: AgentContext, request: PatchRequest) -> DomainPatchResult:
        """Ops for an approved plan, or an amendment that it needs. Ops hold no credential ids: the compiler binds them.

        Raises:
            PatchError: the ops cannot be read; `details["findings"]` says why.
        """

    @abstractmethod
    async def validate(
        self, context: AgentContext, flow_data: str, kind: str, base_flow_data: str | None = None
    ) -> ValidationReport:
        """Find all problems that can be known before a write; `base_flow_data` is the flow before an update."""

    @abstractmethod
    def generate_tests(self, plan: Plan, flow_data: str, *, trials: int) -> TestSuite:
        """Test suite in the form in which the flow is started: the plan's tests, else one question that every flow must
        answer.
        """

    @abstractmethod
    async def evaluate(self, context: AgentContext, request: EvaluateRequest) -> Reasoned[Verdict]:
        """Judge the trials: code decides the failures; a model judges content only if nothing failed."""

    async def refresh(self) -> str:
        """Refresh the domain's stored knowledge in `folder`; return its new state in one line.

        Raises:
            InvalidInputError: there is nothing to refresh.
        """
        raise InvalidInputError(f"The domain '{self.name}' keeps nothing that could be refreshed.")


class FlowDomain(DomainCapability):
    """Domain that owns the flow: it also runs the tests and tries code."""

    @abstractmethod
    def more_tests(self, flow_data: str, runs: Sequence[TrialRun], simulation: Simulation) -> list[TestCase]:
        """Cases for what the conversations so far have not shown: other branches, failures of what is simulated."""

    def told_ways(self, flow_data: str, runs: Sequence[TrialRun], simulation: Simulation) -> list[Text]:
        """Lines on what the flow did where a simulated call failed, and on what no conversation reached."""
        del flow_data, runs, simulation
        return []

    async def simulate(
        self,
        context: AgentContext,
        flow_data: str,
        tests: Sequence[TestCase],
        real: Collection[str] | None = None,
        harmless: Collection[str] = (),
    ) -> Simulation:
        """Copy of a flow in which stand-ins take the place of what changes the world. With `real` only these addresses
        are called.
        """
        del context, tests, real
        return Simulation(flow_data)

    @abstractmethod
    async def run_trial(self, context: AgentContext, conversation: TrialConversation) -> TrialRun:
        """Run one conversation with the written flow, and classify errors of the transport and the answer's form."""

    @abstractmethod
    async def find_flows(
        self, context: AgentContext, *, target: str | None, hint: str | None, text: str
    ) -> FoundTargets:
        """Find the flows of the instance that the text refers to; see `find_targets`. Raises FlowiseError."""

    @abstractmethod
    async def read_flow(self, context: AgentContext, chatflow_id: str) -> Chatflow:
        """Read a flow from the server. Raises FlowiseError."""

    @abstractmethod
    async def forget(self, context: AgentContext, chatflow_id: str, session: str) -> None:
        """Delete a conversation from the chat history of a flow. Raises FlowiseError."""

    @abstractmethod
    async def review_plan(self, context: AgentContext, plan: Plan, base: GraphIR) -> list[Finding]:
        """Findings on the nodes and values of a plan for the flow `base`, including features that the server lacks."""

    async def document_stores(self, context: AgentContext) -> list[DocumentStoreView]:
        """Document stores of the instance, last updated first; empty if they cannot be read."""
        del context
        return []

    async def names(self, context: AgentContext, with_models: Sequence[str]) -> ServerNames:
        """Names that a plan may use, and the models of these node types; those that can be read in time."""
        del context, with_models
        return ServerNames()

    async def measure_stores(self, context: AgentContext, plan: Plan) -> Plan:
        """Add to the plan the figures of its new document stores that are known before they are made."""
        del context
        return plan

    async def planned_models(
        self, context: AgentContext, plan: Plan, base: GraphIR, *, ending_only: bool
    ) -> list[UsedModel]:
        """Models of the flow after the plan, with their ends and what the server offers; all, or those that end."""
        del context, plan, base, ending_only
        return []

    async def try_code(self, context: AgentContext, code: WrittenCode) -> list[Finding]:
        """Findings from running the code on samples.

        `SAMPLE_FAILS` is the code of a finding that a wrong sample would give, too.
        """
        del context, code
        return []


class Domains:
    """Domains of the graph by name; the first owns the flow."""

    def __init__(self, capabilities: Sequence[DomainCapability]) -> None:
        self._by_name = {capability.name: capability for capability in capabilities}
        first = next(iter(capabilities), None)
        if not isinstance(first, FlowDomain):
            raise ConfigurationError(
                "The agent has no domain to work in.", hint="Give build_graph one that owns flows, and give it first."
            )
        #: Discovers, validates, tests and evaluates.
        self.primary: FlowDomain = first

    @property
    def others(self) -> list[DomainCapability]:
        """All domains but the first."""
        return [domain for domain in self._by_name.values() if domain is not self.primary]

    async def discover_others(
        self, context: AgentContext, request: DiscoverRequest
    ) -> tuple[dict[str, DomainDiscoveryResult], list[Finding]]:
        """Discovery results of the other domains by name; a domain that fails becomes a warning."""
        found: dict[str, DomainDiscoveryResult] = {}
        failed: list[Finding] = []
        for domain in self.others:
            try:
                async with asyncio.timeout(_DISCOVER_SECS):
                    found[domain.name] = await domain.discover(context, request)
            except Exception as error:  # noqa: BLE001 - it may be anybody's code
                _log.warning("the domain %s cannot be asked", domain.name, exc_info=True)
                said = error.message if isinstance(error, AgentError) else type(error).__name__
                failed.append(
                    Finding(
                        code=DOMAIN_FAILED,
                        severity="warning",
                        detail=f"The domain '{domain.name}' could not be asked: {shortened(said, 200)}",
                        params={"domain": domain.name, "reason": shortened(said, 200)},
                        hint="The plan goes without it. See the service's log, or leave the domain out of DOMAINS.",
                    )
                )
        return found, failed

    def registry(self, scope: ToolScope) -> ToolRegistry:
        """Registry of the tools of all domains, bound to `scope`."""
        registry = ToolRegistry()
        for domain in self._by_name.values():
            registry.register_domain(domain.domain_tools(scope))
        return registry

    def besides(self, plan: Plan) -> list[DomainCapability]:
        """Installed domains, except the first, that a plan names; see `unknown`."""
        return [domain for domain in self.others if domain.name in plan.domain_targets]

    def unknown(self, plan: Plan) -> list[Finding]:
        """Findings for domains that a plan names and that are not installed: their parts cannot be built or tested."""
        known = ", ".join(self._by_name)
        return [
            Finding(
                code=UNKNOWN_DOMAIN,
                severity="error",
                detail=f"The plan names the domain {name[:64]!r}, which is not installed.",
                params={"domain": name[:64]},
                hint=f"Installed: {known}. Install its distribution, or plan without it.",
            )
            for name in dict.fromkeys(plan.domain_targets)
            if name not in self._by_name
        ]

    def tests(self, plan: Plan, flow_data: str, *, trials: int) -> TestSuite:
        """Test suite of the primary domain, marking the cases that cover other domains."""
        suite = self.primary.generate_tests(plan, flow_data, trials=trials)
        theirs = [domain.generate_tests(plan, flow_data, trials=trials) for domain in self.besides(plan)]
        shared = {case.id for other in theirs for case in other.cases}
        return replace(
            suite,
            domain_scopes=tuple(
                dict.fromkeys([self.primary.name, *(name for one in theirs for name in one.domain_scopes)])
            ),
            integration_tests=tuple(case.id for case in suite.cases if case.id in shared),
        )

    async def evaluate(self, context: AgentContext, request: EvaluateRequest) -> Reasoned[Verdict]:
        """Verdict of the primary domain; if it passes, the first failing verdict of another domain."""
        result = await self.primary.evaluate(context, request)
        for domain in self.besides(request.plan) if result.value.done else ():
            own = (await domain.evaluate(context, request)).value
            if not own.done:
                found = own.model_dump(include={"done", "category", "reason", "fix", "failed_trials"})
                return replace(result, value=result.value.model_copy(update={**found, "headline": "fails"}))
        return result
