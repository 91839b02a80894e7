"""Check a plan before its approval: compile its nodes and values, and look up the resources that it needs on the
server.

Each problem found here would stop the change after the approval, where only another approval could fix it.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from flowise_dev_agent.errors import FlowiseError, PatchError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.patch import (
    CHOSEN_BY_ID,
    CUSTOM_TOOL,
    TOOL,
    AddNode,
    Finding,
    GraphIR,
    InputEntry,
    NodeSchema,
    OptionEntry,
    RemoveNode,
    Schemas,
    compile_ops,
    validate_flow,
)
from flowise_dev_agent.patch.model.attached_files import is_stand_in, new_store
from flowise_dev_agent.patch.model.definitions import type_set
from flowise_dev_agent.patch.model.findings import warning
from flowise_dev_agent.patch.model.nested import nested_components
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.validate.context import IN_MEMORY
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.made_with_flow import plan_with_ids, stand_ins
from flowise_dev_agent.planning.passes.coverage import NOT_ON_THE_SERVER, VARIABLE_NOT_BY_CALLER
from flowise_dev_agent.planning.prompt_writing import INSTRUCTIONS
from flowise_dev_agent.planning.values import with_files_to_come, with_planned_values
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Plan, PlannedValue

#: The code of a finding on what only the operator of the server can allow.
SERVER_SETTING: Final = "SERVER_SETTING_NEEDED"
#: The code of a finding on a package that no API of the server tells of.
SERVER_PACKAGE: Final = "SERVER_PACKAGE_NEEDED"
#: Node types that Flowise lists also where the package is not built that each question needs.
_PACKAGES: Final[Mapping[str, str]] = {"faiss": "faiss-node"}
#: Finding codes that depend on connections and credentials, which a plan does not have.
_LATER: Final = frozenset(
    {"NESTED_CREDENTIAL_UNBOUND", "CREDENTIAL_UNBOUND", "VARIABLE_NOT_SET", "NOT_AN_ID", "REF_WITHOUT_EDGE"}
)
#: Warnings on a flow that a plan should not have: its values alone cause them.
_ADVISED: Final = frozenset(
    {
        *("UNKNOWN_VARIABLE", "HTTP_BODY_BREAKS", "WEBHOOK_FIELD_OPTIONAL", "PROMPT_VALUE_UNUSED", SERVER_SETTING),
        *("FORM_SWITCH_OPEN", "MISSING_IS_NOT_EMPTY", "VALUE_IGNORED"),
    }
)
#: Type of what a document loader gives.
_DOCUMENT: Final = "Document"
#: Most resources of the server listed in one finding.
_NAMES_SHOWN: Final = 30
_NAME_CHARS: Final = 80
_GIVERS_SHOWN: Final = 4
#: Seconds for all lists together; without them the resources are not checked.
_LOOKUP_SECS: Final = 20.0
_VARIABLE_READ: Final = re.compile(r"\$vars\.([A-Za-z_]\w{0,99})")
#: `overrideConfig.vars` and `"overrideConfig": {"vars"` in the person's words.
_PASSED_VARIABLES: Final = re.compile(r"overrideConfig\W{1,10}vars\b", re.IGNORECASE)
#: The code of a finding on a variable that the person has to create: no plan can put anything in its place.
VARIABLE_TO_CREATE: Final = "VARIABLE_TO_CREATE"
#: Lists of node types that only the server has, by the type that lists them.
_OWN: Final[Mapping[tuple[str, str], str]] = {
    (CUSTOM_TOOL, "listTools"): TOOL,
    ("customMcpServerTool", "listServers"): "MCP server",
}


async def feasibility(context: PlanContext) -> PlanContext:
    """Check the plan against the flow and the server, as far as possible before the approval."""
    context = context.found(_by_callers(context))
    if context.lookups is None:
        return context
    return context.found(await context.lookups.review_plan(context.plan, context.base))


async def lacking_variables(context: PlanContext) -> PlanContext:
    """Find the variables that the plan of a form reads and the server lacks; all else of a form is checked before."""
    if context.lookups is None or not context.is_open or not _variables_read(context.plan):
        return context
    found = await context.lookups.review_plan(context.plan, context.base)
    return context.found(one for one in found if one.code == VARIABLE_TO_CREATE)


async def reviewed(plan: Plan, base: GraphIR, schemas: Schemas, flowise: FlowiseClient) -> list[Finding]:
    """Findings on the nodes and values of a plan for the flow `base`; empty if the plan changes nothing."""
    if (
        plan.declined
        or plan.answer is not None
        or any(one.existing and not base.node(one.node_id) for one in plan.nodes)
    ):
        return []
    tried, findings = await asyncio.to_thread(_tried, plan, base, schemas)
    lacking: list[Finding] = []
    if tried:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOKUP_SECS):
                lacking = await _missing_resources(plan, tried, schemas, flowise)
    told = {(one.where, one.field) for one in lacking}
    return [*(one for one in findings if (one.where, one.field) not in told), *lacking]


def _tried(plan: Plan, base: GraphIR, schemas: Schemas) -> tuple[GraphIR | None, list[Finding]]:
    """Compile the plan without new connections: (flow or None, findings)."""
    try:
        graph = flow_after(plan, base, schemas)
    except PatchError as error:
        return None, [_as_advice(Finding.model_validate(one)) for one in error.details["findings"]]
    if graph is None:
        return None, []
    found = validate_flow(graph.to_flow_data(), schemas=schemas, credentials=None, kind=plan.flow_kind, unfinished=True)
    return graph, [
        *_unbuilt(plan, base),
        *unfed(plan, base, graph, schemas),
        *(
            _as_advice(one)
            for one in found
            if (one.severity == "error" or one.code in _ADVISED) and _concerns(one, plan, graph)
        ),
    ]


def _unbuilt(plan: Plan, base: GraphIR) -> Iterator[Finding]:
    """Warnings for new nodes that may not run on the server, and that the flow does not use already."""
    in_use = {node.name for node in base.nodes}
    for node in plan.nodes:
        package = _PACKAGES.get(node.node_name)
        if package and not node.existing and node.node_name not in in_use:
            yield warning(
                SERVER_PACKAGE,
                f"{node.node_name} needs the package {package}, and no API says if the server has it built.",
                where=node.node_id,
                hint="Take memoryVectorStore, which needs none, unless the person names this one.",
                package=package,
            )


def flow_after(plan: Plan, base: GraphIR, schemas: Schemas) -> GraphIR | None:
    """Flow after the plan, without its new connections; None if the plan changes nothing. Raises PatchError."""
    plan = plan_with_ids(with_files_to_come(plan, schemas), stand_ins(plan))
    ops = [
        *(
            AddNode(node_name=one.node_name, node_id=one.node_id, label=one.label or None)
            for one in plan.nodes
            if not one.existing
        ),
        *(RemoveNode(node_id=id_) for id_ in plan.removals),
    ]
    whole = with_planned_values(ops, plan, base)
    return compile_ops(base, whole, schemas).graph if whole else None


def _as_advice(finding: Finding) -> Finding:
    """Turn a finding into a warning about the plan, without a reference to an op."""
    hint = finding.hint
    if finding.code == "REQUIRED_PARAM_MISSING":
        hint = f"Add it to `values` of {finding.where}, or say in `placeholders` what the person must give."
    return finding.model_copy(update={"severity": "warning", "op_index": None, "op_type": "", "hint": hint})


def _concerns(finding: Finding, plan: Plan, graph: GraphIR) -> bool:
    """True if the finding is about a planned or missing value, independent of later connections."""
    if finding.code in _LATER or not finding.field:
        return False
    if finding.code == "UNKNOWN_VARIABLE" and "$iteration" in finding.detail:
        # A plan does not contain which steps are inside an iteration.
        return not any(node.node_name == "iterationAgentflow" for node in plan.nodes)
    if finding.code == "REQUIRED_PARAM_MISSING":
        node = graph.node(finding.where)
        is_new = any(one.node_id == finding.where and not one.existing for one in plan.nodes)
        return node is not None and is_new and finding.field != INSTRUCTIONS.get(node.name)
    return any(value.node_id == finding.where and overlap(value.param, finding.field) for value in plan.values)


def overlap(one: str, other: str) -> bool:
    """True if two field paths are equal or one contains the other."""
    return one == other or one.startswith((f"{other}.", f"{other}[")) or other.startswith((f"{one}.", f"{one}["))


# --- required connections ---------------------------------------------------------------------------------------------


def unfed(plan: Plan, base: GraphIR, graph: GraphIR, schemas: Schemas) -> Iterator[Finding]:
    """Findings for required inputs that no node can feed: of new nodes, and of nodes whose source is removed."""
    new = {node.node_id for node in plan.nodes if not node.existing}
    freed = {(edge.target, edge.input_name) for edge in base.edges if edge.source in plan.removals}
    for node in graph.nodes:
        schema = schemas.get(node.name)
        if schema is None or node.is_agentflow or node.is_note:
            continue
        for entry in schema.definitions.visible_anchors(node.inputs):
            # A store in memory has only what its loader gives it.
            is_needed = not entry.get("optional") or (node.name in IN_MEMORY and entry["type"] == _DOCUMENT)
            if not is_needed or not (node.id in new or (node.id, entry["name"]) in freed):
                continue
            types = type_set(entry["type"])
            if any(types & _gives(schemas.get(one.name)) for one in graph.nodes if one.id != node.id):
                continue
            yield Finding(
                code="INPUT_NOT_FED",
                severity="warning",
                detail=f"{node.id} needs a {entry['type']} for `{entry['name']}`, and nothing in the plan gives one.",
                where=node.id,
                field=entry["name"],
                params={"type": entry["type"]},
                hint=f"Add a node that gives it, such as {_givers(types, schemas)}.",
            )


def is_settled(finding: Finding, plan: Plan, schemas: Schemas) -> bool:
    """True for a warning on the flow that the plan told, or that only nodes beyond the plan would answer."""
    if finding.key in {one.key for one in plan.findings}:
        return True
    match finding.code:
        case "VARIABLE_NOT_ON_SERVER":
            told = {str(one.params["name"]) for one in plan.findings if one.code == VARIABLE_TO_CREATE}
            return str(finding.params["variable"]) in told
        case "VECTOR_STORE_WITHOUT_DOCUMENT":
            names = (node.node_name for node in plan.nodes if not node.existing)
            return not any(_DOCUMENT in _gives(schemas.get(name)) for name in names)
        case _:
            return False


def _gives(schema: NodeSchema | None) -> set[str]:
    return {name for output in schema.outputs for name in output.base_classes} if schema else set()


def _givers(types: frozenset[str], schemas: Schemas) -> str:
    names = [name for name, one in schemas.items() if types & _gives(one) and not one.deprecated]
    return ", ".join(names[:_GIVERS_SHOWN])


# --- what the server must have ----------------------------------------------------------------------------------------


class _Choice(NamedTuple):
    """Field that selects a resource of the server, with its planned value."""

    where: str
    field: str
    what: str
    #: Node type that lists the resources, and its method.
    lists: tuple[str, str]
    value: str


async def _missing_resources(plan: Plan, graph: GraphIR, schemas: Schemas, flowise: FlowiseClient) -> list[Finding]:
    """Findings for resources that the plan uses and the server lacks: stores, flows, assistants, tools, variables."""
    found: list[Finding] = []
    options: dict[tuple[str, str], list[OptionEntry] | None] = {}
    for choice in _choices(plan, graph, schemas):
        if choice.lists not in options:
            options[choice.lists] = await _options(flowise, *choice.lists)
        there = options[choice.lists]
        if stands_in(choice.value) or is_stand_in(choice.value):
            continue
        if there is None or choice.value.partition(":")[0] in {str(one["name"]).partition(":")[0] for one in there}:
            continue
        names = [f"{one['name']} ({_shown(str(one.get('label') or one['name']))})" for one in there]
        text = (
            f"the server has no {choice.what} {_shown(choice.value)!r}"
            if choice.value
            else f"it takes the id of a {choice.what}, and the plan names none"
        )
        found.append(
            Finding(
                code=NOT_ON_THE_SERVER,
                severity="warning",
                detail=f"`{choice.field}` of {choice.where}: {text}.",
                where=choice.where,
                field=choice.field,
                params={"value": choice.value or "-"},
                hint=_hint(choice.what, names),
            )
        )
    return [*found, *await _missing_variables(plan, flowise)]


def _hint(what: str, names: list[str]) -> str:
    placeholder = "a placeholder there that names it, for what the person will make and choose"
    if not names:
        return f"There is no {what} on the server. Plan {placeholder}."
    rest = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return (
        f"There are: {', '.join(names[:_NAMES_SHOWN])}{rest}. Take the one that is meant. If none is, plan "
        f"{placeholder}; if several may be, ask for it in `declined` with their names."
    )


def _shown(text: str) -> str:
    return shortened(text, _NAME_CHARS)


def _choices(plan: Plan, graph: GraphIR, schemas: Schemas) -> Iterator[_Choice]:
    new = {node.node_id for node in plan.nodes if not node.existing}
    for node in graph.nodes:
        params = [value.param for value in plan.values if value.node_id == node.id]
        if schema := schemas.get(node.name):
            for choice in _fields(schema, node.inputs, node.id, ""):
                is_chosen = bool(choice.value) and any(overlap(choice.field, param) for param in params)
                if is_chosen or (node.id in new and not choice.value):
                    yield choice
            for nested in nested_components(node.params, node.inputs):
                inner = schemas.get(nested.component)
                if inner and isinstance(nested.config, Mapping) and any(overlap(nested.path, one) for one in params):
                    yield from _fields(inner, nested.config, node.id, f"{nested.path}.")


def _fields(schema: NodeSchema, inputs: Mapping[str, Any], where: str, around: str) -> Iterator[_Choice]:
    """Yield the fields and row fields of a node type that select a resource, without empty optional ones."""
    for entry in schema.definitions.visible_params(inputs):
        name = str(entry["name"])
        yield from _choice(schema, entry, inputs.get(name), where, f"{around}{name}")
        rows = inputs.get(name)
        if entry["type"] == "array" and isinstance(rows, list):
            for index, row in enumerate(rows):
                for part in entry.get("array") or ():
                    if isinstance(row, Mapping):
                        place = f"{around}{name}[{index}].{part['name']}"
                        yield from _choice(schema, part, row.get(part["name"]), where, place)


def _choice(schema: NodeSchema, entry: InputEntry, value: Any, where: str, field: str) -> Iterator[_Choice]:
    method = str(entry.get("loadMethod"))
    what = CHOSEN_BY_ID.get(method) or _OWN.get((schema.name, method))
    if what is None or has_variable(value) or new_store(value) or (is_empty(value) and entry.get("optional")):
        return
    yield _Choice(where, field, what, (schema.name, method), "" if is_empty(value) else str(value))


async def _options(flowise: FlowiseClient, name: str, method: str) -> list[OptionEntry] | None:
    """Options that the server lists for a node type; None if it does not answer."""
    try:
        return await flowise.node_options(name, method)
    except FlowiseError:
        return None


def _variables_read(plan: Plan) -> dict[str, PlannedValue]:
    """Variables of the server that planned values read, by name, each with the first value that does."""
    found: dict[str, PlannedValue] = {}
    for value in plan.values:
        for name in _VARIABLE_READ.findall(json.dumps(value.value, ensure_ascii=False)):
            found.setdefault(name, value)
    return found


async def _missing_variables(plan: Plan, flowise: FlowiseClient) -> list[Finding]:
    """Findings for variables that the server lacks: the person can create them, so the plan keeps them."""
    read = _variables_read(plan)
    if not read:
        return []
    try:
        known = {str(one.get("name")) for one in await flowise.list_variables()}
    except FlowiseError:
        return []
    return [
        Finding(
            code=VARIABLE_TO_CREATE,
            severity="warning",
            detail=f"`{value.param}` of {value.node_id} reads the variable {name!r}, which the server does not have.",
            where=value.node_id,
            field=value.param,
            params={"name": name},
            hint=f"Create the variable {name!r} in Flowise. It has one value for all callers.",
        )
        for name, value in read.items()
        if name not in known
    ]


def _by_callers(context: PlanContext) -> Iterator[Finding]:
    """Findings for variables whose value the person wants to pass with each request, which Flowise does not take."""
    if not any(_PASSED_VARIABLES.search(words) for words in context.words):
        return
    for name, value in _variables_read(context.plan).items():
        yield Finding(
            code=VARIABLE_NOT_BY_CALLER,
            severity="warning",
            detail=f"`{value.param}` of {value.node_id} reads the variable {name!r}, and Flowise fills it from the "
            "server only, never from overrideConfig.vars.",
            where=value.node_id,
            field=value.param,
            params={"name": name},
            hint="Take the value from the message, from a form (`{{ $form.name }}`) or from a webhook "
            "(`{{ $webhook.body.name }}`), or mark the part as not_possible with this reason.",
        )
