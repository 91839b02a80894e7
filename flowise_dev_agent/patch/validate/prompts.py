"""Rules on prompt templates: syntax that LangChain cannot read, and placeholders without a value."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.json_text import as_dicts, inner_json
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.validate.context import ANCHORED, CHATFLOW, FlowContext, rule

_QUESTION = "question"
_MEMORY_KEY = "chat_history"
_FEW_SHOT, _EXAMPLE_PROMPT = "fewShotPromptTemplate", "examplePrompt"


@dataclass(frozen=True, slots=True)
class _Template:
    """A field with {placeholders}, as Flowise 3.1.4 reads it.

    ``filled`` are the placeholders that the node itself fills, plus question and history of its memory if ``memory``,
    and those of its own ``promptValues`` if ``valued``; None if another node fills them. ``needed`` ones must be
    present. ``json_is_text``: the server escapes the braces of a group with a colon. If something is connected to
    ``replaced_by``, the field is not read.
    """

    filled: frozenset[str] | None = None
    needed: frozenset[str] = frozenset()
    memory: bool = False
    valued: bool = False
    json_is_text: bool = True
    replaced_by: str = ""


_SCRATCHPAD = frozenset({"agent_scratchpad"})
_GIVEN_VALUES = _Template()
#: Steps of sequential flows and workers.
_OWN_VALUES = _Template(frozenset(), valued=True)
_OF_STEP: Mapping[str, _Template] = {"systemMessagePrompt": _OWN_VALUES, "humanMessagePrompt": _OWN_VALUES}
_TEMPLATES: Mapping[str, Mapping[str, _Template]] = {
    "promptTemplate": {"template": _GIVEN_VALUES},
    "chatPromptTemplate": {"systemMessagePrompt": _GIVEN_VALUES, "humanMessagePrompt": _GIVEN_VALUES},
    _FEW_SHOT: dict.fromkeys(("prefix", "suffix"), _Template(json_is_text=False)),
    "promptRetriever": {"systemMessage": _GIVEN_VALUES},
    "sqlDatabaseChain": {"customPrompt": _GIVEN_VALUES},
    "seqAgent": _OF_STEP,
    "seqLLMNode": _OF_STEP,
    "seqConditionAgent": _OF_STEP,
    "worker": {"workerPrompt": _OWN_VALUES},
    "HydeRetriever": {"customPrompt": _Template(json_is_text=False)},
    "multiQueryRetriever": {"modelPrompt": _Template(json_is_text=False)},
    "conversationChain": {"systemMessagePrompt": _Template(frozenset(), memory=True, replaced_by="chatPromptTemplate")},
    "toolAgent": {"systemMessage": _Template(_SCRATCHPAD, memory=True, replaced_by="chatPromptTemplate")},
    "conversationalAgent": {"systemMessage": _Template(_SCRATCHPAD, memory=True)},
    "conversationalRetrievalToolAgent": {"systemMessage": _Template(_SCRATCHPAD | {"context"}, memory=True)},
    "xmlAgent": {
        "systemMessage": _Template(
            frozenset({"input", _MEMORY_KEY, "tools"}) | _SCRATCHPAD, needed=_SCRATCHPAD | {"tools"}, memory=True
        )
    },
    "conversationalRetrievalQAChain": {
        "responsePrompt": _Template(
            frozenset({"context", _QUESTION, _MEMORY_KEY}), needed=frozenset({"context"}), json_is_text=False
        ),
        "rephrasePrompt": _Template(
            frozenset({_QUESTION, _MEMORY_KEY}), needed=frozenset({_QUESTION}), json_is_text=False
        ),
    },
}


def needed_placeholders(node_name: str, field: str) -> tuple[str, ...]:
    """Names of the placeholders that the text of a field must contain."""
    template = _TEMPLATES.get(node_name, {}).get(field)
    return tuple(sorted(template.needed)) if template else ()


#: Nodes that take a prompt from another node: the anchor, and the placeholders that they fill beside its values.
_PROMPT_TAKERS: Mapping[str, tuple[str, frozenset[str]]] = {
    "conversationChain": ("chatPromptTemplate", frozenset()),
    "toolAgent": ("chatPromptTemplate", _SCRATCHPAD),
}
#: A chain without a memory: it fills its parser's placeholder, and one other placeholder with the question.
_CHAIN, _PROMPT = "llmChain", "prompt"
_PARSER_PLACEHOLDER = "format_instructions"

_JSON_GROUP = re.compile(r"(?<!\{)\{([^{}]*:[^{}]*)\}(?!\})")
#: A doubled brace is an escaped one.
_BRACE = re.compile(r"\{\{|\}\}|[{}]")
#: Variables of Flowise that it fills in only where a connection fits, and in no text of a prompt.
_FILLED_ELSEWHERE = re.compile(r"\{\{\s*(question|chat_history)\s*\}\}")
_FLOWISE_VARIABLE = re.compile(r"\{\{[^{}]*\}\}")


@rule("PROMPT_BRACES", kinds=ANCHORED)
def braces(flow: FlowContext) -> Iterator[Finding]:
    """Braces are matched. An unmatched brace stops the chain at its first question."""
    for node in flow.nodes:
        for name, template, text in _templates(flow, node):
            if problem := read_template(text, json_is_text=template.json_is_text)[1]:
                yield error(
                    "PROMPT_BRACES",
                    f"`{name}` cannot be read as a template: {problem}",
                    where=node.id,
                    field=name,
                    hint="Write {name} for a placeholder, and {{ or }} for a literal brace.",
                )


@rule("VARIABLE_AS_TEXT", kinds=(CHATFLOW,))
def variables_as_text(flow: FlowContext) -> Iterator[Finding]:
    """Prompts use placeholders: {{question}} and {{chat_history}} are filled in where a connection fits, too."""
    for node in flow.nodes:
        for name, _, text in _templates(flow, node):
            for found in dict.fromkeys(_FILLED_ELSEWHERE.findall(text)):
                yield warning(
                    "VARIABLE_AS_TEXT",
                    f"`{name}`: nothing fills {{{{{found}}}}} here; the model reads {{{found}}}.",
                    where=node.id,
                    field=name,
                    hint="The question and the history reach the model by themselves: leave it out.",
                )


@rule("PROMPT_VALUE_MISSING", "PROMPT_VALUE_UNUSED", "PROMPT_WITHOUT_QUESTION", kinds=ANCHORED)
def placeholders(flow: FlowContext) -> Iterator[Finding]:
    """Placeholders are filled. An unfilled one stops the chain, at its first question or once there is a history."""
    for node in flow.nodes:
        for name, template, text in _templates(flow, node):
            if template.filled is None:
                continue
            found = read_template(text, json_is_text=template.json_is_text)[0]
            filled = template.filled | (_memory_keys(flow, node) if template.memory else frozenset())
            if template.valued:
                given = _valued_placeholders(node)
                filled = frozenset(found) if given is None else given
            if unfilled := [one for one in found if one not in filled]:
                yield _unfilled(node.id, name, unfilled, f"It fills {_braced(sorted(filled))}.")
            elif lacking := sorted(template.needed - set(found)):
                yield error(
                    "PROMPT_VALUE_MISSING",
                    f"`{name}` must contain {_braced(lacking)}: {node.name} puts its data there.",
                    where=node.id,
                    field=name,
                    hint=f"Add {_braced(lacking)} to the text where the data belongs.",
                )
        yield from _unfilled_prompts(flow, node)
        yield from _unfilled_examples(flow, node)


def _unfilled_prompts(flow: FlowContext, node: FlowNode) -> Iterator[Finding]:
    """Findings on prompts in separate nodes, with their values."""
    if node.name == _CHAIN:
        anchor, filled, by_question = _PROMPT, frozenset({_PARSER_PLACEHOLDER}), 1
    elif node.name in _PROMPT_TAKERS:
        anchor, own = _PROMPT_TAKERS[node.name]
        filled, by_question = own | _memory_keys(flow, node), 0
    else:
        return
    for connection in flow.connections_into.get(node.id, ()):
        prompt, given = connection.source, _valued_placeholders(connection.source)
        if connection.input_name != anchor or given is None:
            continue
        found = [
            one
            for _, template, text in _templates(flow, prompt)
            for one in read_template(text, json_is_text=template.json_is_text)[0]
        ]
        is_read = any(True for _ in _templates(flow, prompt)) and not _broken(flow, prompt)
        if is_read and (unused := sorted(given - set(found))):
            yield warning(
                "PROMPT_VALUE_UNUSED",
                f"`promptValues` gives {_braced(unused)}, which the template does not have: the value is lost.",
                where=prompt.id,
                field="promptValues",
                hint=f"Write it into the template, or name one of its placeholders ({_braced(found) or 'none'}).",
            )
        asked = frozenset(found) - given if node.name == _CHAIN else frozenset(found) & _question_keys(flow, node)
        if is_read and not asked and not _is_filled_in(flow, prompt):
            free = "{question}; the chain fills it with the question" if node.name == _CHAIN else "{input}"
            yield warning(
                "PROMPT_WITHOUT_QUESTION",
                f"The prompt has no placeholder for the question, which never reaches the model of {node.id}.",
                where=prompt.id,
                hint=f"Add one without a value of its own, for example {free}.",
            )
        unfilled = [one for one in dict.fromkeys(found) if one not in filled | given]
        # The question cannot stand for a placeholder without a name.
        if len(unfilled) > by_question or not all(unfilled):
            asked = " One of them may stay open for the question." if by_question else ""
            yield _unfilled(prompt.id, "promptValues", unfilled, f"Give them values in `promptValues`.{asked}")


def _unfilled_examples(flow: FlowContext, node: FlowNode) -> Iterator[Finding]:
    """Findings on examples that lack a placeholder of the prompt that shows them, whose own values are not read."""
    rows = node.inputs.get("examples")
    rows = as_dicts(inner_json(rows) if isinstance(rows, str) else rows) if node.name == _FEW_SHOT else []
    for connection in flow.connections_into.get(node.id, ()) if rows else ():
        if connection.input_name != _EXAMPLE_PROMPT:
            continue
        for _, template, text in _templates(flow, connection.source):
            needed = read_template(text, json_is_text=template.json_is_text)[0]
            if lacking := [one for one in needed if any(one not in row for row in rows)]:
                yield _unfilled(node.id, "examples", lacking, "Give each example all fields of its prompt.")


def _is_filled_in(flow: FlowContext, prompt: FlowNode) -> bool:
    """True if a value of the prompt comes from elsewhere: a variable, or the answer of another node."""
    return has_variable(json.dumps(prompt.inputs.get("promptValues"))) or flow.is_connected(prompt, "promptValues")


def open_placeholders(flow: FlowContext, prompt: FlowNode) -> list[str]:
    """Placeholders of a prompt that its own values do not fill; none if its text or its values cannot be read."""
    given = _valued_placeholders(prompt)
    if given is None or _broken(flow, prompt):
        return []
    found = [
        one
        for _, template, text in _templates(flow, prompt)
        for one in read_template(text, json_is_text=template.json_is_text)[0]
    ]
    return [one for one in dict.fromkeys(found) if one not in given]


def _broken(flow: FlowContext, prompt: FlowNode) -> bool:
    """True if PROMPT_BRACES reports this prompt."""
    return any(read_template(text, json_is_text=kind.json_is_text)[1] for _, kind, text in _templates(flow, prompt))


def _templates(flow: FlowContext, node: FlowNode) -> Iterator[tuple[str, _Template, str]]:
    """Name, kind and text of the node's non-empty templates that the server reads."""
    if node.inputs.get("templateFormat") == "jinja-2":
        return
    for name, template in _TEMPLATES.get(node.name, {}).items():
        value = node.inputs.get(name)
        replaced = template.replaced_by and flow.is_connected(node, template.replaced_by)
        if isinstance(value, str) and value.strip() and not replaced:
            yield name, template, value


def _memory_keys(flow: FlowContext, node: FlowNode) -> frozenset[str]:
    """Names of the chain's question and history, as its memory sets them."""
    return _question_keys(flow, node) | {str(_memory_of(flow, node).get("memoryKey") or _MEMORY_KEY)}


def _question_keys(flow: FlowContext, node: FlowNode) -> frozenset[str]:
    """Names of the question in the prompt of a chain with a memory."""
    return frozenset({"input", str(_memory_of(flow, node).get("inputKey") or "input")})


def _memory_of(flow: FlowContext, node: FlowNode) -> Mapping[str, Any]:
    sources = flow.connections_by_input.get(node.id, {}).get("memory", ())
    return sources[0].source.inputs if sources else {}


def _valued_placeholders(prompt: FlowNode) -> frozenset[str] | None:
    """Placeholders with a value; None if only the server can tell."""
    values = prompt.inputs.get("promptValues")
    if isinstance(values, str):
        try:
            values = json.loads(_FLOWISE_VARIABLE.sub("0", values)) if values.strip() else {}
        except (ValueError, RecursionError):
            return None  # reported as BAD_JSON
    if values is None:
        return frozenset()
    return frozenset(key for key, value in values.items() if value is not None) if isinstance(values, dict) else None


def _unfilled(where: str, field: str, names: list[str], hint: str) -> Finding:
    text = f"Nothing fills {_braced(names)}."
    braces_hint = " Literal braces are written {{ and }}."
    return error("PROMPT_VALUE_MISSING", text, where=where, field=field, hint=hint + braces_hint)


def _braced(names: list[str]) -> str:
    return ", ".join(f"{{{name[:60]}}}" for name in names[:5])


def read_template(text: str, *, json_is_text: bool = True) -> tuple[tuple[str, ...], str]:
    """The distinct placeholders of a template, and the reason why LangChain would reject it ('' if it would not)."""
    if has_variable(text):
        text = _FLOWISE_VARIABLE.sub("", text)
    if json_is_text:
        text = _JSON_GROUP.sub(r"{{\1}}", text)
    found: dict[str, None] = {}
    position = 0
    while brace := _BRACE.search(text, position):
        position = brace.end()
        if brace[0] == "}":
            return tuple(found), f"there is a single '}}' after {_before(text, brace.start())}."
        if brace[0] == "{":
            end = text.find("}", position)
            if end < 0:
                return tuple(found), f"the '{{' after {_before(text, brace.start())} is not closed."
            found[text[position:end]] = None
            position = end + 1
    return tuple(found), ""


def _before(text: str, position: int) -> str:
    before = " ".join(text[:position].split())
    return f"{before[-30:]!r}" if before else "the beginning"
