"""Phases B and C: which existing flow is meant, and what is in it.

Changing an existing flow is not built yet. `resolve_target` finds out what the person means and
`hitl_select_target` says so and offers a new flow instead; the baseline nodes read a flow for good.
"""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.interrupts import build_interrupt, option
from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.patch.graph import GraphIR
from flowise_dev_agent.patch.hashing import payload_sha256
from flowise_dev_agent.patch.summary import summarize

MAX_CANDIDATES = 10


async def resolve_target(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Chatflows whose id or name is in what the person wrote, best match first."""
    intent = state["intent"] or {}
    wanted = state["request"].get("target") or intent.get("target_hint") or state["requirement"]
    candidates: list[tuple[int, dict[str, Any]]] = []
    async for flow in runtime.context.flowise.iter_chatflows():
        score = _score(wanted, flow.id, flow.name)
        if score:
            candidates.append(
                (score, {"id": flow.id, "name": flow.name, "type": flow.type, "updated": flow.updated_date})
            )
    candidates.sort(key=lambda item: (-item[0], item[1]["name"], item[1]["id"]))
    return {"target_candidates": [candidate for _, candidate in candidates[:MAX_CANDIDATES]], "answer": None}


async def hitl_select_target(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Say what was found, and that a new flow is what can be made of it for now."""
    answer: dict[str, Any] = interrupt(_select_target(state))
    if answer["action"] == "cancel":
        return {"answer": answer, "outcome": "cancelled"}
    return {"answer": answer, "operation_mode": "create", "target_chatflow_id": None}


async def load_current_flow(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Read the target; the flow becomes a blob, the state keeps its hash and the base for the stale check."""
    target = state["target_chatflow_id"]
    if not target:
        raise InvalidInputError("There is no target flow to load.", hint="Name the chatflow to change.")
    flow = await runtime.context.flowise.get_chatflow(target)
    sha256 = await runtime.context.blobs.put(flow.flow_data)
    return {
        "base": {"sha256": payload_sha256(flow.flow_data), "updated_date": flow.updated_date},
        "artifacts": {"flowise": {"current_flow": sha256, "current_flow_name": flow.name}},
    }


async def summarize_current_flow(state: AgentState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """The compact text of the flow: all that a prompt ever sees of it."""
    text = await runtime.context.blobs.get(state["artifacts"]["flowise"]["current_flow"])
    return {"facts": {"flowise": {"flow_summary": summarize(GraphIR.from_flow_data(text))}}}


def _select_target(state: AgentState) -> dict[str, Any]:
    candidates = state["target_candidates"]
    found = ", ".join(f"'{item['name']}'" for item in candidates[:3])
    verb = {"copy": "Copying", "question": "Answering questions about"}.get(str(state["operation_mode"]), "Changing")
    return build_interrupt(
        "select_target",
        reason="editing_not_available",
        message=f"{verb} an existing chatflow is not available in this version. "
        + (f"Found: {found}; it stays as it is. " if found else "No chatflow of that name was found. ")
        + "Create a new one instead?",
        options=[
            option("create_new", "Create a new chatflow", "Existing chatflows are left alone."),
            option("cancel", "Cancel", "End the session; nothing is written."),
        ],
        data={"candidates": candidates},
    )


def _score(wanted: str, id_: str, name: str) -> int:
    """3 for the id, 2 for the very name, 1 for a name that stands in the text (or the text in the name)."""
    text, title = wanted.casefold().strip(), name.casefold().strip()
    if id_ in wanted:
        return 3
    if text == title:
        return 2
    return int(bool(title) and (title in text or text in title))
