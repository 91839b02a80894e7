"""Rules on the JavaScript of functions: the server reads it only when a question runs it."""

from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, Final

from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.javascript import MOST_CHARS, VARIABLE, parsed
from flowise_dev_agent.patch.model.json_text import as_dict, as_dicts, inner_json
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.validate.context import FlowContext, rule

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
#: Node type of the syntax tree -> its field that makes names.
_MAKES: Final = {
    "variable_declarator": "name",
    "function_declaration": "name",
    "arrow_function": "parameter",
    "catch_clause": "parameter",
    "for_in_statement": "left",
    "assignment_expression": "left",
}


@rule("CODE_SYNTAX", "CODE_VARIABLE_UNKNOWN")
def code(flow: FlowContext) -> Iterator[Finding]:
    """Functions can be read and use only variables that they are given; otherwise the run fails there."""
    for one in flow.components:
        schema = flow.schemas.get(one.name)
        for entry in schema.definitions.params if schema else ():
            name, value = str(entry["name"]), one.inputs.get(entry["name"])
            if entry["type"] != "code" or not name.lower().endswith("function") or not isinstance(value, str):
                continue
            if is_empty(value) or len(value) > MOST_CHARS:
                continue
            yield from code_findings(one.node.id, f"{one.path}{name}", value, _variables(one.inputs))


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
    names = _names(root)
    variables = {name for name in names if name.startswith("$")}
    unknown = sorted(variables - given - _GIVEN) if given is not None else []
    if unknown := unknown or sorted(names & _LACKING.keys()):
        add = f"Add {unknown[0].removeprefix('$')} to the input variables, or use $input."
        there = _LACKING.get(unknown[0])
        yield warning(
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


def _names(root: "Node") -> set[str]:
    """Names that the code uses and does not make."""
    used: set[str] = set()
    made: set[str] = set()
    queue = [(root, False)]
    while queue:
        node, makes = queue.pop()
        maker = node.child_by_field_name(_MAKES.get(node.type, "_"))
        for child in node.children:
            named = maker is not None and child.id == maker.id
            queue.append((child, makes or named or node.type == "formal_parameters"))
        if "identifier" in node.type and not node.children:
            name = (node.text or b"").decode("utf-8", "replace")
            (made if makes else used if node.type in _USES else set[str]()).add(name)
    return used - made


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
