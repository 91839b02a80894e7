"""Changes of agentflows: what is inside their nodes, models with their values, instructions and tools."""

import re
from collections.abc import Mapping
from dataclasses import replace

from flowise_dev_agent.contracts.plan import Design, PlannedNode, PlannedValue
from flowise_dev_agent.patch import BindCredential, NodeSchema, SetParam
from flowise_dev_agent.patch.model.agentflow import AGENTFLOW_CATEGORY
from flowise_dev_agent.reasoning.contracts import AgentTools, PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import credential_type
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.build import declined, schemas_of
from flowise_dev_agent.reasoning.rules.design.naming import take_names
from flowise_dev_agent.reasoning.rules.design.prompt import behaviour_of
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.toolbox import LackingError, Toolbox, is_tool
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters
from flowise_dev_agent.reasoning.rules.language import grammar, words
from flowise_dev_agent.reasoning.rules.language.text import mentioned, quoted
from flowise_dev_agent.reasoning.rules.render import telling

_MODELS = "Chat Models"
_SYSTEM_TEXT = "Messages[0].content"
_ORDINAL = grammar.pattern("inside", "ordinal")


def is_agentflow(request: PlanRequest) -> bool:
    """Whether the flow that is there consists of steps."""
    schemas = (request.nodes.get(name) for name in request.existing.values())
    return any(schema and schema.category == AGENTFLOW_CATEGORY for schema in schemas)


def design_inside(request: PlanRequest, wish: str, language: str) -> Design:
    """The design of what `wish` asks for inside the nodes, or one that declines."""
    schemas = schemas_of(request.existing, request.nodes)
    names, text = take_names(wish, schemas)
    change = read(text, request.nodes)
    try:
        toolbox = Toolbox(_agents(request), request.nodes, request.credential_types, language)
        tooled = toolbox.change(change.text, change)
        values = [*_models(request, change, wish, language), *_instructions(request, change, wish, language)]
    except LackingError as lacking:
        return declined(request, str(lacking))
    _, rest = behaviour_of(change.text, change.spans)
    beyond = _beyond(request, text, change, tooled=tooled) or (rest and not tooled)
    if beyond or not (values or names or tooled):
        return declined(request, say("declined_inside", language))
    ops = toolbox.ops()
    values += [
        PlannedValue(node_id=op.node_id, param=op.param_name, value=op.value) for op in ops if isinstance(op, SetParam)
    ]
    if not values and not names:
        return declined(request, say("declined_as_it_is", language))
    needed = [op.credential_type for op in ops if isinstance(op, BindCredential) and op.credential_type]
    needed += [
        kind
        for value in values
        if isinstance(value.value, str) and (schema := request.nodes.get(value.value)) and schema.category == _MODELS
        and (kind := credential_type(schema, request.credential_types))
    ]  # fmt: skip
    fresh = {(value.node_id, value.param) for value in values if value.mode == "set"}
    earlier_values = request.previous.values if request.previous else []
    values = [*(v for v in earlier_values if (v.node_id, v.param) not in fresh and v not in values), *values]
    needed += request.previous.credential_requirements if request.previous else []
    shown = [value for value in values if not value.param.startswith("agentTools")]
    earlier = [node.node_id for node in request.previous.nodes] if request.previous else []
    changed = dict.fromkeys([*(id_ for id_ in earlier if id_ in schemas), *(v.node_id for v in values), *names])
    credentials = list(dict.fromkeys(needed))
    return Design(
        goal=say("goal_change", language, requirement=telling.short(wish)),
        operation=request.intent.operation,
        flow_kind="AGENTFLOW",
        flow_name=request.previous.flow_name if request.previous else request.intent.title,
        nodes=[
            PlannedNode(
                node_id=id_,
                node_name=schemas[id_].name,
                purpose=telling.purpose(schemas[id_], language),
                existing=True,
                label=names.get(id_, ""),
            )
            for id_ in changed
        ],
        values=values,
        steps=[
            *toolbox.steps(),
            *(telling.value_step(value, language) for value in shown),
            *(say("step_set", language, where=f"{id_}.label", value=name) for id_, name in names.items()),
            *(say("step_credential", language, type=name) for name in credentials),
        ],
        credential_requirements=credentials,
    )


def _agents(request: PlanRequest) -> list[AgentTools]:
    """The agents with the tools that they have, or that the plan before gives them."""
    planned = {(v.node_id, v.param): v.value for v in request.previous.values} if request.previous else {}
    found: list[AgentTools] = []
    for agent in request.agents:
        rows = planned.get((agent.node_id, agent.field))
        tools = tuple(row for row in rows if isinstance(row, dict)) if isinstance(rows, list) else agent.rows
        found.append(replace(agent, rows=tools))
    return found


def _models(request: PlanRequest, change: Reading, wish: str, language: str) -> list[PlannedValue]:
    """The values that are asked for, of each model inside; another model where one of another provider is named."""
    wanted = request.nodes.get(change.provider.chat) if change.provider else None
    places = {
        place: schema
        for place, name in request.inside.items()
        if (schema := request.nodes.get(name)) and schema.category == _MODELS
    }
    found: list[PlannedValue] = []
    for place, current in _meant(request, places, wish, language).items():
        node_id, _, path = place.partition(".")
        schema = wanted if wanted is not None else current
        other = schema.name != current.name
        if other:
            found.append(PlannedValue(node_id=node_id, param=path.removesuffix("Config"), value=schema.name))
        values = parameters(schema, Said(change), language=language, asked_only=not other)
        found += [PlannedValue(node_id=node_id, param=f"{path}.{name}", value=v) for name, v in values.items()]
    return found


def _meant(
    request: PlanRequest, places: Mapping[str, NodeSchema], wish: str, language: str
) -> Mapping[str, NodeSchema]:
    """The places that a wish means: in a node that it names, else all of them; an ordinal is asked about."""
    named = {place: schema for place, schema in places.items() if _names(request, place.partition(".")[0], wish)}
    if not named and len(places) > 1 and _ORDINAL.search(wish):
        nodes = ", ".join(dict.fromkeys(place.partition(".")[0] for place in places))
        raise LackingError(say("declined_which", language, nodes=nodes))
    return named or places


def _names(request: PlanRequest, node_id: str, wish: str) -> bool:
    """Whether the wish names a node by its id or its title."""
    label = request.labels.get(node_id, "")
    schema = request.nodes.get(request.existing.get(node_id, ""))
    plain = {"agent", "llm", schema.label.casefold() if schema else ""}
    return any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", wish, re.IGNORECASE)
        for name in (node_id, label)
        if name and name.casefold() not in plain
    )


def _instructions(request: PlanRequest, change: Reading, wish: str, language: str) -> list[PlannedValue]:
    """A way to behave, behind the instructions that the one model has; of several the person chooses."""
    wanted, _ = behaviour_of(change.text, change.spans)
    given = change.system_text or change.prompt_text
    if given and words.ADD.search(change.text) and not words.CHANGE.search(change.text):
        wanted, given = [*wanted, given], None
    if not wanted and not given:
        return []
    places = [place for place in request.texts if place.endswith(_SYSTEM_TEXT)]
    named = [place for place in places if _names(request, place.partition(".")[0], wish)]
    places = named or places
    if len(places) != 1:
        nodes = ", ".join(place.partition(".")[0] for place in places)
        raise LackingError(
            say("declined_which", language, nodes=nodes) if places else say("declined_no_prompt", language)
        )
    node_id, _, path = places[0].partition(".")
    # The editor of agentflows keeps texts as HTML.
    html = request.texts[places[0]].lstrip().startswith("<p")
    found = [PlannedValue(node_id=node_id, param=path, value=given)] if given else []
    for line in wanted:
        text = f"<p>{line}</p>" if html else line
        found.append(PlannedValue(node_id=node_id, param=path, value=text, mode="append"))
    return found


def _beyond(request: PlanRequest, text: str, change: Reading, *, tooled: bool) -> bool:
    """Whether more is asked for than the rules can do inside a node: half of a wish is not carried out."""
    others = [name for name in change.requested if not is_tool(request.nodes.get(name))]
    parts = change.memory or change.no_memory or change.knowledge or others or change.unknown
    signals = any(mentioned(text, pattern) for pattern, _ in words.SIGNALS)
    unquoted = text
    for quote in quoted(text):
        unquoted = unquoted.replace(quote, "")
    removes = (
        mentioned(unquoted, words.REMOVE) and change.provider is None and not (change.system_text or change.prompt_text)
    )
    return bool(parts) or signals or (removes and not tooled)
