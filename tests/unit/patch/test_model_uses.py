"""The models that a flow names are found wherever they stand, and those that end are told."""

from datetime import date
from typing import Any

import pytest

from flowise_dev_agent.patch import AddNode, GraphIR, PatchOp, Schemas, compile_ops, validate_flow
from flowise_dev_agent.patch.model.model_uses import ModelEnd, ModelUse, model_uses

SOON = ModelEnd(date(2027, 1, 14), ended=False, replacement="gpt-5.4-mini")
GONE = ModelEnd(date(2026, 7, 24), ended=True, replacement="")


def flow(schemas: Schemas, *ops: PatchOp) -> GraphIR:
    return compile_ops(GraphIR.empty(), ops, schemas).graph


def node(name: str, **params: Any) -> AddNode:
    return AddNode(node_name=name, node_id=f"{name}_0", params=params)


@pytest.mark.parametrize(
    ("op", "use"),
    [
        (node("chatOpenAI", modelName="gpt-4o"), ("chatOpenAI_0", "modelName", "chatOpenAI", "gpt-4o")),
        (node("chatOpenAI"), ("chatOpenAI_0", "modelName", "chatOpenAI", "gpt-4o-mini")),
        (node("chatPerplexity"), ("chatPerplexity_0", "model", "chatPerplexity", "sonar")),
        (node("cohereEmbeddings"), ("cohereEmbeddings_0", "modelName", "cohereEmbeddings", "embed-english-v2.0")),
        (
            node("awsChatBedrock", customModel="anthropic.claude-2"),
            ("awsChatBedrock_0", "customModel", "awsChatBedrock", "anthropic.claude-2"),
        ),
        (
            node("llmAgentflow", llmModel="chatMistralAI", llmModelConfig={"modelName": "mistral-tiny"}),
            ("llmAgentflow_0", "llmModelConfig.modelName", "chatMistralAI", "mistral-tiny"),
        ),
        (
            node("llmAgentflow", llmModel="chatDeepseek"),
            ("llmAgentflow_0", "llmModelConfig.modelName", "chatDeepseek", "deepseek-chat"),
        ),
    ],
    ids=["named", "default", "other field", "embeddings", "custom", "in a step", "default in a step"],
)
def test_a_model_is_found_with_its_place(schemas: Schemas, op: PatchOp, use: tuple[str, str, str, str]) -> None:
    assert [*model_uses(flow(schemas, op), schemas)] == [ModelUse(*use)]


@pytest.mark.parametrize(
    "op",
    [
        node("chatOpenAI", basepath="http://127.0.0.1:1234/v1"),
        node("chatOpenAI", modelName="{{$vars.model}}"),
        node("calculator"),
        node("llmAgentflow", llmModel=""),
    ],
    ids=["another server", "a variable", "no model", "none chosen"],
)
def test_a_model_that_the_flow_does_not_name_is_not_found(schemas: Schemas, op: PatchOp) -> None:
    assert [*model_uses(flow(schemas, op), schemas)] == []


def test_the_address_of_the_provider_itself_changes_nothing(schemas: Schemas) -> None:
    graph = flow(schemas, node("chatOpenAI", basepath="https://eu.api.openai.com/v1"))
    assert [one.model for one in model_uses(graph, schemas)] == ["gpt-4o-mini"]


@pytest.mark.parametrize("kind", ["CHATFLOW", "AGENTFLOW"])
@pytest.mark.parametrize(("end", "code"), [(SOON, "MODEL_ENDS"), (GONE, "MODEL_ENDED")])
def test_a_model_with_an_end_is_a_warning_with_the_day(schemas: Schemas, kind: str, end: ModelEnd, code: str) -> None:
    op = node("chatOpenAI") if kind == "CHATFLOW" else node("llmAgentflow", llmModel="chatOpenAI")
    text = flow(schemas, op).to_flow_data()
    ends = {("chatOpenAI", "gpt-4o-mini"): end}
    found = validate_flow(text, schemas=schemas, credentials=None, kind=kind, model_ends=ends)
    (finding,) = [one for one in found if one.code.startswith("MODEL_END")]
    assert (finding.code, finding.severity, finding.where) == (code, "warning", op.node_id)
    assert finding.params["day"] == end.day.isoformat()
    assert finding.params["model"] == "gpt-4o-mini"
    assert finding.allowed == ((end.replacement,) if end.replacement else ())
    assert finding.params["replacement"]


def test_models_without_an_end_give_no_finding(schemas: Schemas) -> None:
    text = flow(schemas, node("chatOpenAI", modelName="gpt-5.4-mini")).to_flow_data()
    ends = {("chatOpenAI", "gpt-4o-mini"): SOON, ("chatAnthropic", "gpt-5.4-mini"): SOON}
    found = validate_flow(text, schemas=schemas, credentials=None, model_ends=ends)
    assert not [one for one in found if one.code.startswith("MODEL_END")]
