"""What a wish takes out of a chatflow that is there, what it puts in the place of something, and what it adds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning import wiring
from flowise_dev_agent.reasoning.rules.design import selection
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import words


@dataclass(frozen=True)
class Edits:
    """`replaced`: node id -> name of the type that takes its place."""

    replaced: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def find_edits(change: Reading, existing: Mapping[str, NodeSchema], occupied: frozenset[str], world: World) -> Edits:
    """`occupied` are the single inputs that are connected ("id.input"). Raises DeclinedError."""
    dropped = selection.unwanted(change.text, world)
    # A wish that is removed by kind ("the web search") is none for another node of the kind.
    tools = tuple(names for names in change.tools if not set(names) & dropped)
    change = replace(change, requested=tuple(n for n in change.requested if n not in dropped), tools=tools)
    if change.memory == "bufferMemory" and change.memory in dropped and not words("buffer_memory").search(change.text):
        # "Take the memory out" asks for none.
        change = replace(change, memory=None)
    selection.check_names(change, world)
    present = {schema.name for schema in existing.values()}
    wanted = [name for name in _wanted(change, existing, world, dropped) if name not in present]
    if wanted and not dropped & present and selection.only_removes(change.text):
        raise world.decline("declined_absent")
    dropped -= set(wanted)
    replaced: dict[str, str] = {}
    added: list[str] = []
    for name in wanted:
        family = wiring.family_of(world.schema(name))
        rivals = {id_: one for id_, one in existing.items() if one.category in family and id_ not in replaced}
        rivals = {id_: schema for id_, schema in rivals.items() if schema.name in dropped} or rivals
        alike = family == wiring.MODEL_CATEGORIES and len({schema.name for schema in rivals.values()}) == 1
        if not rivals:
            added.append(name)
        elif len(rivals) > 1 and not alike:
            raise world.decline("declined_which", nodes=", ".join(rivals))
        replaced |= dict.fromkeys(rivals, name)
    chains = [id_ for id_, schema in existing.items() if schema.name == "conversationChain"]
    if any("Tool" in world.schema(name).base_classes for name in added) and not _has_list(existing, "Tool"):
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
    _check_needed(edits, existing, world)
    return edits


def _wanted(change: Reading, existing: Mapping[str, NodeSchema], world: World, dropped: frozenset[str]) -> list[str]:
    """Node types that the wish speaks of, besides those that it takes out."""
    kinds = {schema.category for schema in existing.values()}
    names: list[str | None] = [change.memory, *selection.tools_of(change, world, dropped)]
    # "Use the OpenAI embeddings" names a provider by its embeddings alone.
    if (
        change.provider
        and kinds & wiring.MODEL_CATEGORIES
        and (change.provider is not change.embeddings or change.model)
    ):
        names.insert(0, change.provider.chat)
    if "Vector Stores" in kinds:
        names.append(change.vector_store or next((n for n in change.requested if n == "memoryVectorStore"), None))
    if "Embeddings" in kinds and change.embeddings:
        names.append(change.embeddings.embeddings)
    if "Document Loaders" in kinds:
        names += change.loaders[:1]
    if (
        change.splits
        and "Text Splitters" not in kinds
        and any(selection.takes(s, "TextSplitter") for s in existing.values())
    ):
        names.append(change.splitter)
    if _has_list(existing, "Moderation"):
        names += selection.moderation_of(change)
    names += [name for name in change.requested if world.schema(name).category not in wiring.ENDING_CATEGORIES]
    if _asked_documents(change, existing):
        names += selection.documents_of(
            change, selection.provider_for(change, world, knowledge=True), world, as_tool=False
        )
    elif "retrieverTool" in names or (
        change.knowledge and _has_list(existing, "Tool") and "Vector Stores" not in kinds
    ):
        documents = selection.documents_of(
            change, selection.provider_for(change, world, knowledge=True), world, as_tool=True
        )
        names += [name for name in documents if name == "retrieverTool" or world.schema(name).category not in kinds]
    return list(dict.fromkeys(name for name in names if name))


def _asked_documents(change: Reading, existing: Mapping[str, NodeSchema]) -> bool:
    """Whether a mere conversation is to answer from documents from now on."""
    names = [schema.name for schema in existing.values()]
    plain = all(schema.category in ("Chat Models", "Memory", "Chains", "Cache") for schema in existing.values())
    asked = change.knowledge and (change.loaders or change.urls or change.inline_text) and not change.tools
    return bool(asked) and plain and names.count("conversationChain") == 1


def _has_list(existing: Mapping[str, NodeSchema], kind: str) -> bool:
    return any(kind in anchor.types and anchor.is_list for schema in existing.values() for anchor in schema.anchors)


def _fitted(
    edits: Edits, change: Reading, existing: Mapping[str, NodeSchema], occupied: frozenset[str], world: World
) -> Edits:
    """The edits with what the new nodes need besides. Raises DeclinedError for what has no place."""
    provider = selection.provider_for(change, world, knowledge=change.knowledge)
    stays = {id_: schema for id_, schema in existing.items() if id_ not in (*edits.removed, *edits.replaced)}
    there = [*(schema.name for schema in stays.values()), *edits.replaced.values()]
    needed = wiring.complete([*there, *edits.added], world.store.schemas, selection.defaults_of(provider, world))
    # What was taken out is not brought back by the back door.
    out = {existing[node_id].category for node_id in edits.removed}
    extra = [name for name in needed[len(there) + len(edits.added) :] if world.schema(name).category not in out]
    added = (*edits.added, *extra)
    selection.check_filled(map(world.schema, added), change, world)
    fixed = {**stays, **{f"in_{id_}": world.schema(name) for id_, name in edits.replaced.items()}}
    new = {f"new_{index}": world.schema(name) for index, name in enumerate(added)}
    selection.check_wired(
        {**new, **fixed}, world, list(fixed), wiring.renamed(occupied, {id_: f"in_{id_}" for id_ in edits.replaced})
    )
    return replace(edits, added=added)


def _check_needed(edits: Edits, existing: Mapping[str, NodeSchema], world: World) -> None:
    """Raises DeclinedError when something that stays or is new cannot do without what is removed."""
    stays = [schema for id_, schema in existing.items() if id_ not in (*edits.removed, *edits.replaced)]
    others = [*stays, *map(world.schema, (*edits.added, *edits.replaced.values()))]
    for gone in (existing[node_id] for node_id in edits.removed):
        for other in others:
            for anchor in other.anchors:
                lacks = not (anchor.optional or anchor.show) and wiring.fitting_output(gone, anchor)
                if lacks and not any(wiring.fitting_output(rest, anchor) for rest in others if rest is not other):
                    raise world.decline("declined_required", label=gone.label, by=other.label)
