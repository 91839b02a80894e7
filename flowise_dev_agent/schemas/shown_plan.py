"""Effects of a plan on the flow, for people: values beside the present ones, the outline, names in place of ids."""

from typing import Literal, TypeAlias

from pydantic import Field

from flowise_dev_agent.schemas.base import Contract, JsonValue

OutlineState: TypeAlias = Literal["new", "changed", "same"]


class NamedNode(Contract):
    """A node of the flow as it is."""

    node_id: str
    node_name: str
    label: str


class ShownValue(Contract):
    """A field that the plan sets. `old` is what the flow holds now, null for nothing; `new` is the whole new value."""

    node_id: str
    node: str = Field(description="The node's title in the flow, else its type.")
    param: str
    label: str = Field(default="", description="Label of the field on the canvas, if it is known.")
    list_label: str = Field(default="", description="Of a field in a row, the label of its list.")
    words: dict[str, str] = Field(
        default_factory=dict, description="Labels of the fields in the value, and of options as `field=option`."
    )
    old: JsonValue = None
    new: JsonValue
    loses_text: bool = Field(default=False, description="The prompt or template that the flow holds now goes.")


class Branch(Contract):
    """Step that another one leads to; `name` is empty for the only way, `to` for a branch that ends."""

    name: str = ""
    to: str = ""
    known: bool = Field(default=True, description="False if the plan does not say where it leads.")


class OutlineLine(Contract):
    """Node in the outline of a flow. `depth`: what feeds a node, and the steps of an iteration, are one deeper."""

    node_id: str
    title: str
    purpose: str = ""
    depth: int = 0
    state: OutlineState = "new"
    leads_to: list[Branch] = Field(default_factory=list)


class ShownPlan(Contract):
    """Effects of a plan on the existing flow."""

    values: list[ShownValue] = Field(default_factory=list)
    removed: list[NamedNode] = Field(default_factory=list)
    kept: list[NamedNode] = Field(default_factory=list)
    to_do: list[str] = Field(default_factory=list, description="What only the person can do, each with its place.")
    allows: list[str] = Field(default_factory=list, description="The capability in words.")
    hosts_in_text: list[str] = Field(default_factory=list, description="Hosts that stand only in texts of code.")
    outline: list[OutlineLine] = Field(default_factory=list, description="The flow as it will be.")
    names: dict[str, str] = Field(default_factory=dict, description="Titles of nodes, types and stores, by id.")
    simulated: list[str] = Field(default_factory=list, description="What the tests simulate instead of doing it.")
    addresses: list[str] = Field(
        default_factory=list, description="Addresses that an approval may name in `real`, so that the tests call them."
    )
    called: list[str] = Field(default_factory=list, description="Those that it named.")
