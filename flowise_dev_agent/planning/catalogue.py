"""Catalogue of an instance as text, one line per node type; byte-identical for the same types.

Types that most flows need, and the steps of agentflows, have a second line with their fields. Notes are left out.
"""

from itertools import groupby
from typing import Final
from weakref import WeakKeyDictionary

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.patch.model.agentflow import AGENTFLOW_CATEGORY, NOTE_NAMES
from flowise_dev_agent.planning.cards import fields_line
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import FlowKind

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
#: What an agentflow consists of: its steps, and the models, tools and stores that stand in them.
_IN_AGENTFLOWS: Final = frozenset(
    {AGENTFLOW_CATEGORY, "Chat Models", "Embeddings", "Tools", "Tools (MCP)", "Vector Stores"}
)
#: What a sequential flow has besides its steps and a memory that keeps checkpoints.
_IN_SEQUENCES: Final = frozenset({"Chat Models", "Moderation", "Tools", "Tools (MCP)"})
_CHECKPOINTS: Final = "BaseCheckpointSaver"
_PURPOSE_CHARS: Final = 90
#: A store lives as long as the types of its instance do not change.
_TEXTS: WeakKeyDictionary[NodeStore, dict[tuple[str | None, bool], str]] = WeakKeyDictionary()


def catalogue_text(store: NodeStore, kind: FlowKind | None = None, *, names_only: bool = False) -> str:
    """Types that new flows of a kind can use, else of both kinds, by category; `names_only`: nothing but their names.

    Deprecated types follow at the end, by name.
    """
    texts = _TEXTS.setdefault(store, {})
    if (kind, names_only) not in texts:
        texts[kind, names_only] = _text(store, kind, names_only=names_only)
    return texts[kind, names_only]


def shows_fields(schema: NodeSchema) -> bool:
    """True if the catalogue lists the fields of this type."""
    return schema.category in KIND_OF_CATEGORY or schema.name in STAPLES


def catalogue_line(schema: NodeSchema) -> str:
    """Line of a type: name, purpose, credential type."""
    purpose = " ".join(schema.description.split()).split(". ")[0] or schema.label
    return f"- {schema.name}: {shortened(purpose, _PURPOSE_CHARS)}{_credential(schema)}"


def name_line(schema: NodeSchema) -> str:
    """Name and credential type of a node type."""
    return f"{schema.name}{_credential(schema)}"


def _text(store: NodeStore, kind: FlowKind | None, *, names_only: bool) -> str:
    usable = [one for one in store.schemas.values() if one.name not in NOTE_NAMES and _is_for(one, kind)]
    usable.sort(key=lambda schema: (schema.category, schema.name))
    lines: list[str] = []
    for category, schemas in groupby((one for one in usable if not one.deprecated), lambda schema: schema.category):
        if names_only:
            lines.append(f"{category}: {', '.join(schema.name for schema in schemas)}")
        else:
            lines += [f"## {category}", *map(_entry, schemas)]
    old = [schema.name for schema in usable if schema.deprecated]
    return "\n".join([*lines, *([f"{_DEPRECATED} {', '.join(old)}"] if old and not names_only else [])])


_DEPRECATED: Final = "DEPRECATED, only where the flow or person has them or nothing else does it:"


def _is_for(schema: NodeSchema, kind: FlowKind | None) -> bool:
    only = KIND_OF_CATEGORY.get(schema.category)
    if kind == "MULTIAGENT":
        return only == kind or schema.category in _IN_SEQUENCES or _CHECKPOINTS in schema.base_classes
    if only == "MULTIAGENT" or (kind == "CHATFLOW" and only == "AGENTFLOW"):
        return False
    return kind != "AGENTFLOW" or schema.category in _IN_AGENTFLOWS


def _entry(schema: NodeSchema) -> str:
    line = catalogue_line(schema)
    return f"{line}\n  {fields_line(schema).partition(': ')[2]}" if shows_fields(schema) else line


def _credential(schema: NodeSchema) -> str:
    return f" [{'/'.join(schema.credential_names)}]" if schema.credential_names else ""
