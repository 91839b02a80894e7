"""A flow in small, for lists."""

from typing import Any, cast

from flowise_dev_agent.patch.model.flow_data import FlowData
from flowise_dev_agent.patch.views.picture import FlowPicture, PictureBox, PictureLine, picture_of


def node(id_: str, category: str = "Chat Models", **more: Any) -> dict[str, Any]:
    return {"id": id_, "position": {"x": 10, "y": 20.4}, "data": {"category": category}, **more}


def document(nodes: list[Any], edges: list[Any]) -> FlowData:
    return cast("FlowData", {"nodes": nodes, "edges": edges})


def test_boxes_are_where_their_nodes_are_and_lines_join_them() -> None:
    nodes = [
        node("loop", "Agent Flows", type="iteration", width=500, height=300),
        node("step", "Agent Flows", type="agentFlow", parentNode="loop"),
        node("note", "Utilities", type="stickyNote", width=200, height=100),
        node("model"),
    ]
    edges = [{"source": "model", "target": "step"}, {"source": "model", "target": "gone"}]
    assert picture_of(document(nodes, edges)) == FlowPicture(
        (
            PictureBox(10, 20, 500, 300, "Agent Flows"),
            PictureBox(20, 40, 170, 60, "Agent Flows"),
            PictureBox(10, 20, 200, 100, "note"),
            PictureBox(10, 20, 300, 200, "Chat Models"),
        ),
        (PictureLine(3, 1),),
    )


def test_a_foreign_flow_gives_a_small_picture_without_secrets() -> None:
    key = "sk-" + "a1B2" * 8
    odd = node("odd", f"{key} {'x' * 90}", position={"x": "left", "y": 1e300}, width=float("nan"), height=-5)
    (box,) = picture_of(document([odd], [{}])).boxes
    assert (box.x, box.y, box.width, box.height) == (0, 0, 300, 1)
    assert key not in box.category
    assert len(box.category) <= 40
    many = [node(str(number)) for number in range(900)]
    lines = [{"source": "1", "target": "2"}] * 900
    drawn = picture_of(document(many, lines))
    assert (len(drawn.boxes), len(drawn.lines)) == (100, 200)
    assert picture_of(None) == FlowPicture()
