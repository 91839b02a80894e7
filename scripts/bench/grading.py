"""Grades a flow by what a case expects of it. Pure: a flow in, a list of problems out; the keys are FlowBench's.

Nothing here asks the project's own compiler or validator, so that a mistake of theirs shows.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Fields that hold what a model is told.
_PROMPT_FIELD = re.compile(r"prompt|message|instruction|template|persona|content|systemmessage", re.IGNORECASE)
#: Fields that name what comes out.
_OUTPUT_FIELD = re.compile(r"structur|schema|zod|example|format", re.IGNORECASE)
#: Fields that tell branches apart.
_BRANCH_FIELD = re.compile(r"scenario|condition", re.IGNORECASE)


@dataclass(frozen=True)
class Node:
    """A node as it is stored."""

    id: str
    name: str
    inputs: Mapping[str, Any]
    data: Mapping[str, Any]
    x: float

    def at(self, path: str) -> Any:
        """The value at a dotted path of the inputs; None where nothing is."""
        value: Any = self.inputs
        for step in re.findall(r"[^.\[\]]+", path):
            if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
                value = json.loads(value)
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            else:
                return None
        return value


class Flow:
    """A flow with the questions that grading asks of it."""

    def __init__(self, flow_data: Mapping[str, Any]) -> None:
        self.nodes = [
            Node(
                node["id"],
                node["data"]["name"],
                node["data"].get("inputs") or {},
                node["data"],
                float(node.get("position", {}).get("x", 0)),
            )
            for node in flow_data["nodes"]
        ]
        self.edges: list[Mapping[str, Any]] = flow_data["edges"]
        #: Notes take no part in the flow, but a change must not lose them.
        self.names = Counter(str(node["data"]["name"]) for node in flow_data["nodes"])

    def named(self, name: str) -> list[Node]:
        """The nodes of a type, along the flow."""
        return sorted((node for node in self.nodes if node.name == name), key=lambda node: node.x)

    def reached(self, starts: Sequence[str]) -> set[str]:
        """The ids that can be reached from `starts`, these included."""
        seen, open_ = set(starts), list(starts)
        while open_:
            here = open_.pop()
            for edge in self.edges:
                if edge["source"] == here and edge["target"] not in seen:
                    seen.add(edge["target"])
                    open_.append(edge["target"])
        return seen

    def branches(self, node: Node) -> dict[int, list[str]]:
        """Branch number -> where it leads."""
        found: dict[int, list[str]] = {}
        for edge in self.edges:
            number = re.search(r"-output-(\d+)$", str(edge.get("sourceHandle", "")))
            if edge["source"] == node.id and number:
                found.setdefault(int(number[1]), []).append(edge["target"])
        return found


def problems_of(
    flow_data: Mapping[str, Any], expect: Mapping[str, Any], base: Mapping[str, Any] | None = None, kind: str = ""
) -> list[str]:
    """Differences from what `expect` says, each as `key: text`. `base` is the flow before an update."""
    flow = Flow(flow_data)
    former = Flow(base) if base else None
    found: list[str] = []
    for key, value in expect.items():
        check = _CHECKS.get(key)
        if check is not None:
            found += [f"{key}: {text}" for text in check(flow, value, former)]
    if expect.get("kind") and kind and expect["kind"] != kind:
        found.append(f"kind: {kind}, not {expect['kind']}")
    return found


def _nodes(flow: Flow, groups: Any, _: Flow | None) -> Iterator[str]:
    for group in groups:
        if not any(name in flow.names for name in group):
            yield f"none of {group} in {sorted(flow.names)}"


def _not_nodes(flow: Flow, names: Any, _: Flow | None) -> Iterator[str]:
    yield from (f"{name} is there" for name in names if name in flow.names)


def _counts(flow: Flow, counts: Any, _: Flow | None) -> Iterator[str]:
    yield from (f"{flow.names[name]} of {name}" for name, least in counts.items() if flow.names[name] < least)


def _keep(flow: Flow, ids: Any, _: Flow | None) -> Iterator[str]:
    there = {node.id for node in flow.nodes}
    yield from (f"{id_} is gone" for id_ in ids if id_ not in there)


def _params(flow: Flow, params: Any, _: Flow | None) -> Iterator[str]:
    for key, wanted in params.items():
        name, _, path = key.partition(".")
        values = [node.at(path) for node in flow.named(name)]
        if not any(_same(value, wanted) for value in values):
            yield f"{key} is {values}, not {wanted}"


def _texts(flow: Flow, texts: Any, _: Flow | None) -> Iterator[str]:
    for key, wanted in texts.items():
        held = _held(flow, key)
        for text in [wanted] if isinstance(wanted, str) else wanted:
            if not any(_plain(text) in one for one in held):
                yield f"{key} has no {text!r}"


def _not_texts(flow: Flow, texts: Any, _: Flow | None) -> Iterator[str]:
    for key, unwanted in texts.items():
        for text in [unwanted] if isinstance(unwanted, str) else unwanted:
            if any(_plain(text) in one for one in _held(flow, key)):
                yield f"{key} has {text!r}"


def _held(flow: Flow, key: str) -> list[str]:
    name, _, path = key.partition(".")
    return [_plain(_text(node.at(path))) for node in flow.named(name)]


def _prompt_has(flow: Flow, texts: Any, _: Flow | None) -> Iterator[str]:
    prompts = _prompts(flow)
    yield from (f"no prompt has {text!r}" for text in texts if not any(_plain(text) in one for one in prompts))


def _prompt_lacks(flow: Flow, texts: Any, _: Flow | None) -> Iterator[str]:
    prompts = _prompts(flow)
    yield from (f"a prompt has {text!r}" for text in texts if any(_plain(text) in one for one in prompts))


def _prompts(flow: Flow) -> list[str]:
    return [
        _plain(text)
        for node in flow.nodes
        for name, value in node.inputs.items()
        for field, text in _leaves(name, value)
        if _PROMPT_FIELD.search(field)
    ]


def _edges(flow: Flow, pairs: Any, _: Flow | None) -> Iterator[str]:
    names = {node.id: node.name for node in flow.nodes}
    there = {(names.get(edge["source"]), names.get(edge["target"])) for edge in flow.edges}
    yield from (f"{source} does not lead to {target}" for source, target in pairs if (source, target) not in there)


def _scenarios(flow: Flow, words: Any, _: Flow | None) -> Iterator[str]:
    told = _plain(" ".join(text for node in flow.nodes for text in _branch_texts(node)))
    yield from (f"no branch names {word!r}" for word in words if _plain(word) not in told)


def _branch_texts(node: Node) -> Iterator[str]:
    for name, value in node.inputs.items():
        if _BRANCH_FIELD.search(name):
            yield _text(value)


def _behind(flow: Flow, places: Any, _: Flow | None) -> Iterator[str]:
    """A node that only one branch reaches."""
    for name, word in places.items():
        targets = {node.id for node in flow.named(name)}
        if not any(_only_behind(flow, targets, str(word))):
            yield f"{name} is not behind the branch {word!r} alone"


def _only_behind(flow: Flow, targets: set[str], word: str) -> Iterator[bool]:
    for node in flow.nodes:
        rows = node.at("conditionAgentScenarios") or node.at("conditions") or []
        numbers = [number for number, row in enumerate(rows) if _plain(word) in _plain(_text(row))]
        branches = flow.branches(node)
        inside = {id_ for number in numbers for id_ in flow.reached(branches.get(number, []))}
        others = [id_ for number, ids in branches.items() if number not in numbers for id_ in ids]
        yield bool(targets & inside) and not targets & (flow.reached(others) - {node.id})


def _condition(flow: Flow, wanted: Any, _: Flow | None) -> Iterator[str]:
    rows = [row for node in flow.named("conditionAgentflow") for row in node.at("conditions") or []]
    operations = wanted.get("operation", [])
    for row in rows:
        fits = not wanted.get("type") or row.get("type") == wanted["type"]
        fits = fits and (not operations or row.get("operation") in operations)
        if fits and (
            "value" not in wanted or any(_same(row.get(key), wanted["value"]) for key in ("value1", "value2"))
        ):
            return
    yield f"{rows} has none like {wanted}"


def _output_fields(flow: Flow, fields: Any, _: Flow | None) -> Iterator[str]:
    told = " ".join(
        _text(value) for node in flow.nodes for name, value in node.inputs.items() if _OUTPUT_FIELD.search(name)
    )
    yield from (f"{field} is named nowhere" for field in fields if not re.search(rf"\b{re.escape(field)}\b", told))


def _changed_nodes(flow: Flow, count: Any, base: Flow | None) -> Iterator[str]:
    changed = _changed(flow, base)
    if len(changed) != count:
        yield f"{sorted(changed)} differ"


def _untouched_but(flow: Flow, allowed: Any, base: Flow | None) -> Iterator[str]:
    """Of the nodes that are there before and after; `keep` and `not_nodes` grade which are."""
    names = {node.id: node.name for node in flow.nodes}
    known = {node.id for node in base.nodes} if base else set[str]()
    changed = {id_ for id_ in _changed(flow, base) if id_ in known and id_ in names}
    beyond = sorted(id_ for id_ in changed if id_ not in allowed and names[id_] not in allowed)
    if beyond:
        yield f"{beyond} differ"


def _changed(flow: Flow, base: Flow | None) -> set[str]:
    before = {node.id: node for node in base.nodes} if base else {}
    after = {node.id: node for node in flow.nodes}
    return {
        id_
        for id_ in before.keys() | after.keys()
        if id_ not in before or id_ not in after or _own(before[id_]) != _own(after[id_])
    }


def _own(node: Node) -> tuple[str, dict[str, Any]]:
    """Type and values; a connection belongs to the edges."""
    values = {name: value for name, value in node.inputs.items() if ".data.instance" not in _text(value)}
    return node.name, {name: value for name, value in values.items() if value not in ("", None, [])}


def _order(flow: Flow, wanted: Any, _: Flow | None) -> Iterator[str]:
    for place, params in wanted.items():
        for key, value in params.items():
            name, _, path = key.partition(".")
            nodes = flow.named(name)
            at = {"first": 0, "last": -1, "second": 1}[place]
            if not nodes or not _same(nodes[at].at(path), value):
                yield f"the {place} {name} has {[node.at(path) for node in nodes]}, not {value}"


def _sources_returned(flow: Flow, wanted: Any, _: Flow | None) -> Iterator[str]:
    fields = ("returnSourceDocuments", "agentReturnSourceDocuments", "llmReturnSourceDocuments")
    returned = any(_same(node.at(field), True) for node in flow.nodes for field in fields)
    if returned != bool(wanted):
        yield "sources are not returned" if wanted else "sources are returned"


_CHECKS = {
    "nodes": _nodes,
    "not_nodes": _not_nodes,
    "counts": _counts,
    "keep": _keep,
    "params": _params,
    "texts": _texts,
    "not_texts": _not_texts,
    "prompt_has": _prompt_has,
    "prompt_lacks": _prompt_lacks,
    "edges": _edges,
    "scenarios": _scenarios,
    "behind": _behind,
    "condition": _condition,
    "output_fields": _output_fields,
    "changed_nodes": _changed_nodes,
    "untouched_but": _untouched_but,
    "order": _order,
    "sources_returned": _sources_returned,
}


def _same(value: Any, wanted: Any) -> bool:
    """As Flowise stores it: numbers and booleans may be texts."""
    one, other = str(value).strip().casefold(), str(wanted).strip().casefold()
    try:
        return one == other or float(one) == float(other)
    except ValueError:
        return False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> str:
    """Comparable: without markup of the editor, in one case and spacing."""
    return " ".join(re.sub(r"</?(?:p|br|span|strong|em)\b[^<>]*>", " ", text).split()).casefold()


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(key, item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(name, item)
    elif isinstance(value, str):
        yield name, value
