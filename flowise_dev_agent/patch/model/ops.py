"""The Patch IR: ops that models and people write. Handles, references and positions are derived by the compiler."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.patch.model.findings import Finding
from flowise_dev_agent.patch.model.json_text import JsonValue, is_uuid
from flowise_dev_agent.patch.model.named_values import NamedValues, as_named_values
from flowise_dev_agent.patch.model.suggest import closest, resolve_case
from flowise_dev_agent.redaction import looks_secret
from flowise_dev_agent.texts import text


class _Op(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


#: Maximum length of a step's description.
MAX_DESCRIPTION = 500


class AddNode(_Op):
    """Add a node of a known type under a new id."""

    op_type: Literal["AddNode"] = "AddNode"
    node_name: str = Field(min_length=1, max_length=200, description="node type as in the catalogue, e.g. chatOpenAI")
    node_id: str = Field(
        min_length=1, max_length=100, description="new id, letters, digits and _ only, e.g. chatOpenAI_0"
    )
    label: str | None = Field(default=None, max_length=200, description="title on the node; the type's by default")
    description: str | None = Field(
        default=None,
        max_length=MAX_DESCRIPTION,
        description="what an agentflow step does; the type's by default",
    )
    params: NamedValues = Field(default_factory=dict, description="field values by field name or path")


class SetParam(_Op):
    """Set one field of a node."""

    op_type: Literal["SetParam"] = "SetParam"
    node_id: str = Field(min_length=1, max_length=100)
    param_name: str = Field(
        min_length=1, max_length=200, description="field name; inside a model or tool a path, llmModelConfig.modelName"
    )
    value: JsonValue


class UnsetParam(_Op):
    """Remove the value of one field, so that the node runs on its own default."""

    op_type: Literal["UnsetParam"] = "UnsetParam"
    node_id: str = Field(min_length=1, max_length=100)
    param_name: str = Field(min_length=1, max_length=200)


class Connect(_Op):
    """Connect an output of one node to an input of another, by names."""

    op_type: Literal["Connect"] = "Connect"
    source_node_id: str = Field(min_length=1, max_length=100)
    source_anchor: str | None = Field(
        default=None, max_length=200, description="output name; leave out to choose the one that fits by type"
    )
    target_node_id: str = Field(min_length=1, max_length=100)
    target_anchor: str = Field(
        default="", max_length=200, description="input name, e.g. model, memory, tools; none for agentflow nodes"
    )


class Disconnect(_Op):
    """Remove the connection between two nodes; with an input name only that one."""

    op_type: Literal["Disconnect"] = "Disconnect"
    source_node_id: str = Field(min_length=1, max_length=100)
    source_anchor: str | None = Field(default=None, max_length=200, description="output name")
    target_node_id: str = Field(min_length=1, max_length=100)
    target_anchor: str = Field(default="", max_length=200, description="input name")


class BindCredential(_Op):
    """Bind a stored credential to a node. An empty id is a credential still to be chosen."""

    op_type: Literal["BindCredential"] = "BindCredential"
    node_id: str = Field(min_length=1, max_length=100)
    credential_id: str = Field(default="", max_length=100, description="uuid of the credential on the Flowise server")
    credential_type: str | None = Field(default=None, max_length=200, description="e.g. openAIApi")
    path: str = Field(
        default="",
        max_length=200,
        description="model or tool in an agentflow node: llmModelConfig, agentTools[0].agentSelectedToolConfig",
    )


class RemoveNode(_Op):
    """Remove a node with its connections; an iteration goes with the nodes inside it."""

    op_type: Literal["RemoveNode"] = "RemoveNode"
    node_id: str = Field(min_length=1, max_length=100)


class ReplaceNode(_Op):
    """Put a node of another type in the place of one; fields and connections that fit the new type are kept."""

    op_type: Literal["ReplaceNode"] = "ReplaceNode"
    node_id: str = Field(min_length=1, max_length=100)
    node_name: str = Field(min_length=1, max_length=200, description="node type as in the catalogue")
    new_node_id: str | None = Field(default=None, max_length=100, description="another id; the same by default")


class UpgradeNode(_Op):
    """Bring a node to the version of its type that the server has; fields and connections are kept."""

    op_type: Literal["UpgradeNode"] = "UpgradeNode"
    node_id: str = Field(min_length=1, max_length=100)


class SetLabel(_Op):
    """Set the title on a node."""

    op_type: Literal["SetLabel"] = "SetLabel"
    node_id: str = Field(min_length=1, max_length=100)
    label: str = Field(min_length=1, max_length=200)


class SetOutput(_Op):
    """Choose what a node with several outputs gives. Connect does it by itself; an ending node needs it."""

    op_type: Literal["SetOutput"] = "SetOutput"
    node_id: str = Field(min_length=1, max_length=100)
    output: str = Field(min_length=1, max_length=200, description="output name")


class SetPosition(_Op):
    """Put a node somewhere on the canvas; inside an iteration counted from its corner."""

    op_type: Literal["SetPosition"] = "SetPosition"
    node_id: str = Field(min_length=1, max_length=100)
    x: float
    y: float


class SetParent(_Op):
    """Put an agentflow node into an iteration, or take it out of it."""

    op_type: Literal["SetParent"] = "SetParent"
    node_id: str = Field(min_length=1, max_length=100)
    parent_id: str | None = Field(default=None, max_length=100, description="id of the iteration node, null for none")


PatchOp = Annotated[
    AddNode
    | SetParam
    | UnsetParam
    | Connect
    | Disconnect
    | BindCredential
    | RemoveNode
    | ReplaceNode
    | UpgradeNode
    | SetLabel
    | SetOutput
    | SetPosition
    | SetParent,
    Field(discriminator="op_type"),
]

_EXAMPLES: tuple[PatchOp, ...] = (
    AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-5.4"}),
    SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.2),
    Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
    BindCredential(node_id="chatOpenAI_0", credential_type="openAIApi"),
    UnsetParam(node_id="chatOpenAI_0", param_name="maxTokens"),
    Disconnect(source_node_id="calculator_0", target_node_id="toolAgent_0", target_anchor="tools"),
    RemoveNode(node_id="calculator_0"),
    ReplaceNode(node_id="bufferMemory_0", node_name="bufferWindowMemory", new_node_id="bufferWindowMemory_0"),
    UpgradeNode(node_id="chatOpenAI_0"),
    SetLabel(node_id="chatOpenAI_0", label="Answering model"),
    SetOutput(node_id="customFunction_0", output="EndingNode"),
    SetPosition(node_id="chatOpenAI_0", x=0, y=0),
    SetParent(node_id="llmAgentflow_0", parent_id="iterationAgentflow_0"),
)

OP_TYPES: Mapping[str, type[_Op]] = {op.op_type: type(op) for op in _EXAMPLES}


_ADAPTER: TypeAdapter[PatchOp] = TypeAdapter(PatchOp)
#: Maximum length of a value that an example repeats.
_SHOWN_VALUE = 60
# Possible start of a batch: an array of objects (or an empty one), or an object with keys (or an empty one).
_START = re.compile(r"\[\s*[\{\]]|\{\s*[\"\}]")


def example_op(op_type: str) -> str:
    """A correct op of this type as JSON text, '' for an unknown type.

    >>> example_op("RemoveNode")
    '{"op_type":"RemoveNode","node_id":"calculator_0"}'
    """
    example = next((op for op in _EXAMPLES if op.op_type == op_type), None)
    if example is None:
        return ""
    # Defaults are left out, except for the fields that the example is about.
    shown = {"op_type", "credential_id"} | example.model_fields_set
    return op_json(example.model_dump(mode="json", include=shown))


def whole_example(op_type: str) -> str:
    """The example with every field that the schema of an answer requires, null or empty where nothing is to be said."""
    return op_json(next(op for op in _EXAMPLES if op.op_type == op_type).model_dump(mode="json"))


def op_json(op: Mapping[str, Any]) -> str:
    """Op as JSON text, in the form in which a model writes it: its `params` as names and values."""
    params = {"params": as_named_values(op["params"])} if op.get("params") else {}
    return json.dumps({**op, **params}, ensure_ascii=False, separators=(",", ":"))


def corrected_op(op: PatchOp, field: str, right: str) -> str:
    """The op as JSON text with the wrong name replaced by ``right``.

    ``field`` is a field of the op, or the node's field or input that the op names. Long and possibly secret values are
    left out.
    """
    fields: dict[str, Any] = op.model_dump(mode="json", exclude_defaults=True) | {"op_type": op.op_type}
    path = field.rpartition(".")[0]
    whole = f"{path}.{right}" if path else right
    match op:
        case AddNode() if field in op.params:
            fields["params"] = {whole: _shown_value(field, op.params[field])}
        case SetParam() | UnsetParam() if field == op.param_name:
            fields["param_name"] = whole
        case Connect() if field not in type(op).model_fields:
            fields["target_anchor"] = right
        case _:
            fields[field] = right
    if isinstance(op, SetParam):
        fields["value"] = _shown_value(op.param_name, op.value)
    elif isinstance(op, BindCredential) and not is_uuid(op.credential_id):
        fields.pop("credential_id", None)
    elif isinstance(op, AddNode) and field not in op.params:
        fields.pop("params", None)
    return op_json({"op_type": fields.pop("op_type"), **fields})


def _shown_value(name: str, value: JsonValue) -> JsonValue:
    short = len(json.dumps(value)) <= _SHOWN_VALUE
    return value if short and not looks_secret(name, value) else "<value>"


def ops_from_json(text: str) -> list[PatchOp]:
    """Parse a model's answer: a bare array or ``{"ops": [...]}``, with or without Markdown fences and prose around it.

    Raises PatchError with one finding per problem in ``details["findings"]``: NO_JSON, INVALID_JSON, TRUNCATED_JSON,
    AMBIGUOUS_JSON, EMPTY_PATCH, UNKNOWN_OP, BAD_OP. Nothing is guessed into place: an unusable answer never becomes a
    smaller patch.

    >>> ops_from_json('Here: {"ops": [{"op_type": "RemoveNode", "node_id": "calculator_0"}]}')
    [RemoveNode(op_type='RemoveNode', node_id='calculator_0')]
    """
    return ops_from_list(_find_batch(text))


def ops_from_list(raw_ops: Sequence[Any]) -> list[PatchOp]:
    """Parse ops from decoded JSON. Raises PatchError: EMPTY_PATCH, UNKNOWN_OP, BAD_OP."""
    if not raw_ops:
        raise _unusable("EMPTY_PATCH", "The list of ops is empty.", "Answer with at least one op.")
    ops: list[PatchOp] = []
    findings: list[Finding] = []
    for index, given in enumerate(raw_ops):
        raw = _without_nulls(given)
        problems = _op_problems(index, raw)
        findings.extend(problems)
        if not problems:
            ops.append(_ADAPTER.validate_python(raw))
    if findings:
        raise patch_error(findings)
    return ops


def _without_nulls(raw: Any) -> Any:
    """The op without the fields that a closed schema made the model write as null or empty: they are left out."""
    if not isinstance(raw, dict):
        return raw
    op = OP_TYPES.get(str(raw.get("op_type")))
    optional = {name for name, field in op.model_fields.items() if field.default is None} if op else frozenset[str]()
    return {
        name: value
        for name, value in raw.items()
        if (value is not None or name == "value") and not (value == "" and name in optional)
    }


def patch_error(findings: Sequence[Finding]) -> PatchError:
    """Combine all findings in one error, the first one as its message."""
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return PatchError(
        text("error.patch_unusable", problem=f"{findings[0].text}{more}"),
        details={"findings": [finding.model_dump(mode="json") for finding in findings]},
    )


def _find_batch(text: str) -> list[Any]:
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    batches: list[list[Any]] = []
    broken: str | None = None
    position = 0
    while match := _START.search(text, position):
        try:
            value, end = decoder.raw_decode(text, match.start())
        except RecursionError:
            raise _unusable("INVALID_JSON", "The JSON is nested too deeply.", "Answer with a flat list.") from None
        except ValueError as exc:
            if isinstance(exc, json.JSONDecodeError) and _is_cut(exc, text):
                raise _unusable(
                    "TRUNCATED_JSON",
                    f"The JSON ends in the middle, after {len(text)} characters.",
                    "Answer with the complete list; use fewer words around it.",
                ) from None
            broken = broken or str(exc)
            position = match.start() + 1
            continue
        if (batch := _as_batch(value)) is not None:
            batches.append(batch)
        position = end
    # An empty list beside another one is prose: a checkbox, an example.
    batches = [batch for batch in batches if batch] or batches
    if len(batches) > 1:
        # The same list twice (a draft repeated as the answer) is not ambiguous.
        if all(batch == batches[0] for batch in batches):
            return batches[0]
        raise _unusable("AMBIGUOUS_JSON", f"The answer holds {len(batches)} lists of ops.", "Answer with one list.")
    # Beside broken JSON a list counts only if it surely is one of ops, and not a fragment of the broken part.
    if batches and (broken is None or (batches[0] and all("op_type" in op for op in batches[0]))):
        return batches[0]
    if broken is not None:
        raise _unusable("INVALID_JSON", f"The answer is not valid JSON: {broken}.", _shape_hint())
    raise _unusable("NO_JSON", "The answer holds no list of ops.", _shape_hint())


def _as_batch(value: Any) -> list[Any] | None:
    if isinstance(value, dict) and isinstance(value.get("ops"), list):
        return value["ops"]
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    return None


def _is_cut(exc: json.JSONDecodeError, text: str) -> bool:
    return exc.msg.startswith("Unterminated string") or exc.pos >= len(text.rstrip().rstrip("`").rstrip())


def _op_problems(index: int, raw: Any) -> list[Finding]:
    where = f"op {index}"
    op_type = raw.get("op_type") if isinstance(raw, dict) else None
    if not isinstance(op_type, str) or op_type not in OP_TYPES:
        near = closest(str(op_type), OP_TYPES) if op_type else tuple(OP_TYPES)[:3]
        exact = resolve_case(str(op_type), OP_TYPES)
        return [
            Finding(
                code="UNKNOWN_OP",
                severity="error",
                detail=f"There is no op {str(op_type)[:60]!r}." if op_type else "The op has no `op_type`.",
                where=where,
                field="op_type",
                allowed=tuple(OP_TYPES),
                hint=f"For example {example_op(exact or (near[0] if near else 'AddNode'))}",
                op_index=index,
            )
        ]
    try:
        _ADAPTER.validate_python(raw)
    except ValidationError as exc:
        fields = OP_TYPES[op_type].model_fields
        return [
            Finding(
                code="BAD_OP",
                severity="error",
                detail=_field_message(problem["type"], problem["msg"], str(problem["loc"][-1])),
                where=where,
                field=".".join(str(part) for part in problem["loc"][1:2]),
                allowed=closest(str(problem["loc"][-1]), fields) if problem["type"] == "extra_forbidden" else (),
                hint=f"For example {example_op(op_type)}",
                op_index=index,
                op_type=op_type,
            )
            for problem in exc.errors(include_input=False, include_url=False)
        ]
    return []


def _field_message(kind: str, message: str, name: str) -> str:
    if kind == "missing":
        return f"The field `{name}` is missing."
    if kind == "extra_forbidden":
        return f"There is no field `{name[:60]}`."
    return f"`{name[:60]}`: {message}."


def _unusable(code: str, message: str, hint: str) -> PatchError:
    return patch_error([Finding(code=code, severity="error", detail=message, hint=hint)])


def _shape_hint() -> str:
    return f'Answer with {{"ops": [{example_op("AddNode")}, ...]}}.'


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
