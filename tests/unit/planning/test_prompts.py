"""What each prompt shows: everything that the phase needs, and nothing that does not concern it."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.answer_schemas import answer_schema
from flowise_dev_agent.patch import AddNode, Connect, Finding, GraphIR, NodeSchema, ReplaceNode, SetParam, compile_ops
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.likely import types_with_models
from flowise_dev_agent.planning.prompt_room import room_in
from flowise_dev_agent.planning.prompt_text import previous_plan
from flowise_dev_agent.planning.prompts import judge_prompt, patch_prompt, plan_prompt, step_prompt
from flowise_dev_agent.planning.requests import JudgeRequest, PatchRequest, PlanRequest, ServerNames
from flowise_dev_agent.planning.skills import PACKAGED
from flowise_dev_agent.schemas.plan import (
    Criterion,
    Expectation,
    NamedConnection,
    Part,
    Plan,
    PlannedNode,
    PlannedValue,
    TestCase,
)
from flowise_dev_agent.schemas.verdict import Trace, TraceStep, Trial
from tests.support.requests import UPDATE, flow_of, plan_request


def tag(name: str, prompt: str) -> str:
    """The content of a tag, '' without it."""
    return prompt.partition(f"<{name}>\n")[2].partition(f"\n</{name}>")[0]


def fields(request: PlanRequest, window: int = 200_000) -> list[str]:
    """The node types whose fields the changing part of the plan prompt shows."""
    text = tag("node_fields", plan_prompt(request, room=room_in(window)).user)
    return [line.partition(":")[0] for line in text.splitlines()]


def test_the_planner_knows_which_settings_no_plan_reaches(catalogue: NodeStore) -> None:
    system = plan_prompt(plan_request(catalogue, "voice messages")).system
    assert all(words in system for words in ("Speech to Text", "leads", "Give it to people"))
    kinds = json.dumps(answer_schema("plan"))
    assert '"pdf"' in kinds
    assert '"audio"' not in kinds


def test_the_planner_sees_the_fields_of_likely_types_once(catalogue: NodeStore) -> None:
    likely = tuple(catalogue.schemas[name] for name in ("pinecone", "chatOpenAI", "cheerioWebScraper"))
    request = plan_request(catalogue, "Pinecone for OpenAI", candidates=likely)
    assert fields(request)[0] == "pinecone"
    assert not {"chatOpenAI", "cheerioWebScraper"} & {*fields(request)}
    assert "chatOpenAI: " in plan_prompt(request).system
    small = fields(request, 8_192)
    assert {"chatOpenAI", "toolAgent", "pinecone"} <= {*small}
    assert len(small) == len({*small})


def test_the_planner_of_a_change_sees_the_fields_of_what_the_flow_consists_of_first(catalogue: NodeStore) -> None:
    ops = [
        AddNode(node_name="pinecone", node_id="pinecone_0"),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", params={"llmModel": "chatMistralAI"}),
    ]
    flow = GraphView(compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph)
    request = plan_request(
        catalogue,
        "x",
        intent=UPDATE,
        candidates=tuple(catalogue.schemas.values()),
        flow=flow,
    )
    assert fields(request)[:2] == ["pinecone", "chatMistralAI"]
    assert len(fields(request)) <= 2 + 6


def test_the_judge_sees_which_planned_steps_ran_in_no_trial() -> None:
    steps = [
        PlannedNode(node_id=f"llmAgentflow_{number}", node_name="llmAgentflow", purpose="x") for number in range(2)
    ]
    contract = Plan(goal="x", operation="create", flow_name="x", nodes=steps)
    trials = (Trial(question="q", answer="a", passed=True),)
    request = JudgeRequest(requirement="x", plan=contract, trials=trials)
    assert "never_ran" not in judge_prompt(request).user
    seen = replace(request, traces=(Trace(steps=[TraceStep(node_id="llmAgentflow_0")]),))
    assert tag("never_ran", judge_prompt(seen).user) == "llmAgentflow_1: x"


def test_the_fields_in_a_plan_prompt_take_1500_tokens_at_most(catalogue: NodeStore) -> None:
    every = {f"{name}_0": name for name in catalogue.schemas}
    request = plan_request(catalogue, "x", intent=UPDATE, flow=flow_of(every))
    text = tag("node_fields", plan_prompt(request).user)
    assert 5_000 < len(text) <= 6_000


def test_p93_the_op_writer_sees_what_flowise_warns_of() -> None:
    warning = "Prompt must include {context}"
    raw = {
        "name": "warned",
        "category": "Chains",
        "inputs": [{"name": "prompt", "type": "string", "additionalParams": False, "warning": warning}],
    }
    store = NodeStore({"warned": NodeSchema.from_raw(raw)}, "3.1.4")
    node = PlannedNode(node_id="warned_0", node_name="warned", purpose="x")
    plan = Plan(goal="x", operation="create", flow_name="x", nodes=[node])
    prompt = patch_prompt(PatchRequest(requirement="x", plan=plan, nodes=store))
    assert f"warning: {warning}" in tag("node_types", prompt.user)


def card_of_start(*values: tuple[str, str], nodes: NodeStore, existing: dict[str, str] | None = None) -> str:
    start = PlannedNode(node_id="startAgentflow_0", node_name="startAgentflow", purpose="x")
    set_to = [PlannedValue(node_id="startAgentflow_0", param=param, value=value) for param, value in values]
    plan = Plan(goal="x", operation="create", flow_name="x", nodes=[start], values=set_to)
    request = PatchRequest(requirement="x", plan=plan, nodes=nodes, flow=flow_of(existing or {}))
    return tag("node_types", patch_prompt(request).user)


def test_a_card_leaves_out_what_the_values_of_the_plan_rule_out(catalogue: NodeStore) -> None:
    daily = [("startInputType", "scheduleInput"), ("scheduleFrequency", "daily")]
    card = card_of_start(*daily, nodes=catalogue)
    assert "param scheduleOnTime*" in card
    assert "param startState" in card
    assert not [name for name in ("webhookMethod", "formTitle", "scheduleOnDayOfWeek") if f"param {name}" in card]
    assert "param webhookMethod" in card_of_start(nodes=catalogue)
    there = {"startAgentflow_1": "startAgentflow"}
    assert "param webhookMethod" in card_of_start(*daily, nodes=catalogue, existing=there)


def cards_for(node_name: str, param: str, value: JsonValue, nodes: NodeStore) -> list[str]:
    """The node types whose cards the op writer sees besides that of the planned node."""
    node = PlannedNode(node_id="x_0", node_name=node_name, purpose="x")
    values = [PlannedValue(node_id="x_0", param=param, value=value)]
    plan = Plan(goal="x", operation="create", flow_name="x", nodes=[node], values=values)
    prompt = patch_prompt(PatchRequest(requirement="x", plan=plan, nodes=nodes))
    return re.findall(r"^### (\w+)", tag("node_types", prompt.user), re.MULTILINE)[1:]


@pytest.mark.parametrize(
    ("node_name", "param", "value", "cards"),
    [
        ("llmAgentflow", "llmModel", "chatOpenAI", ["chatOpenAI"]),
        ("toolAgentflow", "toolAgentflowSelectedTool", "calculator", ["calculator"]),
        ("agentAgentflow", "agentTools", [{"agentSelectedTool": "calculator"}, {}], ["calculator"]),
        ("agentAgentflow", "agentTools[0].agentSelectedTool", "calculator", ["calculator"]),
        ("agentAgentflow", "agentTools[1]", {"agentSelectedTool": "serpAPI"}, ["serpAPI"]),
        ("postgresRecordManager", "database", "postgres", []),
        ("llmAgentflow", "llmModelConfig.modelName", "calculator", []),
        ("llmAgentflow", "llmMessages", [{"role": "system", "content": "calculator"}], []),
    ],
    ids=["model", "tool", "tools", "tool of a row", "row", "database", "model name", "text"],
)
def test_planned_components_bring_their_cards(
    node_name: str, param: str, value: JsonValue, cards: list[str], catalogue: NodeStore
) -> None:
    assert cards_for(node_name, param, value, catalogue) == cards


def test_the_op_writer_sees_no_card_of_a_node_that_goes(catalogue: NodeStore) -> None:
    plan = Plan(goal="x", operation="update", flow_name="x", removals=["calculator_0"])
    existing = {"calculator_0": "calculator", "bufferMemory_0": "bufferMemory"}
    request = PatchRequest(requirement="x", plan=plan, nodes=catalogue, flow=flow_of(existing))
    cards = tag("node_types", patch_prompt(request).user)
    assert "### bufferMemory" in cards
    assert "### calculator" not in cards


@pytest.mark.parametrize("kind", ["CHATFLOW", "AGENTFLOW"])
def test_every_op_of_the_reference_has_the_fields_that_the_schema_requires(kind: Any, catalogue: NodeStore) -> None:
    plan = Plan(goal="x", operation="create", flow_name="x", flow_kind=kind)
    reference = patch_prompt(PatchRequest(requirement="x", plan=plan, nodes=catalogue)).system.partition("# Ops\n")[2]
    shown = [json.loads(line) for line in reference.splitlines() if line.startswith("{")]
    schema: Any = answer_schema("patch")
    forms = {form["properties"]["op_type"]["enum"][0]: form for form in schema["properties"]["ops"]["items"]["anyOf"]}
    assert {op["op_type"] for op in shown} == {*forms}
    for op in shown:
        Draft202012Validator(forms[op["op_type"]]).validate(op)


def contract(**more: Any) -> Plan:
    fields: dict[str, Any] = {"goal": "x", "operation": "create", "flow_name": "x"}
    return Plan.model_validate(fields | more)


MODEL = PlannedNode(node_id="chatOpenAI_0", node_name="chatOpenAI", purpose="x")
NAMED = PlannedValue(node_id="chatOpenAI_0", param="modelName", value="gpt-4o")


def test_every_phase_sees_the_whole_requirement_in_order_and_which_words_are_newer(catalogue: NodeStore) -> None:
    said: dict[str, Any] = {
        "requirement": "A bot in English",
        "clarifications": (("Whose?", "The shop's"),),
        "later": ("Make it French.", "And shorter."),
    }
    planning = plan_request(catalogue, feedback="No emojis.", **said)
    seen = [
        plan_prompt(planning),
        step_prompt(MODEL, contract(nodes=[MODEL]), planning),
        patch_prompt(PatchRequest(plan=contract(), nodes=catalogue, feedback="No emojis.", **said)),
        judge_prompt(JudgeRequest(plan=contract(), trials=(), **said)),
    ]
    words = ("A bot in English", "The shop's", "1. Make it French.", "2. And shorter.", "No emojis.")
    for prompt in seen[:3]:
        places = [prompt.user.index(text) for text in words]
        assert places == sorted(places)
    assert all(text in seen[3].user for text in words[:4])
    assert all("the newest words count" in prompt.system for prompt in seen)


def test_a_planner_who_revises_a_plan_sees_its_tests_criteria_and_parts(catalogue: NodeStore) -> None:
    previous = contract(
        nodes=[MODEL],
        values=[NAMED],
        tests=[TestCase(id="t1", turns=["Hi", "Who am I?"], expect=Expectation(contains=["Eva"]))],
        criteria=[Criterion(id="c1", text="It remembers.", part="p1", tests=["t1"])],
        parts=[Part(id="p1", quote="remembers me", state="covered", nodes=["chatOpenAI_0"])],
        credential_requirements=["openAIApi"],
        kept=["bufferMemory_0"],
        placeholders=["the text"],
        steps=["Do it."],
    )
    request = plan_request(catalogue, "x", previous=previous)
    shown = json.loads(tag("previous_plan", plan_prompt(request).user))
    assert shown["tests"] == [{"id": "t1", "turns": ["Hi", "Who am I?"], "expect": {"contains": ["Eva"]}}]
    assert shown["criteria"] == [{"id": "c1", "text": "It remembers.", "part": "p1", "tests": ["t1"]}]
    assert shown["parts"] == [{"id": "p1", "state": "covered", "nodes": ["chatOpenAI_0"]}]
    assert {"credential_requirements", "kept", "placeholders", "steps", "values", "nodes"} <= shown.keys()


def test_only_the_planner_of_a_copy_reads_what_a_copy_is(catalogue: NodeStore) -> None:
    flow = flow_of({"chatOpenAI_0": "chatOpenAI"})
    for intent, told in (UPDATE.model_copy(update={"operation": "copy"}), True), (UPDATE, False):
        prompt = plan_prompt(plan_request(catalogue, "x", intent=intent, flow=flow))
        assert ("A copy without a change" in prompt.system + prompt.user) is told


def test_the_op_writer_sees_which_lines_go(catalogue: NodeStore) -> None:
    line = NamedConnection(source="a_0", target="b_0", input="model")
    request = PatchRequest(requirement="x", plan=contract(disconnections=[line]), nodes=catalogue)
    shown = json.loads(tag("approved_plan", patch_prompt(request).user))
    assert shown["disconnections"] == [{"source": "a_0", "target": "b_0", "input": "model"}]


def test_the_op_writer_sees_which_credentials_the_plan_needs(catalogue: NodeStore) -> None:
    request = PatchRequest(requirement="x", plan=contract(credential_requirements=["openAIApi"]), nodes=catalogue)
    shown = json.loads(tag("approved_plan", patch_prompt(request).user))
    assert shown["credential_requirements"] == ["openAIApi"]


def test_the_op_writer_sees_its_own_last_ops_by_number_without_the_values_of_the_plan(catalogue: NodeStore) -> None:
    plan = contract(
        nodes=[MODEL, PlannedNode(node_id="new_0", node_name="bufferMemory", purpose="x")],
        values=[
            NAMED,
            PlannedValue(node_id="chain_0", param="systemMessagePrompt", value="Be kind."),
            PlannedValue(node_id="new_0", param="memoryKey", value="chat"),
        ],
    )
    ops = (
        AddNode(
            node_name="chatOpenAI",
            node_id="chatOpenAI_0",
            description="by code",
            params={"modelName": "gpt-4o", "streaming": False},
        ),
        SetParam(node_id="chain_0", param_name="systemMessagePrompt", value="Be kind."),
        ReplaceNode(node_id="old_0", node_name="bufferMemory"),
        SetParam(node_id="old_0", param_name="memoryKey", value="chat"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="chain_0", target_anchor="memory"),
    )
    wrong = Finding(code="TYPE_MISMATCH", severity="error", message="no", op_index=4, op_type="Connect")
    of_plan = Finding(code="BAD_VALUE", severity="error", message="no", where="new_0", field="memoryKey")
    request = PatchRequest(requirement="x", plan=plan, nodes=catalogue, previous_ops=ops, findings=(wrong, of_plan))
    prompt = patch_prompt(request).user
    shown = dict(line.split(": ", 1) for line in tag("your_last_ops", prompt).splitlines())
    assert list(shown) == ["0", "2", "4"]
    assert json.loads(shown["0"])["params"] == [{"name": "streaming", "value": False}]
    assert "by code" not in prompt
    first, second = tag("findings_on_them", prompt).splitlines()
    assert "op 4 Connect" in first
    assert "amend" not in first
    assert second.endswith("This is a value of the plan: to change it, answer `amend`.")
    assert "your_last_ops" not in patch_prompt(replace(request, findings=())).user


def test_the_chapter_on_agentflows_goes_to_the_writer_of_agentflows_only(catalogue: NodeStore) -> None:
    chatflow, again, agentflow = (
        patch_prompt(PatchRequest(requirement=requirement, plan=contract(flow_kind=kind), nodes=catalogue)).system
        for requirement, kind in (("a", "CHATFLOW"), ("b", "CHATFLOW"), ("c", "AGENTFLOW"))
    )
    assert chatflow == again
    for name, section in PACKAGED.sections("agentflows").items():
        first = section.partition("```")[0].strip()
        assert first in agentflow, name
        assert first not in chatflow, name
    assert "`BindCredential`" in chatflow
    assert len(chatflow) < len(agentflow) / 3


def test_parts_must_be_in_the_answer() -> None:
    required = [json.dumps(answer_schema(phase)["required"]) for phase in ("classify", "plan")]
    assert all('"parts"' in names for names in required)


@pytest.mark.parametrize(
    ("requirement", "first"),
    [
        (
            "Support bot with Ollama and the history in Redis with a session TTL",
            ["RedisBackedChatMemory", "chatOllama"],
        ),
        ("an agentflow that searches with tavily and posts to slack", ["slackMCP", "tavilyAPI"]),
        ("Ein Chatflow mit Azure OpenAI", ["azureChatOpenAI"]),
        ("use the current date and time", ["currentDateTime"]),
        ("An agent with a chat model that reads a text file", []),
        ("A chatflow with a prompt that answers JSON", []),
        ("A chatflow that asks our API: GET https://shop.example/orders", ["requestsGet"]),
    ],
)
def test_the_fields_of_what_the_person_names_come_first(
    requirement: str, first: list[str], catalogue: NodeStore
) -> None:
    noise = tuple(catalogue.schemas[name] for name in ("HydeRetriever", "gitbook", "milvus", "mem0"))
    request = plan_request(catalogue, requirement, candidates=noise)
    shown = fields(request)
    assert shown[: len(first)] == first
    assert first or not shown
    assert not {one.name for one in noise} & {*shown}
    later = replace(request, requirement="A bot", later=("No.",), feedback=requirement)
    assert fields(later) == shown


def test_a_planner_sees_every_field_of_the_types_that_the_person_names(catalogue: NodeStore) -> None:
    named = plan_prompt(plan_request(catalogue, 'Pinecone with the namespace "de"')).user
    assert "pineconeNamespace" in named
    present = plan_request(catalogue, "another prompt", intent=UPDATE, flow=flow_of({"pinecone_0": "pinecone"}))
    assert "pineconeNamespace" not in plan_prompt(present).user


def test_limits_that_no_schema_tells_stand_with_the_fields_and_on_the_card(catalogue: NodeStore) -> None:
    assert "NOTE the credential has the deployment" in plan_prompt(plan_request(catalogue, "A bot on Azure")).user
    asked = plan_request(catalogue, "A chatbot that keeps the last ten messages in Redis")
    assert "NOTE windowSize keeps the oldest messages" in plan_prompt(asked).user
    node = PlannedNode(node_id="gmail_0", node_name="gmail", purpose="x")
    plan = Plan(goal="x", operation="create", flow_name="x", nodes=[node])
    assert "the body is sent as HTML" in patch_prompt(PatchRequest(requirement="x", plan=plan, nodes=catalogue)).user


@pytest.mark.parametrize("word", ["Claude Sonnet", "Haiku at 0", "anthropic"])
def test_the_models_of_a_family_that_is_named_are_read(word: str, catalogue: NodeStore) -> None:
    assert "chatAnthropic" in types_with_models(plan_request(catalogue, f"A bot on {word}"))
    present = plan_request(catalogue, "the newest model", intent=UPDATE, flow=flow_of({"groqChat_0": "groqChat"}))
    assert types_with_models(present) == ["groqChat"]
    assert types_with_models(plan_request(catalogue, "A bot")) == []


def test_a_planner_sees_the_models_that_the_person_may_mean_and_which_have_ended(catalogue: NodeStore) -> None:
    of_groq = (*(f"gemma-{number}" for number in range(20)), "openai/gpt-oss-120b", "llama-3.3-70b-versatile")
    names = ServerNames(models={"groqChat": of_groq, "chatOpenAI": ("gpt-4.1",)})

    def shown(words: str) -> str:
        return tag("on_the_server", plan_prompt(plan_request(catalogue, words, server=names)).user)

    assert shown("Groq with llama 3.3 70b") == (
        "models of groqChat: llama-3.3-70b-versatile (ended, in its place openai/gpt-oss-120b)"
    )
    assert shown("Groq with Gemma 7").startswith("models of groqChat: gemma-7, gemma-0, ")
    assert shown("Groq with Gemma 7").count("gemma") == 8
    assert shown("Groq with 4 tools") == ""


def test_the_op_writer_reads_how_paths_choices_and_a_wrong_node_of_the_plan_are_written(catalogue: NodeStore) -> None:
    plan = Plan(goal="x", operation="create", flow_name="x", flow_kind="AGENTFLOW")
    system = patch_prompt(PatchRequest(requirement="x", plan=plan, nodes=catalogue)).system
    for word in ("`agentTools[0].agentSelectedToolConfig`", "`multiOptions`", "`amend`", "`removals`"):
        assert word in system.replace("kind: amend", "amend")


def test_a_plan_that_is_made_again_is_shown_as_it_is_by_now(catalogue: NodeStore) -> None:
    new = PlannedNode(node_id="chatOpenAI_0", node_name="chatOpenAI", purpose="answers")
    plan = Plan(goal="x", operation="update", flow_name="x", nodes=[new], removals=["gone_0", "calculator_0"])
    ops = [AddNode(node_name=name, node_id=f"{name}_0") for name in ("chatOpenAI", "calculator")]
    flow = GraphView(compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph)
    shown = json.loads(previous_plan(plan, flow))
    assert shown["nodes"][0]["existing"] is True
    assert shown["removals"] == ["calculator_0"]
    assert "existing" not in json.loads(previous_plan(plan, GraphView()))["nodes"][0]


def test_lines_that_are_carried_out_are_no_lines_of_the_plan_that_is_made_again(catalogue: NodeStore) -> None:
    ids = ("startAgentflow_0", "llmAgentflow_0", "llmAgentflow_1")
    ops = [
        *(AddNode(node_name=id_[:-2], node_id=id_) for id_ in ids),
        *(Connect(source_node_id=one, target_node_id=two) for one, two in pairwise(ids)),
    ]
    flow = GraphView(compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph)
    lines = [NamedConnection(source=ids[1], target=ids[2]), NamedConnection(source=ids[2], target="llmAgentflow_2")]
    plan = Plan(goal="x", operation="update", flow_name="x", flow_kind="AGENTFLOW", connections=lines)
    assert [one["source"] for one in json.loads(previous_plan(plan, flow))["connections"]] == [ids[2]]


def test_the_op_writer_sees_no_text_that_is_a_default_and_only_connections_of_what_stays(catalogue: NodeStore) -> None:
    default = next(
        str(entry.get("default"))
        for entry in catalogue.schemas["conditionAgentAgentflow"].input_definitions
        if entry["name"] == "conditionAgentSystemPrompt"
    )
    mine = "Answer the questions of our customers politely."
    ops = [
        AddNode(node_name="conditionAgentAgentflow", node_id="conditionAgentAgentflow_0"),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", params={"llmUserMessage": mine}),
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
    ]
    flow = GraphView(compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph)
    assert default in flow.texts.values()
    node = PlannedNode(node_id="llmAgentflow_0", node_name="llmAgentflow", purpose="answers", existing=True)
    plan = Plan(goal="x", operation="update", flow_kind="AGENTFLOW", flow_name="x", nodes=[node])
    request = PatchRequest(requirement="x", plan=plan, nodes=catalogue, flow=flow)
    user = patch_prompt(request).user
    assert mine in user
    assert default[:60] not in user
    cards = user.split("<node_types>")[1].split("</node_types>")[0]
    assert "param llmModel" in cards
    assert "### startAgentflow (Agent Flows), connections only" in cards
    assert "scheduleTimezone" not in cards
    finding = Finding(code="X", severity="error", message="x", where="startAgentflow_0")
    assert "scheduleTimezone" in patch_prompt(replace(request, findings=(finding,))).user
