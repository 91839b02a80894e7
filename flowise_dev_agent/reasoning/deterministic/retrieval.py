"""What the rules would build with, as a hint for whoever plans: their word lists know five languages."""

from collections.abc import Mapping

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.deterministic.reading import read
from flowise_dev_agent.reasoning.deterministic.selection import select


def suggested(text: str, store: NodeStore, available: Mapping[str, int]) -> list[str]:
    """Node types for a wish; where the rules would decline it, the parts that they recognise."""
    reading = read(text, store)
    names = list(select(reading, store, available, language=reading.language).names)
    if not names:
        chat = [reading.provider.chat] if reading.provider else []
        tools = [names[0] for names in reading.tools]
        names = [*reading.requested, *chat, *tools, *(name for name in (reading.vector_store, reading.memory) if name)]
    return [name for name in dict.fromkeys(names) if name in store.schemas]
