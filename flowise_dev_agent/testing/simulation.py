"""Simulated world of a test: a copy of the flow in which what changes the world is replaced by stand-ins.

A stand-in keeps the node's id, title and connections, takes what the node was given, and answers with a sample. Nothing
of it reaches an address: the code of a stand-in is a function without calls. Measured on Flowise 3.1.4: a custom
function runs in the sandbox and shows its variables in the trace; the OpenAPI toolkit takes its document inline and
runs its own code instead of a request, for chatflows and for tools of agents alike.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from flowise_dev_agent.patch import GraphIR, NodeSchema, Schemas
from flowise_dev_agent.patch.model.node import FlowNode, init_node
from flowise_dev_agent.schemas.base import JsonValue
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.schemas.verdict import Trace, TraceStep
from flowise_dev_agent.testing import effects
from flowise_dev_agent.testing.tool_names import spelt

_TOOLKIT: Final = "openAPIToolkit"
_ROWS: Final = "agentTools"
_ROW_TOOL: Final = "agentSelectedTool"
#: Reads of the answer of an HTTP step, which its stand-in does not have under this path.
_HTTP_READ: Final = r"\{\{\s*%s\.output\.http\.([\w.\[\]$-]{1,200})\s*\}\}"
#: Beginning of the keys in the state of a flow that hold what is read of a stand-in.
_STATE: Final = "simulated_"
_STEP_IN_PATH: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_NUMBER: Final = re.compile(
    r"(?:id|count|number|qty|quantity|amount|price|total|sum|score|age|year|kilos|percent)s?$", re.I
)
#: Names that a tool has at run time, where they are not those of its fields.
_TOOL_NAMES: Final[Mapping[str, str]] = {
    "requestsPost": "requests_post",
    "requestsPut": "requests_put",
    "requestsDelete": "requests_delete",
}
_SAFE_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
#: Flowise reads a body as JSON5; this is as strict as it where a text breaks out of its quotes.
_BODY_CHECK: Final = r"""
if ($bodyType === 'json' && $body) {
  const cleaned = $body.replace(/'/g, '"').replace(/,(\s*[}\]])/g, '$1').replace(/([{,]\s*)(\w+)\s*:/g, '$1"$2":');
  const reads = (one) => { try { JSON.parse(one); return true; } catch (e) { return false; } };
  if (!reads($body) && !reads(cleaned)) {
    throw new Error('Invalid JSON format in body. Original error: ' + $body.slice(0, 200));
  }
}
if (!/^https?:\/\/./i.test($url)) throw new Error('Invalid URL: ' + $url);
"""


@dataclass(frozen=True)
class StandIn:
    """Stand-in for a step, or for a tool of a node (`tool`: its type)."""

    node_id: str
    title: str
    action: str
    tool: str = ""
    #: Normalised names of the tool in a trace.
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Simulation:
    """Flow to test, its stand-ins, and the titles of nodes that change the world and have none."""

    flow_data: str
    stand_ins: Sequence[StandIn] = ()
    acting: Sequence[str] = ()
    #: Original type of each replaced step.
    types: Mapping[str, str] = field(default_factory=dict[str, str])

    def actions(self) -> list[str]:
        """Actions of the flow on the world, which its tests simulate."""
        return list(dict.fromkeys(one.action for one in self.stand_ins))

    def used_in(self, trace: Trace) -> list[str]:
        """Actions that were simulated in a conversation."""
        ran = {step.node_id for step in trace.steps}
        called = {spelt(tool.tool) for tool in trace.used_tools}
        return list(
            dict.fromkeys(
                one.action for one in self.stand_ins if (one.names & called if one.tool else one.node_id in ran)
            )
        )

    def told(self, trace: Trace) -> Trace:
        """Trace with the replaced steps under their own types, with what they were given."""
        state = {key: value for key, value in trace.state.items() if not key.startswith(_STATE)}
        return trace.model_copy(update={"steps": [self._step(step) for step in trace.steps], "state": state})

    def _step(self, step: TraceStep) -> TraceStep:
        if step.node_id not in self.types:
            return step
        given = step.input if isinstance(step.input, dict) else {}
        rows = given.get("inputVariables")
        shown = {
            str(row.get("variableName")): row.get("variableValue")
            for row in (rows if isinstance(rows, list) else [])
            if isinstance(row, dict)
        }
        return step.model_copy(
            update={"name": self.types[step.node_id], "input": shown or step.input, "simulated": True}
        )


NOTHING_SIMULATED: Final = Simulation("")


def simulated(graph: GraphIR, schemas: Schemas, tests: Iterable[TestCase] = ()) -> Simulation:
    """Simulation of a flow. What a test gives as an answer is simulated, also where it only reads; what changes the
    world is simulated in any case, without an answer by the fields that the flow reads.
    """
    function, toolkit = schemas.get(effects.FUNCTION_STEP), schemas.get(_TOOLKIT)
    whole, given = graph.to_flow_data(), _answers_of(tests)
    stand_ins: list[StandIn] = []
    acting: list[str] = []
    types: dict[str, str] = {}
    nodes: list[FlowNode] = []
    reads = _reads_of_http(whole)
    for node in graph.nodes:
        effect = effects.step_effect(node.name, node.category, node.inputs)
        new = node
        if not node.is_note and (effect == "changes" or (effect == "reads" and node.id in given)):
            answer = _Answer(given.get(node.id, {}), sample_answer(node.id, whole))
            made = _step_stand_in(node, function, answer, reads) or _tool_stand_in(node, toolkit, answer)
            if made is not None:
                new, stand_in = made
                stand_ins.append(stand_in)
                if not stand_in.tool:
                    types[node.id] = node.name
            elif effect == "changes":
                acting.append(node.label or node.id)
        elif isinstance(rows := node.inputs.get(_ROWS), list) and toolkit is not None:
            changed, found = _rows(node, rows, given)
            if found:
                stand_ins += found
                new = node.copy()
                new.set_inputs({**node.inputs, _ROWS: changed})
        nodes.append(new)
    if not stand_ins:
        return Simulation(whole, acting=acting)
    moved = {read: key for read, key in reads.items() if read[0] in types}
    nodes = [_reading(node, moved) for node in nodes] if moved else nodes
    return Simulation(graph.with_parts(nodes, graph.edges).to_flow_data(), stand_ins, acting, types)


def _answers_of(tests: Iterable[TestCase]) -> dict[str, dict[str, JsonValue]]:
    """Answers by what gives them (id of a node, or name or type of a tool), then by test."""
    found: dict[str, dict[str, JsonValue]] = {}
    for test in tests:
        for name, answer in (test.answers or {}).items():
            found.setdefault(name, {})[test.id] = _parsed(answer)
    return found


def _parsed(answer: JsonValue) -> JsonValue:
    """Answer, read as JSON where it is JSON in a text."""
    if isinstance(answer, str) and answer.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return json.loads(answer)
    return answer


@dataclass(frozen=True)
class _Answer:
    """Answer of a stand-in: by test, else the first of a test, else a sample."""

    by_test: Mapping[str, JsonValue]
    sample: JsonValue

    def code(self, *, as_text: bool) -> str:
        """Code that gives the answer. The id of the session ends with the test and the number of its trial."""

        def written(value: JsonValue) -> str:
            return _json(value if isinstance(value, str) or not as_text else json.dumps(value, ensure_ascii=False))

        first = next(iter(self.by_test.values()), self.sample)
        if not self.by_test:
            return f"return {written(first)};"
        table = ", ".join(f"{json.dumps(test)}: {written(value)}" for test, value in self.by_test.items())
        return (
            "const of = /-(t\\d+)-\\d+$/.exec(String($flow.sessionId || ''));\n"
            f"const answers = {{{table} }};\n"
            f"return of && of[1] in answers ? answers[of[1]] : {written(first)};"
        )


def _step_stand_in(
    node: FlowNode, schema: NodeSchema | None, answer: _Answer, reads: Mapping[tuple[str, str], str]
) -> tuple[FlowNode, StandIn] | None:
    if schema is None or node.name not in (effects.HTTP, effects.TOOL_STEP, effects.FLOW_STEP, effects.FUNCTION_STEP):
        return None
    inputs, check = node.inputs, ""
    match node.name:
        case effects.HTTP:
            given = {key: inputs.get(key) for key in ("method", "url", "queryParams", "bodyType", "body")}
            action, check = f"{inputs.get('method') or 'GET'} {inputs.get('url') or ''}".rstrip(), _BODY_CHECK
            update = [
                {"key": key, "value": f"{{{{ output{_dotted(path.removeprefix('data'))} }}}}"}
                for (id_, path), key in reads.items()
                if id_ == node.id and path.startswith("data")
            ]
        case effects.TOOL_STEP:
            rows = inputs.get("toolInputArgs")
            given = {
                str(row.get("inputArgName")): row.get("inputArgValue")
                for row in (rows if isinstance(rows, list) else [])
                if isinstance(row, dict)
            }
            action, update = str(inputs.get("toolAgentflowSelectedTool") or ""), inputs.get("toolUpdateState")
        case effects.FLOW_STEP:
            given, action = {"input": inputs.get("executeFlowInput")}, node.label
            update = inputs.get("executeFlowUpdateState")
        case _:
            rows = inputs.get("customFunctionInputVariables")
            given = {
                str(row.get("variableName")): row.get("variableValue")
                for row in (rows if isinstance(rows, list) else [])
                if isinstance(row, dict)
            }
            action, update = node.label, inputs.get("customFunctionUpdateState")
    variables = [
        {"variableName": _SAFE_NAME.sub("_", name), "variableValue": value if isinstance(value, str) else _json(value)}
        for name, value in given.items()
        if value not in (None, "", [])
    ]
    names = {row["variableName"] for row in variables}
    declared = "".join(f"const ${name} = '';\n" for name in ("url", "body", "bodyType") if check and name not in names)
    code = f"{declared}{check}\n{answer.code(as_text=False)}"
    values: dict[str, Any] = {"customFunctionInputVariables": variables, "customFunctionJavascriptFunction": code}
    if update:
        values["customFunctionUpdateState"] = update
    return _replaced(node, schema, values), StandIn(node.id, node.label or node.id, action)


def _tool_stand_in(node: FlowNode, schema: NodeSchema | None, answer: _Answer) -> tuple[FlowNode, StandIn] | None:
    if schema is None or node.category not in effects.TOOL_CATEGORIES:
        return None
    names = _names(node.name, node.label, node.inputs)
    new = _replaced(node, schema, _toolkit_inputs(names, _about(node.name, node.inputs), answer))
    found = frozenset(map(spelt, names))
    return new, StandIn(node.id, node.label or node.id, node.label or node.name, node.name, found)


def _rows(
    node: FlowNode, rows: Sequence[Any], given: Mapping[str, Mapping[str, JsonValue]]
) -> tuple[list[Any], list[StandIn]]:
    """Rows of an agent's tools with stand-ins for those that change the world."""
    changed: list[Any] = []
    found: list[StandIn] = []
    for row in rows:
        type_ = str(row.get(_ROW_TOOL) or "") if isinstance(row, dict) else ""
        config = row.get(f"{_ROW_TOOL}Config") if type_ else None
        inputs = config if isinstance(config, dict) else {}
        names = _names(type_, type_, inputs)
        own = next((given[name] for name in (*names, type_, node.id) if name in given), {})
        effect = effects.tool_effect(type_, inputs)
        if not type_ or not (effect == "changes" or (effect == "reads" and own)):
            changed.append(row)
            continue
        answer = _Answer(own, sample_answer(type_, ""))
        stand_in = _toolkit_inputs(names, _about(type_, inputs), answer)
        changed.append({**row, _ROW_TOOL: _TOOLKIT, f"{_ROW_TOOL}Config": {_ROW_TOOL: _TOOLKIT, **stand_in}})
        named = ", ".join(names)
        found.append(StandIn(node.id, node.label or node.id, named, type_, frozenset(map(spelt, names))))
    return changed, found


def _replaced(node: FlowNode, schema: NodeSchema, values: Mapping[str, Any]) -> FlowNode:
    """Node of another type in the place of this one, with its title and its connections."""
    data = init_node(schema, node.id, agentflow=schema.is_agentflow)
    data["label"] = node.label
    data["inputs"] = {**data.get("inputs", {}), **values}
    if node.is_agentflow:
        data["outputAnchors"] = node.data.get("outputAnchors", [])
    return FlowNode({**node.raw, "data": data})


# --- tools -----------------------------------------------------------------------------------------------------------


def _toolkit_inputs(names: Sequence[str], about: str, answer: _Answer) -> dict[str, JsonValue]:
    """Inputs of an OpenAPI toolkit whose operations run code that answers."""
    body = {
        "content": {"application/json": {"schema": {"type": "object", "properties": {"input": {"type": "string"}}}}}
    }
    paths: dict[str, Any] = {
        f"/{name}": {"post": {"operationId": name, "description": about or name, "requestBody": body}} for name in names
    }
    document = {
        "openapi": "3.0.0",
        "info": {"title": "stand-in", "version": "1"},
        "servers": [{"url": "http://stand-in"}],
    }
    encoded = base64.b64encode(json.dumps({**document, "paths": paths}).encode()).decode()
    return {
        "inputType": "file",
        "openApiFile": f"data:application/json;base64,{encoded},filename:stand-in.json",
        "selectedServer": "http://stand-in",
        "selectedEndpoints": "",
        "customCode": answer.code(as_text=True),
    }


def _names(type_: str, label: str, inputs: Mapping[str, Any]) -> list[str]:
    """Names of a tool for its agent: of its fields, of its chosen actions, or of its type."""
    if chosen := effects.actions_of(inputs):
        return [_name(one) for one in chosen]
    own = next((inputs[key] for key in ("name", "toolName", "requestsPostName") if inputs.get(key)), None)
    named = own or next((value for key, value in inputs.items() if key.endswith("Name") and value), None)
    return [_name(str(named or _TOOL_NAMES.get(type_) or label))]


def _name(name: str) -> str:
    return _SAFE_NAME.sub("_", name.strip()).strip("_")[:64] or "tool"


def _about(type_: str, inputs: Mapping[str, Any]) -> str:
    described = (value for key, value in inputs.items() if key.casefold().endswith("description") and value)
    return str(next(described, type_))


# --- answers ---------------------------------------------------------------------------------------------------------


def sample_answer(node_id: str, flow_data: str) -> JsonValue:
    """Answer with the fields that the flow reads of a step, each with a value that its name suggests."""
    reads = re.findall(_HTTP_READ % re.escape(node_id), flow_data)
    answer: dict[str, JsonValue] = {}
    for read in dict.fromkeys(reads):
        steps = _steps(read)
        if steps[:1] == ["data"] and len(steps) > 1:
            _put(answer, steps[1:])
    return answer or {"status": "ok", "id": 1001}


def _put(place: dict[str, JsonValue], steps: Sequence[str | int]) -> None:
    name, rest = str(steps[0]), steps[1:]
    if not rest:
        place.setdefault(name, 1001 if _NUMBER.search(name) else f"sample {name}")
        return
    if isinstance(rest[0], int):
        rows = place.setdefault(name, [])
        if isinstance(rows, list):
            if not rows:
                rows.append({})
            first = rows[0]
            if len(rest) > 1 and isinstance(first, dict):
                _put(first, rest[1:])
        return
    inner = place.setdefault(name, {})
    if isinstance(inner, dict):
        _put(inner, rest)


def _steps(path: str) -> list[str | int]:
    return [int(index) if index else name for name, index in _STEP_IN_PATH.findall(path)]


def _dotted(path: str) -> str:
    """Path without brackets, as Flowise reads it in an update of the state."""
    return re.sub(r"\[(\d+)\]", r".\1", path)


def _reads_of_http(flow_data: str) -> dict[tuple[str, str], str]:
    """Key in the state of the flow for each (step, path) that is read of the answer of an HTTP step."""
    found = dict.fromkeys(re.findall(_HTTP_READ % r"([\w-]{1,200})", flow_data))
    return {read: f"{_STATE}{number}" for number, read in enumerate(found)}


def _reading(node: FlowNode, moved: Mapping[tuple[str, str], str]) -> FlowNode:
    """Node that reads the answers of HTTP steps where their stand-ins put them: in the state of the flow."""
    inputs = _with_reads(node.inputs, moved)
    if inputs == node.inputs:
        return node
    new = node.copy()
    new.set_inputs(inputs)
    return new


def _with_reads(value: Any, moved: Mapping[tuple[str, str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _with_reads(item, moved) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_reads(item, moved) for item in value]
    if not isinstance(value, str) or ".output.http." not in value:
        return value
    for (node_id, path), key in moved.items():
        read = _HTTP_READ % re.escape(node_id)
        value = re.sub(read, lambda found, path=path, key=key: _moved(found, path, key), value)
    return value


def _moved(found: re.Match[str], path: str, key: str) -> str:
    """Read of the state in place of the read of this path; what an answer has beside its data is that of a success."""
    if found[1] != path:
        return found[0]
    beside = {"status": "200", "statusText": "OK"}
    return beside.get(path, f"{{{{ $flow.state.{key} }}}}")


def _json(value: Any) -> str:
    """JSON that is safe as a literal in JavaScript, and that holds no variable of Flowise."""
    written = json.dumps(value, ensure_ascii=True, indent=None)
    return written.replace("{{", "{ {").replace("}}", "} }")
