"""Rules on traits of Flowise's nodes that no schema tells: pairs that fail together, memories that forget, lists and
parameters that are read otherwise than they look. All were played on Flowise 3.1.4.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.json_text import inner_json
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.validate.context import ANCHORED, CHATFLOW, IN_MEMORY, FlowContext, rule
from flowise_dev_agent.patch.validate.prompts import open_placeholders

_SUMMARIES: Final = frozenset({"conversationSummaryMemory", "conversationSummaryBufferMemory"})
#: Models that take a system message in the first place only; a summary comes second.
_SYSTEM_FIRST: Final = frozenset({"chatAnthropic", "chatGoogleGenerativeAI"})
#: A memory with this model gives its summary as a message of the user.
_SUMMARY_BY_USER: Final = "chatAnthropic"
#: Chains that keep a copy of their retriever, in which the embeddings that an in-memory store has used break.
_COPIES: Final = frozenset({"retrievalQAChain", "vectorDBQAChain", "multiRetrievalQAChain"})
_PARTS: Final = frozenset({"Vector Stores", "Retrievers"})


@dataclass(frozen=True, slots=True)
class _Lost:
    """A memory that forgets what people expect it to keep; ``field``: only with a value there."""

    why: str
    hint: str
    field: str = ""


_FORGETFUL: Final[Mapping[str, _Lost]] = {
    "RedisBackedChatMemory": _Lost(
        "`windowSize` keeps the oldest messages of a conversation, not the newest: it never learns anything new.",
        "Use UnsetParam on `windowSize`, which keeps all; for the newest ones use bufferWindowMemory.",
        "windowSize",
    ),
    "conversationSummaryMemory": _Lost(
        "It sums up the last question and answer only; what was said before is forgotten.",
        "Use conversationSummaryBufferMemory, which keeps the newest messages and sums up all before.",
    ),
}


#: (type, field) -> the value that fails, '' for any; why; what to do.
_FAILING: Final[Mapping[tuple[str, str], tuple[str, str, str]]] = {
    ("fewShotPromptTemplate", "templateFormat"): (
        "jinja-2",
        "LangChain has no format jinja-2: each question fails.",
        "Set it to f-string and write {name} for a placeholder.",
    ),
    ("chatPromptTemplate", "messageHistoryCode"): (
        "",
        "whatever the code returns, Flowise cannot read it: each question fails.",
        "Use UnsetParam on it, and write the examples into `systemMessagePrompt`.",
    ),
}


@rule("MEMORY_FORGETS", kinds=ANCHORED)
def memories(flow: FlowContext) -> Iterator[Finding]:
    """Memories keep what was said last."""
    for node in flow.nodes:
        lost = _FORGETFUL.get(node.name)
        if lost and (not lost.field or node.inputs.get(lost.field)):
            yield warning("MEMORY_FORGETS", lost.why, where=node.id, field=lost.field, hint=lost.hint)


@rule("SUMMARY_NOT_TAKEN", "STORE_NOT_COPIED", "PARSER_NOT_TAKEN", "INPUT_NOT_TAKEN", kinds=(CHATFLOW,))
def pairs(flow: FlowContext) -> Iterator[Finding]:
    """Nodes that work together. Others fail at each question, or lose what they are given."""
    for node in flow.nodes:
        for memory in _into(flow, node, "memory"):
            models = [one for one in _into(flow, node, "model") if one.name in _SYSTEM_FIRST]
            by_user = any(one.name == _SUMMARY_BY_USER for one in _into(flow, memory, "model"))
            if memory.name in _SUMMARIES and models and not by_user:
                yield error(
                    "SUMMARY_NOT_TAKEN",
                    f"{memory.name} gives its summary as a second system message, which {models[0].name} refuses.",
                    where=memory.id,
                    hint="Use bufferWindowMemory, or a chatAnthropic as the model of the memory.",
                    model=models[0].label,
                )
        if node.name in _COPIES and (
            store := next((one for one in _feeding(flow, node) if one.name in IN_MEMORY), None)
        ):
            yield error(
                "STORE_NOT_COPIED",
                f"{node.name} fails on {store.name}: the embeddings break when the chain copies them.",
                where=node.id,
                hint="Use conversationalRetrievalQAChain with the same store, model and embeddings.",
            )
        if node.name == "llmChain" and flow.is_connected(node, "outputParser"):
            for prompt in _into(flow, node, "prompt"):
                if prompt.name == "fewShotPromptTemplate":
                    yield error(
                        "PARSER_NOT_TAKEN",
                        "A fewShotPromptTemplate cannot take the instructions of an output parser: the chain fails.",
                        where=node.id,
                        field="outputParser",
                        hint="Write the examples into a promptTemplate or chatPromptTemplate.",
                    )
        if node.name == "chainTool":
            for chain in _into(flow, node, "baseChain"):
                for prompt in _into(flow, chain, "prompt"):
                    if missing := open_placeholders(flow, prompt):
                        named = ", ".join(f"{{{one}}}" for one in missing[:5])
                        yield error(
                            "INPUT_NOT_TAKEN",
                            f"A chainTool gives the agent's input to no placeholder of a prompt: {named} stays empty.",
                            where=node.id,
                            field="baseChain",
                            hint="Use a ChatflowTool or a customTool, or a chain that takes a question itself.",
                        )


def _into(flow: FlowContext, node: FlowNode, name: str) -> list[FlowNode]:
    return [one.source for one in flow.connections_by_input.get(node.id, {}).get(name, ())]


def _feeding(flow: FlowContext, node: FlowNode) -> Iterator[FlowNode]:
    """Stores and retrievers behind a chain."""
    queue, seen = [node.id], {node.id}
    while queue:
        for one in flow.connections_into.get(queue.pop(), ()):
            if one.source.category in _PARTS and one.source.id not in seen:
                seen.add(one.source.id)
                queue.append(one.source.id)
                yield one.source


@rule("VALUE_FAILS", kinds=ANCHORED)
def values(flow: FlowContext) -> Iterator[Finding]:
    """Values that the editor offers and the server can do nothing with."""
    for node in flow.nodes:
        for (type_, name), (bad, why, hint) in _FAILING.items():
            value = node.inputs.get(name) if node.name == type_ else None
            if isinstance(value, str) and value.strip() and bad in ("", value):
                yield error("VALUE_FAILS", f"`{name}`: {why}", where=node.id, field=name, hint=hint)


@rule("LIST_NOT_BY_LINES")
def lists(flow: FlowContext) -> Iterator[Finding]:
    """Lists of refused texts have one on each line; a line counts as it is, with its commas and blanks."""
    for node in flow.nodes:
        value = node.inputs.get("denyList") if node.name == "inputModerationSimple" else None
        if not isinstance(value, str) or not value.strip() or has_variable(value):
            continue
        lines = value.split("\n")
        padded = not flow.is_connected(node, "model") and any(line != line.strip() for line in lines)
        if padded or (len(lines) == 1 and "," in value):
            one_each = [part.strip() for part in (lines[0].split(",") if len(lines) == 1 else lines) if part.strip()]
            yield (error if padded else warning)(
                "LIST_NOT_BY_LINES",
                "`denyList` refuses what contains a whole line of it, with the commas and blanks of the line.",
                where=node.id,
                field="denyList",
                hint=f"One on each line, no blanks around it: {json.dumps(chr(10).join(one_each))[:300]}",
            )


@rule("PARAMETER_NOT_SENT")
def request_parameters(flow: FlowContext) -> Iterator[Finding]:
    """Parameters of request tools say where they go; one that does not is asked of the model and never sent."""
    for one in flow.components:
        name = f"{one.name}QueryParamsSchema"
        value = one.inputs.get(name) if one.name in ("requestsGet", "requestsDelete") else None
        parsed: Any = inner_json(value) if isinstance(value, str) else value
        if not isinstance(parsed, dict):
            continue
        rows: Mapping[str, Any] = parsed
        lost = [key for key, row in rows.items() if isinstance(row, dict) and row.get("in") not in ("query", "path")]
        if lost:
            example = json.dumps({lost[0]: {**rows[lost[0]], "in": "query"}})[:200]
            yield error(
                "PARAMETER_NOT_SENT",
                f"`{one.path}{name}`: {', '.join(lost[:5])} without `in` never leave Flowise.",
                where=one.node.id,
                field=f"{one.path}{name}",
                hint=f'Add "in": "query" or "in": "path" to each: {example}',
                names=", ".join(map(str, lost[:5])),
            )
