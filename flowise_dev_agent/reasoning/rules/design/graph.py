"""The steps of an AgentFlow that is there, and what becomes of them: some come behind others, between them or on a
branch, some go, and fields get other values."""

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from flowise_dev_agent.contracts.plan import DesignConnection, PlannedValue
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design import build
from flowise_dev_agent.reasoning.rules.design.sources import Made

START, REPLY, CALL, LOOP = "startAgentflow", "directReplyAgentflow", "httpAgentflow", "loopAgentflow"
HUMAN, SORTER, CONDITION = "humanInputAgentflow", "conditionAgentAgentflow", "conditionAgentflow"
MODELS, PROCEEDS = ("llmAgentflow", "agentAgentflow"), ("proceed", "0")
#: The branches of a step that sorts, and the text of a reply.
ROWS, TEXT = "conditionAgentScenarios", "directReplyMessage"
_STATE = re.compile(r"\$flow\.state\.(\w+)")


class Edge(NamedTuple):
    source: str
    output: str
    target: str


class Graph:
    """`kinds` are the types of the steps, those that came among them, `titles` what they are called."""

    def __init__(self, request: PlanRequest, made: Made) -> None:
        nodes, edges = (request.base.nodes, request.base.edges) if request.base else ((), ())
        self.kinds, self.titles = {**request.existing}, {**request.labels}
        self._request, self._was = request, [Edge(one.source, one.output_name, one.target) for one in edges]
        self.edges, self.removed, self.labels = [*self._was], [*made.removed], dict[str, str]()
        self._nodes = {node.id: dict[str, Any](node.inputs) for node in nodes}
        self._values, self._added = {(one.node_id, one.param): one for one in made.values}, dict(made.added)
        #: The ways that came, in words.
        self._shown = list[str]()

    def of(self, *kinds: str) -> list[str]:
        return [id_ for id_, name in self.kinds.items() if name in kinds and id_ not in self.removed]

    def held(self, step: str, field: str) -> Any:
        value = self._values.get((step, field))
        return value.value if value else self._nodes.get(step, {}).get(field)

    def like(self, step: str, fields: str) -> dict[str, Any]:
        """What a step holds in the fields that this pattern names."""
        return {name: value for name, value in self._nodes[step].items() if re.match(fields, name)}

    def next(self, step: str, *outputs: str) -> str:
        """The step that one of these outputs leads to."""
        return next((one.target for one in self.edges if one.source == step and one.output in outputs), "")

    def before(self, step: str) -> list[str]:
        return [one.source for one in self.edges if one.target == step]

    def after(self, step: str) -> list[str]:
        return [one.target for one in self.edges if one.source == step]

    def gone(self, kind: str) -> bool:
        return any(self.kinds[id_] == kind for id_ in self.removed)

    def put(self, step: str, **values: Any) -> bool:
        fields = [PlannedValue(node_id=step, param=name, value=value) for name, value in values.items()
                  if value != self.held(step, name)]  # fmt: skip
        self._values |= {(one.node_id, one.param): one for one in fields}
        return True

    def new(self, kind: str, source: str, output: str = "", label: str = "", **values: Any) -> str:
        """A new step behind an output of another one."""
        (id_,) = build.fresh_ids((kind,), self.kinds)
        self._added[id_] = self.kinds[id_] = kind
        self.labels |= {id_: label} if label else {}
        self.edges.append(Edge(source, output, id_))
        self.put(id_, **values)
        return id_

    def between(self, edges: Collection[Edge], *kinds: str, output: str = "") -> list[str]:
        """New steps, one behind the other, on connections that lead to one step, with the `output` of the last one that
        leads on; behind a last step they lead nowhere, and what it made is said in the end."""
        (first, *_), ids = edges, list[str]()
        self.edges = [one for one in self.edges if one not in edges]
        for kind in kinds:
            ids.append(self.new(kind, ids[-1] if ids else first.source, "" if ids else first.output))
        self.edges += [one._replace(target=ids[0]) for one in edges if one != first]
        if first.target:
            self.edges.append(Edge(ids[-1], output, first.target))
        else:
            self.new(REPLY, ids[-1], output, **{TEXT: f"{{{{ {first.source} }}}}"})
        self._shown.append(" → ".join(map(self._title, (first.source, *ids, self.edges[-1].target))))
        return ids

    def without(self, gone: str) -> bool:
        """Without a step: what was in front of it goes on to what was behind it, and what a refusal led to alone goes.
        One stays whose result, or a value of the flow that it alone sets, another one reads."""
        out = [one for one in self.edges if one.source == gone]
        behind = [one.target for one in out if self.kinds[gone] != HUMAN or one.output in PROCEEDS]
        alone = [one.target for one in out if one.target not in behind
                 and [edge.source for edge in self.edges if edge.target == one.target] == [gone]]  # fmt: skip
        read = json.dumps([own for id_, own in self._nodes.items() if id_ not in (gone, *alone)], default=str)
        own = {
            row["key"] for name, rows in self._nodes[gone].items() if name.endswith("UpdateState") for row in rows or ()
        }
        if re.search(rf"\b{gone}\b", read) or own.intersection(_STATE.findall(read)):
            return False
        if not behind and self.kinds[gone] != LOOP:
            return False
        around = [one._replace(target=to) for one in self.edges if one.target == gone for to in behind]
        self.edges = [*(one for one in self.edges if not {gone, *alone} & {one.source, one.target}), *around]
        self.removed += [gone, *alone]
        return True

    def behind(self, steps: Iterable[str]) -> set[str]:
        """These steps, and all that come behind them."""
        inside = {*steps}
        while more := {one.target for one in self.edges if one.source in inside} - inside:
            inside |= more
        return inside

    def made(self, made: Made) -> Made:
        """With all that became of the steps."""
        new = [one for one in self.edges if one not in self._was]
        gone = [one for one in self._was if one not in self.edges and not {*self.removed} & {one.source, one.target}]
        links = [DesignConnection(source=one.source, output=one.output, target=one.target) for one in new]
        cuts = [DesignConnection(source=one.source, target=one.target, input=one.target) for one in gone]
        return replace(
            made, added=self._added, removed=tuple(self.removed), labels=self.labels, steps=tuple(self._shown),
            values=tuple(self._values.values()), links=(*made.links, *links), cuts=(*made.cuts, *cuts),
        )  # fmt: skip

    def _title(self, id_: str) -> str:
        method = f"{self.held(id_, 'method')} " if self._nodes.get(id_) and self.kinds[id_] == CALL else ""
        kind = self._request.nodes.get(self._added.get(id_, ""))
        return f"`{method}{kind.label if kind else self.titles.get(id_) or id_}`"
