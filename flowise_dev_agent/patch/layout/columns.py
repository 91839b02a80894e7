"""Placement of new nodes: left of their targets, one column per step, stacked without overlap. Placed nodes stay."""

import math
from bisect import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from flowise_dev_agent.patch.model.flow_data import NodeData

WIDTH = 300
COLUMN = 400
GAP = 40

_TALL_TYPES = frozenset({"boolean", "json", "code", "file", "datagrid"})


class Box(NamedTuple):
    """Top left corner and size in editor pixels."""

    x: float
    y: float
    width: float
    height: float


class Link(NamedTuple):
    """A connection for layout. ``order`` is its rank among all inputs of the target, top to bottom."""

    source: str
    target: str
    order: tuple[int, int]


def node_height(data: NodeData) -> int:
    """Height that the editor will give the node, within some 40 px (fitted on its own templates)."""
    anchors, params = data.get("inputAnchors") or [], data.get("inputParams") or []
    visible = [param for param in params if param.get("display", True) and not param.get("hidden")]
    on_node = [param for param in visible if not param.get("additionalParams")]
    height = 144 + 42 * sum(1 for anchor in anchors if anchor.get("display", True))
    # The heading is drawn even if there is only the button for additional parameters.
    height += 49 * bool(anchors or visible)
    for param in on_node:
        if param.get("type") in _TALL_TYPES:
            height += 92
        elif param.get("rows"):
            height += 216
        else:
            height += 85
    height += 66 * (len(on_node) < len(visible))
    return height + 43 * any("options" in anchor for anchor in data.get("outputAnchors") or [])


def place(
    heights: Mapping[str, float],
    links: Sequence[Link],
    fixed: Mapping[str, Box],
    widths: Mapping[str, float] | None = None,
) -> dict[str, Box]:
    """Boxes for the new nodes (the keys of ``heights``), in the order in which they should be stored: sources first.

    The result depends on the graph alone, not on the order in which nodes or links are given. ``fixed`` boxes are
    never moved or covered. A node is `WIDTH` wide unless ``widths`` says otherwise.
    """
    consumers, producers = _sides(heights, links)
    layers = _layers(heights, consumers)
    placed: dict[str, Box] = dict(fixed)
    occupied = _Occupied(fixed.values())
    inserted = _inserted(layers, producers, fixed)
    for node_id in [*inserted, *(one for one in chain.from_iterable(layers) if one not in inserted)]:
        width = widths.get(node_id, WIDTH) if widths else WIDTH
        if sources := inserted.get(node_id):
            boxes = [placed[one] for one in sources]
            right, y = max(box.x + box.width for box in boxes), min(box.y for box in boxes)
            x, gap = right + (COLUMN - WIDTH), COLUMN - WIDTH
            left = min((placed[link.target].x for link in consumers[node_id] if link.target in fixed), default=math.inf)
            if right < left < x + width + gap:
                x = (right + left - width) / 2  # no room beside both: halfway, below
        elif targets := [placed[link.target] for link in consumers[node_id] if link.target in placed]:
            x, y = min([box.x for box in targets]) - width - (COLUMN - WIDTH), min([box.y for box in targets])
        elif sources := [fixed[link.source] for link in producers[node_id] if link.source in fixed]:
            x, y = max([box.x + box.width for box in sources]) + (COLUMN - WIDTH), min([box.y for box in sources])
        elif occupied.bottom > -math.inf:
            x, y = occupied.right, occupied.bottom + GAP
        else:
            x, y = 0, 0
        box = placed[node_id] = occupied.free_box(x, y, width, heights[node_id])
        occupied.add(box)
    return {node_id: placed[node_id] for node_id in chain.from_iterable(reversed(layers))}


def _inserted(
    layers: Sequence[Sequence[str]], producers: Mapping[str, Sequence[Link]], fixed: Mapping[str, Box]
) -> dict[str, list[str]]:
    """New nodes behind placed ones, each with its sources, in the order in which the flow runs: they stand to the right
    of these. What feeds a placed node and is fed by none stands to the left of it.
    """
    found: dict[str, list[str]] = {}
    for node_id in chain.from_iterable(reversed(layers)):
        sources = [link.source for link in producers[node_id]]
        if behind := [one for one in sources if one in fixed or one in found]:
            found[node_id] = behind
    return found


def storage_order(node_ids: Iterable[str], links: Sequence[Link]) -> list[str]:
    """Node ids in the order of `place`, without computing positions."""
    nodes = dict.fromkeys(node_ids)
    return list(chain.from_iterable(reversed(_layers(nodes, _sides(nodes, links)[0]))))


def _sides(nodes: Collection[str], links: Sequence[Link]) -> tuple[dict[str, list[Link]], dict[str, list[Link]]]:
    consumers: dict[str, list[Link]] = {node_id: [] for node_id in nodes}
    producers: dict[str, list[Link]] = {node_id: [] for node_id in nodes}
    for link in links:
        if link.source in consumers:
            consumers[link.source].append(link)
        if link.target in producers:
            producers[link.target].append(link)
    return consumers, producers


def _layers(nodes: Collection[str], consumers: Mapping[str, list[Link]]) -> list[list[str]]:
    """Columns from the end of the flow; the nodes of a column in the order of the inputs that they feed."""
    by_column: dict[int, list[str]] = {}
    for node_id, column in _columns(nodes, consumers).items():
        by_column.setdefault(column, []).append(node_id)
    rank: dict[str, int] = {}
    layers: list[list[str]] = []
    for column in sorted(by_column):
        keyed: list[tuple[list[tuple[int, tuple[int, int]]], str]] = []
        for node_id in by_column[column]:
            fed = [(rank.get(link.target, -1), link.order) for link in consumers[node_id]]
            keyed.append((fed if len(fed) < 2 else [min(fed)], node_id))
        keyed.sort()
        layer = [node_id for _, node_id in keyed]
        rank.update(zip(layer, range(len(rank), len(nodes)), strict=False))
        layers.append(layer)
    return layers


def _columns(nodes: Collection[str], consumers: Mapping[str, list[Link]]) -> dict[str, int]:
    """Length of the longest path from each node to the end of the flow.

    Nodes that lead into a cycle get the number of nodes; such a flow is rejected later.
    """
    columns = dict.fromkeys(nodes, 0)
    open_ends: dict[str, int] = {}
    feeders: dict[str, list[str]] = {}
    for node_id, links in consumers.items():
        for link in links:
            if link.target in columns:
                open_ends[node_id] = open_ends.get(node_id, 0) + 1
                feeders.setdefault(link.target, []).append(node_id)
    known = [node_id for node_id in nodes if node_id not in open_ends]
    for node_id in known:  # grows
        for feeder in feeders.get(node_id, ()):
            columns[feeder] = max(columns[feeder], columns[node_id] + 1)
            open_ends[feeder] -= 1
            if not open_ends[feeder]:
                known.append(feeder)
    return columns | {node_id: len(columns) for node_id, count in open_ends.items() if count}


class _Occupied:
    """The placed boxes by column: boxes of one column share their left and right edges."""

    def __init__(self, boxes: Iterable[Box]) -> None:
        #: (left, right) -> (top, bottom) of the boxes there, top to bottom.
        self._columns: dict[tuple[float, float], list[tuple[float, float]]] = {}
        self.right = self.bottom = -math.inf
        for box in boxes:
            self.add(box)

    def add(self, box: Box) -> None:
        spans = self._columns.setdefault((box.x, box.x + box.width), [])
        top, bottom = box.y, box.y + box.height
        self.right, self.bottom = max(self.right, box.x), max(self.bottom, bottom)
        # Two boxes without room between them count as one.
        first = bisect(spans, (top, bottom))
        if first and top <= spans[first - 1][1] + 2 * GAP:
            first -= 1
            top = spans[first][0]
        last = first
        while last < len(spans) and spans[last][0] <= bottom + 2 * GAP:
            bottom = max(bottom, spans[last][1])
            last += 1
        spans[first:last] = [(top, bottom)]

    def free_box(self, x: float, y: float, width: float, height: float) -> Box:
        """The first free place in a column, searching downwards from a point."""
        # Whole pixels, away from placed boxes: rounding later could shrink the gap.
        x, y = math.floor(x), math.ceil(y)
        # Boxes come top to bottom, so one that was passed cannot be in the way again.
        for top, bottom in self._beside(x, x + width):
            if y + height + GAP <= top:
                break
            if y < bottom + GAP:
                y = math.ceil(bottom) + GAP
        return Box(x, y, width, height)

    def _beside(self, left: float, right: float) -> list[tuple[float, float]]:
        """(top, bottom) of the boxes between two vertical lines, top to bottom."""
        found = [spans for edges, spans in self._columns.items() if left < edges[1] and edges[0] < right]
        return found[0] if len(found) == 1 else sorted(chain.from_iterable(found))
