"""Rules on the flow as a whole: endings, dead ends, cycles."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.sequential import CATEGORIES
from flowise_dev_agent.patch.validate.context import (
    AGENTFLOW,
    ANCHORED,
    ASSISTANT,
    CHATFLOW,
    IN_MEMORY,
    MULTIAGENT,
    STORES,
    FlowContext,
    rule,
)

_MANAGER: Final = "recordManager"


@rule("EMPTY_FLOW")
def empty(flow: FlowContext) -> Iterator[Finding]:
    """At least one node. A flow without nodes saves and never answers."""
    if not flow.nodes:
        yield error("EMPTY_FLOW", "The flow has no nodes.", hint="Add at least a chain or an agent and its model.")


@rule("CYCLE", kinds=(CHATFLOW, AGENTFLOW))
def cycles(flow: FlowContext) -> Iterator[Finding]:
    """No cycles; one finding per cycle, at its first node in stored order."""
    for cycle in flow.cycles:
        yield error(
            "CYCLE",
            f"The connections form a cycle: {', '.join(cycle)}.",
            where=cycle[0],
            hint="Disconnect one of them; only a loopAgentflow leads back."
            if flow.kind == AGENTFLOW
            else "Disconnect one of them.",
        )


@rule(
    "NO_ENDING_NODE",
    "ENDING_NODE_KIND",
    "ENDING_NODE_OUTPUT",
    "MULTIPLE_ENDING_NODES",
    "DEAD_END",
    "ONLY_INDEXES",
    kinds=(CHATFLOW,),
)
def ending_node(flow: FlowContext) -> Iterator[Finding]:
    """Exactly one chain, agent or engine ends the flow and gives the answer."""
    if not flow.nodes or flow.cycles:
        return
    ends = flow.ends
    answering: list[FlowNode] = []
    problems: list[Finding] = []
    for node in ends:
        if problem := _not_an_ending(node):
            problems.append(problem)
        else:
            answering.append(node)
    if not ends:
        yield error(
            "NO_ENDING_NODE",
            "No node ends the flow: nothing is connected.",
            hint="Connect model, memory and tools to one chain or agent.",
        )
    elif flow.only_indexes:
        yield warning(
            "ONLY_INDEXES",
            "The flow fills a vector store (POST /vector/upsert) and answers no questions.",
            where=ends[0].id,
            hint="Connect the store to a chain or an agent if it is meant to answer.",
        )
    elif not answering:
        yield from problems
    else:
        for problem in problems:
            yield warning(
                "DEAD_END",
                "Nothing uses what this node gives.",
                where=problem.where,
                hint="Connect it to a node that uses it, or remove it.",
            )
        if len(answering) > 1 and not _take_turns(flow, answering):
            names = ", ".join(node.id for node in answering)
            yield error(
                "MULTIPLE_ENDING_NODES",
                f"Several nodes end the flow ({names}); only the last one would answer.",
                where=answering[-1].id,
                hint="Connect them so that one is left, or remove the others.",
            )


def _take_turns(flow: FlowContext, endings: Sequence[FlowNode]) -> bool:
    """True if each two of the endings are behind different outputs of one fork: the server runs one of them."""
    taken: dict[str, set[tuple[str, str]]] = {}
    for node in endings:
        behind, seen, queue = taken.setdefault(node.id, set()), {node.id}, [node.id]
        while queue:
            for connection in flow.connections_into.get(queue.pop(), ()):
                if connection.output is not None and connection.output.independent:
                    behind.add((connection.source.id, connection.output.name))
                if connection.source.id not in seen:
                    seen.add(connection.source.id)
                    queue.append(connection.source.id)
    return all(
        any(fork == other and output != another for fork, output in taken[a.id] for other, another in taken[b.id])
        for a, b in combinations(endings, 2)
    )


def _not_an_ending(node: FlowNode) -> Finding | None:
    if node.selected_output == "EndingNode":
        return None
    if not node.answers:
        return error(
            "ENDING_NODE_KIND",
            f"The flow ends in {node.name} ({node.category or 'no category'}); only chains, agents and engines answer.",
            where=node.id,
            hint="Connect it to a chain or an agent.",
        )
    if node.multi_output and node.selected_output != node.name and any(o.name == node.name for o in node.outputs):
        return error(
            "ENDING_NODE_OUTPUT",
            f"The ending node must give itself ({node.name!r}), not {node.selected_output!r}.",
            where=node.id,
            field="outputs",
        )
    return None


@rule("ISOLATED_NODE", kinds=ANCHORED)
def isolated(flow: FlowContext) -> Iterator[Finding]:
    """Connected nodes. Isolated ones are never run; a step among them breaks a sequential flow."""
    if len(flow.nodes) < 2:
        return
    for node in flow.nodes:
        if not flow.successors[node.id] and not flow.connections_into.get(node.id):
            make = error if flow.kind == MULTIAGENT and node.category in CATEGORIES else warning
            yield make(
                "ISOLATED_NODE",
                f"{node.name} is connected to nothing and is never used.",
                where=node.id,
                hint="Connect it or leave it out.",
            )


@rule("VECTOR_STORE_WITHOUT_DOCUMENT", "UPSERT_LOST", "UPSERT_DOUBLES", kinds=(CHATFLOW,))
def vector_stores(flow: FlowContext) -> Iterator[Finding]:
    """Vector stores have documents, keep them, and get each one once.

    Retrieval from an empty store finds nothing and reports no error, nor does an upsert that is lost or adds all again.
    """
    for node in flow.nodes:
        anchors = [anchor for anchor in flow.visible_anchors(node) if anchor["type"] == "Document"]
        if node.category != STORES or not anchors:
            continue
        if any(flow.is_connected(node, str(anchor["name"])) for anchor in anchors):
            yield from _upsert(flow, node)
            continue
        name = str(anchors[0]["name"])
        if node.name in IN_MEMORY:
            yield error(
                "VECTOR_STORE_WITHOUT_DOCUMENT",
                "The in-memory store has no document loader, so it is empty at every question.",
                where=node.id,
                field=name,
                hint=f"Connect a document loader, for example plainText, to `{name}`.",
            )
        else:
            yield warning(
                "VECTOR_STORE_WITHOUT_DOCUMENT",
                "The vector store has no document loader: it answers only from what was upserted earlier.",
                where=node.id,
                field=name,
            )


def _upsert(flow: FlowContext, node: FlowNode) -> Iterator[Finding]:
    if node.name in IN_MEMORY and flow.only_indexes:
        yield warning(
            "UPSERT_LOST",
            "An in-memory store is built anew for each request: what is upserted is gone with the answer.",
            where=node.id,
            hint="Use a store that lasts, for example postgres.",
        )
    elif _MANAGER in {str(one["name"]) for one in flow.visible_anchors(node)} and not flow.is_connected(node, _MANAGER):
        yield warning(
            "UPSERT_DOUBLES",
            "Each upsert adds all documents once more, and answers come from the copies.",
            where=node.id,
            field=_MANAGER,
            hint=f"Connect a record manager, for example postgresRecordManager, to `{_MANAGER}`, or upsert once.",
        )


@rule("NOT_CHECKED", kinds=(MULTIAGENT, ASSISTANT))
def unchecked(flow: FlowContext) -> Iterator[Finding]:
    """Work of the agents of a sequential flow with each other, and assistants, are not checked."""
    text = "How the agents work together is not checked." if flow.kind == MULTIAGENT else "Assistants are not checked."
    yield warning("NOT_CHECKED", text, hint="Ask the flow a question before it is used.")
