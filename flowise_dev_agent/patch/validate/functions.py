"""Rules on the JavaScript of functions: the server reads it only when a question runs it."""

from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, Final

from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.javascript import MOST_CHARS, VARIABLE, parsed
from flowise_dev_agent.patch.model.json_text import as_dict, as_dicts, inner_json
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.validate.context import Component, FlowContext, rule
from flowise_dev_agent.patch.validate.params import SELECTED_TOOL, TOOL_ARGUMENTS, chosen_tool

if TYPE_CHECKING:
    from tree_sitter import Node

#: Names that the sandbox gives to each function.
_GIVEN: Final = frozenset({"$input", "$flow", "$vars"})
#: Names of JavaScript that the sandbox lacks -> what does it there (measured on 3.1.4).
_LACKING: Final = {
    "fetch": "const fetch = require('node-fetch');",
    "URL": "const { URL } = require('url');",
    "URLSearchParams": "const { URLSearchParams } = require('url');",
    "crypto": "const crypto = require('crypto');",
    "btoa": "Buffer.from(text).toString('base64')",
    "atob": "Buffer.from(text, 'base64').toString()",
    "structuredClone": "JSON.parse(JSON.stringify(value))",
    "process": "a variable of the server, $vars.name",
}
_USES: Final = frozenset({"identifier", "shorthand_property_identifier"})
#: Parts of code that run whenever it runs, of an `if` its condition; then operators whose right side may not run.
_ALWAYS_RUN: Final = frozenset(
    {
        *("identifier", "shorthand_property_identifier", "expression_statement", "return_statement"),
        *(
            "if_statement",
            "ternary_expression",
            "lexical_declaration",
            "variable_declaration",
            "variable_declarator",
            "assignment_expression",
        ),
        *("binary_expression", "unary_expression", "await_expression", "parenthesized_expression"),
        *("call_expression", "arguments", "member_expression", "subscript_expression"),
        *("template_string", "template_substitution", "array", "object", "pair"),
    }
)
_MAY_STOP: Final = frozenset({b"&&", b"||", b"??", b"typeof"})
_EXITS: Final = frozenset({"return_statement", "throw_statement"})
#: Node type of the syntax tree -> its field that makes names.
_MAKES: Final = {
    "variable_declarator": "name",
    "function_declaration": "name",
    "arrow_function": "parameter",
    "catch_clause": "parameter",
    "for_in_statement": "left",
    "assignment_expression": "left",
}


@rule("CODE_SYNTAX", "CODE_VARIABLE_UNKNOWN", "TOOL_INPUT_MISSING")
def code(flow: FlowContext) -> Iterator[Finding]:
    """Functions can be read and use only variables that they are given; otherwise the run fails there."""
    for one in flow.components:
        yield from _tool(flow, one)
        schema = flow.schemas.get(one.name)
        for entry in schema.definitions.params if schema else ():
            name, value = str(entry["name"]), one.inputs.get(entry["name"])
            if entry["type"] != "code" or not name.lower().endswith("function") or not isinstance(value, str):
                continue
            if is_empty(value) or len(value) > MOST_CHARS:
                continue
            yield from code_findings(one.node.id, f"{one.path}{name}", value, _variables(one.inputs))


def _tool(flow: FlowContext, one: Component) -> Iterator[Finding]:
    """Findings on the custom tool that a component names, as the server has it: on its code, and on a step's arguments.

    A model goes on with the error of a tool.
    """
    tool, field = chosen_tool(flow, one), f"{one.path}{SELECTED_TOOL}"
    if tool is None or not 0 < len(tool.code) <= MOST_CHARS:
        return
    step = one.node.name == TOOL_ARGUMENTS[0]
    for found in code_findings(one.node.id, field, tool.code, {f"${name}" for name in tool.inputs}):
        yield found if step else found.model_copy(update={"severity": "warning"})
    given = {row.get("inputArgName") for row in as_dicts(one.node.inputs.get(TOOL_ARGUMENTS[1]))}
    if step and (lacking := [name for name, required in tool.inputs.items() if required and name not in given]):
        yield error(
            "TOOL_INPUT_MISSING",
            f"The tool needs {lacking[0]!r}, which no row of `{TOOL_ARGUMENTS[1]}` gives.",
            where=one.node.id,
            field=TOOL_ARGUMENTS[1],
            allowed=[*tool.inputs][:5],
            hint="Its inputs are named exactly so.",
            variable=lacking[0],
        )


def code_findings(where: str, field: str, value: str, given: Set[str] | None) -> Iterator[Finding]:
    """Findings on the JavaScript of a function. `given` are its variables with their `$`, None if they are unknown."""
    root = parsed(value)
    if root.has_error:
        line = min(max(_first_error(root), 1), value.count("\n") + 1)
        yield error(
            "CODE_SYNTAX",
            f"`{field}`: the JavaScript cannot be read, see line {line}.",
            where=where,
            field=field,
            hint="Check brackets and quotation marks there and in the line above.",
            line=line,
        )
        return
    names, surely = _names(root)
    variables = {name for name in names if name.startswith("$")}
    unknown = sorted(variables - given - _GIVEN, key=lambda one: (one not in surely, one)) if given is not None else []
    if unknown := unknown or sorted(names & _LACKING.keys()):
        add = f"Add {unknown[0].removeprefix('$')} to the input variables, or use $input."
        there = _LACKING.get(unknown[0])
        yield (error if not there and unknown[0] in surely else warning)(
            "CODE_VARIABLE_UNKNOWN",
            f"`{field}` uses {unknown[0]}, which the function does not have.",
            where=where,
            field=field,
            hint=f"There it is: {there}" if there else add,
            variable=unknown[0],
        )


def _first_error(node: "Node") -> int:
    """Line of the first error, counted from 1 in the body of the function."""
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error), None)
        if inner is None:
            break
        node = inner
    return node.start_point.row


def _names(root: "Node") -> tuple[set[str], set[str]]:
    """Names that the code uses and does not make, and those of them that each run reads."""
    used: dict[str, int] = {}
    made: set[str] = set()
    first_exit = root.end_byte
    # A call behind `?.` may be left out, and with it what it is given.
    always = _ALWAYS_RUN - {"arguments"} if b"?." in (root.text or b"") else _ALWAYS_RUN
    # Each node, whether it makes names, and whether it always runs.
    queue = [(body, False, True) for one in root.children if (body := one.child_by_field_name("body"))]
    while queue:
        node, makes, runs = queue.pop()
        maker = node.child_by_field_name(_MAKES.get(node.type, "_"))
        operator, first = node.child_by_field_name("operator"), node.child_by_field_name("condition")
        may_stop = first is not None or (operator is not None and operator.text in _MAY_STOP)
        first = first or node.child_by_field_name("left")
        if node.type in _EXITS:
            first_exit = min(first_exit, node.end_byte)
        for child in node.children:
            named = maker is not None and child.id == maker.id
            sure = runs and child.type in always and (child == first or not may_stop)
            queue.append((child, makes or named or node.type == "formal_parameters", sure))
        if "identifier" in node.type and not node.children:
            name = (node.text or b"").decode("utf-8", "replace")
            if makes:
                made.add(name)
            elif node.type in _USES:
                used[name] = min(used.get(name, root.end_byte), node.start_byte if runs else root.end_byte)
    return used.keys() - made, {name for name, first in used.items() if first < first_exit}


def _variables(inputs: Mapping[str, Any]) -> frozenset[str] | None:
    """Names of the variables that a function is given; None if they cannot be read."""
    rows = inputs.get("customFunctionInputVariables")
    if isinstance(rows, list):
        return frozenset(f"${row.get('variableName')}" for row in as_dicts(rows))
    given = inputs.get("functionInputVariables")
    if is_empty(given):
        return frozenset()
    read = inner_json(VARIABLE.sub("0", given)) if isinstance(given, str) else given
    return frozenset(f"${name}" for name in as_dict(read)) if isinstance(read, dict) else None
