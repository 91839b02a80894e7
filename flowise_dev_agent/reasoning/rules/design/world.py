"""What a design is made with: the server's node types and credentials, and the words to decline in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.phrases import say


class DeclinedError(Exception):
    """The sentence that says to the person why there is no design. One that ends in a question mark is a question
    whose answer settles it."""


@dataclass(frozen=True)
class World:
    """`available` is credential type -> how many the instance has."""

    store: NodeStore
    available: Mapping[str, int]
    language: str
    #: Tools that code adds to the plan: id -> type.
    ready: Mapping[str, NodeSchema] = field(default_factory=dict[str, NodeSchema])

    def say(self, key: str, /, **values: object) -> str:
        return say(key, self.language, **values)

    def decline(self, key: str, /, **values: object) -> DeclinedError:
        return DeclinedError(self.say(key, **values))

    def schema(self, name: str) -> NodeSchema:
        """Raises DeclinedError: this Flowise has no such type."""
        if (schema := self.store.get(name)) is None:
            raise self.decline("declined_missing", name=name)
        return schema

    def schemas(self, names: Mapping[str, str]) -> dict[str, NodeSchema]:
        """Node id -> schema, from node id -> name; without types that the server does not have."""
        return {node_id: schema for node_id, name in names.items() if (schema := self.store.get(name))}

    def first(self, names: Sequence[str]) -> str:
        """The first whose credential the instance has, else the first."""
        known = {name: schema.credential_names for name in names if (schema := self.store.get(name))}
        return next((name for name, kinds in known.items() if any(map(self.available.get, kinds))), names[0])
