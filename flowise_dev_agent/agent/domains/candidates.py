"""Select the node types that a planner sees: a few dozen instead of the whole catalogue.

What the requirement says comes first, by ranked words, then what the required inputs of those types accept (one hop),
then what similar accepted flows are made of, and what most flows need anyway.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.planning.catalogue import STAPLES

#: A few dozen lines: what a planner can read, far below the 297 types of a server.
MAX_CANDIDATES: Final = 36
#: Most types found by words; the rest of the list is for the types that these need.
_BY_WORDS = 22
#: Most models, and most tools, for the nodes of an agentflow.
_INSIDE = 8
#: Default source type of an input by its class; a type that is a candidate already is preferred.
_FEEDERS: Final = {
    "BaseChatModel": "chatOpenAI",
    "BaseLanguageModel": "chatOpenAI",
    "BaseMemory": "bufferMemory",
    "BaseChatMemory": "bufferMemory",
    "Embeddings": "openAIEmbeddings",
    "Document": "plainText",
    "VectorStore": "memoryVectorStore",
    "BaseRetriever": "memoryVectorStore",
    "BasePromptTemplate": "promptTemplate",
    "TextSplitter": "recursiveCharacterTextSplitter",
    "Tool": "calculator",
    "Moderation": "inputModerationSimple",
    "BaseLLMOutputParser": "structuredOutputParser",
}
#: Node types by provider: a requirement that names its model also gets its embeddings.
_PROVIDER_PARTS = (
    ("chatMistralAI", "mistralAIEmbeddings"),
    ("chatGoogleGenerativeAI", "googleGenerativeAiEmbeddings"),
    ("azureChatOpenAI", "azureOpenAIEmbeddings"),
    ("chatOllama", "ollamaEmbedding"),
    ("chatCohere", "cohereEmbeddings"),
)


def candidates(
    store: NodeStore,
    text: str,
    *,
    similar: Iterable[str] = (),
    kind: str = "CHATFLOW",
) -> tuple[NodeSchema, ...]:
    """Candidate node types for a text, best first, at most `MAX_CANDIDATES`.

    `similar` are types that similar flows consist of. For an existing AGENTFLOW or MULTIAGENT
    these are the few types that such flows consist of, and their models and tools.
    """
    if kind in ("AGENTFLOW", "MULTIAGENT"):
        return _of_steps(store, text, kind)
    similar = list(similar)
    found = [schema for schema in store.search(text, limit=_BY_WORDS, kind="CHATFLOW") if not schema.deprecated]
    names = list(dict.fromkeys([*similar, *(schema.name for schema in found)]))
    needed = dict.fromkeys(name for schema in found[: _BY_WORDS // 2] for name in _one_hop(store, schema, names))
    parts = [second for first, second in _PROVIDER_PARTS if first in names]
    # Staples and needs are few and always shown; what was found by words fills up the rest.
    fixed = list(dict.fromkeys([*STAPLES, *similar, *parts, *needed]))
    room = max(0, MAX_CANDIDATES - len(fixed))
    own = [name for name in names if name not in fixed][:room]
    order = [*(name for name in names if name in fixed or name in own), *fixed]
    chosen = (schema for name in dict.fromkeys(order) if (schema := store.get(name)))
    return tuple({schema.name: schema for schema in chosen}.values())[:MAX_CANDIDATES]


def _of_steps(store: NodeStore, text: str, kind: str) -> tuple[NodeSchema, ...]:
    steps = [schema for schema in store.schemas.values() if KIND_OF_CATEGORY.get(schema.category) == kind]
    inside = [
        schema
        for category in ("Chat Models", "Tools")
        for schema in store.search(text, limit=_INSIDE, category=category)
        if not schema.deprecated
    ]
    usual = [schema for name in ("chatOpenAI", "chatAnthropic") if (schema := store.get(name))]
    return tuple({schema.name: schema for schema in [*steps, *inside, *usual]}.values())[:MAX_CANDIDATES]


def _one_hop(store: NodeStore, schema: NodeSchema, known: Sequence[str]) -> list[str]:
    """One type for each required input that no candidate can feed."""
    result: list[str] = []
    for anchor in schema.anchors:
        if anchor.optional or anchor.show:
            continue
        feeders = {other.name for other in store.accepting(anchor.types)}
        if feeders.intersection((*known, *STAPLES)):
            continue
        usual = next((_FEEDERS[kind] for kind in anchor.types if kind in _FEEDERS), None)
        choice = usual if usual in feeders else next(iter(sorted(feeders)), None)
        if choice:
            result.append(choice)
    return result
