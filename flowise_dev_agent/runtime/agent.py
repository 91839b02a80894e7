"""What the runtime needs of an agent. It is handed in, so the runtime runs any graph (and tests run small ones)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from langgraph.graph.state import CompiledStateGraph

from flowise_dev_agent.contracts.base import JsonMapping
from flowise_dev_agent.contracts.interrupts import Interrupt
from flowise_dev_agent.contracts.plan import PlanContract, TestCase
from flowise_dev_agent.contracts.requests import ResumeSession, StartSession
from flowise_dev_agent.contracts.session import PlanView, ResultView
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.patch import Finding, GraphIR, Schemas
from flowise_dev_agent.persistence import Lease, SessionRow
from flowise_dev_agent.persistence.saver import CanWait, never
from flowise_dev_agent.runtime.runs.emission import Emit

if TYPE_CHECKING:
    from flowise_dev_agent.agent import ToolRegistry
    from flowise_dev_agent.agent.plan_preview import PlannedFlow
    from flowise_dev_agent.agent.trials import TrialRun

Graph = CompiledStateGraph[Any, Any, Any, Any]


class ContextFactory(Protocol):
    """Makes the graph's run-time context for one run. Errors in it fail the session with their own words."""

    def __call__(self, session: SessionRow, lease: Lease, emit: Emit, /) -> Any: ...


class AnswerCheck(Protocol):
    """Normalises an answer to an interrupt. Raises InvalidAnswerError; the interrupt then stays open."""

    def __call__(self, interrupt: Interrupt, body: ResumeSession, /) -> JsonMapping: ...


class ToolSource(Protocol):
    """The tools on an instance, outside of any session. `chosen`: credential type -> id."""

    def __call__(self, instance_id: str, chosen: Mapping[str, str], /) -> "ToolRegistry": ...


def no_tools(instance_id: str, chosen: Mapping[str, str], /) -> "ToolRegistry":
    """Of a graph that comes without tools."""
    raise ConfigurationError("This agent has no tools.")


class TestHolder(Protocol):
    """Holds conversations with a flow on a server, each `trials` times, in sessions named after `session`."""

    __test__ = False  # not a pytest class

    async def __call__(
        self,
        client: FlowiseClient,
        chatflow_id: str,
        flow_data: str,
        tests: Sequence[TestCase],
        *,
        trials: int,
        session: str,
    ) -> "list[TrialRun]": ...


async def no_tests(
    client: FlowiseClient, chatflow_id: str, flow_data: str, tests: Sequence[TestCase], *, trials: int, session: str
) -> "list[TrialRun]":
    """Of a graph that cannot test flows."""
    raise ConfigurationError("This agent cannot test flows.")


class SchemaSource(Protocol):
    """The node types of an instance, as the process knows them."""

    async def __call__(self, instance_id: str, /) -> Schemas: ...


async def no_schemas(instance_id: str, /) -> Schemas:
    """Of a graph that knows no node types."""
    return {}


def no_planned_flow(plan: PlanContract, base: GraphIR, schemas: Schemas, /) -> "PlannedFlow":
    """Of a graph whose plans cannot be drawn."""
    raise ConfigurationError("This agent cannot draw plans.")


@dataclass(frozen=True)
class Agent:
    """A graph with what belongs to it.

    `project` reads the session's columns from the state: session_name, phase, operation_mode, iteration, chatflow_id,
    outcome, answer, change, conflicts, degraded, totals; what is missing or None keeps what is stored. `chatflow_url`
    takes an instance's endpoint and a chatflow's id. `result_of` gives what is kept of an interrupt after its answer,
    None for one that shows no result. `approved_plan` gives the plan that a checked answer to an interrupt approves, if
    any. `upgrade_state` takes the state's channels as an earlier version wrote them and gives those of this version,
    None when nothing is to be done. `planned_flow` draws a plan on the flow that it is for, `wrong_by_hand`
    says what is wrong with a person's own changes of it. `check_start` raises InvalidInputError for a start beyond
    the operator's limits. `planned_with` names the engine and the model of a session that asks for this model, None
    for the rules. `can_wait`: see the saver.
    """

    graph: Graph
    context: ContextFactory
    initial_state: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    project: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    check_answer: AnswerCheck
    instances: Instances
    chatflow_url: Callable[[str, str], str]
    check_start: Callable[[StartSession], None] = lambda request: None
    planned_with: Callable[[str | None], str | None] = lambda model: None
    node_phases: Mapping[str, str] = field(default_factory=dict)
    result_of: Callable[[Interrupt], ResultView | None] = lambda interrupt: None
    approved_plan: Callable[[Interrupt, JsonMapping], PlanView | None] = lambda interrupt, answer: None
    upgrade_state: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = lambda values: None
    can_wait: CanWait = never
    waiting_texts: Callable[[Any], dict[str, bytes]] = lambda context: {}
    tools: ToolSource = no_tools
    hold_tests: TestHolder = no_tests
    schemas: SchemaSource = no_schemas
    wrong_by_hand: Callable[[PlanContract | None, JsonMapping, GraphIR, Schemas], list[Finding]] = (
        lambda plan, answer, base, schemas: []
    )
    planned_flow: "Callable[[PlanContract, GraphIR, Schemas], PlannedFlow]" = no_planned_flow

    def resolve_instance(self, name: str | None) -> str:
        """The id of the Flowise instance that a request names; None is the default one. Raises InvalidInputError and
        ConnectionUnreadableError."""
        self.instances.client(name)
        return name or self.instances.default_id

    def chatflow_link(self, instance_id: str, chatflow_id: str) -> str | None:
        """Where the flow opens in the Flowise editor; None when nobody knows its instance's address any more."""
        endpoint = self.instances.endpoint(instance_id) if instance_id in self.instances.ids else ""
        return self.chatflow_url(endpoint, chatflow_id) if endpoint else None
