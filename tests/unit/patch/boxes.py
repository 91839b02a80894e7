"""Boxes of nodes on the canvas, side by side."""

from flowise_dev_agent.patch.layout.columns import GAP, Box


def overlap(one: Box, other: Box) -> bool:
    """Closer than the gap counts as overlap vertically; columns already keep their distance."""
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height + GAP
        and other.y < one.y + one.height + GAP
    )
