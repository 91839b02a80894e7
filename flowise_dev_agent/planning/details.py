"""Details of a plan for its approval: the plan compared with the current flow, with the names of its parts."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from flowise_dev_agent.patch import GraphIR, Schemas
from flowise_dev_agent.patch.model.attached_files import tool_mark
from flowise_dev_agent.patch.model.equal_values import same_value
from flowise_dev_agent.patch.model.field_kinds import FieldKind, kind_of
from flowise_dev_agent.patch.model.flow_data import InputEntry
from flowise_dev_agent.patch.model.javascript import reaches_out
from flowise_dev_agent.patch.model.labels import field_label, words_of
from flowise_dev_agent.patch.model.nested import parse_path, value_at
from flowise_dev_agent.patch.model.reach import definition_of, reached
from flowise_dev_agent.patch.model.sequential import NAMES, name_of
from flowise_dev_agent.planning.added_text import with_added_text
from flowise_dev_agent.planning.flow_outline import branches_of_lines, flow_outline
from flowise_dev_agent.planning.permissions import capability_words
from flowise_dev_agent.planning.plan_findings import FormerText, former_texts, is_text, replaced_text
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.planning.to_do import to_do
from flowise_dev_agent.redaction import MASK, looks_secret, masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Plan, PlannedValue
from flowise_dev_agent.schemas.shown_plan import NamedNode, ShownPlan, ShownValue
from flowise_dev_agent.testing.simulation import simulated
from flowise_dev_agent.texts import say_in, translated

_ACTION: Final = 100
_IN_ROW: Final = re.compile(r"(.+)\[\d+\]\.\w+$")
#: Words of code that may call an address, also in a roundabout way.
_CALLS: Final = re.compile(
    r"fetch|axios|require|import|https?\s*\.|request|socket|eval|Function|globalThis|process|\[\s*['\"`]"
)


def plan_details(
    plan: Plan,
    base: GraphIR,
    language: str = "en",
    *,
    schemas: Schemas | None = None,
    names: Mapping[str, str] | None = None,
    credentials: Iterable[str] = (),
) -> ShownPlan:
    """Planned values next to the current ones, the outline of the flow, and names of nodes, types and what `names` has
    by id; possible secrets are not shown. `credentials` are types that the person chooses after the approval.
    """
    schemas = schemas or {}
    titles = titles_of(plan, base, schemas)
    after = planned_flow(plan, base, schemas).graph
    new = {tool_mark(tool.name): tool.name for tool in plan.new_tools}
    known = {**{name: schema.label for name, schema in schemas.items()}, **new, **(names or {}), **titles}
    former = former_texts(plan, base, schemas)
    compared = [
        _shown(value, plan.values, titles, base, schemas, former)
        for value in plan.values
        if value.node_id not in plan.removals
    ]
    values = [one for one in compared if one]
    used = f"{_used(plan, base)} {' '.join(json.dumps(one.old) for one in values)}"
    in_text = _in_code_only(plan, base, schemas)
    harmless = [tool_mark(tool.name) for tool in plan.new_tools if not reaches_out(tool.code)]
    return ShownPlan(
        values=values,
        removed=_named(plan.removals, base),
        kept=_named(plan.kept, base),
        to_do=[translated(one, language) for one in to_do(plan, after, titles, schemas, ())],
        allows=[
            *([say_in(language, "plan.goal.rename", flow=plan.flow_name, name=plan.new_name)] if plan.new_name else []),
            *capability_words(
                plan.capability,
                language,
                {**known, **_typed(plan, base, titles, schemas)},
                in_text,
                branches_of_lines(plan, base, after, titles, language),
                {*credentials},
            ),
        ],
        hosts_in_text=in_text,
        outline=flow_outline(
            plan,
            base,
            after,
            titles,
            {one.node_id for one in values},
            language,
        )
        if plan.nodes
        else [],
        names={id_: name for id_, name in known.items() if id_ in titles or id_ in used},
        simulated=[
            shortened(masked(one), _ACTION)
            for one in simulated(after, schemas, plan.tests, harmless=harmless).actions()
        ],
        addresses=simulated(after, schemas, plan.tests, real=(), harmless=harmless).addresses(),
    )


def _in_code_only(plan: Plan, base: GraphIR, schemas: Schemas) -> list[str]:
    """Hosts of the plan that stand only in code that has no word for a call."""
    types = {node.id: node.name for node in base.nodes} | {node.node_id: node.node_name for node in plan.nodes}
    quiet, called = set[str](), set[str]()
    for value in plan.values_and_code:
        schema = schemas.get(types.get(value.node_id, ""))
        kind = kind_of(value.param, definition_of(schema, value.param), schema.name if schema else "")
        only_text = kind is FieldKind.CODE and not _CALLS.search(str(value.value))
        (quiet if only_text else called).update(one.origin for one in reached(value.param, value.value, schema))
    return sorted(quiet - called)


def titles_of(plan: Plan, base: GraphIR, schemas: Schemas) -> dict[str, str]:
    """Titles of the nodes of the flow and of the plan, by id; those that are equal are numbered."""
    found = {node.id: masked(name_of(node)[1] or node.label or node.name) for node in base.nodes if not node.is_note}
    named = {value.node_id: str(value.value) for value in plan.values if value.param in NAMES and value.value}
    for node in plan.nodes:
        type_ = schemas[node.node_name].label if node.node_name in schemas else node.node_name
        found[node.node_id] = node.label or named.get(node.node_id) or found.get(node.node_id) or type_
    same: dict[str, list[str]] = {}
    for id_, title in found.items():
        same.setdefault(title, []).append(id_)
    return {
        id_: f"{title} {same[title].index(id_) + 1}" if len(same[title]) > 1 else title for id_, title in found.items()
    }


def _typed(plan: Plan, base: GraphIR, titles: Mapping[str, str], schemas: Schemas) -> dict[str, str]:
    """Titles of nodes with their types, which a title cannot hide."""
    types = {node.id: node.name for node in base.nodes} | {node.node_id: node.node_name for node in plan.nodes}
    labels = {id_: schemas[name].label for id_, name in types.items() if id_ in titles and name in schemas}
    return {
        id_: titles[id_] if titles[id_].startswith(label) else f"{titles[id_]} ({label})"
        for id_, label in labels.items()
    }


def _used(plan: Plan, base: GraphIR) -> str:
    """Text in which the ids and types occur that a plan uses."""
    kept = [*plan.kept, *plan.removals, *(node.name for node in base.nodes)]
    return " ".join([plan.model_dump_json(include={"nodes", "values", "credential_requirements"}), *kept])


def _shown(
    value: PlannedValue,
    planned: Sequence[PlannedValue],
    titles: Mapping[str, str],
    base: GraphIR,
    schemas: Schemas,
    former: Sequence[FormerText],
) -> ShownValue | None:
    """Value beside the one that the flow holds now; None if it stays."""
    node, steps = base.node(value.node_id), parse_path(value.param)
    stored: JsonValue = value_at(node.inputs, steps) if node and steps else None
    # A new node's text stands beside those of the node that it replaces.
    before = [one for one in former if one.successor == value.node_id and is_text(value.param)] if node is None else []
    if before:
        stored = "\n".join(dict.fromkeys(one.text for one in before))
    new = with_added_text(stored, [str(value.value)]) if value.mode == "append" else value.value
    if stored not in (None, "") and same_value(stored, new):
        return None
    old = None if stored in (None, "") else stored
    holder = value.param.partition("Config.")[0]
    chosen = next((one.value for one in planned if (one.node_id, one.param) == (value.node_id, holder)), None)
    component = chosen or (value_at(node.inputs, parse_path(holder) or ()) if node else None)
    entries, param = _field_of(value, node.name if node else "", str(component), schemas)
    row = _IN_ROW.match(param)
    said = f"{param} {json.dumps([old, new])}"
    words = words_of(entries, row[1] if row else param)
    return ShownValue(
        node_id=value.node_id,
        node=titles.get(value.node_id, value.node_id),
        param=value.param,
        label=field_label(entries, param),
        list_label=field_label(entries, row[1]) if row else "",
        words={name: label for name, label in words.items() if name.rpartition("=")[2] in said},
        old=_safe(value.param, old),
        new=_safe(value.param, new),
        loses_text=old is not None and (replaced_text(value, base) is not None or any(one.lost for one in before)),
    )


def _field_of(value: PlannedValue, type_: str, component: str, schemas: Schemas) -> tuple[Sequence[InputEntry], str]:
    """Definitions that a field is one of, none if they are not known, and its path in them.

    `component` is the node type that a field in the settings of a chosen node belongs to.
    """
    holder, settings, inner = value.param.partition("Config.")
    name, param = (
        (component, inner) if settings and holder else (type_ or value.node_id.rpartition("_")[0], value.param)
    )
    return schemas[name].input_definitions if name in schemas else (), param


def _safe(param: str, value: JsonValue) -> JsonValue:
    return MASK if value is not None and looks_secret(param.rpartition(".")[2], value) else value


def _named(ids: list[str], base: GraphIR) -> list[NamedNode]:
    return [
        NamedNode(node_id=id_, node_name=node.name if node else "", label=node.label if node else "")
        for id_ in ids
        for node in [base.node(id_)]
    ]
