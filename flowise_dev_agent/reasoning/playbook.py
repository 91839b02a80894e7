"""What a failure means and what to do about it: by Flowise's own error texts, and by category.

The texts were collected on Flowise 3.1.4, where almost every mistake is HTTP 500 and the cause is in the message.
"""

import re
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.reasoning.contracts import Verdict, VerdictCategory


@dataclass(frozen=True)
class Known:
    """A known error text, its category, and what to do about it."""

    category: VerdictCategory
    text: re.Pattern[str]
    advice: str


def _known(category: VerdictCategory, text: str, advice: str) -> Known:
    return Known(category, re.compile(text, re.IGNORECASE), advice)


#: The first match counts. Causes outside the flow come first, since they explain other errors.
KNOWN: Final[tuple[Known, ...]] = (
    _known(
        "CONFIG",
        r"configured as a (?:scheduled|webhook) trigger",
        "The flow starts by schedule or webhook and cannot be asked a question here: it is not broken, and its answers "
        "are not tested. Accept it, and try it by its own start.",
    ),
    _known(
        "STRUCTURE",
        r"cannot read private member",
        "One chat model feeds two chains that follow each other: give each chain a model node of its own.",
    ),
    _known("CONFIG", r"cannot find module|module_not_found", "A package that the node needs is missing on Flowise."),
    _known(
        "CONFIG",
        r"this chatflow has an api ?key of its own",
        "The chatflow is protected by an API key of Flowise: give this service that key, or take the protection off, "
        "and test again.",
    ),
    _known(
        "CONFIG",
        r"enoent: no such file",
        "A file that was uploaded to the flow is not there: upload it again in Flowise, and test again.",
    ),
    _known(
        "CREDENTIAL",
        r"missing credentials",
        "A node has no credential, or one without a key: bind a credential of its type that holds a valid key.",
    ),
    _known("EXTERNAL", r"insufficient_quota|exceeded your current quota", "The provider's account has no quota left."),
    _known(
        "CREDENTIAL",
        r"incorrect api ?key|invalid api ?key|api ?key|\b401\b|\b403\b|unauthorized|authentication",
        "The provider refuses the key: put a valid one into the credential in Flowise.",
    ),
    _known("EXTERNAL", r"\b429\b|rate limit", "The provider limits the rate: try again in a while."),
    _known(
        "EXTERNAL",
        r"\b50[0234] |overloaded|econn|enotfound|fetch failed|connection error|hang up",
        "The provider or service cannot be reached from Flowise: check its address and whether it is up.",
    ),
    _known("TIMEOUT", r"timed? ?out|etimedout", "No answer in time."),
    _known(
        "CONFIG",
        r"\b404\b.*model|model.*(?:not found|does not exist)",
        "The provider does not know the model name: name one that the account has.",
    ),
    _known(
        "CONFIG",
        r"denied by policy",
        "Flowise refuses to call local addresses: use a public one, or change HTTP_DENY_LIST on the Flowise server.",
    ),
    _known("CONFIG", r"tool .* not found", "The custom tool is not on this Flowise: create it, or choose another one."),
    _known("CONFIG", r"no vector node", "There is no vector store to load documents into."),
    _known(
        "STRUCTURE",
        r"bindtools",
        "The agent's model cannot call tools: connect a chat model (category Chat Models) that can.",
    ),
    _known(
        "STRUCTURE",
        r"expected a runnable",
        "A required input (often `model`) is not connected, or by the wrong type or output: connect it to a node whose "
        "output has a type in common with it.",
    ),
    _known(
        "STRUCTURE",
        r"memory\.\w+ is not a function|getchatmessages",
        "The `memory` input is not connected to exactly one memory node: connect one.",
    ),
    _known(
        "STRUCTURE",
        r"ending nodes? (?:not found|must be)",
        "The flow must end in exactly one Chain or Agent that feeds no other node, without a cycle in front of it.",
    ),
    _known(
        "STRUCTURE",
        r"output of llm ?chain",
        "An ending LLM Chain must give its output `llmChain`: use SetOutput.",
    ),
    _known("STRUCTURE", r"maximum call stack", "Nodes feed each other in a circle: disconnect one of them."),
    _known(
        "STRUCTURE",
        r"reading 'filePath'|node .* not found",
        "A node's type does not exist on this server: replace it by one from the catalogue.",
    ),
    _known(
        "STRUCTURE",
        r"reading 'FLOWISE_CREDENTIAL_ID'",
        "A model or tool inside an agentflow node has no config: set it and bind its credential by path.",
    ),
    _known(
        "STRUCTURE",
        r"reading '(?:find|flatMap|length)'|undefined or null to object|newNodeInstance\.run",
        "A stored node is incomplete or of the other kind of flow: remove it and add it again.",
    ),
    _known("STRUCTURE", r"multiple starting nodes|start input type", "An agentflow needs exactly one start node."),
    _known("STRUCTURE", r"invalid (?:input syntax for type )?uuid", "A tool or credential is not chosen: set its id."),
    _known(
        "LOGIC",
        r"unclosed '\{'|single '\}'|missing value for input",
        "Braces in a prompt are variables: double those that are text, and give every variable a value.",
    ),
    _known("LOGIC", r"invalid json in the", "A field that holds JSON is not valid JSON: set it again."),
    _known(
        "LOGIC", r"context length|maximum context|too many tokens", "The prompt is too long: fewer or smaller chunks."
    ),
    _known("LOGIC", r"zod|failed to parse|output pars", "The model's answer does not fit the output parser's fields."),
)

#: How to fix each kind of failure; the planner reads it with the verdict.
PLAYBOOK: Final[dict[VerdictCategory, str]] = {
    "STRUCTURE": (
        "Compare the flow's connections with the node types' required inputs. Add the missing node or connection, or "
        "replace the wrong one; leave everything else as it is. One ending node, no cycle, no loose node."
    ),
    "LOGIC": (
        "Change only the prompt or parameter that the failed answers point at. Do not add nodes for what a sentence in "
        "the system prompt can do. Keep the variables of prompt templates."
    ),
    "INCOMPLETE": (
        "Find what the requirement names and the plan lacks; add exactly that with its connections, and a success "
        "criterion for it."
    ),
    "CREDENTIAL": "Nothing in the flow needs to change: keep the plan; the credential is for the person to correct.",
    "CONFIG": "Change the named value (model, address, tool) to one that exists on the server, if the plan can.",
    "UNKNOWN": "Nothing is proven wrong: keep the plan, and change only what the person asks for.",
    "EXTERNAL": "Nothing in the flow is wrong: keep the plan as it is.",
    "TIMEOUT": "Nothing is proven wrong: keep the plan; at most make the flow do less per question.",
}


def known(text: str) -> Known | None:
    """The entry for an error text, if there is one."""
    return next((entry for entry in KNOWN if entry.text.search(text)), None)


def advice(verdict: Verdict) -> str | None:
    """What the next plan should do about a verdict; None when it is positive."""
    if verdict.done or verdict.category is None:
        return None
    entry = known(verdict.reason)
    special = f"{entry.advice} " if entry and entry.category == verdict.category else ""
    return special + PLAYBOOK[verdict.category]


def is_advice(text: str) -> bool:
    """Whether `text` is an advice from this list, and not something that the person asked for."""
    return any(text == entry.advice for entry in KNOWN)
