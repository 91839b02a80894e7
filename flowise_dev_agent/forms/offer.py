"""Node types and credentials of a Flowise instance, as available to forms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.texts import sentences, text


class DeclinedError(Exception):
    """Raised with the reason why a form cannot be built on this Flowise, and what to do."""


@dataclass(frozen=True)
class Offer:
    """Node types of a Flowise instance, and the number of its credentials by type."""

    store: NodeStore
    credentials: Mapping[str, int] = field(default_factory=dict[str, int])

    def schema(self, name: str) -> NodeSchema:
        """The node type of this name. Raises DeclinedError if this Flowise has none."""
        if (schema := self.store.get(name)) is None:
            raise DeclinedError(text("declined.no_node", node=name))
        return schema

    def first(self, names: Sequence[str]) -> str:
        """The first type whose credential the instance has, else the first one."""
        known = {name: schema.credential_names for name in names if (schema := self.store.get(name))}
        return next((name for name, types in known.items() if any(map(self.credentials.get, types))), names[0])

    def tool(self, name: str) -> NodeSchema:
        """The tool with this type name or title. Raises DeclinedError."""
        same = (one for one in self.store.schemas.values() if one.label.casefold() == name.strip().casefold())
        known = [one for one in (self.store.get(name), *same) if one and "Tool" in one.base_classes]
        if not known:
            near = [one for one in self.store.suggest(name) if "Tool" in self.store.schemas[one].base_classes]
            close = text("declined.close_names", names=near) if near else ""
            raise DeclinedError(sentences(text("declined.no_tool", tool=name), close))
        return min(known, key=lambda one: one.deprecated)
