"""Custom functions of an approved plan, run on samples in Flowise's sandbox before the flow is written.

Without samples from the op writer the input is not known. Then only what fails with any input is reported: code that
cannot be read, and names that nobody defines.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue

from flowise_dev_agent.agent.domain import SAMPLE_FAILS, ToolScope
from flowise_dev_agent.agent.domains.flowise_checks import FlowiseChecks
from flowise_dev_agent.errors import FlowiseError, InvalidInputError
from flowise_dev_agent.patch import Finding, FlowNode, GraphIR, PatchOp
from flowise_dev_agent.patch.model.equal_values import same_value
from flowise_dev_agent.patch.model.findings import error
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import FunctionSample

MAX_PARALLEL: Final = 4
_MAX_FUNCTIONS: Final = 8
_MAX_SAMPLES: Final = 3
FUNCTION_FAILS: Final = "FUNCTION_FAILS"
AGENTFLOW_FUNCTION: Final = "customFunctionAgentflow"
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: Node type -> the fields with its code and with its variables.
_FIELDS: Final = {
    AGENTFLOW_FUNCTION: ("customFunctionJavascriptFunction", "customFunctionInputVariables"),
    "customFunction": ("javascriptFunction", "functionInputVariables"),
}
#: Code that may change something elsewhere is not run.
_REACHES_OUT: Final = re.compile(r"\b(?:fetch|axios|require|import|XMLHttpRequest|process)\b")
_ANY_INPUT: Final = re.compile(
    r"is not defined|unexpected (?:token|identifier|end of input|string|number|reserved word)|invalid or unexpected"
    r"|missing \)|illegal (?:return|break|continue)|has already been declared|assignment to constant variable",
    re.IGNORECASE,
)
#: Variables that only the running flow defines.
_RUNNING_ONLY: Final = re.compile(r"\$(?:flow|vars)\b")
#: Errors that an unexpected input causes.
_BY_CODE: Final = re.compile(
    r"JSON|is not a function|is not iterable|cannot (?:read|convert|access|destructure)", re.IGNORECASE
)
_SAMPLE: Final = "1"


async def failing_functions(
    scope: ToolScope, flow_data: str, ops: Sequence[PatchOp], samples: Sequence[FunctionSample] = ()
) -> list[Finding]:
    """Findings for functions in the ops that cannot work, for at most eight functions, four at a time.

    Each runs on at most three samples; without samples, on a generated one. Functions that the plan does
    not approve, or that call other systems, are not run.
    """
    code = scope.plan.capability.code if scope.plan and scope.plan.capability else []
    written = {node_id for op in ops if isinstance(node_id := getattr(op, "node_id", None), str)}
    graph = GraphIR.from_flow_data(flow_data)
    nodes = [node for node in graph.nodes if node.name in _FIELDS and node.id in written and node.id in code]
    one_of_four = asyncio.Semaphore(MAX_PARALLEL)
    checks = FlowiseChecks(scope)

    async def tried(node: FlowNode) -> Finding | None:
        own = [sample for sample in samples if sample.node_id == node.id][:_MAX_SAMPLES]
        async with one_of_four:
            for sample in own or [None]:
                if finding := await _try(node, sample, checks):
                    return finding
        return None

    found = await asyncio.gather(*(tried(node) for node in nodes[:_MAX_FUNCTIONS]))
    return [finding for finding in found if finding]


async def _try(node: FlowNode, sample: FunctionSample | None, checks: FlowiseChecks) -> Finding | None:
    field, rows = _FIELDS[node.name]
    code = node.inputs.get(field)
    if not isinstance(code, str) or not code.strip() or _REACHES_OUT.search(code):
        return None
    variables = _variables(node.inputs.get(rows), sample)
    try:
        result = await checks.run_function(node.id, *_as_run(node, code, variables))
    except (InvalidInputError, FlowiseError):
        return None
    failed = result.data if isinstance(result.data, FlowiseError) else None
    if failed is not None and _RUNNING_ONLY.search(failed.message):
        return None
    said = shortened(masked(failed.message), 300) if failed else ""
    if failed is not None and _ANY_INPUT.search(failed.message) and "JSON" not in failed.message:
        text = f"The function of {node.id} fails: {said}"
        hint = f"Correct the code. It reads its inputs as $name, for each name in `{rows}`, and must return a value."
        return _finding(FUNCTION_FAILS, text, node, field, hint, said)
    if sample is None or (failed is not None and not _BY_CODE.search(failed.message)):
        return None
    hint = "Correct the code, or the sample where that is wrong."
    given_for = f"for the sample {_short(variables)}"
    if failed is not None:
        text = f"The function of {node.id} fails {given_for}: {said}"
        return _finding(SAMPLE_FAILS, text, node, field, hint, said)
    if sample.result is None or same_value(result.data, sample.result):
        return None
    given, wanted = (
        shortened(masked(json.dumps(one, ensure_ascii=False)), 200) for one in (result.data, sample.result)
    )
    text = f"The function of {node.id} gives {given} {given_for}, and {wanted} was expected."
    return _finding(SAMPLE_FAILS, text, node, field, hint, f"{given} ≠ {wanted}")


def _short(value: JsonValue) -> str:
    return shortened(masked(json.dumps(value, ensure_ascii=False)), 200)


def _finding(code: str, detail: str, node: FlowNode, field: str, hint: str, reason: str) -> Finding:
    return error(code, detail, where=node.id, field=field, hint=hint, node=node.label or node.id, reason=reason)


def _variables(rows: Any, sample: FunctionSample | None) -> dict[str, Any]:
    """Values by variable name; a sample replaces the values that the flow fills in."""
    said = {name.lstrip("$"): value for name, value in sample.variables.items()} if sample else {}
    return {
        name: _as_text(said.get(name, _SAMPLE)) if has_variable(value) else value for name, value in _declared(rows)
    }


def _as_run(node: FlowNode, code: str, variables: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Code and input for the sandbox, which parses texts such as `{...}` and `\n` in its input.

    A chatflow's function gets its input so, too. In an agentflow texts stay as they are: a list around each keeps it.
    """
    if node.name != AGENTFLOW_FUNCTION or not all(_NAME.fullmatch(name) for name in variables):
        return code, variables
    unpacked = "".join(f"${name} = ${name}[0]; " for name in variables)
    return unpacked + code, {name: [value] for name, value in variables.items()}


def _as_text(value: JsonValue) -> str:
    """Convert a value to the text that a running flow would fill in."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _declared(rows: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(rows, str):
        try:
            rows = json.loads(rows or "{}")
        except ValueError:
            return
    if isinstance(rows, Mapping):
        pairs = [(name, value) for name, value in rows.items()]
    else:
        listed = [row for row in rows or () if isinstance(row, Mapping)]
        pairs = [(row.get("variableName"), row.get("variableValue")) for row in listed]
    yield from ((str(name), value) for name, value in pairs if name)
