"""Custom functions of an approved plan, run once in Flowise's sandbox before the flow is written.

The real input is not known yet. So only what fails with any input is reported: code that cannot be read, and names that
nobody defines.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from flowise_dev_agent.agent.domain import ToolScope
from flowise_dev_agent.agent.domains.flowise_checks import FlowiseChecks
from flowise_dev_agent.errors import FlowiseError, InvalidInputError
from flowise_dev_agent.patch import Finding, FlowNode, GraphIR, PatchOp
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import shortened

MAX_PARALLEL: Final = 4
_MAX_FUNCTIONS: Final = 8
#: Node type -> the fields with its code and with its variables.
_FIELDS: Final = {
    "customFunctionAgentflow": ("customFunctionJavascriptFunction", "customFunctionInputVariables"),
    "customFunction": ("javascriptFunction", "functionInputVariables"),
}
#: Code that may change something elsewhere is not run.
_REACHES_OUT: Final = re.compile(r"\b(?:fetch|axios|require|import|XMLHttpRequest|process)\b")
_ANY_INPUT: Final = re.compile(
    r"is not defined|unexpected (?:token|identifier|end of input|string|number|reserved word)|invalid or unexpected"
    r"|missing \)|illegal (?:return|break|continue)|has already been declared|assignment to constant variable",
    re.IGNORECASE,
)
#: What a sample may cause, and what only the running flow defines.
_BY_SAMPLE: Final = re.compile(r"JSON|\$(?:flow|vars)\b")
_SAMPLE: Final = "1"


async def failing_functions(scope: ToolScope, flow_data: str, ops: Sequence[PatchOp]) -> list[Finding]:
    """A finding for each function that the ops write and that cannot work, at most eight of them, four at a time.

    Functions that the plan has no approval for, and those that reach out, are not run.
    """
    code = scope.plan.capability.code if scope.plan and scope.plan.capability else []
    written = {node_id for op in ops if isinstance(node_id := getattr(op, "node_id", None), str)}
    graph = GraphIR.from_flow_data(flow_data)
    nodes = [node for node in graph.nodes if node.name in _FIELDS and node.id in written and node.id in code]
    one_of_four = asyncio.Semaphore(MAX_PARALLEL)
    checks = FlowiseChecks(scope)

    async def tried(node: FlowNode) -> Finding | None:
        async with one_of_four:
            return await _try(node, checks)

    found = await asyncio.gather(*(tried(node) for node in nodes[:_MAX_FUNCTIONS]))
    return [finding for finding in found if finding]


async def _try(node: FlowNode, checks: FlowiseChecks) -> Finding | None:
    field, rows = _FIELDS[node.name]
    code = node.inputs.get(field)
    if not isinstance(code, str) or not code.strip() or _REACHES_OUT.search(code):
        return None
    try:
        result = await checks.run_function(node.id, code, _samples(node.inputs.get(rows)))
    except (InvalidInputError, FlowiseError):
        return None
    error = result.data if isinstance(result.data, FlowiseError) else None
    if error is None or _BY_SAMPLE.search(error.message) or not _ANY_INPUT.search(error.message):
        return None
    return Finding(
        code="FUNCTION_FAILS",
        severity="error",
        message=f"The function of {node.id} fails: {masked(shortened(error.message, 300))}",
        where=node.id,
        field=field,
        hint=f"Correct the code. It reads its inputs as $name, for each name in `{rows}`, and must return a value.",
    )


def _samples(rows: Any) -> dict[str, Any]:
    """Variable -> value, of those that the flow fills a sample."""
    if isinstance(rows, str):
        try:
            rows = json.loads(rows or "{}")
        except ValueError:
            return {}
    if isinstance(rows, Mapping):
        pairs = [(name, value) for name, value in rows.items()]
    else:
        listed = [row for row in rows or () if isinstance(row, Mapping)]
        pairs = [(row.get("variableName"), row.get("variableValue")) for row in listed]
    return {str(name): _SAMPLE if has_variable(value) else value for name, value in pairs if name}
