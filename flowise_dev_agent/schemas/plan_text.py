"""The plan as Markdown: names, old and new values, and the permissions of an approval."""

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from pydantic import Field

from flowise_dev_agent.patch.model.findings import sentence
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import Contract, JsonValue
from flowise_dev_agent.schemas.document_stores import PlannedStore
from flowise_dev_agent.schemas.plan import Capability, Part, Plan
from flowise_dev_agent.texts import LANGUAGES, say_in, translated

#: Prompt fields, which hold the person's text unchanged: only the model carries it out.
PROSE: Final = re.compile(r"(prompt|messages?|\]\.content|instructions|template|prefix)$", re.IGNORECASE)
#: Longer texts and texts of several lines get their own lines.
_ON_THE_LINE = 80
#: Headings of stored plans in languages that this service no longer writes.
_FORMER_HEADINGS: Final = {
    "plan.heading.personal_data": ("Dati personali", "Persoonsgegevens", "Dane osobowe", "Dados pessoais")
}


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


class ShownPlan(Contract):
    """Effects of a plan on the existing flow."""

    values: list[ShownValue] = Field(default_factory=list)
    removed: list[NamedNode] = Field(default_factory=list)
    kept: list[NamedNode] = Field(default_factory=list)
    allows: list[str] = Field(default_factory=list, description="The capability in words.")


def plan_markdown(plan: Plan, details: ShownPlan | None = None, language: str = "en") -> str:
    """Write the plan as Markdown, with headings in the person's language if it is available.

    Without `details`, nodes of the flow are named by their ids.
    """
    said = partial(say_in, language)
    if plan.declined:
        title = said("plan.heading.question" if plan.asks else "plan.heading.declined")
        return f"# {title}\n\n{translated(plan.worded('declined'), language)}\n"
    if plan.answer is not None:
        return f"{plan.answer}\n"
    given = details or ShownPlan(
        removed=[NamedNode(node_id=id_, node_name="", label="") for id_ in plan.removals],
        kept=[NamedNode(node_id=id_, node_name="", label="") for id_ in plan.kept],
        allows=capability_words(plan.capability, language),
    )
    sections: list[tuple[str, Sequence[str]]] = [
        ("plan.heading.nodes", [f"**{n.label or n.node_name}** (`{n.node_id}`): {n.purpose}" for n in plan.nodes]),
        ("plan.heading.values", [_value(value, said) for value in given.values]),
        ("plan.heading.document_stores", [_store(one, said) for one in plan.document_stores]),
        ("plan.heading.removed", [_node(node) for node in given.removed]),
        ("plan.heading.kept", [_node(node) for node in given.kept]),
        ("plan.heading.asked", _done(plan, given, said)),
        (
            "plan.heading.findings",
            [sentence(one.code, one.params, language) or one.message for one in plan.findings],
        ),
        ("plan.heading.assumed", [_part(part, said) for part in plan.parts if part.state == "assumed"]),
        ("plan.heading.not_done", [_part(part, said) for part in plan.not_done]),
        ("plan.heading.allows", given.allows),
        ("plan.heading.steps", plan.steps),
        ("plan.heading.approaches", [f"**{a.label}**: {a.description}" for a in plan.approaches]),
        ("plan.heading.credentials", [f"`{name}`" for name in plan.credential_requirements]),
        (
            "plan.heading.mappings",
            [
                f"`{one.source}` → `{one.target}`" + (f" ({said('plan.personal')})" if one.personal else "")
                for one in plan.mappings
            ],
        ),
        ("plan.heading.personal_data", [f"`{name}`" for name in plan.pii_fields]),
        ("plan.heading.placeholders", plan.placeholders),
        (
            "plan.heading.criteria",
            [
                f"{one.text} ({said('plan.not_tested')}: {one.not_tested})" if one.not_tested else one.text
                for one in plan.criteria
            ],
        ),
        ("plan.heading.questions", plan.test_questions),
    ]
    lines = [f"# {plan.flow_name}", "", plan.goal]
    for title, items in sections:
        lines += ["", f"## {said(title)}", *(f"- {item}" for item in items)] if items else []
    return "\n".join(lines) + "\n"


def without_section(markdown: str, heading: str) -> str:
    """Remove the section under a catalogue heading, in any language, from the Markdown of a plan."""
    titles = [*(say_in(language, heading) for language in LANGUAGES), *_FORMER_HEADINGS.get(heading, ())]
    headings = {f"## {title}" for title in titles}
    kept: list[str] = []
    leaves = False
    for line in markdown.splitlines():
        if line.startswith("#"):
            leaves = line in headings
        if not leaves:
            kept.append(line)
    return "\n".join(kept)


def capability_words(capability: Capability | None, language: str = "en") -> list[str]:
    """Permissions of an approval, as text, besides the settings of the nodes that the plan lists."""
    if capability is None:
        return []
    said = partial(say_in, language)
    words = [said("plan.allows.host", host=host) for host in capability.hosts]
    words += [said("plan.allows.code", node=id_) for id_ in capability.code]
    words += [said("plan.allows.tool", node=tool.node_id, tool=tool.name) for tool in capability.tools]
    words += [
        said("plan.allows.credential", type=one.type)
        if one.node_id == "*"
        else said("plan.allows.node_credential", node=one.node_id, type=one.type)
        for one in capability.credentials
    ]
    for effect in capability.effects:
        kind, _, node_id = effect.partition(":")
        words.append(
            {
                "document_store": said("plan.allows.document_store"),
                "credential": said("plan.allows.new_credential"),
                "upsert": said("plan.allows.upsert", node=node_id),
            }[kind]
        )
    return words


def _store(store: PlannedStore, said: Callable[..., str]) -> str:
    count = str(store.chunks) if store.chunks is not None else "?"
    words = said("plan.store.pieces", files=store.files, number=count, size=store.chunk_size)
    if store.id:
        parts = [words, said("plan.store.added")]
        parts += (
            [said("plan.store.embedded", embeddings=store.embeddings, vector_store=store.vector_store)]
            if store.like
            else []
        )
        parts += [said("plan.store.used_by", flows=store.used_by)] if store.used_by else []
        parts += [] if store.can_remove else [said("plan.store.left_by_rollback")]
        return f"**{store.name}**: {'; '.join(parts)}"
    where = (
        said(
            "plan.store.embedded_like",
            embeddings=store.embeddings,
            vector_store=store.vector_store,
            store=store.like_name,
        )
        if store.like
        else said("plan.store.in_memory")
    )
    return f"**{store.name}**: {words}; {where}"


def _done(plan: Plan, details: ShownPlan, said: Callable[..., str]) -> list[str]:
    """A line for each covered part of the requirement, with the fields, texts and nodes that cover it."""
    shown = {f"{one.node_id}.{one.param}": one for one in details.values}
    names = {one.node_id: one.label or one.node_name for one in plan.nodes}
    lines: list[str] = []
    for part in plan.parts:
        if part.state != "covered":
            continue
        values = [shown[one] for one in part.values if one in shown]
        does = [f"**{one.node}** `{one.param}`: {_brief(one.new)}" for one in values if not PROSE.search(one.param)]
        # Skip nodes whose fields are listed already.
        own = {one.node_id for one in values}
        does += [f"**{names[id_]}** (`{id_}`)" for id_ in part.nodes if id_ in names and id_ not in own]
        told = dict.fromkeys(one.node for one in values if PROSE.search(one.param))
        does += [said("plan.said_to_model", node=f"**{name}**") for name in told if not does]
        lines += [f"\u201c{part.quote}\u201d \u2192 {'; '.join(does)}"] if does else []
    return lines


def _brief(value: JsonValue) -> str:
    return shortened(_text(value).replace("\n", " "), _ON_THE_LINE) or '""'


def _value(value: ShownValue, said: Callable[..., str]) -> str:
    where = f"`{value.param}` {said('plan.of')} **{value.node}** (`{value.node_id}`)"
    old, new = _text(value.old), _text(value.new)
    remark = f"\n\n  {said('plan.loses_text')}" if value.loses_text else ""
    if max(len(old), len(new)) <= _ON_THE_LINE and "\n" not in old + new:
        return f"{where}: {new or said('plan.empty')}" + (f" ({said('plan.now')}: {old})" if old else "") + remark
    before = f"\n\n  {said('plan.now')}:\n{_fenced(old)}\n\n  {said('plan.then')}:" if old else "\n"
    return f"{where}:{before}\n{_fenced(new)}{remark}"


def _fenced(text: str) -> str:
    """A fenced block inside a list item; the fence is longer than any in the text."""
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


def _part(part: Part, said: Callable[..., str]) -> str:
    what = f"{said('plan.not_understood')}: " if part.state == "not_understood" else ""
    return f"\u201c{part.quote}\u201d: {what}{part.reason or said('plan.no_reason')}"
