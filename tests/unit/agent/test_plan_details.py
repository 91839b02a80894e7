"""What the person sees of a plan: real names and values, old beside new, and what an approval allows."""

import itertools
from typing import Any

import pytest

from flowise_dev_agent.agent.credentials import credential_question
from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.approval.manual_edits import with_ops
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    Connect,
    Finding,
    GraphIR,
    PatchOp,
    RemoveNode,
    Schemas,
    SetParam,
    compile_ops,
)
from flowise_dev_agent.patch.model.labels import without_id
from flowise_dev_agent.planning.details import plan_details
from flowise_dev_agent.planning.permissions import capability_words
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.planning.planned_lines import with_following_lines
from flowise_dev_agent.planning.prompt_text import trial_text
from flowise_dev_agent.schemas.interrupts import MissingCredential
from flowise_dev_agent.schemas.plan import (
    Capability,
    Criterion,
    Intent,
    LineChange,
    NamedConnection,
    Part,
    Plan,
    PlannedNode,
    PlannedValue,
    TestCase,
    ToolBinding,
)
from flowise_dev_agent.schemas.verdict import Trace, TraceStep, Trial
from flowise_dev_agent.texts import LANGUAGES, catalogue, say, say_in
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops
from tests.unit.agent.test_plan_binding import CHAT, contract, planned, value
from tests.unit.agent.test_update import add_flow, made_for, plan


def test_p123_what_code_says_of_a_part_is_said_in_the_persons_language(catalogue: NodeStore) -> None:
    part = Part(id="p1", quote="fetch orders", state="covered", nodes=["requestsGet_0"])
    wanted = contract(planned("requestsGet_0", existing=False), parts=[part])
    after = with_ops(wanted, [RemoveNode(node_id="requestsGet_0")], GraphIR.empty(), catalogue.schemas)
    assert after.parts[0].texts["reason"].code == "plan.reason.taken_out"
    stored = Plan.model_validate(after.model_dump())
    shown = plan_markdown(stored, language="de")
    assert say_in("de", "plan.reason.taken_out") in shown
    assert say("plan.reason.taken_out") not in shown


def test_what_stood_in_for_a_text_that_the_person_gives_is_no_more_to_be_filled_in(catalogue: NodeStore) -> None:
    stand_in = "[PLACEHOLDER: the return policy]"
    wanted = contract(
        planned("plainText_0", existing=False),
        values=[PlannedValue(node_id="plainText_0", param="text", value=stand_in)],
        placeholders=[stand_in, "chatOpenAI_0.basepath: [PLACEHOLDER: the address]"],
    )
    given = SetParam(node_id="plainText_0", param_name="text", value="30 days.")
    after = with_ops(wanted, [given], GraphIR.empty(), catalogue.schemas)
    assert after.placeholders == ["chatOpenAI_0.basepath: [PLACEHOLDER: the address]"]


def test_p123_a_criterion_that_no_test_shows_says_so_in_the_persons_language() -> None:
    wanted = contract(criteria=[Criterion(id="c1", text="It is quick.")]).linked()
    assert say_in("de", "plan.no_test") in plan_markdown(wanted, language="de")


def test_p84_a_change_of_a_text_shows_the_old_and_the_new_one(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wanted = contract(
        planned("toolAgent_0"),
        planned("requestsGet_0", existing=False),
        removals=["calculator_0"],
        kept=["bufferMemory_0"],
        parts=[Part(id="p1", quote="a pony", state="not_possible", reason="There is none.")],
        values=[
            value("toolAgent_0", "systemMessage", "Answer in French.", mode="append"),
            value("chatOpenAI_0", "temperature", 0.2),
            value("requestsGet_0", "requestsGetUrl", "https://api.example.org/orders"),
        ],
    )
    wanted = wanted.model_copy(update={"capability": capability_of(wanted, catalogue.schemas, GraphIR.empty())})
    details = plan_details(wanted, base, schemas=catalogue.schemas)
    text, heat, url = details.values
    assert (text.old, text.new) == ("Help with orders.", "Help with orders.\nAnswer in French.")
    assert (heat.node, heat.old, heat.new) == ("OpenAI", 0.9, 0.2)
    assert (url.node, url.label, url.old) == ("Requests Get", "URL", None)
    assert [(node.node_id, node.label) for node in details.removed] == [("calculator_0", "Calculator")]
    shown = plan_markdown(wanted, details)
    for line in (
        "**OpenAI**, Temperature: 0.2 (now: 0.9)",
        "  ```diff\n    Help with orders.\n  + Answer in French.\n  ```",
        "- Removes: Calculator.",
        "- Everything else in the flow stays as it is.",
        "“a pony”: There is none.",
        "- Flowise may call: https://api.example.org.",
        "  - **Requests Get** (new): x",
    ):
        assert line in shown, line
    assert "gets the tool" not in shown  # a tool is no tool of itself
    assert "may call https" not in shown  # the summary says it
    assert "**Tool Agent** (changed)" in shown  # another tool is connected to it


def test_a_plan_says_a_value_that_changes_once_and_all_its_steps(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wanted = contract(
        planned("chatOpenAI_0"),
        values=[value("chatOpenAI_0", "temperature", 0.2), value("chatOpenAI_0", "modelName", "gpt-4o-mini")],
        steps=["The temperature of chatOpenAI_0 becomes 0.2.", "Afterwards upsert the documents again by hand."],
        kept=["bufferMemory_0"],
    )
    stored = {one.id: one.inputs for one in base.nodes}["chatOpenAI_0"]["modelName"]
    wanted.values[1] = wanted.values[1].model_copy(update={"value": stored})
    shown = plan_markdown(wanted, plan_details(wanted, base, schemas=catalogue.schemas))
    assert shown.split("## Values\n")[1].split("\n\n")[0] == "- **OpenAI**, Temperature: 0.2 (now: 0.9)"
    steps = shown.split("## Steps\n")[1].split("\n\n")[0]
    assert steps == "- The temperature of OpenAI becomes 0.2.\n- Afterwards upsert the documents again by hand."
    assert shown.count("Buffer Memory") == 1  # in the outline


@pytest.mark.parametrize(
    ("code", "calls"),
    [("return 'see https://shop.example/join';", False), ("return await fetch('https://shop.example/x');", True)],
)
def test_an_address_in_a_text_of_code_is_not_called_one_that_flowise_calls(
    code: str, calls: bool, catalogue: NodeStore
) -> None:
    step = "customFunctionAgentflow_0"
    wanted = contract(
        planned(step, existing=False).model_copy(update={"node_name": "customFunctionAgentflow"}),
        values=[value(step, "customFunctionJavascriptFunction", code)],
        capability=Capability(hosts=["https://shop.example"]),
    )
    shown = plan_markdown(wanted, plan_details(wanted, GraphIR.empty(), schemas=catalogue.schemas))
    assert ("may call" in shown) is calls


def test_the_text_of_a_direct_reply_is_shown_and_not_said_to_a_model(catalogue: NodeStore) -> None:
    reply = "directReplyAgentflow_0"
    wanted = contract(
        planned(reply, existing=False),
        parts=[Part(id="p1", quote="say thanks", state="covered", values=[f"{reply}.directReplyMessage"])],
        values=[value(reply, "directReplyMessage", "Thank you.")],
    )
    shown = plan_markdown(wanted, plan_details(wanted, GraphIR.empty(), schemas=catalogue.schemas))
    assert "- “say thanks” → **Direct Reply**" in shown.splitlines()


def test_each_part_of_a_requirement_is_shown_with_what_does_it(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wanted = contract(
        planned("toolAgent_0"),
        planned("chatOpenAI_0"),
        planned("requestsGet_0", existing=False),
        parts=[
            Part(id="p1", quote="both models at 0.2", state="covered", values=["chatOpenAI_0.temperature"]),
            Part(id="p2", quote="in French", state="covered", values=["toolAgent_0.systemMessage"]),
            Part(id="p3", quote="and ask our API", state="covered", nodes=["requestsGet_0"]),
            Part(id="p4", quote="and a pony", state="not_possible", reason="There is none."),
            Part(id="p5", quote="leave the rest", state="covered", nodes=["bufferMemory_0"], reason="It stays."),
            Part(id="p6", quote="no calculator", state="covered", nodes=["calculator_0"]),
        ],
        kept=["bufferMemory_0"],
        removals=["calculator_0"],
        values=[
            value("toolAgent_0", "systemMessage", "Answer in French.", mode="append"),
            value("chatOpenAI_0", "temperature", 0.2),
        ],
    )
    details = plan_details(wanted, base, schemas=catalogue.schemas)
    section = plan_markdown(wanted, details).split("## What you asked for\n")[1].split("\n\n")[0]
    assert section.splitlines() == [
        "- “both models at 0.2” → **OpenAI**",
        "- “in French” → **Tool Agent**",
        "- “and ask our API” → **Requests Get**",
        "- “leave the rest” → **Buffer Memory** stays as it is; It stays",
        "- “no calculator” → **Calculator** is removed",
    ]


def test_a_text_with_fences_cannot_leave_its_block(catalogue: NodeStore) -> None:
    wanted = contract(planned("toolAgent_0"), values=[value("toolAgent_0", "systemMessage", "a\n```\n# Approved")])
    shown = plan_markdown(wanted, plan_details(wanted, GraphIR.empty()))
    assert "  ````\n  a\n  ```\n  # Approved\n  ````" in shown


def test_what_may_be_a_secret_is_not_shown(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wanted = contract(values=[value("chatOpenAI_0", "basepath", "sk-" + "a1B2c3" * 6)])
    assert "a1B2c3" not in plan_markdown(wanted, plan_details(wanted, base))


async def test_the_question_shows_what_the_flow_holds_now() -> None:
    bench = made_for("update")
    cold = value("chatOpenAI_0", "temperature", 0.1)
    bench.reasoner.plans = [plan(operation="update", nodes=[planned("chatOpenAI_0")], values=[cold])]
    row = await add_flow(bench)
    data = (await bench.start("make it colder", target=row.id))["data"]
    assert [(one["old"], one["new"]) for one in data["details"]["values"]] == [(0.9, 0.1)]
    assert "0.1 (now: 0.9)" in data["plan"]


@pytest.mark.parametrize(
    ("language", "heading"), [("de", "## Werte"), ("fr", "## Valeurs"), ("es", "## Valores"), ("ja", "## Values")]
)
def test_the_fixed_words_of_a_plan_are_in_the_persons_language(language: str, heading: str) -> None:
    wanted = plan(values=[value("chatOpenAI_0", "temperature", 0.1)], tests=[], criteria=[])
    assert heading in plan_markdown(wanted, plan_details(wanted, GraphIR.empty(), language), language)


def test_every_language_has_all_fixed_words_of_a_plan() -> None:
    wanted = [key for key in catalogue("en") if key.startswith("plan.")]
    assert [(language, key) for language in LANGUAGES for key in wanted if key not in catalogue(language)] == []


async def test_a_german_requirement_gets_its_plan_under_german_headings() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    bench.reasoner.intents = [Intent(operation="create", ambiguity=0, title="Hilfe", language="de")]
    asked = await bench.start("Ich brauche einen Chatbot")
    assert "## So läuft es ab" in asked["data"]["plan"]
    assert asked["data"]["language"] == "de"
    assert asked["message"] == catalogue("de")["interrupt.plan_ready"]
    assert [one["label"] for one in asked["options"]] == ["Genehmigen", "Änderungen wünschen", "Abbrechen"]


async def test_a_finding_of_a_plan_names_node_and_field_as_people_see_them() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    finding = Finding(
        code="NOT_ON_THE_SERVER",
        severity="warning",
        detail="?",
        where="chatOpenAI_0",
        field="modelName",
        params={"value": "gpt-9"},
    )
    named = PlannedNode(node_id="chatOpenAI_0", node_name="chatOpenAI", purpose="x", label="Writer")
    bench.reasoner.plans = [plan(nodes=[named], findings=[finding])]
    shown = (await bench.start("x"))["data"]["plan"]
    said = say("finding.NOT_ON_THE_SERVER", field="Model Name", value="gpt-9")
    assert f"- Writer: {said}" in shown
    assert "modelName" not in shown


def _desk(language: str, schemas: Schemas) -> tuple[Plan, str]:
    """Plan of five nodes that does not do all, calls an address and has long texts, and its Markdown."""
    names = ("startAgentflow", "conditionAgentAgentflow", "httpAgentflow", "llmAgentflow", "directReplyAgentflow")
    start, sort, http, llm, reply = (f"{name}_0" for name in names)
    goal = "Sort each message, look orders up, answer the others from what is known about the shop. " * 5
    scenarios: Any = [{"scenario": "About an order"}, {"scenario": "Anything else"}]
    store: Any = [{"documentStore": "6a8a4a0e-3c43-4a63-9a48-0c9f2f0c1a55:Handbook", "returnSourceDocuments": True}]
    made = plan(
        operation="create",
        flow_kind="AGENTFLOW",
        goal=goal,
        nodes=[planned(f"{name}_0", existing=False) for name in names],
        values=[
            value(sort, "conditionAgentScenarios", scenarios),
            value(http, "url", "https://api.example.org/orders"),
            value(llm, "agentKnowledgeDocumentStores", store),
            value(llm, "llmModel", "chatOpenAI"),
        ],
        connections=[
            NamedConnection(source=start, target=sort),
            NamedConnection(source=sort, output="0", target=http),
            NamedConnection(source=sort, output="1", target=reply),
            NamedConnection(source=http, target=llm),
        ],
        parts=[
            Part(id=f"p{n}", quote="and send a letter " * 9, state="not_possible", reason="No mail. " * 20)
            for n in range(1, 5)
        ],
        tests=[TestCase(id="t1", turns=["My name is Ada.", "What is my name?"])],
        criteria=[],
    )
    made = made.model_copy(update={"capability": capability_of(made, schemas, GraphIR.empty())})
    return made, plan_markdown(made, plan_details(made, GraphIR.empty(), language, schemas=schemas), language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_plan_is_told_in_few_words_before_its_details(language: str, catalogue: NodeStore) -> None:
    made, shown = _desk(language, catalogue.schemas)
    before, details = shown.split(f"\n## {say_in(language, 'plan.heading.details')}\n")
    assert len(before.split()) <= 120
    assert "api.example.org" in before
    assert "and send a letter" in before + details
    # Neither JSON nor ids.
    ids = [node.node_id for node in made.nodes]
    assert not any(word in shown for word in (*ids, "chatOpenAI", "6a8a4a0e", '{"', '":', "httpAgentflow"))
    assert "Handbook" in shown


def test_findings_that_say_the_same_of_several_nodes_are_one_and_others_stay_apart() -> None:
    ends = {"model": "m", "day": "2027-01-01", "replacement": "n"}
    found = [
        *(Finding(code="MODEL_ENDS", severity="warning", detail="?", params={**ends, "node": node}) for node in "AB"),
        *(Finding(code="ATTACHMENT_UNUSED", severity="warning", detail="?", params={"file": name}) for name in "xy"),
    ]
    told = plan_markdown(contract(findings=found)).split("## Please check\n")[1].split("\n\n")[0].splitlines()
    assert told == [
        f"- A, B: {say('finding.MODEL_ENDS', **ends)}",
        *(f"- {say('finding.ATTACHMENT_UNUSED', file=name)}" for name in "xy"),
    ]


def test_notices_that_there_is_no_room_for_are_whole_in_the_details_and_named_before_them() -> None:
    long = " ".join(f"word{number}" for number in range(90))
    parts = [
        Part(id="p1", quote="a pony", state="not_possible", reason=long),
        Part(id="p2", quote="a horse", state="assumed", reason=long),
    ]
    shown = plan_markdown(contract(parts=parts, goal=f"It helps. {long}. {long}."))
    before, details = shown.split("\n## Details\n")
    assert len(before.split()) <= 120
    assert ("“a pony”" in before, long in before) == (True, False)
    assert details.count(long) == 4  # reasons, and the goal
    assert "- Assumed: 1, see the details." in before.splitlines()


def test_an_outline_says_where_branches_lead_and_a_test_shows_all_its_turns(catalogue: NodeStore) -> None:
    _, shown = _desk("en", catalogue.schemas)
    outline = shown.split("## How it runs\n")[1].split("\n\n")[0]
    assert outline.splitlines() == [
        "- **1 Start**: x",
        "- **2 Condition Agent**: x",
        "  - 2a About an order → **3 HTTP**",
        "  - 2b Anything else → **5 Direct Reply**",
        "- **3 HTTP**: x",
        "- **4 LLM**: x → the flow ends here",
        "- **5 Direct Reply**: x",
    ]
    assert "“My name is Ada.” → “What is my name?”" in shown


def test_p113_what_the_tests_simulate_is_said_before_the_approval(catalogue: NodeStore) -> None:
    made, shown = _desk("en", catalogue.schemas)
    # Nothing can be at an address of an example.
    assert "Simulated in the tests, not really done: GET https://api.example.org/orders" in shown
    sends = made.model_copy(update={"values": [*made.values, value("httpAgentflow_0", "method", "POST")]})
    details = plan_details(sends, GraphIR.empty(), schemas=catalogue.schemas)
    assert details.simulated == ["POST https://api.example.org/orders"]
    told = plan_markdown(sends, details)
    assert "Simulated in the tests, not really done: POST https://api.example.org/orders" in told
    # What is simulated is not "only read", and other tests than those of the plan are announced.
    lines = {one: say(f"plan.summary.{one}", count=len(made.tests)) for one in ("tests", "tests_read", "tests_ways")}
    assert (lines["tests"] in told, lines["tests_read"] in told, lines["tests_ways"] in told) == (True, False, True)


def test_a_branch_that_ends_while_others_lead_on_is_in_the_outline(catalogue: NodeStore) -> None:
    nodes = [
        PlannedNode(node_id=f"{name}_0", node_name=name, purpose="x")
        for name in ("startAgentflow", "conditionAgentflow", "directReplyAgentflow")
    ]
    row: Any = {"type": "string", "value1": "{{ question }}", "operation": "contains", "value2": "order"}
    lines = [
        NamedConnection(source="startAgentflow_0", target="conditionAgentflow_0"),
        NamedConnection(source="conditionAgentflow_0", output="0", target="directReplyAgentflow_0"),
    ]
    wanted = plan(
        nodes=nodes,
        flow_kind="AGENTFLOW",
        connections=lines,
        values=[PlannedValue(node_id="conditionAgentflow_0", param="conditions", value=[row])],
    )
    details = plan_details(wanted, GraphIR.empty(), schemas=catalogue.schemas)
    (condition,) = [one for one in details.outline if one.node_id == "conditionAgentflow_0"]
    assert [(one.name, one.to) for one in condition.leads_to] == [
        ("the message contains order", "Direct Reply"),
        ("otherwise", ""),
    ]
    assert "2b otherwise → the flow ends here" in plan_markdown(wanted, details)


@pytest.mark.parametrize("language", LANGUAGES)
def test_branches_of_a_new_flow_are_sentences_before_it_is_known_where_they_lead(
    language: str, catalogue: NodeStore
) -> None:
    nodes = [
        PlannedNode(node_id=f"{name}_0", node_name=name, purpose="x")
        for name in ("startAgentflow", "conditionAgentflow", "humanInputAgentflow", "directReplyAgentflow")
    ]
    row = {"type": "number", "value1": "{{ $form.age }}", "operation": "largerEqual", "value2": "5"}
    values = [value("conditionAgentflow_0", f"conditions[0].{name}", one) for name, one in row.items()]
    wanted = plan(nodes=nodes, flow_kind="AGENTFLOW", values=values)
    shown = plan_markdown(wanted, plan_details(wanted, GraphIR.empty(), language, schemas=catalogue.schemas), language)
    said = say_in(language, "plan.condition.largerEqual", left="age", right="5")
    assert f"  - 2a {said}\n  - 2b {say_in(language, 'plan.branch.else')}\n" in shown
    assert shown.count(said) == 1
    assert not any(word in shown for word in ("largerEqual", "$form", "proceed", "(number)"))


SCENARIOS: list[Any] = [{"scenario": "refund"}, {"scenario": "sale"}]
STEPS: list[PatchOp] = [
    AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
    AddNode(
        node_name="conditionAgentAgentflow",
        node_id="sort_0",
        params={"conditionAgentScenarios": SCENARIOS},
    ),
    AddNode(node_name="llmAgentflow", node_id="llm_0", label="Refund"),
    AddNode(node_name="llmAgentflow", node_id="llm_1", label="Sale"),
    Connect(source_node_id="startAgentflow_0", target_node_id="sort_0"),
    Connect(source_node_id="sort_0", source_anchor="0", target_node_id="llm_0"),
    Connect(source_node_id="sort_0", source_anchor="1", target_node_id="llm_1"),
]


def led(wanted: Plan, catalogue: NodeStore) -> dict[str, list[tuple[str, str]]]:
    base = compile_ops(GraphIR.empty(), STEPS, catalogue.schemas).graph
    whole = with_following_lines(wanted, base, catalogue.schemas)
    outline = plan_details(whole, base, schemas=catalogue.schemas).outline
    return {one.title: [(way.name, way.to) for way in one.leads_to] for one in outline}


def step(node_id: str, label: str = "", *, existing: bool = False) -> PlannedNode:
    name = {"sort_0": "conditionAgentAgentflow", "startAgentflow_0": "startAgentflow"}.get(node_id, "llmAgentflow")
    return PlannedNode(node_id=node_id, node_name=name, purpose="x", label=label, existing=existing)


def test_the_outline_of_a_change_shows_where_its_new_branch_and_steps_lead(catalogue: NodeStore) -> None:
    scenario = value("sort_0", "conditionAgentScenarios[2].scenario", "warranty")
    steps = [step("sort_0", existing=True), step("llm_2", "Warranty"), step("llm_3", "Polish")]
    given = {"operation": "update", "flow_kind": "AGENTFLOW"}
    found = led(plan(nodes=steps, values=[scenario], **given), catalogue)
    assert found["Condition Agent"] == [("refund", "Refund"), ("sale", "Sale"), ("warranty", "Warranty")]
    assert found["Warranty"] == [("", "Polish")]
    # With two new branches nobody knows yet which step is for which.
    other = value("sort_0", "conditionAgentScenarios[3].scenario", "repair")
    wanted = plan(nodes=steps, values=[scenario, other], **given)
    found = led(wanted, catalogue)
    assert found["Condition Agent"] == [("refund", "Refund"), ("sale", "Sale"), ("warranty", ""), ("repair", "")]
    base = compile_ops(GraphIR.empty(), STEPS, catalogue.schemas).graph
    shown = plan_markdown(wanted, plan_details(wanted, base, schemas=catalogue.schemas))
    assert "  - 2b sale → **4 Sale**\n  - 2c warranty\n" in shown


def test_a_step_that_is_put_between_two_others_stands_there_in_the_outline(catalogue: NodeStore) -> None:
    steps = [step("startAgentflow_0", existing=True), step("llm_2", "Check"), step("sort_0", existing=True)]
    gone = [NamedConnection(source="startAgentflow_0", target="sort_0")]
    found = led(plan(nodes=steps, disconnections=gone, operation="update", flow_kind="AGENTFLOW"), catalogue)
    assert list(found) == ["Start", "Check", "Condition Agent", "Refund", "Sale"]
    assert (found["Start"], found["Check"]) == ([("", "Check")], [("", "Condition Agent")])


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("{{$vars.workdaymcpurl}}", "variable"),
        ("[placeholder: paste the address]", "fill in"),
        ("file:", "files"),
        ("https://files.example.com", "https://files.example.com."),
        (".", ""),
    ],
)
def test_what_is_reached_is_said_in_words(host: str, words: str) -> None:
    (said,) = capability_words(Capability(hosts=[host])) or [""]
    assert words in said
    assert "{{" not in said
    assert "[placeholder" not in said


def test_a_plan_says_once_what_holds_for_several_nodes_and_folds_prompts(catalogue: NodeStore) -> None:
    prompt = " ".join(f"Rule{number}." for number in range(100))
    messages: Any = [{"role": "system", "content": prompt}]
    tools: Any = [
        {
            "agentSelectedTool": "searXNG",
            "agentSelectedToolConfig": {"agentSelectedTool": "searXNG", "apiBase": ["a", "b"]},
        }
    ]
    nodes = [step("llm_0", "Draft"), step("llm_1", "Polish")]
    values = [value(id_, "llmModel", "chatOpenAI") for id_ in ("llm_0", "llm_1")]
    values += [value("llm_0", "llmMessages", messages), value("llm_0", "llmTools", tools)]
    found = [
        Finding(code="MODEL_ENDS", severity="warning", detail="?", params={"model": "m", "day": "2027-01-01", **name})
        for name in ({"node": "Draft", "replacement": "n"}, {"node": "Polish", "replacement": "n"})
    ]
    wanted = plan(nodes=nodes, values=values, findings=found, flow_kind="AGENTFLOW")
    details = plan_details(wanted, GraphIR.empty(), schemas=catalogue.schemas)
    shown = plan_markdown(wanted, details)
    assert "**Draft**, **Polish**, Llm model: OpenAI" in shown
    assert shown.count("model: OpenAI") == 1
    assert "instructions: Rule0." in shown
    assert "Rule99." not in shown
    assert "characters in all" in shown
    whole = plan_markdown(wanted, details, full=True)
    assert "Rule99." in whole
    assert "characters in all" not in whole
    assert "SearXNG (a, b)" in shown
    assert shown.count("2027-01-01") == 1


@pytest.mark.parametrize(
    ("allowed", "line"),
    [
        (Capability(commands=['{"url": "https://mcp.example/sse"}']), ""),
        (Capability(commands=['{ ⏎ "url": "https://mcp.example/sse" ⏎ }']), ""),
        (Capability(commands=['{"command": "npx", "args": ["-y", "x"]}']), "Flowise runs the command npx -y x."),
        (Capability(tools=[ToolBinding(node_id="a_0", name="[PLACEHOLDER: which]")]), "a_0 gets a tool that you"),
    ],
)
def test_permissions_say_what_really_happens(allowed: Capability, line: str) -> None:
    said = capability_words(allowed)
    assert said[0].startswith(line) if line else said == []


def test_stores_and_types_of_credentials_have_names() -> None:
    asked = credential_question([MissingCredential(type="googleCalendarOAuth2", candidates=[])])
    assert "type Google Calendar." in asked.message
    id_ = "13523bf5-6644-4922-86a3-68ecc421d714"
    assert (without_id(f"{id_}:Handbook"), without_id("Handbook")) == ("Handbook", "Handbook")


def test_what_is_left_out_of_a_trace_is_said() -> None:
    steps = [TraceStep(node_id=f"llm_{number}") for number in range(30)]
    assert "... and 10 more" in trial_text(1, Trial(question="Hi", passed=True), Trace(steps=steps))


def test_a_new_line_is_named_by_the_branch_that_the_change_makes(catalogue: NodeStore) -> None:
    conditions: Any = [
        {"type": "string", "value1": "{{ question }}", "operation": "contains", "value2": words}
        for words in ("order", "refund")
    ]
    made: list[PatchOp] = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="conditionAgentflow", node_id="if_0", params={"conditions": conditions[:1]}),
        AddNode(node_name="llmAgentflow", node_id="llm_0", label="Refund"),
        Connect(source_node_id="startAgentflow_0", target_node_id="if_0"),
    ]
    base = compile_ops(GraphIR.empty(), made, catalogue.schemas).graph
    allowed = Capability(lines=[LineChange(source="if_0", output="1", target="llm_0", change="add")])
    node = PlannedNode(node_id="if_0", node_name="conditionAgentflow", purpose="x", existing=True)
    wanted = plan(
        nodes=[node],
        values=[value("if_0", "conditions", conditions)],
        connections=[NamedConnection(source="if_0", output="1", target="llm_0")],
        capability=allowed,
        operation="update",
        flow_kind="AGENTFLOW",
    )
    (said,) = plan_details(wanted, base, schemas=catalogue.schemas).allows
    assert "(the message contains refund)" in said


def test_lines_for_people_say_titles_in_place_of_ids_and_texts_stay_exact(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wanted = contract(
        parts=[Part(id="p1", quote="a pony", state="not_possible", reason="chatOpenAI_0 has none.")],
        values=[
            value("toolAgent_0", "systemMessage", "Say\n{{ chatOpenAI_0 }}"),
            value("toolAgent_0", "maxIterations", "{{ chatOpenAI_0.data.instance }}"),
        ],
        placeholders=["key of the model (key of chatOpenAI_0)", "https://a.example/chatOpenAI_0"],
    )
    shown = plan_markdown(wanted, plan_details(wanted, base, schemas=catalogue.schemas))
    for line in (
        "“a pony”: OpenAI has none.",
        "  + {{ OpenAI }}",
        "Max Iterations: {{ OpenAI }}",
        "key of the model (key of OpenAI)",
        "https://a.example/chatOpenAI_0",
    ):
        assert line in shown, line


def test_a_value_is_said_once_and_rows_in_words(catalogue: NodeStore) -> None:
    rows = {
        "formInputTypes[0].type": "string",
        "formInputTypes[0].label": "Unit number",
        "formInputTypes[0].name": "unit_number",
        "formInputTypes[1].type": "number",
        "formInputTypes[1].label": "Floor",
        "formInputTypes[1].name": "floor",
        "startState[0].key": "remark",
        "startState[0].value": "none yet",
        "conditions[0].type": "number",
        "conditions[0].operation": "larger",
        "code": "return 1;",
        "conditions[0].value1": "{{ $form.floor }}",
        "conditions[0].value2": "3",
        "answer": [{"key": "trade", "type": "string", "description": "Trade"}],
        "llmMessages[0].role": "system",
        "llmMessages[0].content": "Be kind.\nBe brief.",
    }
    wanted = contract(
        planned("startAgentflow_0", existing=False),
        parts=[
            Part(id="p1", quote="a form", state="covered", values=[f"startAgentflow_0.{param}" for param in rows]),
        ],
        values=[value("startAgentflow_0", param, new) for param, new in rows.items()],
    )
    shown = plan_markdown(wanted, plan_details(wanted, GraphIR.empty(), schemas=catalogue.schemas))
    asked, values = (
        shown.split(f"## {heading}\n")[1].split("\n\n##")[0] for heading in ("What you asked for", "Values")
    )
    assert asked == "- “a form” → **Start**"
    assert values.splitlines() == [
        "- **Start**, Form Input Types:",
        "  - Unit number (String): Variable Name: unit_number",
        "  - Floor (Number): Variable Name: floor",
        "- **Start**, Flow State: remark: none yet",
        "- **Start**, Conditions: floor is more than 3",
        "- **Start**, Code: return 1;",
        "- **Start**, Answer: trade (string): Description: Trade",
        "- **Start**, Content (instructions):",
        "",
        "  ```",
        "  Be kind.",
        "  Be brief.",
        "  ```",
    ]


def test_a_node_is_either_changed_or_as_it_is_and_a_removed_one_has_no_values(catalogue: NodeStore) -> None:
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    wanted = contract(
        planned("toolAgent_0"),
        planned("chatOpenAI_0"),
        planned("calculator_1", existing=False).model_copy(update={"node_name": "calculator"}),
        removals=["calculator_0"],
        disconnections=[NamedConnection(source="calculator_0", target="toolAgent_0")],
        values=[value("chatOpenAI_0", "temperature", 0.2), value("calculator_0", "name", "old")],
    )
    shown = plan_markdown(wanted, plan_details(wanted, base, schemas=catalogue.schemas))
    assert "- Changes: OpenAI, Tool Agent." in shown.splitlines()
    assert "- Removes: Calculator 1." in shown.splitlines()
    assert "**Buffer Memory** (as it is)" in shown
    assert shown.split("## Values\n")[1].split("\n\n")[0] == "- **OpenAI**, Temperature: 0.2 (now: 0.9)"


def test_a_changed_text_shows_what_differs_with_its_neighbours(catalogue: NodeStore) -> None:
    lines = [f"Rule {number}." for number in range(20)]
    base = compile_ops(
        GraphIR.empty(),
        [AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": "\n".join(lines)})],
        catalogue.schemas,
    ).graph
    lines[7] = "Never shout."
    more = [*lines, *(f"Added {number}." for number in range(10))]
    wanted = contract(planned("toolAgent_0"), values=[value("toolAgent_0", "systemMessage", "\n".join(more))])
    details = plan_details(wanted, base, schemas=catalogue.schemas)
    diff = plan_markdown(wanted, details).partition("```diff\n")[2].partition("\n  ```")[0].splitlines()
    assert [one.removeprefix("  ") for one in diff] == [
        *("…", "  Rule 6.", "- Rule 7.", "+ Never shout.", "  Rule 8."),
        *("…", "  Rule 19.", "+ Added 0.", "+ Added 1.", "+ Added 2.", "+ …"),
    ]
    assert "+ Added 9." in plan_markdown(wanted, details, full=True)


def test_a_plan_in_a_language_that_is_not_spoken_here_says_so_once(catalogue: NodeStore) -> None:
    wanted = contract(planned("toolAgent_0"))
    told = say("plan.summary.in_english")
    for language, times in (("it", 1), ("de", 0), ("en", 0)):
        assert plan_markdown(wanted, language=language).count(told) == times


def test_texts_are_shown_as_they_read_and_rows_can_be_told_apart(catalogue: NodeStore) -> None:
    messages: Any = [{"role": "system", "content": "<p>Be brief.</p><p>Be kind.</p>"}]
    made: list[PatchOp] = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", params={"llmMessages": messages}),
    ]
    base = compile_ops(GraphIR.empty(), made, catalogue.schemas).graph
    wanted = contract(
        planned("llmAgentflow_0"),
        values=[
            value("llmAgentflow_0", "llmMessages[0].content", "<p>Be brief.</p><p>Be polite.</p>"),
            value("startAgentflow_0", "startState", [{"key": "remark", "value": ""}]),
        ],
        flow_kind="AGENTFLOW",
    )
    details = plan_details(wanted, base, schemas=catalogue.schemas)
    shown = plan_markdown(wanted, details)
    assert "**LLM**, Messages 1, Content:" in shown
    assert "- Be kind.\n  + Be polite." in shown
    assert "Flow State: remark: (empty)" in shown
    assert "<p>" not in shown
    assert "p>Be polite." in plan_markdown(wanted, details, full=True)


def test_a_loop_says_where_it_goes_back_to_and_quotes_are_those_of_the_language(catalogue: NodeStore) -> None:
    ids = ("startAgentflow_0", "llmAgentflow_0", "loopAgentflow_0")
    wanted = plan(
        nodes=[planned(id_, existing=False) for id_ in ids],
        values=[value(ids[2], "loopBackToNode", ids[1])],
        connections=[NamedConnection(source=one, target=two) for one, two in itertools.pairwise(ids)],
        parts=[Part(id="p1", quote="nochmal", state="covered", nodes=[ids[2]])],
        flow_kind="AGENTFLOW",
    )
    details = plan_details(wanted, GraphIR.empty(), "de", schemas=catalogue.schemas)
    shown = plan_markdown(wanted, details, "de")
    assert say_in("de", "plan.leads_on", target="**2 LLM**") in shown
    # Before its lines are known, no step is said to end.
    unknown = wanted.model_copy(update={"connections": []})
    details = plan_details(unknown, GraphIR.empty(), "de", schemas=catalogue.schemas)
    assert say_in("de", "plan.branch_ends") not in plan_markdown(unknown, details, "de")
    assert "„nochmal“" in shown


def test_a_chatflow_is_not_said_to_end_where_its_inner_nodes_follow(catalogue: NodeStore) -> None:
    ids = ("conversationChain_0", "chatOpenAI_0")
    wanted = plan(
        nodes=[planned(id_, existing=False) for id_ in ids],
        connections=[NamedConnection(source=ids[1], target=ids[0], input="model")],
    )
    details = plan_details(wanted, GraphIR.empty(), schemas=catalogue.schemas)
    assert [one.depth for one in details.outline] == [0, 1]
    assert say("plan.branch_ends") not in plan_markdown(wanted, details)
