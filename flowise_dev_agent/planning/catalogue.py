"""Catalogue of an instance as text, one line per node type; byte-identical for the same types.

Types that most flows need, and the steps of agentflows, have a second line with their fields.
"""

from itertools import groupby
from typing import Final
from weakref import WeakKeyDictionary

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.planning.cards import fields_line
from flowise_dev_agent.sanitize import shortened

#: Types that end a flow, and the simplest types that feed them.
STAPLES: Final = (
    "conversationChain",
    "llmChain",
    "toolAgent",
    "conversationalRetrievalQAChain",
    "chatOpenAI",
    "chatAnthropic",
    "bufferMemory",
    "bufferWindowMemory",
    "promptTemplate",
    "chatPromptTemplate",
    "plainText",
    "recursiveCharacterTextSplitter",
    "openAIEmbeddings",
    "memoryVectorStore",
    "retrieverTool",
    "calculator",
)
_PURPOSE_CHARS: Final = 90
#: A store lives as long as the types of its instance do not change.
_TEXTS: WeakKeyDictionary[NodeStore, str] = WeakKeyDictionary()


def catalogue_text(store: NodeStore) -> str:
    """All types that new flows can use, by category; deprecated types are marked."""
    if store not in _TEXTS:
        usable = [one for one in store.schemas.values() if KIND_OF_CATEGORY.get(one.category) != "MULTIAGENT"]
        usable.sort(key=lambda schema: (schema.category, schema.name))
        _TEXTS[store] = "\n".join(
            "\n".join([f"## {category}", *map(_entry, schemas)])
            for category, schemas in groupby(usable, lambda schema: schema.category)
        )
    return _TEXTS[store]


def shows_fields(schema: NodeSchema) -> bool:
    """True if the catalogue lists the fields of this type."""
    return schema.is_agentflow or schema.name in STAPLES


def _entry(schema: NodeSchema) -> str:
    line = catalogue_line(schema)
    return f"{line}\n  {fields_line(schema).partition(': ')[2]}" if shows_fields(schema) else line


def catalogue_line(schema: NodeSchema) -> str:
    """Line of a type: name, purpose, credential type."""
    purpose = " ".join(schema.description.split()).split(". ")[0] or schema.label
    credential = f" [{'/'.join(schema.credential_names)}]" if schema.credential_names else ""
    return (
        f"- {schema.name}: {shortened(purpose, _PURPOSE_CHARS)}{credential}{' DEPRECATED' if schema.deprecated else ''}"
    )
