"""Which nodes a requirement needs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final

from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.reasoning import wiring
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, leaves
from flowise_dev_agent.reasoning.rules.design.details import named_components
from flowise_dev_agent.reasoning.rules.design.providers import Provider, default_embeddings, default_provider
from flowise_dev_agent.reasoning.rules.design.reading import Reading, tool_named
from flowise_dev_agent.reasoning.rules.design.values import Said, open_params, parameters
from flowise_dev_agent.reasoning.rules.design.wording import is_off
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import constants, pattern, table, words
from flowise_dev_agent.reasoning.rules.language.senses import LIKELY
from flowise_dev_agent.reasoning.rules.language.text import is_negated, mentioned, mentions
from flowise_dev_agent.reasoning.wiring import ENDING_CATEGORIES, MODEL_CATEGORIES, complete, fitting_output, wire

#: A flow has one of each of the first; one asked for by name takes the place of the usual one. Naming one of the second
#: means that answers come from documents, and the third are loaders that read what an address leads to.
_SINGLE, _DOCUMENTS, _TAKE_PAGES = (frozenset(constants("kinds")[n]) for n in ("single", "documents", "take_pages"))
#: Where a row of a list of tools has the name of one.
TOOL: Final = "agentSelectedTool"
#: Similarity from which a name is worth mentioning to a person.
_CLOSE: Final = 0.6


def select(reading: Reading, world: World) -> list[str]:
    """The node names of a new flow in the order of the plan, the ending node first. Raises DeclinedError."""
    check_names(reading, world)
    own = {world.schema(name).category for name in reading.requested}
    knowledge = reading.knowledge or bool(own & _DOCUMENTS)
    tools = tools_of(reading, world)
    ending = world.schema(_ending(reading, tools, world, knowledge=knowledge))
    names = [reading.memory] if reading.memory and takes(ending, "BaseMemory", "BaseChatMemory") else []
    names += [*tools, *(one.node for one in reading.requests)] if takes(ending, "Tool") else []
    if reading.structured and takes(ending, "BasePromptTemplate"):
        if not reading.fields:
            raise world.decline("question_fields")
        names.append("structuredOutputParser")
    if knowledge:
        names += documents_of(reading, world, as_tool=takes(ending, "Tool"))
        if any(anchor.is_list for anchor in ending.anchors if "VectorStoreRetriever" in anchor.types):
            names.append("vectorStoreRetriever")
    names += moderation_of(reading) if takes(ending, "Moderation") else []
    # One asked for by name takes the place of the usual one.
    names = [name for name in names if world.schema(name).category not in own & _SINGLE]
    parts = (name for name in reading.requested
             if name == "llmChain" or world.schema(name).category not in ENDING_CATEGORIES)  # fmt: skip
    defaults = defaults_of(provider_for(reading, world, knowledge=knowledge), world)
    names = [ending.name, *names]
    names += [name for name in parts if name not in names]
    names = _several(complete(names, world.store.schemas, defaults), reading, world)
    nodes = {f"{name}_{index}": world.schema(name) for index, name in enumerate(names)}
    check_wired({**nodes, **world.ready}, world)
    check_filled(nodes.values(), reading, world)
    return names


def provider_for(reading: Reading, world: World, *, knowledge: bool) -> Provider:
    return reading.provider or default_provider(world, reading.denied, with_embeddings=knowledge)


def check_names(reading: Reading, world: World) -> None:
    """Raises DeclinedError for what no rule can do."""
    if reading.unknown:
        name = reading.unknown[0]
        close = ", ".join(get_close_matches(name, world.store.suggest(name), cutoff=_CLOSE))
        raise world.decline("declined_unknown", name=name, near=world.say("near", names=close) if close else "")
    for name in reading.requested:
        if KIND_OF_CATEGORY.get(world.schema(name).category, "CHATFLOW") != "CHATFLOW":
            raise world.decline("declined_kind", name=name)
    # "Tavily or Brave": the other is told as not done.
    if reading.tools and not any(usable(names, world) for names in reading.tools):
        raise world.decline("declined_tool", name=reading.tools[0][0])


def _ending(reading: Reading, tools: Sequence[str], world: World, *, knowledge: bool) -> str:
    """What the flow ends in: what is named, else what the parts that are named go into."""
    schemas = [world.schema(name) for name in reading.requested]
    named = [schema.name for schema in schemas if schema.category in ENDING_CATEGORIES]
    as_tool = "chainTool" in reading.requested
    if named and not as_tool and (named[0] != "llmChain" or not tools):
        return named[0]
    if tools or reading.requests or world.ready or any("Tool" in schema.base_classes for schema in schemas):
        return "toolAgent"
    if knowledge:
        return "toolAgent" if reading.agent or reading.besides else "conversationalRetrievalQAChain"
    if any(schema.category in ("Output Parsers", "Prompts") for schema in schemas):
        return "llmChain"
    talks = (reading.chat or reading.agent) and not words("chain").search(reading.text)
    once = (reading.structured or (reading.transform and not talks)) and not reading.memory
    # Every conversation node insists on a memory.
    return "llmChain" if reading.no_memory or once else "conversationChain"


def takes(schema: NodeSchema, *classes: str) -> bool:
    """Whether an input of the node is for one of these classes."""
    return any(set(classes) & set(anchor.types) for anchor in schema.anchors if not anchor.show)


def tools_of(reading: Reading, world: World, without: frozenset[str] = frozenset()) -> list[str]:
    """A tool for each wish, one whose credential is there before others."""
    chosen: list[str] = []
    for names in reading.tools:
        fitting = [name for name in usable(names, world) if name not in without]
        if fitting and not any(name in chosen for name in fitting):
            chosen.append(world.first(fitting))
    # Who writes "on Friday" into a calendar has to know what day it is.
    return list(dict.fromkeys([*chosen, *["currentDateTime"] * any("Calendar" in name for name in chosen)]))


def usable(names: Iterable[str], world: World) -> list[str]:
    """Those that an agent takes: some tools of the catalogue are of a class that none does."""
    return [name for name in names if (schema := world.store.get(name)) and "Tool" in schema.base_classes]


def documents_of(reading: Reading, world: World, *, as_tool: bool) -> list[str]:
    """Vector store, embeddings that are named, and a loader with its splitter for each source."""
    store = reading.vector_store or "memoryVectorStore"
    names = [*["retrieverTool"] * as_tool, store]
    if reading.embeddings and reading.embeddings.embeddings and takes(world.schema(store), "Embeddings"):
        names.append(reading.embeddings.embeddings)
    taking = [name for name in reading.loaders if name in _TAKE_PAGES]
    more = max(0, len(reading.urls) - len(taking))
    loaders = [*reading.loaders, *[*taking[:1], "cheerioWebScraper"][:1] * more]
    given = reading.inline_text or (reading.promised and not reading.loaders)
    loaders += ["plainText"] if given and "plainText" not in loaders else []
    # An index that is named, and nothing to put into it, is one that has documents.
    filled = (reading.stored or (reading.places and not reading.topics)) and store != "memoryVectorStore"
    loaders = loaders or ([] if filled else ["plainText"])
    splits = any(takes(world.schema(name), "TextSplitter") for name in loaders)
    return [*names, *loaders, *[reading.splitter] * splits]


def moderation_of(reading: Reading) -> list[str]:
    if reading.denied_words:
        return ["inputModerationSimple"]
    return ["inputModerationOpenAI"] if reading.content_moderation and "chatOpenAI" not in reading.denied else []


def _several(names: list[str], reading: Reading, world: World) -> list[str]:
    """With several subjects a part for each."""
    apart = {"retrieverTool", "vectorStoreRetriever"} & set(names)
    kinds = ("Vector Stores", "Document Loaders") if apart else ()
    each = {name for name in names if name in apart or world.schema(name).category in kinds} or {"plainText"}
    return [copy for name in names for copy in [name] * (max(1, len(reading.topics)) if name in each else 1)]


def defaults_of(provider: Provider, world: World) -> dict[str, str]:
    """What to add for a required input, by the class that it takes."""
    own = {"chat": provider.chat, "embeddings": provider.embeddings or default_embeddings(world)}
    return {kind: own.get(name) or name for name, kinds in constants("defaults").items() for kind in kinds}


def check_wired(
    nodes: Mapping[str, NodeSchema], world: World, fixed: Sequence[str] = (), occupied: frozenset[str] | None = None
) -> None:
    """Raises DeclinedError for an input that nothing feeds and for a part that nothing takes."""
    wiring = wire(nodes, fixed, occupied)
    for node_id, anchor in wiring.unmet:
        raise world.decline("declined_input", label=nodes[node_id].label, input=anchor)
    for node_id in wiring.loose:
        raise world.decline("declined_loose", label=nodes[node_id].label)


def check_filled(schemas: Iterable[NodeSchema], reading: Reading, world: World) -> None:
    """Raises DeclinedError when a node needs something that only the person knows and nothing can stand in for."""
    for schema in schemas:
        if lacking := open_params(schema, parameters(schema, Said(reading), language=world.language)):
            raise world.decline("declined_params", label=schema.label, params=", ".join(p.label for p in lacking))


# --- Tools: of the agents inside an agentflow, and what a wish takes back ---------------------------------------------


def tool_asked(name: str, world: World) -> tuple[str, ...]:
    """The node types that a form means by a type, a title, or words as in a requirement. Raises DeclinedError."""
    if not (found := tool_named(name, world.store)):
        raise world.decline("declined_tool", name=name)
    return found


def tool_row(names: Sequence[str], reading: Reading, world: World) -> dict[str, Any]:
    """The row of the first of these tools whose credential is at hand, else of the first. Raises DeclinedError."""
    schema = world.schema(world.first([name for name in names if name in world.store.schemas] or [names[0]]))
    check_filled([schema], reading, world)
    return {TOOL: schema.name, f"{TOOL}Config": parameters(schema, Said(reading), language=world.language)}


def only_removes(text: str) -> bool:
    """Whether a wish ends with what it takes out: nothing is said to be added or to take its place."""
    text, more = text.rstrip(" .!"), pattern("selection", "after_removed")
    return any(not more.search(text, match.end()) for match in mentions(text, words("remove")))


def unwanted(text: str, world: World) -> frozenset[str]:
    """Names of the node types that a wish takes back ("without the calculator", "replace SerpAPI by")."""
    ends = pattern("selection", "after_removed")
    going = [ends.split(text[match.end() : match.end() + 60])[0] for match in mentions(text, words("remove"))]
    # "The calculator can go": said behind it.
    said_out = pattern("change", "out").finditer(text)
    going += [re.split(r"[.,;:!?]\s|\n", text[max(0, one.start() - 60) : one.start()])[-1] for one in said_out]
    # Said in words of which no list knows that they take something out ("turn off the search").
    read = leaves([*clauses(text, change=True)])
    going += [one.said for one in read if min(one.sense.off, one.sense.part) > LIKELY or (
              # "La calculadora la podéis quitar": the order comes last.
              one.sense.part > LIKELY and any(one.said[at.end() :].strip(" .!,") == "" for at in
                                              mentions(one.said, words("remove"))))]  # fmt: skip

    def removed(looked_for: re.Pattern[str]) -> bool:
        return any(looked_for.search(stretch) for stretch in going)

    def out(looked_for: re.Pattern[str]) -> bool:
        said = any(
            is_negated(text, *match.span()) and is_off(text, match.start()) for match in looked_for.finditer(text)
        )
        return removed(looked_for) or (said and not mentioned(text, looked_for))

    found = {name for looked_for, names in table("tools") if out(looked_for) for name in names}
    for name, category in (("memory", "Memory"), ("split", "Text Splitters"), ("content_moderation", "Moderation")):
        if out(words(name)):
            found |= {schema.name for schema in world.store.schemas.values() if schema.category == category}
    # One that is named is wanted where only its kind is taken out ("replace the web search by Brave").
    for looked_for, names in table("tools"):
        if len(names) == 1 and mentioned(text, looked_for) and not removed(looked_for):
            found.difference_update(names)
    return frozenset(found | {item[0] for stretch in going for item in named_components(stretch, world.store)})


# --- What a wish takes out of a chatflow that is there, puts in the place of something, and adds -----------------


@dataclass(frozen=True)
class Edits:
    """`replaced`: node id -> name of the type that takes its place."""

    replaced: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def find_edits(change: Reading, existing: Mapping[str, NodeSchema], occupied: frozenset[str], world: World) -> Edits:
    """`occupied` are the single inputs that are connected ("id.input"). Raises DeclinedError."""
    dropped = unwanted(change.text, world)
    present = {schema.name for schema in existing.values()}
    # A kind that is removed or there ("the web search") is no wish for another node of the kind.
    tools = tuple(names for names in change.tools if not set(names) & (dropped | present))
    change = replace(change, requested=tuple(n for n in change.requested if n not in dropped), tools=tools)
    named_buffer = words("buffer_memory").search(change.text)
    there = any(schema.category == "Memory" for schema in existing.values())
    if change.memory == "bufferMemory" and (there or change.memory in dropped) and not named_buffer:
        # "Take the memory out" asks for none, and one that is there is no other one.
        change = replace(change, memory=None)
    check_names(change, world)
    wanted = [name for name in _wanted(change, existing, world, dropped) if name not in present]
    if wanted and not dropped & present and only_removes(change.text):
        if len(pattern("values", "sentence").findall(change.text)) == 1:
            raise world.decline("declined_absent")
        wanted = []
    dropped -= set(wanted)
    replaced, added = dict[str, str](), list[str]()
    for name in wanted:
        family = wiring.family_of(world.schema(name))
        rivals = {id_: one for id_, one in existing.items() if one.category in family and id_ not in replaced}
        rivals = {id_: schema for id_, schema in rivals.items() if schema.name in dropped} or rivals
        alike = family == MODEL_CATEGORIES and len({schema.name for schema in rivals.values()}) == 1
        if not rivals:
            added.append(name)
        elif len(rivals) > 1 and not alike:
            raise world.decline("declined_which", nodes=", ".join(rivals))
        replaced |= dict.fromkeys(rivals, name)
    added += [one.node for one in change.requests] if has_list(existing, "Tool") else []
    chains = [id_ for id_, schema in existing.items() if schema.name == "conversationChain"]
    if any("Tool" in world.schema(name).base_classes for name in added) and not has_list(existing, "Tool"):
        if len(chains) != 1:
            raise world.decline("declined_no_agent")
        # An agent does what the chain did, and can use tools.
        replaced[chains[0]] = "toolAgent"
    elif _asked_documents(change, existing):
        replaced[chains[0]] = "conversationalRetrievalQAChain"
    removed = tuple(id_ for id_, schema in existing.items() if schema.name in dropped and id_ not in replaced)
    there = [*(schema for id_, schema in existing.items() if id_ not in removed), *map(world.schema, added)]
    if any(existing[id_].category == "Memory" for id_ in removed):
        # A conversation does not run without a memory; a chain with the same words does.
        replaced |= dict.fromkeys(chains, "llmChain")
    if removed and not any("Tool" in schema.base_classes for schema in there):
        # An agent does not run without tools; a chain goes on with what it was told.
        agents = [id_ for id_, schema in existing.items() if schema.name == "toolAgent"]
        replaced |= dict.fromkeys(agents, "conversationChain")
    edits = _fitted(Edits(replaced, removed, tuple(added)), change, existing, occupied, world)
    stays = [schema for id_, schema in existing.items() if id_ not in (*removed, *edits.replaced)]
    others = [*stays, *map(world.schema, (*edits.added, *edits.replaced.values()))]
    for gone, other in ((existing[id_], other) for id_ in removed for other in others):
        needs = [one for one in other.anchors if not (one.optional or one.show) and fitting_output(gone, one)]
        if any(not any(fitting_output(rest, one) for rest in others if rest is not other) for one in needs):
            raise world.decline("declined_required", label=gone.label, by=other.label)
    return edits


def _wanted(change: Reading, existing: Mapping[str, NodeSchema], world: World, dropped: frozenset[str]) -> list[str]:
    """Node types that the wish speaks of, besides those that it takes out."""
    kinds = {schema.category for schema in existing.values()}
    more = change.knowledge and "Vector Stores" not in kinds
    embeddings = change.embeddings.embeddings if change.embeddings else None
    model = change.provider
    names = [model.chat] if model and kinds & MODEL_CATEGORIES else []
    names += [change.memory, *tools_of(change, world, dropped)]
    # A source takes the place of another only where that is said.
    instead = any(words(verb).search(change.text) for verb in ("instead_of", "change", "remove"))
    loader = next(iter(change.loaders), None) if instead else None
    by_kind = {"Vector Stores": change.vector_store, "Embeddings": embeddings, "Document Loaders": loader}
    names += [name for kind, name in by_kind.items() if kind in kinds]
    if change.splits and "Text Splitters" not in kinds and any(takes(s, "TextSplitter") for s in existing.values()):
        names.append(change.splitter)
    names += moderation_of(change) if has_list(existing, "Moderation") else []
    names += [name for name in change.requested if world.schema(name).category not in ENDING_CATEGORIES]
    if change.structured and change.fields and any(takes(one, "BaseLLMOutputParser") for one in existing.values()):
        names.append("structuredOutputParser")
    if _asked_documents(change, existing):
        names += documents_of(change, world, as_tool=False)
    elif "retrieverTool" in names or (more and has_list(existing, "Tool")):
        documents = documents_of(change, world, as_tool=True)
        names += [name for name in documents if name == "retrieverTool" or world.schema(name).category not in kinds]
    return list(dict.fromkeys(name for name in names if name))


def _asked_documents(change: Reading, existing: Mapping[str, NodeSchema]) -> bool:
    """Whether a mere conversation is to answer from documents from now on."""
    names = [schema.name for schema in existing.values()]
    plain = all(schema.category in ("Chat Models", "Memory", "Chains", "Cache") for schema in existing.values())
    asked = change.knowledge and (change.loaders or change.urls or change.inline_text)
    other = change.tools or moderation_of(change)
    return bool(asked) and not other and plain and names.count("conversationChain") == 1


def has_list(existing: Mapping[str, NodeSchema], kind: str) -> bool:
    return any(kind in anchor.types and anchor.is_list for schema in existing.values() for anchor in schema.anchors)


def _fitted(
    edits: Edits, change: Reading, existing: Mapping[str, NodeSchema], occupied: frozenset[str], world: World
) -> Edits:
    """The edits with what the new nodes need besides. Raises DeclinedError for what has no place."""
    provider = provider_for(change, world, knowledge=change.knowledge)
    stays = {id_: schema for id_, schema in existing.items() if id_ not in (*edits.removed, *edits.replaced)}
    there = [*(schema.name for schema in stays.values()), *edits.replaced.values()]
    needed = complete([*there, *edits.added], world.store.schemas, defaults_of(provider, world))
    # What was taken out is not brought back by the back door.
    out = {existing[node_id].category for node_id in edits.removed}
    extra = [name for name in needed[len(there) + len(edits.added) :] if world.schema(name).category not in out]
    added = (*edits.added, *extra)
    check_filled(map(world.schema, added), change, world)
    fixed = {**stays, **{f"in_{id_}": world.schema(name) for id_, name in edits.replaced.items()}}
    new = {f"new_{index}": world.schema(name) for index, name in enumerate(added)}
    taken = wiring.renamed(occupied, {id_: f"in_{id_}" for id_ in edits.replaced})
    check_wired({**new, **fixed}, world, list(fixed), taken)
    return replace(edits, added=added)
