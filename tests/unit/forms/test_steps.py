"""A flow of typed steps from a form: its nodes, what they hold, and how they follow one another."""

import json
import re
from typing import Any

import pytest

from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.approval.promises import not_met
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.references import variables
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.texts import translated
from tests.unit.forms.test_forms import compiled, planned

DRAFT = {"kind": "answer", "title": "Draft", "prompt": "Write a reply."}
ASK = {"kind": "approve", "title": "Check", "question": "Send this?"}
BYE = {"kind": "reply", "branch": "rejected", "message": "Sorry."}
SHORT = {
    "startAgentflow": "start", "llmAgentflow": "llm", "agentAgentflow": "agent", "conditionAgentAgentflow": "sort",
    "humanInputAgentflow": "ask", "httpAgentflow": "http", "customFunctionAgentflow": "code", "loopAgentflow": "loop",
    "iterationAgentflow": "each", "directReplyAgentflow": "reply",
}  # fmt: skip


async def built(nodes: NodeStore, *steps: dict[str, Any], **more: Any) -> tuple[Plan, dict[str, Any], str]:
    """The plan, its values and its connections; its flow is one that Flowise takes, and holds all of it."""
    plan = await planned(nodes, kind="steps", steps=steps, **more)
    assert plan.declined is None, plan.declined
    assert not_met(plan, GraphIR.empty(), await compiled(plan, nodes)) == []
    names = {node.node_id: re.sub("_(?=[0-9])", "", node.node_id) for node in plan.nodes}
    names = {id_: re.sub("^[A-Za-z]+", lambda one: SHORT[one[0]], name) for id_, name in names.items()}
    links = " ".join(f"{names[one.source]}{':' * bool(one.output)}{one.output}>{names[one.target]}"
                     for one in plan.connections)  # fmt: skip
    return plan, {f"{one.node_id}.{one.param}": one.value for one in plan.values}, links


def prompt_of(values: dict[str, Any], node: str) -> str:
    """What the model of a node is told."""
    return next(value[0]["content"] for name, value in values.items() if re.fullmatch(rf"{node}\.\w+Messages", name))


#: Steps -> their connections.
FLOWS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "answers": ([DRAFT, {"kind": "answer", "prompt": "Translate it."}], "start0>llm0 llm0>llm1"),
    "agent": ([{"kind": "answer", "prompt": "Add up.", "tools": ["calculator"]}], "start0>agent0"),
    "branches with several steps": (
        [
            {"kind": "sort", "branches": ["billing", "other"]},
            DRAFT | {"branch": "billing"},
            {"kind": "answer", "prompt": "Shorten it."},
            {"kind": "reply", "branch": "other", "message": "Please call us."},
            {"kind": "answer", "branch": "Billing", "prompt": "Sign it."},
        ],
        "start0>sort0 sort0:0>llm0 llm0>llm1 sort0:1>reply0 llm1>llm2",
    ),
    "nested branches": (
        [
            {"kind": "sort", "branches": ["a", "b"]},
            {"kind": "sort", "branch": "a", "branches": ["c", "d"]},
            {"kind": "reply", "branch": "c", "message": "c"},
            {"kind": "reply", "branch": "b", "message": "b"},
            {"kind": "reply", "branch": "d", "message": "d"},
        ],
        "start0>sort0 sort0:0>sort1 sort1:0>reply0 sort0:1>reply1 sort1:1>reply2",
    ),
    "approved, else made again": (
        [DRAFT, ASK, {"kind": "repeat", "branch": "rejected", "back_to": "Draft"}],
        "start0>llm0 llm0>ask0 ask0:reject>loop0 ask0:proceed>reply0",
    ),
    "approved goes on": (
        [DRAFT, ASK, {"kind": "answer", "prompt": "Translate it."}, BYE],
        "start0>llm0 llm0>ask0 ask0:proceed>llm1 ask0:reject>reply0",
    ),
    "approved twice": (
        [DRAFT, ASK, BYE, ASK | {"title": "Again", "branch": "approved"}, BYE],
        "start0>llm0 llm0>ask0 ask0:reject>reply0 ask0:proceed>ask1 ask1:reject>reply1 ask1:proceed>reply2",
    ),
    "each": (
        [{"kind": "each", "title": "Prices", "prompt": "Name its price."}, {"kind": "answer", "prompt": "Add up."}],
        "start0>llm0 llm0>each0 each0:each>llm1 each0>llm2",
    ),
    "call with a body": (
        [DRAFT, {"kind": "call", "method": "POST", "url": "https://a.example", "body": '{"text": "{Draft}"}'}],
        "start0>llm0 llm0>code0 code0>http0",
    ),
    "made again until a model finds it good": (
        [
            DRAFT,
            {"kind": "answer", "prompt": "Is it good? Say what to change."},
            {"kind": "sort", "branches": ["good", "not good"]},
            {"kind": "reply", "branch": "good", "message": "{Draft}"},
            {"kind": "repeat", "branch": "not good", "back_to": "Draft", "times": 2},
        ],
        "start0>llm0 llm0>llm1 llm1>sort0 sort0:0>reply0 sort0:1>loop0",
    ),
}


@pytest.mark.parametrize("name", FLOWS)
async def test_steps_become_a_flow_that_flowise_takes(name: str, catalogue: NodeStore) -> None:
    steps, links = FLOWS[name]
    plan, _, made = await built(catalogue, *steps)
    assert made == links
    assert plan.flow_kind == "AGENTFLOW"
    assert plan.flow_name == "Desk"
    assert [part.state for part in plan.parts] == ["covered"] * len(steps)
    assert all(part.nodes for part in plan.parts)


async def test_a_step_has_its_title_its_model_and_its_tools(catalogue: NodeStore) -> None:
    own = {"model": "Claude Sonnet", "temperature": 0.7, "tools": ["calculator", "Current DateTime"]}
    plan, values, _ = await built(
        catalogue, DRAFT, {"kind": "answer", "prompt": "Add it all up, please, and tell me the sum.", **own},
        {"kind": "answer", "prompt": "Sign it.", "temperature": 0}, model="gpt-4o", temperature=0.2,
    )  # fmt: skip
    assert [node.label for node in plan.nodes] == ["Start", "Draft", "Add it all up, please,", "Sign it."]
    assert values["llmAgentflow_0.llmModelConfig"] == {"modelName": "gpt-4o", "temperature": 0.2}
    assert values["llmAgentflow_1.llmModelConfig"] == {"modelName": "gpt-4o", "temperature": 0}
    assert values["agentAgentflow_0.agentModel"] == "chatAnthropic"
    assert values["agentAgentflow_0.agentModelConfig"]["temperature"] == 0.7
    tools = [row["agentSelectedTool"] for row in values["agentAgentflow_0.agentTools"]]
    assert tools == ["calculator", "currentDateTime"]
    assert plan.credential_requirements == ["openAIApi", "anthropicApi"]


async def test_titles_of_the_person_stay_as_they_are(catalogue: NodeStore) -> None:
    each = {"kind": "each", "title": "List the items", "prompt": "Name its price."}
    plan, _, _ = await built(catalogue, each, each | {"title": "Start"}, DRAFT, {"kind": "answer", "prompt": "Draft"})
    labels = [node.label for node in plan.nodes]
    assert len({*labels}) == len(labels)
    (first, second) = (node.label for node in plan.nodes if node.node_name == "iterationAgentflow")
    assert (first, second) == ("List the items", "Start")


async def test_results_that_no_conversation_holds_are_handed_on(catalogue: NodeStore) -> None:
    call = {"kind": "call", "title": "Order", "url": "https://shop.example/orders/{message}"}
    _, values, _ = await built(
        catalogue, call, DRAFT, {"kind": "answer", "prompt": "Sign it."},
        {"kind": "each", "prompt": "Shorten it."}, {"kind": "answer", "prompt": "Join them."},
    )  # fmt: skip
    assert values["httpAgentflow_0.url"] == "https://shop.example/orders/{{ question }}"
    assert prompt_of(values, "llmAgentflow_0") == "Write a reply.\n\n{{ httpAgentflow_0 }}"
    assert prompt_of(values, "llmAgentflow_1") == "Sign it."
    assert prompt_of(values, "llmAgentflow_4") == "Join them.\n\n{{ iterationAgentflow_0 }}"
    _, values, _ = await built(catalogue, call, DRAFT | {"prompt": "Answer with {order}."})
    assert prompt_of(values, "llmAgentflow_0") == "Answer with {{ httpAgentflow_0 }}."


async def test_each_item_is_done_apart_from_all_other_steps(catalogue: NodeStore) -> None:
    _, values, _ = await built(catalogue, {"kind": "each", "prompt": "Name its price.", "temperature": 0})
    rows = values["llmAgentflow_0.llmStructuredOutput"]
    assert [(row["key"], row["type"]) for row in rows] == [("items", "stringArray")]
    assert values["iterationAgentflow_0.iterationInput"] == "{{ llmAgentflow_0.output.items }}"
    assert values["llmAgentflow_1.llmMessages"] == [
        {"role": "system", "content": "Name its price."}, {"role": "user", "content": "{{ $iteration }}"},
    ]  # fmt: skip
    assert values["llmAgentflow_1.llmEnableMemory"] is False
    assert values["llmAgentflow_0.llmModelConfig"] == values["llmAgentflow_1.llmModelConfig"] == {"temperature": 0}


async def test_a_body_is_made_by_code_in_which_texts_stay_texts(catalogue: NodeStore) -> None:
    body = {
        "text": '"{Draft}"\n{message}',
        "tags": ["a\\b", {"`${1}`": "'; throw 1; '"}],
        "n": 1.5,
        "on": True,
        "no": None,
    }
    plan, values, _ = await built(
        catalogue, DRAFT, {"kind": "call", "method": "POST", "url": "https://a.example/x", "body": json.dumps(body)}
    )
    assert values["customFunctionAgentflow_0.customFunctionInputVariables"] == [
        {"variableName": "value1", "variableValue": "{{ llmAgentflow_0 }}"},
        {"variableName": "value2", "variableValue": "{{ question }}"},
    ]
    code = values["customFunctionAgentflow_0.customFunctionJavascriptFunction"]
    assert code == (
        r'return JSON.stringify({"text": "\"" + $value1 + "\"\n" + $value2, "tags": ["a\\b", '
        r"""{"`${1}`": "'; throw 1; '"}], "n": 1.5, "on": true, "no": null});"""
    )
    assert values["httpAgentflow_0.body"] == "{{ customFunctionAgentflow_0 }}"
    assert values["httpAgentflow_0.bodyType"] == "json"
    capability = capability_of(plan, catalogue.schemas, GraphIR.empty())
    assert capability.hosts == ["https://a.example"]
    assert capability.code == ["customFunctionAgentflow_0"]


async def test_a_loop_goes_back_as_often_as_said_and_then_gives_what_was_made(catalogue: NodeStore) -> None:
    steps, _ = FLOWS["made again until a model finds it good"]
    _, values, _ = await built(catalogue, *steps)
    loop = {name.partition(".")[2]: value for name, value in values.items() if name.startswith("loop")}
    # Flowise counts the first time, too.
    assert loop == {
        "loopBackToNode": "llmAgentflow_0-Draft", "maxLoopCount": 3, "fallbackMessage": "{{ llmAgentflow_0 }}",
    }  # fmt: skip


async def test_a_person_sees_the_answer_and_may_say_what_is_wrong_with_it(catalogue: NodeStore) -> None:
    _, values, _ = await built(catalogue, DRAFT, ASK, BYE | {"message": "Not sent: {Check}"})
    human = {name.partition(".")[2]: value for name, value in values.items() if name.startswith("human")}
    assert human == {
        "humanInputDescriptionType": "fixed", "humanInputEnableFeedback": True, "humanInputDescription": "Send this?",
    }  # fmt: skip
    assert values["directReplyAgentflow_0.directReplyMessage"] == "Not sent: {{ humanInputAgentflow_0 }}"
    assert values["directReplyAgentflow_1.directReplyMessage"] == "{{ llmAgentflow_0 }}"


async def test_once_a_person_was_asked_the_message_is_read_at_the_start(catalogue: NodeStore) -> None:
    call = {"kind": "call", "url": "https://a.example/{message}"}
    _, values, _ = await built(catalogue, DRAFT, ASK, BYE, call | {"branch": "approved"})
    assert values["httpAgentflow_0.url"] == "https://a.example/{{ startAgentflow_0.output.question }}"


async def test_a_sorter_sees_the_message_and_the_latest_answer_and_takes_advice(catalogue: NodeStore) -> None:
    sort = {"kind": "sort", "branches": ["good", "bad"], "prompt": "Bad is what {Draft} calls so."}
    ends = [{"kind": "reply", "branch": name, "message": name} for name in ("good", "bad")]
    plan, values, _ = await built(catalogue, DRAFT, sort, *ends)
    assert values["conditionAgentAgentflow_0.conditionAgentInput"] == "{{ question }}\n\n{{ llmAgentflow_0 }}"
    advice = "Bad is what {{ llmAgentflow_0 }} calls so."
    assert values["conditionAgentAgentflow_0.conditionAgentInstructions"] == advice
    rows = values["conditionAgentAgentflow_0.conditionAgentScenarios"]
    assert rows == [{"scenario": "good"}, {"scenario": "bad"}]
    # Each branch is tried.
    assert ["good" in plan.tests[0].turns[0], "bad" in plan.tests[1].turns[0]] == [True, True]
    assert len(plan.tests) == 2
    assert {one.text: one.tests for one in plan.criteria}.popitem()[1] == ["t1", "t2"]


async def test_a_flow_starts_with_a_form(catalogue: NodeStore) -> None:
    inputs = [
        {"name": "name", "label": "Your name"}, {"name": "nights", "type": "number"},
        {"name": "room", "type": "options", "options": ["sea", "garden"]},
    ]  # fmt: skip
    plan, values, _ = await built(
        catalogue, {"kind": "sort", "branches": ["long", "short"]},
        DRAFT | {"branch": "long", "prompt": "Thank {name} for {Nights} nights."},
        {"kind": "reply", "branch": "short", "message": "See you, {name}."}, start="form", inputs=inputs,
    )  # fmt: skip
    start = {name.partition(".")[2]: value for name, value in values.items() if name.startswith("start")}
    assert start.pop("formInputTypes") == [
        {"type": "string", "label": "Your name", "name": "name"},
        {"type": "number", "label": "nights", "name": "nights"},
        {"type": "options", "label": "room", "name": "room", "addOptions": [{"option": "sea"}, {"option": "garden"}]},
    ]
    assert start == {"startInputType": "formInput", "formTitle": "Desk", "formDescription": "Desk"}
    assert prompt_of(values, "llmAgentflow_0") == "Thank {{ $form.name }} for {{ $form.nights }} nights."
    assert values["conditionAgentAgentflow_0.conditionAgentInput"] == (
        "Your name: {{ $form.name }}\nnights: {{ $form.nights }}\nroom: {{ $form.room }}"
    )
    assert plan.parts[0].quote == "Form: Your name, nights, room"
    assert plan.parts[0].nodes == ["startAgentflow_0"]


@pytest.mark.parametrize(
    ("weekdays", "expected"),
    [
        ([], {"scheduleFrequency": "daily"}),
        (["monday", "friday"], {"scheduleFrequency": "weekly", "scheduleOnDayOfWeek": "1,5"}),
    ],
)
async def test_a_flow_starts_at_a_time(weekdays: list[str], expected: dict[str, str], catalogue: NodeStore) -> None:
    schedule = {"time": "07:15", "timezone": "Europe/Dublin", "weekdays": weekdays, "text": "Write about cod."}
    plan, values, _ = await built(catalogue, DRAFT, start="schedule", schedule=schedule)
    start = {name.partition(".")[2]: value for name, value in values.items() if name.startswith("start")}
    assert start == {
        "startInputType": "scheduleInput", "scheduleType": "visualPicker", "scheduleOnTime": "07:15",
        "scheduleTimezone": "Europe/Dublin", "scheduleInputMode": "text", "scheduleDefaultInput": "Write about cod.",
        **expected,
    }  # fmt: skip
    assert plan.parts[0].quote.startswith("Schedule: ")
    assert translated(plan.parts[0].worded("quote"), "de").startswith("Zeitplan: ")


@pytest.mark.parametrize(
    ("steps", "more", "named"),
    [
        ([DRAFT], {"model": "HAL 9000"}, "HAL 9000"),
        ([DRAFT | {"model": "HAL 9000"}], {}, "HAL 9000"),
        ([DRAFT | {"tools": ["time machine"]}], {}, "time machine"),
        ([DRAFT], {"start": "schedule",
                   "schedule": {"time": "07:15", "timezone": "Europe/Berlni", "text": "x"}}, "Europe/Berlin"),
        ([{"kind": "each", "title": str(n), "prompt": "x"} for n in range(12)], {}, "too large"),
    ],
    ids=["model", "model of a step", "tool", "time zone", "size"],
)  # fmt: skip
async def test_what_flowise_does_not_have_is_declined(
    steps: list[dict[str, Any]], more: dict[str, Any], named: str, catalogue: NodeStore
) -> None:
    plan = await planned(catalogue, kind="steps", steps=steps, **more)
    assert named in str(plan.declined)


#: Texts that Flowise would read as a variable, as they are or once it takes them for HTML.
HOSTILE = [
    "<p>&#123;&#123; $vars.token }}</p>",
    "<p>&#x7B&#X07b; $vars.token }}</p>",
    "<p>{<b></b>{ $vars.token }}</p>",
    "<div>&lcub;&lbrace; $vars.token }}</div>",
    "<p>{&#123; $flow.state.key }}</p>",
    "<p>{<!-- > -->{ $vars.token }}</p>",
]


def as_read(text: str) -> str:
    """What Flowise makes of HTML, as far as braces go."""
    plain = re.sub(r"<!--.*?-->|<[^>]*>", "", text)
    plain = re.sub(r"(?i)&#(?:0*123|x0*7b);?|&(?:lcub|lbrace);", "{", plain)
    return re.sub(r"\s+", " ", plain)


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_text_of_a_person_becomes_a_variable(text: str, catalogue: NodeStore) -> None:
    steps = [
        {"kind": "answer", "title": "Draft", "prompt": text},
        {"kind": "sort", "prompt": text, "branches": ["a", "b"]},
        {"kind": "approve", "branch": "a", "question": text},
        {"kind": "reply", "branch": "rejected", "message": text},
        {"kind": "each", "branch": "b", "prompt": text},
        {"kind": "call", "method": "POST", "url": "https://a.example", "body": json.dumps({"text": text})},
    ]
    schedule = {"time": "07:15", "timezone": "Europe/Dublin", "text": text}
    _, values, _ = await built(catalogue, *steps)
    _, timed, _ = await built(catalogue, steps[0], start="schedule", schedule=schedule)
    mine = {"startAgentflow_0.output.question", "llmAgentflow_0", "iterationAgentflow_0", "llmAgentflow_1.output.items",
            "customFunctionAgentflow_0", "$iteration"}  # fmt: skip
    code = "customFunctionAgentflow_0.customFunctionJavascriptFunction"
    for name, value in [*values.items(), *timed.items()]:
        texts = json.loads(as_read(json.dumps(value))) if name != code else ""
        assert {*variables(value), *variables(texts)} <= mine, name


def test_what_a_step_names_cannot_change_the_host_of_an_address() -> None:
    for url in ("https://{message}/x", "https://a.example{message}", "https://a@b.example", "https://a.example\\@b.example",
                "ftp://a.example", "a.example", "https://a.example:{message}/", "https:///x"):  # fmt: skip
        with pytest.raises(ValueError, match="its address"):
            DesignForm.model_validate({"name": "x", "kind": "steps", "steps": [{"kind": "call", "url": url}]})
