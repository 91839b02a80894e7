"""Corrections of a plan by code, and the problems left for the model."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from flowise_dev_agent.knowledge.credential_requirements import required_types
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.parsing import UnusableOutputError
from flowise_dev_agent.patch import KIND_OF_CATEGORY, GraphIR, NodeSchema
from flowise_dev_agent.patch.model.agentflow import AGENTFLOW_CATEGORY, BRANCHES_FROM
from flowise_dev_agent.patch.model.equal_values import held
from flowise_dev_agent.patch.model.nested import CREDENTIAL_KEY, parse_path, value_at
from flowise_dev_agent.patch.model.suggest import ALIKE, closest
from flowise_dev_agent.planning.plan_findings import lost_texts, unclear_addresses
from flowise_dev_agent.planning.planned_lines import checked_lines
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.planning.requests import PatchRequest, PlanRequest
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import (
    BESIDE_NODES,
    AmendAnswer,
    FlowKind,
    NamedConnection,
    Part,
    PartAccount,
    Plan,
    PlannedNode,
    PlannedValue,
)
from flowise_dev_agent.texts import text

#: Characters of the ids that a problem names.
_IDS_CHARS: Final = 500
_GO_ON: Final = (
    "`declined` asks a question, and the person wants no more questions. Plan with what is known: mark what you choose "
    "as `assumed` with what you chose, and name in `placeholders` what only the person can give."
)


def checked_plan(plan: Plan, request: PlanRequest, accounts: Sequence[PartAccount] = ()) -> Plan:
    """Plan corrected by known facts: operation, spelling of node names, credential types.

    A plan that cannot be used comes back with all its problems, those of its `accounts` included.
    """
    update: dict[str, Any] = {}
    if _only_answers(plan, request):
        return plan.model_copy(update={"operation": "question", "credential_requirements": []})
    if plan.asks and request.goes_on:
        raise UnusableOutputError([_GO_ON])
    if plan.declined or request.intent.operation == "question":
        if not plan.declined and not plan.answer:
            raise UnusableOutputError(["This is a question about a flow: put what you found into `answer`."])
        return plan.model_copy(update=update | {"nodes": [], "credential_requirements": []})
    as_it_is = request.intent.operation == "copy" and not plan.removals
    problems: list[str] = []
    if request.previous:
        plan = _with_former(plan, request.previous)
    if not (plan.nodes or plan.changes or plan.set_beside or plan.new_name or as_it_is):
        problems.append("`nodes` is empty. List the nodes to add or to change, or fill `declined`.")
    nodes: list[PlannedNode] = []
    new = []
    is_new = request.intent.operation == "create" and not request.flow.existing
    pattern = request.pattern.nodes if request.pattern else {}
    earlier = {node.node_id for node in request.previous.nodes} if request.previous else set[str]()
    done = (
        {id_ for id_ in request.previous.removals if id_ not in request.flow.existing}
        if request.previous
        else set[str]()
    )
    former = request.previous.disconnections if request.previous else ()
    lines, no_lines = _lines_that_go(plan.disconnections, request.flow.graph, former)
    problems += no_lines
    removals = [id_ for id_ in plan.removals if id_ not in done]
    plan = plan.model_copy(update={"removals": removals, "disconnections": lines})
    for node in plan.nodes:
        schema = request.nodes.get(node.node_name)
        if schema is None:
            problems.append(_no_such_type(node, request.nodes))
            continue
        if any(node.node_id == other.node_id for other in nodes):
            problems.append(f"The node id '{node.node_id}' occurs twice.")
        from_pattern = node.existing and pattern.get(node.node_id) == schema.name
        there = request.flow.existing.get(node.node_id)
        # A model that revises its plan need not know which nodes are already written.
        existing = (node.existing and (from_pattern or there is not None)) or (
            there == schema.name and node.node_id in earlier
        )
        nodes.append(node.model_copy(update={"node_name": schema.name, "existing": existing}))
        if not existing or from_pattern:
            new.append(schema)
    problems += _unknown_ids(plan, nodes, request.nodes, request.flow.existing)
    kinds: set[str] = {_kind(request.nodes.schemas[node.node_name]) for node in nodes}
    if request.target_kind and request.intent.operation != "create":
        kinds.add(request.target_kind)
    if kinds == {"CHATFLOW", "MULTIAGENT"} and request.target_kind == "MULTIAGENT":
        # Models and tools of a sequential flow are nodes of their own.
        kinds = {"MULTIAGENT"}
    if len(kinds) > 1:
        problems.append(
            "FLOW_KIND_MIX: a flow consists of nodes of the category Agent Flows only, or of none of them. "
            "In an agentflow, models and tools are settings of its steps (`llmModel`, `agentTools`), not nodes."
        )
    elif is_new and "MULTIAGENT" in kinds:
        problems.append("FLOW_KIND_MIX: sequential agents and teams are changed only. Plan an agentflow instead.")
    elif kinds == {"AGENTFLOW"} and not pattern:
        plan = plan.model_copy(update={"nodes": nodes, "flow_kind": "AGENTFLOW"})
        update["connections"], no_lines = checked_lines(plan, request.flow.graph, request.nodes.schemas)
        problems += no_lines
    else:
        # The types of the nodes tell the lines of new ones.
        there = {*request.flow.existing}
        update["connections"] = [one for one in plan.connections if {one.source, one.target} <= there]
    if problems:
        raise UnusableOutputError([*problems, *accounted(plan, accounts, request)[1]])
    if kinds:
        update["flow_kind"] = kinds.pop()
    holds_more = any(request.nodes.schemas[node.node_name].category == AGENTFLOW_CATEGORY for node in nodes)
    # The schema of such a node does not say which models and tools it holds: trust the plan.
    takers = request.nodes.schemas.values() if holds_more else new
    known = {name for schema in takers for name in schema.credential_names}
    named = (name for name in plan.credential_requirements if name in known)
    required = list(dict.fromkeys([*required_types(new, request.credential_types), *named]))
    update |= {"nodes": nodes, "credential_requirements": required}
    return plan.model_copy(update=update)


def _with_former(plan: Plan, previous: Plan) -> Plan:
    """Plan with what the one before said and it leaves out: settings beside the nodes, the lines of the same steps."""
    is_same = {node.node_id for node in plan.nodes} == {node.node_id for node in previous.nodes}
    beside = {name: getattr(previous, name) for name in BESIDE_NODES if getattr(plan, name) is None}
    if is_same and plan.new_nodes and not (plan.connections or plan.disconnections):
        lines = {"connections": previous.connections, "disconnections": previous.disconnections}
        plan = plan.model_copy(update=lines)
    return plan.model_copy(update=beside)


def _lines_that_go(
    named: Sequence[NamedConnection], graph: GraphIR, former: Sequence[NamedConnection]
) -> tuple[list[NamedConnection], list[str]]:
    """Lines of a flow that are to go, each once with its input and a step's branch, and problems with those that it
    does not have. Those that were taken away before are left out.
    """
    lines: list[NamedConnection] = []
    problems: list[str] = []
    gone = {(one.source, one.target) for one in former}
    for wanted in named:
        ends = (wanted.source, wanted.target)
        source = graph.node(wanted.source)
        step = source if source and source.is_agentflow else None
        outputs = step.outputs if step and len(step.outputs) > 1 else ()
        branch = step.output_called(wanted.output) if step and outputs and wanted.output else None
        if outputs and wanted.output and branch is None:
            names = ", ".join(output.label for output in outputs)
            problems.append(f"`disconnections`: '{ends[0]}' has no branch {wanted.output!r}, only {names}.")
            continue
        there = [
            edge
            for edge in graph.edges
            if (edge.source, edge.target) == ends and (branch is None or edge.output_name == branch.name)
        ]
        inputs = [edge.input_name for edge in there]
        chosen = [
            edge
            for edge in there
            if not (wanted.input and edge.input_name) or edge.input_name.casefold() == wanted.input.casefold()
        ]
        for edge in chosen:
            output = edge.output_name if outputs else "" if step else wanted.output
            line = wanted.model_copy(update={"output": output, "input": edge.input_name})
            lines += [] if line in lines else [line]
        if inputs and not chosen:
            into = ", ".join(f"`{one}`" for one in dict.fromkeys(inputs))
            problems.append(
                f"`disconnections`: no line leads from '{ends[0]}' into `{wanted.input}` of '{ends[1]}', "
                f"only into {into}."
            )
        elif not inputs and ends not in gone:
            problems.append(f"`disconnections`: no line leads from '{ends[0]}' to '{ends[1]}'.")
    return lines, problems


def _only_answers(plan: Plan, request: PlanRequest) -> bool:
    """True for the answer to a question about a flow that was taken for a change, before anything was planned."""
    plans = plan.nodes or plan.changes or plan.set_beside or plan.declined
    return bool(plan.answer) and not plans and bool(request.flow.existing) and request.previous is None


def accounted(plan: Plan, accounts: Sequence[PartAccount], request: PlanRequest) -> tuple[list[Part], list[str]]:
    """Account for each part of the requirement: (parts with their state, problems for the model)."""
    if plan.declined or plan.answer is not None:
        state, reason = ("not_possible", plan.declined) if plan.declined else ("covered", "")
        return [part.model_copy(update={"state": state, "reason": reason}) for part in request.parts], []
    was_there = set(request.flow.existing) - {node.node_id for node in plan.nodes} - {*plan.removals, *plan.kept}
    was_there -= {end for one in plan.disconnections for end in (one.source, one.target)}
    earlier = {*request.previous.removals} if request.previous else set[str]()
    ids = {*request.flow.existing, *(node.node_id for node in plan.nodes)}
    fields = {f"{value.node_id}.{value.param}" for value in plan.values}
    fields |= plan.set_beside
    served: dict[str | None, list[str]] = {}
    for value in plan.values:
        served.setdefault(value.part, []).append(f"{value.node_id}.{value.param}")
    by_id = {account.id: account for account in accounts}
    parts: list[Part] = []
    problems: list[str] = []
    for part in request.parts:
        account = by_id.get(part.id)
        if account is None and part.id in served:
            account = PartAccount(id=part.id, state="covered")
        if account is None:
            problems.append(f"`parts` says nothing about {part.id}: {shortened(part.quote, 120)!r}.")
            parts.append(
                part.model_copy(update={"state": "not_understood", "reason": text("plan.reason.not_mentioned")})
            )
            continue
        nodes = [id_ for id_ in account.nodes if id_ in ids]
        own = served.get(part.id, []) if account.state == "covered" else []
        values = list(dict.fromkeys([*(field for field in account.values if field in fields), *own]))
        state, reason = account.state, account.reason.strip()
        # A node that the plan leaves alone shows nothing, unless the reason says why it may stay.
        does = [id_ for id_ in nodes if id_ not in was_there or reason]
        shown = does or values or earlier.intersection(account.nodes) or plan.renames(part)
        shown = shown or request.intent.operation == "copy"
        if state == "covered" and not shown:
            if not reason:
                problems.append(
                    f"`parts`: {part.id} is covered, but names no value and no new, changed, removed or kept node "
                    "that does it. Where the flow does it already, or nothing has to be done, say so in `reason`."
                )
            state, reason = "assumed", reason or text("plan.reason.not_shown")
        elif state != "covered" and not reason:
            problems.append(f"`parts`: {part.id} is {state}, but has no reason.")
        update = {"state": state, "reason": reason, "nodes": nodes, "values": values}
        parts.append(part.model_copy(update=update))
    return parts, problems


def is_done_by_values(request: PatchRequest) -> bool:
    """True if the plan only sets values of existing nodes and names them all: then code makes the ops.

    False where something may be left to do: a connection, a credential, a branch, code with samples, or a node, a title
    or a part of the requirement that no value covers.
    """
    plan, base = request.plan, request.flow.graph
    if request.seed or request.findings or plan.removals or plan.connections or plan.disconnections:
        return False
    changed = {value.node_id for value in plan.values}
    if request.repairs_values:
        # The plan of a repair lists the nodes that were written with it before.
        changed |= {node.node_id for node in plan.nodes if node.existing}
    if not changed or not all(node.existing and node.node_id in changed for node in plan.nodes):
        return False
    if any(node.label and (old := base.node(node.node_id)) and old.label != node.label for node in plan.nodes):
        return False
    shown = changed.union(plan.kept)
    if not all(shown.issuperset(part.nodes) for part in plan.parts if part.state == "covered" and not part.values):
        return False
    new = [value for value in plan.values if not stands(value, base)]
    return bool(new) and all(_is_plain(value, request) for value in new)


def _is_plain(value: PlannedValue, request: PatchRequest) -> bool:
    """True if setting the value requires no other change of the flow."""
    name = request.flow.existing.get(value.node_id, "")
    schema, steps = request.nodes.get(name), parse_path(value.param)
    if schema is None or not steps:
        return False
    root = str(steps[0])
    if len(steps) > 1 and root.endswith("Config"):
        return steps[-1] != CREDENTIAL_KEY
    entries = [entry for entry in schema.input_definitions if entry["name"] == root]
    chosen = {part["name"] for entry in entries for part in entry.get("array") or () if part.get("loadConfig")}
    node = request.flow.graph.node(value.node_id)
    if len(steps) > 2 and node and value_at(node.inputs, steps[:2]) is not None and steps[-1] != CREDENTIAL_KEY:
        # A field of a row that is there adds no branch and no tool.
        return steps[2] not in chosen
    is_code = any(entry["type"] == "code" for entry in entries)
    return bool(entries) and not (chosen or is_code or BRANCHES_FROM.get(name) == root)


def stands(value: PlannedValue, base: GraphIR) -> bool:
    """True if the flow already has the value."""
    node, steps = base.node(value.node_id), parse_path(value.param)
    old = value_at(node.inputs, steps) if node and steps else None
    return str(value.value) in str(old) if value.mode == "append" else held(old, value.value)


def checked_amendment(answer: AmendAnswer, request: PatchRequest) -> AmendAnswer:
    """Amendment with corrected spelling of node types."""
    taken_back = request.plan.new_nodes & {*answer.removals}
    planned = [node for node in request.plan.nodes if node.node_id not in taken_back]
    problems: list[str] = []
    nodes: list[PlannedNode] = []
    for node in answer.nodes:
        schema = request.nodes.get(node.node_name)
        if schema is None:
            problems.append(_no_such_type(node, request.nodes))
            continue
        kind = request.plan.flow_kind
        if _kind(schema) != kind and (_kind(schema), kind) != ("CHATFLOW", "MULTIAGENT"):
            problems.append(f"FLOW_KIND_MIX: {schema.name} does not belong into a flow of the kind {kind}.")
        nodes.append(
            node.model_copy(update={"node_name": schema.name, "existing": node.node_id in request.flow.existing})
        )
    problems += _unknown_ids(answer, [*planned, *nodes], request.nodes, request.flow.existing, taken_back)
    problems += [finding.text for finding in lost_texts(answer.values, request)]
    lines = answer.connections
    if request.plan.flow_kind == "AGENTFLOW" and not problems:
        now = planned_flow(request.plan, request.flow.graph, request.nodes.schemas).graph
        gone, no_lines = _lines_that_go(answer.disconnections, now, request.plan.disconnections)
        problems += no_lines
        answer = answer.model_copy(update={"disconnections": gone})
        drawn = [
            one
            for one in request.plan.connections
            if not any(cut.takes(one) for cut in gone) and not {one.source, one.target} & taken_back
        ]
        whole = request.plan.model_copy(
            update={
                "nodes": [*planned, *nodes],
                "removals": [*request.plan.removals, *(id_ for id_ in answer.removals if id_ not in taken_back)],
                "connections": [*drawn, *lines],
                "disconnections": [*request.plan.disconnections, *answer.disconnections],
                "values": [*request.plan.values, *answer.values],
            }
        )
        checked, no_lines = checked_lines(whole, request.flow.graph, request.nodes.schemas)
        lines = [one for one in checked if one not in drawn]
        problems += no_lines
    changed = answer.nodes or answer.removals or answer.values or answer.new_tools
    if not (changed or answer.connections or answer.disconnections):
        problems.append("`amend` must say in `nodes`, `removals`, `values` or `connections` what the plan lacks.")
    if problems:
        raise UnusableOutputError(problems)
    return answer.model_copy(update={"nodes": nodes, "connections": lines})


def _no_such_type(node: PlannedNode, store: NodeStore) -> str:
    near = ", ".join(store.suggest(node.node_name))
    return f"There is no node type '{node.node_name}'." + (f" Close names: {near}." if near else "")


def _kind(schema: NodeSchema) -> FlowKind:
    return KIND_OF_CATEGORY.get(schema.category, "CHATFLOW")


def _unknown_ids(
    plan: Plan | AmendAnswer,
    nodes: Sequence[PlannedNode],
    store: NodeStore,
    existing: Mapping[str, str],
    taken_back: Collection[str] = (),
) -> list[str]:
    """Problems with ids and params that neither the plan nor the flow has; `taken_back` may be removed too."""
    types = {**existing, **{node.node_id: node.node_name for node in nodes}}
    known = shortened(", ".join(existing), _IDS_CHARS) or "no nodes"
    problems = [
        f"`removals` names '{node_id}', which is not in the flow. It has: {known}."
        for node_id in plan.removals
        if node_id not in existing and node_id not in taken_back
    ]
    for value in plan.values:
        schema = store.get(types.get(value.node_id, ""))
        if value.node_id not in types:
            problems.append(f"`values` names '{value.node_id}', which is neither planned nor in the flow.")
        elif schema is not None and (problem := _unknown_param(schema, value.param)):
            problems.append(f"`values` of '{value.node_id}': {problem}")
    return [*problems, *(one.text for one in unclear_addresses(plan.values, types, store.schemas))]


def _unknown_param(schema: NodeSchema, path: str) -> str | None:
    """Problem with the first step of a path; fields inside a model or tool are checked at compilation."""
    root = re.split(r"[.\[]", path, maxsplit=1)[0]
    names = [entry["name"] for entry in schema.input_definitions]
    names += [tab["name"] for entry in schema.input_definitions for tab in entry.get("tabs") or ()]
    if root in names or root.removesuffix("Config") in names or root == "credential":
        return None
    missing = f"{schema.name} has no field '{root}'."
    if near := closest(root, names, least=ALIKE):
        return f"{missing} Close names: {', '.join(near)}."
    return f"{missing} Leave it out." + (f" Its fields: {', '.join(names[:12])}." if names else "")
