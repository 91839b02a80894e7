"""Requests to a reasoner, built in one place: what a test leaves out is as for a plain new flow."""

from typing import Any

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.planning.pipeline import Review
from flowise_dev_agent.reasoning.contracts import Intent, PlanRequest

CREATE = Intent(operation="create", ambiguity=0, title="A chatbot")
UPDATE = Intent(operation="update", ambiguity=0, title="A chatbot")


def plan_request(nodes: NodeStore, requirement: str = "A chatbot with GPT-4o", **fields: Any) -> PlanRequest:
    """A request to plan a new flow, unless `intent` says otherwise."""
    given: dict[str, Any] = {"requirement": requirement, "intent": CREATE, "nodes": nodes, "review": Review()}
    return PlanRequest(**given | fields)
