"""What a batch of ops did, by names: for people and events."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from flowise_dev_agent.patch.model.secrecy import looks_secret

_VALUE_LENGTH = 120


# Many of these are made in each batch: not frozen, since that would make them three times as slow to make.


@dataclass(slots=True)
class AddedNode:
    """A node that the patch added, or put in the place of another (``instead_of``, by type)."""

    id: str
    name: str
    label: str
    instead_of: str = ""


@dataclass(slots=True)
class SetValue:
    """A field that the patch set; long values are shortened, secrets hidden."""

    node_id: str
    param_name: str
    value: Any


@dataclass(slots=True, unsafe_hash=True)
class Connected:
    """A connection by names. ``output`` is empty for nodes with a single one, ``input`` in agentflows."""

    source: str
    output: str
    target: str
    input: str


@dataclass(slots=True)
class Bound:
    """A credential that the patch bound, by id."""

    node_id: str
    credential_id: str
    credential_type: str | None


@dataclass(slots=True)
class DiffSummary:
    """Small and JSON-able; built up by the compiler in the order of its work."""

    added_nodes: list[AddedNode] = field(default_factory=list)
    removed_nodes: list[str] = field(default_factory=list)
    replaced_nodes: list[AddedNode] = field(default_factory=list)
    set_params: list[SetValue] = field(default_factory=list)
    unset_params: list[tuple[str, str]] = field(default_factory=list)
    connected: list[Connected] = field(default_factory=list)
    disconnected: list[Connected] = field(default_factory=list)
    bound: list[Bound] = field(default_factory=list)
    #: Fields and titles that did not survive a replacement, as ``node.field``.
    lost: list[str] = field(default_factory=list)
    rearranged: list[str] = field(default_factory=list)

    def set_param(self, node_id: str, param_name: str, value: Any, *, secret: bool = False) -> None:
        if secret or looks_secret(param_name, value):
            value = "(hidden)"
        elif isinstance(value, str) and len(value) > _VALUE_LENGTH:
            value = f"{value[: _VALUE_LENGTH - 1]}…"
        self.set_params.append(SetValue(node_id, param_name, value))

    def as_json(self) -> dict[str, Any]:
        """Plain lists and objects; nested texts as they are."""
        return dataclasses.asdict(self)

    @property
    def text(self) -> str:
        """One line: ``adds chatOpenAI_0, bufferMemory_0; sets 3 fields; makes 2 connections; binds 1 credential``."""
        parts: list[str] = []
        for verb, names in (
            ("adds", [node.id for node in self.added_nodes]),
            ("removes", self.removed_nodes),
            ("replaces", [f"{node.id} ({node.instead_of} by {node.name})" for node in self.replaced_nodes]),
        ):
            if names:
                parts.append(f"{verb} {', '.join(names)}")
        for verb, count, noun in (
            ("sets", len(self.set_params), "field"),
            ("clears", len(self.unset_params), "field"),
            ("makes", len(self.connected), "connection"),
            ("cuts", len(self.disconnected), "connection"),
            ("binds", len(self.bound), "credential"),
            ("loses", len(self.lost), "field"),
            ("moves", len(self.rearranged), "node"),
        ):
            if count:
                parts.append(f"{verb} {count} {noun}{'s' if count > 1 else ''}")
        return "; ".join(parts) or "changes nothing"
