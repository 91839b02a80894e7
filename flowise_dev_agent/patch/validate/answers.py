"""Rules on answers of steps in agentflows: those that nobody sees, and those that nothing reads."""

import re
from collections.abc import Iterator
from typing import Final

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.references import variable_head, variables
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.validate.context import AGENTFLOW, FlowContext, rule

_FUNCTION: Final = "customFunctionAgentflow"
_RETRIEVER: Final = "retrieverAgentflow"
_STORES: Final = "retrieverKnowledgeDocumentStores"
#: Steps that add nothing to the conversation, and only answer: without a reader they do nothing.
_ONLY_ANSWER: Final = frozenset({v2.HTTP, _RETRIEVER, _FUNCTION, v2.ITERATION})
#: Steps that do nothing but answer a model, so that an iteration of them is there for its answers.
_ANSWERING: Final = frozenset({"llmAgentflow", _RETRIEVER, "directReplyAgentflow"})
#: Starts of flows whose answer may be empty.
_UNREAD: Final = frozenset({"scheduleInput", "webhookTrigger"})
_CALLS: Final = re.compile(r"\b(?:fetch|axios|require)\b")


@rule("ANSWER_EMPTY", "ANSWER_UNREAD", kinds=(AGENTFLOW,))
def answers(flow: FlowContext) -> Iterator[Finding]:
    """Answers are seen or read. A request has no text that a flow could answer with, and models see only what other
    models and people said.

    Nobody reads the answer of a flow that a schedule starts, or of a webhook that only hands on what it is sent.
    """
    starts = {node.inputs.get("startInputType") for node in flow.nodes if node.name == v2.START}
    read = {variable_head(one) for node in flow.nodes for one in variables(list(node.inputs.values()))}
    for node in flow.nodes:
        ends = not flow.connections_out_of.get(node.id)
        inside = bool(node.parent) and node.parent not in read and bool(flow.connections_out_of.get(node.parent))
        if node.name == v2.HTTP and ends and not inside and not starts & _UNREAD:
            yield warning(
                "ANSWER_EMPTY",
                f"{node.id} ends its path, and a request has no text: the answer is empty there.",
                where=node.id,
                hint=f"Connect a directReplyAgentflow behind it, with what is to be said or {{{{ {node.id} }}}}.",
            )
        elif not ends and node.id not in read and _only_answers(flow, node):
            yield warning(
                "ANSWER_UNREAD",
                f"Nothing reads the answer of {node.id}; no model sees it, memory or not.",
                where=node.id,
                hint=f"Use {{{{ {node.id} }}}} where it is needed, for a model in a message of role user.",
            )


def _only_answers(flow: FlowContext, node: FlowNode) -> bool:
    """True for a step that changes neither the world nor the state: it is there for its answer."""
    if node.name not in _ONLY_ANSWER or any(
        name.endswith("UpdateState") and not is_empty(value) for name, value in node.inputs.items()
    ):
        return False
    match node.name:
        case v2.HTTP:
            return node.inputs.get("method") in ("", None, "GET")
        case v2.ITERATION:
            inner = [one for one in flow.nodes if one.parent == node.id]
            return bool(inner) and all(
                one.name in _ANSWERING and is_empty(one.inputs.get("llmUpdateState")) for one in inner
            )
        case _:
            return _CALLS.search(str(node.inputs.get("customFunctionJavascriptFunction"))) is None


@rule("ONE_STORE_ASKED", kinds=(AGENTFLOW,))
def stores(flow: FlowContext) -> Iterator[Finding]:
    """A retriever step has one store: of several the server answers with what it found in the last one."""
    for node in flow.nodes:
        rows = node.inputs.get(_STORES)
        if node.name == _RETRIEVER and isinstance(rows, list) and len(rows) > 1:
            yield error(
                "ONE_STORE_ASKED",
                f"{node.id} names {len(rows)} stores, and only what is found in the last one is used.",
                where=node.id,
                field=_STORES,
                hint="Put one retrieverAgentflow per store in a row, and use the answers of all of them.",
            )
