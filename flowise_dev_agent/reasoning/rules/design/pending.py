"""A plan that is not written yet, and what a person says to it."""

from collections.abc import Sequence
from typing import Any

from flowise_dev_agent.contracts.plan import Design, Part, PlanContract
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.text import squeeze
from flowise_dev_agent.reasoning.rules.render import telling


def is_pending(request: PlanRequest) -> bool:
    """Whether there is a plan that is not written yet."""
    new = request.previous.new_nodes if request.previous else set[str]()
    return request.previous is not None and request.verdict is None and not (new and new <= request.existing.keys())


def unheard(request: PlanRequest, reason: DeclinedError) -> PlanContract | None:
    """The plan before, when what the person says to it is not understood: that is told as not done, and nothing is
    lost. None where there is no such plan, or one answer settles it."""
    previous, said = request.previous, request.feedback
    if not previous or previous.declined or not (said and is_pending(request)) or str(reason).endswith("?"):
        return None
    part = Part(id="p1", quote=squeeze(said), source="feedback:1", reason=str(reason))
    return previous.model_copy(update={"parts": _numbered("p", [*previous.parts, part][-40:])})


def merged(
    planned: PlanContract, change: Design, going: Sequence[str], request: PlanRequest, world: World, *, pending: bool
) -> Design:
    """The plan before with a change: values that are added join a text that was planned and not written yet."""
    new = {node.node_id for node in planned.nodes if node.node_id not in request.existing}
    fresh = {(value.node_id, value.param) for value in change.values if value.mode == "set"}
    values = [one for one in planned.values if pending and one.node_id not in going
              and (one.node_id, one.param) not in fresh] + change.values  # fmt: skip
    kept = (node for node in planned.nodes if node.node_id not in going and (pending or node.node_id not in new))
    nodes = {node.node_id: node if pending else node.model_copy(update={"existing": True}) for node in kept}
    nodes |= {id_: node for node in change.nodes if (id_ := node.node_id) not in nodes or node.label}
    # A node that is wanted after all stays.
    gone = dict.fromkeys([*planned.removals, *change.removals])
    removals = [id_ for id_ in gone if id_ in request.existing and id_ not in nodes]
    update = {
        "goal": planned.goal if new else change.goal, "nodes": list(nodes.values()), "removals": removals,
        "values": values[:100], "parts": _numbered("p", [*planned.parts, *change.parts][:40]),
        "connections": [*(planned.connections if pending else []), *change.connections],
        "disconnections": [*(planned.disconnections if pending else []), *change.disconnections],
        "tests": _numbered("t", [*{one.turns[0]: one for one in [*planned.tests, *change.tests]}.values()][:10]),
        "criteria": _numbered("c", [*{one.text: one for one in [*planned.criteria, *change.criteria]}.values()][:20]),
        "placeholders": telling.placeholders(values),
    }  # fmt: skip
    found = change.model_copy(update=update)
    labels = [world.schema(node.node_name).label for node in nodes.values() if not node.existing]
    return found.model_copy(update={"steps": telling.steps(labels, found, world)}) if new else found


def _numbered(prefix: str, items: Sequence[Any]) -> list[Any]:
    return [item.model_copy(update={"id": f"{prefix}{number}"}) for number, item in enumerate(items, start=1)]
