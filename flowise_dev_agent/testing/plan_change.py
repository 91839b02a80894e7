"""A plan beside the flow before and after it: what the flow holds of it, and what carries each part."""

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from flowise_dev_agent.patch import FlowNode, GraphIR, is_same_node
from flowise_dev_agent.patch.model.equal_values import held
from flowise_dev_agent.patch.model.field_kinds import PROSE
from flowise_dev_agent.patch.model.labels import field_label, field_name, in_words, titled
from flowise_dev_agent.patch.model.nested import parse_path, value_at
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.patch.model.references import referenced
from flowise_dev_agent.patch.validate.providers import ignored_settings
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import JsonValue
from flowise_dev_agent.schemas.plan import Part, Plan, PlannedValue
from flowise_dev_agent.testing.checks import named_placeholder, placeholders_of
from flowise_dev_agent.texts import listed, text

_SHOWN: Final = 200
_QUOTED: Final = re.compile(r"\"([^\"]{2,2000})\"|“([^”]{2,2000})”|„([^“”]{2,2000})[“”]|«([^»]{2,2000})»")
#: Name of a type or of an option: `chatAnthropic`.
_CAMEL_CASE: Final = re.compile(r"[a-z]+(?:[A-Z][a-z]*)+")


@dataclass(frozen=True)
class PlanChange:
    """A plan, and the flow before and after it."""

    plan: Plan
    before: GraphIR
    after: GraphIR

    @cached_property
    def ignored(self) -> frozenset[str]:
        """Fields of the flow that never reach its models."""
        return ignored_settings(self.after)

    def stays(self, node_id: str) -> bool:
        """True for a node that the plan removes or replaces and that is still in the flow."""
        old, new = self.before.node(node_id), self.after.node(node_id)
        if new is None or node_id not in self.plan.removals:
            return False
        return new.name == old.name if old else new.name not in {node.node_name for node in self.plan.nodes}

    def wanted(self, path: str) -> PlannedValue | None:
        """Value that a field (`node_id.param`) is to have: the planned one, else the one before the session.

        A new node's field that the plan leaves alone is to have the value that the node was made with. The nodes that
        an input takes are those of the flow, whose lines were compared with the plan before it was written.
        """
        planned = next((value for value in self.plan.values if f"{value.node_id}.{value.param}" == path), None)
        node_id, _, param = path.partition(".")
        kept = field_of(self.after, path)
        if self.before.node(node_id) and not referenced(kept):
            kept = field_of(self.before, path)
        if planned or kept is None:
            return planned
        return PlannedValue(node_id=node_id, param=param, value=kept)

    def is_edited(self, value: PlannedValue) -> bool:
        """True for a text that the flow had before the session, as it was or edited."""
        return bool(field_of(self.before, f"{value.node_id}.{value.param}"))

    def title(self, node_id: str) -> str:
        """Title of a node of the flow or the plan."""
        node = self.after.node(node_id) or self.before.node(node_id)
        planned = next((one.label or in_words(one.node_name) for one in self.plan.nodes if one.node_id == node_id), "")
        return (node.label if node else "") or planned or node_id

    def field_in_words(self, path: str) -> str:
        """Title of a node and name of its field."""
        node_id, _, param = path.partition(".")
        node = self.after.node(node_id) or self.before.node(node_id)
        return f"{node.label or node.name}, {_name(node, param)}" if node else field_name(param)

    def value_in_words(self, value: PlannedValue) -> str:
        """Name of a field, and its value unless it has rows: nodes by their titles, names of types as words."""
        node = self.after.node(value.node_id)
        name, shown = _name(node, value.param) if node else field_name(value.param), value.value
        titles = {one.id: one.label or one.name for one in self.after.nodes}
        if taken := referenced(shown):
            return text("verdict.field_value", field=name, value=", ".join(titles.get(id_, id_) for id_ in taken))
        if isinstance(shown, bool):
            return text("verdict.field_value", field=name, value=text("plan.yes" if shown else "plan.no"))
        if not isinstance(shown, str | int | float):
            return name
        named = isinstance(shown, str) and _CAMEL_CASE.fullmatch(shown)
        words = in_words(str(shown)) if named else titled(str(shown), titles)
        return text("verdict.field_value", field=name, value=shortened(words, _SHOWN))

    def placeholders(self, part: Part, among: Container[str] | None = None) -> list[str]:
        """Placeholders of the flow in the nodes and values of a part: what is behind them is not there yet. With
        `among`, only those in these nodes.
        """
        found: list[str] = []
        for path in part.values:
            node_id, _, param = path.partition(".")
            node, value = self.after.node(node_id), field_of(self.after, path)
            if node and stands_in(value) and (among is None or node_id in among):
                found.append(named_placeholder(node, param, value))
        for node_id in () if part.values else part.nodes:
            if (node := self.after.node(node_id)) and (among is None or node_id in among):
                found += placeholders_of(node)
        return list(dict.fromkeys(found))

    def read_off(self, part: Part) -> str:
        """Evidence in the flow itself for a part: its settings and the texts that it quotes, or nodes that stay or go.

        Empty if only a test can show it: a text that a model follows, or a new node at work.
        """
        named = [value for value in self.plan.values if f"{value.node_id}.{value.param}" in part.values]
        nodes = {*part.nodes} - {value.node_id for value in named}
        if not (named or nodes) and self.plan.new_name and self.plan.renames(part):
            return text("change.renamed", name=self.plan.new_name)
        if not (named or nodes) or not all(self._is_settled(node_id) for node_id in nodes):
            return ""
        quoted = [next(filter(None, found)) for found in _QUOTED.findall(part.quote)]
        for value in named:
            texts = PROSE.search(value.param) is not None
            asked = bool(quoted) and all(one.strip() in str(value.value) for one in quoted)
            if stands_in(value.value) or not holds(self.after, value) or (texts and not asked):
                return ""
        settings = [self.value_in_words(value) for value in named if not PROSE.search(value.param)]
        if settings:
            return text("verdict.setting_held", setting=listed(settings))
        return text("verdict.text_held" if named else "verdict.nodes_settled")

    def _is_settled(self, node_id: str) -> bool:
        """True for a node that is to stay and is as it was, and for one that is to go and is gone."""
        gone = self.after.node(node_id) is None
        same = bool(self.before.node(node_id)) and not self._changed(node_id)
        return gone if node_id in self.plan.removals else same and node_id in self.plan.kept

    def carries(self, part: Part) -> bool:
        """True if a change or a setting of the flow is what the part asks for.

        A node that stays as it was is none, unless the plan keeps it on purpose, or the flow is a copy.
        """
        copies = self.plan.operation == "copy"
        if self.plan.set_beside.intersection(part.values):
            return True  # written with the flow, beside its nodes
        values = [
            value
            for value in self.plan.values
            if f"{value.node_id}.{value.param}" in part.values or value.node_id in part.nodes
        ]
        nodes = {*part.nodes, *(value.partition(".")[0] for value in part.values)}
        if not nodes:
            return copies or self.plan.renames(part)
        return (
            copies
            or any(node_id in self.plan.kept or self._changed(node_id) for node_id in nodes)
            or any(holds(self.after, value) for value in values)
        )

    def _changed(self, node_id: str) -> bool:
        """True for a node that came or went, or that is not as it was."""
        there = self.before.node(node_id) or self.after.node(node_id)
        return not is_same_node(node_id, self.before, self.after) if there else node_id in self.plan.removals


def _name(node: FlowNode, param: str) -> str:
    return field_label(node.params, param) or field_name(param)


def holds(graph: GraphIR, value: PlannedValue) -> bool:
    """True if the flow has the planned value."""
    stored = field_of(graph, f"{value.node_id}.{value.param}")
    if value.mode == "append":
        return isinstance(stored, str) and str(value.value) in stored
    return (stored is not None or value.value is None) and held(stored, value.value)


def field_of(graph: GraphIR, path: str) -> JsonValue:
    """Value of a field (`node_id.param`) of a flow."""
    node_id, _, param = path.partition(".")
    node, steps = graph.node(node_id), parse_path(param)
    return value_at(node.inputs, steps) if node and steps else None
