"""The model of a node or step that has none by default is completed instead of asked for again."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.passes.required_models import required_models
from flowise_dev_agent.schemas.plan import Plan, PlannedNode, PlannedValue
from tests.support.requests import plan_request


def completed(catalogue: NodeStore, *names: str, values: tuple[tuple[str, str, Any], ...] = ()) -> dict[str, Any]:
    nodes = [PlannedNode(node_id=f"{name}_{n}", node_name=name, purpose="x") for n, name in enumerate(names)]
    given = [PlannedValue(node_id=id_, param=param, value=value) for id_, param, value in values]
    plan = Plan(goal="x", flow_name="x", operation="create", nodes=nodes, values=given)
    made = required_models(PlanContext(plan=plan, request=plan_request(catalogue))).plan
    return {f"{one.node_id}.{one.param}": one.value for one in made.values}


@pytest.mark.parametrize("name", ["groqChat", "azureChatOpenAI", "chatGoogleVertexAI", "chatOllama", "chatOpenRouter"])
def test_a_type_without_a_default_gets_a_known_model(name: str, catalogue: NodeStore) -> None:
    (model,) = completed(catalogue, name).values()
    assert model


def test_a_second_node_of_the_type_gets_the_model_of_the_first(catalogue: NodeStore) -> None:
    found = completed(catalogue, "groqChat", "groqChat", values=(("groqChat_1", "modelName", "llama-x"),))
    assert found == {"groqChat_1.modelName": "llama-x", "groqChat_0.modelName": "llama-x"}


def test_the_model_of_a_step_goes_into_its_settings(catalogue: NodeStore) -> None:
    step = "llmAgentflow_0"
    assert completed(catalogue, "llmAgentflow", values=((step, "llmModel", "groqChat"),)) == {
        f"{step}.llmModel": "groqChat",
        f"{step}.llmModelConfig.modelName": "openai/gpt-oss-120b",
    }
    warm = ((step, "llmModel", "groqChat"), (step, "llmModelConfig", {"temperature": 0.2}))
    config = completed(catalogue, "llmAgentflow", values=warm)[f"{step}.llmModelConfig"]
    assert config == {"temperature": 0.2, "modelName": "openai/gpt-oss-120b"}


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (("chatOpenAI",), ()),
        (("chatLitellm",), ()),
        (("groqChat",), (("groqChat_0", "modelName", "mine"),)),
        (("llmAgentflow",), (("llmAgentflow_0", "llmModel", "chatOpenAI"),)),
        (
            ("llmAgentflow",),
            (("llmAgentflow_0", "llmModelConfig.modelName", "x"), ("llmAgentflow_0", "llmModel", "groqChat")),
        ),
    ],
    ids=["default", "nobody knows", "given", "default in a step", "given in a step"],
)
def test_nothing_is_added_where_a_model_is_there_or_nobody_knows_one(
    names: tuple[str, ...], values: tuple[tuple[str, str, Any], ...], catalogue: NodeStore
) -> None:
    assert len(completed(catalogue, *names, values=values)) == len(values)
