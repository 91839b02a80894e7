"""Node types, variables and fixed texts in the plans of step forms."""

import json
from collections.abc import Mapping
from typing import Final

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.schemas.base import JsonValue
from flowise_dev_agent.schemas.form_steps import Named, pieces

LLM, AGENT, HTTP, REPLY, CODE = (
    "llmAgentflow", "agentAgentflow", "httpAgentflow", "directReplyAgentflow", "customFunctionAgentflow",
)  # fmt: skip
#: Prefix of a model's fields, by node type.
PREFIXES: Final[Mapping[str, str]] = {LLM: "llm", AGENT: "agent", v2.CONDITION_AGENT: "conditionAgent"}
#: Types whose results are in no conversation: the next step must get them explicitly.
SILENT: Final = frozenset({HTTP, v2.ITERATION})
#: Outputs in a plan: from an iteration to the step inside it, and of a person's answer.
INSIDE, PROCEED, REJECT = "each", "proceed", "reject"
#: Instructions for models beside the person's text, and the output schema of one of them.
CHOOSE: Final = "Look at the input and choose the scenario that fits it best."
LIST: Final = "List every entry of the list in the message, each as one item, word for word."
ITEM: Final = "{{ $iteration }}"
ITEMS: Final[list[JsonValue]] = [
    {"key": "items", "type": "stringArray", "enumValues": "", "jsonSchema": "", "description": "the entries"}
]
#: Title of the final reply that sends an approved answer.
SENDS: Final = "Send the answer"


def variable(name: str) -> str:
    """The text of a Flowise variable."""
    return f"{{{{ {name} }}}}"


def question_of(start: str, *, asks: bool) -> str:
    """The variable with the user's message. After a human input step (`asks`) only the start has it."""
    return f"{start}.output.question" if asks else "question"


def to_sort(labels: Mapping[str, str], question: str, answer: str) -> str:
    """Input of a model that chooses a branch: the form fields (name -> label) or the question, and the last answer."""
    asked = [f"{label}: {variable(f'$form.{name}')}" for name, label in labels.items()] or [variable(question)]
    return "\n".join(asked) + (f"\n\n{variable(answer)}" if answer else "")


# --- Bodies of requests -------------------------------------------------------------------------------------------


def code_of(value: JsonValue, known: Mapping[str, Named]) -> tuple[str, list[Named]]:
    """JavaScript that returns a body with its named values, and these values in order (`$value1` and so on)."""
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
