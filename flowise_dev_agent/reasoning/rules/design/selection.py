"""Which nodes a requirement needs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.components import named_components
from flowise_dev_agent.reasoning.rules.design.filling import open_params
from flowise_dev_agent.reasoning.rules.design.providers import Provider, default_embeddings, default_provider
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters
from flowise_dev_agent.reasoning.rules.design.wiring import ENDING_CATEGORIES, complete, wire
from flowise_dev_agent.reasoning.rules.language import grammar, words
from flowise_dev_agent.reasoning.rules.language.text import denied, mentions

#: A flow has one of each of these; one asked for by name takes the place of the usual one.
_SINGLE = frozenset(
    {"Chat Models", "Memory", "Embeddings", "Vector Stores", "Text Splitters", "Document Loaders", "Chains", "Agents"}
)
#: Naming one of these means that answers come from documents.
DOCUMENT_CATEGORIES = frozenset({"Retrievers", "Vector Stores", "Document Loaders", "Text Splitters", "Embeddings"})
#: Loaders that read what an address leads to.
_TAKE_PAGES = frozenset(
    {"cheerioWebScraper", "playwrightWebScraper", "puppeteerWebScraper", "github", "fireCrawl", "gitbook", "apiLoader"}
)
#: Similarity from which a name is worth mentioning to a person.
_CLOSE = 0.6
#: Behind these stands what comes or stays instead of what goes.
_AFTER_REMOVED = grammar.pattern("selection", "after_removed")


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
    stages: int = 1,
) -> Selection:
    """The nodes of a new flow; `stages` counts tasks that follow one another."""
    refusal = refusal_of(reading, store, language)
    if refusal:
        return Selection(declined=refusal)
    requested = list(reading.requested)
    categories = {store.schemas[name].category for name in requested}
    knowledge = reading.knowledge or bool(categories & DOCUMENT_CATEGORIES)
    provider = reading.provider or default_provider(store.schemas, available, with_embeddings=knowledge)
    tools = tools_of(reading, store, available)
    ending = _ending(reading, requested, tools, store, knowledge=knowledge, stages=stages)
    if ending not in store.schemas:
        return Selection(declined=say("declined_missing", language, name=ending))
    names = [ending]
    if takes(store.schemas[ending], "BaseChatModel", "BaseLanguageModel"):
        names.append(provider.chat)
    names += _memory(reading, store.schemas[ending])
    if takes(store.schemas[ending], "Tool"):
        names += tools
    if takes(store.schemas[ending], "BasePromptTemplate"):
        names.append("promptTemplate")
        if reading.structured:
            names.append("structuredOutputParser")
        elif reading.listing:
            names.append("csvOutputParser")
    if knowledge and reading.chain is None:
        as_tool = takes(store.schemas[ending], "Tool")
        names += documents_of(reading, requested, provider, store, available, as_tool=as_tool)
        if any(anchor.is_list for anchor in store.schemas[ending].anchors if "VectorStoreRetriever" in anchor.types):
            names.append("vectorStoreRetriever")
    if takes(store.schemas[ending], "Moderation"):
        names += moderation_of(reading)
    names = _with_requested(names, requested, store)
    for name in names:
        if name not in store.schemas:
            return Selection(declined=say("declined_missing", language, name=name))
    names = complete(names, store.schemas, defaults_of(provider, store, available))
    names = _several(names, reading, store, stages)
    problem = _unusable(names, reading, store, language)
    return Selection(declined=problem) if problem else Selection(tuple(names))


def unwanted(text: str, store: NodeStore) -> frozenset[str]:
    """Names of the node types that a wish for changes takes back ("without the calculator", "replace SerpAPI by")."""
    found: set[str] = set()
    for pattern, names in words.TOOLS:
        if denied(text, pattern) or _removed(text, pattern):
            found.update(names)
    for pattern, category in ((words.MEMORY, "Memory"), (words.SPLIT, "Text Splitters")):
        if denied(text, pattern) or _removed(text, pattern):
            found.update(schema.name for schema in store.schemas.values() if schema.category == category)
    # One that is named is wanted where only its kind is taken out ("replace the web search by Brave").
    for pattern, names in words.TOOLS:
        if len(names) == 1 and next(mentions(text, pattern), None) and not _removed(text, pattern):
            found.difference_update(names)
    # Of the whole wish, since the words in between may be part of a title.
    going = [text[match.end() : _end_of_removed(text, match.end())] for match in mentions(text, words.REMOVE)]
    found.update(item.name for stretch in going for item in named_components(stretch, store))
    return frozenset(found)


def _removed(text: str, pattern: re.Pattern[str]) -> bool:
    """Whether a word for removing stands shortly before the mention."""
    return any(
        pattern.search(text[match.end() : _end_of_removed(text, match.end())]) for match in mentions(text, words.REMOVE)
    )


def _end_of_removed(text: str, start: int) -> int:
    return start + len(_AFTER_REMOVED.split(text[start : start + 60])[0])


def refusal_of(reading: Reading, store: NodeStore, language: str) -> str | None:
    """The sentence that declines what no rule can do."""
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
    for names in reading.tools:
        if not usable(names, store):
            return say("declined_tool", language, name=names[0])
    return None


def _ending(
    reading: Reading, requested: Sequence[str], tools: Sequence[str], store: NodeStore, *, knowledge: bool, stages: int
) -> str:
    """What the flow ends in: what is named, else what the parts that are named go into."""
    schemas = [store.schemas[name] for name in requested]
    as_tool = "chainTool" in requested
    named = [schema.name for schema in schemas if schema.category in ENDING_CATEGORIES]
    if named and not as_tool and (named[0] != "llmChain" or not tools):
        return named[0]
    if tools or any("Tool" in schema.base_classes for schema in schemas):
        return "toolAgent"
    if reading.chain:
        return reading.chain
    if knowledge and (reading.agent or reading.besides):
        return "toolAgent"
    if knowledge:
        return "conversationalRetrievalQAChain"
    if any(schema.category in ("Output Parsers", "Prompts") for schema in schemas) or stages > 1:
        return "llmChain"
    talks = reading.chat or reading.agent
    if (reading.structured or reading.listing or reading.transform) and not reading.memory:
        one_way = reading.structured or reading.listing or not talks or bool(words.CHAIN.search(reading.text))
        if one_way or reading.no_memory:
            return "llmChain"
    # Every conversation node insists on a memory.
    return "llmChain" if reading.no_memory else "conversationChain"


def takes(schema: NodeSchema, *classes: str) -> bool:
    """Whether an input of the node is for one of these classes."""
    return any(set(classes) & set(anchor.types) for anchor in schema.anchors if not anchor.show)


def _memory(reading: Reading, ending: NodeSchema) -> list[str]:
    anchor = next((a for a in ending.anchors if {"BaseMemory", "BaseChatMemory"} & set(a.types)), None)
    if anchor is None:
        return []
    if reading.memory:
        return [reading.memory]
    return [] if anchor.optional else ["bufferMemory"]


def tools_of(
    reading: Reading, store: NodeStore, available: Mapping[str, int], without: frozenset[str] = frozenset()
) -> list[str]:
    chosen: list[str] = []
    for names in reading.tools:
        fitting = [name for name in usable(names, store) if name not in without]
        at_hand = [
            name for name in fitting if any(available.get(kind) for kind in store.schemas[name].credential_names)
        ]
        if fitting and not any(name in chosen for name in fitting):
            chosen.append((at_hand or fitting)[0])
    return chosen


def usable(names: Iterable[str], store: NodeStore) -> list[str]:
    """Those that an agent takes: some tools of the catalogue are of a class that none does."""
    return [name for name in names if (schema := store.get(name)) and "Tool" in schema.base_classes]


def documents_of(
    reading: Reading,
    requested: Sequence[str],
    provider: Provider,
    store: NodeStore,
    available: Mapping[str, int],
    *,
    as_tool: bool,
) -> list[str]:
    embeddings = reading.embeddings.embeddings if reading.embeddings else provider.embeddings
    vector_store = reading.vector_store or "memoryVectorStore"
    named = {store.schemas[name].category: name for name in requested}
    vector_store = named.get("Vector Stores", vector_store)
    names = ["retrieverTool"] if as_tool else []
    names.append(vector_store)
    if vector_store in store.schemas and takes(store.schemas[vector_store], "Embeddings"):
        names.append(embeddings or default_embeddings(store.schemas, available))
    loaders = loaders_of(reading, named.get("Document Loaders"))
    filled_before = reading.stored and vector_store != "memoryVectorStore" and not reading.promised
    if filled_before and not loaders and reading.inline_text is None:
        return names
    loaders = loaders or ["plainText"]
    splits = any(name not in store.schemas or takes(store.schemas[name], "TextSplitter") for name in loaders)
    return [*names, *loaders, *([reading.splitter] if splits else [])]


def loaders_of(reading: Reading, named: str | None = None) -> list[str]:
    """A loader for each source that the text names: kinds of files and services, then pages by their address."""
    kinds = [named] if named else list(reading.loaders)
    taking = [name for name in kinds if name in _TAKE_PAGES]
    pages = len(reading.urls) - len(taking)
    found = [*kinds, *[*taking[:1], "cheerioWebScraper"][:1] * max(0, pages)]
    return [*found, "plainText"] if reading.inline_text and "plainText" not in found else found


def moderation_of(reading: Reading) -> list[str]:
    if reading.denied_words:
        return ["inputModerationSimple"]
    return ["inputModerationOpenAI"] if reading.content_moderation else []


def _with_requested(names: list[str], requested: Sequence[str], store: NodeStore) -> list[str]:
    for name in requested:
        category = store.schemas[name].category
        if name in names or (category in ENDING_CATEGORIES and name != "llmChain"):
            continue
        rivals = [other for other in names if other in store.schemas and store.schemas[other].category == category]
        if category in _SINGLE and rivals and names[0] not in rivals:
            names[names.index(rivals[0])] = name
        elif name == "fewShotPromptTemplate":
            # It is built around a plain prompt and stands in front of it.
            names.insert(1, name)
        else:
            names.append(name)
    loaders = [name for name in names if name in store.schemas and store.schemas[name].category == "Document Loaders"]
    once = dict.fromkeys(name for name in names if name not in loaders)
    return [*once, *loaders]


def _several(names: list[str], reading: Reading, store: NodeStore, stages: int) -> list[str]:
    """With several subjects a part for each, with several tasks a chain and a prompt for each."""
    if stages > 1 and names[0] == "llmChain":
        # A model of its own for each: Flowise cannot hand one on that has answered within the same run.
        models = [name for name in names if store.schemas[name].category == "Chat Models"]
        counts: dict[str, int] = dict.fromkeys(("llmChain", "promptTemplate", *models), stages)
    elif "promptRetriever" in names:
        counts = {"promptRetriever": max(2, len(reading.topics))}
    elif len(reading.topics) > 1:
        apart = {"retrieverTool", "vectorStoreRetriever"} & set(names)
        kinds = ("Vector Stores", "Document Loaders") if apart else ()
        each = [name for name in names if name in apart or store.schemas[name].category in kinds]
        each += [name for name in names if not apart and name == "plainText"]
        counts = dict.fromkeys(each, len(reading.topics))
    else:
        return names
    return [copy for name in names for copy in [name] * counts.get(name, 1)]


def defaults_of(provider: Provider, store: NodeStore, available: Mapping[str, int]) -> dict[str, str]:
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
        "PromptTemplate": "promptTemplate",
        "BaseChain": "llmChain",
        "VectorStoreRetriever": "memoryVectorStore",
        "PromptRetriever": "promptRetriever",
        "Neo4j": "Neo4j",
        "TextSplitter": "recursiveCharacterTextSplitter",
    }


def _unusable(names: Sequence[str], reading: Reading, store: NodeStore, language: str) -> str | None:
    """Declines what would not run: an input that nothing feeds, a part that nothing takes, a value only people know."""
    nodes = {f"{name}_{index}": store.schemas[name] for index, name in enumerate(names)}
    wiring = wire(nodes)
    for node_id, anchor in wiring.unmet:
        return say("declined_input", language, label=nodes[node_id].label, input=anchor)
    for node_id in wiring.loose:
        return say("declined_loose", language, label=nodes[node_id].label)
    return lacking_of(nodes.values(), reading, language)


def lacking_of(schemas: Iterable[NodeSchema], reading: Reading, language: str) -> str | None:
    """Declines when a node needs something that nobody but the person knows and that nothing can stand in for."""
    for schema in schemas:
        lacking = [param.label for param in open_params(schema, parameters(schema, Said(reading), language=language))]
        if lacking:
            return say("declined_params", language, label=schema.label, params=", ".join(lacking))
    return None
