"""A file for the document store of a bot that exists: the bot answers from it, and its flow stays as it is."""

from typing import Any
from uuid import uuid4

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.flowise.document_stores import VectorSpec
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, PatchOp, Schemas, compile_ops
from tests.e2e.people import SharedService, answer, events_of, http_of, ok
from tests.e2e.scripted import DONE, model_environment, script
from tests.e2e.test_attachments import TEXT, handbook

pytestmark = pytest.mark.nightly

CHAIN = "conversationalRetrievalQAChain"


def rag(store_id: str, schemas: Schemas, credential: str) -> str:
    """A bot that answers from the store and shows its sources."""
    ops: list[PatchOp] = [
        AddNode(node_name="documentStoreVS", node_id="documentStoreVS_0", params={"selectedStore": store_id}),
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name=CHAIN, node_id=f"{CHAIN}_0", params={"returnSourceDocuments": True}),
        Connect(source_node_id="chatOpenAI_0", target_node_id=f"{CHAIN}_0", target_anchor="model"),
        Connect(source_node_id="documentStoreVS_0", target_node_id=f"{CHAIN}_0", target_anchor="vectorStoreRetriever"),
    ]
    return compile_ops(GraphIR.empty(), ops, schemas, credentials={"openAIApi": credential}).flow_data


def model_plan(name: str) -> dict[str, Any]:
    """What a model plans: the store of the node that is there, with more files."""
    mark = {"node_id": "documentStoreVS_0", "param": "selectedStore", "value": f"[ADD TO STORE: {name}]"}
    node = {"node_id": "documentStoreVS_0", "node_name": "documentStoreVS", "purpose": "more files", "existing": True}
    return {
        "goal": "Answer from the handbook, too",
        "flow_name": "Travel bot",
        "nodes": [node],
        "steps": ["Add the handbook to the store."],
        "values": [mark],
        "parts": [{"id": f"p{n}", "state": "covered", "nodes": ["documentStoreVS_0"]} for n in range(1, 5)],
    }


@pytest.mark.parametrize("action", ["accept", "rollback"])
async def test_a_file_for_the_store_of_a_bot_is_a_change_of_its_own(
    shared_service: SharedService,
    flowise: FlowiseAccess,
    flowise_client: FlowiseClient,
    standin: ModelStandIn,
    vectors: VectorSpec,
    schemas: Schemas,
    stores_of_the_test: None,
    action: str,
) -> None:
    name = f"Travel {uuid4().hex[:6]}"
    store = await flowise_client.create_document_store(name, "of a test")
    await flowise_client.insert_vectors(store.id, vectors, timeout=30)
    flow_data = rag(store.id, schemas, flowise.credentials["openAIApi"])
    row = await flowise_client.create_chatflow(ChatflowCreate(name=f"{name} bot", flow_data=flow_data))
    intent = {"operation": "update", "target_hint": row.name, "ambiguity": 0, "questions": [], "title": row.name}
    script(standin, {"classify": intent, "plan": model_plan(name), "judge": DONE}, when=name)
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        files = {"file": ("Our handbook.pdf", handbook())}
        stored = (await http.post("/attachments", files=files)).json()
        body = {
            "requirement": f"Add our handbook to the document store {name}",
            "target": row.id,
            "attachments": [stored["id"]],
            "test_questions": ["How many days of vacation does Zurich have?"],
        }
        planned = await ok(await http.post("/sessions?wait=60", json=body))
        data = planned["interrupt"]["data"]
        (grown,) = data["contract"]["document_stores"]
        assert (grown["id"], grown["chunks"], grown["used_by"]) == (store.id, 1, [row.name])
        assert (data["capability"]["effects"], data["contract"]["values"]) == (["document_store"], [])
        assert (await flowise_client.get_document_store(store.id)).loaders == []

        tested = await answer(http, planned, action="approve")
        review = tested["interrupt"]["data"]
        assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
        (test,) = review["tests"]
        trace = await ok(await http.get(f"/sessions/{tested['thread_id']}/traces/{test['trace_sha256']}"))
        assert [TEXT in source["text"] for source in trace["sources"]] == [True]
        (before,) = review["baseline"]
        assert TEXT not in str(before)
        (loader,) = (await flowise_client.get_document_store(store.id)).loaders
        assert (loader.title, loader.total_chunks) == ("Our handbook.pdf", 1)

        done = await answer(http, tested, action=action)
        said = [one["summary"] for one in await events_of(http, done) if one["type"] == "write"]
    after = await flowise_client.get_document_store(store.id)
    assert (await flowise_client.get_chatflow(row.id)).flow_data == row.flow_data
    if action == "accept":
        assert (done["outcome"], [one.title for one in after.loaders]) == ("accepted", ["Our handbook.pdf"])
    else:
        assert (done["outcome"], after.loaders) == ("rolled_back", [])
        assert any(one.startswith(f"Removed Our handbook.pdf from the document store '{name}'.") for one in said), said
    assert after.description == "of a test"
    await flowise_client.delete_chatflow(row.id)
