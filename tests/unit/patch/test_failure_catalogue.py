"""The catalogue of ways to break a flow that Flowise 3.1.4 saves with 200: each is caught before a write.

A row is named by the number of its trial. It says what was changed in a good flow, and the code and node by which the
validator must report it. What only shows at run time (the provider's faults, 74 to 77) is not here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from flowise_dev_agent.patch import AddNode, Connect, GraphIR, PatchOp, Schemas, SetParam, compile_ops, validate_flow
from tests.fixtures.editor_flows import prompt_chain
from tests.fixtures.golden_flows import GOLDEN, NOWHERE, agentflow

Flow = dict[str, Any]
Change = Callable[[Flow], object]

UUID = NOWHERE["openAIApi"]
OTHER = "22222222-2222-4222-8222-222222222222"
CREDENTIALS = {UUID: "openAIApi", OTHER: "anthropicApi"}
BUILD = {**GOLDEN, "prompt_chain": prompt_chain, "agentflow": agentflow}


@dataclass(frozen=True)
class Row:
    """`more` are ops that the compiler applies to the good flow before `change` breaks it."""

    trial: str
    what: str
    flow: str
    where: str
    code: str
    change: Change
    more: Sequence[PatchOp] = ()
    severity: str = "error"
    options: Mapping[str, Any] = field(default_factory=dict)


ROWS: list[Row] = []


def row(trial: str, what: str, flow: str, where: str, code: str, change: Change, **more: Any) -> None:
    ROWS.append(Row(trial, what, flow, where, code, change, **more))


# --- Changes -----------------------------------------------------------------------------------------------------


def node(flow: Flow, node_id: str) -> Flow:
    return next(one for one in flow["nodes"] if one["id"] == node_id)


def data(flow: Flow, node_id: str) -> Flow:
    return node(flow, node_id)["data"]


def without(node_id: str, key: str) -> Change:
    return lambda flow: data(flow, node_id).pop(key)


def with_data(node_id: str, /, **values: Any) -> Change:
    return lambda flow: data(flow, node_id).update(values)


def with_inputs(node_id: str, /, **values: Any) -> Change:
    return lambda flow: data(flow, node_id)["inputs"].update(values)


def edge(flow: Flow, source: str, target: str = "") -> Flow:
    return next(one for one in flow["edges"] if one["source"] == source and target in one["target"])


def with_edge(source: str, /, **values: Any) -> Change:
    return lambda flow: edge(flow, source).update(values)


def without_edge(source: str) -> Change:
    return lambda flow: flow["edges"].remove(edge(flow, source))


def cut(*sources: str) -> Change:
    """Disconnect and remove these nodes."""

    def change(flow: Flow) -> None:
        for source in sources:
            for gone in [one for one in flow["edges"] if source in (one["source"], one["target"])]:
                flow["edges"].remove(gone)
                inputs, name = data(flow, gone["target"])["inputs"], gone["targetHandle"].split("-")[2]
                inputs[name] = "" if not isinstance(inputs[name], list) else [
                    item for item in inputs[name] if source not in item
                ]  # fmt: skip
        flow["nodes"] = [one for one in flow["nodes"] if one["id"] not in sources]

    return change


def wired(source: str, target: str, name: str) -> Change:
    """Draw an edge and write its reference, whatever the types say."""

    def change(flow: Flow) -> None:
        entries = [*data(flow, target)["inputAnchors"], *data(flow, target)["inputParams"]]
        anchor = next(one for one in entries if one["name"] == name)
        handle = data(flow, source)["outputAnchors"][0]["id"]
        flow["edges"] = [one for one in flow["edges"] if one["targetHandle"] != anchor["id"]]
        flow["edges"].append(
            {"source": source, "sourceHandle": handle, "target": target, "targetHandle": anchor["id"], "id": "new"}
        )
        reference = f"{{{{{source}.data.instance}}}}"
        data(flow, target)["inputs"][name] = [reference] if anchor.get("list") else reference

    return change


def renamed(old: str, new: str) -> Change:
    return lambda flow: flow.update(json.loads(json.dumps(flow).replace(old, new)))


def emptied(*keep: str) -> Change:
    """Keep these nodes, unconnected."""

    def change(flow: Flow) -> None:
        flow.update(nodes=[one for one in flow["nodes"] if one["id"] in keep], edges=[])
        for one in flow["nodes"]:
            for anchor in one["data"]["inputAnchors"]:
                one["data"]["inputs"][anchor["name"]] = ""

    return change


def both(*changes: Change) -> Change:
    return lambda flow: [change(flow) for change in changes]


CHAIN, MODEL, MEMORY = "conversationChain_0", "chatOpenAI_0", "bufferMemory_0"
SECOND_CHAIN: list[PatchOp] = [
    AddNode(node_name="conversationChain", node_id="conversationChain_1"),
    AddNode(node_name="bufferMemory", node_id="bufferMemory_1"),
    Connect(source_node_id=MODEL, target_node_id="conversationChain_1", target_anchor="model"),
    Connect(source_node_id="bufferMemory_1", target_node_id="conversationChain_1", target_anchor="memory"),
]
SHARED_MEMORY: list[PatchOp] = [
    SECOND_CHAIN[0],
    SECOND_CHAIN[2],
    Connect(source_node_id=MEMORY, target_node_id="conversationChain_1", target_anchor="memory"),
]
CUSTOM_TOOL: list[PatchOp] = [
    AddNode(node_name="customTool", node_id="customTool_0", params={"selectedTool": OTHER}),
    Connect(source_node_id="customTool_0", target_node_id="toolAgent_0", target_anchor="tools"),
]
#: Two tools that are made of each other's chains, beside the way to the answer.
SIDE_TRACK: list[PatchOp] = [
    AddNode(node_name="chainTool", node_id="chainTool_0", params={"name": "a", "description": "b"}),
    AddNode(node_name="toolAgent", node_id="toolAgent_1"),
    Connect(source_node_id="chainTool_0", target_node_id="toolAgent_1", target_anchor="tools"),
    Connect(source_node_id=MODEL, target_node_id="toolAgent_1", target_anchor="model"),
    Connect(source_node_id=MEMORY, target_node_id="toolAgent_1", target_anchor="memory"),
]
LOOSE: list[PatchOp] = [AddNode(node_name="calculator", node_id="calculator_9")]

# --- Chatflows ---------------------------------------------------------------------------------------------------

row("01", "input anchors missing", "chat", MODEL, "DATA_FIELD_MISSING", without(MODEL, "inputAnchors"))
row("02", "fields missing", "chat", CHAIN, "DATA_FIELD_MISSING", without(CHAIN, "inputParams"))
row("03", "fields of one leaf missing", "chat", MEMORY, "DATA_FIELD_MISSING", without(MEMORY, "inputParams"))
row("04", "output anchors missing", "chat", MODEL, "DATA_FIELD_MISSING", without(MODEL, "outputAnchors"))
row("05", "wrong source handle", "chat", MEMORY, "BAD_SOURCE_HANDLE", with_edge(MEMORY, sourceHandle="x"),
    severity="warning")  # fmt: skip
row("05", "wrong target handle", "chat", CHAIN, "BAD_TARGET_HANDLE", with_edge(MEMORY, targetHandle="x"),
    severity="warning")  # fmt: skip
row("06", "edge from nowhere", "chat", CHAIN, "DANGLING_EDGE", with_edge(MEMORY, source="ghost_0"))
row("07", "edge to nowhere", "chat", MEMORY, "DANGLING_EDGE",
    lambda flow: flow["edges"].append({**edge(flow, MEMORY), "target": "ghost_0"}), severity="warning")  # fmt: skip
row("07", "all that follows is gone", "chat", CHAIN, "DANGLING_EDGE",
    lambda flow: flow["edges"].append({**edge(flow, MEMORY), "source": CHAIN, "target": "ghost_0"}))  # fmt: skip
row("08", "edge removed, reference kept", "chat", CHAIN, "REF_WITHOUT_EDGE", without_edge(MODEL))
row("09", "reference to the model removed", "chat", CHAIN, "EDGE_WITHOUT_REF", with_inputs(CHAIN, model=""))
row("09", "reference to a parser removed", "prompt_chain", "llmChain_1", "EDGE_WITHOUT_REF",
    with_inputs("llmChain_1", outputParser=""), severity="warning")  # fmt: skip
row("10", "reference to the memory removed", "chat", CHAIN, "EDGE_WITHOUT_REF", with_inputs(CHAIN, memory=""))
row(
    "11",
    "reference to a node that is not there",
    "chat",
    CHAIN,
    "REF_TO_MISSING_NODE",
    with_inputs(CHAIN, model="{{ghost_0.data.instance}}"),
)
row("12", "memory as model", "chat", CHAIN, "TYPE_MISMATCH", wired(MEMORY, CHAIN, "model"))
row("13", "chain without memory", "chat", CHAIN, "REQUIRED_ANCHOR_UNCONNECTED", cut(MEMORY))
row("14", "credential empty", "chat", MODEL, "CREDENTIAL_UNBOUND", with_data(MODEL, credential=""))
row("15", "credential missing", "chat", MODEL, "CREDENTIAL_UNBOUND", without(MODEL, "credential"))
row("16", "credential by name", "chat", MODEL, "CREDENTIAL_NOT_UUID", with_data(MODEL, credential="my key"))
row(
    "17",
    "credential that the server has not",
    "chat",
    MODEL,
    "CREDENTIAL_UNKNOWN",
    with_data(MODEL, credential="33333333-3333-4333-8333-333333333333"),
)
row(
    "18",
    "credential among the inputs",
    "chat",
    MODEL,
    "CREDENTIAL_MISPLACED",
    both(with_data(MODEL, credential=""), with_inputs(MODEL, FLOWISE_CREDENTIAL_ID=UUID)),
)
row("18", "of another type", "chat", MODEL, "CREDENTIAL_TYPE_MISMATCH", with_data(MODEL, credential=OTHER))
row("19", "key typed in", "chat", MODEL, "SECRET_IN_INPUTS", with_inputs(MODEL, openAIApiKey="sk-" + "a1" * 20))
row("20", "unknown chain", "chat", CHAIN, "UNKNOWN_NODE_NAME", with_data(CHAIN, name="talkingChain"))
row("21", "unknown model", "chat", MODEL, "UNKNOWN_NODE_NAME", with_data(MODEL, name="chatGPT"))
row("22", "name in wrong case", "chat", MODEL, "UNKNOWN_NODE_NAME", with_data(MODEL, name="ChatOpenAI"))
row("23", "cycle through the end", "chat", MODEL, "CYCLE", wired(CHAIN, MODEL, "cache"))
row(
    "24",
    "cycle off the way to the answer",
    "chat",
    "chainTool_0",
    "CYCLE",
    wired("toolAgent_1", "chainTool_0", "baseChain"),
    more=SIDE_TRACK,
    severity="warning",
)
row("25", "node that feeds itself", "chat", CHAIN, "CYCLE", wired(CHAIN, CHAIN, "memory"))
row(
    "25",
    "cycle upstream of the end",
    "tool_agent",
    "calculator_0",
    "CYCLE",
    both(
        lambda flow: data(flow, "calculator_0")["inputAnchors"].append(
            {"id": "calculator_0-input-x-Tool", "name": "x", "type": "Tool"}
        ),
        lambda flow: data(flow, "currentDateTime_0")["inputAnchors"].append(
            {"id": "currentDateTime_0-input-x-Tool", "name": "x", "type": "Tool"}
        ),
        wired("calculator_0", "currentDateTime_0", "x"),
        wired("currentDateTime_0", "calculator_0", "x"),
    ),
)
row("26", "two ends", "chat", "conversationChain_1", "MULTIPLE_ENDING_NODES", lambda _: None, more=SECOND_CHAIN)
row("27", "two ends, one memory", "chat", "conversationChain_1", "MULTIPLE_ENDING_NODES", lambda _: None,
    more=SHARED_MEMORY)  # fmt: skip
row("28", "nothing connected", "chat", "", "NO_ENDING_NODE", emptied(MODEL, MEMORY))
row("29", "a model alone", "chat", MODEL, "ENDING_NODE_KIND", emptied(MODEL))
row("30", "ends in a store", "rag", "memoryVectorStore_0", "ONLY_INDEXES",
    cut("conversationalRetrievalQAChain_0", "bufferMemory_0", "chatOpenAI_0"), severity="warning")  # fmt: skip
row("31", "a chain alone", "chat", CHAIN, "REQUIRED_ANCHOR_UNCONNECTED", emptied(CHAIN))
row("32", "no nodes", "chat", "", "EMPTY_FLOW", emptied())
row("33", "edges missing", "chat", "", "SHAPE", lambda flow: flow.pop("edges"))
row("34", "nodes missing", "chat", "", "SHAPE", lambda flow: flow.pop("nodes"))
row("35", "node without data", "chat", MODEL, "SHAPE", lambda flow: node(flow, MODEL).pop("data"))
row("36", "nodes an object", "chat", "", "SHAPE", lambda flow: flow.update(nodes={}))
row("37", "an empty object", "chat", "", "SHAPE", lambda flow: flow.clear())
row("40", "old version", "chat", MEMORY, "VERSION_DRIFT", with_data(MEMORY, version=1), severity="warning")
row("41", "unknown field", "chat", MEMORY, "UNKNOWN_PARAM", with_inputs(MEMORY, colour="red"), severity="warning")
row("42", "number as words", "chat", MODEL, "NOT_A_NUMBER", with_inputs(MODEL, temperature="hot"))
row("43", "number as object", "chat", MODEL, "NOT_A_NUMBER", with_inputs(MODEL, temperature={"a": 1}))
row("44", "bad JSON", "chat", MODEL, "BAD_JSON", with_inputs(MODEL, baseOptions="{oops"))
row("46", "loose node", "chat", "calculator_9", "ISOLATED_NODE", lambda _: None, more=LOOSE, severity="warning")
row("47", "loose node of unknown type", "chat", "calculator_9", "UNKNOWN_NODE_NAME",
    with_data("calculator_9", name="abacus"), more=LOOSE, severity="warning")  # fmt: skip
row("48", "same node twice", "chat", MEMORY, "DUPLICATE_NODE_ID",
    lambda flow: flow["nodes"].append(json.loads(json.dumps(node(flow, MEMORY)))))  # fmt: skip
row("49", "same edge twice", "chat", CHAIN, "DUPLICATE_EDGE", lambda flow: flow["edges"].append(edge(flow, MEMORY)),
    severity="warning")  # fmt: skip
row("50", "another id inside", "chat", MEMORY, "NODE_ID_MISMATCH", with_data(MEMORY, id="other_0"))
row("51", "no id inside", "chat", MEMORY, "NODE_ID_MISMATCH", without(MEMORY, "id"))
row("52", "category of the end", "chat", CHAIN, "ENDING_NODE_KIND", with_data(CHAIN, category="Tools"))
row(
    "53",
    "two memories",
    "chat",
    CHAIN,
    "ANCHOR_OCCUPIED",
    lambda flow: flow["edges"].append(
        json.loads(json.dumps(edge(flow, MEMORY)).replace("bufferMemory_0", "bufferMemory_9"))
    ),
    more=[AddNode(node_name="bufferMemory", node_id="bufferMemory_9")],
)
row("54", "list where one belongs", "chat", CHAIN, "SINGLE_ANCHOR_IS_LIST",
    with_inputs(CHAIN, memory=["{{bufferMemory_0.data.instance}}"]))  # fmt: skip
row("55", "text where a list belongs", "tool_agent", "toolAgent_0", "LIST_ANCHOR_NOT_LIST",
    with_inputs("toolAgent_0", tools="{{calculator_0.data.instance}}"))  # fmt: skip
row("56", "custom tool not chosen", "tool_agent", "customTool_0", "REQUIRED_PARAM_MISSING",
    with_inputs("customTool_0", selectedTool=""), more=CUSTOM_TOOL)  # fmt: skip
row("57", "custom tool that is gone", "tool_agent", "customTool_0", "UNKNOWN_TOOL", lambda _: None,
    more=CUSTOM_TOOL, options={"server": {"custom tool": {UUID: "weather"}}})  # fmt: skip
row("58", "agent without tools", "tool_agent", "toolAgent_0", "REQUIRED_ANCHOR_UNCONNECTED",
    cut("calculator_0", "currentDateTime_0"))  # fmt: skip
row("59", "agent without model", "tool_agent", "toolAgent_0", "REQUIRED_ANCHOR_UNCONNECTED", cut(MODEL))
row(
    "60",
    "completion model for an agent",
    "tool_agent",
    "toolAgent_0",
    "TYPE_MISMATCH",
    both(wired("openAI_0", "toolAgent_0", "model"), cut(MODEL)),
    more=[AddNode(node_name="openAI", node_id="openAI_0")],
)
row("61", "store without a loader", "rag", "memoryVectorStore_0", "VECTOR_STORE_WITHOUT_DOCUMENT",
    cut("plainText_0", "recursiveCharacterTextSplitter_0"))  # fmt: skip
row("62", "wrong output", "rag", "memoryVectorStore_0", "OUTPUT_SELECTION_MISMATCH",
    with_data("memoryVectorStore_0", outputs={"output": "vectorStore"}))  # fmt: skip
row("63", "unknown output", "rag", "memoryVectorStore_0", "UNKNOWN_OUTPUT",
    with_data("memoryVectorStore_0", outputs={"output": "oracle"}))  # fmt: skip
row("64", "store without embeddings", "rag", "memoryVectorStore_0", "REQUIRED_ANCHOR_UNCONNECTED",
    cut("openAIEmbeddings_0"))  # fmt: skip
row("66", "the end gives a prediction", "llm_chain", "llmChain_0", "ENDING_NODE_OUTPUT",
    with_data("llmChain_0", outputs={"output": "outputPrediction"}))  # fmt: skip
row("67", "inner chain gives itself", "prompt_chain", "llmChain_0", "OUTPUT_SELECTION_MISMATCH",
    with_data("llmChain_0", outputs={"output": "llmChain"}))  # fmt: skip
row("69", "bad JSON of prompt values", "llm_chain", "promptTemplate_0", "BAD_JSON",
    with_inputs("promptTemplate_0", promptValues='{"a": '))  # fmt: skip
row("71", "empty template", "llm_chain", "promptTemplate_0", "REQUIRED_PARAM_MISSING",
    with_inputs("promptTemplate_0", template=""))  # fmt: skip
row("72", "open brace", "llm_chain", "promptTemplate_0", "PROMPT_BRACES",
    with_inputs("promptTemplate_0", template="Say {text"))  # fmt: skip
row("73", "no model named", "chat", MODEL, "REQUIRED_PARAM_MISSING", with_inputs(MODEL, modelName=""))
row("78", "a chatflow as AGENTFLOW", "chat", "", "NO_START_NODE", lambda _: None, options={"kind": "AGENTFLOW"})
row("79", "its nodes in an AGENTFLOW", "chat", CHAIN, "KIND_MISMATCH", lambda _: None, options={"kind": "AGENTFLOW"})
row("80", "an agentflow as CHATFLOW", "agentflow", "llmAgentflow_0", "KIND_MISMATCH", lambda _: None,
    options={"kind": "CHATFLOW"})  # fmt: skip
row("81", "dash in an id", "chat", "buffer-memory", "BAD_NODE_ID", renamed(MEMORY, "buffer-memory"))
row("82", "dot in an id", "chat", "buffer.memory", "BAD_NODE_ID", renamed(MEMORY, "buffer.memory"))
row("83", "inputs missing", "chat", MEMORY, "DATA_FIELD_MISSING", without(MEMORY, "inputs"))
row("84", "null in a list", "tool_agent", "toolAgent_0", "BAD_REFERENCE",
    lambda flow: data(flow, "toolAgent_0")["inputs"]["tools"].append(None))  # fmt: skip

# --- Agentflows --------------------------------------------------------------------------------------------------

AGENT, LLM = "agentAgentflow_0", "llmAgentflow_0"


def config(flow: Flow, node_id: str, key: str) -> Flow:
    return data(flow, node_id)["inputs"][key]


def tool(flow: Flow) -> Flow:
    return data(flow, AGENT)["inputs"]["agentTools"][0]


SEARCH: list[PatchOp] = [
    SetParam(node_id=AGENT, param_name="agentTools", value=[{"agentSelectedTool": "braveSearchAPI"}])
]
row("A01", "model without its config", "agentflow", LLM, "NESTED_CONFIG_MISSING",
    lambda flow: data(flow, LLM)["inputs"].pop("llmModelConfig"))  # fmt: skip
row("A02", "unknown model", "agentflow", LLM, "NESTED_NODE_UNKNOWN", with_inputs(LLM, llmModel="chatGPT"))
row("A04", "model without credential", "agentflow", LLM, "NESTED_CREDENTIAL_UNBOUND",
    lambda flow: config(flow, LLM, "llmModelConfig").pop("FLOWISE_CREDENTIAL_ID"))  # fmt: skip
row("A04", "tool without credential", "agentflow", AGENT, "NESTED_CREDENTIAL_UNBOUND", lambda _: None, more=SEARCH)
row(
    "A05",
    "credential under another key",
    "agentflow",
    LLM,
    "CREDENTIAL_MISPLACED",
    lambda flow: config(flow, LLM, "llmModelConfig").update(
        credential=config(flow, LLM, "llmModelConfig").pop("FLOWISE_CREDENTIAL_ID")
    ),
)
row("A08", "no start", "agentflow", "", "NO_START_NODE", lambda flow: flow.update(
    nodes=[one for one in flow["nodes"] if one["id"] != "startAgentflow_0"], edges=flow["edges"][1:]))  # fmt: skip
row("A09", "two starts", "agentflow", "startAgentflow_1", "MULTIPLE_START_NODES", lambda flow: flow["nodes"].append(
    json.loads(json.dumps(node(flow, "startAgentflow_0")).replace("flow_0", "flow_1"))))  # fmt: skip
row("A10", "node that nothing leads to", "agentflow", AGENT, "UNREACHED_NODE", lambda flow: flow["edges"].remove(
    edge(flow, "conditionAgentflow_0", AGENT)))  # fmt: skip
row(
    "A13",
    "cycle by edges",
    "agentflow",
    LLM,
    "CYCLE",
    lambda flow: flow["edges"].append(
        {
            "source": "humanInputAgentflow_0",
            "sourceHandle": "humanInputAgentflow_0-output-1",
            "target": LLM,
            "targetHandle": LLM,
            "id": "back",
        }
    ),
)
row("A14", "bad option", "agentflow", LLM, "BAD_OPTION", with_inputs(LLM, llmReturnResponseAs="poem"))
row("A15", "bad option of a person's consent", "agentflow", "humanInputAgentflow_0", "BAD_OPTION",
    with_inputs("humanInputAgentflow_0", humanInputDescriptionType="silent"))  # fmt: skip
row("A17", "output of a node that is not there", "agentflow", "directReplyAgentflow_0", "UNKNOWN_VARIABLE",
    with_inputs("directReplyAgentflow_0", directReplyMessage="{{ llmAgentflow_9 }}"), severity="warning")  # fmt: skip
row("A20", "a chatflow's node", "agentflow", AGENT, "KIND_MISMATCH",
    with_data(AGENT, name="toolAgent", category="Agents"))  # fmt: skip
row("A24", "wrong branch", "agentflow", "conditionAgentflow_0", "BAD_SOURCE_HANDLE",
    with_edge("conditionAgentflow_0", sourceHandle="conditionAgentflow_0-output-9"))  # fmt: skip
row("A25", "no branch", "agentflow", "conditionAgentflow_0", "BAD_SOURCE_HANDLE",
    lambda flow: edge(flow, "conditionAgentflow_0").pop("sourceHandle"))  # fmt: skip
row("A26", "loop to nowhere", "agentflow", "loopAgentflow_0", "LOOP_TARGET_UNKNOWN",
    with_inputs("loopAgentflow_0", loopBackToNode="llmAgentflow_9-LLM"))  # fmt: skip
row("A28", "tool without its config", "agentflow", AGENT, "NESTED_CONFIG_MISSING",
    lambda flow: tool(flow).pop("agentSelectedToolConfig"))  # fmt: skip
row("A29", "unknown tool", "agentflow", AGENT, "NESTED_NODE_UNKNOWN",
    lambda flow: tool(flow).update(agentSelectedTool="abacus"))  # fmt: skip

#: Every trial that can be known before a write. What is left of the numbers changes nothing or fails at the provider.
STATIC = {
    *(f"{number:02}" for number in [*range(1, 38), *range(40, 45), *range(46, 65), 66, 67, 69, 71, 72, 73]),
    *(str(number) for number in range(78, 85)),
    *(f"A{number:02}" for number in (1, 2, 4, 5, 8, 9, 10, 13, 14, 15, 17, 20, 24, 25, 26, 28, 29)),
}


def test_every_trial_that_can_be_known_before_a_write_has_a_row() -> None:
    assert {one.trial for one in ROWS} == STATIC


@pytest.mark.parametrize("one", ROWS, ids=lambda one: f"{one.trial}-{one.what}".replace(" ", "_"))
def test_trial_is_caught_before_a_write(schemas: Schemas, one: Row) -> None:
    graph = compile_ops(GraphIR.empty(), BUILD[one.flow](NOWHERE), schemas).graph
    good = graph.kind
    if one.more:
        graph = compile_ops(graph, one.more, schemas).graph
    flow: Flow = json.loads(graph.to_flow_data())
    one.change(flow)

    options: dict[str, Any] = {"kind": good, "credentials": CREDENTIALS, **one.options}
    findings = validate_flow(json.dumps(flow), schemas=schemas, **options)

    found = {(finding.code, finding.where, finding.severity) for finding in findings}
    assert (one.code, one.where, one.severity) in found
    assert all(finding.message for finding in findings)


@pytest.mark.parametrize(
    ("trial", "change"),
    [
        ("68", with_inputs("promptTemplate_0", promptValues="")),
        ("70", with_inputs("promptTemplate_0", promptValues="{}")),
    ],
)
def test_what_the_server_does_rightly_by_itself_is_no_finding(schemas: Schemas, trial: str, change: Change) -> None:
    """A single free variable of a prompt receives the question."""
    flow = json.loads(compile_ops(GraphIR.empty(), GOLDEN["llm_chain"](NOWHERE), schemas).flow_data)
    change(flow)

    assert validate_flow(json.dumps(flow), schemas=schemas, credentials=CREDENTIALS) == [], trial
