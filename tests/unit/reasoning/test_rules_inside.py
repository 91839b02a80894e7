"""Changes of agentflows by rules: the models and the instructions inside their nodes."""

from typing import Any

import pytest

from flowise_dev_agent.contracts.plan import Intent, OpsAnswer
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, BindCredential, GraphIR, PatchOp, SetParam, compile_ops
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PatchRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.owners import meant
from flowise_dev_agent.reasoning.rules.language.text import detect_language
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from tests.unit.reasoning.test_rules_flows_there import STORE, step

FROM_NOW_ON = say("prompt_from_now_on", "en")

ONE = {"llmAgentflow_0.llmModelConfig": "chatOpenAI"}
TWO = {**ONE, "agentAgentflow_0.agentModelConfig": "chatAnthropic"}
TEXTS = {"llmAgentflow_0.llmMessages[0].content": "<p>You translate.</p>"}


async def done(
    wish: str,
    nodes: NodeStore,
    inside: dict[str, str],
    feedback: str | None = None,
) -> tuple[PlanContract, list[PatchOp]]:
    """The plan and the ops for a wish, or those for a later one."""
    rules = DeterministicReasoner()
    flow: dict[str, Any] = {
        "requirement": wish,
        "nodes": nodes,
        "existing": {"startAgentflow_0": "startAgentflow"}
        | {place.partition(".")[0]: place.partition("_")[0] for place in inside},
        "inside": inside,
        "texts": TEXTS,
    }
    intent = (await rules.classify(ClassifyRequest(requirement=wish, forced="update"))).value
    asked: dict[str, Any] = {
        "intent": intent,
        "credential_types": {"anthropicApi": 1, "openAIApi": 1},
        "flow_summary": "a flow",
    }
    contract = (await rules.plan(PlanRequest(**flow, **asked))).value
    if feedback:
        contract = (await rules.plan(PlanRequest(**flow, **asked, previous=contract, feedback=feedback))).value
    if contract.declined:
        return contract, []
    answer = (await rules.patch(PatchRequest(**flow, plan=contract))).value
    assert isinstance(answer, OpsAnswer)
    return contract, answer.ops


async def test_values_of_the_model_inside_a_node_are_set_by_their_path(catalogue: NodeStore) -> None:
    contract, ops = await done("Set the temperature to 0.2 and use gpt-4o", catalogue, ONE)
    assert (contract.flow_kind, [node.node_id for node in contract.nodes]) == ("AGENTFLOW", ["llmAgentflow_0"])
    assert {(op.param_name, op.value) for op in ops if isinstance(op, SetParam)} == {
        ("llmModelConfig.temperature", 0.2),
        ("llmModelConfig.modelName", "gpt-4o"),
    }


async def test_a_value_goes_to_every_model_of_the_flow_where_that_is_said(catalogue: NodeStore) -> None:
    _, ops = await done("Setze die Temperatur in allen Schritten auf 0.1", catalogue, TWO)
    assert [(op.node_id, op.param_name) for op in ops if isinstance(op, SetParam)] == [
        ("llmAgentflow_0", "llmModelConfig.temperature"),
        ("agentAgentflow_0", "agentModelConfig.temperature"),
    ]


async def test_another_provider_takes_the_place_of_a_model_with_its_credential(catalogue: NodeStore) -> None:
    contract, ops = await done("Use Claude instead of GPT in this flow", catalogue, ONE)
    assert contract.credential_requirements == ["anthropicApi"]
    assert SetParam(node_id="llmAgentflow_0", param_name="llmModel", value="chatAnthropic") in ops
    (binding,) = [op for op in ops if isinstance(op, BindCredential)]
    assert (binding.path, binding.credential_type, binding.credential_id) == ("llmModelConfig", "anthropicApi", "")


async def test_a_way_to_behave_is_added_to_the_instructions(catalogue: NodeStore) -> None:
    contract, _ = await done("Make it answer like a pirate", catalogue, ONE)
    (value,) = contract.values
    assert (value.param, value.mode) == ("llmMessages[0].content", "append")
    assert value.value == f"<p>{FROM_NOW_ON}</p><p>- Answer like a pirate</p>"


async def test_a_later_wish_keeps_the_first(catalogue: NodeStore) -> None:
    _, ops = await done("Set the temperature to 0.2", catalogue, ONE, feedback="Rather a temperature of 0.4")
    assert [op.value for op in ops if isinstance(op, SetParam)][-1] == 0.4


@pytest.mark.parametrize(
    "wish",
    [
        "Remove the agent at the end",
        "Remove the calculator and add memory",
        "Add a buffer memory",
    ],
)
async def test_a_wish_for_what_no_step_takes_is_declined(wish: str, catalogue: NodeStore) -> None:
    contract, _ = await done(wish, catalogue, TWO)
    assert "«" in (contract.declined or "")


async def test_what_no_step_takes_is_told_beside_what_is_done(catalogue: NodeStore) -> None:
    contract, ops = await done("Use Claude and replace the calculator by a web search", catalogue, ONE)
    assert "chatAnthropic" in [op.value for op in ops if isinstance(op, SetParam)]
    assert ["calculator" in part.quote for part in contract.not_done] == [True]


async def test_a_tool_that_no_step_of_the_flow_takes_is_declined_by_name(catalogue: NodeStore) -> None:
    contract, ops = await done("Add a calculator", catalogue, ONE)
    assert "«Add a calculator»" in (contract.declined or "")
    assert ops == []


@pytest.mark.parametrize(
    "wish",
    [
        "Temperatura 0.2 nel nodo che scrive la mail",
        "Temperature 0.2 for the one that writes the mail",
        "The studies take too long. Temperature 0.2 for the mails.",
        "For the mails use temperature 0.2, the study can stay as it is.",
    ],
)
async def test_words_of_a_title_name_its_node(catalogue: NodeStore, wish: str) -> None:
    inside = {"llmAgentflow_0.llmModelConfig": "chatOpenAI", "llmAgentflow_1.llmModelConfig": "chatOpenAI"}
    labels = {"llmAgentflow_0": "Study case", "llmAgentflow_1": "Scrivi mail" if "scrive" in wish else "Write mail"}
    rules, existing = DeterministicReasoner(), dict.fromkeys(labels, "llmAgentflow")
    intent = (await rules.classify(ClassifyRequest(requirement=wish, forced="update"))).value
    request = PlanRequest(requirement=wish, intent=intent, nodes=catalogue, credential_types={"openAIApi": 1},
                          flow_summary="a flow", existing=existing, inside=inside, labels=labels)  # fmt: skip
    plan = (await rules.plan(request)).value
    assert [(one.node_id, one.value) for one in plan.values] == [("llmAgentflow_1", 0.2)]


@pytest.mark.parametrize(
    "wish",
    [
        "add a third branch called refunds that answers with claude",
        "Ergänze einen dritten Zweig für Retouren mit Claude",
        "añade otra rama para devoluciones con claude",
        "dodaj trzecią gałąź z claude",
    ],
)
async def test_a_further_branch_is_declined_and_changes_no_model(wish: str, catalogue: NodeStore) -> None:
    inside = {**ONE, "conditionAgentAgentflow_0.conditionAgentModelConfig": "chatOpenAI"}
    contract, ops = await done(wish, catalogue, inside)
    assert contract.declined == say("declined_structure", detect_language(wish), parts=f"«{wish}»")
    assert ops == []


DESKS = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        step("llmAgentflow_0", "Berth answer", "A berth costs 40 euros a night. Moorings are free within 30 days."),
        step("llmAgentflow_1", "Engine answer", "Ask for the make of the engine. Our workshop is open until 6 pm."),
    ],
    STORE.schemas,
).graph


@pytest.mark.parametrize(
    ("said", "steps"),
    [
        ("The Berth answer should be shorter", ["llmAgentflow_0"]),
        ("Answers on engines are too long", ["llmAgentflow_1"]),
        ("Moorings are free within 14 days, not 30", ["llmAgentflow_0"]),
        ("The workshop closes at 5 pm now", []),
        ("Our workshop is open until 5 pm now", ["llmAgentflow_1"]),
        ("Always answer in French", []),
        ("The workshop and the moorings are closed", []),
    ],
)
def test_a_step_is_meant_by_its_title_or_by_what_only_its_prompt_speaks_of(said: str, steps: list[str]) -> None:
    request = PlanRequest(
        requirement=said, intent=Intent(operation="update", ambiguity=0, title="Desks"), nodes=STORE,
        credential_types={}, flow_summary="a flow", base=DESKS, existing={node.id: node.name for node in DESKS.nodes},
        labels={node.id: node.label for node in DESKS.nodes},
    )  # fmt: skip
    assert meant(request, said, {"llmAgentflow_0", "llmAgentflow_1"}) == steps
