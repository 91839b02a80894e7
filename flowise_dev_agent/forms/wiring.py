"""Connections of nodes by the inputs and outputs of their schemas."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.forms.step_plans import INSIDE
from flowise_dev_agent.patch import (
    Connect,
    Disconnect,
    InputAnchor,
    NodeSchema,
    OutputOption,
    PatchOp,
    Schemas,
    SetParent,
)
from flowise_dev_agent.schemas.plan import Plan

ENDING_CATEGORIES = frozenset({"Chains", "Agents", "Engine"})
#: A flow has one node of these; a new one replaces it. Completion models count as models too.
MODEL_CATEGORIES: Final = frozenset({"Chat Models", "LLMs"})
_FAMILIES: Final = (MODEL_CATEGORIES, *(frozenset({name}) for name in (
    "Memory", "Vector Stores", "Embeddings", "Text Splitters", "Document Loaders", "Output Parsers",
)))  # fmt: skip


#: Inputs of the steps of a sequence that take the step before.
_OF_STEPS: Final = frozenset({"sequentialNode", "llmNode"})


@dataclass(frozen=True)
class Wiring:
    """Connections and their problems.

    `unmet`: required inputs (node id, name) without a source; `loose`: ids of nodes without a target; `open`: inputs
    with several possible sources, of which the first is connected.
    """

    connections: tuple[Connect, ...]
    unmet: tuple[tuple[str, str], ...]
    loose: tuple[str, ...]
    open: tuple[tuple[str, str], ...] = ()


def fitting_output(source: NodeSchema, anchor: InputAnchor) -> OutputOption | None:
    """The output of `source` that fits `anchor`; None if none does."""
    wanted = set(anchor.types)
    return next((output for output in source.outputs if wanted & set(output.base_classes)), None)


def endings(nodes: Mapping[str, NodeSchema]) -> list[str]:
    """Ids of the nodes in which a flow may end."""
    return [node_id for node_id, schema in nodes.items() if schema.category in ENDING_CATEGORIES]


def wire(nodes: Mapping[str, NodeSchema], fixed: Sequence[str] = (), occupied: frozenset[str] | None = None) -> Wiring:
    """Connect `nodes` (id -> schema, in plan order) so that everything leads to the ending node.

    Nodes in `fixed` are in the flow already: nothing is wired between two of them, and their inputs count as connected
    as far as they are in `occupied` ("id.input"; None: all). Lists take more in any case. Required inputs come first;
    optional ones take only nodes that nothing else has taken, so that a model is not handed to every node that could do
    with one.
    """
    taken: dict[str, str] = {}
    ending = ending_of(nodes)
    connections: list[Connect] = []
    unmet: list[tuple[str, str]] = []
    open_: list[tuple[str, str]] = []
    # Consumers nearest to the end first: a retriever goes to the chain before any other node gets it.
    order = sorted(nodes, key=lambda node_id: nodes[node_id].category not in ENDING_CATEGORIES)

    def connect(source: str, target: str, anchor: InputAnchor, output: OutputOption) -> None:
        connections.append(
            Connect(
                source_node_id=source,
                source_anchor=output.name if nodes[source].multi_output else None,
                target_node_id=target,
                target_anchor=anchor.name,
            )
        )
        taken[source] = output.name

    for required in (True, False):
        for target in order:
            for anchor in nodes[target].anchors:
                if anchor.optional is required or anchor.show:
                    continue
                connected = occupied is None or f"{target}.{anchor.name}" in occupied
                settled = target in fixed and not anchor.is_list and connected
                found = (
                    []
                    if settled
                    else _sources(nodes, target, anchor, taken, connections, fixed, ending, only_free=not required)
                )
                for source, output in found if anchor.is_list else found[:1]:
                    connect(source, target, anchor, output)
                if len(found) > 1 and not anchor.is_list:
                    open_.append((target, anchor.name))
                if required and not found and target not in fixed:
                    unmet.append((target, anchor.name))
    loose = [
        node_id
        for node_id, schema in nodes.items()
        if node_id not in taken and node_id not in fixed and schema.category not in ENDING_CATEGORIES
    ]
    return Wiring(tuple(connections), tuple(unmet), tuple(loose), tuple(open_))


def complete(names: Sequence[str], schemas: Schemas, defaults: Mapping[str, str]) -> list[str]:
    """`names` with a default node (class name -> node name) for each required input without a source among them."""
    result = list(names)
    position = 0
    while position < len(result):
        for anchor in schemas[result[position]].anchors:
            if anchor.optional or anchor.show:
                continue
            # An agent ends a flow and is no part of another node.
            parts = (schemas[name] for name in result if schemas[name].category != "Agents")
            if any(fitting_output(part, anchor) for part in parts):
                continue
            default = next((defaults[kind] for kind in anchor.types if kind in defaults), None)
            if default and default in schemas:
                result.append(default)
        position += 1
    return result


def ending_of(nodes: Mapping[str, NodeSchema]) -> str | None:
    """The ending node: among several an agent, since a chain can be one of its tools, else the last one."""
    ids = endings(nodes)
    agents = [node_id for node_id in ids if nodes[node_id].category == "Agents"]
    return (agents or ids or [None])[-1]


def _sources(
    nodes: Mapping[str, NodeSchema],
    target: str,
    anchor: InputAnchor,
    taken: Mapping[str, str],
    made: Sequence[Connect],
    fixed: Sequence[str],
    ending: str | None,
    *,
    only_free: bool,
) -> list[tuple[str, OutputOption]]:
    found: list[tuple[str, OutputOption]] = []
    for node_id, schema in nodes.items():
        output = fitting_output(schema, anchor)
        if node_id in (target, ending) or output is None or (node_id in fixed and (target in fixed or anchor.optional)):
            continue
        # Chains are parts of other nodes only where an input names them by class.
        if schema.category in ENDING_CATEGORIES and "BaseChain" not in anchor.types:
            continue
        # With a model of its own a moderation compares by meaning: that is the plan's to say, and no place for a spare.
        if anchor.optional and schema.category in MODEL_CATEGORIES:
            continue
        # A node with several outputs gives the same one to all targets.
        if schema.multi_output and taken.get(node_id, output.name) != output.name:
            continue
        if only_free and not _serves_alike(nodes, node_id, target, anchor, made):
            continue
        found.append((node_id, output))
    found = _own_share(nodes, target, _furthest(nodes, found))
    # A list takes free nodes, and others only if there are none.
    free = [item for item in found if item[0] not in taken]
    return free or found


def _serves_alike(
    nodes: Mapping[str, NodeSchema], source: str, target: str, anchor: InputAnchor, made: Sequence[Connect]
) -> bool:
    """True if `source` is connected only to nodes of the same category at the same input."""
    return all(
        op.target_anchor == anchor.name and nodes[op.target_node_id].category == nodes[target].category
        for op in made
        if op.source_node_id == source
    )


def _furthest(nodes: Mapping[str, NodeSchema], found: list[tuple[str, OutputOption]]) -> list[tuple[str, OutputOption]]:
    """Sources that feed no other of them: a reranker is connected, and not the store that it reads from."""
    behind = {
        source
        for source, _ in found
        for other, _ in found
        if other != source
        and any(not anchor.optional and fitting_output(nodes[source], anchor) for anchor in nodes[other].anchors)
        and not any(not anchor.optional and fitting_output(nodes[other], anchor) for anchor in nodes[source].anchors)
    }
    return [item for item in found if item[0] not in behind]


def _own_share(
    nodes: Mapping[str, NodeSchema], target: str, found: list[tuple[str, OutputOption]]
) -> list[tuple[str, OutputOption]]:
    """One source per target, in order, if there are as many sources of a type as targets of a type."""
    twins = [node_id for node_id, schema in nodes.items() if schema.name == nodes[target].name]
    if len(twins) < 2:
        return found
    shares: list[tuple[str, OutputOption]] = []
    for source, output in found:
        alike = [node_id for node_id, _ in found if nodes[node_id].name == nodes[source].name]
        if len(alike) != len(twins) or alike.index(source) == twins.index(target):
            shares.append((source, output))
    return shares


# --- a whole plan -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FlowWiring:
    """Ops that connect the new nodes of a plan, and their problems as in `Wiring`."""

    ops: tuple[PatchOp, ...]
    unmet: tuple[tuple[str, str], ...] = ()
    loose: tuple[str, ...] = ()
    open: tuple[tuple[str, str], ...] = ()


def wire_plan(
    plan: Plan,
    there: Mapping[str, NodeSchema],
    added: Mapping[str, NodeSchema],
    pairs: Mapping[str, str],
    occupied: frozenset[str],
) -> FlowWiring:
    """Connect the plan's new nodes (`added`, by id) with the flow's (`there`), with the plan's own connections and
    cuts.

    `pairs` is the result of `replacements`, `occupied` holds the connected inputs of the flow ("id.input"): a cut frees
    its own.
    """
    occupied -= {f"{c.target}.{c.input}" for c in plan.disconnections}
    cut = [
        Disconnect(
            source_node_id=c.source, source_anchor=c.output or None, target_node_id=c.target, target_anchor=c.input
        )
        for c in plan.disconnections
    ]
    inside = [c for c in plan.connections if c.output == INSIDE and added.get(c.source, there.get(c.source))]
    named = [
        Connect(source_node_id=c.source, source_anchor=c.output or None, target_node_id=c.target, target_anchor=c.input)
        for c in plan.connections
        if c not in inside
    ]
    if plan.flow_kind == "AGENTFLOW":
        return FlowWiring((*cut, *(SetParent(node_id=c.target, parent_id=c.source) for c in inside), *named))
    new = {id_: schema for id_, schema in added.items() if id_ not in pairs.values()}
    stays = {id_: schema for id_, schema in there.items() if id_ not in plan.removals}
    present = {**stays, **{id_: added[id_] for id_ in pairs.values()}}
    further = [op for old, id_ in pairs.items() for op in _further_inputs(id_, there[old], present)]
    wiring = wire({**new, **present}, fixed=list(present), occupied=renamed(occupied, pairs))
    made = [op for op in wiring.connections if op.source_node_id in new or op.target_node_id in new]
    if plan.flow_kind == "MULTIAGENT":
        # Which step a step follows, and which agent takes a tool, is not told by the types.
        takers = Counter(op.source_node_id for op in made)
        made = [op for op in made if op.target_anchor not in _OF_STEPS and takers[op.source_node_id] == 1]
    return FlowWiring((*cut, *further, *made, *named), wiring.unmet, wiring.loose, wiring.open)


def replacements(plan: Plan, there: Mapping[str, NodeSchema], added: Mapping[str, NodeSchema]) -> dict[str, str]:
    """Map removed node ids to the planned nodes of the same kind that replace them; the lines of a plan say where a
    step of an agentflow is.
    """
    free = {id_: schema for id_, schema in added.items() if not schema.is_agentflow}
    found = dict[str, str]()
    for node_id in plan.removals:
        old = there.get(node_id)
        twin = next((id_ for id_, schema in free.items() if old and _same_kind(old, schema)), None)
        if twin:
            found[node_id] = twin
            del free[twin]
    return found


def family_of(schema: NodeSchema) -> frozenset[str]:
    """The categories of which a flow has one node together; empty for other nodes."""
    return next((kind for kind in _FAMILIES if schema.category in kind), frozenset())


def renamed(occupied: frozenset[str], ids: Mapping[str, str]) -> frozenset[str]:
    """The connected inputs after the replacement of nodes (old id -> new id), which keep matching connections."""
    split = (place.partition(".") for place in occupied)
    return frozenset(f"{ids.get(node_id, node_id)}.{name}" for node_id, _, name in split)


def _same_kind(old: NodeSchema, new: NodeSchema) -> bool:
    same = old.category == new.category or {old.category, new.category} <= ENDING_CATEGORIES
    return same or new.category in family_of(old)


def _further_inputs(node_id: str, old: NodeSchema, nodes: Mapping[str, NodeSchema]) -> list[Connect]:
    """Connections from existing nodes for required inputs that the old type did not have."""
    had = {anchor.name for anchor in old.anchors}
    found: list[Connect] = []
    for anchor in nodes[node_id].anchors:
        if anchor.optional or anchor.show or anchor.name in had:
            continue
        sources = {id_: schema for id_, schema in nodes.items()
                   if id_ != node_id and schema.category not in ENDING_CATEGORIES}  # fmt: skip
        for source, schema in sources.items():
            if output := fitting_output(schema, anchor):
                name = output.name if schema.multi_output else None
                found.append(Connect(source_node_id=source, source_anchor=name, target_node_id=node_id,
                                     target_anchor=anchor.name))  # fmt: skip
                break
    return found
