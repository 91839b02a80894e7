"""Whatever a plan has beyond an approved one is asked for, and nothing else is."""

from typing import Any

import pytest

from flowise_dev_agent.approval.binding import beyond_approval, capability_of, with_agreed
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.schemas.custom_tools import PlannedTool
from flowise_dev_agent.schemas.document_stores import PlannedStore
from flowise_dev_agent.schemas.plan import NodeCapability, Plan
from tests.unit.agent.rig import plan
from tests.unit.agent.test_plan_binding import CHAT, contract, planned, value

TOOL = PlannedTool(name="price", description="When a price is asked for.", code="return 1")
AGENT = "agentAgentflow_0"
#: A plan that a person approved.
NODES = [planned("chatOpenAI_0"), planned("toolAgent_0"), planned(AGENT, existing=False)]
VALUES = [value("chatOpenAI_0", "temperature", 0.2), value("toolAgent_0", "systemMessage", "Be kind.")]


def agreed(*more: Any, nodes: Any = (), **fields: Any) -> Plan:
    return contract(*NODES, *nodes, **{"credential_requirements": [], "values": [*VALUES, *more], **fields})


def given(value_: Any, *path: str) -> Any:
    return [{"agentSelectedTool": path[0], "agentSelectedToolConfig": {path[1]: value_}}]


def change(node_id: str, *params: str, name: str | None = None) -> dict[str, Any]:
    kind = node_id.rpartition("_")[0] if name is None else name
    return {"nodes": {node_id: {"node_name": kind, "action": "change", "params": [*params, "settings"]}}}


def added(node_id: str) -> dict[str, Any]:
    return {"nodes": {node_id: {"node_name": node_id.rpartition("_")[0], "action": "add", "params": "all"}}}


#: A plan that goes beyond it, and what is asked for then.
BEYOND: dict[str, tuple[Plan, dict[str, Any]]] = {
    "nothing": (agreed(), {}),
    "another text in an approved field": (
        agreed(values=[VALUES[0], value("toolAgent_0", "systemMessage", "Be short.")]),
        {},
    ),
    "less": (contract(NODES[0], values=VALUES[:1], credential_requirements=[]), {}),
    "another field": (
        agreed(value("chatOpenAI_0", "topP", 1)),
        change("chatOpenAI_0", "temperature", "topP"),
    ),
    "a field that is approved of another node": (
        agreed(value("toolAgent_0", "temperature", 1)),
        change("toolAgent_0", "systemMessage", "temperature"),
    ),
    "a node that the plan does not list": (
        agreed(value("bufferMemory_0", "memoryKey", "chat")),
        change("bufferMemory_0", "memoryKey", name=""),
    ),
    "a new node": (agreed(nodes=[planned("bufferMemory_1", existing=False)]), added("bufferMemory_1")),
    "a node that goes": (
        agreed(removals=["calculator_0"]),
        {"nodes": {"calculator_0": {"node_name": "", "action": "remove"}}},
    ),
    "a node that goes instead of being changed": (
        agreed(removals=["toolAgent_0"]),
        {"nodes": {"toolAgent_0": {"node_name": "", "action": "remove"}}},
    ),
    "another type of node": (
        contract(planned("chatOpenAI_0").model_copy(update={"node_name": "chatAnthropic"}), credential_requirements=[]),
        {"nodes": {"chatOpenAI_0": {"node_name": "chatAnthropic", "action": "change", "params": ["settings"]}}},
    ),
    "a node made new under an approved id": (
        contract(planned("toolAgent_0", existing=False), credential_requirements=[]),
        added("toolAgent_0"),
    ),
    "an address": (
        agreed(value(AGENT, "agentModelConfig.basepath", "https://a.example/v1")),
        {"hosts": ["https://a.example"]},
    ),
    "a credential type": (
        agreed(credential_requirements=["awsApi"]),
        {"credentials": [{"node_id": "*", "type": "awsApi"}]},
    ),
    "a new tool with an optional credential": (
        agreed(nodes=[planned("braveSearchAPI_0", existing=False)]),
        added("braveSearchAPI_0")
        | {
            "credentials": [{"node_id": "braveSearchAPI_0", "type": "braveSearchApi"}],
            "tools": [{"node_id": "braveSearchAPI_0", "name": "braveSearchAPI"}],
        },
    ),
    "a server of tools": (
        agreed(nodes=[planned("customMCP_0", existing=False)]),
        added("customMCP_0") | {"tools": [{"node_id": "customMCP_0", "name": "customMCP"}], "code": ["customMCP_0"]},
    ),
    "a tool in a step": (
        agreed(value(AGENT, "agentTools", given("1", "requestsGet", "x"))),
        {"tools": [{"node_id": AGENT, "name": "requestsGet"}]},
    ),
    "a command in a step": (
        agreed(value(AGENT, "agentTools", given('{"command": "npx"}', "customMCP", "mcpServerConfig"))),
        {
            "commands": ['{"command": "npx"}'],
            "code": [AGENT],
            "tools": [{"node_id": AGENT, "name": "customMCP"}],
        },
    ),
    "a file of the server": (
        agreed(nodes=[planned("folderFiles_0", existing=False)], values=[value("folderFiles_0", "folderPath", "/etc")]),
        added("folderFiles_0") | {"files": ["/etc"]},
    ),
    "a new step of code": (
        agreed(nodes=[planned("customFunctionAgentflow_0", existing=False)]),
        added("customFunctionAgentflow_0") | {"code": ["customFunctionAgentflow_0"]},
    ),
    "an existing step of code, without its code": (
        agreed(nodes=[planned("customFunctionAgentflow_0")]),
        change("customFunctionAgentflow_0"),
    ),
    "code of a node that the plan does not list": (
        agreed(value("customFunctionAgentflow_7", "customFunctionJavascriptFunction", "return 1")),
        change("customFunctionAgentflow_7", "customFunctionJavascriptFunction", name="")
        | {"code": ["customFunctionAgentflow_7"]},
    ),
    "a store that is filled": (
        agreed(nodes=[planned("pinecone_0", existing=False), planned("textFile_0", existing=False)]),
        {
            "nodes": added("pinecone_0")["nodes"] | added("textFile_0")["nodes"],
            "credentials": [{"node_id": "pinecone_0", "type": "pineconeApi"}],
            "effects": ["upsert:pinecone_0"],
        },
    ),
    "new documents of a store": (
        agreed(
            nodes=[planned("pinecone_0"), planned("textFile_0")],
            values=[value("textFile_0", "txtFile", "FILE-STORAGE::[a.txt]")],
        ),
        {
            "nodes": change("pinecone_0")["nodes"] | change("textFile_0", "txtFile")["nodes"],
            "effects": ["upsert:pinecone_0"],
        },
    ),
    "a store whose documents stay": (
        agreed(nodes=[planned("pinecone_0"), planned("textFile_0")]),
        {"nodes": change("pinecone_0")["nodes"] | change("textFile_0")["nodes"]},
    ),
    "a document store": (
        agreed(document_stores=[PlannedStore(name="Hours", files=["a.txt"])]),
        {"effects": ["document_store"]},
    ),
    "a type that nobody knows": (agreed(nodes=[planned("unknown_0", existing=False)]), added("unknown_0")),
    "a file of a node that the plan does not list": (
        agreed(value("folderFiles_7", "folderPath", "/etc")),
        change("folderFiles_7", "folderPath", name="") | {"files": ["/etc"]},
    ),
    "a store without documents": (agreed(nodes=[planned("pinecone_0")]), change("pinecone_0")),
    "kinds of uploads": (agreed(uploads=["pdf", "csv"]), {"effects": ["uploads:pdf,csv"]}),
    "no uploads at all": (agreed(uploads=[]), {"effects": ["uploads:"]}),
    "a custom tool": (agreed(new_tools=[TOOL]), {"effects": [f"tool:{TOOL.key}"]}),
}


@pytest.mark.parametrize("case", BEYOND)
def test_p85_what_a_plan_has_beyond_the_approved_one_is_asked_for(case: str, catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wider, asked = BEYOND[case]
    had, wanted = (capability_of(one, catalogue.schemas, base) for one in (agreed(), wider))
    beyond = beyond_approval(wanted, had)
    shown = {} if beyond is None else beyond.model_dump(exclude_defaults=True)
    assert shown == asked
    # What was agreed to stays so in a later plan that has it no more.
    later = with_agreed(had, wanted)
    for name in ("hosts", "commands", "files"):
        assert getattr(later, name) == sorted({*getattr(had, name), *getattr(wanted, name)})


def test_of_a_flow_that_is_made_every_field_is_covered(catalogue: NodeStore) -> None:
    made = capability_of(plan(nodes=[planned("chatOpenAI_0")], values=VALUES[:1]), catalogue.schemas, GraphIR.empty())
    assert made.nodes == {"chatOpenAI_0": NodeCapability(node_name="chatOpenAI", action="change", params="all")}
    changed = capability_of(agreed(), catalogue.schemas, GraphIR.empty())
    kept = with_agreed(changed, made)
    assert (kept.nodes["chatOpenAI_0"].params, kept.nodes["toolAgent_0"].params) == (
        "all",
        ["systemMessage", "settings"],
    )


def test_p85_an_address_that_can_be_read_in_two_ways_is_never_approved(catalogue: NodeStore) -> None:
    wanted = agreed(value(AGENT, "agentModelConfig.basepath", "http://a.example\\@b.example/"))
    assert capability_of(wanted, catalogue.schemas, GraphIR.empty()).hosts == []
