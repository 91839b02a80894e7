"""The golden flows on a real Flowise: stored byte for byte, and answering."""

import hashlib
import json

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.knowledge.credential_store import CredentialKnowledge
from flowise_dev_agent.knowledge.nodes import NodeKnowledge, NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops, validate_flow
from flowise_dev_agent.patch.model.node import init_node
from tests.fixtures.golden_flows import GOLDEN
from tests.unit.knowledge.memory_caches import MemoryNodes

_EDITOR_DIGEST = "bf17fccffc594d3316b308eeb0dc4ab43101ece0a2355a5f25b823d8343eea7a"

#: A word that the answer must have: what the stand-in was asked, or what only the flow's own parts can know.
_EXPECTED = {"tool_agent": "168", "rag": "30 days", "llm_chain": "Translate into French"}


async def test_p82_the_committed_snapshot_is_what_the_server_says(
    flowise_client: FlowiseClient, catalogue: NodeStore
) -> None:
    live = await NodeKnowledge(60, MemoryNodes()).store("default", flowise_client)

    assert live.source == "live"
    assert (live.flowise_version, live.fingerprint) == (catalogue.flowise_version, catalogue.fingerprint)


async def test_new_nodes_are_those_that_the_editor_makes(flowise_client: FlowiseClient) -> None:
    """The digest is that of the editor's own `initNode`, run over the same catalogue (Flowise 3.1.4, all 297 nodes)."""
    live = await NodeKnowledge(60, MemoryNodes()).store("default", flowise_client)
    nodes = {name: init_node(schema, f"{name}_0", agentflow=False) for name, schema in live.schemas.items()}

    assert hashlib.sha256(json.dumps(nodes, sort_keys=True).encode()).hexdigest() == _EDITOR_DIGEST


async def test_one_node_type_can_be_asked_for(flowise_client: FlowiseClient) -> None:
    knowledge = NodeKnowledge(60, MemoryNodes())

    repair = await knowledge.repair("default", flowise_client, "calculator")

    assert repair.schema is not None
    assert (repair.schema.category, repair.decision.action) == ("Tools", "skip_same_version")
    assert (await knowledge.repair("default", flowise_client, "quantumTeleporter")).schema is None


async def test_p10_credentials_of_the_server_resolve_to_ids(
    flowise_client: FlowiseClient, flowise: FlowiseAccess
) -> None:
    store = await CredentialKnowledge(60).store("default", flowise_client)

    credential = store.resolve("openAIApi")

    assert credential is not None
    assert credential.id == flowise.credentials["openAIApi"]


@pytest.mark.parametrize("name", GOLDEN)
async def test_p15_golden_flow_is_stored_as_compiled_and_answers(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, name: str
) -> None:
    live = await NodeStore.from_server(flowise_client)
    types = (await CredentialKnowledge(60).store("default", flowise_client)).types()
    result = compile_ops(GraphIR.empty(), GOLDEN[name](flowise.credentials), live.schemas)
    assert validate_flow(result.flow_data, schemas=live.schemas, credentials=types) == []

    flow = await flowise_client.create_chatflow(ChatflowCreate(name=f"golden {name}", flow_data=result.flow_data))
    assert (await flowise_client.get_chatflow(flow.id)).flow_data == result.flow_data
    prediction = await flowise_client.predict(flow.id, "What is 12 times 14?", session_id=f"golden-{name}")

    assert _EXPECTED.get(name, "12 times 14") in prediction.answer
