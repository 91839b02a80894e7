"""Plans by rules: for a new flow, for a new flow of steps, for a change of one that is there."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flowise_dev_agent.contracts.plan import Criterion, TestCase
from flowise_dev_agent.patch import NodeSchema, SetParam
from flowise_dev_agent.reasoning.contracts import (
    Pattern,
    PlanContract,
    PlannedNode,
    PlanRequest,
    Verdict,
)
from flowise_dev_agent.reasoning.credential_requirements import nested_types, required_types
from flowise_dev_agent.reasoning.deterministic import describing
from flowise_dev_agent.reasoning.deterministic.agentflow import design
from flowise_dev_agent.reasoning.deterministic.change_requests import (
    WISH,
    change_reading,
    existing_nodes,
    full_reading,
    schemas_of,
    values_of,
    wishes_of,
)
from flowise_dev_agent.reasoning.deterministic.conditions import read_conditions
from flowise_dev_agent.reasoning.deterministic.edits import find_edits, missed
from flowise_dev_agent.reasoning.deterministic.naming import take_names
from flowise_dev_agent.reasoning.deterministic.nested import is_agentflow, plan_inside
from flowise_dev_agent.reasoning.deterministic.pattern_ops import reused_ids
from flowise_dev_agent.reasoning.deterministic.reading import Reading
from flowise_dev_agent.reasoning.deterministic.selection import select, unwanted, usable
from flowise_dev_agent.reasoning.deterministic.wiring import wire
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.playbook import is_advice

_LONGEST_SHOWN_VALUE = 300
_MOST_QUESTIONS = 6


def plan_new(request: PlanRequest, language: str) -> PlanContract:
    """A plan for a flow that is not there yet, of nodes or of steps."""
    wishes = wishes_of(request.previous, request.feedback)
    reading = full_reading(request, wishes, request.nodes)
    foreign = [names[0] for names in reading.tools if not usable(names, request.nodes)]
    if reading.multi_agent or any(name in request.nodes.schemas for name in foreign):
        return _agentflow(request, reading, foreign, wishes, language)
    unwished = frozenset[str]().union(*(unwanted(wish, request.nodes) for wish in wishes))
    selection = select(reading, request.nodes, request.credential_types, language=language, without=unwished)
    if selection.declined:
        return _declined(request, selection.declined)
    ids = _fresh_ids(selection.names, {}, request.pattern)
    return _contract(request, reading, ids, {}, wishes, language)


def _agentflow(
    request: PlanRequest, reading: Reading, foreign: Sequence[str], wishes: list[str], language: str
) -> PlanContract:
    """A plan for a flow of steps. `foreign` are tools for which a chatflow has no place."""
    made = design(reading, request.nodes, request.credential_types, language)
    if made.declined:
        return _declined(request, made.declined)
    added = {op.node_id: request.nodes.schemas[op.node_name] for op in made.nodes}
    # Steps are built anew: what of another flow's steps fits is a matter of their prompts.
    fresh = replace(request, pattern=None)
    contract = _contract(fresh, reading, {op.node_id: op.node_name for op in made.nodes}, {}, wishes, language)
    labels = {op.node_id: op.label for op in made.nodes if op.label}
    credentials = nested_types(made.nodes, request.nodes.schemas, request.credential_types)
    steps = [say("step_agentflow", language, names=", ".join(foreign))] if foreign and not reading.multi_agent else []
    steps.append(say("step_add", language, nodes=", ".join(labels.get(id_, s.label) for id_, s in added.items())))
    steps += [
        say("step_set", language, where=f"{op.node_id}.conditions", value=_cases(op.params["conditions"]))
        for op in made.nodes
        if "conditions" in op.params
    ]
    steps += [step for step in contract.steps if step.startswith(WISH)]
    examples = [example for case in read_conditions(reading.text).cases if (example := case.example)]
    return contract.with_questions([*examples, *contract.test_questions][:_MOST_QUESTIONS]).model_copy(
        update={
            "flow_kind": "AGENTFLOW",
            "placeholders": [],
            "credential_requirements": credentials,
            "nodes": [
                node.model_copy(update={"purpose": f"{labels[node.node_id]}: {node.purpose}"})
                if node.node_id in labels
                else node
                for node in contract.nodes
            ],
            "steps": [*steps, *(say("step_credential", language, type=name) for name in credentials)],
        }
    )


def _cases(rows: Any) -> str:
    return "; ".join(f"{number}: {row['operation']} {row['value2']!r}" for number, row in enumerate(rows))


def plan_change(request: PlanRequest, existing: Mapping[str, NodeSchema], language: str) -> PlanContract:
    """A plan for a flow that is there already: values to set and nodes to add."""
    wish = request.feedback or _fix(request.verdict)
    wishes = wishes_of(request.previous, wish)
    if not wish and request.previous is not None:
        reason = request.verdict.reason if request.verdict else ""
        return _declined(request, say("declined_failed", language, reason=reason))
    if is_agentflow(request):
        contract = plan_inside(request, [request.requirement, *wishes], language)
        return contract.model_copy(update={"steps": [*contract.steps, *(f"{WISH}{item}" for item in wishes)]})
    names, text = take_names(wish or request.requirement, existing)
    change = change_reading(request, wishes, text)
    dropped = unwanted(text, request.nodes)
    edits = find_edits(
        change,
        existing,
        request.nodes,
        request.credential_types,
        dropped=dropped,
        occupied=request.occupied,
        language=language,
    )
    if edits.declined:
        return _declined(request, edits.declined)
    going = [*edits.removed, *edits.replaced]
    stays = {node_id: schema for node_id, schema in existing.items() if node_id not in going}
    new_names = {f"new_{name}": name for name in (*edits.added, *edits.replaced.values())}
    if lacking := missed(edits, existing, {**stays, **schemas_of(new_names, request.nodes)}, language):
        return _declined(request, lacking)
    touched = [node_id for node_id in stays if values_of(request, node_id, stays, change, language, asked_only=True)]
    touched += [node_id for node_id in names if node_id in stays and node_id not in touched]
    if not touched and not edits.added and not going:
        return _declined(request, say("declined_no_change", language))
    kept = {node_id: schema for node_id, schema in stays.items() if request.previous or node_id in touched}
    ids = _fresh_ids(edits.added, existing)
    if ids:
        new = schemas_of(ids, request.nodes)
        partners = wire({**new, **stays}, fixed=list(stays), occupied=request.occupied).connections
        kept |= {op.target_node_id: stays[op.target_node_id] for op in partners if op.target_node_id in stays}
    ids |= _fresh_ids(tuple(edits.replaced.values()), {**existing, **schemas_of(ids, request.nodes)})
    contract = _contract(request, change, ids, kept, wishes, language)
    steps = [say("step_remove", language, node=id_, label=existing[id_].label) for id_ in edits.removed] + [
        say(
            "step_replace",
            language,
            node=id_,
            old=existing[id_].label,
            new=request.nodes.schemas[name].label,
        )
        for id_, name in edits.replaced.items()
    ]
    steps += [say("step_set", language, where=f"{id_}.label", value=name) for id_, name in names.items()]
    return contract.model_copy(update={"removals": going, "steps": [*steps, *contract.steps]})


def _fix(verdict: Verdict | None) -> str | None:
    """What a judge wants changed; general advice is none of the person's words and is not read like them."""
    return verdict.fix if verdict and not verdict.done and not is_advice(verdict.fix) else None


def _contract(
    request: PlanRequest,
    reading: Reading,
    new: Mapping[str, str],
    kept: Mapping[str, NodeSchema],
    wishes: list[str],
    language: str,
) -> PlanContract:
    added = schemas_of(new, request.nodes)
    values = [
        (f"{node_id}.{name}", value)
        for nodes, asked_only in ((added, False), (kept, True))
        for node_id in nodes
        for name, value in values_of(request, node_id, nodes, reading, language, asked_only=asked_only).items()
    ]
    changed = [
        SetParam(node_id=place.partition(".")[0], param_name=place.partition(".")[2], value=v) for place, v in values
    ]
    credentials = required_types(added.values(), request.credential_types)
    credentials += nested_types(changed, request.nodes.schemas, request.credential_types) if kept else []
    to_add = [schema.label for node_id, schema in added.items() if not _in_pattern(request, node_id, schema)]
    steps = [say("step_add", language, nodes=", ".join(to_add))] if to_add else []
    steps += [_value_step(where, value, language) for where, value in values]
    steps += [say("step_credential", language, type=name) for name in credentials]
    nodes = {**kept, **added}
    tests = [
        TestCase(id=f"t{number}", turns=[question])
        for number, question in enumerate(describing.questions(reading, nodes, language), start=1)
    ]
    wanted = describing.short(wishes[-1] if wishes and kept else request.requirement)
    return PlanContract(
        goal=say("goal_change", language, requirement=wanted) if kept else wanted,
        operation=request.intent.operation,
        flow_name=request.previous.flow_name if request.previous else request.intent.title,
        nodes=[
            PlannedNode(
                node_id=node_id,
                node_name=schema.name,
                purpose=describing.purpose(schema, language),
                existing=node_id in kept or _in_pattern(request, node_id, schema),
            )
            for node_id, schema in nodes.items()
        ],
        steps=steps + [f"{WISH}{wish}" for wish in wishes],
        credential_requirements=_merged(request, credentials),
        tests=tests,
        criteria=[
            Criterion(id=f"c{number}", text=text, tests=[test.id for test in tests])
            for number, text in enumerate(describing.criteria(reading, added or nodes, language), start=1)
        ],
        placeholders=describing.placeholders(dict(values)),
    )


def _in_pattern(request: PlanRequest, node_id: str, schema: NodeSchema) -> bool:
    return request.pattern is not None and request.pattern.nodes.get(node_id) == schema.name


def _merged(request: PlanRequest, credentials: list[str]) -> list[str]:
    """Credentials that an earlier plan of this flow needed are still needed."""
    earlier = request.previous.credential_requirements if request.previous and existing_nodes(request) else []
    return list(dict.fromkeys([*earlier, *credentials]))


def _value_step(where: str, value: Any, language: str) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(shown) > _LONGEST_SHOWN_VALUE:
        return say("step_set_long", language, where=where, length=len(shown))
    return say("step_set", language, where=where, value=shown)


def _declined(request: PlanRequest, reason: str) -> PlanContract:
    return PlanContract(
        goal=describing.short(request.requirement),
        operation=request.intent.operation,
        flow_name=request.intent.title,
        declined=reason,
    )


def answer(request: PlanRequest, language: str) -> PlanContract:
    """A question about a flow, answered by its summary."""
    known = request.flow_summary
    return PlanContract(
        goal=describing.short(request.requirement),
        operation="question",
        flow_name=request.intent.title,
        answer=say("answer_flow", language, summary=known) if known else say("answer_none", language),
    )


def _fresh_ids(
    names: Sequence[str], existing: Mapping[str, NodeSchema], pattern: Pattern | None = None
) -> dict[str, str]:
    ids: dict[str, str] = {}
    for name, reused in zip(names, reused_ids(names, pattern), strict=True):
        if reused is not None:
            ids[reused] = name
            continue
        number = 0
        while (node_id := f"{name}_{number}") in ids or node_id in existing or (pattern and node_id in pattern.nodes):
            number += 1
        ids[node_id] = name
    return ids
