"""A new flow on top of nodes that were taken over from an accepted one."""

from collections.abc import Mapping, Sequence

from flowise_dev_agent.patch import AddNode, BindCredential, Connect, Disconnect, NodeSchema, PatchOp, SetParam
from flowise_dev_agent.reasoning.contracts import Pattern
from flowise_dev_agent.reasoning.credential_requirements import credential_type
from flowise_dev_agent.reasoning.deterministic.parameters import parameters
from flowise_dev_agent.reasoning.deterministic.reading import Reading
from flowise_dev_agent.reasoning.deterministic.wiring import Wiring, wire


def reused_ids(names: Sequence[str], pattern: Pattern | None) -> list[str | None]:
    """For each node name the id of a node of the pattern to take over, each at most once; None to add a new one."""
    free = dict(pattern.nodes) if pattern else {}
    result: list[str | None] = []
    for name in names:
        found = next((node_id for node_id, other in free.items() if other == name), None)
        if found is not None:
            del free[found]
        result.append(found)
    return result


def onto_seed(
    nodes: Mapping[str, NodeSchema],
    seed: Sequence[PatchOp],
    reading: Reading,
    language: str,
    credentials: Sequence[str],
) -> tuple[list[PatchOp], Wiring]:
    """The ops that make the whole flow `nodes` (in plan order) out of the seed: as if it were built from nothing."""
    kept = {op.node_id: op for op in seed if isinstance(op, AddNode)}
    ops: list[PatchOp] = []
    for node_id, schema in nodes.items():
        params = parameters(schema, reading, language=language)
        if node_id not in kept:
            ops.append(AddNode(node_name=schema.name, node_id=node_id, params=params))
            continue
        before = kept[node_id].params
        ops += [
            SetParam(node_id=node_id, param_name=name, value=value)
            for name, value in params.items()
            if name not in before or before[name] != value
        ]
        if needed := credential_type(schema, credentials):
            ops.append(BindCredential(node_id=node_id, credential_type=needed))
    wiring = wire(nodes)
    wanted = {_ends(op) for op in wiring.connections}
    made = [op for op in seed if isinstance(op, Connect)]
    ops += [
        Disconnect(source_node_id=op.source_node_id, target_node_id=op.target_node_id, target_anchor=op.target_anchor)
        for op in made
        if _ends(op) not in wanted
    ]
    known = {_ends(op) for op in made}
    missing = [op for op in wiring.connections if _ends(op) not in known]
    # A connection that is there already may be made again: a list of ops is never empty.
    ops += missing or ([] if ops else list(wiring.connections))
    return ops, wiring


def _ends(op: Connect) -> tuple[str, str | None, str, str]:
    return op.source_node_id, op.source_anchor, op.target_node_id, op.target_anchor
