"""What a wish takes out of a flow that is there, and what it puts in the place of something."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.ops import Connect
from flowise_dev_agent.patch.schema import NodeSchema
from flowise_dev_agent.reasoning.contracts import PlanContract
from flowise_dev_agent.reasoning.deterministic.phrases import say
from flowise_dev_agent.reasoning.deterministic.reading import Reading
from flowise_dev_agent.reasoning.deterministic.selection import unwanted
from flowise_dev_agent.reasoning.deterministic.wiring import ENDING_CATEGORIES, fitting_output


@dataclass(frozen=True)
class Edits:
    """`replaced`: node id -> name of the type that takes its place. `declined`: the sentence that says why not."""

    replaced: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    declined: str | None = None


def find_edits(
    change: Reading, existing: Mapping[str, NodeSchema], store: NodeStore, text: str, language: str
) -> Edits:
    """Model and memory are replaced by the one that is named; parts that are not wanted any more are removed."""
    replaced: dict[str, str] = {}
    wanted = {
        "Chat Models": change.provider.chat if change.provider else None,
        "Memory": change.memory,
    }
    for category, name in wanted.items():
        present = {node_id: schema for node_id, schema in existing.items() if schema.category == category}
        if not name or name not in store.schemas or name in {schema.name for schema in present.values()}:
            continue
        if len(present) > 1:
            return Edits(declined=say("declined_which", language, nodes=", ".join(present)))
        replaced |= dict.fromkeys(present, name)
    dropped = unwanted(text)
    removed = tuple(
        node_id for node_id, schema in existing.items() if schema.name in dropped and node_id not in replaced
    )
    return Edits(replaced, removed)


def missed(
    edits: Edits, existing: Mapping[str, NodeSchema], stays: Mapping[str, NodeSchema], language: str
) -> str | None:
    """The sentence that declines when something that stays or is new cannot do without what is removed."""
    for node_id in edits.removed:
        taker = _insists_on(existing[node_id], stays)
        if taker:
            return say("declined_required", language, label=existing[node_id].label, by=taker)
    return None


def pairs_of(plan: PlanContract, existing: Mapping[str, NodeSchema], new: Mapping[str, NodeSchema]) -> dict[str, str]:
    """Removed node id -> id of the planned node that takes its place: a new one of the same category."""
    free = dict(new)
    found: dict[str, str] = {}
    for node_id in plan.removals:
        old = existing.get(node_id)
        twin = next((id_ for id_, schema in free.items() if old and schema.category == old.category), None)
        if twin:
            found[node_id] = twin
            del free[twin]
    return found


def further_inputs(node_id: str, old: NodeSchema, nodes: Mapping[str, NodeSchema]) -> list[Connect]:
    """Connections for required inputs that the old type did not have, from what is in the flow."""
    had = {anchor.name for anchor in old.anchors}
    found: list[Connect] = []
    for anchor in nodes[node_id].anchors:
        if anchor.optional or anchor.show or anchor.name in had:
            continue
        for source, schema in nodes.items():
            output = (
                None if source == node_id or schema.category in ENDING_CATEGORIES else fitting_output(schema, anchor)
            )
            if output:
                name = output.name if schema.multi_output else None
                found.append(
                    Connect(
                        source_node_id=source, source_anchor=name, target_node_id=node_id, target_anchor=anchor.name
                    )
                )
                break
    return found


def _insists_on(schema: NodeSchema, others: Mapping[str, NodeSchema]) -> str | None:
    """The label of a node that cannot do without such a node, None when all can."""
    for other in others.values():
        for anchor in other.anchors:
            if anchor.optional or anchor.show or not fitting_output(schema, anchor):
                continue
            if not any(fitting_output(rest, anchor) for rest in others.values() if rest is not other):
                return other.label
    return None
