"""The plan as a person reads it: names, values beside those that they replace, and what an approval allows."""

import json
from collections.abc import Sequence

from pydantic import Field, JsonValue

from flowise_dev_agent.contracts.base import Contract
from flowise_dev_agent.contracts.plan import Capability, Part, PlanContract

#: Longer texts, and those of several lines, get lines of their own.
_ON_THE_LINE = 80


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
    old: JsonValue = None
    new: JsonValue
    loses_text: bool = Field(default=False, description="The prompt or template that the flow holds now goes.")


class PlanDetails(Contract):
    """What a plan means for the flow as it is."""

    values: list[ShownValue] = Field(default_factory=list)
    removed: list[NamedNode] = Field(default_factory=list)
    kept: list[NamedNode] = Field(default_factory=list)
    allows: list[str] = Field(default_factory=list, description="The capability in words.")


def plan_markdown(plan: PlanContract, details: PlanDetails | None = None) -> str:
    """The plan; without `details` nodes of the flow are named by their ids."""
    if plan.declined:
        # One that ends in a question is settled by its answer.
        title = "One question first" if plan.declined.rstrip().endswith("?") else "This cannot be built"
        return f"# {title}\n\n{plan.declined}\n"
    if plan.answer is not None:
        return f"{plan.answer}\n"
    given = details or PlanDetails(
        removed=[NamedNode(node_id=id_, node_name="", label="") for id_ in plan.removals],
        kept=[NamedNode(node_id=id_, node_name="", label="") for id_ in plan.kept],
        allows=capability_words(plan.capability),
    )
    parts = [f"# {plan.flow_name}", "", plan.goal]
    parts += _section("Nodes", [f"**{n.node_name}** (`{n.node_id}`): {n.purpose}" for n in plan.nodes])
    parts += _section("Values", [_value(value) for value in given.values])
    parts += _section("Removed or replaced", [_node(node) for node in given.removed])
    parts += _section("Kept as it is", [_node(node) for node in given.kept])
    parts += _section("Please check", [f"{finding.message} {finding.hint}".strip() for finding in plan.findings])
    parts += _section("Assumed", [_part(part) for part in plan.parts if part.state == "assumed"])
    parts += _section("Not done", [_part(part) for part in plan.not_done])
    parts += _section("What an approval allows", given.allows)
    parts += _section("Steps", plan.steps)
    parts += _section("Approaches", [f"**{a.label}**: {a.description}" for a in plan.approaches])
    parts += _section("Credentials", [f"`{name}`" for name in plan.credential_requirements])
    parts += _section("Personal data", [f"`{name}`" for name in plan.pii_fields])
    parts += _section("Placeholders to fill in", plan.placeholders)
    parts += _section(
        "Success criteria",
        [f"{one.text} (not tested: {one.not_tested})" if one.not_tested else one.text for one in plan.criteria],
    )
    parts += _section("Test questions", plan.test_questions)
    return "\n".join(parts) + "\n"


def capability_words(capability: Capability | None) -> list[str]:
    """What an approval allows beyond the settings of the nodes that the plan lists."""
    if capability is None:
        return []
    words = [f"Flowise calls {host}." for host in capability.hosts]
    words += [f"The node `{id_}` runs code." for id_ in capability.code]
    words += [f"The node `{tool.node_id}` gets the tool {tool.name}." for tool in capability.tools]
    words += [
        f"A credential of the type `{one.type}` is used."
        if one.node_id == "*"
        else f"The node `{one.node_id}` may use a credential of the type `{one.type}`."
        for one in capability.credentials
    ]
    for effect in capability.effects:
        kind, _, node_id = effect.partition(":")
        words.append(
            {
                "document_store": "Documents are written to a document store.",
                "credential": "A credential is created in Flowise.",
                "upsert": f"Documents are written to the vector store `{node_id}`.",
            }[kind]
        )
    return words


def _value(value: ShownValue) -> str:
    where = f"`{value.param}` of **{value.node}** (`{value.node_id}`)"
    old, new = _text(value.old), _text(value.new)
    remark = "\n\n  The text that is there now goes." if value.loses_text else ""
    if max(len(old), len(new)) <= _ON_THE_LINE and "\n" not in old + new:
        return f"{where}: {new or '(empty)'}" + (f" (now: {old})" if old else "") + remark
    return f"{where}:" + (f"\n\n  now:\n{_fenced(old)}\n\n  then:" if old else "\n") + f"\n{_fenced(new)}{remark}"


def _fenced(text: str) -> str:
    """A block that the text cannot end, inside a list item."""
    fence = "```"
    while fence in text:
        fence += "`"
    return "\n".join(f"  {line}" for line in (fence, *text.splitlines(), fence))


def _text(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _node(node: NamedNode) -> str:
    return f"**{node.label}** (`{node.node_id}`, {node.node_name})" if node.label else f"`{node.node_id}`"


def _part(part: Part) -> str:
    what = "not understood: " if part.state == "not_understood" else ""
    return f"\u201c{part.quote}\u201d: {what}{part.reason or 'no reason was given'}"


def _section(title: str, items: Sequence[str]) -> list[str]:
    return ["", f"## {title}", *(f"- {item}" for item in items)] if items else []
