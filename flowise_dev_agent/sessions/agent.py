"""The graph that the runtime executes, with what belongs to it: the runtime's tests execute small ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from langgraph.graph.state import CompiledStateGraph

from flowise_dev_agent.agent import ToolRegistry
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.patch import Schemas
from flowise_dev_agent.persistence import Lease, SessionRow
from flowise_dev_agent.persistence.saver import CanWait, never
from flowise_dev_agent.schemas.base import JsonMapping
from flowise_dev_agent.schemas.interrupts import Interrupt
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.session import PlanView, ResultView
from flowise_dev_agent.sessions.emission import Emit

Graph = CompiledStateGraph[Any, Any, Any, Any]


class ContextFactory(Protocol):
    """Makes the graph's run-time context for one run. Errors in it fail the session with their own words."""

    def __call__(self, session: SessionRow, lease: Lease, emit: Emit, /) -> Any: ...


class AnswerCheck(Protocol):
    """Normalises an answer to an interrupt. Raises InvalidAnswerError; the interrupt then stays open."""

    def __call__(self, interrupt: Interrupt, body: ResumeSession, /) -> JsonMapping: ...


class Lookups(Protocol):
    """Reads of an instance outside of any run."""

    def tools(self, instance_id: str, chosen: Mapping[str, str], /) -> ToolRegistry:
        """The lookup tools of an instance. `chosen`: credential type -> id."""
        ...

    async def schemas(self, instance_id: str, /) -> Schemas:
        """The node types of an instance."""
        ...


@dataclass(frozen=True)
class Agent:
    """A graph with what belongs to it.

    `project` reads the session's columns from the state: session_name, phase, operation_mode, iteration, chatflow_id,
    outcome, answer, change, conflicts, degraded, totals; what is missing or None keeps what is stored. `chatflow_url`
    takes an instance's endpoint and a chatflow's id. `result_of` gives what is kept of an interrupt after its answer,
    None for one that shows no result. `approved_plan` gives the plan that a checked answer to an interrupt approves, if
    any. `upgrade_state` takes the state's channels as an earlier version wrote them and gives those of this version,
    None when nothing is to be done. `check_start` raises InvalidInputError for a start beyond
    the operator's limits. `planned_with` names the engine and the model of a session that asks for this model, None
    without a model. `can_wait`: see the saver.
    """

    graph: Graph
    context: ContextFactory
    initial_state: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    project: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    check_answer: AnswerCheck
    instances: Instances
    chatflow_url: Callable[[str, str], str]
    lookups: Lookups
    check_start: Callable[[StartSession], None] = lambda request: None
    planned_with: Callable[[str | None], str | None] = lambda model: None
    node_phases: Mapping[str, str] = field(default_factory=dict)
    result_of: Callable[[Interrupt], ResultView | None] = lambda interrupt: None
    approved_plan: Callable[[Interrupt, JsonMapping], PlanView | None] = lambda interrupt, answer: None
    upgrade_state: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = lambda values: None
    can_wait: CanWait = never
    waiting_texts: Callable[[Any], dict[str, bytes]] = lambda context: {}

    def chatflow_link(self, instance_id: str, chatflow_id: str) -> str | None:
        """Where the flow opens in the Flowise editor; None when nobody knows its instance's address any more."""
        endpoint = self.instances.endpoint(instance_id) if instance_id in self.instances.ids else ""
        return self.chatflow_url(endpoint, chatflow_id) if endpoint else None
