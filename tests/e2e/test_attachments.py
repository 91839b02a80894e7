"""A file that goes with the sentence becomes what the bot answers from, on a real Flowise."""

import base64
import json
from typing import Any
from uuid import uuid4

import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.document_stores import VectorSpec
from flowise_dev_agent.patch.model.placeholders import placeholder_file
from tests.e2e.people import SharedService, answer, events_of, http_of, ok
from tests.e2e.scripted import DONE, READS, SEARCHES, model_environment, script
from tests.e2e.test_mcp import over_http
from tests.support.sessions import ASSISTANT
from tests.unit.knowledge.test_images import PNG

TEXT = "Employees of the Zurich office have 31 days of vacation a year."
HANDBOOK = {**ASSISTANT, "name": "Handbook bot", "sources": [{"kind": "pdf", "about": "handbook"}]}


def handbook() -> bytes:
    url = placeholder_file(".pdf", TEXT) or ""
    return base64.b64decode(url.partition("base64,")[2].partition(",")[0])


async def test_a_pdf_that_goes_with_the_sentence_is_what_the_bot_answers_from(
    shared_service: SharedService, flowise_client: FlowiseClient
) -> None:
    service = await shared_service()
    async with http_of(service) as http:
        stored = (await http.post("/attachments", files={"file": ("Our handbook.pdf", handbook())})).json()
        assert (stored["facts"]["pages"], stored["facts"]["first_lines"]) == (1, TEXT)
        body = {
            "design": HANDBOOK,
            "attachments": [stored["id"]],
            "test_questions": ["How many days of vacation does Zurich have?"],
        }
        planned = await ok(await http.post("/sessions?wait=60", json=body))
        contract = planned["interrupt"]["data"]["contract"]
        assert "[ATTACHMENT: Our handbook.pdf]" in [one["value"] for one in contract["values"]]
        assert contract["placeholders"] == []

        sources = {"node_id": "conversationalRetrievalQAChain_0", "param": "returnSourceDocuments", "value": True}
        tested = await answer(http, planned, action="approve", edits={"values": [sources], "removals": []})
        review = tested["interrupt"]["data"]
        assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
        (test,) = review["tests"]
        assert test["passed"] is True, test
        trace = await ok(await http.get(f"/sessions/{tested['thread_id']}/traces/{test['trace_sha256']}"))
        assert [TEXT in source["text"] for source in trace["sources"]] == [True]

        flow = await flowise_client.get_chatflow(tested["chatflow_id"])
        loader = next(node for node in json.loads(flow.flow_data)["nodes"] if node["data"]["name"] == "pdfFile")
        assert loader["data"]["inputs"]["pdfFile"] == 'FILE-STORAGE::["Our handbook.pdf"]'
        # The file stays when the flow is changed.
        model = next(node["id"] for node in json.loads(flow.flow_data)["nodes"] if node["data"]["name"] == "chatOpenAI")
        colder = {"op_type": "SetParam", "node_id": model, "param_name": "temperature", "value": 0.1}
        changed = await answer(http, tested, action="iterate", ops=[colder])
        if changed["interrupt"]["type"] == "plan_approval":
            changed = await answer(http, changed, action="approve")
        assert changed["interrupt"]["data"]["tests"][0]["passed"] is True
        done = await answer(http, changed, action="accept")
        assert done["outcome"] == "accepted"


@pytest.mark.nightly
async def test_a_pdf_becomes_a_document_store_that_the_bot_answers_from(
    shared_service: SharedService,
    flowise_client: FlowiseClient,
    standin: ModelStandIn,
    vectors: VectorSpec,
    stores_of_the_test: None,
) -> None:
    model = await flowise_client.create_document_store("Travel", "of a test")
    await flowise_client.insert_vectors(model.id, vectors, timeout=30)
    script(standin, SEARCHES)
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        stored = (await http.post("/attachments", files={"file": ("Our handbook.pdf", handbook())})).json()
        body = {
            "requirement": "A bot with GPT-4o that answers from our handbook in a document store",
            "attachments": [stored["id"]],
            "test_questions": ["How many days of vacation does Zurich have?"],
        }
        planned = await ok(await http.post("/sessions?wait=60", json=body))
        data = planned["interrupt"]["data"]
        (store,) = data["contract"]["document_stores"]
        assert (store["files"], store["chunks"], store["vector_store"]) == (["Our handbook.pdf"], 1, "postgres")
        assert store["embeddings"] == "openAIEmbeddings (text-embedding-3-small)"
        assert "pieces of Our handbook.pdf: 1, at most" in data["plan"]
        assert data["capability"]["effects"] == ["document_store"]
        before = {one.id for one in await flowise_client.list_document_stores()}

        tested = await answer(http, planned, action="approve")
        review = tested["interrupt"]["data"]
        assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
        (test,) = review["tests"]
        assert test["passed"] is True, test
        trace = await ok(await http.get(f"/sessions/{tested['thread_id']}/traces/{test['trace_sha256']}"))
        assert [(TEXT in source["text"]) for source in trace["sources"]] == [True]
        (made,) = [one for one in await flowise_client.list_document_stores() if one.id not in before]
        assert (made.status, made.total_chunks) == ("UPSERTED", 1)
        flow = json.loads((await flowise_client.get_chatflow(tested["chatflow_id"])).flow_data)
        node = next(node for node in flow["nodes"] if node["data"]["name"] == "documentStoreVS")
        assert node["data"]["inputs"]["selectedStore"] == made.id

        done = await answer(http, tested, action="accept")
        assert done["outcome"] == "accepted"
        assert (await flowise_client.get_document_store(made.id)).description == "Made of Our handbook.pdf"
        said = [one["summary"] for one in await events_of(http, done) if one["type"] == "write"]
        assert any("1 piece embedded, and found by a search" in one for one in said)


@pytest.mark.nightly
async def test_a_store_that_the_flow_reads_goes_with_a_rollback_and_files_come_over_mcp(
    shared_service: SharedService, flowise_client: FlowiseClient, standin: ModelStandIn, stores_of_the_test: None
) -> None:
    script(standin, READS)
    service = await shared_service(**model_environment(standin))
    requirement = "Build a bot with GPT-4o that answers from our notes in a document store of its own"
    async with http_of(service) as http, over_http(service, None) as agent:
        stored = (await agent.call("attach_file", name="notes.md", text=f"# Vacation\n\n{TEXT}")).structured_content
        before = {one.id for one in await flowise_client.list_document_stores()}
        started = await agent.session(
            "start_session",
            requirement=requirement,
            attachments=[stored["id"]],
            test_questions=["How many days of vacation does Zurich have?"],
        )
        planned = await ok(await http.get(f"/sessions/{started['session']['thread_id']}"))
        (store,) = planned["interrupt"]["data"]["contract"]["document_stores"]
        assert store["files"] == ["notes.md"]
        tested = await answer(http, planned, action="approve")
        assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
        assert tested["interrupt"]["data"]["tests"][0]["passed"] is True
        listed = (await agent.call("list_document_stores")).structured_content
        (made,) = [one for one in listed["stores"] if one["id"] not in before]
        assert made["chunks"] == 1

        done = await answer(http, tested, action="rollback")
        assert done["outcome"] == "rolled_back"
        assert made["id"] not in (await http.get("/document-stores")).text


@pytest.mark.nightly
@pytest.mark.parametrize(
    "wanted",
    [
        {"design": ASSISTANT},
        {
            "design": {
                "name": "Photos",
                "kind": "steps",
                "model": "gpt-4o",
                "steps": [{"kind": "answer", "prompt": "You answer questions about photos."}],
            }
        },
    ],
    ids=["chatflow", "agentflow"],
)
async def test_a_photo_is_seen_by_the_model_of_the_flow_in_its_test(
    shared_service: SharedService, standin: ModelStandIn, wanted: dict[str, Any]
) -> None:
    question = f"What is in this picture {uuid4().hex[:6]}?"
    seen = f"[image/png, {len(PNG)} bytes]"
    standin.script(lambda request: question in request.prompt and seen in request.prompt, "One transparent pixel.")
    service = await shared_service()
    async with http_of(service) as http:
        stored = (await http.post("/attachments", files={"file": ("photo.png", PNG)})).json()
        assert (stored["facts"]["kind"], stored["facts"]["pixels"]) == ("image", [1, 1])
        body = {**wanted, "attachments": [stored["id"]], "test_questions": [question]}
        planned = await ok(await http.post("/sessions?wait=60", json=body))
        contract = planned["interrupt"]["data"]["contract"]
        assert [one["param"].rpartition(".")[2] for one in contract["values"] if one["value"] is True] == [
            "allowImageUploads"
        ], planned["interrupt"]["message"]
        tested = await answer(http, planned, action="approve")
        assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
        (test,) = tested["interrupt"]["data"]["tests"]
        assert (test["passed"], test["answer"]) == (True, "One transparent pixel.")
        await answer(http, tested, action="rollback")


def mood_bot(mark: str) -> dict[str, Any]:
    """What a model answers in each phase for the bot that judges moods; its tests and examples are code's work."""
    types = {"chatOpenAI_0": "chatOpenAI", "bufferMemory_0": "bufferMemory", "conversationChain_0": "conversationChain"}
    ops: list[dict[str, Any]] = [
        {"op_type": "AddNode", "node_name": name, "node_id": id_, "params": {}} for id_, name in types.items()
    ]
    ops += [
        {"op_type": "Connect", "source_node_id": source, "target_node_id": "conversationChain_0", "target_anchor": at}
        for source, at in (("chatOpenAI_0", "model"), ("bufferMemory_0", "memory"))
    ]
    plan = {
        "goal": f"Judge moods {mark}",
        "flow_name": f"Moods {mark}",
        "nodes": [{"node_id": id_, "node_name": name, "purpose": name} for id_, name in types.items()],
        "steps": ["Add and connect the nodes."],
        "credential_requirements": ["openAIApi"],
        "parts": [{"id": f"p{n}", "state": "covered", "nodes": ["conversationChain_0"]} for n in range(1, 10)],
    }
    intent = {"operation": "create", "target_hint": None, "ambiguity": 0, "questions": [], "title": "Moods"}
    return {"classify": intent, "plan": plan, "patch": {"ops": ops}, "judge": DONE}


@pytest.mark.nightly
async def test_examples_are_in_the_prompt_of_the_flow_and_a_table_of_questions_tests_it(
    shared_service: SharedService, standin: ModelStandIn
) -> None:
    mark = uuid4().hex[:6]
    script(standin, mood_bot(mark), when=mark)
    standin.script(lambda request: f"What a day {mark}" in request.prompt and "Output: good" in request.prompt, "good")
    service = await shared_service(**model_environment(standin))
    async with http_of(service) as http:
        examples = (f"moods {mark}.csv", b"input,output\nI love it,good\nI hate it,bad\n")
        questions = ("questions.csv", f"question,expected\nWhat a day {mark},good\n".encode())
        ids = [(await http.post("/attachments", files={"file": file})).json()["id"] for file in (examples, questions)]
        body = {
            "requirement": "Build a bot with GPT-4o that says whether a message is good or bad. Use the attached "
            "examples, and test with the attached questions",
            "attachments": ids,
        }
        planned = await ok(await http.post("/sessions?wait=60", json=body))
        contract = planned["interrupt"]["data"]["contract"]
        assert [one["turns"] for one in contract["tests"]] == [[f"What a day {mark}"]], planned["interrupt"]["message"]
        assert contract["flow_name"] == f"Moods {mark}"
        assert [one["expect"]["contains"] for one in contract["tests"]] == [["good"]]
        assert ["Input: I hate it\nOutput: bad" in str(one["value"]) for one in contract["values"]].count(True) == 1
        assert [one["node_name"] for one in contract["nodes"] if "File" in one["node_name"]] == []
        tested = await answer(http, planned, action="approve")
        assert tested["interrupt"]["type"] == "result_review", tested["interrupt"]["message"]
        (test,) = tested["interrupt"]["data"]["tests"]
        assert (test["passed"], test["answer"]) == (True, "good")
        await answer(http, tested, action="rollback")
