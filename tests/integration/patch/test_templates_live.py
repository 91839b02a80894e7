"""The templates that the server itself brings, taken apart, built again and asked again.

Nothing of them is kept here: they come from the running server. What its own version removed from under them is listed.
"""

import json
from typing import Any

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.compiler import compile_ops
from flowise_dev_agent.patch.decompiler import decompile
from flowise_dev_agent.patch.findings import errors
from flowise_dev_agent.patch.flow_diff import diff
from flowise_dev_agent.patch.graph import FlowNode, GraphIR
from flowise_dev_agent.patch.ops import PatchOp
from flowise_dev_agent.patch.schema import Schemas
from flowise_dev_agent.patch.validator import validate_flow
from flowise_dev_agent.patch.values import is_empty
from tests.fixtures.golden_flows import agentflow

KINDS = {"Chatflow": "CHATFLOW", "AgentflowV2": "AGENTFLOW"}
#: Node types that 3.1.4 removed, by template.
REMOVED_NODES = {"CSV Agent": "csvAgent", "ReAct Agent": "reactAgentChat"}
#: Fields that 3.1.4 removed.
REMOVED_FIELDS = {"imageResolution"}
#: Outputs that 3.1.4 renamed: the node gives the same under another name.
RENAMED_OUTPUTS = {
    ("pineconeLlamaIndex_0", "pineconeLlamaIndex"): "retriever",
    ("github_0", "github"): "document",
}
#: What templates are published without.
LACKING = {"CREDENTIAL_UNBOUND", "NESTED_CREDENTIAL_UNBOUND", "REQUIRED_PARAM_MISSING"}
BROKEN = {
    "CSV Agent": {"UNKNOWN_NODE_NAME"},
    "ReAct Agent": {"UNKNOWN_NODE_NAME"},
    # Their edge leaves at the handle of a former version: the editor does not draw it.
    "Context Chat Engine": {"BAD_SOURCE_HANDLE"},
    "Query Engine": {"BAD_SOURCE_HANDLE"},
}
#: Fields that people fill in themselves, by template.
REQUIRED = {
    "Context Chat Engine": {"textFile_0.txtFile", "pineconeLlamaIndex_0.pineconeIndex"},
    "Conversational Retrieval QA Chain": {
        "textFile_0.txtFile",
        "faiss_0.basePath",
        "documentStore_0.selectedStore",
    },
    "CSV Agent": {"csvAgent_0.csvFile"},
    "Local QnA": {"textFile_0.txtFile"},
    "OpenAI Assistant": {"openAIAssistant_0.selectedAssistant", "customTool_0.selectedTool"},
    "OpenAPI YAML Agent": {
        "openAPIToolkit_0.openApiFile",
        "openAPIToolkit_0.selectedServer",
        "openAPIToolkit_0.selectedEndpoints",
    },
    "Query Engine": {"pineconeLlamaIndex_0.pineconeIndex"},
    "SQL DB Chain": {"sqlDatabaseChain_0.url"},
    "Interacting With API": {
        "httpAgentflow_0.url",
        "agentAgentflow_1.agentTools[0].agentSelectedToolConfig.openApiFile",
        "agentAgentflow_1.agentTools[0].agentSelectedToolConfig.selectedServer",
        "agentAgentflow_1.agentTools[0].agentSelectedToolConfig.selectedEndpoints",
    },
}
#: Templates that need no service but a model, which the stand-in answers for once each model is OpenAI's.
ANSWERING = {
    "Agents Handoff",
    "Conversation Chain",
    "Input Moderation",
    "Iterations",
    "List Output Parser",
    "Prompt Chaining",
    "Structured Output",
    "Supervisor Worker",
    "Translator",
}


async def _templates(client: FlowiseClient) -> dict[str, tuple[str, GraphIR]]:
    rows = [row for row in await client.list_templates() if row["type"] in KINDS]
    return {row["templateName"]: (KINDS[row["type"]], GraphIR.from_flow_data(row["flowData"])) for row in rows}


def _rebuilt(graph: GraphIR, schemas: Schemas, gone: set[str]) -> GraphIR:
    ops = [op for op in decompile(graph, schemas) if not gone & _ids(op)]
    result = compile_ops(GraphIR.empty(), ops, schemas)
    again = compile_ops(GraphIR.empty(), decompile(result.graph, schemas), schemas)
    assert again.flow_data == result.flow_data
    return result.graph


def _ids(op: PatchOp) -> set[str]:
    return {str(value) for key, value in op.model_dump().items() if key.endswith("node_id")}


def _fields(node: FlowNode) -> dict[str, Any]:
    return {name: value for name, value in node.inputs.items() if not is_empty(value) and name not in REMOVED_FIELDS}


def _connections(graph: GraphIR, gone: set[str]) -> set[tuple[str, str, str, str]]:
    return {
        (
            edge.source,
            RENAMED_OUTPUTS.get((edge.source, edge.output_name), edge.output_name),
            edge.target,
            edge.input_name,
        )
        for edge in graph.edges
        if not gone & {edge.source, edge.target}
    }


async def test_every_template_comes_back_with_the_same_nodes_fields_and_connections(
    flowise_client: FlowiseClient,
) -> None:
    schemas = (await NodeStore.from_server(flowise_client)).schemas
    templates = await _templates(flowise_client)

    for name, (_, graph) in templates.items():
        gone = {node.id for node in graph.nodes if node.name == REMOVED_NODES.get(name)}
        rebuilt = _rebuilt(graph, schemas, gone)
        assert len(gone) == (name in REMOVED_NODES), name
        assert {node.id for node in rebuilt.nodes} == {node.id for node in graph.nodes} - gone, name
        for node in rebuilt.nodes:
            old = graph.node(node.id)
            assert old is not None
            wires = {anchor["name"] for anchor in [*node.anchors, *old.anchors]} if gone else set[str]()
            kept = {key: value for key, value in _fields(old).items() if key not in wires}
            assert {key: value for key, value in _fields(node).items() if key not in wires} == kept, (name, node.id)
            for key in ("position", "parentNode", "extent", "type"):
                assert node.raw.get(key) == old.raw.get(key), (name, node.id, key)
            assert (node.label, node.credential) == (old.label, old.credential), (name, node.id)
        assert _connections(rebuilt, gone) == _connections(graph, gone), name
        if graph.kind == "AGENTFLOW":
            edges = {edge.raw["id"]: edge.raw for edge in rebuilt.edges}
            for edge in graph.edges:
                stored = {key: value for key, value in edge.raw.items() if key != "selected"}
                assert edges[edge.raw["id"]] == stored, name
    assert len(templates) == 37


async def test_templates_have_no_error_beyond_what_they_are_published_without(flowise_client: FlowiseClient) -> None:
    schemas = (await NodeStore.from_server(flowise_client)).schemas

    for name, (kind, graph) in (await _templates(flowise_client)).items():
        found = errors(validate_flow(graph.to_flow_data(), schemas=schemas, credentials=None, kind=kind))
        assert {finding.code for finding in found} - LACKING == BROKEN.get(name, set()), name
        missing = {f"{f.where}.{f.field}" for f in found if f.code == "REQUIRED_PARAM_MISSING"}
        assert missing == REQUIRED.get(name, set()), name


@pytest.mark.parametrize("name", sorted(ANSWERING))
async def test_a_template_that_answers_answers_the_same_after_its_round_trip(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, standin: ModelStandIn, name: str
) -> None:
    schemas = (await NodeStore.from_server(flowise_client)).schemas
    kind, template = (await _templates(flowise_client))[name]
    graph = GraphIR(_with_credentials(template, flowise.credentials["openAIApi"]))
    rebuilt = _rebuilt(graph, schemas, set())

    before = await _answer(flowise_client, standin, name, kind, graph)
    after = await _answer(flowise_client, standin, name, kind, rebuilt)

    assert after == before
    assert not before[0].startswith("Error")
    assert diff(graph, rebuilt).connected == ()


def _with_credentials(graph: GraphIR, credential: str) -> dict[str, Any]:
    """The template with its OpenAI nodes bound, every model of another provider replaced, and nothing streamed."""
    document = json.loads(graph.to_flow_data())

    def bind(value: Any) -> None:
        if isinstance(value, dict):
            for key, item in list(value.items()):
                if key.endswith("ModelConfig") and isinstance(item, dict):
                    owner = key.removesuffix("Config")
                    item["FLOWISE_CREDENTIAL_ID"] = credential
                    if owner != "embeddingModel":
                        value[owner] = item[owner] = "chatOpenAI"
                        item |= {"modelName": "gpt-4o-mini", "streaming": False}
                bind(item)
        elif isinstance(value, list):
            for item in value:
                bind(item)

    for node in document["nodes"]:
        data = node["data"]
        if "openAI" in data["name"] or "OpenAI" in data["name"]:
            data["credential"] = credential
            data["inputs"]["streaming"] = False
        bind(data["inputs"])
    return document


async def _answer(
    client: FlowiseClient, standin: ModelStandIn, name: str, kind: str, graph: GraphIR
) -> tuple[str, int]:
    """What the flow says (or how it fails), and how often it asked a model for it."""
    flow = await client.create_chatflow(
        ChatflowCreate(name=f"template {name}", flow_data=graph.to_flow_data(), type=kind)
    )
    standin.reset()
    # A condition agent wants one of its scenarios back.
    if name == "Agents Handoff":
        standin.script("scenarios", '{"output": "User is asking for refund"}')
    try:
        prediction = await client.predict(flow.id, "What is 12 times 14?", session_id=f"template-{name}")
    except FlowiseError as failure:
        return f"Error: {failure.message.replace(flow.id, 'ID')}", len(standin.requests)
    return prediction.answer, len(standin.requests)


async def test_an_agentflow_with_every_kind_of_branch_runs_as_compiled(
    flowise_client: FlowiseClient, flowise: FlowiseAccess
) -> None:
    schemas = (await NodeStore.from_server(flowise_client)).schemas
    result = compile_ops(GraphIR.empty(), agentflow(flowise.credentials), schemas)
    assert validate_flow(result.flow_data, schemas=schemas, credentials=None, kind="AGENTFLOW") == []

    flow = await flowise_client.create_chatflow(
        ChatflowCreate(name="every branch", flow_data=result.flow_data, type="AGENTFLOW")
    )
    counted = await flowise_client.predict(flow.id, "count", session_id="branches-count")
    anything = await flowise_client.predict(flow.id, "12 times 14", session_id="branches-else")

    assert counted.answer
    assert anything.answer
