"""The design of a change: of a flow that is there, or of a plan that was not written yet."""

from collections.abc import Mapping, Sequence

from flowise_dev_agent.contracts.plan import Design, PlanContract, PlannedNode, PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.contracts import PlanRequest, Verdict
from flowise_dev_agent.reasoning.credential_requirements import required_types
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.playbook import is_advice
from flowise_dev_agent.reasoning.rules.design.build import (
    declined,
    fresh_ids,
    schemas_of,
    spans_of,
    values_of,
)
from flowise_dev_agent.reasoning.rules.design.change import Edits, find_edits, missed
from flowise_dev_agent.reasoning.rules.design.naming import take_names
from flowise_dev_agent.reasoning.rules.design.parts import Account
from flowise_dev_agent.reasoning.rules.design.prompt import behaviour_of
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.selection import unwanted
from flowise_dev_agent.reasoning.rules.design.toolbox import LackingError
from flowise_dev_agent.reasoning.rules.design.values import Said, default_text, parameters, prompt_field, without_braces
from flowise_dev_agent.reasoning.rules.design.wiring import ENDING_CATEGORIES, wire
from flowise_dev_agent.reasoning.rules.language import words
from flowise_dev_agent.reasoning.rules.language.text import normalised
from flowise_dev_agent.reasoning.rules.render import telling


def wish_of(request: PlanRequest) -> str | None:
    """What is to be different: the person's feedback or a judge's, else the requirement of a first plan."""
    if request.feedback or request.previous is None:
        return normalised(request.feedback or request.requirement)
    verdict: Verdict | None = request.verdict
    # General advice is none of the person's words and is not read like them.
    return (
        normalised(verdict.fix) if verdict and not verdict.done and verdict.fix and not is_advice(verdict.fix) else None
    )


def design_change(request: PlanRequest, wish: str, language: str) -> Design:
    """A change of the flow that `request` brings along, else of its previous plan."""
    planned = request.previous
    pending = planned is not None and not _is_written(planned, request)
    there = dict(request.existing)
    if planned and pending:
        # What was planned and is not written yet counts as there.
        there |= {node.node_id: node.node_name for node in planned.nodes}
        there = {id_: name for id_, name in there.items() if id_ not in planned.removals}
    existing = schemas_of(there, request.nodes)
    names, text = take_names(wish, existing)
    change = read(text, request.nodes)
    occupied = request.occupied | (_inputs(existing) if pending else frozenset())
    edits = find_edits(
        change,
        existing,
        request.nodes,
        request.credential_types,
        dropped=unwanted(change.text, request.nodes),
        occupied=occupied,
        language=language,
    )
    if edits.declined:
        return declined(request, edits.declined)
    going = [*edits.removed, *edits.replaced]
    stays = {id_: schema for id_, schema in existing.items() if id_ not in going}
    coming = schemas_of({f"new_{name}": name for name in (*edits.added, *edits.replaced.values())}, request.nodes)
    if lacking := missed(edits, existing, {**stays, **coming}, language):
        return declined(request, lacking)
    ids = fresh_ids(edits.added, existing)
    ids |= fresh_ids(tuple(edits.replaced.values()), {**existing, **ids})
    added = schemas_of(ids, request.nodes)
    values = values_of(added, change, "", language) + _asked(stays, change, language)
    try:
        texts = _prompts(request, change, {**stays, **added}, values, language)
    except LackingError as lacking_text:
        return declined(request, str(lacking_text))
    _, rest = behaviour_of(change.text, spans_of(change, existing))
    if rest:
        return declined(request, say("declined_wish", language, parts="; ".join(f"«{part}»" for part in rest)))
    texts += _moved(request, edits, existing, added, planned, texts)
    values += texts
    if not values and not names and not ids and not going:
        return declined(request, say("declined_no_change", language))
    gone = [existing[node_id] for node_id in going]
    account = Account(change.text, spans_of(change, {**stays, **added}), {**stays, **added}, values, gone)
    if refusal := account.refusal(language):
        return declined(request, refusal)
    number = 1 + (request.previous is not None)
    source = f"feedback:{number - 1}" if request.feedback else "requirement"
    prompts = [f"{value.node_id}.{value.param}" for value in texts]
    parts = account.parts(language, source=source, prompts=prompts)
    touched = dict.fromkeys([value.node_id for value in values if value.node_id in stays] + list(names))
    kept = {id_: schema for id_, schema in stays.items() if id_ in touched}
    kept |= {id_: stays[id_] for id_ in _partners(added, stays, occupied) if id_ in stays}
    earlier = request.previous.credential_requirements if request.previous else []
    design = Design(
        goal=say("goal_change", language, requirement=telling.short(wish)),
        operation=request.intent.operation,
        flow_name=request.previous.flow_name if request.previous else request.intent.title,
        nodes=[
            PlannedNode(
                node_id=id_,
                node_name=schema.name,
                purpose=telling.purpose(schema, language),
                existing=id_ in request.existing,
                label=names.get(id_, ""),
            )
            for id_, schema in {**kept, **added}.items()
        ],
        removals=[node_id for node_id in going if node_id in request.existing],
        values=values,
        credential_requirements=list(
            dict.fromkeys([*earlier, *required_types(added.values(), request.credential_types)])
        ),
        parts=parts,
        steps=_steps(request, edits, existing, names, language),
    )
    told = telling.told(design, {**kept, **added}, Said(change, "\n".join(str(text.value) for text in texts)), language)
    return _merged(planned, told, going, request, language, pending=pending) if planned else told


def _is_written(planned: PlanContract, request: PlanRequest) -> bool:
    """Whether the flow holds what was planned to be new."""
    new = [node.node_id for node in planned.nodes if not node.existing]
    return bool(new) and all(node_id in request.existing for node_id in new)


def _inputs(nodes: Mapping[str, NodeSchema]) -> frozenset[str]:
    return frozenset(f"{op.target_node_id}.{op.target_anchor}" for op in wire(nodes).connections)


def _partners(added: Mapping[str, NodeSchema], stays: Mapping[str, NodeSchema], occupied: frozenset[str]) -> list[str]:
    """What stays and gets a connection from a new node."""
    if not added:
        return []
    return [op.target_node_id for op in wire({**added, **stays}, fixed=list(stays), occupied=occupied).connections]


def _asked(stays: Mapping[str, NodeSchema], change: Reading, language: str) -> list[PlannedValue]:
    return [
        PlannedValue(node_id=node_id, param=name, value=value)
        for node_id, schema in stays.items()
        for name, value in parameters(schema, Said(change), language=language, asked_only=True).items()
    ]


def _prompts(
    request: PlanRequest,
    change: Reading,
    nodes: Mapping[str, NodeSchema],
    values: Sequence[PlannedValue],
    language: str,
) -> list[PlannedValue]:
    """Words for the model. They are added to a prompt; only an explicit wish for another one replaces it."""
    wanted, _ = behaviour_of(change.text, spans_of(change, nodes))
    given = change.system_text or change.prompt_text
    if given and words.ADD.search(change.text) and not words.CHANGE.search(change.text):
        wanted, given = [*wanted, given], None
    if not wanted and not given:
        return []
    places = [
        (id_, field)
        for id_, schema in nodes.items()
        if (field := prompt_field(schema)) and schema.category in (*ENDING_CATEGORIES, "Prompts")
    ]
    if change.prompt_text and not change.system_text:
        places = [place for place in places if place[1] == "template"] or places
    if not places:
        raise LackingError(say("declined_no_prompt", language))
    if len(places) > 1:
        raise LackingError(say("declined_which", language, nodes=", ".join(id_ for id_, _ in places)))
    ((node_id, field),) = places
    schema = nodes[node_id]
    existing_text = request.texts.get(f"{node_id}.{field}", "")
    found: list[PlannedValue] = []
    if given:
        text = given if field == "template" else without_braces(given)
        if field == "responsePrompt" and "{context}" not in text:
            text = f"{text}\n\n{default_text(schema, field)}"
        found.append(PlannedValue(node_id=node_id, param=field, value=text))
    for line in wanted:
        said = without_braces(line)
        if field == "responsePrompt" and not existing_text and not given:
            said = f"{default_text(schema, field)}\n{said}"
        found.append(PlannedValue(node_id=node_id, param=field, value=said, mode="append"))
    return found


def _moved(
    request: PlanRequest,
    edits: Edits,
    existing: Mapping[str, NodeSchema],
    added: Mapping[str, NodeSchema],
    planned: PlanContract | None,
    texts: Sequence[PlannedValue],
) -> list[PlannedValue]:
    """The prompt of a node goes on with what takes its place, under the name that it has there."""
    found: list[PlannedValue] = []
    for old, name in edits.replaced.items():
        new = next(id_ for id_, schema in added.items() if schema.name == name)
        source, target = prompt_field(existing[old]), prompt_field(added[new])
        if source is None or target is None or (source == target and old in request.existing):
            continue
        if any(value.node_id == new and value.mode == "set" for value in texts):
            continue
        earlier = planned.values if planned else []
        text = next((v.value for v in earlier if (v.node_id, v.param) == (old, source)), None)
        text = text or request.texts.get(f"{old}.{source}")
        if text:
            found.append(PlannedValue(node_id=new, param=target, value=text))
    return found


def _steps(
    request: PlanRequest,
    edits: Edits,
    existing: Mapping[str, NodeSchema],
    names: Mapping[str, str],
    language: str,
) -> list[str]:
    schemas = request.nodes.schemas
    steps = [say("step_remove", language, node=id_, label=existing[id_].label) for id_ in edits.removed]
    steps += [
        say("step_replace", language, node=id_, old=existing[id_].label, new=schemas[name].label)
        for id_, name in edits.replaced.items()
    ]
    return steps + [say("step_set", language, where=f"{id_}.label", value=name) for id_, name in names.items()]


def _merged(
    planned: PlanContract, change: Design, going: Sequence[str], request: PlanRequest, language: str, *, pending: bool
) -> Design:
    """The plan before with a change: values that are added join a text that was planned and not written yet."""
    new = {node.node_id for node in planned.nodes if node.node_id not in request.existing}
    values: list[PlannedValue] = [value for value in planned.values if pending and value.node_id not in going]
    for value in change.values:
        index = next((i for i, v in enumerate(values) if (v.node_id, v.param) == (value.node_id, value.param)), None)
        if index is None or (value.mode == "append" and value.node_id not in new):
            values.append(value)
        elif value.mode == "append":
            text = f"{values[index].value}\n{value.value}"
            values[index] = values[index].model_copy(update={"value": text})
        else:
            values[index] = value
    nodes = {
        node.node_id: node if pending else node.model_copy(update={"existing": True})
        for node in planned.nodes
        if node.node_id not in going and (pending or node.node_id in request.existing)
    }
    nodes |= {id_: node for node in change.nodes if (id_ := node.node_id) not in nodes or node.label}
    removals = [node_id for node_id in planned.removals if node_id in request.existing]
    parts = [
        part.model_copy(update={"id": f"p{number}"})
        for number, part in enumerate([*planned.parts, *change.parts][:40], start=1)
    ]
    tests = list({test.turns[0]: test for test in [*planned.tests, *change.tests]}.values())[:10]
    merged = change.model_copy(
        update={
            "goal": planned.goal if new else change.goal,
            "nodes": list(nodes.values()),
            "removals": list(dict.fromkeys([*removals, *change.removals])),
            "values": values[:100],
            "parts": parts,
            "connections": planned.connections if pending else [],
            "tests": [test.model_copy(update={"id": f"t{n}"}) for n, test in enumerate(tests, start=1)],
            "criteria": [
                one.model_copy(update={"id": f"c{n}"})
                for n, one in enumerate({c.text: c for c in [*planned.criteria, *change.criteria]}.values(), start=1)
            ][:20],
            "placeholders": telling.placeholders(values),
        }
    )
    steps = [step for step in change.steps if not new]
    if new:
        labels = (request.nodes.schemas[node.node_name].label for node in nodes.values() if not node.existing)
        steps = [say("step_add", language, nodes=", ".join(labels))]
        steps += [telling.value_step(value, language) for value in values]
        steps += [say("step_credential", language, type=name) for name in merged.credential_requirements]
    return merged.model_copy(update={"steps": steps})
