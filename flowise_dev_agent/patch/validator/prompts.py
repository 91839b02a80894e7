"""Rules on prompt texts: templates that LangChain cannot read."""

import re
from collections.abc import Iterator, Mapping

from flowise_dev_agent.patch.findings import Finding, error
from flowise_dev_agent.patch.references import has_variable
from flowise_dev_agent.patch.validator.context import FlowContext
from flowise_dev_agent.patch.validator.registry import CHATFLOW, rule

#: Fields that the server reads as templates with {placeholders}.
_TEMPLATES: Mapping[str, frozenset[str]] = {
    "promptTemplate": frozenset({"template"}),
    "chatPromptTemplate": frozenset({"systemMessagePrompt", "humanMessagePrompt"}),
    "fewShotPromptTemplate": frozenset({"prefix", "suffix"}),
    "conversationChain": frozenset({"systemMessagePrompt"}),
    "toolAgent": frozenset({"systemMessage"}),
}
#: The server doubles the braces of a group with a colon: JSON in a prompt is text, not a placeholder.
_JSON_GROUP = re.compile(r"(?<!\{)\{([^{}]*:[^{}]*)\}(?!\})")
#: A pair stands for a brace that is just text.
_BRACE = re.compile(r"\{\{|\}\}|[{}]")
_FLOWISE_VARIABLE = re.compile(r"\{\{[^{}]*\}\}")


@rule("PROMPT_BRACES", kinds=(CHATFLOW,))
def braces(flow: FlowContext) -> Iterator[Finding]:
    """A brace without its partner stops the chain at its first question."""
    for node in flow.nodes:
        fields = _TEMPLATES.get(node.name)
        if fields is None:
            continue
        for name, value in node.inputs.items():
            if name not in fields or not isinstance(value, str):
                continue
            if problem := brace_problem(value):
                yield error(
                    "PROMPT_BRACES",
                    f"`{name}` cannot be read as a template: {problem}",
                    where=node.id,
                    field=name,
                    hint="Write {name} for a placeholder, and {{ or }} for a brace that is just text.",
                )


def brace_problem(text: str) -> str:
    """Why LangChain would refuse the template, or ''."""
    if has_variable(text):
        text = _FLOWISE_VARIABLE.sub("", text)
    text = _JSON_GROUP.sub(r"{{\1}}", text)
    position = 0
    while brace := _BRACE.search(text, position):
        position = brace.end()
        if brace[0] == "}":
            return f"there is a single '}}' after {_before(text, brace.start())}."
        if brace[0] == "{":
            end = text.find("}", position)
            if end < 0:
                return f"the '{{' after {_before(text, brace.start())} is not closed."
            position = end + 1
    return ""


def _before(text: str, position: int) -> str:
    before = " ".join(text[:position].split())
    return f"{before[-30:]!r}" if before else "the beginning"
