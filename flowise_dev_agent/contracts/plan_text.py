"""The plan as a person reads it: names, values beside those that they replace, and what an approval allows."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Final

from pydantic import Field

from flowise_dev_agent.contracts.base import Contract, JsonValue
from flowise_dev_agent.contracts.document_stores import PlannedStore
from flowise_dev_agent.contracts.plan import Capability, Part, PlanContract
from flowise_dev_agent.contracts.plan_words import in_language
from flowise_dev_agent.sanitize import shortened

#: A prompt, where the words of the person stand as they are: nothing but the model carries them out.
PROSE: Final = re.compile(r"(prompt|messages?|\]\.content|instructions|template|prefix)$", re.IGNORECASE)
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


def plan_markdown(plan: PlanContract, details: PlanDetails | None = None, language: str = "en") -> str:
    """The plan, with fixed words in the person's language as far as they are known in it; without `details` nodes of
    the flow are named by their ids."""

    def said(words: str, *values: str) -> str:
        return in_language(words, language, *values)

    if plan.declined:
        title = said("One question first" if plan.asks else "This cannot be built")
        return f"# {title}\n\n{plan.declined}\n"
    if plan.answer is not None:
        return f"{plan.answer}\n"
    given = details or PlanDetails(
        removed=[NamedNode(node_id=id_, node_name="", label="") for id_ in plan.removals],
        kept=[NamedNode(node_id=id_, node_name="", label="") for id_ in plan.kept],
        allows=capability_words(plan.capability, language),
    )
    sections: list[tuple[str, Sequence[str]]] = [
        ("Nodes", [f"**{n.node_name}** (`{n.node_id}`): {n.purpose}" for n in plan.nodes]),
        ("Values", [_value(value, said) for value in given.values]),
        ("Document stores", [_store(one, said) for one in plan.document_stores]),
        ("Removed or replaced", [_node(node) for node in given.removed]),
        ("Kept as it is", [_node(node) for node in given.kept]),
        ("What you asked for", _done(plan, given, said)),
        ("Please check", [finding.message for finding in plan.findings]),
        ("Assumed", [_part(part, said) for part in plan.parts if part.state == "assumed"]),
        ("Not done", [_part(part, said) for part in plan.not_done]),
        ("What an approval allows", given.allows),
        ("Steps", plan.steps),
        ("Approaches", [f"**{a.label}**: {a.description}" for a in plan.approaches]),
        ("Credentials", [f"`{name}`" for name in plan.credential_requirements]),
        (
            "Data that passes",
            [
                f"`{one.source}` → `{one.target}`" + (f" ({said('personal data')})" if one.personal else "")
                for one in plan.mappings
            ],
        ),
        ("Personal data", [f"`{name}`" for name in plan.pii_fields]),
        ("Placeholders to fill in", plan.placeholders),
        (
            "Success criteria",
            [
                f"{one.text} ({said('not tested')}: {one.not_tested})" if one.not_tested else one.text
                for one in plan.criteria
            ],
        ),
        ("Test questions", plan.test_questions),
    ]
    lines = [f"# {plan.flow_name}", "", plan.goal]
    for title, items in sections:
        lines += ["", f"## {said(title)}", *(f"- {item}" for item in items)] if items else []
    return "\n".join(lines) + "\n"


def capability_words(capability: Capability | None, language: str = "en") -> list[str]:
    """What an approval allows beyond the settings of the nodes that the plan lists."""
    if capability is None:
        return []

    def said(words: str, *values: str) -> str:
        return in_language(words, language, *values)

    words = [said("Flowise may call {}.", host) for host in capability.hosts]
    words += [said("The node `{}` runs code.", id_) for id_ in capability.code]
    words += [said("The node `{}` gets the tool {}.", tool.node_id, tool.name) for tool in capability.tools]
    words += [
        said("A credential of the type `{}` is used.", one.type)
        if one.node_id == "*"
        else said("The node `{}` may use a credential of the type `{}`.", one.node_id, one.type)
        for one in capability.credentials
    ]
    for effect in capability.effects:
        kind, _, node_id = effect.partition(":")
        words.append(
            {
                "document_store": said("Documents are written to a document store."),
                "credential": said("A credential is created in Flowise."),
                "upsert": said("Documents are written to the vector store `{}`.", node_id),
            }[kind]
        )
    return words


def _store(store: PlannedStore, said: Callable[..., str]) -> str:
    count = str(store.chunks) if store.chunks is not None else "?"
    words = said("pieces of {}: {}, at most {} characters each", ", ".join(store.files), count, str(store.chunk_size))
    if store.id:
        parts = [words, said("added to the store that exists")]
        parts += [said("embedded with {} in {}", store.embeddings, store.vector_store)] if store.like else []
        parts += [said("flows that use it: {}", ", ".join(store.used_by))] if store.used_by else []
        parts += [] if store.can_remove else [said("a rollback leaves them in the vector store")]
        return f"**{store.name}**: {'; '.join(parts)}"
    where = (
        said("embedded with {} in {}, as the store {}", store.embeddings, store.vector_store, store.like_name)
        if store.like
        else said("kept in memory by the flow")
    )
    return f"**{store.name}**: {words}; {where}"


def _done(plan: PlanContract, details: PlanDetails, said: Callable[..., str]) -> list[str]:
    """Each part of the wish that the plan answers, with the fields, texts and nodes that do: whoever reads it sees what
    of it is missing."""
    shown = {f"{one.node_id}.{one.param}": one for one in details.values}
    names = {one.node_id: one.label or one.node_name for one in plan.nodes}
    lines: list[str] = []
    for part in plan.parts:
        if part.state != "covered":
            continue
        values = [shown[one] for one in part.values if one in shown]
        does = [f"**{one.node}** `{one.param}`: {_brief(one.new)}" for one in values if not PROSE.search(one.param)]
        # A node whose fields are named does it by them.
        own = {one.node_id for one in values}
        does += [f"**{names[id_]}** (`{id_}`)" for id_ in part.nodes if id_ in names and id_ not in own]
        told = dict.fromkeys(one.node for one in values if PROSE.search(one.param))
        does += [said("said to the model of {}", f"**{name}**") for name in told if not does]
        lines += [f"\u201c{part.quote}\u201d \u2192 {'; '.join(does)}"] if does else []
    return lines


def _brief(value: JsonValue) -> str:
    return shortened(_text(value).replace("\n", " "), _ON_THE_LINE) or '""'


def _value(value: ShownValue, said: Callable[[str], str]) -> str:
    where = f"`{value.param}` {said('of')} **{value.node}** (`{value.node_id}`)"
    old, new = _text(value.old), _text(value.new)
    remark = f"\n\n  {said('The text that is there now goes.')}" if value.loses_text else ""
    if max(len(old), len(new)) <= _ON_THE_LINE and "\n" not in old + new:
        return f"{where}: {new or said('(empty)')}" + (f" ({said('now')}: {old})" if old else "") + remark
    before = f"\n\n  {said('now')}:\n{_fenced(old)}\n\n  {said('then')}:" if old else "\n"
    return f"{where}:{before}\n{_fenced(new)}{remark}"


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


def _part(part: Part, said: Callable[[str], str]) -> str:
    what = f"{said('not understood')}: " if part.state == "not_understood" else ""
    return f"\u201c{part.quote}\u201d: {what}{part.reason or said('no reason was given')}"
