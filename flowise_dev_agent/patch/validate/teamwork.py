"""Rules on nodes that are valid alone and fail together: agents with their models and tools, shared models."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.flow_data import Values
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.validate.context import AGENTFLOW, CHATFLOW, FlowContext, rule

#: Chat models that cannot call tools: their classes lack "bindTools".
_WITHOUT_TOOLS: Final = frozenset(
    {
        "chatAlibabaTongyi",
        "chatBaiduWenxin",
        "chatCloudflareWorkersAI",
        "chatHuggingFace",
        "chatNemoGuardrails",
        "chatPerplexity",
    }
)
_TOOL_AGENTS: Final = frozenset({"toolAgent", "conversationalRetrievalToolAgent"})
_AGENT: Final = "agentAgentflow"
#: Type of tool -> field that holds the tool's name.
_NAME_FIELDS: Final[Mapping[str, str]] = {
    "agentAsTool": "name",
    "chainTool": "name",
    "ChatflowTool": "name",
    "codeInterpreterE2B": "toolName",
    "requestsDelete": "requestsDeleteName",
    "requestsGet": "requestsGetName",
    "requestsPost": "requestsPostName",
    "requestsPut": "requestsPutName",
    "retrieverTool": "name",
    "searXNG": "toolName",
}
#: Types of tools with a fixed name.
_FIXED_NAMES: Final = frozenset(
    {"calculator", "currentDateTime", "serpAPI", "serper", "wolframAlpha", "webScraperTool"}
)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LLM_CHAIN: Final = "llmChain"


@rule("MODEL_WITHOUT_TOOLS")
def models(flow: FlowContext) -> Iterator[Finding]:
    """Agents use a model that can call tools; any other fails at each question."""
    for node in flow.nodes:
        used: list[tuple[str, str]] = []
        if node.name in _TOOL_AGENTS:
            used = [
                (one.source.name, "model")
                for one in flow.connections_into.get(node.id, ())
                if one.input_name == "model" and one.source.name in _WITHOUT_TOOLS
            ]
        elif node.name == _AGENT and not is_empty(node.inputs.get("agentTools")):
            model = node.inputs.get("agentModel")
            used = [(str(model), "agentModel")] if model in _WITHOUT_TOOLS else []
        for name, field in used:
            yield error(
                "MODEL_WITHOUT_TOOLS",
                f"{name} cannot call tools, and {node.id} is an agent with tools: it fails at each question.",
                where=node.id,
                field=field,
                hint="Use a model that can, for example chatOpenAI or chatAnthropic, or a chain without tools.",
            )


@rule("BAD_TOOL_NAME", "DUPLICATE_TOOL_NAME")
def tool_names(flow: FlowContext) -> Iterator[Finding]:
    """Tool names are valid and unique. Most providers reject other characters than letters, digits, _ and -."""
    for node in flow.nodes:
        if flow.kind == CHATFLOW and node.name in _NAME_FIELDS:
            yield from _bad_name(node, node.name, node.inputs, "")
        called: dict[str, str] = {}
        for place, type_, inputs in _tools_of(flow, node):
            if flow.kind == AGENTFLOW:
                yield from _bad_name(node, type_, inputs, f"{place}.")
            name = type_ if type_ in _FIXED_NAMES else str(inputs.get(_NAME_FIELDS.get(type_, "")) or "").strip()
            if not name or has_variable(name):
                continue
            if name in called:
                yield error(
                    "DUPLICATE_TOOL_NAME",
                    f"{node.id} has two tools of the name {name!r}: {called[name]} and {place}. Providers refuse that.",
                    where=node.id,
                    field="agentTools" if flow.kind == AGENTFLOW else "tools",
                    hint="Give one of them another name, or leave one out.",
                )
            called[name] = place


def _tools_of(flow: FlowContext, node: FlowNode) -> Iterator[tuple[str, str, Values]]:
    """(place, type, inputs) of an agent's tools."""
    if flow.kind == CHATFLOW:
        for one in flow.connections_into.get(node.id, ()):
            if one.input_name == "tools":
                yield one.source.id, one.source.name, one.source.inputs
    elif node.name == _AGENT:
        for nested in flow.nested(node):
            if nested.param == "agentSelectedTool" and isinstance(nested.config, dict):
                yield nested.path, nested.component, nested.config


def _bad_name(node: FlowNode, type_: str, inputs: Values, path: str) -> Iterator[Finding]:
    field = _NAME_FIELDS.get(type_, "")
    name = inputs.get(field)
    if isinstance(name, str) and not is_empty(name) and not has_variable(name) and not _NAME.fullmatch(name):
        allowed = re.sub(r"[^A-Za-z0-9_-]+", "_", name.strip())[:64].strip("_") or "my_tool"
        yield warning(
            "BAD_TOOL_NAME",
            f"`{path}{field}`: most providers take only letters, digits, _ and - in the name of a tool, at most 64.",
            where=node.id,
            field=f"{path}{field}",
            hint=f"For example {allowed!r}.",
        )


@rule("SHARED_MODEL", kinds=(CHATFLOW,))
def shared(flow: FlowContext) -> Iterator[Finding]:
    """Chains of which one uses the other's answer have separate model nodes; with a shared one the second fails."""
    chains = [node for node in flow.nodes if node.name == _LLM_CHAIN]
    models = {
        node.id: {one.source.id for one in flow.connections_into.get(node.id, ()) if one.input_name == "model"}
        for node in chains
    }
    for node in chains:
        seen, queue = {node.id}, [node.id]
        while queue and models[node.id]:
            for target in flow.successors.get(queue.pop(), ()):
                if target in seen:
                    continue
                seen.add(target)
                queue.append(target)
                for model in sorted(models[node.id] & models.get(target, set())):
                    yield error(
                        "SHARED_MODEL",
                        f"{model} feeds {node.id} and {target}, which uses the answer of {node.id}: the server fails.",
                        where=target,
                        field="model",
                        hint=f"Add a second model node and Connect it to `model` of {target}.",
                    )
