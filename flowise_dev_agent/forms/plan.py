"""A form as a plan."""

from collections.abc import Mapping, Sequence

from flowise_dev_agent.forms.chatflow import chatflow_plan
from flowise_dev_agent.forms.offer import DeclinedError, Offer
from flowise_dev_agent.forms.steps import steps_plan
from flowise_dev_agent.forms.telling import short
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.plan import Part, PlanContract


def plan_of(
    form: DesignForm,
    offer: Offer,
    *,
    parts: Sequence[Part] = (),
    ready: Mapping[str, NodeSchema] | None = None,
    taken: Mapping[str, str] | None = None,
) -> PlanContract:
    """The plan of the flow that a form describes; declined where this Flowise lacks something that the form names.

    `parts` are what the plan accounts for, as the form's text has them; `ready` and `taken` as in `chatflow_plan`.
    """
    if form.needs:
        return _declined(form, _incomplete(form.needs))
    try:
        if form.kind == "steps":
            return steps_plan(form, offer)
        plan = chatflow_plan(form, offer, ready=ready or {}, taken=taken or {})
    except DeclinedError as error:
        return _declined(form, str(error))
    return plan.model_copy(update={"parts": [_covered(part, plan) for part in parts]})


def incomplete(plan: PlanContract, needs: Sequence[str]) -> PlanContract:
    """The plan of a form that still lacks these parts: nothing is built of it."""
    return plan.model_copy(update={"declined": _incomplete(needs), "nodes": [], "values": [], "connections": []})


def _declined(form: DesignForm, why: str) -> PlanContract:
    return PlanContract(goal=short(form.as_text()), operation="create", flow_name=form.name, declined=why)


def _incomplete(needs: Sequence[str]) -> str:
    return f"The form is not complete. Fill in: {', '.join(f'`{one}`' for one in needs)}."


def _covered(part: Part, plan: PlanContract) -> Part:
    """Everything that a form says is in its plan."""
    values = [f"{one.node_id}.{one.param}" for one in plan.values if part.quote in str(one.value)]
    return part.model_copy(update={"state": "covered", "values": values, "reason": ""})
