"""The node types, variables and fixed texts that a plan has for the steps of a form."""

import json
from collections.abc import Mapping
from typing import Final

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.schemas.base import JsonValue
from flowise_dev_agent.schemas.form_steps import Named, pieces

LLM, AGENT, HTTP, REPLY, CODE = (
    "llmAgentflow", "agentAgentflow", "httpAgentflow", "directReplyAgentflow", "customFunctionAgentflow",
)  # fmt: skip
#: How the fields of a model begin, by type.
PREFIXES: Final[Mapping[str, str]] = {LLM: "llm", AGENT: "agent", v2.CONDITION_AGENT: "conditionAgent"}
#: Their results are in no conversation: the step behind them has to be given them.
SILENT: Final = frozenset({HTTP, v2.ITERATION})
#: In a plan the output of an iteration that leads to the step inside it, and those of a person's answer.
INSIDE, PROCEED, REJECT = "each", "proceed", "reject"
#: What models are told beside the person's words, and what one of them gives.
CHOOSE: Final = "Look at the input and choose the scenario that fits it best."
LIST: Final = "List every entry of the list in the message, each as one item, word for word."
ITEM: Final = "{{ $iteration }}"
ITEMS: Final[list[JsonValue]] = [
    {"key": "items", "type": "stringArray", "enumValues": "", "jsonSchema": "", "description": "the entries"}
]
#: The title of a reply that sends at the end of a path what a person approved.
SENDS: Final = "Send the answer"


def variable(name: str) -> str:
    """What Flowise fills in."""
    return f"{{{{ {name} }}}}"


def question_of(start: str, *, asks: bool) -> str:
    """The variable with the person's message; once a person was asked (`asks`) Flowise has it at the start alone."""
    return f"{start}.output.question" if asks else "question"


def to_sort(labels: Mapping[str, str], question: str, answer: str) -> str:
    """What a model that chooses a branch looks at: the fields of the form (name -> label) or the question, and the
    latest answer."""
    asked = [f"{label}: {variable(f'$form.{name}')}" for name, label in labels.items()] or [variable(question)]
    return "\n".join(asked) + (f"\n\n{variable(answer)}" if answer else "")


# --- Bodies of requests -------------------------------------------------------------------------------------------


def code_of(value: JsonValue, known: Mapping[str, Named]) -> tuple[str, list[Named]]:
    """JavaScript that gives a body with the values that its texts name: quotes and line breaks stay in it. The
    values, which it reads as `$value1` and so on."""
    named: dict[Named, str] = {}

    def atom(piece: str | Named) -> str:
        if isinstance(piece, Named):
            return named.setdefault(piece, f"$value{len(named) + 1}")
        return json.dumps(piece, ensure_ascii=False)

    def said(one: JsonValue) -> str:
        if isinstance(one, str):
            return " + ".join(map(atom, pieces(one, known))) or '""'
        if isinstance(one, dict):
            return (
                f"{{{', '.join(f'{json.dumps(key, ensure_ascii=False)}: {said(item)}' for key, item in one.items())}}}"
            )
        return f"[{', '.join(map(said, one))}]" if isinstance(one, list) else json.dumps(one)

    return f"return JSON.stringify({said(value)});", [*named]
