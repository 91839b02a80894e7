"""Connect between agentflow nodes: which node runs after which, and after which branch."""

from flowise_dev_agent.patch.compile.batch import Batch
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.graph import FlowEdge
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.ops import Connect
from flowise_dev_agent.patch.model.outputs import Output
from flowise_dev_agent.patch.model.suggest import closest, resolve_case


def connect_steps(batch: Batch, op: Connect, source: FlowNode, target: FlowNode) -> None:
    for node in (source, target):
        if not node.is_agentflow or node.is_note:
            batch.fail(
                "KIND_MISMATCH",
                f"{node.name} is no step of an agentflow, so it cannot be connected to one.",
                where=node.id,
                hint="In an agentflow models, tools and stores stand inside the nodes, as values of their fields.",
            )
            return
    if target.name == v2.START:
        batch.fail(
            "UNKNOWN_ANCHOR",
            "Nothing runs before the start node.",
            where=target.id,
            name="target_node_id",
            hint=f"Connect {target.id} to {source.id} instead, or leave this op out.",
        )
        return
    output = _branch(batch, op, source)
    if output is None or batch.edges.has((source.id, output.handle, target.id, target.id)):
        return
    inside = bool(source.parent) and source.parent == target.parent
    batch.edges.add(FlowEdge(v2.step_edge(source.data, output.handle, target.data, inside_iteration=inside)))


def _branch(batch: Batch, op: Connect, source: FlowNode) -> Output | None:
    outputs = source.outputs
    if len(outputs) == 1:
        return outputs[0]  # whatever it is called
    wanted = op.source_anchor
    if wanted is not None:
        by_name = {output.name: output for output in outputs} | {output.label: output for output in outputs}
        if name := resolve_case(wanted, by_name):
            return by_name[name]
    allowed = [output.label for output in outputs]
    if wanted is None and outputs:
        message = f"{source.id} has {len(outputs)} branches; say which one leads to {op.target_node_id}."
    elif outputs:
        message = f"{source.id} has no branch {wanted!r}."
    else:
        message = f"Nothing can follow {source.id}: {source.name} ends its branch."
    example = dump_json(
        {
            "op_type": "Connect",
            "source_node_id": source.id,
            "source_anchor": allowed[0] if allowed else "",
            "target_node_id": op.target_node_id,
        }
    )
    batch.fail(
        "UNKNOWN_OUTPUT",
        message,
        where=source.id,
        name="source_anchor",
        allowed=closest(wanted or "", allowed) or allowed[:3],
        hint=f"For example {example}" if allowed else "Connect another node.",
    )
    return None
