"""Models of a plan: named where nobody chose them, replaced or told where they have ended or end soon."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.knowledge.model_ends import UsedModel, brand_of, status, words_of
from flowise_dev_agent.patch import GraphIR, Schemas
from flowise_dev_agent.patch.model.model_uses import EMBEDDINGS, ModelUse, model_uses
from flowise_dev_agent.patch.model.named import with_names
from flowise_dev_agent.patch.model.nested import Steps, parse_path, value_at, with_value
from flowise_dev_agent.patch.validate.models import MODEL_ENDED, MODEL_ENDS, model_end_finding
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.passes.feasibility import flow_after
from flowise_dev_agent.schemas.plan import Plan, PlannedValue

#: May stand between the parts of a model id in a person's words.
_BETWEEN: Final = r"[-._: ]?"
#: Not behind a model id: there begins the id of another one.
_GOES_ON: Final = r"(?![-.]?\w)(?! (?:mini|nano|pro|turbo|flash|lite|audio|search|chat|codex|preview)\b)"
#: The person reads what takes the place of what they named.
_SAY_SO: Final = "Mark the part that names it `assumed`, and say there which model ended when."
#: An end that is nearer is told of any model of the flow.
_URGENT: Final = timedelta(days=30)
#: Date or alias behind a model id, which nobody says.
_SNAPSHOT: Final = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


async def current_models(context: PlanContext) -> PlanContext:
    """Set the models that nobody chose to the newest that the server offers; find chosen ones that end.

    The person chose what their words name, and what their flow has: "the same model as in the other steps". In a plan
    of a model a model that goes on stays as it is, and one of another brand is the planner's to choose: "Llama" in the
    person's words is no model id. A name without a version ("Claude Sonnet") is the newest of that name; where the
    server has none, the planner is told.
    """
    plan, ending = context.plan, list[UsedModel]()
    in_use = {use.model for use in model_uses(context.base, context.schemas)}
    said = {word for words in context.words for word in re.findall(r"[a-z]+", words.casefold())}
    for used in await _planned(context, ending_only=not context.by_form):
        old, new = used.use.model, used.newest
        if old in in_use or is_asked_for(old, context.words):
            continue
        fits = context.by_form or (brand_of(old) == brand_of(new) and said.isdisjoint(words_of(old) - words_of(new)))
        if new and fits and (used.end or not _is_embedding(used.use, context.schemas)):
            plan = _with_model(plan, used.use, new)
            # The words of a form's plan come from its values, with codes for other languages.
            plan = plan if context.by_form else _saying(plan, old, new)
        elif used.end:
            ending.append(used)
    told = _telling(context.having(plan), ending)
    told = replace(told, problems=(*told.problems, *_other_versions(told)))
    found = [
        one.model_copy(update={"hint": f"{one.hint} {_SAY_SO}"}) if one.code in (MODEL_ENDED, MODEL_ENDS) else one
        for one in told.plan.findings
    ]
    return told.changed(findings=found) if ending else told


def _other_versions(context: PlanContext) -> Iterator[str]:
    """Problems with new models in another version than the one that the person names and the server lists."""
    if not context.is_open or context.by_form:
        return
    in_use = {use.model for use in model_uses(context.base, context.schemas)}
    for use in models_after(context.plan, context.base, context.schemas):
        if use.model in in_use or is_asked_for(use.model, context.words):
            continue
        named = [
            one
            for one in context.request.server.models.get(use.component, ())
            if words_of(one) == words_of(use.model) and one not in in_use and is_asked_for(one, context.words)
            if status(use.component, one, datetime.now(UTC).date()) != "ended"
        ]
        if len(named) == 1:
            yield (
                f"`{use.field}` of {use.where}: the person names {named[0]}, which works, and not {use.model}. Take "
                "the one that they name; code tells them when it ends."
            )


async def ending_models(context: PlanContext) -> PlanContext:
    """Tell the person of each model in the plan that has ended or ends soon, also of one that they asked for; of
    models that the plan leaves alone those that end within 30 days.
    """
    return _telling(context, await _planned(context, ending_only=True, others=True))


def default_models(context: PlanContext) -> PlanContext:
    """Write the default chat model of each new node into the plan, so that the person approves it by name."""
    plan, schemas = context.plan, context.schemas
    for use in models_after(plan, context.base, schemas) if context.is_open else ():
        if use.where in plan.new_nodes and _value_for(plan, use) is None and not _is_embedding(use, schemas):
            plan = _with_model(plan, use, use.model)
    return context.having(plan)


def models_after(plan: Plan, base: GraphIR, schemas: Schemas) -> list[ModelUse]:
    """Models of the flow after the plan; empty if the plan changes nothing or cannot be compiled."""
    try:
        graph = flow_after(plan, base, schemas)
    except PatchError:
        return []
    return [*model_uses(graph, schemas)] if graph else []


def is_asked_for(model: str, words: Iterable[str]) -> bool:
    """True if the words name exactly this model, in their own spelling: `GPT 4o` is `gpt-4o` but no `gpt-4o-mini`."""
    pattern = _spoken(model)
    return any(pattern.search(" ".join(one.split())) for one in words)


def _spoken(model: str) -> re.Pattern[str]:
    """The ways in which people and planners write a model."""
    brand, *rest = re.split(r"[-._:@/ ]+", _SNAPSHOT.sub("", model))
    sizes = [re.escape(one) for one in rest if one.isalpha()]
    numbers = [re.escape(one) for one in rest if not one.isalpha()]
    # "Claude 4.5 Sonnet" and "Sonnet 4.5" are `claude-sonnet-4-5`.
    optional = "?" if sizes and numbers else ""
    orders = {_BETWEEN.join(parts) for parts in (map(re.escape, rest), [*sizes, *numbers], [*numbers, *sizes])}
    spoken = rf"(?:{re.escape(brand)}{_BETWEEN}){optional}(?:{'|'.join(sorted(orders))})"
    return re.compile(rf"(?<![\w.-]){spoken}{_GOES_ON}", re.IGNORECASE)


def _saying(plan: Plan, old: str, new: str) -> Plan:
    """Plan that names the new model where its words named the old one."""
    named = re.compile(rf"{_spoken(old).pattern}|(?<![\w.-]){re.escape(old)}{_GOES_ON}", re.IGNORECASE)

    def said(text: str) -> str:
        return named.sub(lambda _: new, text)

    return plan.model_copy(
        update={
            "goal": said(plan.goal),
            "steps": [*map(said, plan.steps)],
            "nodes": [one.model_copy(update={"purpose": said(one.purpose)}) for one in plan.nodes],
            "parts": [one.model_copy(update={"reason": said(one.reason)}) for one in plan.parts],
            "criteria": [one.model_copy(update={"text": said(one.text)}) for one in plan.criteria],
        }
    )


async def _planned(context: PlanContext, *, ending_only: bool, others: bool = False) -> list[UsedModel]:
    """Models of the new nodes, and those that the plan sets in nodes that exist; with `others` also all that end within
    30 days.
    """
    plan = context.plan
    if context.lookups is None or not context.is_open:
        return []
    new = plan.new_nodes
    found = await context.lookups.planned_models(plan, context.base, ending_only=ending_only)
    day = datetime.now(UTC).date() + _URGENT
    urgent = [one.end is not None and one.end.day <= day and others for one in found]
    return [
        one
        for one, is_urgent in zip(found, urgent, strict=True)
        if one.use.where in new or _value_for(plan, one.use) is not None or is_urgent
    ]


def _telling(context: PlanContext, models: Sequence[UsedModel]) -> PlanContext:
    known = {finding.key for finding in context.plan.findings}
    titles = {node.node_id: node.label for node in context.plan.nodes if node.label}
    found = [model_end_finding(one.use, one.end) for one in models if one.end]
    named = with_names(found, context.base, context.schemas, titles)
    return context.found([finding for finding in named if finding.key not in known])


def _is_embedding(use: ModelUse, schemas: Schemas) -> bool:
    """True for a model of embeddings: another one cannot read the vectors that a store may have."""
    schema = schemas.get(use.component)
    return schema is not None and schema.category == EMBEDDINGS


def _value_for(plan: Plan, use: ModelUse) -> PlannedValue | None:
    """The planned value that holds the model."""
    return next((one for one in plan.values if (inside := _inside(one, use)) is not None and _has(one, inside)), None)


def _with_model(plan: Plan, use: ModelUse, model: str) -> Plan:
    """Plan with another model, in the planned value that holds it or has a place for it, else in a new one."""
    values = list(plan.values)
    for index, one in enumerate(values):
        inside = _inside(one, use)
        if inside is not None and (not inside or value_at({"": one.value}, ("", *inside[:-1])) is not None):
            values[index] = one.model_copy(update={"value": with_value(one.value, inside, model)})
            break
    else:
        values.append(PlannedValue(node_id=use.where, param=use.field, value=model))
    return plan.model_copy(update={"values": values})


def _inside(value: PlannedValue, use: ModelUse) -> Steps | None:
    """Path of the model's field inside a planned value; None if the field lies elsewhere."""
    whole, around = parse_path(use.field), parse_path(value.param)
    if value.node_id != use.where or not whole or not around or whole[: len(around)] != around:
        return None
    inside = whole[len(around) :]
    return inside if not inside or isinstance(value.value, Mapping | list) else None


def _has(value: PlannedValue, inside: Steps) -> bool:
    return value_at({"": value.value}, ("", *inside)) not in (None, "")
