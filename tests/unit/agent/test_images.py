"""Images that go with a requirement are seen by the flow's models, or the plan says that they are not."""

import pytest

from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.planning.passes.attached import with_attached
from flowise_dev_agent.planning.passes.images import IMAGES_UNSEEN, MODEL_BLIND, uploads, with_images
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.plan import Plan, PlannedNode, PlannedValue
from tests.unit.agent.rig import _snapshot, plan
from tests.unit.agent.test_attached import Files

SCHEMAS = _snapshot().schemas
PHOTO = AttachmentFacts(name="photo.png", kind="image", size=9, pixels=(4, 4))


def proposed(*names: str, **values: str) -> Plan:
    nodes = [PlannedNode(node_id=f"{name}_0", node_name=name, purpose=name) for name in names]
    given = [PlannedValue(node_id=f"{names[0]}_0", param=param, value=value) for param, value in values.items()]
    return plan(nodes=nodes, values=given)


def seen(proposal: Plan, said: str = "", base: GraphIR | None = None) -> Plan:
    return with_images(proposal, base or GraphIR.empty(), SCHEMAS, [PHOTO], said)


def values_of(made: Plan) -> list[tuple[str, str, object]]:
    return [(one.node_id, one.param, one.value) for one in made.values]


def test_the_model_of_a_chat_takes_images_and_the_image_is_no_document() -> None:
    made = seen(proposed("chatOpenAI", "conversationChain", "bufferMemory"))
    assert values_of(made) == [("chatOpenAI_0", "allowImageUploads", True)]
    assert made.findings == []
    assert seen(made) == made
    assert with_attached(made, SCHEMAS, [PHOTO]) == made


@pytest.mark.parametrize(
    ("said", "kept", "finding"),
    [("Describe photos", [], []), ("Use gpt-3.5-turbo", [("chatOpenAI_0", "modelName", "gpt-3.5-turbo")], ["gpt-3.5"])],
)
def test_a_model_that_does_not_see_gives_way_unless_the_person_named_it(
    said: str, kept: list[object], finding: list[str]
) -> None:
    made = seen(proposed("chatOpenAI", "conversationChain", modelName="gpt-3.5-turbo"), said)
    assert values_of(made) == [*kept, ("chatOpenAI_0", "allowImageUploads", True)]
    assert [one.code for one in made.findings] == [MODEL_BLIND] * len(finding)


@pytest.mark.parametrize(
    "name", ["gpt-4o", "gpt-4.1", "gpt-4-turbo", "gpt-5-mini", "o3", "o4-mini", "claude-haiku-4-5"]
)
def test_a_model_that_sees_stays(name: str) -> None:
    made = seen(proposed("chatOpenAI", "toolAgent", modelName=name))
    assert ("chatOpenAI_0", "modelName", name) in values_of(made)
    assert made.findings == []


@pytest.mark.parametrize(
    "names", [("chatMistralAI", "conversationChain"), ("chatOpenAI", "conversationalRetrievalQAChain")]
)
def test_without_a_model_that_gets_them_the_plan_says_so(names: tuple[str, ...]) -> None:
    made = seen(proposed(*names))
    assert [(one.code, "photo.png" in one.message) for one in made.findings] == [(IMAGES_UNSEEN, True)]
    assert made.values == []


def test_the_steps_of_an_agentflow_take_images_by_the_settings_of_their_model() -> None:
    made = seen(proposed("llmAgentflow", "startAgentflow", llmModel="chatOpenAI").model_copy(
        update={"flow_kind": "AGENTFLOW"}
    ))  # fmt: skip
    assert ("llmAgentflow_0", "llmModelConfig.allowImageUploads", True) in values_of(made)


def test_a_flow_that_exists_gets_the_switch_on_its_own_model() -> None:
    ops = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name="conversationChain", node_id="conversationChain_0"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
    ]
    base = compile_ops(GraphIR.empty(), ops, SCHEMAS).graph
    assert values_of(seen(plan(nodes=[]), base=base)) == [("chatOpenAI_0", "allowImageUploads", True)]


@pytest.mark.parametrize(("flow_data", "sent"), [('{"allowImageUploads": true}', 1), ('{"allowImageUploads":""}', 0)])
async def test_images_are_sent_to_a_flow_that_takes_them(flow_data: str, sent: int) -> None:
    found = await uploads(Files(PHOTO), flow_data)
    assert [one.name for one in found] == ["photo.png"] * sent
    assert await uploads(None, flow_data) == []
