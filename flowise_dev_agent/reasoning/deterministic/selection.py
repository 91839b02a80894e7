"""Which nodes a requirement needs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.schema import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.reasoning.deterministic import vocabulary as words
from flowise_dev_agent.reasoning.deterministic.parameters import open_params
from flowise_dev_agent.reasoning.deterministic.phrases import say
from flowise_dev_agent.reasoning.deterministic.providers import Provider, default_embeddings, default_provider
from flowise_dev_agent.reasoning.deterministic.reading import Reading
from flowise_dev_agent.reasoning.deterministic.text import denied, mentions
from flowise_dev_agent.reasoning.deterministic.wiring import ENDING_CATEGORIES, complete

#: A flow has one of each of these; one asked for by name takes the place of the usual one.
_SINGLE = frozenset(
    {"Chat Models", "Memory", "Embeddings", "Vector Stores", "Text Splitters", "Document Loaders", "Chains", "Agents"}
)
#: Similarity from which a name is worth mentioning to a person.
_CLOSE = 0.6
#: Behind these stands what comes or stays instead of what goes.
_AFTER_REMOVED = re.compile(r"\s(?:and|with|by|for|und|durch|gegen|mit|y|por|con|et|par|avec|e|com)\s|[,.;]")


@dataclass(frozen=True)
class Selection:
    """Node names in the order of the plan, the ending node first; or the sentence that declines."""

    names: tuple[str, ...] = ()
    declined: str | None = None


def select(
    reading: Reading,
    store: NodeStore,
    available: Mapping[str, int],
    *,
    language: str,
    without: frozenset[str] = frozenset(),
) -> Selection:
    """The nodes of a new flow. `without` are nodes that the person no longer wants."""
    refusal = _refusal(reading, store, language)
    if refusal:
        return Selection(declined=refusal)
    provider = reading.provider or default_provider(store.schemas, available, with_embeddings=reading.knowledge)
    ending = _ending(reading, without)
    names = [ending, provider.chat]
    names += _memory(reading, ending, without)
    tools = _tools(reading, store, available, without) if ending == "toolAgent" else []
    names += tools
    if ending == "llmChain":
        names.append("promptTemplate")
        if reading.structured:
            names.append("structuredOutputParser")
        elif reading.listing:
            names.append("csvOutputParser")
    if reading.knowledge:
        names += _documents(reading, provider, store, available, as_tool=ending == "toolAgent")
    names += _moderation(reading)
    names = _with_requested([name for name in names if name not in without], reading, store)
    for name in names:
        if name not in store.schemas:
            return Selection(declined=say("declined_missing", language, name=name))
    names = complete(names, store.schemas, _defaults(provider, store, available))
    lacking = _lacking_params(names, reading, store, language)
    return Selection(declined=lacking) if lacking else Selection(tuple(names))


def additions(
    reading: Reading,
    existing: Mapping[str, NodeSchema],
    store: NodeStore,
    available: Mapping[str, int],
    *,
    language: str,
    without: frozenset[str] = frozenset(),
) -> Selection:
    """The nodes to add to a flow that exists, () for none. `without` are those that the wish takes out."""
    present = {schema.name for schema in existing.values()}
    anchors = {anchor.name for schema in existing.values() for anchor in schema.anchors}
    names: list[str] = []
    if without:
        # A wish that is removed by kind ("the web search") is none for another node of the kind.
        kept = tuple(names for names in reading.tools if not set(names) & without)
        reading = replace(reading, tools=kept)
    tools = _tools(reading, store, available, without)
    new_tools = [name for name in tools if name not in present]
    if new_tools and "tools" not in anchors:
        return Selection(declined=say("declined_no_agent", language))
    names += new_tools
    names += [name for name in _moderation(reading) if "inputModeration" in anchors]
    if (
        reading.splits
        and "textSplitter" in anchors
        and not any(s.category == "Text Splitters" for s in existing.values())
    ):
        names.append(reading.splitter)
    names += [name for name in reading.requested if store.schemas[name].category not in ENDING_CATEGORIES]
    names = [name for name in dict.fromkeys(names) if name not in present]
    lacking = _lacking_params(names, reading, store, language)
    return Selection(declined=lacking) if lacking else Selection(tuple(names))


def unwanted(text: str) -> frozenset[str]:
    """Names of the tools and memories that a wish for changes takes back ("without the calculator")."""
    found: set[str] = set()
    for pattern, names in words.TOOLS:
        if denied(text, pattern) or _removed(text, pattern):
            found.update(names)
    if denied(text, words.MEMORY) or _removed(text, words.MEMORY):
        found.update(
            ("bufferMemory", "bufferWindowMemory", "conversationSummaryMemory", "conversationSummaryBufferMemory")
        )
    if denied(text, words.SPLIT) or _removed(text, words.SPLIT):
        found.update(("recursiveCharacterTextSplitter", "characterTextSplitter", "tokenTextSplitter"))
    return frozenset(found)


def _removed(text: str, pattern: re.Pattern[str]) -> bool:
    """Whether a word for removing stands shortly before the mention."""
    return any(
        pattern.search(_AFTER_REMOVED.split(text[match.end() : match.end() + 40])[0])
        for match in mentions(text, words.REMOVE)
    )


def _refusal(reading: Reading, store: NodeStore, language: str) -> str | None:
    if reading.unknown:
        name = reading.unknown[0]
        close = [
            other
            for other in store.suggest(name)
            if SequenceMatcher(None, name.lower(), other.lower()).ratio() > _CLOSE
        ]
        near = say("near", language, names=", ".join(close)) if close else ""
        return say("declined_unknown", language, name=name, near=near)
    for name in reading.requested:
        if KIND_OF_CATEGORY.get(store.schemas[name].category, "CHATFLOW") != "CHATFLOW":
            return say("declined_kind", language, name=name)
    if reading.multi_agent:
        return say("declined_agentflow", language)
    for names in reading.tools:
        if not _usable(names, store):
            return say("declined_tool", language, name=names[0])
    return None if reading.is_recognised else say("declined_nothing", language)


def _ending(reading: Reading, without: frozenset[str]) -> str:
    wants_tools = any(name not in without for names in reading.tools for name in names[:1])
    if wants_tools or (reading.knowledge and (reading.agent or reading.besides)):
        return "toolAgent"
    if reading.knowledge:
        return "conversationalRetrievalQAChain"
    talks = reading.chat or reading.agent
    if (reading.structured or reading.listing or reading.transform) and not reading.memory:
        one_way = reading.structured or reading.listing or not talks or bool(words.CHAIN.search(reading.text))
        if one_way or reading.no_memory:
            return "llmChain"
    # Every conversation node insists on a memory.
    return "llmChain" if reading.no_memory else "conversationChain"


def _memory(reading: Reading, ending: str, without: frozenset[str]) -> list[str]:
    if ending == "llmChain":
        return []
    if reading.memory and reading.memory not in without:
        return [reading.memory]
    return ["bufferMemory"] if ending != "conversationalRetrievalQAChain" else []


def _tools(reading: Reading, store: NodeStore, available: Mapping[str, int], without: frozenset[str]) -> list[str]:
    chosen: list[str] = []
    for names in reading.tools:
        usable = [name for name in _usable(names, store) if name not in without]
        at_hand = [name for name in usable if any(available.get(kind) for kind in store.schemas[name].credential_names)]
        if usable and not any(name in chosen for name in usable):
            chosen.append((at_hand or usable)[0])
    return chosen


def _usable(names: Iterable[str], store: NodeStore) -> list[str]:
    """Those that an agent takes: some tools of the catalogue are of a class that none does."""
    return [name for name in names if (schema := store.get(name)) and "Tool" in schema.base_classes]


def _documents(
    reading: Reading, provider: Provider, store: NodeStore, available: Mapping[str, int], *, as_tool: bool
) -> list[str]:
    embeddings = reading.embeddings.embeddings if reading.embeddings else provider.embeddings
    names = ["retrieverTool"] if as_tool else []
    names.append(reading.vector_store or "memoryVectorStore")
    names.append(embeddings or default_embeddings(store.schemas, available))
    names.append("cheerioWebScraper" if reading.url else "plainText")
    return [*names, reading.splitter]


def _moderation(reading: Reading) -> list[str]:
    if reading.denied_words:
        return ["inputModerationSimple"]
    return ["inputModerationOpenAI"] if reading.content_moderation else []


def _with_requested(names: list[str], reading: Reading, store: NodeStore) -> list[str]:
    for name in reading.requested:
        category = store.schemas[name].category
        if name in names:
            continue
        rivals = [other for other in names if other in store.schemas and store.schemas[other].category == category]
        if category in _SINGLE and rivals:
            names[names.index(rivals[0])] = name
        else:
            names.append(name)
    return list(dict.fromkeys(names))


def _defaults(provider: Provider, store: NodeStore, available: Mapping[str, int]) -> dict[str, str]:
    """What to add for a required input, by the class that it takes."""
    return {
        "BaseChatModel": provider.chat,
        "BaseLanguageModel": provider.chat,
        "BaseMemory": "bufferMemory",
        "BaseChatMemory": "bufferMemory",
        "BaseRetriever": "memoryVectorStore",
        "VectorStore": "memoryVectorStore",
        "Embeddings": provider.embeddings or default_embeddings(store.schemas, available),
        "Document": "plainText",
        "BasePromptTemplate": "promptTemplate",
    }


def _lacking_params(names: list[str], reading: Reading, store: NodeStore, language: str) -> str | None:
    """Declines when a node needs something that only the person knows, such as the name of an index."""
    for name in names:
        schema = store.schemas[name]
        if schema.category not in ("Vector Stores", "Tools", "Memory", "Tools (MCP)", "Document Loaders"):
            continue
        lacking = [param.label for param in open_params(schema) if param.name not in _FILLED]
        if len(lacking) > (1 if reading.index_name else 0):
            return say("declined_params", language, label=schema.label, params=", ".join(lacking))
    return None


#: Required fields that `parameters` fills in by itself.
_FILLED = frozenset({"text", "url", "name", "description", "denyList", "template"})
