"""Writes of `apply_patch` besides the flow: make document stores and custom tools before it, accept or remove them with
it, fill the vector stores of the written flow.
"""

import hashlib
import json
import re
from collections.abc import Collection
from typing import Final

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.emit import Emitter
from flowise_dev_agent.agent.state import AgentState, CheckState, Update, WriteState
from flowise_dev_agent.approval.binding import effect_of
from flowise_dev_agent.errors import FlowiseError, WriteFailedError
from flowise_dev_agent.patch import Finding, FlowNode, GraphIR
from flowise_dev_agent.patch.validate.context import STORES
from flowise_dev_agent.planning.made_with_flow import stores_to_make, tools_to_make
from flowise_dev_agent.planning.passes.document_stores import store_spec
from flowise_dev_agent.schemas.event_data import DecisionData, WriteData
from flowise_dev_agent.testing.checks import placeholders_of
from flowise_dev_agent.texts import Text, counted, sentences, text, translated

#: Code of a finding on a vector store whose documents were not written.
UPSERT_FAILED: Final = "UPSERT_FAILED"
#: Fields of a vector store that say how it is searched, not where it is.
_SEARCH: Final = re.compile(r"^k$|topk|fetchk|filter|searchtype|lambda|alpha|mmr|sentences|semantic", re.IGNORECASE)


async def make_parts(state: AgentState, context: AgentContext, emit: Emitter) -> Update | None:
    """Make the tools and document stores of the approved plan, after which the flow is compiled again with their ids;
    None if they are there.
    """
    plan, made, tools = state.plan.current, dict(state.write.stores), dict(state.write.tools)
    missing, new = stores_to_make(plan, made), tools_to_make(plan, tools)
    if not missing and not new:
        return None
    for tool in new:
        if state.plan.agreed is None or effect_of(tool) not in state.plan.agreed.effects:
            raise WriteFailedError(text("error.tool_not_agreed", tool=tool.name), hint=text("error.plan_again"))
        tools[tool.key] = await context.publisher.make_tool(tool)
        emit.put(WriteData(tool=tool.name), text("event.tool_made", tool=tool.name))
    for planned in missing:
        spec = await store_spec(planned, context.files, context.session_id)
        if len(spec.loaders) < len(planned.files):
            raise WriteFailedError(
                text("error.store_files_gone", store=planned.name, files=planned.files),
                hint=text("error.start_with_files"),
            )
        store = await context.publisher.make_store(
            spec, lambda words, name=planned.name: emit.put(WriteData(document_store=name), words)
        )
        made[planned.name] = store.id
    return {
        "write": WriteState(stores=made, tools=tools),
        "check": CheckState(flow_sha=None, validated_sha=None, findings=[]),
    }


async def take_parts(state: AgentState, context: AgentContext, emit: Emitter) -> None:
    """Release the session's stores and tools to the person, who accepted the flow."""
    for store_id in state.write.stores.values():
        await context.publisher.take_store(store_id)
    await _settle_tools(state, context, emit)


async def _settle_tools(state: AgentState, context: AgentContext, emit: Emitter) -> None:
    if state.write.tools:
        for name in await context.publisher.settle_tools():
            emit.put(WriteData(tool=name), text("event.tool_deleted", tool=name))


async def remove_parts(state: AgentState, context: AgentContext, emit: Emitter) -> None:
    """Remove the session's tools that no flow names, its stores, and its additions to others; report leftovers: vectors
    without a record manager.
    """
    await _settle_tools(state, context, emit)
    for name, store_id in (await context.publisher.own_stores()).items():
        try:
            left = await context.publisher.delete_store(store_id)
        except WriteFailedError as error:
            emit.put(DecisionData(), error.message)
            continue
        emit.put(WriteData(document_store=name), sentences(text("event.store_deleted", store=name), left or ""))
    for store_id, loader_id in await context.publisher.own_files():
        if said := await context.publisher.remove_file(store_id, loader_id):
            emit.put(WriteData(), said)


async def fill_vector_stores(
    state: AgentState,
    context: AgentContext,
    emit: Emitter,
    chatflow_id: str,
    flow_data: str,
    *,
    only: str | None = None,
    without: Collection[str] = (),
) -> list[Finding]:
    """Write the documents of the flow to its vector stores (`only`: those of this type; not those in `without`), as far
    as approved. A failure is a warning in the review: the flow exists, and its tests show the effect.
    """
    graph = GraphIR.from_flow_data(flow_data)
    agreed = _agreed(state) - {*without}
    if only:
        agreed &= {node.id for node in graph.nodes if node.name == only}
    titles = {node.id: node.label or node.id for node in graph.nodes}
    findings: list[Finding] = []
    for node_id, feeding, sha256 in fed_vector_stores(graph, agreed):
        said = ""
        try:
            if missing := [one for node in feeding for one in placeholders_of(node)]:
                # A placeholder would stand among the person's documents.
                said, added = text("interrupt.to_be_filled_in", placeholders="; ".join(missing)), 0
            else:
                added = await context.publisher.upsert(chatflow_id, node_id, sha256)
        except (FlowiseError, WriteFailedError) as error:
            words = error.message.params.get("said") if isinstance(error.message, Text) else None
            said, added = words if isinstance(words, str) else error.message, 0
        if added:
            words = text("event.upserted", pieces=counted("pieces", added), node=titles[node_id])
            emit.put(WriteData(chatflow_id=chatflow_id), words)
        elif added == 0:
            said = said or text("error.no_text_loaded")
            findings.append(
                Finding(
                    code=UPSERT_FAILED,
                    severity="warning",
                    detail=said,
                    where=node_id,
                    # A finding keeps the words of its parameters, without their codes.
                    params={"node": titles[node_id], "reason": translated(said, state.language)},
                    hint="The flow finds nothing there until its documents are written: in Flowise, by Upsert.",
                )
            )
            emit.put(DecisionData(chatflow_id=chatflow_id, codes=[UPSERT_FAILED]), said)
    return findings


async def stores_in_use(state: AgentState, context: AgentContext, flow_data: str) -> frozenset[str]:
    """Ids of the vector stores that a draft would write to and that the live flow answers from, too: what is written
    there is live at once, and Faiss puts it in the place of what was there. They are filled when it is published.
    """
    agreed = _agreed(state)
    if not agreed or not state.is_staged or not state.write.original_sha:
        return frozenset()
    live = GraphIR.from_flow_data(await context.blobs.get(state.write.original_sha)).nodes
    nodes = [node for node in GraphIR.from_flow_data(flow_data).nodes if node.id in agreed and node.category == STORES]
    return frozenset(node.id for node in nodes if any(_is_same_place(node, other) for other in live))


def _agreed(state: AgentState) -> set[str]:
    """Ids of the vector stores that the person agreed to have written to."""
    effects = state.plan.agreed.effects if state.plan.agreed else []
    return {node_id for kind, _, node_id in (effect.partition(":") for effect in effects) if kind == "upsert"}


def _is_same_place(node: FlowNode, other: FlowNode) -> bool:
    """True if two vector stores write to the same place: the same type, and all fields alike that say where."""
    places = [
        {name: value for name, value in one.inputs.items() if isinstance(value, str) and not _SEARCH.search(name)}
        for one in (node, other)
    ]
    linked = {"document", "embeddings", "recordManager", "model"}
    return node.name == other.name and all(
        (places[0].get(name) or "") == (places[1].get(name) or "") for name in {*places[0], *places[1]} - linked
    )


def fed_vector_stores(graph: GraphIR, wanted: Collection[str]) -> list[tuple[str, list[FlowNode], str]]:
    """(node id, nodes that decide the written content, their hash) of the vector stores with documents."""
    nodes = {node.id: node for node in graph.nodes}
    found: list[tuple[str, list[FlowNode], str]] = []
    for node_id in sorted(wanted):
        if node_id not in nodes or not nodes[node_id].inputs.get("document"):
            continue
        feeding, left = {node_id}, [node_id]
        while left:
            target = left.pop()
            sources = {edge.source for edge in graph.edges if edge.target == target} - feeding
            feeding |= sources
            left += sources
        parts = [nodes[id_] for id_ in sorted(feeding) if id_ in nodes]
        known = [(one.id, one.name, one.inputs) for one in parts]
        content = json.dumps(known, sort_keys=True, ensure_ascii=False, default=str)
        found.append((node_id, parts, hashlib.sha256(content.encode()).hexdigest()))
    return found
