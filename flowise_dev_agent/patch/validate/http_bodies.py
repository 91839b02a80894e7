"""Rules on JSON that Flowise reads at run time: fields of tools, and bodies of HTTP steps with their variables."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.json_text import as_dicts, inner_json, unbalanced
from flowise_dev_agent.patch.model.references import variable_head
from flowise_dev_agent.patch.model.values import is_empty, without_markup
from flowise_dev_agent.patch.validate.context import AGENTFLOW, FlowContext, rule

#: An escaped character, a variable or a quotation mark: what decides where strings of a JSON text begin and end.
_TOKEN: Final = re.compile(r"""\\.|\{\{([^{}]*)\}\}|["']""", re.DOTALL)
#: Variables whose text never has a quotation mark or a line break.
_PLAIN: Final = frozenset(
    {"current_date_time", "runtime_messages_length", "loop_count", "$flow.sessionId", "$flow.chatId"}
)
_LONGEST: Final = 80
_MCP_CONFIG: Final = ("customMCP", "mcpServerConfig")
_REQUESTS: Final = frozenset({"requestsGet", "requestsPost", "requestsPut", "requestsDelete"})
#: Rows that declare the fields of a structured answer.
_ANSWER_ROWS: Final = ("llmStructuredOutput", "agentStructuredOutput")
#: Types of fields that JSON can hold as they are.
_PLAIN_TYPES: Final = frozenset({"number", "boolean"})
_VARIABLE: Final = re.compile(r"\{\{[^{}]*\}\}")
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*+"' + r"|'(?:\\.|[^'\\])*+'", re.DOTALL)
_COMMENT: Final = re.compile(r"//|/\*")
#: Beginnings of a value in JSON5.
_VALUE: Final = re.compile(r"[\[{\"'+.0-9-]|(?:true|false|null|NaN|Infinity)\b")


@rule("HTTP_BODY_BREAKS", "BAD_JSON", kinds=(AGENTFLOW,))
def json_bodies(flow: FlowContext) -> Iterator[Finding]:
    """JSON bodies can be read, and hold no variable in a string, whose quotation marks and line breaks break it."""
    plain = _PLAIN | {f"{node.id}.output.{field}" for node in flow.nodes for field in _plain_fields(node.inputs)}
    for node in flow.nodes:
        body = node.inputs.get("body")
        if node.name != v2.HTTP or node.inputs.get("bodyType") != "json" or not isinstance(body, str):
            continue
        if node.inputs.get("method") != "GET" and (why := unreadable_json(body)):
            yield error(
                "BAD_JSON",
                f"`body` is no JSON: {why}; the request fails.",
                where=node.id,
                field="body",
                hint='For example {"name": "value"}, or another `bodyType`.',
            )
        found = next((one for one in _in_strings(body) if one not in plain), None)
        if found is not None and len(found) <= _LONGEST and variable_head(found):
            yield warning(
                "HTTP_BODY_BREAKS",
                f"`body`: a quotation mark or a line break in {{{{ {found} }}}} makes the JSON unreadable, and the "
                "request fails.",
                where=node.id,
                field="body",
                hint="Make the whole body in a custom function, `return JSON.stringify({...});`, and set `body` to "
                "{{ <id of the function> }} without quotation marks. It belongs to the request, also where the person "
                "lists all steps.",
            )


@rule("HTTP_BODY_LOST", kinds=(AGENTFLOW,))
def sent_bodies(flow: FlowContext) -> Iterator[Finding]:
    """Bodies are sent. The server sends none without its type or with GET, and nothing of the rows of a form."""
    for node in flow.nodes:
        body, type_ = node.inputs.get("body"), node.inputs.get("bodyType")
        if node.name != v2.HTTP or is_empty(body):
            continue
        why = hint = ""
        if node.inputs.get("method") in ("", None, "GET"):
            why = "with GET no body is sent"
            hint = "Set `method` to POST, or move the values to `queryParams`."
        elif is_empty(type_):
            why = "without `bodyType` no body is sent"
            hint = "Set `bodyType` to json, or to raw for a plain text."
        elif type_ == "xWwwFormUrlencoded" and isinstance(body, list):
            why = "of rows under xWwwFormUrlencoded the server sends only `0=`"
            hint = (
                "Let a custom function `return require('querystring').stringify({name: $name});`, set `bodyType` to "
                "raw and `body` to {{ <id of the function> }}: a raw body is sent as x-www-form-urlencoded."
            )
        if hint:
            yield error("HTTP_BODY_LOST", f"`body`: {why}.", where=node.id, field="body", hint=hint)


@rule("BAD_JSON")
def tool_fields(flow: FlowContext) -> Iterator[Finding]:
    """Headers of requests and configurations of MCP servers can be read, else the run fails.

    So can schemas of arguments and answers, else the model never sees them.
    """
    for one in flow.components:
        for field, value in one.inputs.items():
            fails = (one.name, field) == _MCP_CONFIG or (one.name in _REQUESTS and field.endswith("Headers"))
            if fails or (one.name in _REQUESTS and field.endswith("Schema")):
                yield from _unreadable(one.node.id, f"{one.path}{field}", value, fails=fails)
        for name in _ANSWER_ROWS:
            for index, row in enumerate(as_dicts(one.inputs.get(name))):
                if row.get("type") == "jsonArray":
                    yield from _unreadable(
                        one.node.id, f"{name}[{index}].jsonSchema", row.get("jsonSchema"), fails=False
                    )


def _unreadable(where: str, field: str, value: object, *, fails: bool) -> Iterator[Finding]:
    if isinstance(value, str) and (why := unreadable_json(value)):
        ends = "the run fails" if fails else "the model never sees it"
        make = error if fails else warning
        yield make(
            "BAD_JSON", f"`{field}` is no JSON: {why}; {ends}.", where=where, field=field, hint="Check its braces."
        )


def unreadable_json(body: str) -> str:
    """The reason why the server cannot read a body as JSON or JSON5, which allows comments and more; '' if it may."""
    text = without_markup(_VARIABLE.sub("0", body))
    if not text or inner_json(text) is not None:
        return ""
    if _COMMENT.search(_STRING.sub("", text)):
        return ""
    return unbalanced(text) or ("" if _VALUE.match(text) else "it begins like no value of JSON")


def _in_strings(body: str) -> Iterator[str]:
    """Variables inside the strings of a JSON text."""
    opened = ""
    for token in _TOKEN.finditer(body):
        mark = token.group()
        if mark in ('"', "'"):
            opened = "" if mark == opened else opened or mark
        elif token.group(1) is not None and opened:
            yield token.group(1).strip().replace("\\", "")


def _plain_fields(inputs: Mapping[str, object]) -> Iterator[str]:
    rows = inputs.get(_ANSWER_ROWS[0])
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("type") in _PLAIN_TYPES:
            yield str(row.get("key"))
