"""Findings on a usable plan: they go back to the model once, and the rest is shown with the plan."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from flowise_dev_agent.forms.wiring import replacements
from flowise_dev_agent.patch import Finding, FlowNode, GraphIR, NodeSchema, Schemas
from flowise_dev_agent.patch.model.findings import warning
from flowise_dev_agent.patch.model.nested import parse_path, value_at
from flowise_dev_agent.patch.model.reach import unclear_address
from flowise_dev_agent.patch.model.references import referenced
from flowise_dev_agent.patch.model.suggest import closest
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.planning.requests import PatchRequest, PlanRequest
from flowise_dev_agent.planning.wording import one_line
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Plan, PlannedValue

#: Options of one field that are listed in full.
_OPTIONS_SHOWN: Final = 30
#: Texts for models: what a person wrote there is not lost by a change of something else.
_TEXT_FIELD: Final = re.compile(r"(?:prompt|messages?|instructions?|template|content)$", re.IGNORECASE)
#: Share of an old text's words that an edit keeps; with fewer it counts as another text.
_KEPT_SHARE: Final = 0.7


def unknown_options(plan: Plan, request: PlanRequest) -> list[Finding]:
    """Findings for planned values that are not among the options of their field."""
    types = {**request.flow.existing, **{node.node_id: node.node_name for node in plan.nodes}}
    found: list[Finding] = []
    for value in plan.values:
        schema = request.nodes.get(types.get(value.node_id, ""))
        lists = (
            [one.options for one in schema.params if one.name == value.param and one.type == "options"]
            if schema
            else []
        )
        options = list(dict.fromkeys(option for entry in lists for option in entry))
        if not all(lists) or not options or not isinstance(value.value, str) or value.value in options:
            continue
        shown = options if len(options) <= _OPTIONS_SHOWN else closest(value.value, options)
        hint = f"{'Options' if shown == options else 'Close options'}: {', '.join(shown)}."
        text = f"'{shortened(value.value, 80)}' is not an option of {value.node_id}.{value.param}."
        found.append(_finding("OPTION_UNKNOWN", text, value, hint))
    return found


def unclear_addresses(values: Iterable[PlannedValue], types: Mapping[str, str], schemas: Schemas) -> list[Finding]:
    """Findings for values with an address that readers take for different ones; `types` are those of nodes, by id."""
    return [
        Finding(
            code="ADDRESS_UNCLEAR",
            severity="error",
            detail=f"{one.node_id}.{one.param} holds an address that can be read in more than one way.",
            where=one.node_id,
            field=one.param,
            hint="Write it plainly: scheme, host, port, path.",
            params={"value": shortened(odd, 80)},
        )
        for one in values
        if (odd := unclear_address(one.param, one.value, schemas.get(types.get(one.node_id, ""))))
    ]


def lost_texts(values: Iterable[PlannedValue], request: PlanRequest | PatchRequest) -> list[Finding]:
    """Findings for texts of the flow that a planned value overwrites, and that names no part which asks for it.

    A flow that the session made itself may be repaired without the person's words.
    """
    is_plan = isinstance(request, PlanRequest)
    if (request.intent if is_plan else request.plan).operation == "create" and not request.feedback:
        return []
    parts = {part.id for part in (request.parts if is_plan else request.plan.parts)}
    return [
        _finding(
            "TEXT_REPLACED",
            f"The text that {value.node_id}.{value.param} holds now goes, and nobody asked for that.",
            value,
            "Use `mode: append` with only the new text, repeat the whole old text in `value`, or say in `part` which "
            "part asks for it.",
        )
        for value in values
        if value.part not in parts
        and (old := replaced_text(value, request.flow.graph)) is not None
        and not _is_default(old, request.flow.graph, value, request)
    ]


@dataclass(frozen=True)
class FormerText:
    """Text of a node that another one replaces. `lost`: nothing in the flow after the plan keeps it."""

    node_id: str
    field: str
    text: str
    successor: str
    lost: bool


def former_texts(plan: Plan, base: GraphIR, schemas: Schemas) -> list[FormerText]:
    """Prompts, messages and templates of the nodes that the plan replaces, without the defaults of their types."""
    removed = [node for id_ in plan.removals if (node := base.node(id_))]
    if not removed or not plan.new_nodes:
        return []
    after = planned_flow(plan, base, schemas).graph
    there = {node.id: schema for node in base.nodes if (schema := schemas.get(node.name))}
    added = {
        one.node_id: schema
        for one in plan.nodes
        if one.node_id in plan.new_nodes and (schema := schemas.get(one.node_name))
    }
    pairs = replacements(plan, there, added)
    kept = [
        one_line(text) for node in after.nodes if node.id not in plan.removals for _, text in _texts("", node.inputs)
    ]
    found: list[FormerText] = []
    for node in removed:
        successor = pairs.get(node.id) or _in_its_place(node, plan, base, after)
        defaults = {one_line(text) for text in _all_defaults(there.get(node.id))}
        for name, text in _texts("", node.inputs) if successor else ():
            field = name.removeprefix(".")
            if (
                successor
                and is_text(field)
                and text.strip()
                and not referenced(text)
                and one_line(text) not in defaults
            ):
                found.append(FormerText(node.id, field, text, successor, lost=not _keeps(kept, one_line(text))))
    return found


def _in_its_place(node: FlowNode, plan: Plan, base: GraphIR, after: GraphIR) -> str | None:
    """New step that takes over a line of a removed step."""
    if not node.is_agentflow:
        return None
    into = {edge.source for edge in base.edges if edge.target == node.id}
    out_of = {edge.target for edge in base.edges if edge.source == node.id}
    return next(
        (
            edge.target if edge.source in into else edge.source
            for edge in after.edges
            if (edge.source in into and edge.target in plan.new_nodes)
            or (edge.target in out_of and edge.source in plan.new_nodes)
        ),
        None,
    )


def texts_lost_with_nodes(plan: Plan, request: PlanRequest) -> list[Finding]:
    """Findings for texts of replaced nodes that go, where no value of the new node names a part that asks for it."""
    parts = {part.id for part in request.parts}
    asked = {value.node_id for value in plan.values if value.part in parts and is_text(value.param)}
    if request.intent.operation == "create" and not request.feedback:
        return []
    return [
        warning(
            "TEXT_REPLACED",
            f"{one.successor} replaces {one.node_id}, and nothing repeats the text of its `{one.field}`: "
            f"{shortened(one_line(one.text), 200)!r}.",
            where=one.node_id,
            field=one.field,
            hint=f"Repeat the text in `values` of {one.successor}, or say in `part` of its text which part asks for "
            "the change.",
        )
        for one in former_texts(plan, request.flow.graph, request.nodes.schemas)
        if one.lost and one.successor not in asked
    ]


def replaced_text(value: PlannedValue, base: GraphIR) -> str | None:
    """First prompt, message or template in this field that the value does not keep."""
    node, steps = base.node(value.node_id), parse_path(value.param)
    if node is None or steps is None or value.mode == "append":
        return None
    planned = [one_line(text) for _, text in _texts("", value.value)]
    stored = _texts(value.param, value_at(node.inputs, steps))
    return next(
        (text for name, text in stored if is_text(name) and text.strip() and not _keeps(planned, one_line(text))), None
    )


def _keeps(planned: Sequence[str], old: str) -> bool:
    """True if the old text is kept, or a planned text is an edit of it that keeps most of its words."""
    if old in "\n".join(planned):
        return True
    words = Counter(old.split())
    return any((words & Counter(new.split())).total() >= _KEPT_SHARE * words.total() for new in planned)


def is_text(path: str) -> bool:
    """True for a prompt, a message or a template."""
    return bool(_TEXT_FIELD.search(path.rpartition(".")[2]))


def _texts(name: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield (field, text) of a value, including its rows."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(f"{name}.{key}", item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(name, item)


def _is_default(old: str, base: GraphIR, value: PlannedValue, request: PlanRequest | PatchRequest) -> bool:
    """True if the flow's text is the default of the node type."""
    node = base.node(value.node_id)
    schemas = [schema for name in _types_at(node, value) if (schema := request.nodes.get(name))]
    last = value.param.rpartition(".")[2]
    return any(one_line(text) == one_line(old) for schema in schemas for text in _defaults(schema, last))


def _types_at(node: FlowNode | None, value: PlannedValue) -> Sequence[str]:
    """Type of the node, and of the nested component that the path leads into."""
    if node is None:
        return ()
    around = value.param.rpartition(".")[0]
    steps = parse_path(around.removesuffix("Config")) if around.endswith("Config") else None
    inside = value_at(node.inputs, steps) if steps else None
    return (node.name, inside) if isinstance(inside, str) else (node.name,)


def _all_defaults(schema: NodeSchema | None) -> Iterator[str]:
    for entry in schema.input_definitions if schema else ():
        yield from (text for _, text in _texts("", entry.get("default")))


def _defaults(schema: NodeSchema, name: str) -> Iterator[str]:
    for entry in schema.input_definitions:
        for one in (entry, *(entry.get("array") or ())):
            if one["name"] == name and isinstance(text := one.get("default"), str):
                yield text


def _finding(code: str, detail: str, value: PlannedValue, hint: str) -> Finding:
    shown = shortened(str(value.value), 80)
    return warning(code, detail, where=value.node_id, field=value.param, hint=hint, value=shown)
