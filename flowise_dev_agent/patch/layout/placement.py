"""Positions and storage order of all nodes of a flow: placed nodes stay, iterations grow around their contents."""

from collections.abc import Collection, Mapping, Sequence

from flowise_dev_agent.patch.layout.columns import GAP, WIDTH, Box, Link, node_height, place, storage_order
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.flow_data import Position, Size, StoredNode
from flowise_dev_agent.patch.model.json_text import as_dict
from flowise_dev_agent.patch.model.node import FlowNode

#: Free space inside an iteration: its title above, a border elsewhere.
_TITLE = 80
_BORDER = 40
#: The title of an iteration is above its box.
_ABOVE_ITERATION = 72


def place_nodes(
    nodes: Mapping[str, FlowNode],
    order: Sequence[str],
    links: Sequence[Link],
    unplaced: Collection[str],
    positioned: Collection[str] = (),
) -> list[FlowNode]:
    """All nodes in storage order: the ids of ``order`` first, then the others, sources first.

    ``unplaced`` nodes get a position; all others keep theirs. ``positioned`` nodes have just got theirs from an op.
    """
    known = set(order)
    added = [node_id for node_id in nodes if node_id not in known]
    parents = {node.id: node.parent for node in nodes.values() if "parentNode" in node.raw and node.parent in nodes}
    boxes: dict[str, Box] = {}
    ordered: Sequence[str] = added
    if added or unplaced:
        boxes = _place_all(nodes, known, parents, links, unplaced)
        # If all new nodes were placed together, the boxes are sorted already.
        together = not parents and boxes.keys() == set(added)
        ordered = list(boxes) if together else storage_order(added, links)
    for node_id in [*added, *positioned]:
        if node_id not in boxes:
            boxes[node_id] = _box(nodes[node_id])
    order = [*order, *ordered]
    if parents:
        order = _parents_first(parents, order)
    return [
        _write_node(nodes, node_id, boxes, is_new=node_id not in known) if node_id in boxes else nodes[node_id]
        for node_id in order
    ]


def _place_all(
    nodes: Mapping[str, FlowNode],
    known: Collection[str],
    parents: Mapping[str, str],
    links: Sequence[Link],
    unplaced: Collection[str],
) -> dict[str, Box]:
    """Boxes of the unplaced nodes and of iterations that grew around them; ``parents`` maps a node to its iteration."""
    if not parents:
        return _place_group(nodes, nodes, links, unplaced, {}, inside=False)
    groups: dict[str, list[str]] = {}
    for node_id in nodes:
        groups.setdefault(parents.get(node_id, ""), []).append(node_id)
    boxes: dict[str, Box] = {}
    for parent in sorted(groups, key=lambda parent: -_depth(parents, parent)):
        members = groups[parent]
        placed = _place_group(nodes, members, links, unplaced, boxes, inside=bool(parent))
        if parent and (placed or parent not in known):
            inside = [placed.get(node_id) or _box(nodes[node_id]) for node_id in members]
            boxes[parent] = _around(_box(nodes[parent]), inside)
        boxes |= placed
    return boxes


def _depth(parents: Mapping[str, str], node_id: str) -> int:
    """Number of iterations around the contents of ``node_id``; 0 for the canvas."""
    depth = 0
    while node_id and depth <= len(parents):
        depth += 1
        node_id = parents.get(node_id, "")
    return depth


def _place_group(
    nodes: Mapping[str, FlowNode],
    members: Collection[str],
    links: Sequence[Link],
    unplaced: Collection[str],
    sized: Mapping[str, Box],
    *,
    inside: bool,
) -> dict[str, Box]:
    """Boxes of the unplaced members, and of member iterations that grew."""
    heights: dict[str, float] = {}
    widths: dict[str, float] = {}
    fixed: dict[str, Box] = {}
    titled: list[str] = []
    for node_id in members:
        node, box = nodes[node_id], sized.get(node_id)
        if node_id in unplaced:
            widths[node_id], heights[node_id] = (box.width, box.height) if box else node_size(node)
        else:
            fixed[node_id] = box or _box(node)
        if node.raw.get("type") == v2.CANVAS_ITERATION:
            titled.append(node_id)
    if not heights:
        return {node_id: sized[node_id] for node_id in fixed if node_id in sized}
    heights |= {node_id: heights[node_id] + _ABOVE_ITERATION for node_id in titled if node_id in heights}
    above = {node_id: _with_moved_top(fixed[node_id], -_ABOVE_ITERATION) for node_id in titled if node_id in fixed}
    boxes = place(heights, links, fixed | above, widths)
    boxes |= {node_id: _with_moved_top(boxes[node_id], _ABOVE_ITERATION) for node_id in titled if node_id in boxes}
    if inside:
        boxes = _inside(boxes, list(fixed.values()))
    return boxes | {node_id: sized[node_id] for node_id in fixed if node_id in sized}


def _with_moved_top(box: Box, top: float) -> Box:
    """The box with its upper edge moved down by ``top`` pixels (up if negative); the lower edge stays."""
    return box._replace(y=box.y + top, height=box.height - top)


def _inside(boxes: dict[str, Box], fixed: Sequence[Box]) -> dict[str, Box]:
    """The boxes moved to positive coordinates: the origin of an iteration is its corner."""
    if not fixed:
        x = _BORDER - min(box.x for box in boxes.values())
        y = _TITLE - min(box.y for box in boxes.values())
        return {key: Box(box.x + x, box.y + y, box.width, box.height) for key, box in boxes.items()}
    bottom = max(box.y + box.height for box in [*boxes.values(), *fixed])
    moved: dict[str, Box] = {}
    for key, box in boxes.items():
        if box.x < 0 or box.y < 0:
            box = Box(_BORDER, bottom + GAP, box.width, box.height)
            bottom = box.y + box.height
        moved[key] = box
    return moved


def _around(own: Box, parents: Sequence[Box]) -> Box:
    """The box of an iteration, grown to hold its contents."""
    width = max([own.width, *(box.x + box.width + _BORDER for box in parents)])
    height = max([own.height, *(box.y + box.height + _BORDER for box in parents)])
    return Box(own.x, own.y, width, height)


def _box(node: FlowNode) -> Box:
    position = as_dict(node.raw.get("position"))
    return Box(float(position.get("x") or 0), float(position.get("y") or 0), *node_size(node))


def _parents_first(parents: Mapping[str, str], order: Sequence[str]) -> list[str]:
    """Storage order with each iteration before the nodes inside it, which the editor requires."""
    result: dict[str, None] = {}
    for node_id in order:
        chain = [node_id]
        while (parent := parents.get(chain[-1])) and parent not in chain:
            chain.append(parent)
        result.update(dict.fromkeys(reversed(chain)))
    return list(result)


def _write_node(nodes: Mapping[str, FlowNode], node_id: str, boxes: Mapping[str, Box], *, is_new: bool) -> FlowNode:
    node, box, raw = nodes[node_id], boxes[node_id], nodes[node_id].raw
    x, y, width, height = _tidy(box.x), _tidy(box.y), _tidy(box.width), _tidy(box.height)
    inside = nodes.get(node.parent) if "parentNode" in raw else None
    position: Position = {"x": x, "y": y}
    absolute = position if inside is None else _absolute(nodes, inside, boxes, x, y)
    size: Size = {"width": width, "height": height}
    placed: StoredNode = {**raw, "position": position, "positionAbsolute": absolute}
    if is_new:
        placed = {"id": node_id, "position": position, "type": raw.get("type"), "data": raw["data"]}
        if "parentNode" in raw:
            placed["parentNode"] = raw["parentNode"]
        if "extent" in raw:
            placed["extent"] = raw["extent"]
        placed = {**placed, **size, "selected": False, "positionAbsolute": absolute, "dragging": False}
    elif (box.width, box.height) != (raw.get("width"), raw.get("height")):
        placed = {**placed, **size}
    else:
        return FlowNode(placed)
    if raw.get("type") == v2.CANVAS_ITERATION:
        placed["style"] = size  # the editor draws an iteration by its style
    return FlowNode(placed)


def _absolute(
    nodes: Mapping[str, FlowNode], parent: FlowNode | None, boxes: Mapping[str, Box], x: float, y: float
) -> Position:
    """Canvas coordinates of a position inside an iteration."""
    while parent is not None:
        corner = boxes.get(parent.id) or _box(parent)
        x, y = _tidy(x + corner.x), _tidy(y + corner.y)
        parent = nodes.get(parent.parent)
    return {"x": x, "y": y}


def _tidy(number: float) -> float:
    """An integer if the number is whole."""
    return int(number) if number == int(number) else number


def node_size(node: FlowNode) -> tuple[float, float]:
    """Width and height in editor pixels, estimated if the node does not store them."""
    width, height = node.raw.get("width"), node.raw.get("height")
    if not width or not height:
        if node.is_agentflow or node.is_note:
            usual: tuple[float, float] = v2.size(node.data, len(node.outputs))
        else:
            usual = WIDTH, height or node_height(node.data)
        width, height = width or usual[0], height or usual[1]
    return float(width), float(height)
