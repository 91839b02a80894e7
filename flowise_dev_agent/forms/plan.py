"""Plan of any form."""

from collections.abc import Mapping, Sequence

from flowise_dev_agent.forms.chatflow import chatflow_plan
from flowise_dev_agent.forms.offer import DeclinedError, Offer
from flowise_dev_agent.forms.steps import steps_plan
from flowise_dev_agent.forms.telling import purpose_of, short, with_texts
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.plan import Part, Plan
from flowise_dev_agent.texts import text


def plan_of(
    form: DesignForm,
    offer: Offer,
    *,
    words: str = "",
    language: str = "en",
    parts: Sequence[Part] = (),
    ready: Mapping[str, NodeSchema] | None = None,
    taken: Mapping[str, str] | None = None,
) -> Plan:
    """Build the plan of a form's flow; a declined plan if this Flowise lacks something that the form names.

    `words` are the person's words beside the form, `language` is that of the plan's texts. `parts` are the parts of the
    form's text that the plan covers; `ready` and `taken` as in `chatflow_plan`.
    """
    if form.needs:
        return _decline(form, _incomplete(form.needs))
    try:
        if form.kind == "steps":
            plan = steps_plan(form, offer)
        else:
            plan = chatflow_plan(form, offer, ready=ready or {}, taken=taken or {})
            plan = plan.model_copy(update={"parts": [_mark_covered(part, plan) for part in parts]})
    except DeclinedError as error:
        return _decline(form, error.args[0])
    return with_texts(plan, form, offer.store.schemas, words=words, language=language)


def incomplete(plan: Plan, needs: Sequence[str]) -> Plan:
    """Decline the plan of a form with these missing parts, so that nothing is built from it."""
    return plan.model_copy(update={"declined": _incomplete(needs), "nodes": [], "values": [], "connections": []})


def _decline(form: DesignForm, why: str) -> Plan:
    return Plan(goal=short(purpose_of(form)), operation="create", flow_name=form.name, declined=why)


def _incomplete(needs: Sequence[str]) -> str:
    return text("declined.form_incomplete", fields=[f"`{one}`" for one in needs])


def _mark_covered(part: Part, plan: Plan) -> Part:
    """Mark a part as covered: a plan covers everything in its form."""
    values = [f"{one.node_id}.{one.param}" for one in plan.values if part.quote in " ".join(str(one.value).split())]
    return part.model_copy(update={"state": "covered", "values": values, "reason": ""})
