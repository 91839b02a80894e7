"""Variables that a step of an agentflow can read, as far as the plan and the flow say."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from flowise_dev_agent.forms.step_plans import INSIDE
from flowise_dev_agent.patch.model.agentflow import (
    CONDITION,
    CONDITION_AGENT,
    HUMAN_INPUT,
    ITERATION,
    LOOP,
    NOTE_NAMES,
    START,
)
from flowise_dev_agent.patch.model.flow_data import Inputs
from flowise_dev_agent.patch.model.nested import parse_path, with_value
from flowise_dev_agent.patch.model.references import FILES, variable_head
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.schemas.plan import Plan, PlannedNode

#: Steps without an answer that another step could use.
_SILENT: Final = frozenset({START, CONDITION, CONDITION_AGENT, LOOP, "directReplyAgentflow", *NOTE_NAMES})
#: Fields that declare what a structured answer consists of.
_STRUCTURED: Final = ("llmStructuredOutput", "agentStructuredOutput")
#: Part of a webhook request -> the field of the start that lists what it has.
_WEBHOOK: Final[Mapping[str, str]] = {
    "body": "webhookBodyParams",
    "query": "webhookQueryParams",
    "headers": "webhookHeaderParams",
}
#: The item of an iteration; a step that names it is inside one.
_ITEM: Final = "$iteration"
#: Filled in everywhere.
_NOW: Final = "current_date_time"
_ALWAYS: Final = frozenset({_NOW, "$flow"})
#: Parts of a request that no declaration has to name.
_OPEN: Final = ("$webhook", _ITEM)


def readable(step: PlannedNode, plan: Plan, flow: GraphView, server_variables: Sequence[str] = ()) -> list[str]:
    """Variables for the texts of a step, in the order of the flow.

    Inside an iteration these are the item, the earlier steps of the iteration and the state. A step is inside if the
    flow or the plan has it there, or if its purpose or one of its values names `$iteration`.
    """
    facts = _Facts(plan, flow)
    inside = facts.is_inside(step.node_id)
    before = [node_id for node_id in facts.before(step.node_id) if facts.is_inside(node_id) == inside]
    names = [*([_ITEM] if inside else []), *facts.of_start(asked=facts.asks_before(step.node_id))]
    for node_id in before:
        if facts.types[node_id] in _SILENT or node_id == facts.parent(step.node_id):
            continue
        names += [node_id, *(f"{node_id}.output.{key}" for key in facts.keys(node_id))]
    names += [f"$flow.state.{key}" for key in facts.state()]
    names += [FILES] if plan.uploads or facts.speaks_of(FILES) else []
    names += [_NOW] if facts.speaks_of(_NOW) else []
    return [*dict.fromkeys([*names, *(f"$vars.{name}" for name in server_variables)])]


def is_readable(variable: str, allowed: Collection[str]) -> bool:
    """True if a variable of a text is one of `allowed`, a field of an open one, or filled in everywhere."""
    head = variable_head(variable)
    if variable in allowed or head in _ALWAYS:
        return True
    return head in _OPEN and any(variable_head(name) == head for name in allowed)


class _Facts:
    """Facts about the steps, from plan and flow together; the plan counts where both say something."""

    def __init__(self, plan: Plan, flow: GraphView) -> None:
        self._flow = flow
        self._planned = _planned_inputs(plan)
        self._said = {node.node_id: node.purpose for node in plan.nodes}
        for value in plan.values:
            written = json.dumps(value.value, ensure_ascii=False)
            self._said[value.node_id] = f"{self._said.get(value.node_id, '')} {written}"
        stays = {id_: name for id_, name in flow.existing.items() if id_ not in plan.removals}
        #: Node id -> type: the steps of the flow that stay, then those of the plan in its order.
        self.types = {
            **{id_: name for id_, name in stays.items() if id_ not in self._said},
            **{node.node_id: node.node_name for node in plan.nodes},
        }
        cut = {(one.source, one.target) for one in plan.disconnections}
        ends = {(edge.source, edge.target) for edge in flow.graph.edges} - cut
        ends |= {(one.source, one.target) for one in plan.connections}
        self._inside = [one for one in plan.connections if one.output == INSIDE]
        #: Node id -> the steps that lead to it, as far as flow and plan say.
        self._sources: dict[str, set[str]] = {}
        for source, target in ends:
            if {source, target} <= self.types.keys():
                self._sources.setdefault(target, set()).add(source)
        # A plan puts new steps into the lines that go, in its order.
        put_in = {one.source for one in plan.disconnections}
        for node in plan.nodes if put_in else ():
            if not node.existing and node.node_id not in self._sources:
                self._sources[node.node_id] = {*put_in}
                put_in.add(node.node_id)
        self._start = next((id_ for id_, name in self.types.items() if name == START), f"{START}_0")

    def before(self, node_id: str) -> list[str]:
        """Steps that can run before this one: those that lead to it, where the lines are known back to the start, else
        those that are listed before it. Plans follow the order of the flow.
        """
        behind, open_ = set[str](), [node_id]
        while open_:
            found = self._sources.get(open_.pop(), set()) - behind
            behind |= found
            open_ += found
        ids = [*self.types]
        led = self._start in behind
        before = [one for one in ids if one in behind] if led else ids[: ids.index(node_id)]
        return [one for one in before if one not in (self._start, node_id)]

    def asks_before(self, node_id: str) -> bool:
        """True if a step before asks a person, after which `question` is empty."""
        return any(self.types[one] == HUMAN_INPUT for one in self.before(node_id))

    def parent(self, node_id: str) -> str | None:
        node = self._flow.graph.node(node_id)
        planned = next((one.source for one in self._inside if one.target == node_id), None)
        return node.parent if node else planned

    def is_inside(self, node_id: str) -> bool:
        """True if a step is inside an iteration."""
        if self.types.get(node_id) == ITERATION:
            return False
        return bool(self.parent(node_id)) or _ITEM in self._said.get(node_id, "")

    def speaks_of(self, variable: str) -> bool:
        """True if a purpose or a value of the plan has the variable."""
        return any(variable in said for said in self._said.values())

    def keys(self, node_id: str) -> Iterator[str]:
        """Fields of a step's structured answer."""
        for field in _STRUCTURED:
            yield from self._names(node_id, field, "key")

    def state(self) -> Iterator[str]:
        yield from self._names(self._start, "startState", "key")

    def of_start(self, *, asked: bool) -> Iterator[str]:
        """Variables of the start, by its kind; `asked`: after a person was asked."""
        match self._value(self._start, "startInputType") or "chatInput":
            case "formInput":
                yield from (f"$form.{name}" for name in self._names(self._start, "formInputTypes", "name"))
            case "webhookTrigger":
                for part, field in _WEBHOOK.items():
                    yield from (f"$webhook.{part}.{name}" for name in self._names(self._start, field, "name"))
                yield "$webhook.body"
                yield from self._question("webhookInputMode", asked=asked)
            case "scheduleInput":
                yield from self._question("scheduleInputMode", asked=asked)
            case _:
                yield from self._question(None, asked=asked)

    def _question(self, mode: str | None, *, asked: bool) -> Iterator[str]:
        if mode is None or (self._value(self._start, mode) or "text") == "text":
            yield from () if asked else ("question",)
            yield f"{self._start}.output.question"

    def _names(self, node_id: str, field: str, name: str) -> Iterator[str]:
        rows = self._value(node_id, field)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get(name), str):
                yield row[name]

    def _value(self, node_id: str, field: str) -> Any:
        given = self._planned.get(node_id, {}).get(field)
        return self._flow.value(node_id, field) if given is None else given


def _planned_inputs(plan: Plan) -> dict[str, Inputs]:
    """Inputs by node id, as the planned values make them: `rows[0].key` and the like put together."""
    inputs: dict[str, Inputs] = {}
    for value in plan.values:
        steps = parse_path(value.param)
        if steps and value.mode == "set":
            # A path through a value that has no such parts is a finding of the compiler.
            with suppress(AttributeError, TypeError):
                inputs[value.node_id] = with_value(inputs.get(value.node_id, {}), steps, value.value)
    return inputs
