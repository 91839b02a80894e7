"""Simulated world of a test: a copy of the flow in which what changes the world is replaced by stand-ins.

A stand-in keeps the node's id, title and connections, takes what the node was given, and answers with a sample. Nothing
of it reaches an address: the code of a stand-in is a function without calls. Measured on Flowise 3.1.4: a custom
function runs in the sandbox and shows its variables in the trace; the OpenAPI toolkit takes its document inline and
runs its own code instead of a request, for chatflows and for tools of agents alike.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from flowise_dev_agent.patch import GraphIR, NodeSchema, Schemas
from flowise_dev_agent.patch.model.node import FlowNode, init_node
from flowise_dev_agent.schemas.base import JsonValue
from flowise_dev_agent.schemas.verdict import Trace, TraceStep
from flowise_dev_agent.testing import effects
from flowise_dev_agent.testing.tool_names import spelt

_TOOLKIT: Final = "openAPIToolkit"
_ROWS: Final = "agentTools"
_ROW_TOOL: Final = "agentSelectedTool"
#: Reads of the answer of an HTTP step, which its stand-in does not have under this path.
_HTTP_READ: Final = r"\{\{\s*%s\.output\.http\.([\w.\[\]$-]{1,200})\s*\}\}"
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
        return trace.model_copy(update={"steps": [self._step(step) for step in trace.steps]})

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


def simulated(graph: GraphIR, schemas: Schemas, samples: Mapping[str, JsonValue] | None = None) -> Simulation:
    """Simulation of a flow. `samples` are answers by node id; others have the fields that the flow reads."""
    function, toolkit = schemas.get(effects.FUNCTION_STEP), schemas.get(_TOOLKIT)
    whole, given = graph.to_flow_data(), samples or {}
    stand_ins: list[StandIn] = []
    acting: list[str] = []
    answers: dict[str, JsonValue] = {}
    types: dict[str, str] = {}
    nodes: list[FlowNode] = []
    for node in graph.nodes:
        effect = effects.step_effect(node.name, node.category, node.inputs)
        new = node
        if effect == "changes" and not node.is_note:
            answer = given.get(node.id, sample_answer(node.id, whole))
            made = _step_stand_in(node, function, answer) or _tool_stand_in(node, toolkit, answer)
            if made is None:
                acting.append(node.label or node.id)
            else:
                new, stand_in = made
                stand_ins.append(stand_in)
                if not stand_in.tool:
                    types[node.id] = node.name
                if node.name == effects.HTTP:
                    answers[node.id] = answer
        elif isinstance(rows := node.inputs.get(_ROWS), list) and toolkit is not None:
            changed, found = _rows(node, rows, given)
            if found:
                stand_ins += found
                new = node.copy()
                new.set_inputs({**node.inputs, _ROWS: changed})
        nodes.append(new)
    if not stand_ins:
        return Simulation(whole, acting=acting)
    if answers:
        nodes = [_reading(node, answers) for node in nodes]
    return Simulation(graph.with_parts(nodes, graph.edges).to_flow_data(), stand_ins, acting, types)


def _step_stand_in(node: FlowNode, schema: NodeSchema | None, answer: JsonValue) -> tuple[FlowNode, StandIn] | None:
    if schema is None or node.name not in (effects.HTTP, effects.TOOL_STEP, effects.FLOW_STEP, effects.FUNCTION_STEP):
        return None
    inputs, check = node.inputs, ""
    match node.name:
        case effects.HTTP:
            given = {key: inputs.get(key) for key in ("method", "url", "queryParams", "bodyType", "body")}
            action, check = f"{inputs.get('method') or 'GET'} {inputs.get('url') or ''}".rstrip(), _BODY_CHECK
            update = None
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
    code = f"{declared}{check}\nreturn {_json(answer)};"
    values: dict[str, Any] = {"customFunctionInputVariables": variables, "customFunctionJavascriptFunction": code}
    if update:
        values["customFunctionUpdateState"] = update
    return _replaced(node, schema, values), StandIn(node.id, node.label or node.id, action)


def _tool_stand_in(node: FlowNode, schema: NodeSchema | None, answer: JsonValue) -> tuple[FlowNode, StandIn] | None:
    if schema is None or node.category not in effects.TOOL_CATEGORIES:
        return None
    names = _names(node.name, node.label, node.inputs)
    new = _replaced(node, schema, _toolkit_inputs(names, _about(node.name, node.inputs), answer))
    found = frozenset(map(spelt, names))
    return new, StandIn(node.id, node.label or node.id, node.label or node.name, node.name, found)


def _rows(node: FlowNode, rows: Sequence[Any], given: Mapping[str, JsonValue]) -> tuple[list[Any], list[StandIn]]:
    """Rows of an agent's tools with stand-ins for those that change the world."""
    changed: list[Any] = []
    found: list[StandIn] = []
    for row in rows:
        type_ = str(row.get(_ROW_TOOL) or "") if isinstance(row, dict) else ""
        if not type_ or effects.tool_effect(type_) != "changes":
            changed.append(row)
            continue
        config = row.get(f"{_ROW_TOOL}Config")
        inputs = config if isinstance(config, dict) else {}
        names = _names(type_, type_, inputs)
        answer = given.get(type_, sample_answer(type_, ""))
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


def _toolkit_inputs(names: Sequence[str], about: str, answer: JsonValue) -> dict[str, JsonValue]:
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
    said = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return {
        "inputType": "file",
        "openApiFile": f"data:application/json;base64,{encoded},filename:stand-in.json",
        "selectedServer": "http://stand-in",
        "selectedEndpoints": "",
        "customCode": f"return {_json(said)};",
    }


def _names(type_: str, label: str, inputs: Mapping[str, Any]) -> list[str]:
    """Names of a tool for its agent: of its fields, of its chosen actions, or of its type."""
    for key, value in inputs.items():
        listed: Any = value
        if key.casefold().endswith("actions") and isinstance(value, str) and value.startswith("["):
            try:
                listed = json.loads(value)
            except ValueError:
                listed = []
        if key.casefold().endswith("actions") and isinstance(listed, list) and listed:
            return [_name(str(one)) for one in listed]
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


def _reading(node: FlowNode, answers: Mapping[str, JsonValue]) -> FlowNode:
    """Node whose reads of the answers of HTTP steps hold the values themselves."""
    inputs = _with_reads(node.inputs, answers)
    if inputs == node.inputs:
        return node
    new = node.copy()
    new.set_inputs(inputs)
    return new


def _with_reads(value: Any, answers: Mapping[str, JsonValue]) -> Any:
    if isinstance(value, dict):
        return {key: _with_reads(item, answers) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_reads(item, answers) for item in value]
    if not isinstance(value, str) or ".output.http." not in value:
        return value
    for node_id, answer in answers.items():
        value = re.sub(_HTTP_READ % re.escape(node_id), partial(_read, answer), value)
    return value


def _read(answer: JsonValue, found: re.Match[str]) -> str:
    value: Any = {"data": answer, "status": 200, "statusText": "OK", "headers": {}}
    for step in _steps(found[1]):
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    if value is None:
        return found[0]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json(value: Any) -> str:
    """JSON that is safe as a literal in JavaScript, and that holds no variable of Flowise."""
    written = json.dumps(value, ensure_ascii=True, indent=None)
    return written.replace("{{", "{ {").replace("}}", "} }")
