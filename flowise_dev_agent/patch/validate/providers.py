"""Rules on the settings of models: what a provider refuses, and what never reaches it.

Flowise 3.1.4 sends every setting that is filled in, except those that it leaves out itself for reasoning models and
for thinking. What a provider then refuses stands in the reports that are named with each rule.
"""

import re
from collections.abc import Iterator
from typing import Final

from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.validate.context import AGENTFLOW, Component, FlowContext, rule

SETTING_IGNORED: Final = "SETTING_IGNORED"
_OPENAI: Final = frozenset({"chatOpenAI", "azureChatOpenAI"})
_ANTHROPIC: Final = "chatAnthropic"
#: `isReasoningModelOpenAI` of Flowise: it leaves out temperature and stop sequences.
_REASONS: Final = re.compile(r"^o[134]|^codex-mini$|gpt-5(?!.*-chat)")
#: Reasoning models without the effort `none`: they take no stop sequences and no sampling (litellm 15244, 28662).
_ALWAYS_REASONS: Final = re.compile(r"^o[134]|^codex-mini$|^gpt-5(?:-mini|-nano|-pro)?(?:-\d{4}-\d\d-\d\d)?$")
#: Models that take an effort and tools on `/v1/responses` only (openai-openapi 541, livekit 5088), and those that
#: reason there unless told otherwise, which Flowise cannot do (litellm 34569, livekit 7169).
_EFFORT_OR_TOOLS: Final = re.compile(r"^gpt-5\.(?:[2-9]|\d\d)(?!.*-chat)(?!.*codex)(?!\.?2-pro)")
_REASONS_WITH_TOOLS: Final = re.compile(r"^gpt-(?:5\.(?:[6-9]|\d\d)|[6-9])(?!.*-chat)")
#: Claude models that take temperature and top_p together: all before 4.1 (litellm 15097, open-webui 546).
_TAKES_BOTH: Final = re.compile(r"^claude-(?:2|instant|3|(?:opus|sonnet)-4(?:-0|-20250514)?$)")
#: `supportsSamplingParams` of Flowise.
_NO_SAMPLING: Final = re.compile(r"opus-4-[7-9](?:\b|-)|opus-(?:[5-9]|\d{2,})-")
#: Agents that send a stop sequence with each request.
_STOPS: Final = frozenset({"conversationalAgent", "xmlAgent"})
_TOOL_AGENTS: Final = frozenset({"toolAgent", "conversationalRetrievalToolAgent"})
_LEAST_BUDGET: Final = 1024
#: What the editor fills in by itself.
_DEFAULTS: Final = frozenset({"0.9", "1", "0.7"})


@rule("SETTING_REFUSED", SETTING_IGNORED)
def settings(flow: FlowContext) -> Iterator[Finding]:
    """Settings that the model takes. One that it refuses stops each question; others are lost without an error."""
    for one in flow.components:
        model = _text(one, "modelName")
        if one.name in _OPENAI and _REASONS.search(model):
            yield from _of_reasoning(one, model)
        elif one.name == _ANTHROPIC:
            yield from _of_claude(one, model)


def ignored_settings(graph: GraphIR) -> frozenset[str]:
    """Fields of a flow (`chatOpenAI_0.temperature`) that never reach the model."""
    found = settings(FlowContext(graph, {}, None))
    return frozenset(f"{one.where}.{one.field}" for one in found if one.code == SETTING_IGNORED)


def _of_reasoning(one: Component, model: str) -> Iterator[Finding]:
    if (warm := _text(one, "temperature")) and warm not in _DEFAULTS:
        yield _ignored(one, "temperature", model, "Leave it out: Flowise sends it to no gpt-5 or o model.")
    if _text(one, "stopSequence"):
        yield _ignored(one, "stopSequence", model, "Leave it out: Flowise sends it to no gpt-5 or o model.")
    if _ALWAYS_REASONS.search(model) or _effort(one):
        for name, neutral in (("topP", 1), ("frequencyPenalty", 0), ("presencePenalty", 0)):
            if (said := _number(one, name)) is not None and said != neutral:
                yield _refused(one, name, model, "a reasoning model has no sampling", "Use UnsetParam on it.")


def _of_claude(one: Component, model: str) -> Iterator[Finding]:
    thinks = one.inputs.get("extendedThinking") is True or one.inputs.get("adaptiveThinking") is True
    if thinks or _NO_SAMPLING.search(model):
        for name in ("temperature", "topP", "topK"):
            if (said := _text(one, name)) and (name != "temperature" or said not in _DEFAULTS):
                hint = "Switch thinking off." if thinks else "Another model, such as claude-sonnet-4-6, takes it."
                yield _ignored(one, name, model, hint)
    elif model and _text(one, "topP") and _text(one, "temperature") and not _TAKES_BOTH.search(model):
        hint = "Flowise always sends the temperature: use UnsetParam on `topP`."
        yield _refused(one, "topP", model, "it takes temperature or topP, not both", hint)
    elif (warm := _number(one, "temperature")) is not None and warm > 1:
        yield _refused(one, "temperature", model, "it takes 0 to 1", "Set it to 1 or less.")
    if one.inputs.get("extendedThinking") is True and one.inputs.get("adaptiveThinking") is not True:
        budget, most = _number(one, "budgetTokens"), _number(one, "maxTokensToSample")
        if budget is not None and (budget < _LEAST_BUDGET or (most is not None and budget >= most)):
            why = f"the budget must be from {_LEAST_BUDGET} on and below `maxTokensToSample`"
            yield _refused(one, "budgetTokens", model, why, "Raise `maxTokensToSample` above it.")


@rule("MODEL_REFUSES_AGENT")
def agents(flow: FlowContext) -> Iterator[Finding]:
    """Agents whose requests the model takes: stop sequences, and tools beside an effort of reasoning."""
    parts = {(one.node.id, one.path): one for one in flow.components}
    for node in flow.nodes:
        if node.name in _STOPS | _TOOL_AGENTS:
            models = flow.connections_by_input.get(node.id, {}).get("model", ())
            used = [parts[one.source.id, ""] for one in models if (one.source.id, "") in parts]
            tools = bool(flow.connections_by_input.get(node.id, {}).get("tools"))
        elif flow.kind == AGENTFLOW and node.name == "agentAgentflow":
            used = [parts[key] for key in [(node.id, "agentModelConfig.")] if key in parts]
            known = ("agentTools", "agentKnowledgeDocumentStores", "agentKnowledgeVSEmbeddings")
            # With tools of its own OpenAI is asked by /v1/responses.
            own = not is_empty(node.inputs.get("agentToolsBuiltInOpenAI"))
            tools = not own and any(not is_empty(node.inputs.get(name)) for name in known)
        else:
            continue
        for one in used:
            model = _text(one, "modelName")
            if one.name not in _OPENAI or has_variable(model):
                continue
            if node.name in _STOPS and _REASONS.search(model) and (_ALWAYS_REASONS.search(model) or _effort(one)):
                yield error(
                    "MODEL_REFUSES_AGENT",
                    f"{node.name} sends stop sequences, and {model} takes none: each question fails.",
                    where=one.node.id,
                    field=f"{one.path}modelName",
                    hint="Use toolAgent, or a model that need not reason, such as gpt-5.4-mini without an effort.",
                    model=model,
                )
            # Flowise asks for summaries, and so /v1/responses, of the models that it knows to reason.
            by_summary = bool(_REASONS.search(model))
            if tools and node.name not in _STOPS and not (by_summary and _text(one, "reasoningSummary")):
                always = _REASONS_WITH_TOOLS.search(model)
                if always or (_EFFORT_OR_TOOLS.search(model) and _effort(one)):
                    cure = "Use a model such as gpt-5.4-mini" if always else "Use UnsetParam on `reasoningEffort`"
                    more = ", or set `reasoning` to true and `reasoningSummary` to auto for /v1/responses"
                    yield error(
                        "MODEL_REFUSES_AGENT",
                        f"{model} takes no tools while it reasons, on the API that Flowise uses: each question fails.",
                        where=one.node.id,
                        field=f"{one.path}{'modelName' if always else 'reasoningEffort'}",
                        hint=f"{cure}{more if by_summary else ''}.",
                        model=model,
                    )


def _refused(one: Component, name: str, model: str, why: str, hint: str) -> Finding:
    return error(
        "SETTING_REFUSED",
        f"{model or 'The model'} refuses `{one.path}{name}` ({why}): each question fails.",
        where=one.node.id,
        field=f"{one.path}{name}",
        hint=hint,
        model=model or "–",
    )


def _ignored(one: Component, name: str, model: str, hint: str) -> Finding:
    return warning(
        SETTING_IGNORED,
        f"`{one.path}{name}` has no effect: it is not sent to {model}.",
        where=one.node.id,
        field=f"{one.path}{name}",
        hint=hint,
        model=model,
    )


def _effort(one: Component) -> bool:
    """True with an effort of reasoning. Flowise sends it even while the switch before it hides it."""
    inputs = one.inputs if one.path else one.node.inputs
    return bool(inputs.get("reasoningEffort"))


def _text(one: Component, name: str) -> str:
    value = one.inputs.get(name)
    return "" if value is None or isinstance(value, bool) or has_variable(value) else str(value).strip()


def _number(one: Component, name: str) -> float | None:
    try:
        return float(_text(one, name))
    except ValueError:
        return None
