"""The interface between the runtime and a graph; tests of the runtime use small graphs."""

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
from flowise_dev_agent.schemas.session import ApprovedPlan, ResultView
from flowise_dev_agent.sessions.emission import Emit

Graph = CompiledStateGraph[Any, Any, Any, Any]


class ContextFactory(Protocol):
    """Factory of a run's graph context. Its errors fail the session with their own text."""

    def __call__(self, session: SessionRow, lease: Lease, emit: Emit, /) -> Any: ...


class AnswerCheck(Protocol):
    """Check and normalise an answer to an interrupt. Raises InvalidAnswerError; the interrupt then stays open."""

    def __call__(self, interrupt: Interrupt, body: ResumeSession, /) -> JsonMapping: ...


class Lookups(Protocol):
    """Lookups in an instance outside of a run."""

    def tools(self, instance_id: str, chosen: Mapping[str, str], /) -> ToolRegistry:
        """Lookup tools of an instance. `chosen`: credential type -> id."""
        ...

    async def schemas(self, instance_id: str, /) -> Schemas:
        """Node types of an instance."""
        ...


@dataclass(frozen=True)
class Agent:
    """A graph and the functions with which the runtime reads its state.

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
    approved_plan: Callable[[Interrupt, JsonMapping], ApprovedPlan | None] = lambda interrupt, answer: None
    upgrade_state: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = lambda values: None
    can_wait: CanWait = never
    waiting_texts: Callable[[Any], dict[str, bytes]] = lambda context: {}

    def chatflow_link(self, instance_id: str, chatflow_id: str) -> str | None:
        """URL of the flow in the Flowise editor; None when the instance's address is no longer known."""
        endpoint = self.instances.endpoint(instance_id) if instance_id in self.instances.ids else ""
        return self.chatflow_url(endpoint, chatflow_id) if endpoint else None
