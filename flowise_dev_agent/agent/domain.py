"""The interface of a domain to the graph. Flowise is the first; others are added without a change here."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
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
from flowise_dev_agent.knowledge.pattern_library import PatternLibrary
from flowise_dev_agent.knowledge.templates import Template
from flowise_dev_agent.patch import Finding, GraphIR, NodeSchema, PatchOp, errors
from flowise_dev_agent.reasoning.contracts import (
    DeltaSink,
    Intent,
    PatchRequest,
    PlanContract,
    ReadyTool,
    Reasoned,
    SessionBudget,
    Toolbox,
    Verdict,
)
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.interrupts import CredentialCandidate
from flowise_dev_agent.schemas.plan import FunctionSample, PatchAnswer, TestCase
from flowise_dev_agent.schemas.verdict import Trace, Trial
from flowise_dev_agent.testing.trials import TrialConversation, TrialRun

#: Code of a finding on a function that does not give what a sample says.
SAMPLE_FAILS: Final = "SAMPLE_FAILS"
#: Code of a finding on a plan for a domain that is not installed.
UNKNOWN_DOMAIN: Final = "UNKNOWN_DOMAIN"
#: Code of a finding on a domain that did not answer.
DOMAIN_FAILED: Final = "DOMAIN_FAILED"
_DISCOVER_SECS: Final = 30.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ToolScope:
    """What tools work with: an instance, and what the phase of a session adds to it."""

    flowise: FlowiseClient
    knowledge: Knowledge
    flows: FlowSource = field(default_factory=AllFlows)
    patterns: PatternLibrary | None = None
    session_id: str = ""
    #: A flow is made that does not exist yet.
    is_new: bool = False
    #: The flow as a person has it or approved it: its values may be sent to the server to list options.
    stored: GraphIR | None = None
    #: What the ops apply to, and the ids of its nodes that come from a pattern.
    base: GraphIR = field(default_factory=GraphIR.empty)
    seeded: Sequence[str] = ()
    #: The text of the flow before the session.
    original: str | None = None
    #: Only when the person has approved it.
    plan: PlanContract | None = None
    limits: PatchScope | None = None
    #: The person decided to go on without a credential.
    without_credentials: bool = False
    #: Credential type -> id, as code or the person chose.
    chosen: Mapping[str, str] = field(default_factory=dict[str, str])
    #: The flow that was tested.
    tested_id: str | None = None
    #: Where the traces of its trials are, in order; None for a trial without one.
    traces: Sequence[str | None] = ()
    blobs: SessionBlobs | None = None


@dataclass(frozen=True)
class DiscoverRequest:
    """What to look for before planning."""

    requirement: str
    intent: Intent
    feedback: str | None = None
    #: Of the flow that is to be changed.
    kind: str = "CHATFLOW"
    #: Node types of similar flows.
    similar: tuple[str, ...] = ()
    #: What is known of the files that go with the requirement.
    attachments: tuple[AttachmentFacts, ...] = ()


@dataclass(frozen=True)
class DomainDiscoveryResult:
    """What a domain knows about the requirement. Only `summary` and the schema cards may reach a prompt.

    `facts`, `artifacts` and `debug` are for the state's entries of this domain.
    """

    summary: str
    facts: JsonObject = field(default_factory=dict)
    artifacts: JsonObject = field(default_factory=dict)
    debug: JsonObject = field(default_factory=dict)
    tool_results: tuple[ToolResult, ...] = ()
    candidates: tuple[NodeSchema, ...] = ()
    #: Those of the instance by type.
    credentials: Available = field(default_factory=dict[str, Sequence[CredentialCandidate]])
    #: Flows of the instance's marketplace that resemble what is asked for, best first.
    templates: tuple[Template, ...] = ()
    #: What the domain brings for this requirement; code adds it to the plan.
    ready_tools: tuple[ReadyTool, ...] = ()
    #: What a planner must know of the domain; words of its code, not of anybody else.
    skill: str = ""


#: Ops for a plan, what the plan must say in addition, or that nothing is to be changed; with what the answer cost.
DomainPatchResult: TypeAlias = Reasoned[PatchAnswer]


@dataclass(frozen=True)
class ValidationReport:
    """Everything that was found wrong with a flow before a write."""

    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def ok(self) -> bool:
        """Nothing speaks against the write; warnings do not."""
        return not errors(self.findings)


@dataclass(frozen=True)
class TestSuite:
    """Conversations to hold with the flow, each `trials` times in a session of its own.

    `domain_scopes` are the domains that the suite is about, `integration_tests` the ids of the cases that show that
    they work together.
    """

    cases: tuple[TestCase, ...]
    trials: int = 1
    #: Ids of the cases that cannot be held from here, and why.
    not_testable: Mapping[str, str] = field(default_factory=dict[str, str])
    domain_scopes: tuple[str, ...] = ()
    integration_tests: tuple[str, ...] = ()

    __test__ = False  # not a pytest class


@dataclass(frozen=True)
class WrittenCode:
    """The code that the ops of an approved plan write into a flow, and samples for it."""

    plan: PlanContract
    flow_data: str
    ops: Sequence[PatchOp]
    samples: Sequence[FunctionSample] = ()


@dataclass(frozen=True)
class EvaluateRequest:
    """All trials of one run of the suite, with full texts."""

    requirement: str
    plan: PlanContract
    results: tuple[Trial, ...]
    #: Of each trial.
    traces: tuple[Trace, ...]
    flow_data: str
    clarifications: tuple[tuple[str, str], ...] = ()
    #: What the person said after that, oldest first.
    later: tuple[str, ...] = ()
    model: str | None = None
    on_delta: DeltaSink | None = None
    budget: SessionBudget | None = None
    tools: Toolbox | None = None


class DomainCapability(ABC):
    """What the graph asks of a domain."""

    name: str
    #: Where it may keep what it knows; its own, and set when the domain is loaded.
    folder: Path = Path()

    @abstractmethod
    def domain_tools(self, scope: ToolScope) -> DomainTools:
        """The domain's tools, working on `scope`."""

    @abstractmethod
    async def discover(self, context: AgentContext, request: DiscoverRequest) -> DomainDiscoveryResult:
        """Retrieve what planning needs: node types, credentials."""

    @abstractmethod
    async def compile_ops(self, context: AgentContext, request: PatchRequest) -> DomainPatchResult:
        """The ops for an approved plan, without ids of credentials: the compiler binds those; or what the plan lacks.

        Raises:
            PatchError: the ops cannot be read; `details["findings"]` says why.
        """

    @abstractmethod
    async def validate(
        self, context: AgentContext, flow_data: str, kind: str, base_flow_data: str | None = None
    ) -> ValidationReport:
        """Everything that can be known to be wrong before a write; `base_flow_data` is the flow before an update."""

    @abstractmethod
    def generate_tests(self, plan: PlanContract, flow_data: str, *, trials: int) -> TestSuite:
        """The suite: the plan's tests, else one question that every flow must answer; in the form in which the flow is
        started."""

    @abstractmethod
    async def evaluate(self, context: AgentContext, request: EvaluateRequest) -> Reasoned[Verdict]:
        """Code decides what failed; content is judged only when nothing failed."""

    async def refresh(self) -> str:
        """Renew what the domain knows and keeps in `folder`; says in one line what there is now.

        Raises:
            InvalidInputError: there is nothing to refresh.
        """
        raise InvalidInputError(f"The domain '{self.name}' keeps nothing that could be refreshed.")


class FlowDomain(DomainCapability):
    """The domain that owns the flow: it also holds the tests and tries code."""

    @abstractmethod
    def more_tests(self, suite: TestSuite, flow_data: str, ran: Set[str]) -> list[TestCase]:
        """Cases for branches that no conversation has taken; `ran` are the ids of the nodes that ran."""

    @abstractmethod
    async def run_trial(self, context: AgentContext, conversation: TrialConversation) -> TrialRun:
        """Hold one conversation with the written flow and classify what the transport and the shape say."""

    @abstractmethod
    async def find_flows(
        self, context: AgentContext, *, target: str | None, hint: str | None, text: str
    ) -> FoundTargets:
        """The flows of the instance that are meant; see `find_targets`. Raises FlowiseError."""

    @abstractmethod
    async def read_flow(self, context: AgentContext, chatflow_id: str) -> Chatflow:
        """A flow as it is now. Raises FlowiseError."""

    @abstractmethod
    async def forget(self, context: AgentContext, chatflow_id: str, session: str) -> None:
        """Take a conversation out of the chat history of a flow. Raises FlowiseError."""

    @abstractmethod
    async def review_plan(self, context: AgentContext, plan: PlanContract, base: GraphIR) -> list[Finding]:
        """What is wrong with the nodes and values of a plan for the flow `base`, and what the server lacks for it."""

    async def document_stores(self, context: AgentContext) -> list[DocumentStoreView]:
        """The document stores of the instance, last updated first; none when they cannot be read."""
        del context
        return []

    async def measure_stores(self, context: AgentContext, plan: PlanContract) -> PlanContract:
        """The plan with what can be known of its new document stores before they are made."""
        del context
        return plan

    async def try_code(self, context: AgentContext, code: WrittenCode) -> list[Finding]:
        """What is wrong with the code, as far as running it on samples can show.

        `SAMPLE_FAILS` is the code of a finding that a wrong sample would give, too.
        """
        del context, code
        return []


class Domains:
    """The capabilities given to the graph, by name; the first is the one that owns the flow."""

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
        """All but the first."""
        return [domain for domain in self._by_name.values() if domain is not self.primary]

    async def discover_others(
        self, context: AgentContext, request: DiscoverRequest
    ) -> tuple[dict[str, DomainDiscoveryResult], list[Finding]]:
        """What the domains besides the first know, by name; one that fails is a warning and ends nothing."""
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
        """The tools of all domains, working on `scope`."""
        registry = ToolRegistry()
        for domain in self._by_name.values():
            registry.register_domain(domain.domain_tools(scope))
        return registry

    def besides(self, plan: PlanContract) -> list[DomainCapability]:
        """The domains besides the first that a plan names and that exist here; see `unknown`."""
        return [domain for domain in self.others if domain.name in plan.domain_targets]

    def unknown(self, plan: PlanContract) -> list[Finding]:
        """A finding for each domain that a plan names and that is not here: nothing of it could be built or tested."""
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

    def tests(self, plan: PlanContract, flow_data: str, *, trials: int) -> TestSuite:
        """The suite of the first domain, with what of it is about the others."""
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
        """The verdict of the first domain; when it finds nothing wrong, that of the first other one that does."""
        result = await self.primary.evaluate(context, request)
        for domain in self.besides(request.plan) if result.value.done else ():
            own = (await domain.evaluate(context, request)).value
            if not own.done:
                found = own.model_dump(include={"done", "category", "reason", "fix", "failed_trials"})
                return replace(result, value=result.value.model_copy(update={**found, "headline": "fails"}))
        return result
