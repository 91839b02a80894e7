"""The approved plan binds the ops: nothing outside of it is written, and nothing of it is left out."""

from typing import Any

import pytest
from pydantic import JsonValue

from flowise_dev_agent.approval.amending import amended
from flowise_dev_agent.approval.binding import beyond_approval, capability_of, with_agreed
from flowise_dev_agent.approval.ops import compiled, completed, decided, for_the_model
from flowise_dev_agent.approval.ops_in_plan import outside_plan
from flowise_dev_agent.approval.promises import not_met, untouched
from flowise_dev_agent.knowledge.credential_requirements import required_types
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    Disconnect,
    Finding,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    SetLabel,
    SetParam,
    compile_ops,
)
from flowise_dev_agent.patch.model.equal_values import held
from flowise_dev_agent.patch.model.findings import warning
from flowise_dev_agent.schemas.plan import (
    AmendAnswer,
    Capability,
    CredentialBinding,
    NamedConnection,
    NodeCapability,
    Plan,
    PlannedNode,
    PlannedValue,
    ToolBinding,
)
from tests.unit.agent.rig import plan
from tests.unit.agent.test_update import COLDER, add_flow, drafts, inputs_of, made_for

CHAT: list[PatchOp] = [
    AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
    AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
    AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": "Help with orders."}),
    AddNode(node_name="calculator", node_id="calculator_0"),
    Connect(source_node_id="chatOpenAI_0", target_node_id="toolAgent_0", target_anchor="model"),
    Connect(source_node_id="bufferMemory_0", target_node_id="toolAgent_0", target_anchor="memory"),
    Connect(source_node_id="calculator_0", target_node_id="toolAgent_0", target_anchor="tools"),
]


def value(node_id: str, param: str, wanted: Any, **more: Any) -> PlannedValue:
    return PlannedValue(node_id=node_id, param=param, value=wanted, **more)


def planned(node_id: str, *, existing: bool = True) -> PlannedNode:
    return PlannedNode(node_id=node_id, node_name=node_id.rpartition("_")[0], purpose="x", existing=existing)


def contract(*nodes: PlannedNode, **fields: Any) -> Plan:
    return plan(operation="update", nodes=list(nodes), **fields)


def refused(ops: list[PatchOp], wanted: Plan, catalogue: NodeStore) -> list[str]:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    capability = capability_of(wanted, catalogue.schemas, base)
    found = outside_plan(ops, wanted, capability, catalogue.schemas, base)
    assert all(finding.code == "OUTSIDE_PLAN" and finding.severity == "error" for finding in found)
    return [finding.detail for finding in found]


def unmet(ops: list[PatchOp], wanted: Plan, catalogue: NodeStore) -> list[str]:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    after = compile_ops(base, ops, catalogue.schemas).graph if ops else base
    found = not_met(wanted, base, after)
    assert all(finding.code == "PLAN_NOT_MET" and finding.severity == "error" for finding in found)
    return [finding.detail for finding in found]


MODEL = planned("chatOpenAI_0")


def test_a_new_node_may_have_a_credential_that_its_type_takes_and_need_not_have(catalogue: NodeStore) -> None:
    memory, other = planned("RedisBackedChatMemory_0", existing=False), planned("redisCache_0", existing=False)
    add = AddNode(node_name="RedisBackedChatMemory", node_id="RedisBackedChatMemory_0")
    bind = BindCredential(node_id="RedisBackedChatMemory_0", credential_type="redisCacheUrlApi")
    assert refused([add, bind], contract(memory), catalogue) == []
    wrong = BindCredential(node_id="chatOpenAI_0", credential_type="redisCacheUrlApi")
    assert refused([wrong], contract(MODEL, other), catalogue) != []


def test_a_secret_for_any_address_is_sent_only_where_the_plan_asks_for_it(catalogue: NodeStore) -> None:
    call = planned("httpAgentflow_0", existing=False)
    url = "https://hooks.shop.example/vip"
    add = AddNode(node_name="httpAgentflow", node_id="httpAgentflow_0", params={"method": "POST", "url": url})
    bind = BindCredential(node_id="httpAgentflow_0", credential_type="httpBearerToken")
    wanted = contract(call, values=[value("httpAgentflow_0", "url", url)])
    assert refused([add], wanted, catalogue) == []
    assert refused([add, bind], wanted, catalogue) != []
    asked = wanted.model_copy(update={"credential_requirements": ["httpBearerToken"]})
    assert refused([add, bind], asked, catalogue) == []
    assert required_types([catalogue.schemas["httpAgentflow"]], {"httpBearerToken": 1}) == []
    chosen = {"httpBearerToken": "7c1a7f0e-3c62-4f6c-9a53-0d5f3c8d1b11"}
    start = AddNode(node_name="startAgentflow", node_id="startAgentflow_0")
    other = add.model_copy(update={"node_id": "httpAgentflow_1"})
    alone = compile_ops(GraphIR.empty(), [start, add], catalogue.schemas, credentials=chosen).graph
    both = compile_ops(GraphIR.empty(), [start, add, other], catalogue.schemas, credentials=chosen).graph
    assert [node.credential for node in alone.nodes if node.name == "httpAgentflow"] == [chosen["httpBearerToken"]]
    assert not any(node.credential for node in both.nodes)


@pytest.mark.parametrize(
    ("op", "why"),
    [
        (SetParam(node_id="toolAgent_0", param_name="systemMessage", value="x"), "toolAgent_0 is not part of it"),
        (SetParam(node_id="chatOpenAI_0", param_name="basepath", value="http://203.0.113.9/v1"), "203.0.113.9"),
        (SetParam(node_id="chatOpenAI_0", param_name="basepath", value="evil.example/v1"), "evil.example"),
        (AddNode(node_name="requestsGet", node_id="requestsGet_0"), "requestsGet_0 is not part of it"),
        (AddNode(node_name="chatAnthropic", node_id="chatOpenAI_0"), "not planned as a new node"),
        (Connect(source_node_id="calculator_0", target_node_id="toolAgent_0", target_anchor="tools"), "are not part"),
        (BindCredential(node_id="chatOpenAI_0", credential_type="awsApi"), "a credential of type awsApi"),
    ],
)
def test_p85_an_op_outside_of_the_plan_is_a_finding(op: PatchOp, why: str, catalogue: NodeStore) -> None:
    wanted = contract(MODEL, values=[value("chatOpenAI_0", "temperature", 0.2)])
    good = SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.2)
    assert refused([good], wanted, catalogue) == []
    assert any(why in message for message in refused([good, op], wanted, catalogue))


def test_a_node_that_is_taken_back_leaves_with_its_values_and_with_credentials_that_only_it_needed(
    catalogue: NodeStore,
) -> None:
    agent = planned("agentAgentflow_0", existing=False)
    wanted = contract(
        planned("braveSearchAPI_0", existing=False),
        agent,
        values=[value("braveSearchAPI_0", "x", 1), value("agentAgentflow_0", "agentModel", "chatOpenAI")],
        credential_requirements=["openAIApi", "braveSearchApi"],
    )
    other = planned("calculator_0", existing=False)
    answer = AmendAnswer(nodes=[other], removals=["braveSearchAPI_0", "bufferMemory_0"], reason="It fits no input.")
    plan_now = amended(wanted, answer, [], catalogue.schemas)
    assert plan_now.nodes == [agent, other]
    assert [one.node_id for one in plan_now.values] == ["agentAgentflow_0"]
    assert plan_now.credential_requirements == ["openAIApi"]
    assert plan_now.removals == ["bufferMemory_0"]


def test_p85_a_change_that_names_no_field_of_a_node_allows_none_but_settings(catalogue: NodeStore) -> None:
    agent = planned("toolAgent_0")
    other_text = SetParam(node_id="toolAgent_0", param_name="systemMessage", value="Be a pirate.")
    limit = SetParam(node_id="toolAgent_0", param_name="maxIterations", value=3)
    (why,) = refused([other_text, limit], contract(agent), catalogue)
    assert "`systemMessage` of 'toolAgent_0' is not among the fields that it changes (none)" in why
    named = contract(agent, values=[value("toolAgent_0", "systemMessage", "Be a pirate.")])
    assert refused([other_text], named, catalogue) == []


def test_p85_every_field_of_a_node_that_this_session_added_may_be_repaired(catalogue: NodeStore) -> None:
    added = contract(planned("toolAgent_0", existing=False))
    agreed = capability_of(added, catalogue.schemas, GraphIR.empty())
    repair = contract(planned("toolAgent_0"))
    made = with_agreed(capability_of(repair, catalogue.schemas, GraphIR.empty()), agreed)
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    op = SetParam(node_id="toolAgent_0", param_name="systemMessage", value="Be kind.")
    assert outside_plan([op], repair, made, catalogue.schemas, base) == []
    assert beyond_approval(made, agreed) is None


@pytest.mark.parametrize(
    "more",
    [
        Capability(hosts=["https://evil.example"]),
        Capability(code=["customFunction_0"]),
        Capability(tools=[ToolBinding(node_id="toolAgent_0", name="requestsGet")]),
        Capability(credentials=[CredentialBinding(node_id="*", type="awsApi")]),
        Capability(effects=["document_store"]),
        Capability(nodes={"x_0": NodeCapability(node_name="x", action="remove")}),
    ],
    ids=["host", "code", "tool", "credential", "effect", "node"],
)
def test_p85_whatever_a_plan_may_reach_beyond_the_approved_one_is_asked_for(more: Capability) -> None:
    assert beyond_approval(more, Capability()) == more
    assert beyond_approval(more, more) is None


@pytest.mark.parametrize(
    "op",
    [
        ReplaceNode(node_id="calculator_0", node_name="requestsGet"),
        AddNode(node_name="requestsGet", node_id="calculator_0"),
    ],
)
def test_p85_a_planned_removal_covers_nothing_in_its_place(op: PatchOp, catalogue: NodeStore) -> None:
    assert refused([op], contract(MODEL, removals=["calculator_0"]), catalogue)


def test_p85_a_new_node_is_of_the_planned_type(catalogue: NodeStore) -> None:
    wanted = contract(planned("calculator_1", existing=False))
    (message,) = refused([AddNode(node_name="requestsGet", node_id="calculator_1")], wanted, catalogue)
    assert "planned as calculator" in message


def test_p85_a_planned_replacement_is_covered(catalogue: NodeStore) -> None:
    swap = ReplaceNode(node_id="bufferMemory_0", node_name="bufferWindowMemory", new_node_id="bufferWindowMemory_0")
    wanted = contract(planned("bufferWindowMemory_0", existing=False), removals=["bufferMemory_0"])
    assert refused([swap], wanted, catalogue) == []


def test_a_text_of_brackets_without_end_is_only_a_text(catalogue: NodeStore) -> None:
    deep = SetParam(node_id="chatOpenAI_0", param_name="baseOptions", value="[" * 100_000)
    named = contract(MODEL, values=[value("chatOpenAI_0", "baseOptions", "")])
    (why,) = refused([deep], named, catalogue)
    assert "a part of a request" in why


def test_p85_code_and_tools_need_the_plan_even_on_planned_nodes(catalogue: NodeStore) -> None:
    agent = planned("agentAgentflow_0", existing=False)
    tools: JsonValue = [{"agentSelectedTool": "requestsGet", "agentSelectedToolConfig": {}}]
    giving = AddNode(node_name="agentAgentflow", node_id="agentAgentflow_0", params={"agentTools": tools})
    (message,) = refused([giving], contract(agent), catalogue)
    assert "gives the tool requestsGet" in message
    named = contract(agent, values=[value("agentAgentflow_0", "agentTools", tools)])
    assert refused([giving], named, catalogue) == []
    code = SetParam(node_id="calculator_0", param_name="customFunctionJavascriptFunction", value="return 1")
    function = planned("customFunctionAgentflow_0", existing=False)
    adding = AddNode(
        node_name="customFunctionAgentflow",
        node_id="customFunctionAgentflow_0",
        params={"customFunctionJavascriptFunction": "return 1"},
    )
    assert refused([adding], contract(function), catalogue) == []
    assert refused([code], contract(function), catalogue)


def test_an_address_that_the_plan_has_is_covered(catalogue: NodeStore) -> None:
    tool = planned("requestsGet_0", existing=False)
    url = "https://api.example.org/orders"
    adding = AddNode(node_name="requestsGet", node_id="requestsGet_0", params={"requestsGetUrl": url})
    (message,) = refused([adding], contract(tool), catalogue)
    assert "api.example.org" in message
    assert refused([adding], contract(tool, values=[value("requestsGet_0", "requestsGetUrl", url)]), catalogue) == []


def test_an_address_inside_a_json_text_is_seen(catalogue: NodeStore) -> None:
    server = planned("customMCP_0", existing=False)
    config = '{"url": "http://169.254.169.254/latest"}'
    adding = AddNode(node_name="customMCP", node_id="customMCP_0", params={"mcpServerConfig": config})
    message, command = refused([adding], contract(server), catalogue)
    assert "a command" in command
    assert "169.254.169.254" in message


@pytest.mark.parametrize(
    ("wanted", "ops", "missing"),
    [
        (contract(MODEL, values=[value("chatOpenAI_0", "temperature", 0.2)]), [], "`temperature`"),
        (
            contract(MODEL, values=[value("chatOpenAI_0", "temperature", 0.2)]),
            [SetParam(node_id="chatOpenAI_0", param_name="temperature", value="0.2")],
            None,
        ),
        (contract(planned("chatAnthropic_0", existing=False)), [], "adds chatAnthropic as 'chatAnthropic_0'"),
        (contract(planned("calculator_0"), removals=["calculator_0"]), [RemoveNode(node_id="calculator_0")], None),
        (contract(removals=["calculator_0"]), [], "'calculator_0', and it is still in the flow"),
        (contract(removals=["calculator_0"]), [RemoveNode(node_id="calculator_0")], None),
        (
            contract(planned("bufferWindowMemory_0", existing=False), removals=["bufferMemory_0"]),
            [ReplaceNode(node_id="bufferMemory_0", node_name="bufferWindowMemory")],
            None,
        ),
        (
            contract(MODEL, kept=["chatOpenAI_0"]),
            [SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.1)],
            "keeps 'chatOpenAI_0' unchanged",
        ),
    ],
)
def test_p94_what_the_plan_promises_must_be_in_the_flow(
    wanted: Plan, ops: list[PatchOp], missing: str | None, catalogue: NodeStore
) -> None:
    messages = unmet(ops, wanted, catalogue)
    assert (missing in messages[0]) if missing else (messages == [])


@pytest.mark.parametrize(
    ("stored", "wanted", "same"),
    [
        ('[{"property": "name", "type": "string"}]', [{"property": "name", "type": "string"}], True),
        ([{"tool": "arxiv", "config": {"a": 1, "id": "x"}}], [{"tool": "arxiv", "config": {}}], True),
        ([{"tool": "arxiv"}], [{"tool": "calculator"}], False),
        ([{"tool": "arxiv"}, {"tool": "serper"}], [{"tool": "arxiv"}], False),
        ({"modelName": "gpt-4o", "streaming": True}, {"modelName": "gpt-4o-mini"}, False),
    ],
)
def test_rows_and_settings_may_hold_more_than_the_plan_says(stored: Any, wanted: Any, same: bool) -> None:
    assert held(stored, wanted) is same


def test_a_loop_goes_to_the_planned_step_whatever_its_title(catalogue: NodeStore) -> None:
    ops: list[PatchOp] = [
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", label="Draft"),
        AddNode(node_name="loopAgentflow", node_id="loopAgentflow_0", params={"loopBackToNode": "llmAgentflow_0"}),
    ]
    after = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    for target, problems in (("llmAgentflow_0", 0), ("llmAgentflow_0-LLM 0", 0), ("llmAgentflow_1", 1)):
        wanted = contract(values=[value("loopAgentflow_0", "loopBackToNode", target)])
        assert len(not_met(wanted, GraphIR.empty(), after)) == problems


def test_p84_an_appended_text_leaves_the_old_one_in_place(catalogue: NodeStore) -> None:
    requirement = value("toolAgent_0", "systemMessage", "Answer in French.", mode="append")
    wanted = contract(planned("toolAgent_0"), values=[requirement])

    def setting(text: str) -> list[PatchOp]:
        return [SetParam(node_id="toolAgent_0", param_name="systemMessage", value=text)]

    assert unmet(setting("Help with orders.\nAnswer in French."), wanted, catalogue) == []
    assert "does not have the text" in unmet(setting("Help with orders."), wanted, catalogue)[0]
    assert "loses the text that was there" in unmet(setting("Answer in French."), wanted, catalogue)[0]


async def test_p85_ops_beyond_the_approved_plan_never_reach_the_server() -> None:
    bench = made_for("update")
    bench.reasoner.plans = [plan(operation="update", nodes=[MODEL], values=[value("chatOpenAI_0", "temperature", 0.1)])]
    stolen = SetParam(node_id="chatOpenAI_0", param_name="basepath", value="http://203.0.113.9/v1")
    bench.reasoner.patches = [[*COLDER, stolen], list(COLDER)]
    row = await add_flow(bench)
    await bench.start("make it colder", target=row.id)
    review = await bench.answer(action="approve")
    assert "OUTSIDE_PLAN" in {finding.code for finding in bench.reasoner.seen["patch"][1].findings}
    assert review["type"] == "result_review"
    (draft,) = drafts(bench)
    assert inputs_of(draft, "chatOpenAI_0")["temperature"] == 0.1
    assert all("203.0.113.9" not in flow.flow_data for flow in bench.flowise.flows.values())


@pytest.mark.parametrize(
    "op",
    [
        RemoveNode(node_id="bufferMemory_0"),
        ReplaceNode(node_id="bufferMemory_0", node_name="bufferWindowMemory", new_node_id="bufferWindowMemory_0"),
    ],
)
async def test_p85_a_node_leaves_the_flow_only_when_the_plan_says_so(op: PatchOp) -> None:
    bench = made_for("update")
    # The newcomer is planned, the end of the other one is not.
    nodes = [MODEL, planned("bufferWindowMemory_0", existing=False)] if isinstance(op, ReplaceNode) else [MODEL]
    colder = [value("chatOpenAI_0", "temperature", 0.1)]
    bench.reasoner.plans = [plan(operation="update", nodes=nodes, values=colder, kept=["bufferMemory_0"])]
    bench.reasoner.patches = [[*COLDER, op]]
    row = await add_flow(bench)
    await bench.start("make it colder", target=row.id)
    question = await bench.answer(action="approve")
    assert question["type"] == "patch_review"
    assert "REMOVAL_NOT_PLANNED" in {finding["code"] for finding in question["data"]["findings"]}
    assert [flow.id for flow in bench.flowise.flows.values()] == [row.id]
    assert bench.flowise.flows[row.id] == row


# --- what edits need --------------------------------------------------------------------------------------------------

STEPS = ("llmAgentflow_0", "llmAgentflow_1")
LINE: dict[str, Any] = {"source_node_id": STEPS[0], "target_node_id": STEPS[1]}


def steps(catalogue: NodeStore) -> GraphIR:
    ops: list[PatchOp] = [AddNode(node_name="llmAgentflow", node_id=id_) for id_ in STEPS]
    return compile_ops(
        GraphIR.empty(), [*ops, Connect(source_node_id=STEPS[0], target_node_id=STEPS[1])], catalogue.schemas
    ).graph


def outside(ops: list[PatchOp], wanted: Plan, base: GraphIR, catalogue: NodeStore) -> list[int | None]:
    capability = capability_of(wanted, catalogue.schemas, GraphIR.empty())
    return [one.op_index for one in outside_plan(ops, wanted, capability, catalogue.schemas, base)]


def test_a_new_node_is_connected_with_the_nodes_that_the_plan_lists(catalogue: NodeStore) -> None:
    second = [AddNode(node_name="toolAgent", node_id="toolAgent_1")]
    base = compile_ops(GraphIR.empty(), [*CHAT, *second], catalogue.schemas).graph
    new, agent = planned("requestsGet_0", existing=False), planned("toolAgent_0")

    def line(target: str) -> PatchOp:
        return Connect(source_node_id=new.node_id, target_node_id=target, target_anchor="tools")

    add = AddNode(node_name=new.node_name, node_id=new.node_id)
    assert outside([add, line("toolAgent_0")], contract(new, agent), base, catalogue) == []
    assert outside([add, line("toolAgent_1")], contract(new, agent), base, catalogue) == [1]


def test_a_line_that_the_plan_takes_away_goes(catalogue: NodeStore) -> None:
    base, cut = steps(catalogue), Disconnect(**LINE)
    said = contract(disconnections=[{"source": STEPS[0], "target": STEPS[1]}])
    assert outside([cut], said, base, catalogue) == []
    assert [one.where for one in not_met(said, base, base)] == [STEPS[1]]
    assert not_met(said, base, compile_ops(base, [cut], catalogue.schemas).graph) == []


def test_a_line_that_moves_to_another_branch_is_gone(catalogue: NodeStore) -> None:
    row: dict[str, Any] = {"type": "string", "value1": "a", "operation": "equal", "value2": "b"}
    ends: dict[str, Any] = {"source_node_id": "conditionAgentflow_0", "target_node_id": STEPS[1]}
    ops: list[PatchOp] = [
        AddNode(node_name="conditionAgentflow", node_id="conditionAgentflow_0", params={"conditions": [row]}),
        Connect(**ends, source_anchor="0"),
    ]
    base = compile_ops(steps(catalogue), ops, catalogue.schemas).graph
    moved: list[PatchOp] = [Disconnect(**ends, source_anchor="0"), Connect(**ends, source_anchor="1")]
    said = contract(disconnections=[{"source": "conditionAgentflow_0", "output": "0", "target": STEPS[1]}])
    assert [one.where for one in not_met(said, base, base)] == [STEPS[1]]
    assert not_met(said, base, compile_ops(base, moved, catalogue.schemas).graph) == []


def test_neighbours_of_a_removed_step_are_connected(catalogue: NodeStore) -> None:
    more: list[PatchOp] = [
        AddNode(node_name="directReplyAgentflow", node_id="reply_0"),
        Connect(source_node_id=STEPS[1], target_node_id="reply_0"),
    ]
    base = compile_ops(steps(catalogue), more, catalogue.schemas).graph
    joint = Connect(source_node_id=STEPS[0], target_node_id="reply_0")
    assert outside([RemoveNode(node_id=STEPS[1]), joint], contract(removals=[STEPS[1]]), base, catalogue) == []
    assert outside([joint], contract(), base, catalogue) == [0]


def test_a_kept_node_may_get_a_new_neighbour(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), [AddNode(node_name="llmChain", node_id="llmChain_0")], catalogue.schemas).graph
    ops: list[PatchOp] = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="llmChain_0", target_anchor="model"),
    ]
    kept = contract(planned("chatOpenAI_0", existing=False), kept=["llmChain_0"])
    assert not_met(kept, base, compile_ops(base, ops, catalogue.schemas).graph) == []
    renamed = [*ops, SetParam(node_id="llmChain_0", param_name="chainName", value="x")]
    assert not_met(kept, base, compile_ops(base, renamed, catalogue.schemas).graph) != []


def test_an_amendment_takes_its_nodes_out_of_what_is_kept(catalogue: NodeStore) -> None:
    answer = AmendAnswer(values=[value("toolAgent_0", "systemMessage", "x")], removals=["calculator_0"], reason="x")
    kept = contract(kept=["toolAgent_0", "calculator_0", "bufferMemory_0"])
    assert amended(kept, answer, [], catalogue.schemas).kept == ["bufferMemory_0"]


def test_a_planned_node_that_nothing_changes_is_found(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    new: list[PatchOp] = [
        AddNode(node_name="currentDateTime", node_id="currentDateTime_0"),
        Connect(source_node_id="currentDateTime_0", target_node_id="toolAgent_0", target_anchor="tools"),
    ]
    after = compile_ops(base, new, catalogue.schemas).graph
    both = contract(planned("toolAgent_0"), planned("calculator_0"), planned("currentDateTime_0", existing=False))
    assert [one.where for one in untouched(both, base, after)] == ["calculator_0"]


async def test_what_an_earlier_round_of_the_session_changed_stays_changed(catalogue: NodeStore) -> None:
    original = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    written = SetParam(node_id="toolAgent_0", param_name="systemMessage", value="Be brief.")
    draft = compile_ops(original, [written], catalogue.schemas).graph
    repair = SetParam(node_id="bufferMemory_0", param_name="memoryKey", value="talk")
    plan = contract(planned("toolAgent_0"))

    async def left_out(original: GraphIR | None) -> list[str]:
        made = await compiled([repair], plan, draft, catalogue.schemas, credentials={}, unbound=[], original=original)
        return [one.where for one in made.left_out]

    assert await left_out(original) == []
    assert await left_out(None) == ["toolAgent_0"]


def finding(code: str, where: str = "x_0", severity: str = "warning") -> Finding:
    return Finding.model_validate({"code": code, "severity": severity, "detail": "x", "where": where})


def test_a_node_that_the_change_cuts_off_is_an_error_and_one_that_was_loose_is_not() -> None:
    found = [finding("DEAD_END", "plainText_0"), finding("DEAD_END", "old_0")]
    told = decided(found, [finding("DEAD_END", "old_0")], ops=[], kind="CHATFLOW")
    assert [(one.severity, one.origin) for one in told] == [("error", "new"), ("warning", "base")]
    by_hand = decided(found, [], ops=[], kind="CHATFLOW", by_hand=True)
    assert {one.severity for one in by_hand} == {"warning"}


def test_only_a_node_that_was_there_needs_the_plan_to_be_removed(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph

    def unplanned(*removed: str, plan: Plan) -> list[str]:
        ops = [RemoveNode(node_id=one) for one in removed]
        _, found = completed(ops, plan, base, catalogue.schemas, by_model=False)
        return [one.where for one in found if one.code == "REMOVAL_NOT_PLANNED"]

    assert unplanned("calculator_0", "added_0", plan=contract()) == ["calculator_0"]
    assert unplanned("calculator_0", plan=contract(removals=["calculator_0"])) == []


def test_a_warning_that_the_approved_plan_settles_does_not_go_back(catalogue: NodeStore) -> None:
    def goes_back(plan: Plan, *found: Finding) -> list[str]:
        told = for_the_model(found, [], plan, catalogue.schemas)
        return [one.code for one in told if one.severity == "error"]

    body = finding("HTTP_BODY_BREAKS", "httpAgentflow_0")
    variable = warning("VARIABLE_NOT_ON_SERVER", "x", where="customMCP_0", variable="token")
    empty = finding("VECTOR_STORE_WITHOUT_DOCUMENT", "qdrant_0")
    plan = contract(planned("qdrant_0", existing=False))
    assert goes_back(plan, body, variable, empty) == ["HTTP_BODY_BREAKS", "VARIABLE_NOT_ON_SERVER"]
    told = [body, warning("VARIABLE_TO_CREATE", "x", where="customMCP_0", name="token")]
    assert goes_back(plan.model_copy(update={"findings": told}), body, variable) == []
    # A loader of the plan that is not connected to its store.
    loader = contract(planned("qdrant_0", existing=False), planned("plainText_0", existing=False))
    assert goes_back(loader, empty) == ["VECTOR_STORE_WITHOUT_DOCUMENT"]


def test_an_amended_row_goes_into_the_planned_whole_and_a_whole_replaces_its_rows(catalogue: NodeStore) -> None:
    rows: list[JsonValue] = [{"role": "system", "content": "old"}, {"role": "user", "content": "stays"}]

    def values(planned: dict[str, JsonValue], more: dict[str, JsonValue]) -> dict[str, JsonValue]:
        def of(given: dict[str, JsonValue]) -> list[PlannedValue]:
            return [PlannedValue(node_id="llmAgentflow_0", param=name, value=value) for name, value in given.items()]

        plan = Plan(goal="x", operation="create", flow_name="x", values=of(planned))
        answer = AmendAnswer(reason="more", values=of(more))
        return {one.param: one.value for one in amended(plan, answer, [], catalogue.schemas).values}

    assert values({"llmMessages": rows}, {"llmMessages[0].content": "new"}) == {
        "llmMessages": [{"role": "system", "content": "new"}, {"role": "user", "content": "stays"}]
    }
    assert values({"llmMessages[0].content": "old", "llmModel": "a"}, {"llmMessages": rows}) == {
        "llmModel": "a",
        "llmMessages": rows,
    }
    assert values({"llmMessages[0].content": "old"}, {"llmMessages[0].content": "new"}) == {
        "llmMessages[0].content": "new"
    }


@pytest.mark.parametrize("beside", [{"operation": "copy"}, {"new_name": "B"}, {"starter_questions": []}])
def test_a_plan_that_also_changes_a_line_or_a_value_does_not_leave_the_nodes(beside: dict[str, Any]) -> None:
    bare = contract().model_copy(update=beside)
    assert bare.leaves_nodes
    cold = [value("chatOpenAI_0", "temperature", 0.1)]
    for change in ({"disconnections": [NamedConnection(source="a", target="b")]}, {"values": cold}):
        assert not bare.model_copy(update=change).leaves_nodes


def test_p85_a_title_is_changed_only_by_the_plan(catalogue: NodeStore) -> None:
    rename = SetLabel(node_id="toolAgent_0", label="Approved by security")
    agent = planned("toolAgent_0")
    assert any("title" in why for why in refused([rename], contract(agent), catalogue))
    assert refused([rename], contract(agent.model_copy(update={"label": rename.label})), catalogue) == []
    new = planned("customFunction_0", existing=False)
    add = AddNode(node_name="customFunction", node_id="customFunction_0", label="Sums")
    assert refused([add, SetLabel(node_id="customFunction_0", label="Adds")], contract(new), catalogue) == []
    titled = contract(new.model_copy(update={"label": "Adds"}))
    assert any("title" in why for why in refused([add], titled, catalogue))
