"""What a wish takes out of a flow that is there, what it puts in the place of something, and what it adds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import Connect, NodeSchema
from flowise_dev_agent.reasoning.contracts import PlanContract
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.providers import default_provider
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.selection import (
    defaults_of,
    documents_of,
    lacking_of,
    moderation_of,
    refusal_of,
    takes,
    tools_of,
)
from flowise_dev_agent.reasoning.rules.design.wiring import ENDING_CATEGORIES, complete, fitting_output, wire

#: Of these a flow has one; another one takes its place. Completion models are models, too.
_FAMILIES = (
    frozenset({"Chat Models", "LLMs"}),
    frozenset({"Memory"}),
    frozenset({"Vector Stores"}),
    frozenset({"Embeddings"}),
    frozenset({"Text Splitters"}),
    frozenset({"Document Loaders"}),
    frozenset({"Output Parsers"}),
)
#: A family of which a flow may have several that are all meant ("use Claude").
_ALL_ALIKE = _FAMILIES[0]


@dataclass(frozen=True)
class Edits:
    """`replaced`: node id -> name of the type that takes its place. `declined`: the sentence that says why not."""

    replaced: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    declined: str | None = None


def find_edits(
    change: Reading,
    existing: Mapping[str, NodeSchema],
    store: NodeStore,
    available: Mapping[str, int],
    *,
    dropped: frozenset[str],
    occupied: frozenset[str],
    language: str,
) -> Edits:
    """`dropped` are the types that the wish takes out, `occupied` the single inputs that are connected ("id.input")."""
    change = replace(
        change,
        requested=tuple(name for name in change.requested if name not in dropped),
        # A wish that is removed by kind ("the web search") is none for another node of the kind.
        tools=tuple(names for names in change.tools if not set(names) & dropped),
    )
    refusal = refusal_of(change, store, language)
    if refusal:
        return Edits(declined=refusal)
    present = {schema.name for schema in existing.values()}
    wanted = [name for name in _wanted(change, existing, store, available, dropped) if name not in present]
    dropped -= set(wanted)
    replaced: dict[str, str] = {}
    added: list[str] = []
    for name in wanted:
        if name not in store.schemas:
            return Edits(declined=say("declined_missing", language, name=name))
        family = next((kind for kind in _FAMILIES if store.schemas[name].category in kind), frozenset[str]())
        rivals = {id_: schema for id_, schema in existing.items() if schema.category in family and id_ not in replaced}
        named = {id_: schema for id_, schema in rivals.items() if schema.name in dropped}
        rivals = named or rivals
        if not rivals:
            added.append(name)
            continue
        if len(rivals) > 1 and not (family == _ALL_ALIKE and len({s.name for s in rivals.values()}) == 1):
            return Edits(declined=say("declined_which", language, nodes=", ".join(rivals)))
        replaced |= dict.fromkeys(rivals, name)
    if any("Tool" in store.schemas[name].base_classes for name in added) and not _has_list(existing, "Tool"):
        chain = [id_ for id_, schema in existing.items() if schema.name == "conversationChain"]
        if len(chain) != 1:
            return Edits(declined=say("declined_no_agent", language))
        # An agent does what the chain did, and can use tools.
        replaced[chain[0]] = "toolAgent"
    removed = tuple(id_ for id_, schema in existing.items() if schema.name in dropped and id_ not in replaced)
    there = [schema for id_, schema in existing.items() if id_ not in removed]
    tools = [schema for schema in (*there, *(store.schemas[name] for name in added)) if "Tool" in schema.base_classes]
    agents = [id_ for id_, schema in existing.items() if schema.name == "toolAgent"]
    if removed and agents and not tools:
        # An agent does not run without tools; a chain goes on with what it was told.
        replaced |= dict.fromkeys(agents, "conversationChain")
    return _fitted(Edits(replaced, removed, tuple(added)), change, existing, store, available, occupied, language)


def _wanted(
    change: Reading,
    existing: Mapping[str, NodeSchema],
    store: NodeStore,
    available: Mapping[str, int],
    dropped: frozenset[str],
) -> list[str]:
    """Node types that the wish speaks of, besides those that it takes out."""
    kinds = {schema.category for schema in existing.values()}
    names: list[str] = []
    if change.provider and kinds & _ALL_ALIKE and not _only_embeddings(change):
        names.append(change.provider.chat)
    if change.memory:
        names.append(change.memory)
    names += tools_of(change, store, available, dropped)
    if "Vector Stores" in kinds and (change.vector_store or "memoryVectorStore" in change.requested):
        names.append(change.vector_store or "memoryVectorStore")
    if "Embeddings" in kinds and change.embeddings and change.embeddings.embeddings:
        names.append(change.embeddings.embeddings)
    if "Document Loaders" in kinds:
        names += change.loaders[:1]
    if change.splits and _has_free(existing, "TextSplitter") and "Text Splitters" not in kinds:
        names.append(change.splitter)
    if _has_list(existing, "Moderation"):
        names += moderation_of(change)
    names += [name for name in change.requested if store.schemas[name].category not in ENDING_CATEGORIES]
    if "retrieverTool" in names or (change.knowledge and _has_list(existing, "Tool") and "Vector Stores" not in kinds):
        provider = change.provider or default_provider(store.schemas, available, with_embeddings=True)
        documents = documents_of(change, change.requested, provider, store, available, as_tool=True)
        names += [name for name in documents if store.schemas[name].category not in kinds or name == "retrieverTool"]
    return list(dict.fromkeys(names))


def _only_embeddings(change: Reading) -> bool:
    """Whether the provider is named by its embeddings alone ("use the OpenAI embeddings")."""
    return change.provider is change.embeddings and change.model is None


def _fitted(
    edits: Edits,
    change: Reading,
    existing: Mapping[str, NodeSchema],
    store: NodeStore,
    available: Mapping[str, int],
    occupied: frozenset[str],
    language: str,
) -> Edits:
    """The edits with what the new nodes need besides, or the sentence that says what has no place."""
    provider = change.provider or default_provider(store.schemas, available, with_embeddings=change.knowledge)
    stays = {id_: schema for id_, schema in existing.items() if id_ not in (*edits.removed, *edits.replaced)}
    there = [schema.name for schema in stays.values()] + list(edits.replaced.values())
    needed = complete([*there, *edits.added], store.schemas, defaults_of(provider, store, available))
    # What was taken out is not brought back by the back door.
    out = {existing[node_id].category for node_id in edits.removed}
    extra = [name for name in needed[len(there) + len(edits.added) :] if store.schemas[name].category not in out]
    added = (*edits.added, *extra)
    if lacking := lacking_of([store.schemas[name] for name in added], change, language):
        return Edits(declined=lacking)
    new = {f"new_{index}": store.schemas[name] for index, name in enumerate(added)}
    replacing = {f"in_{id_}": store.schemas[name] for id_, name in edits.replaced.items()}
    fixed = {**stays, **replacing}
    taken = renamed(occupied, {id_: f"in_{id_}" for id_ in edits.replaced})
    wiring = wire({**new, **fixed}, fixed=list(fixed), occupied=taken)
    for node_id, anchor in wiring.unmet:
        return Edits(declined=say("declined_input", language, label=new[node_id].label, input=anchor))
    for node_id in wiring.loose:
        return Edits(declined=say("declined_loose", language, label=new[node_id].label))
    return replace(edits, added=added)


def renamed(occupied: frozenset[str], ids: Mapping[str, str]) -> frozenset[str]:
    """The inputs after nodes were put in the place of others (old id -> new id), which keep what fits."""
    split = (place.partition(".") for place in occupied)
    return frozenset(f"{ids.get(node_id, node_id)}.{name}" for node_id, _, name in split)


def _has_list(existing: Mapping[str, NodeSchema], kind: str) -> bool:
    return any(kind in anchor.types and anchor.is_list for schema in existing.values() for anchor in schema.anchors)


def _has_free(existing: Mapping[str, NodeSchema], kind: str) -> bool:
    return any(takes(schema, kind) for schema in existing.values())


def missed(
    edits: Edits, existing: Mapping[str, NodeSchema], stays: Mapping[str, NodeSchema], language: str
) -> str | None:
    """The sentence that declines when something that stays or is new cannot do without what is removed."""
    for node_id in edits.removed:
        taker = _insists_on(existing[node_id], stays)
        if taker:
            return say("declined_required", language, label=existing[node_id].label, by=taker)
    return None


def pairs_of(plan: PlanContract, existing: Mapping[str, NodeSchema], new: Mapping[str, NodeSchema]) -> dict[str, str]:
    """Removed node id -> id of the planned node that takes its place: a new one of the same kind."""
    free = dict(new)
    found: dict[str, str] = {}
    for node_id in plan.removals:
        old = existing.get(node_id)
        twin = next((id_ for id_, schema in free.items() if old and _same_kind(old, schema)), None)
        if twin:
            found[node_id] = twin
            del free[twin]
    return found


def _same_kind(old: NodeSchema, new: NodeSchema) -> bool:
    if old.category == new.category or {old.category, new.category} <= ENDING_CATEGORIES:
        return True
    return any(old.category in family and new.category in family for family in _FAMILIES)


def further_inputs(node_id: str, old: NodeSchema, nodes: Mapping[str, NodeSchema]) -> list[Connect]:
    """Connections for required inputs that the old type did not have, from what is in the flow."""
    had = {anchor.name for anchor in old.anchors}
    found: list[Connect] = []
    for anchor in nodes[node_id].anchors:
        if anchor.optional or anchor.show or anchor.name in had:
            continue
        for source, schema in nodes.items():
            output = (
                None if source == node_id or schema.category in ENDING_CATEGORIES else fitting_output(schema, anchor)
            )
            if output:
                name = output.name if schema.multi_output else None
                found.append(
                    Connect(
                        source_node_id=source, source_anchor=name, target_node_id=node_id, target_anchor=anchor.name
                    )
                )
                break
    return found


def _insists_on(schema: NodeSchema, others: Mapping[str, NodeSchema]) -> str | None:
    """The label of a node that cannot do without such a node, None when all can."""
    for other in others.values():
        for anchor in other.anchors:
            if anchor.optional or anchor.show or not fitting_output(schema, anchor):
                continue
            if not any(fitting_output(rest, anchor) for rest in others.values() if rest is not other):
                return other.label
    return None
