"""Placement of new nodes between and behind placed ones."""

import pytest

from flowise_dev_agent.patch.layout.columns import Box, Link, place
from tests.unit.patch.boxes import overlap


def link(source: str, target: str) -> Link:
    return Link(source, target, (0, 0))


@pytest.mark.parametrize("distance", [400, 1000])
def test_an_inserted_step_stands_between_its_neighbours_and_what_follows_it_to_the_right(distance: int) -> None:
    fixed = {"call": Box(0, 0, 300, 100), "answer": Box(distance, 0, 300, 100)}
    links = [link("call", "ask"), link("ask", "answer"), link("ask", "reply")]
    made = place({"ask": 100, "reply": 100}, links, fixed)
    assert fixed["call"].x < made["ask"].x < fixed["answer"].x
    assert made["reply"].x > made["ask"].x
    boxes = [*fixed.values(), *made.values()]
    assert not any(overlap(one, other) for one in boxes for other in boxes if one is not other)


def test_what_feeds_a_placed_node_alone_stands_to_its_left() -> None:
    made = place({"model": 100}, [link("model", "agent")], {"agent": Box(0, 0, 300, 100)})
    assert made["model"].x + made["model"].width < 0
