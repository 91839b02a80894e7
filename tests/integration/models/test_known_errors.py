"""Failures made on a real Flowise: each is explained by its own cause of `known_errors.toml`."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx2
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn, StandInFailure
from flowise_dev_agent.patch import BindCredential, GraphIR, PatchOp, Schemas, compile_ops
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.testing import playbook
from tests.fixtures.editor_flows import MODEL, add, bound, connect
from tests.fixtures.trial_flows import TRIAL_FLOWS

AT_ONCE = 4
FILE = "data:text/plain;base64,aGVsbG8=,filename:a.txt"
#: Cause, category of the node, its type, and fields that matter.
NODES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("pdf", "loader", "pdfFile", {"pdfFile": FILE}),
    ("zip", "loader", "docxFile", {"docxFile": FILE}),
    ("office", "loader", "microsoftWord", {"docxFile": FILE}),
    ("json_file", "loader", "jsonFile", {"jsonFile": FILE}),
    ("folder", "loader", "folderFiles", {"folderPath": "no/such/folder"}),
    ("github", "loader", "github", {"repoLink": "my repository"}),
    ("drive", "loader", "googleDrive", {}),
    ("url", "loader", "gitbook", {"webPath": "x"}),
    ("js_name", "loader", "customDocumentLoader", {"javascriptFunction": "return nobody"}),
    ("refused_connection", "loader", "apiLoader", {"url": "http://127.0.0.1:9"}),
    ("refused_connection", "store", "postgres", {"host": "127.0.0.1", "port": "9", "database": "x"}),
    ("chroma", "store", "chroma", {"collectionName": "x", "chromaURL": "http://127.0.0.1:9"}),
    ("faiss", "store", "faiss", {"basePath": "x"}),
    ("mcp_config", "tool", "customMCP", {"mcpServerConfig": '{"a":', "mcpActions": '["a"]'}),
    ("mcp_command", "tool", "supergatewayMCP", {"arguments": "--sse x", "mcpActions": '["a"]'}),
    ("oauth", "tool", "gmail", {"gmailType": "drafts", "draftActions": '["listDrafts"]'}),
    ("custom_tool", "tool", "customTool", {"selectedTool": "4aeb133f-bd01-475d-b386-78e251be6bad"}),
    ("uuid", "tool", "customTool", {"selectedTool": "weather"}),
    ("redis", "memory", "RedisBackedChatMemory", {}),
    ("mongodb", "memory", "MongoDBAtlasChatMemory", {"databaseName": "x", "collectionName": "x"}),
    ("model_of_its_own", "model", "chatPerplexity", {"model": "sonar"}),
]
#: What the provider answers, and the cause.
PROVIDERS = [
    (400, "Invalid 'tools[0].function.name': string does not match pattern.", "tool_name"),
    (400, "This model's maximum context length is 8192 tokens", "context_length"),
    (400, "Unsupported parameter: 'temperature' is not supported with this model", "parameter"),
    (400, "`temperature` is deprecated for this model.", "parameter"),
    (400, "Your organization must be verified to generate reasoning summaries.", "verified"),
    (400, "Your request was rejected by the content policy", "policy"),
    (401, "Incorrect API key provided: no-key", "key"),
    (403, "Country, region, or territory not supported", "region"),
    (404, "The model `gpt-9` does not exist or you do not have access to it.", "model_name"),
    (413, "Request too large for model", "context_length"),
]


#: The beginning of the name of a trial flow that fails, and the cause.
TRIALS = {
    "the summary of conversationSummaryMemory in conversationChain on chatAnthropic": "summary_memory",
    "examples and a parser": "one_question",
    "toolAgent on gpt-5.4 with {'reasoning'": "effort_and_tools",
    "claude-sonnet-4-6 with {'topP'": "parameter",
    "no memory after another model": "no_message",
}


class Server:
    """Asks a flow once and says what failed."""

    def __init__(self, http: httpx2.AsyncClient, bind: Mapping[str, str], schemas: Schemas) -> None:
        self._http = http
        self.bind = bind
        self._schemas = schemas
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def failure(self, ops: list[PatchOp], kind: str = "CHATFLOW") -> str:
        text = compile_ops(GraphIR.empty(), ops, self._schemas).flow_data
        async with self._gate:
            body = {"name": "error", "type": kind, "flowData": text}
            flow = (await self._http.post("/chatflows", json=body)).raise_for_status().json()["id"]
            try:
                return str(
                    (await self._http.post(f"/prediction/{flow}", json={"question": "hi"})).json().get("message")
                )
            finally:
                await self._http.delete(f"/chatflows/{flow}")

    def node(self, name: str, **params: Any) -> list[PatchOp]:
        """A node with what it needs, and a credential of its type that opens nothing."""
        schema = self._schemas[name]
        needed = {
            entry["name"]: "x"
            for entry in schema.definitions.visible_params(schema.new_inputs())
            if not entry.get("optional") and entry["type"] in ("string", "password", "asyncOptions", "code")
            if is_empty(schema.defaults.get(entry["name"]))
        }
        made: list[PatchOp] = [add(name, **{**needed, **params})]
        credential = next((self.bind[one] for one in schema.credential_names if one in self.bind), None)
        return [*made, BindCredential(node_id=f"{name}_0", credential_id=credential)] if credential else made

    def flow(self, kind: str, name: str, params: dict[str, Any]) -> list[PatchOp]:
        node, model = self.node(name, **params), [add("chatOpenAI", **MODEL), bound(self.bind, "chatOpenAI_0")]
        if kind == "model":
            chain = [add("llmChain"), add("promptTemplate", template="Say {a}")]
            return [*node, *chain, connect(f"{name}_0", "llmChain_0", "model"),
                    connect("promptTemplate_0", "llmChain_0", "prompt")]  # fmt: skip
        if kind == "memory":
            ends = [connect("chatOpenAI_0", "conversationChain_0", "model")]
            return [
                *model,
                *node,
                add("conversationChain"),
                *ends,
                connect(f"{name}_0", "conversationChain_0", "memory"),
            ]
        if kind == "tool":
            parts = [add("toolAgent"), add("bufferMemory"), connect("chatOpenAI_0", "toolAgent_0", "model")]
            ends = [connect("bufferMemory_0", "toolAgent_0", "memory"), connect(f"{name}_0", "toolAgent_0", "tools")]
            return [*model, *node, *parts, *ends]
        chain = "conversationalRetrievalQAChain"
        store = node if kind == "store" else [add("memoryVectorStore")]
        loader = node if kind == "loader" else [add("plainText", text="Lunch is at noon.")]
        in_store = name if kind == "store" else "memoryVectorStore"
        return [
            *model, *store, *loader, add(chain), add("openAIEmbeddings"), bound(self.bind, "openAIEmbeddings_0"),
            connect(f"{name if kind == 'loader' else 'plainText'}_0", f"{in_store}_0", "document"),
            connect("openAIEmbeddings_0", f"{in_store}_0", "embeddings"),
            connect(f"{in_store}_0", f"{chain}_0", "vectorStoreRetriever"),
            connect("chatOpenAI_0", f"{chain}_0", "model"),
        ]  # fmt: skip


@pytest.fixture
async def server(flowise: FlowiseAccess, schemas: Schemas) -> AsyncIterator[Server]:
    headers = {"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"}
    url = f"{flowise.endpoint}/api/v1"
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False) as http:
        types = {entry["name"]: entry for entry in (await http.get("/components-credentials")).json()}
        wanted = {schemas[name].credential_names[0] for _, _, name, _ in NODES if schemas[name].credential_names}
        made: dict[str, str] = {}
        for type_ in sorted(wanted - flowise.credentials.keys()):
            made[type_] = str(uuid5(NAMESPACE_URL, f"known error {type_}"))
            plain = {entry["name"]: "not a key" for entry in types[type_]["inputs"]}
            body = {"id": made[type_], "name": type_, "credentialName": type_, "plainDataObj": plain}
            (await http.post("/credentials", json=body)).raise_for_status()
        yield Server(http, {**flowise.credentials, **made}, schemas)
        for id_ in made.values():
            await http.delete(f"/credentials/{id_}")


async def test_failures_of_nodes_are_explained_by_their_cause(server: Server) -> None:
    async def cause(kind: str, name: str, params: dict[str, Any]) -> tuple[str | None, str]:
        text = await server.failure(server.flow(kind, name, params))
        known = playbook.known(text)
        return known.cause if known else None, text

    found = await asyncio.gather(*(cause(kind, name, params) for _, kind, name, params in NODES))

    wrong = {name: got for (wanted, _, name, _), got in zip(NODES, found, strict=True) if got[0] != wanted}
    assert wrong == {}


async def test_failures_of_nodes_together_are_explained_by_their_cause(server: Server) -> None:
    async def cause(name: str) -> str | None:
        trial = next(one for one in TRIAL_FLOWS if one.name.startswith(name) and one.fails)
        known = playbook.known(await server.failure(trial.build(server.bind), trial.kind))
        return known.cause if known else None

    found = await asyncio.gather(*map(cause, TRIALS))
    assert dict(zip(TRIALS, found, strict=True)) == TRIALS

    parsed = [*server.flow("model", "chatOpenAI", MODEL), add("customListOutputParser", length=5)]
    text = await server.failure([*parsed, connect("customListOutputParser_0", "llmChain_0", "outputParser")])
    assert (known := playbook.known(text)), text
    assert known.cause == "answer_parse"


async def test_services_that_cannot_be_reached_and_inputs_that_are_no_list_are_known(server: Server) -> None:
    chain = "conversationChain"
    redis = [
        *server.node("chatOpenAI", **MODEL),
        add("RedisBackedChatMemory"),
        add(chain),
        connect("chatOpenAI_0", f"{chain}_0", "model"),
        connect("RedisBackedChatMemory_0", f"{chain}_0", "memory"),
    ]
    fields = {"startInputType": "chatInput"}
    each = {"iterationInput": '{"items": [1]}'}
    steps = [
        add("startAgentflow", **fields),
        add("iterationAgentflow", **each),
        connect("startAgentflow_0", "iterationAgentflow_0", ""),
    ]
    texts = [
        await server.failure(redis),
        await server.failure(server.flow("store", "pinecone", {"pineconeIndex": "x"})),
        await server.failure(steps, "AGENTFLOW"),
    ]
    known = [playbook.known(text) for text in texts]
    assert [one and one.cause for one in known] == ["redis", "pinecone", "iteration_input"], texts


async def test_failures_of_providers_are_explained_by_their_cause(server: Server, standin: ModelStandIn) -> None:
    for status, words, cause in PROVIDERS:
        standin.reset()
        standin.script(lambda _: True, StandInFailure.http(status, words))
        text = await server.failure(server.flow("tool", "calculator", {}))
        known = playbook.known(text)
        assert known is not None, text
        assert known.cause == cause, text


async def test_a_flow_runs_with_a_marked_file_where_the_person_will_put_one(server: Server) -> None:
    async def failure(name: str, param: str) -> str:
        more = {"pointerName": "text"} if name == "jsonlinesFile" else {}
        return await server.failure(server.flow("loader", name, {**more, param: "[PLACEHOLDER: the house rules]"}))

    loaders = {
        "pdfFile": "pdfFile",
        "docxFile": "docxFile",
        "microsoftWord": "docxFile",
        "microsoftExcel": "excelFile",
        "textFile": "txtFile",
        "csvFile": "csvFile",
        "jsonFile": "jsonFile",
        "jsonlinesFile": "jsonlinesFile",
        "fileLoader": "file",
    }
    failures = await asyncio.gather(*(failure(name, param) for name, param in loaders.items()))
    assert dict(zip(loaders, failures, strict=True)) == dict.fromkeys(loaders, "None")
