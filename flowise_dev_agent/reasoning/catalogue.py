"""The whole catalogue of an instance as text, one line per node type: the same bytes for the same types."""

from itertools import groupby
from typing import Final
from weakref import WeakKeyDictionary

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.sanitize import shortened

_PURPOSE_CHARS: Final = 90
#: A store lives as long as the types of its instance do not change.
_TEXTS: WeakKeyDictionary[NodeStore, str] = WeakKeyDictionary()


def catalogue_text(store: NodeStore) -> str:
    """Every type that new flows can use, by category; deprecated ones are marked."""
    if store not in _TEXTS:
        usable = [one for one in store.schemas.values() if KIND_OF_CATEGORY.get(one.category) != "MULTIAGENT"]
        usable.sort(key=lambda schema: (schema.category, schema.name))
        _TEXTS[store] = "\n".join(
            "\n".join([f"## {category}", *map(catalogue_line, schemas)])
            for category, schemas in groupby(usable, lambda schema: schema.category)
        )
    return _TEXTS[store]


def catalogue_line(schema: NodeSchema) -> str:
    """Name, purpose, credential type."""
    purpose = " ".join(schema.description.split()).split(". ")[0] or schema.label
    credential = f" [{'/'.join(schema.credential_names)}]" if schema.credential_names else ""
    return (
        f"- {schema.name}: {shortened(purpose, _PURPOSE_CHARS)}{credential}{' DEPRECATED' if schema.deprecated else ''}"
    )
