"""Thumbnail of a flow for lists: boxes, categories and connections, without any other text."""

from dataclasses import dataclass
from itertools import islice
from typing import Final

from flowise_dev_agent.patch.model.flow_data import FlowData
from flowise_dev_agent.patch.model.json_text import as_dict
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import clean_text

#: Limits of a picture of this size.
_MOST_BOXES: Final = 100
_MOST_LINES: Final = 200
_LONGEST_CATEGORY: Final = 40
#: Default sizes in editor pixels, for nodes without a stored one.
_NODE: Final = (300, 200)
_AGENT: Final = (170, 60)
_FARTHEST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class PictureBox:
    """A node, in editor pixels. Notes have the category `note`."""

    x: int
    y: int
    width: int
    height: int
    category: str


@dataclass(frozen=True, slots=True)
class PictureLine:
    """A connection between two boxes, by their numbers."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class FlowPicture:
    """Boxes and the lines between them."""

    boxes: tuple[PictureBox, ...] = ()
    lines: tuple[PictureLine, ...] = ()


def picture_of(document: FlowData | None) -> FlowPicture:
    """The picture of a flow; an empty one if it cannot be read."""
    nodes = {str(node["id"]): node for node in islice(document["nodes"], _MOST_BOXES)} if document else {}
    corners: dict[str, tuple[int, int]] = {}
    boxes: list[PictureBox] = []
    for id_, node in nodes.items():
        place, data = as_dict(node.get("position")), as_dict(node.get("data"))
        # A node inside an iteration is placed relative to its corner; iterations do not nest.
        left, top = corners.get(str(node.get("parentNode") or ""), (0, 0))
        corners[id_] = x, y = left + _pixels(place.get("x"), 0), top + _pixels(place.get("y"), 0)
        width, height = _AGENT if str(node.get("type")) == "agentFlow" else _NODE
        category = "note" if node.get("type") == "stickyNote" else clean_text(masked(str(data.get("category") or "")))
        boxes.append(
            PictureBox(
                x=x,
                y=y,
                width=max(1, _pixels(node.get("width"), width)),
                height=max(1, _pixels(node.get("height"), height)),
                category=category[:_LONGEST_CATEGORY],
            )
        )
    numbers = {id_: number for number, id_ in enumerate(nodes)}
    lines = [
        PictureLine(numbers[source], numbers[target])
        for edge in (document["edges"] if document else ())
        if (source := str(edge.get("source"))) in numbers and (target := str(edge.get("target"))) in numbers
    ]
    return FlowPicture(tuple(boxes), tuple(lines[:_MOST_LINES]))


def _pixels(value: object, otherwise: int) -> int:
    if not isinstance(value, (int, float)) or not -_FARTHEST < value < _FARTHEST:
        return otherwise
    return round(value)
