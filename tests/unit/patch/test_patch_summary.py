"""What prompts get to see of a flow."""

import json

from flowise_dev_agent.patch import AddNode, GraphIR, PatchOp, Schemas, SetParam, compile_ops, outline, summarize
from tests.fixtures.golden_flows import NOWHERE, rag


def _graph(schemas: Schemas, *more: PatchOp) -> GraphIR:
    return compile_ops(GraphIR.empty(), [*rag(NOWHERE), *more], schemas).graph


def test_summary_names_ids_settings_outputs_and_connections(schemas: Schemas) -> None:
    text = summarize(_graph(schemas, AddNode(node_name="stickyNote", node_id="note", params={"note": "hi"})))

    lines = text.splitlines()
    assert lines[0] == "7 nodes:"
    assert "- chatOpenAI_0 (chatOpenAI) 'OpenAI': modelName='gpt-4o', streaming=false, credential bound" in lines
    assert "- memoryVectorStore_0 (memoryVectorStore) 'In-Memory Vector Store': topK=2, gives retriever" in lines
    assert "- plainText_0.document -> memoryVectorStore_0.document" in lines
    assert lines[-1] == "1 sticky note"


def test_the_model_of_a_node_is_named_also_where_it_is_the_stored_default(schemas: Schemas) -> None:
    ops = [AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0")]
    graph = compile_ops(GraphIR.empty(), ops, schemas).graph
    default = schemas["chatOpenAI"].defaults["modelName"]
    assert f"modelName={default!r}" in summarize(graph)


def test_summary_holds_no_long_texts_credentials_or_secrets(schemas: Schemas) -> None:
    prompt = "Answer as a pirate. " * 20
    text = summarize(
        _graph(
            schemas,
            SetParam(node_id="conversationalRetrievalQAChain_0", param_name="responsePrompt", value=prompt),
            SetParam(node_id="chatOpenAI_0", param_name="basepath", value="http://x/?key=sk-abcdefghijklmnopqrstuvwx"),
        )
    )

    assert "responsePrompt=(text of 400 characters)" in text
    assert NOWHERE["openAIApi"] not in text
    assert "sk-abc" not in text


def test_summary_is_bounded(schemas: Schemas) -> None:
    graph = _graph(schemas)

    for limit in (200, 400, 900):
        text = summarize(graph, limit)
        assert len(text) <= limit
        assert text.splitlines()[-1].endswith("more lines")


def test_an_edge_that_somebody_drew_to_a_note_is_no_part_of_the_outline(schemas: Schemas) -> None:
    document = _graph(schemas, AddNode(node_name="stickyNote", node_id="note")).document
    document["edges"].append({"source": "note", "sourceHandle": "", "target": "chatOpenAI_0", "targetHandle": ""})

    assert not any("note" in line for line in outline(GraphIR(document)))


def test_one_node_with_a_long_title_or_many_rows_leaves_room_for_the_others(schemas: Schemas) -> None:
    document = json.loads(compile_ops(GraphIR.empty(), rag(NOWHERE), schemas).flow_data)
    first = document["nodes"][0]["data"]
    first["label"] = "L" * 10_000
    first["inputs"]["rows"] = [{"key": f"row {number}"} for number in range(2_000)]

    text = summarize(GraphIR(document))

    assert len(text) <= 4000
    assert all(f"- {node['id']} (" in text for node in document["nodes"])
