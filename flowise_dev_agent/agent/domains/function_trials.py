"""Custom functions and new tools of an approved plan, run on samples in Flowise's sandbox before the flow is written.

Without samples from the model the input is not known. Then only what fails with any input is reported: code that
cannot be read, and names that nobody defines.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue

from flowise_dev_agent.agent.domain import SAMPLE_FAILS, ToolScope
from flowise_dev_agent.agent.domains.flowise_checks import FlowiseChecks
from flowise_dev_agent.errors import FlowiseError, InvalidInputError
from flowise_dev_agent.patch import Finding, FlowNode, GraphIR, PatchOp
from flowise_dev_agent.patch.model.equal_values import same_value
from flowise_dev_agent.patch.model.findings import error
from flowise_dev_agent.patch.model.javascript import reaches_out
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.custom_tools import PlannedTool
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
    **dict.fromkeys(("customFunction", "seqCustomFunction"), ("javascriptFunction", "functionInputVariables")),
}
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
#: Type of a tool's input -> sample.
_SAMPLES: Final[Mapping[str, Any]] = {"string": _SAMPLE, "number": 1, "boolean": True}


@dataclass(frozen=True)
class _Run:
    """Input of one run; `wanted` is its expected result, if any. `given`: the input is a sample of the model's."""

    variables: dict[str, Any]
    given: bool = False
    wanted: JsonValue = None


@dataclass(frozen=True)
class _Code:
    """Code to try: of a function, or of a new tool. `node_id` is a node that runs it, `field` and `rows` are the fields
    with the code and with its inputs.
    """

    node_id: str
    where: str
    title: str
    text: str
    field: str
    rows: str
    hint: str
    runs: Sequence[_Run]
    #: True if texts in its input stay as they are, see `_as_run`.
    keeps_texts: bool = True


async def failing_functions(
    scope: ToolScope, flow_data: str, ops: Sequence[PatchOp], samples: Sequence[FunctionSample] = ()
) -> list[Finding]:
    """Findings for functions in the ops and for new tools of the plan that cannot work, for at most eight of each, four
    at a time.

    Each runs on at most three samples; without samples, on a generated one. Code that the plan does not approve, or
    that calls other systems, is not run.
    """
    plan = scope.plan
    allowed = {*plan.capability.code} if plan and plan.capability else set[str]()
    written = {node_id for op in ops if isinstance(node_id := getattr(op, "node_id", None), str)}
    graph = GraphIR.from_flow_data(flow_data)
    nodes = [node for node in graph.nodes if node.name in _FIELDS and node.id in written & allowed]
    codes = [
        *(_of_function(node, samples) for node in nodes[:_MAX_FUNCTIONS]),
        *(_of_tool(tool, node_id) for tool, node_id in (plan.tools_with_node if plan else ()) if node_id in allowed),
    ]
    one_of_four = asyncio.Semaphore(MAX_PARALLEL)
    checks = FlowiseChecks(scope)

    async def tried(code: _Code) -> Finding | None:
        async with one_of_four:
            for run in code.runs:
                if finding := await _try(code, run, checks):
                    return finding
        return None

    found = await asyncio.gather(*(tried(code) for code in codes if code.text.strip() and not reaches_out(code.text)))
    return [finding for finding in found if finding]


def _of_function(node: FlowNode, samples: Sequence[FunctionSample]) -> _Code:
    field, rows = _FIELDS[node.name]
    own = [sample for sample in samples if sample.node_id == node.id][:_MAX_SAMPLES]
    declared = node.inputs.get(rows)
    text = node.inputs.get(field)
    return _Code(
        node_id=node.id,
        where=node.id,
        title=node.label or node.id,
        text=text if isinstance(text, str) else "",
        field=field,
        rows=rows,
        hint="Correct the code",
        runs=[_Run(_variables(declared, one), given=True, wanted=one.result) for one in own]
        or [_Run(_variables(declared, None))],
        keeps_texts=node.name == AGENTFLOW_FUNCTION,
    )


def _of_tool(tool: PlannedTool, node_id: str) -> _Code:
    needed = {one.property: _SAMPLES[one.type] for one in tool.inputs if one.required}
    return _Code(
        node_id=node_id,
        where=tool.name,
        title=tool.name,
        text=tool.code,
        field="code",
        rows="inputs",
        hint="Answer with `amend` and the corrected tool, in full, in `new_tools`",
        runs=[_Run(one.inputs, given=True, wanted=one.result) for one in tool.samples] or [_Run(needed)],
    )


async def _try(code: _Code, run: _Run, checks: FlowiseChecks) -> Finding | None:
    try:
        result = await checks.run_function(code.node_id, *_as_run(code, run.variables))
    except (InvalidInputError, FlowiseError):
        return None
    failed = result.data if isinstance(result.data, FlowiseError) else None
    if failed is not None and _RUNNING_ONLY.search(failed.message):
        return None
    said = shortened(masked(failed.message), 300) if failed else ""
    if failed is not None and _ANY_INPUT.search(failed.message) and "JSON" not in failed.message:
        text = f"The function of {code.where} fails: {said}"
        hint = f"{code.hint}. It reads its inputs as $name, for each name in `{code.rows}`, and must return a value."
        return _finding(FUNCTION_FAILS, text, code, hint, said)
    if not run.given or (failed is not None and not _BY_CODE.search(failed.message)):
        return None
    hint = f"{code.hint}, or correct the sample where that is wrong."
    given_for = f"for the sample {_short(run.variables)}"
    if failed is not None:
        text = f"The function of {code.where} fails {given_for}: {said}"
        return _finding(SAMPLE_FAILS, text, code, hint, said)
    if run.wanted is None or same_value(result.data, run.wanted):
        return None
    given, wanted = (_short(one) for one in (result.data, run.wanted))
    text = f"The function of {code.where} gives {given} {given_for}, and {wanted} was expected."
    return _finding(SAMPLE_FAILS, text, code, hint, f"{given} ≠ {wanted}")


def _short(value: Any) -> str:
    return shortened(masked(json.dumps(value, ensure_ascii=False)), 200)


def _finding(kind: str, detail: str, code: _Code, hint: str, reason: str) -> Finding:
    return error(kind, detail, where=code.where, field=code.field, hint=hint, node=code.title, reason=reason)


def _variables(rows: Any, sample: FunctionSample | None) -> dict[str, Any]:
    """Values by variable name; a sample replaces the values that the flow fills in."""
    said = {name.lstrip("$"): value for name, value in sample.variables.items()} if sample else {}
    return {
        name: _as_text(said.get(name, _SAMPLE)) if has_variable(value) else value for name, value in _declared(rows)
    }


def _as_run(code: _Code, variables: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Code and input for the sandbox, which parses texts such as `{...}` and `\n` in its input.

    A chatflow's function gets its input so, too. Elsewhere texts stay as they are: a list around each keeps it.
    """
    if not code.keeps_texts or not all(_NAME.fullmatch(name) for name in variables):
        return code.text, variables
    unpacked = "".join(f"${name} = ${name}[0]; " for name in variables)
    return unpacked + code.text, {name: [value] for name, value in variables.items()}


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
