"""Accepted flows as starting points: conversion to patterns, and the choice for a new requirement."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from flowise_dev_agent.caller import DEFAULT_OWNER
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    GraphIR,
    NodeSchema,
    PatchOp,
    Schemas,
    SetOutput,
    SetParent,
    UnsetParam,
    decompile,
)
from flowise_dev_agent.persistence import NewPattern, StoredPattern
from flowise_dev_agent.redaction import looks_secret, masked
from flowise_dev_agent.schemas.base import JsonMapping
from flowise_dev_agent.texts import text

Category = Literal["rag", "tool_agent", "conversational", "custom"]
#: Relevance times reliability (both up to 1) from which a pattern is used.
THRESHOLD: Final = 0.6
#: Requirements with fewer common words are unrelated, however short they are.
MIN_SHARED: Final = 2
#: Maximum number of patterns that a search returns.
MOST_MATCHES: Final = 5
#: Longer texts are a flow's content, not its form.
_LONGEST_VALUE = 2_000
_MAX_TERMS = 200
_MAX_REQUIREMENT = 4_000

_WORD = re.compile(r"[^\W_]+")
# Words of almost every requirement, in the languages that the rules read.
_EMPTY = frozenset(
    _WORD.findall(
        "a an and any are as at be by can could do does for from have how i in into is it its make me my of on or our "
        "please should so some that the their them then they this to use used user uses using want we what when which "
        "who will with you your need would like build create generate set up new simple bot chatbot chat flow chatflow "
        "assistant agent "
        "der die das den dem des ein eine einen einem einer und oder mit für von zu zum zur im am auf aus unser unsere "
        "ich wir er sie es kann soll mir bitte baue erstelle neuen neuer "
        "el la los las un una uno y o con para de del en que nuestro nuestra crea construye quiero "
        "le les une et ou avec pour du sur notre qui crée créer construis je "
        "os um uma e com em da dos na no nosso nossa crie quero"
    )
)
_OP: TypeAdapter[PatchOp] = TypeAdapter(PatchOp)


class PatternRows(Protocol):
    """Storage of patterns; see `persistence.Patterns`."""

    async def save(self, pattern: NewPattern, *, replace: bool = True) -> int | None: ...
    async def matching(
        self, owner: str, instance_id: str, terms: Sequence[str], *, limit: int = 50
    ) -> list[StoredPattern]: ...
    async def record(self, owner: str, pattern_ids: Sequence[int], session_id: UUID, *, accepted: bool) -> None: ...


@dataclass(frozen=True)
class Match:
    """A pattern compared with a requirement.

    ``score`` is relevance times reliability, ``refused`` a reason not to use it.
    """

    id: int
    requirement: str
    flow_kind: str
    ops: tuple[PatchOp, ...]
    score: float
    refused: str | None = None


class PatternLibrary:
    """The patterns of one owner on one instance."""

    def __init__(self, rows: PatternRows, *, instance_id: str, owner: str = DEFAULT_OWNER) -> None:
        self._rows = rows
        self._owner = owner
        self._instance_id = instance_id

    async def find(self, requirement: str, nodes: NodeStore) -> list[Match]:
        """Patterns that share words with a requirement: best first, at most `MOST_MATCHES`.

        Only the first one may be usable.
        """
        wanted = terms_of(requirement)
        if not wanted:
            return []
        rows = await self._rows.matching(self._owner, self._instance_id, wanted)
        found = [_match(row, set(wanted), nodes) for row in rows]
        return sorted(found, key=lambda match: (match.refused is not None, -match.score, match.id))[:MOST_MATCHES]

    async def accepted(
        self,
        session_id: UUID,
        *,
        requirement: str,
        name: str,
        flow_kind: str,
        flow: GraphIR,
        nodes: NodeStore,
        used: int | None,
    ) -> int | None:
        """Store an accepted flow for its requirement; returns the new pattern's id.

        It also counts for the pattern that it started from. None if the requirement has no words to find it by.
        """
        pattern = make_pattern(
            decompile(flow, nodes.schemas),
            requirement=requirement,
            name=name,
            flow_kind=flow_kind,
            schema_fingerprint=nodes.fingerprint,
            schemas=nodes.schemas,
            owner=self._owner,
            instance_id=self._instance_id,
        )
        pattern_id = await self._rows.save(pattern) if pattern.terms else None
        if counted := [one for one in (used, pattern_id) if one is not None]:
            await self._rows.record(self._owner, counted, session_id, accepted=True)
        return pattern_id

    async def failed(self, session_id: UUID, pattern_id: int) -> None:
        """Count a failed flow for the pattern that it started from."""
        await self._rows.record(self._owner, [pattern_id], session_id, accepted=False)


def make_pattern(
    ops: Iterable[PatchOp],
    *,
    requirement: str,
    name: str,
    flow_kind: str,
    schema_fingerprint: str,
    schemas: Schemas,
    owner: str,
    instance_id: str,
    success_count: int = 0,
    failure_count: int = 0,
) -> NewPattern:
    """Make a pattern of these ops: without credentials, secrets, pasted documents and positions."""
    kept = [clean for op in ops if (clean := _kept(op, schemas)) is not None]
    names = sorted({op.node_name for op in kept if isinstance(op, AddNode)})
    said = masked(requirement)[:_MAX_REQUIREMENT]
    return NewPattern(
        owner=owner,
        instance_id=instance_id,
        name=masked(name)[:120],
        requirement=said,
        terms=" ".join(terms_of(said)),
        flow_kind=flow_kind,
        ops=[op.model_dump(mode="json", exclude_defaults=True) | {"op_type": op.op_type} for op in kept],
        node_types=names,
        category=category_of(names, schemas),
        schema_fingerprint=schema_fingerprint,
        success_count=success_count,
        failure_count=failure_count,
    )


def read_ops(raw: Sequence[JsonMapping]) -> tuple[PatchOp, ...]:
    """Parse stored ops. Raises ValueError for an invalid one, or one that a pattern must not contain."""
    try:
        ops = tuple(_OP.validate_python(dict(item)) for item in raw)
    except ValidationError as error:
        raise ValueError(f"ops: {error.error_count()} values do not fit the Patch IR.") from None
    if not any(isinstance(op, AddNode) for op in ops):
        raise ValueError("ops: at least one node is required.")
    return ops


def category_of(names: Iterable[str], schemas: Schemas) -> Category:
    """The first matching category: answers from documents, tools, conversation, anything else."""
    found = [(name.casefold(), schemas[name].category if name in schemas else "") for name in names]
    if any(category in ("Vector Stores", "Retrievers") or "retriev" in name for name, category in found):
        return "rag"
    if any(category == "Agents" or "agent" in name.removesuffix("agentflow") for name, category in found):
        return "tool_agent"
    if any(category == "Memory" or name == "conversationchain" for name, category in found):
        return "conversational"
    return "custom"


def terms_of(text: str) -> list[str]:
    """The meaningful words of a requirement, each once, sorted: lower case, without plural s."""
    said = (word.casefold() for word in _WORD.findall(text))
    plain = (word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in said)
    return sorted({word for word in plain if word not in _EMPTY})[:_MAX_TERMS]


def relevance(one: set[str], other: set[str]) -> float:
    """The similarity of two requirements: 1 for the same words, 0 for none."""
    shared = len(one & other)
    return shared / (len(one) * len(other)) ** 0.5 if shared >= min(MIN_SHARED, len(one), len(other)) else 0.0


def trimmed(ops: Sequence[PatchOp], keep: set[str], *, with_params: bool) -> list[PatchOp]:
    """The ops about the nodes in `keep`; without params the nodes have their defaults."""
    result: list[PatchOp] = []
    for op in ops:
        match op:
            case AddNode() if op.node_id in keep:
                result.append(op if with_params else op.model_copy(update={"params": {}}))
            case Connect() if {op.source_node_id, op.target_node_id} <= keep:
                result.append(op)
            case SetParent() if {op.node_id, op.parent_id} <= keep:
                result.append(op)
            case SetOutput() if op.node_id in keep:
                result.append(op)
            case UnsetParam() if op.node_id in keep and with_params:
                result.append(op)
            case _:
                pass
    return result


def _match(row: StoredPattern, wanted: set[str], nodes: NodeStore) -> Match:
    reliability = (row.success_count + 1) / (row.success_count + row.failure_count + 1)
    score = round(relevance(wanted, set(row.terms.split())) * min(reliability, 1.0), 3)
    ops: tuple[PatchOp, ...] = ()
    refused: str | None = None
    if score < THRESHOLD:
        refused = text("pattern.irrelevant", found=f"{score:g}", least=f"{THRESHOLD:g}")
    elif row.schema_fingerprint and row.schema_fingerprint != nodes.fingerprint:
        refused = "made for other node schemas"
    elif absent := [name for name in row.node_types if name not in nodes.schemas]:
        refused = f"node types that are not there: {', '.join(absent)}"
    else:
        try:
            ops = read_ops(row.ops)
        except ValueError as error:
            refused = str(error)
    return Match(row.id, row.requirement, row.flow_kind, ops, score, refused)


def _kept(op: PatchOp, schemas: Schemas) -> PatchOp | None:
    match op:
        case AddNode():
            schema = schemas.get(op.node_name)
            params = {name: clean for name, value in op.params.items() if (clean := _form(schema, name, value)) != ""}
            # The description of a step belongs to one flow.
            return op.model_copy(update={"params": params, "description": None})
        case Connect() | SetOutput() | SetParent() | UnsetParam():
            return op
        case _:
            return None


def _form(schema: NodeSchema | None, name: str, value: Any) -> Any:
    """The value; '' if it belongs to that flow alone: secrets, files, documents."""
    if schema is not None:
        kind = next((param.type for param in schema.params if param.name == name), "")
        if kind in ("password", "file") or (schema.category == "Document Loaders" and name == "text"):
            return ""
    return _clean(name, value)


def _clean(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: clean for key, item in value.items() if (clean := _clean(key, item)) != ""}
    if isinstance(value, list):
        return [_clean(name, item) for item in value]
    if not isinstance(value, str):
        return value
    content = len(value) > _LONGEST_VALUE or value.startswith(("FILE-STORAGE::", "data:"))
    return "" if content or looks_secret(name, value) or "credential" in name.casefold() else value
