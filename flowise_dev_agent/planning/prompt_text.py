"""Texts of prompts: tags around untrusted text, the requirement, plans, ops, findings and trials."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from pydantic import TypeAdapter, ValidationError

from flowise_dev_agent.knowledge.model_ends import ending, status
from flowise_dev_agent.models.messages import as_data
from flowise_dev_agent.patch import AddNode, Finding, NodeSchema, PatchOp, ReplaceNode, SetParam, UnsetParam, op_json
from flowise_dev_agent.patch.model.nested import Steps, parse_path
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.planned_lines import lines_of
from flowise_dev_agent.planning.requests import (
    ClassifyRequest,
    FailedTrial,
    JudgeRequest,
    PatchRequest,
    Pattern,
    PlanRequest,
)
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import JsonObject, JsonValue
from flowise_dev_agent.schemas.plan import Plan, ProposedPlan
from flowise_dev_agent.schemas.verdict import Trace, TracedTurn, Trial, Verdict

_READY: Final = (
    "Code adds the nodes in <ready_tools> to your plan, with their values, and connects them to the agent. Plan an "
    "agent that takes tools; do not plan these nodes or others for the same purpose, and count their parts as covered."
)
_NOTES: Final = (
    "The person had <notes> remembered for all flows. Follow those that concern this one; where one contradicts the "
    "requirement, the requirement counts."
)
_PATTERN: Final = (
    "Start from this pattern. List each of its nodes that fits with its id and `existing: true`, and add what is "
    "missing. A node that you do not list falls away. Ignore a pattern that does not fit."
)
_PREVIOUS: Final = "Answer with the whole plan as it is to be now, with all that stays of <previous_plan>."
#: What only the planner of a copy needs to know.
OF_A_COPY: Final = (
    'A copy: `flow_name` is the name that the person wants, else the old name and "(copy)". A copy without a change '
    "has no `nodes`, `removals` and `values`."
)
#: What only the planner of a change needs to know.
OF_A_CHANGE: Final = "`flow_name` is the name of the flow as it is, or another one that the person wants for it."
#: Names of each kind that the server has, as far as they are listed.
_NAMES_SHOWN: Final = 10
_MODELS_SHOWN: Final = 8
_NAME_PARTS: Final = re.compile(r"[^\W_]+")
#: Limits of a trial's trace: steps and tools, sources.
_STEPS_SHOWN, _SOURCES_SHOWN = 20, 5
_OPS: Final[TypeAdapter[list[PatchOp]]] = TypeAdapter(list[PatchOp])
_EXAMPLE: Final = re.compile(r"^```json\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
#: Characters of the beginning of an attached file.
_BEGINNING: Final = 400
#: Fields of a plan that the op writer needs.
_FOR_OPS: Final = frozenset(
    {
        *("goal", "operation", "flow_kind", "flow_name", "nodes", "removals", "connections", "disconnections", "kept"),
        *("values", "steps", "credential_requirements", "placeholders", "new_tools"),
    }
)
#: Fields of the previous plan that the planner may keep.
_FOR_PLAN: Final = frozenset(ProposedPlan.model_fields) - {"parts"} | {"operation", "flow_kind"}


def joined(*parts: str | None) -> str:
    return "\n".join(part for part in parts if part)


def tag(name: str, body: str | None) -> str | None:
    """Wrap the body in a tag that marks it as data; None without a body."""
    return f"<{name}>\n{as_data(body)}\n</{name}>" if body else None


def person_words(request: ClassifyRequest | PlanRequest | PatchRequest | JudgeRequest) -> Iterator[str | None]:
    """Yield everything that the person has said, in order, except the feedback in work."""
    yield tag("requirement", request.requirement)
    answers = (f"Q: {question}\nA: {answer}" for question, answer in request.clarifications)
    yield tag("clarifications", "\n".join(answers) or None)
    yield tag("later_words", "\n".join(f"{n}. {words}" for n, words in enumerate(request.later, start=1)) or None)


def attachments_text(request: ClassifyRequest | PlanRequest) -> str | None:
    """Attached files with the beginning of each."""
    lines: list[str] = []
    for one in request.attachments:
        found = [f"{one.pages} pages"] if one.pages else []
        found += [f"{one.pixels[0]} x {one.pixels[1]} pixels, for a model of the flow to see"] if one.pixels else []
        found += [f"{one.rows} rows of {', '.join(one.columns)}"] if one.rows is not None else []
        found += [f"API {one.title}: {', '.join(one.operations)}"] if one.operations else []
        begins = (
            one.first_lines and f" begins: {json.dumps(shortened(one.first_lines, _BEGINNING), ensure_ascii=False)}"
        )
        found += [f"{len(one.examples)} examples, which code adds to the prompt"] if one.examples else []
        found += [f"test set of {len(one.tests)} questions"] if one.tests else []
        lines.append(f"- {one.name} ({'; '.join([one.kind, f'{one.size} bytes', *found])}){begins}")
        lines += [
            f"  also says: {json.dumps(passage, ensure_ascii=False)}" for passage in request.passages.get(one.name, ())
        ]
    return "\n".join(lines) or None


def notes_text(request: PlanRequest) -> str | None:
    """Notes that the person stored for all flows."""
    return joined(_NOTES, tag("notes", "\n".join(f"- {note}" for note in request.notes))) if request.notes else None


def ready_text(request: PlanRequest) -> str | None:
    """Tools that code will add to the plan."""
    lines = "\n".join(
        f"- {tool.node_id} ({tool.node_name}): {tool.title}. {tool.about}" for tool in request.ready_tools
    )
    return joined(_READY, tag("ready_tools", lines)) if lines else None


def domains_text(request: PlanRequest) -> str | None:
    """Instructions of the domains that take part, for a planner."""
    return "\n".join(as_data(text) for text in request.skills) or None


def server_text(request: PlanRequest) -> str | None:
    """Names that a plan may use, by kind, with their number; the first ten of each, and the models that the person may
    mean.
    """
    server, said = request.server, " ".join([request.requirement, *request.later, request.feedback or ""])
    listed = {
        "variables, as {{ $vars.name }}": server.variables,
        "custom tools, for `selectedTool`": server.named_tools,
        "document stores, for `selectedStore`": server.stores,
    }
    lines = [
        f"{kind} ({len(names)}): {', '.join(names[:_NAMES_SHOWN])}{', …' if len(names) > _NAMES_SHOWN else ''}"
        if names
        else f"{kind}: none"
        for kind, names in listed.items()
        if names is not None
    ]
    meant = {node_type: _meant(node_type, names, said) for node_type, names in server.models.items()}
    lines += [f"models of {node_type}: {', '.join(names)}" for node_type, names in meant.items() if names]
    return "\n".join(lines) or None


def _meant(node_type: str, models: Sequence[str], said: str) -> list[str]:
    """Models whose names share most with the words, those that have ended with a note; none without a common word."""
    spoken, today = {*_NAME_PARTS.findall(said.casefold())}, datetime.now(UTC).date()
    shared = {one: spoken & {*_NAME_PARTS.findall(one.casefold())} for one in models}
    fitting = [one for one in models if any(not part.isdecimal() for part in shared[one])]
    ended = {one for one in fitting if status(node_type, one, today) == "ended"}
    best = sorted(fitting, key=lambda one: (-len(shared[one]), one in ended))[:_MODELS_SHOWN]
    return [f"{one} (ended{_successor(node_type, one, models)})" if one in ended else one for one in best]


def _successor(node_type: str, model: str, models: Sequence[str]) -> str:
    end = ending(node_type, model, datetime.now(UTC).date(), models)
    return f", in its place {end.replacement}" if end and end.replacement else ""


# --- plans and ops ---------------------------------------------------------------------------------------------------


def approved_plan(plan: Plan, texts: int | None = None) -> str:
    """Approved plan for the op writer; `texts` cuts each text of its values to so many characters."""
    said = plan.model_dump(mode="json", include=set(_FOR_OPS), exclude_defaults=True)
    if texts is not None and "values" in said:
        said["values"] = _with_short_texts(said["values"], texts)
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def _with_short_texts(value: JsonValue, longest: int) -> JsonValue:
    if isinstance(value, str):
        return shortened(value, longest)
    if isinstance(value, list):
        return [_with_short_texts(item, longest) for item in value]
    return (
        {name: _with_short_texts(item, longest) for name, item in value.items()} if isinstance(value, dict) else value
    )


def previous_text(request: PlanRequest) -> str | None:
    """The plan that is made again, and how."""
    previous = request.previous and previous_plan(request.previous, request.flow)
    return joined(_PREVIOUS, tag("previous_plan", previous)) if previous else None


def previous_plan(plan: Plan, flow: GraphView) -> str:
    """Previous plan for the planner that revises it, without the quotes of its parts (see `<parts>`). Nodes and lines
    written meanwhile are not to be added again, and those that went are gone.
    """
    existing, lines = flow.existing, lines_of(flow.graph)
    nodes = [
        node.model_copy(update={"existing": node.existing or existing.get(node.node_id) == node.node_name})
        for node in plan.nodes
    ]
    left = [node_id for node_id in plan.removals if node_id in existing]
    drawn = [one for one in plan.connections if (one.source, one.output, one.target) not in lines]
    cut = [one for one in plan.disconnections if {one.source, one.target} <= existing.keys()]
    plan = plan.model_copy(update={"nodes": nodes, "removals": left, "connections": drawn, "disconnections": cut})
    said = plan.model_dump(mode="json", include=set(_FOR_PLAN), exclude_defaults=True)
    parts = [
        {"id": part.id, "state": part.state}
        | part.model_dump(include={"nodes", "values", "reason"}, exclude_defaults=True)
        for part in plan.parts
    ]
    return json.dumps({**said, "parts": parts} if parts else said, ensure_ascii=False, separators=(",", ":"))


def own_ops(ops: Sequence[PatchOp], plan: Plan) -> str | None:
    """Numbered ops of the last try, without the values of the plan, which code sets."""
    planned = _planned_fields(ops, plan)
    lines: list[str] = []
    for number, op in enumerate(ops):
        if isinstance(op, SetParam | UnsetParam) and (op.node_id, parse_path(op.param_name)) in planned:
            continue
        if isinstance(op, AddNode):
            own = {name: value for name, value in op.params.items() if (op.node_id, parse_path(name)) not in planned}
            op = op.model_copy(update={"params": own})
        lines.append(f"{number}: {op_text(op)}")
    return "\n".join(lines) or None


def op_text(op: PatchOp) -> str:
    """Op as a model writes it: without credential ids, defaults and what code adds."""
    shown: JsonObject = {"op_type": op.op_type}
    shown |= op.model_dump(mode="json", exclude_defaults=True, exclude={"credential_id", "description"})
    return op_json(shown)


def examples_text(section: str) -> str:
    """Worked examples with their ops one per line, in the form in which a model writes ops."""

    def ops(found: re.Match[str]) -> str:
        try:
            return "\n".join(map(op_text, _OPS.validate_python(json.loads(found[1])["ops"])))
        except (ValueError, KeyError, TypeError, ValidationError):
            return found[0]

    return _EXAMPLE.sub(ops, section)


def findings_text(findings: Sequence[Finding], plan: Plan) -> str | None:
    """Findings, one per line; a finding on a planned value says that ops cannot fix it."""
    planned = {(value.node_id, value.param) for value in plan.values}
    return "\n".join(
        f"- {finding.text}" + (_BY_AMENDMENT if (finding.where, finding.field) in planned else "")
        for finding in findings
    )


_BY_AMENDMENT: Final = " This is a value of the plan: to change it, answer `amend`."


def _planned_fields(ops: Sequence[PatchOp], plan: Plan) -> set[tuple[str, Steps | None]]:
    """(node id in the ops, path) of the planned values: a replacement may keep the id of the replaced node."""
    ids = {node.node_id: {node.node_id} for node in plan.nodes}
    for op in ops:
        if isinstance(op, ReplaceNode):
            for node in plan.nodes:
                if node.node_name == op.node_name and not node.existing:
                    ids[node.node_id].add(op.new_node_id or op.node_id)
    return {
        (node_id, parse_path(value.param))
        for value in plan.values
        for node_id in ids.get(value.node_id, {value.node_id})
    }


# --- flows and verdicts ----------------------------------------------------------------------------------------------


def texts_text(texts: Mapping[str, str]) -> str | None:
    return "\n\n".join(f"{place}:\n{text}" for place, text in texts.items()) or None


def pattern_text(pattern: Pattern) -> str:
    return f"{_PATTERN}\nAn accepted flow for: {shortened(pattern.requirement, 500)}\n{pattern.summary}"


def verdict_text(verdict: Verdict) -> str:
    return f"{verdict.category}: {verdict.reason} {verdict.fix}".strip()


def trial_text(
    number: int, trial: Trial, trace: Trace, remarks: Sequence[str] = (), *, answer: int = 6_000, step: int = 400
) -> str:
    """A trial with what was said, what ran inside, and remarks on it; at most `answer` characters of an answer, and
    `step` of what a step, tool or source gave.
    """
    turns = trace.turns or [TracedTurn(said=trial.question, answer=trial.answer)]
    steps = [
        f"{one.node_id} ({one.label}): {shortened(json.dumps(one.output, ensure_ascii=False), step)}"
        for one in trace.steps[:_STEPS_SHOWN]
    ]
    tools = [
        f"{tool.tool} {shortened(json.dumps([tool.input, tool.output], ensure_ascii=False), step)}"
        for tool in trace.used_tools[:_STEPS_SHOWN]
    ]
    sources = [shortened(source.text, step) for source in trace.sources[:_SOURCES_SHOWN]]
    for shown, every in (steps, trace.steps), (tools, trace.used_tools), (sources, trace.sources):
        shown += [f"... and {len(every) - len(shown)} more"] if len(every) > len(shown) else []
    said = [
        f"<question>{as_data(turn.said)}</question>\n<answer>{as_data(shortened(turn.answer, answer))}</answer>"
        for turn in turns
    ]
    body = joined(
        *said,
        tag("steps", "\n".join(steps) or None),
        tag("tools", "\n".join(tools) or None),
        tag("sources", "\n".join(sources) or None),
        tag("remarks", "\n".join(filter(None, remarks)) or None),
    )
    person = f' person="{", ".join(trial.human)}"' if trial.human else ""
    return f'<trial number="{number}" test="{trial.test or ""}"{person}>\n{body}\n</trial>'


def failed_trials(failed: Sequence[FailedTrial], answer: int = 6_000, step: int = 400) -> str | None:
    """Failed trials of the last test, for the repair: what was said, what ran, and what was found wrong."""
    texts = [
        trial_text(number, one.trial, one.trace, [one.trial.error], answer=answer, step=step)
        for number, one in enumerate(failed, start=1)
    ]
    return "\n".join(["<trials>", *texts, "</trials>"]) if texts else None


def unique(schemas: Iterable[NodeSchema | None]) -> list[NodeSchema]:
    return list({schema.name: schema for schema in schemas if schema}.values())
