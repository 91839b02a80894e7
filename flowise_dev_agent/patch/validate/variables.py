"""Rules on `{{ ... }}` in agentflows.

Flowise leaves variables that it cannot fill in the text, where users see them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.flow_data import Values
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.references import FILES, variable_head, variables
from flowise_dev_agent.patch.model.values import without_markup
from flowise_dev_agent.patch.model.visibility import js_truthy
from flowise_dev_agent.patch.validate.context import AGENTFLOW, FlowContext, rule
from flowise_dev_agent.patch.validate.order import RunOrder

_STATE = "$flow.state."
#: Suffix of fields whose rows set the state: startState, llmUpdateState.
_STATE_ROWS = "State"
_UPDATES = "UpdateState"
_QUESTION = "question"
_PLAIN: Final = frozenset(
    {_QUESTION, "chat_history", "current_date_time", "runtime_messages_length", FILES, "loop_count"}
)
_FLOW: Final = frozenset({"state", "sessionId", "chatId", "chatflowId", "apiMessageId", "input", "chatHistory"})
#: Variables of the start -> kind of start that provides them.
_OF_START: Final = {"$form": "formInput", "$webhook": "webhookTrigger"}
_FORM_ROWS = "formInputTypes"
#: Part of a webhook request -> field of the start that lists its required parameters.
_WEBHOOK_ROWS: Final = {"body": "webhookBodyParams", "query": "webhookQueryParams", "headers": "webhookHeaderParams"}
_GIVEN_TO_CODE: Final = "InputVariables"
#: Nodes that get the whole form as the user's message while their memory is on, and the field of the memory switch.
_READERS: Final = {"llmAgentflow": "llmEnableMemory", "agentAgentflow": "agentEnableMemory"}
#: Steps whose answer has fields only if rows declare them -> these rows.
_WITH_FIELDS: Final = {"llmAgentflow": "llmStructuredOutput", "agentAgentflow": "agentStructuredOutput"}
_VARIABLE: Final = re.compile(r"\{\{[^{}]*\}\}")
#: The answer of the step itself, and a field of it, as the server reads them in an update of the state.
_WHOLE: Final = re.compile(r"\{\{ ?output ?\}\}")
_FIELD: Final = re.compile(r"\{\{\s*output\.[\w.]+\s*\}\}")
#: Least similarity of a misspelt name, for example of `qestion` to `question`.
_ALIKE: Final = 0.75
_LONGEST = 80
#: Limits of the analysis, whose cost grows with both; no real flow exceeds them.
_MOST, _MOST_NODES = 1000, 200


@rule("UNKNOWN_VARIABLE", "VARIABLE_AS_TEXT", kinds=(AGENTFLOW,))
def unknown(flow: FlowContext) -> Iterator[Finding]:
    """Known variables: existing steps, form fields and built-in names."""
    start = next((node.inputs for node in flow.nodes if node.name == v2.START), {})
    fields = {str(row.get("name")) for row in _rows(start.get(_FORM_ROWS))}
    inside = {node.id for node in flow.nodes if node.parent}
    for node, name, variable in _used(flow):
        head = variable_head(variable)
        if flow.graph.node(head) is not None:
            continue
        kind = flow.schemas.get(head.rpartition("_")[0])
        if kind is not None and kind.is_agentflow:
            hint = "Use the id of a node that runs before."
            yield _stays(node, name, variable, f"uses the output of {head!r}, which is not in the flow", hint)
        elif head in _OF_START:
            field = variable_head(variable.removeprefix(f"{head}."))
            if start.get("startInputType") != _OF_START[head]:
                hint = f"Set `startInputType` of the start to {_OF_START[head]}, or use another variable."
                yield _stays(node, name, variable, f"uses {head}, but the flow does not start that way", hint)
            elif head == "$form" and field not in fields:
                hint = f"Its fields: {', '.join(sorted(fields)) or 'none'}."
                yield _stays(node, name, variable, f"uses the form field {field!r}, which the form does not have", hint)
        elif head == "$iteration":
            if node.id not in inside:
                hint = "Move the step into the iteration with SetParent, or use the answer of the iteration."
                yield _stays(node, name, variable, "uses $iteration outside of an iteration", hint)
        else:
            yield from _misspelt(flow, node, name, variable)


def _misspelt(flow: FlowContext, node: FlowNode, name: str, variable: str) -> Iterator[Finding]:
    head = variable_head(variable)
    if head in _PLAIN or head == "$vars" or not head or len(variable) > _LONGEST:
        return
    if head == "output":
        if not name.endswith(_UPDATES):
            hint = "Use {{ <node id> }} of the step whose answer is meant."
            yield _stays(
                node, name, variable, f"uses the answer of the step itself, which only `...{_UPDATES}` has", hint
            )
        return
    known = [*_PLAIN, *(other.id for other in flow.nodes)]
    if head == "$flow":
        head, known = variable_head(variable.removeprefix("$flow.")), [*_FLOW]
        if head in _FLOW:
            return
    near = [one for one in known if SequenceMatcher(None, head.lower(), one.lower()).ratio() >= _ALIKE]
    if near:
        best = max(near, key=lambda one: SequenceMatcher(None, head.lower(), one.lower()).ratio())
        yield _stays(node, name, variable, f"uses {head!r}, which is no variable", f"Did you mean {best!r}?")
    elif variable.startswith("$") or "." not in variable:
        text = f"`{name}`: nothing fills {{{{ {variable} }}}}; it stays in the text as it is."
        hint = "Right if the text is meant to show it."
        yield warning("VARIABLE_AS_TEXT", text, where=node.id, field=name, hint=hint)


@rule("VARIABLE_WITHOUT_FIELD", kinds=(AGENTFLOW,))
def fields(flow: FlowContext) -> Iterator[Finding]:
    """Valid forms of variables: `{{ node }}` is the answer of a step and `{{ node.output.x }}` a field of it."""
    for node, name, variable in _used(flow):
        source = flow.graph.node(variable_head(variable))
        if source is None:
            continue
        rest = variable.removeprefix(source.id)
        if rest.startswith(".output.") or (not rest and source.name != v2.START):
            continue
        right = f"{source.id}.output.question" if source.name == v2.START else source.id
        hint = f"Use {{{{ {right} }}}} for its text, or {{{{ {source.id}.output.<field> }}}} for a field."
        text = f"`{name}` uses {{{{ {variable} }}}}, which stays in the text as it is."
        yield error("VARIABLE_WITHOUT_FIELD", text, where=node.id, field=name, hint=hint)


@rule("VARIABLE_NOT_SET", kinds=(AGENTFLOW,))
def order(flow: FlowContext) -> Iterator[Finding]:
    """Variables are set in time. The output of a step that runs later, on another branch or not always is missing, and
    inside an iteration that of each step outside.
    """
    runs = RunOrder(flow)
    for node, name, variable in _used(flow):
        source = variable_head(variable)
        given = flow.graph.node(source)
        if given is None or source == runs.start:
            continue
        stays = f"`{{{{ {variable} }}}}` stays in the text as it is"
        hint = "Use a step that has run by then; keep what may be missing in the state, with a value at the start."
        make, why = error, ""
        if runs.before(source, node.id):
            if node.parent and node.parent != given.parent:
                make, why = warning, f"{source} is outside of the iteration, and {stays}."
            elif runs.skipped(source, node.id):
                make, why = warning, f"{source} does not run on every path to {node.id}: without it {stays}."
        elif runs.before(source, node.id, loops=True):
            make, why = warning, f"In the first round {source} has not run yet, and {stays}."
        elif runs.before(node.id, source) or node.id == source:
            why = f"{source} has not run by then, so {stays}."
        elif runs.apart(source, node.id):
            why = f"{source} is on another branch than {node.id}, so {stays}."
        else:
            make, why = warning, f"{source} need not have run before {node.id}; then {stays}."
        if why and not (name.endswith(_UPDATES) and node.id == source):
            yield make("VARIABLE_NOT_SET", f"`{name}`: {why}", where=node.id, field=name, hint=hint)


@rule("QUESTION_AFTER_HUMAN_INPUT", kinds=(AGENTFLOW,))
def question(flow: FlowContext) -> Iterator[Finding]:
    """`question` is not used after a human input step: from there on it is empty."""
    asking = [node.id for node in flow.nodes if node.name == v2.HUMAN_INPUT]
    start = next((node.id for node in flow.nodes if node.name == v2.START), "")
    if not asking or not start:
        return
    runs = RunOrder(flow)
    for node, name, variable in _used(flow):
        behind = [one for one in asking if variable == _QUESTION and runs.before(one, node.id)]
        if behind:
            make = warning if runs.reaches(start, node.id, avoiding=behind[0]) else error
            yield make(
                "QUESTION_AFTER_HUMAN_INPUT",
                f"`{name}`: after {behind[0]} has asked a person, {{{{ question }}}} is empty.",
                where=node.id,
                field=name,
                hint=f"Use {{{{ {start}.output.question }}}}.",
            )


@rule("UNDECLARED_STATE", kinds=(AGENTFLOW,))
def state(flow: FlowContext) -> Iterator[Finding]:
    """State keys are declared by the start; otherwise they have no value until a step sets them."""
    declared, setters = _state_keys(flow)
    runs = RunOrder(flow)
    for node, name, variable in _used(flow):
        key = variable.removeprefix(_STATE)
        root = variable_head(key)
        if key == variable or key in declared or root in declared:
            continue
        by = setters.get(root, [])
        if any(runs.before(one, node.id) and not runs.skipped(one, node.id) for one in by):
            continue
        why = f"which only {', '.join(by)} sets, perhaps later" if by else "which no node declares or sets"
        yield warning(
            "UNDECLARED_STATE",
            f"`{name}` reads the state {root!r}, {why}; until then `{{{{ {variable} }}}}` stays in the text.",
            where=node.id,
            field=name,
            hint=f'Add {{"key": "{root}", "value": ""}} to `startState` of the start node.',
        )


@rule("STATE_NOT_FILLED", kinds=(AGENTFLOW,))
def updates(flow: FlowContext) -> Iterator[Finding]:
    """State gets what a row says: with a field of the answer, only that field is stored, and no text around it."""
    for node in flow.nodes:
        has_fields = node.name not in _WITH_FIELDS or bool(_rows(node.inputs.get(_WITH_FIELDS[node.name])))
        for name, value in node.inputs.items():
            for number, row in enumerate(_rows(value) if name.endswith(_UPDATES) else ()):
                text = str(row.get("value") or "")
                own = [one for one in _VARIABLE.findall(text) if variable_head(one.strip("{} ")) == "output"]
                field = next((one for one in own if _WHOLE.fullmatch(one) is None), None)
                if field is None:
                    continue
                why = hint = ""
                if _FIELD.fullmatch(field) is None:
                    why, hint = f"nothing fills {field}", "Write the path with dots: {{ output.items.0.name }}."
                elif without_markup(text) != field:
                    why = f"only {field} is stored, without the text around it"
                    hint = f"Set the value to {field}, a row for each field; write the text where the state is read."
                elif not has_fields:
                    why = f"the answer has no fields, and {field} stays as it is"
                    hint = f"Declare the field in `{_WITH_FIELDS[node.name]}`, or use {{{{ output }}}}."
                if why:
                    where = f"{name}[{number}].value"
                    yield error("STATE_NOT_FILLED", f"`{where}`: {why}.", where=node.id, field=where, hint=hint)


@rule("FORM_CUT_AFTER_HUMAN_INPUT", kinds=(AGENTFLOW,))
def form_after_a_person(flow: FlowContext) -> Iterator[Finding]:
    """Free texts of a form are not read after a human input: the server reads them again, up to a line break or a
    colon.
    """
    asking = [node.id for node in flow.nodes if node.name == v2.HUMAN_INPUT]
    start = next((node for node in flow.nodes if node.name == v2.START), None)
    if not asking or start is None:
        return
    texts = {row.get("name") for row in _rows(start.inputs.get(_FORM_ROWS)) if row.get("type") in (None, "", "string")}
    runs = RunOrder(flow)
    for node, name, variable in _used(flow):
        field = variable.removeprefix("$form.")
        behind = next((one for one in asking if runs.before(one, node.id)), None)
        if field != variable and field in texts and behind:
            yield warning(
                "FORM_CUT_AFTER_HUMAN_INPUT",
                f"`{name}`: after {behind} has asked, {{{{ {variable} }}}} ends at its first line break or `: `.",
                where=node.id,
                field=name,
                hint=f"Keep it in the state before {behind}: a row of any step's `...UpdateState` with "
                f'"value": "{{{{ {variable} }}}}"; then read {{{{ $flow.state.<key> }}}}.',
            )


@rule("FORM_SWITCH_OPEN", kinds=(AGENTFLOW,))
def switches(flow: FlowContext) -> Iterator[Finding]:
    """Switches of a form are not written into texts: Flowise sends none that nobody has touched. Conditions and code
    take that for off, and so do models.
    """
    start = next((node for node in flow.nodes if node.name == v2.START), None)
    rows = _rows(start.inputs.get(_FORM_ROWS)) if start and start.inputs.get("startInputType") == "formInput" else ()
    open_ = {f"$form.{row.get('name')}" for row in rows if row.get("type") == "boolean"}
    for node, name, variable in _used(flow) if open_ else ():
        if variable in open_ and name != "conditions" and not name.endswith((_GIVEN_TO_CODE, "Messages", "Input")):
            field = variable.removeprefix("$form.")
            yield warning(
                "FORM_SWITCH_OPEN",
                f"`{name}`: a switch that nobody touches is not sent, and {{{{ {variable} }}}} stays in the text.",
                where=node.id,
                field=name,
                hint=f"Give it to a custom function, `return ${field} === 'true' ? 'yes' : 'no';`, and use its answer; "
                'or branch on it with a condition (string, equal, "true").',
            )


@rule("WEBHOOK_FIELD_OPTIONAL", kinds=(AGENTFLOW,))
def webhook_fields(flow: FlowContext) -> Iterator[Finding]:
    """Webhook fields used in texts are required. Code can check whether a field is present, a text cannot."""
    start = next((node for node in flow.nodes if node.name == v2.START), None)
    if start is None or start.inputs.get("startInputType") != _OF_START["$webhook"]:
        return
    checked = js_truthy(start.inputs.get("webhookEnableValidation"))
    for node, name, variable in _used(flow):
        part, _, rest = variable.removeprefix("$webhook.").partition(".")
        rows, field = _WEBHOOK_ROWS.get(part), variable_head(rest)
        if not variable.startswith("$webhook.") or rows is None or not field or name.endswith(_GIVEN_TO_CODE):
            continue
        required = {row.get("name") for row in _rows(start.inputs.get(rows)) if js_truthy(row.get("required"))}
        if not checked or field not in required:
            yield warning(
                "WEBHOOK_FIELD_OPTIONAL",
                f"`{name}`: a request without {field!r} leaves `{{{{ {variable} }}}}` in the text as it is.",
                where=node.id,
                field=name,
                hint=f"Set `webhookEnableValidation` of the start to true and list {field!r} in `{rows}` with required "
                "true, or let a custom function put something in its place.",
            )


@rule("FORM_FIELD_UNREAD", kinds=(AGENTFLOW,))
def form(flow: FlowContext) -> Iterator[Finding]:
    """Form fields are used in a text or shown to a model."""
    used = {variable for _, _, variable in _used(flow)}
    shown = any(js_truthy(node.inputs.get(_READERS[node.name], True)) for node in flow.nodes if node.name in _READERS)
    for node in flow.nodes:
        if node.name != v2.START or node.inputs.get("startInputType") != "formInput" or shown:
            continue
        for row in _rows(node.inputs.get(_FORM_ROWS)):
            wanted = f"$form.{row.get('name')}"
            if not any(one == wanted or one.startswith((f"{wanted}.", f"{wanted}[")) for one in used):
                yield warning(
                    "FORM_FIELD_UNREAD",
                    f"Nothing uses the form field {row.get('name')!r}.",
                    where=node.id,
                    field=_FORM_ROWS,
                    hint=f"Use {{{{ {wanted} }}}} in a step, or leave the field out.",
                )


def _stays(node: FlowNode, name: str, variable: str, why: str, hint: str) -> Finding:
    """A warning: the text may be about variables, and the flow runs all the same."""
    text = f"`{name}` {why}; `{{{{ {variable} }}}}` stays in the text as it is."
    return warning("UNKNOWN_VARIABLE", text, where=node.id, field=name, hint=hint)


def _used(flow: FlowContext) -> Iterator[tuple[FlowNode, str, str]]:
    """(node, field, variable text), once per field, for the first `_MOST` variables. Code fields are left out."""
    return islice(_all_used(flow), _MOST if len(flow.nodes) <= _MOST_NODES else 0)


def _all_used(flow: FlowContext) -> Iterator[tuple[FlowNode, str, str]]:
    for node in flow.nodes:
        code = {entry["name"] for entry in flow.definitions(node).params if entry["type"] == "code"}
        for name, value in node.inputs.items():
            if name not in code:
                for variable in dict.fromkeys(variables(value)):
                    yield node, name, variable.replace("\\", "")


def _rows(value: object) -> Sequence[Values]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _state_keys(flow: FlowContext) -> tuple[set[str], Mapping[str, list[str]]]:
    """Keys that the start declares, and other keys -> the nodes that set them."""
    declared: set[str] = set()
    setters: dict[str, list[str]] = {}
    for node in flow.nodes:
        for name, value in node.inputs.items():
            for row in _rows(value) if name.endswith(_STATE_ROWS) else ():
                key = str(row.get("key"))
                if node.name == v2.START:
                    declared.add(key)
                else:
                    setters.setdefault(key, []).append(node.id)
    return declared, setters
