"""What a batch of ops did, by names: for people, events and the page."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

_VALUE_LENGTH = 120


class AddedNode(BaseModel):
    """A node that the patch added."""

    id: str
    name: str
    label: str


class SetValue(BaseModel):
    """A field that the patch set; long values are shortened, secrets hidden."""

    node_id: str
    param_name: str
    value: Any


class Connected(BaseModel):
    """A connection that the patch made. ``output`` is empty for nodes with a single one."""

    source: str
    output: str
    target: str
    input: str


class Bound(BaseModel):
    """A credential that the patch bound, by id."""

    node_id: str
    credential_id: str
    credential_type: str | None


class DiffSummary(BaseModel):
    """Small and JSON-able; built up by the compiler in the order of its work."""

    model_config = ConfigDict(extra="forbid")

    added_nodes: list[AddedNode] = Field(default_factory=list)
    set_params: list[SetValue] = Field(default_factory=list)
    connected: list[Connected] = Field(default_factory=list)
    bound: list[Bound] = Field(default_factory=list)

    def add_node(self, node_id: str, name: str, label: str) -> None:
        self.added_nodes.append(AddedNode(id=node_id, name=name, label=label))

    def set_param(self, node_id: str, param_name: str, value: Any) -> None:
        if isinstance(value, str) and len(value) > _VALUE_LENGTH:
            value = f"{value[: _VALUE_LENGTH - 1]}…"
        self.set_params.append(SetValue(node_id=node_id, param_name=param_name, value=value))

    def connect(self, source: str, output: str, target: str, input_name: str) -> None:
        self.connected.append(Connected(source=source, output=output, target=target, input=input_name))

    def bind(self, node_id: str, credential_id: str, credential_type: str | None) -> None:
        self.bound.append(Bound(node_id=node_id, credential_id=credential_id, credential_type=credential_type))

    @property
    def text(self) -> str:
        """One line: ``adds chatOpenAI_0, bufferMemory_0; sets 3 fields; makes 2 connections; binds 1 credential``."""
        parts: list[str] = []
        if self.added_nodes:
            parts.append(f"adds {', '.join(node.id for node in self.added_nodes)}")
        for verb, count, noun in (
            ("sets", len(self.set_params), "field"),
            ("makes", len(self.connected), "connection"),
            ("binds", len(self.bound), "credential"),
        ):
            if count:
                parts.append(f"{verb} {count} {noun}{'s' if count > 1 else ''}")
        return "; ".join(parts) or "changes nothing"
