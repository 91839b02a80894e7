"""Requests to a reasoner, built in one place: what a test leaves out is as for a plain new flow."""

from collections.abc import Mapping
from typing import Any

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.pipeline import Review
from flowise_dev_agent.planning.requests import PlanRequest
from flowise_dev_agent.schemas.plan import Intent

CREATE = Intent(operation="create", ambiguity=0, title="A chatbot")
UPDATE = Intent(operation="update", ambiguity=0, title="A chatbot")


def flow_of(types: Mapping[str, str]) -> GraphView:
    """A flow of nodes without values and connections, by node id and type."""
    nodes: Any = [{"id": id_, "data": {"id": id_, "name": name, "label": name}} for id_, name in types.items()]
    return GraphView(GraphIR({"nodes": nodes, "edges": []}))


def plan_request(nodes: NodeStore, requirement: str = "A chatbot with GPT-4o", **fields: Any) -> PlanRequest:
    """A request to plan a new flow, unless `intent` says otherwise."""
    given: dict[str, Any] = {"requirement": requirement, "intent": CREATE, "nodes": nodes, "review": Review()}
    return PlanRequest(**given | fields)
