"""Summary of a flow for a prompt: complete for a small flow, the relevant part of a large one; always bounded."""

import asyncio
import contextlib
import json
import re
from collections.abc import Iterable
from typing import Any, Final, Protocol

from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.templates import Template, TemplateStore
from flowise_dev_agent.patch import AddNode, FlowNode, GraphIR, PatchOp, decompile, summarize
from flowise_dev_agent.patch.model.agentflow import NOTE_NAMES
from flowise_dev_agent.patch.model.json_text import is_uuid
from flowise_dev_agent.redaction import looks_secret, masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Plan

#: Characters of a summary; a flow of 15 nodes takes about 1 500.
SUMMARY_LIMIT = 6_000
#: The share of the limit that nodes and connections in focus may take.
_FOCUS_SHARE = 0.6
#: A plan of fewer nodes is simple enough without an example.
_LIKE_FROM_NODES = 6
#: Characters of one marketplace flow's ops (about 1 500 tokens), and of one text in them.
_LIKE_CHARS, _LIKE_TEXT = 6_000, 160
_LIKE_SECS = 10.0
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s\"'<>]+", re.IGNORECASE)
_EMPTY: Final = ("", None, [], {})
_MARKUP = re.compile(r"</?\w[^<>]*>")
#: Fields left out of example ops: canvas positions, credential ids, current defaults.
_NOT_SHOWN = frozenset({"SetPosition", "BindCredential", "UnsetParam"})
_WORD = re.compile(r"[a-z0-9]{3,}")


class Marketplace(Protocol):
    """Flows of the instance's marketplace."""

    async def templates(self) -> TemplateStore:
        """Last known list of templates."""
        ...

    async def template_flow(self, template: Template) -> str:
        """Flow of a template. Raises AgentError."""
        ...


def focused_summary(graph: GraphIR, text: str, scope: Iterable[str] = (), limit: int = SUMMARY_LIMIT) -> str:
    """Summarise a flow in at most `limit` characters. Nodes in `scope` (else those that `text` mentions) and their
    neighbours come in full; of the others ids, types and titles, as space allows.
    """
    whole = summarize(graph, limit=10 * limit)
    if len(whole) <= limit:
        return whole
    focus = {node_id for node_id in scope if graph.node(node_id)} or _spoken_of(graph, text)
    near = set(focus)
    for edge in graph.edges:
        if edge.source in focus or edge.target in focus:
            near |= {edge.source, edge.target}
    part = GraphIR(
        {
            "nodes": [node.raw for node in graph.nodes if node.id in near],
            "edges": [edge.raw for edge in graph.edges if edge.source in near and edge.target in near],
        }
    )
    shown = summarize(part, limit=int(limit * _FOCUS_SHARE)) if near else ""
    others = [node for node in graph.nodes if node.id not in near and not node.is_note]
    lines = [f"A flow of {len(graph.nodes)} nodes and {len(graph.edges)} connections. The part that matters:", shown]
    lines.append(f"{len(others)} other nodes, by id, type and title:")
    return _filled("\n".join(lines), [_brief(node) for node in others], limit)


async def like_flows(marketplace: Marketplace, plan: Plan, nodes: NodeStore) -> tuple[str, ...]:
    """Marketplace flows with node types similar to the plan, each as its name and ops in JSON lines; empty for a small
    plan. Flows that cannot be read within ten seconds are left out.
    """
    if plan.operation != "create" or len(plan.nodes) < _LIKE_FROM_NODES:
        return ()
    names = [node.node_name for node in plan.nodes]
    shown: list[str] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LIKE_SECS):
            for template in (await marketplace.templates()).made_of(names, nodes.schemas):
                with contextlib.suppress(AgentError):
                    flow = await marketplace.template_flow(template)
                    text = ops_text(decompile(flow, nodes.schemas))
                    shown += [f"{template.name}\n{text}"] if len(text) <= _LIKE_CHARS else []
    return tuple(shown)


def ops_text(ops: Iterable[PatchOp]) -> str:
    """Ops as an example, one JSON object per line, without credentials, addresses, secrets, notes and positions; texts
    are cut at 160 characters.
    """
    return "\n".join(
        json.dumps({"op_type": op.op_type} | _example(_shown(op)), **_COMPACT)
        for op in ops
        if op.op_type not in _NOT_SHOWN and not (isinstance(op, AddNode) and op.node_name in NOTE_NAMES)
    )


def _shown(op: PatchOp) -> dict[str, Any]:
    """Op as JSON, without the fields that a model does not write: descriptions of steps come from the plan."""
    return op.model_dump(mode="json", exclude_defaults=True, exclude={"description"})


_COMPACT: Final[dict[str, Any]] = {"ensure_ascii": False, "separators": (",", ":")}


def _example(value: Any) -> Any:
    """Value of a flow as an example, without empty, private or possibly secret content."""
    if isinstance(value, dict):
        shown = {key: _example(item) for key, item in value.items()}
        return {key: item for key, item in shown.items() if item not in _EMPTY and not _private(key, item)}
    if isinstance(value, list):
        return [_example(item) for item in value]
    if isinstance(value, str):
        return shortened(_ADDRESS.sub("<address>", _MARKUP.sub("", masked(value))), _LIKE_TEXT)
    return value


def _private(key: str, value: Any) -> bool:
    return isinstance(value, str) and (is_uuid(value) or looks_secret(key, value))


def _spoken_of(graph: GraphIR, text: str) -> set[str]:
    words = set(_WORD.findall(text.casefold()))
    return {
        node.id
        for node in graph.nodes
        if not node.is_note
        and words & set(_WORD.findall(f"{re.sub('(?<=[a-z])(?=[A-Z])', ' ', node.name)} {node.label}".casefold()))
    }


def _brief(node: FlowNode) -> str:
    return f"- {node.id} ({node.name})" + (f" {node.label[:60]!r}" if node.label != node.name else "")


def _filled(text: str, lines: list[str], limit: int) -> str:
    for index, line in enumerate(lines):
        rest = f"\n... {len(lines) - index} more"
        if len(text) + len(line) + 1 + len(rest) > limit:
            return (text + rest)[:limit]
        text += "\n" + line
    return text
