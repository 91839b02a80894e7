"""Set the plan's fixed fields: the operation, and the kind and name of an existing flow."""

import re
from typing import Any, Final

from flowise_dev_agent.patch import Finding
from flowise_dev_agent.patch.model.findings import warning
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.schemas.plan import is_said

_NAME_CHARS = 120
#: The code of a finding on a kind of flow that is changed and no longer made.
BUILT_AS_AGENTFLOW: Final = "BUILT_AS_AGENTFLOW"
#: What people call the flows that Flowise had before AgentFlow V2.
_FORMER: Final = re.compile(
    r"\bsequential[ -]agents?\b|\bseq(?:Agent|Start|LLMNode|Condition|State)|\bmulti[ -]?agents?[ -]flows?\b"
    r"|\bsequenziellen? agenten|\bagentes secuenciales|\bagents séquentiels",
    re.IGNORECASE,
)


def target(context: PlanContext) -> PlanContext:
    """Set the operation, the answer to a question, and the kind and name of the flow to change or copy."""
    plan, request = context.plan, context.request
    intent, name = request.intent, request.target
    fixed: dict[str, Any] = {
        "operation": intent.operation,
        "answer": plan.answer if intent.operation == "question" else None,
    }
    if intent.operation == "question" and plan.answer is None:
        fixed["answer"] = plan.declined or plan.goal
    if request.target_kind and name is not None and intent.operation != "create":
        fixed["flow_kind"] = request.target_kind
        unnamed = {name.casefold(), intent.title.casefold()}
        if intent.operation == "update":
            fixed["flow_name"] = name[:_NAME_CHARS]
            fixed["new_name"] = new_name(context)
        elif plan.flow_name.casefold() in unnamed:
            fixed["flow_name"] = f"{name[:112]} (copy)"
    asked = intent.operation == "create" and not plan.declined and _FORMER.search(" ".join(context.words))
    return context.changed(**fixed).found([_ended()] if asked else [])


def new_name(context: PlanContext) -> str | None:
    """The name that a plan gives a flow that it changes; None for one that the person did not write: no other name is
    taken from a model.
    """
    plan, request = context.plan, context.request
    if request.target is None or request.intent.operation != "update":
        return None
    known = {request.target.casefold(), request.intent.title.casefold()}
    is_new = plan.flow_name.casefold() not in known and is_said(plan.flow_name, " ".join(context.words))
    return plan.flow_name if is_new else plan.new_name


def _ended() -> Finding:
    text = "Flowise no longer develops sequential agents and multi-agent flows: new flows are AgentFlows or chatflows."
    return warning(BUILT_AS_AGENTFLOW, text, hint="Say so if an existing flow was meant.")
