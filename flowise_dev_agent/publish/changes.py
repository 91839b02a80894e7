"""The difference between two states of a flow, in a size that sessions can store."""

from flowise_dev_agent.contracts.change import Difference
from flowise_dev_agent.patch import GraphIR, diff

_MOST_ENTRIES = 100
_LONGEST_TEXT = 6_000


def changes(before: GraphIR, after: GraphIR) -> Difference:
    """At most 100 entries a list and 6 000 characters of text; `summary` counts all."""
    found = diff(before, after)
    return Difference(
        summary=found.summary,
        text=found.text if len(found.text) <= _LONGEST_TEXT else f"{found.text[: _LONGEST_TEXT - 1]}…",
        added=list(found.added[:_MOST_ENTRIES]),
        removed=list(found.removed[:_MOST_ENTRIES]),
        changed=list(found.changed[:_MOST_ENTRIES]),
        connected=list(found.connected[:_MOST_ENTRIES]),
        disconnected=list(found.disconnected[:_MOST_ENTRIES]),
        moved=list(found.moved[:_MOST_ENTRIES]),
    )
