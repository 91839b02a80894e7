"""Set the plan's fixed fields: the operation, and the kind and name of an existing flow."""

import re
from typing import Any

from flowise_dev_agent.planning.context import PlanContext

_NAME_CHARS = 120


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
            if plan.flow_name.casefold() not in unnamed and _is_said(plan.flow_name, context.words):
                fixed["new_name"] = plan.flow_name
        elif plan.flow_name.casefold() in unnamed:
            fixed["flow_name"] = f"{name[:112]} (copy)"
    return context.changed(**fixed)


def _is_said(name: str, words: list[str]) -> bool:
    """True if the person has written the name: no other one is taken from a model."""
    said = " ".join(" ".join(words).split()).casefold()
    return re.search(rf"(?<!\w){re.escape(' '.join(name.split()).casefold())}(?!\w)", said) is not None
