"""Each statement and each worked example of the AgentFlow chapter, on a real Flowise.

`@states` names the statements that a test shows, by their beginnings; one test checks that none is left out.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from pydantic import TypeAdapter

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    GraphIR,
    PatchOp,
    Schemas,
    SetParent,
    compile_ops,
    errors,
    validate_flow,
)

CHAPTER = (files("flowise_dev_agent.planning.skills") / "agentflows.md").read_text("utf-8")
STATEMENTS = [line[2:] for line in CHAPTER.splitlines() if line.startswith("- ")]
EXAMPLES = {
    title: TypeAdapter(list[PatchOp]).validate_python(json.loads(body)["ops"])
    for title, body in re.findall(r"^([^\n]+):\n\n```json\n(.*?)\n```", CHAPTER, re.MULTILINE | re.DOTALL)
}
_SHOWN: list[str] = []

Test = Callable[..., Any]


def states(*beginnings: str) -> Callable[[Test], Test]:
    """The statements of the chapter that the test shows."""
    _SHOWN.extend(beginnings)
    return lambda test: test


class Server:
    """A Flowise with what these tests need of it: flows from ops, and questions in every form that it takes."""

    def __init__(self, access: FlowiseAccess, http: httpx2.AsyncClient, schemas: Schemas) -> None:
        self._credential = access.credentials["openAIApi"]
        self._http = http
        self._schemas = schemas
        self._made: list[str] = []

    def compiled(self, ops: list[PatchOp]) -> str:
        return compile_ops(GraphIR.empty(), ops, self._schemas, credentials={"openAIApi": self._credential}).flow_data

    def findings(self, ops: list[PatchOp]) -> list[str]:
        """Codes of the errors that the validator finds."""
        known = {self._credential: "openAIApi"}
        found = validate_flow(self.compiled(ops), schemas=self._schemas, credentials=known, kind="AGENTFLOW")
        return [finding.code for finding in errors(found)]

    async def create(self, *ops: PatchOp) -> str:
        body = {"name": "chapter", "type": "AGENTFLOW", "flowData": self.compiled(list(ops))}
        answer = (await self._http.post("/chatflows", json=body)).raise_for_status()
        self._made.append(answer.json()["id"])
        return self._made[-1]

    async def ask(self, flow: str, question: str | None = None, *, session: str | None = None, **body: Any) -> Any:
        """The reply's JSON; of an error its message."""
        if question is not None:
            body["question"] = question
        if session is not None:
            body |= {"chatId": session, "overrideConfig": {"sessionId": session}}
        reply = (await self._http.post(f"/prediction/{flow}", json=body)).json()
        return reply if "text" in reply else reply["message"]

    async def text(self, flow: str, question: str | None = None, **body: Any) -> str:
        reply = await self.ask(flow, question, **body)
        return reply["text"] if isinstance(reply, dict) else f"error: {reply}"

    async def webhook(self, flow: str, query: str, **body: Any) -> str:
        return (await self._http.post(f"/webhook/{flow}?{query}", json=body)).json()["text"]

    async def configure(self, flow: str, config: Any) -> None:
        body = {"chatbotConfig": json.dumps(config)}
        (await self._http.put(f"/chatflows/{flow}", json=body)).raise_for_status()

    async def upload(self, flow: str, name: str, content: str) -> Any:
        files = {"files": (name, content.encode(), "text/plain")}
        return (await self._http.post(f"/attachments/{flow}/{uuid4()}", files=files)).json()

    async def clean(self) -> None:
        for flow in self._made:
            await self._http.delete(f"/chatflows/{flow}")


@pytest.fixture
async def server(flowise: FlowiseAccess, schemas: Schemas) -> AsyncIterator[Server]:
    headers = {"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"}
    url = f"{flowise.endpoint}/api/v1"
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False) as http:
        server = Server(flowise, http, schemas)
        yield server
        await server.clean()


# --- building blocks -------------------------------------------------------------------------------------------------

MODEL = {"modelName": "gpt-4o-mini", "streaming": False}


def step(node_id: str, label: str | None = None, **params: Any) -> AddNode:
    return AddNode(node_name=node_id.rpartition("_")[0], node_id=node_id, label=label, params=params)


def llm(number: int, *messages: str, **params: Any) -> list[PatchOp]:
    """An LLM step whose messages are "role: content"."""
    rows = [dict(zip(("role", "content"), message.split(": ", 1), strict=True)) for message in messages]
    node = f"llmAgentflow_{number}"
    params = {"llmModel": "chatOpenAI", "llmModelConfig": MODEL, "llmMessages": rows, **params}
    return [step(node, f"LLM {number}", **params), bind(node, "llmModelConfig")]


def agent(**params: Any) -> list[PatchOp]:
    node = "agentAgentflow_0"
    rows = [{"role": "system", "content": "You calculate."}]
    return [
        step(node, agentModel="chatOpenAI", agentModelConfig=MODEL, agentMessages=rows, **params),
        bind(node, "agentModelConfig"),
    ]


def bind(node: str, path: str) -> BindCredential:
    return BindCredential(node_id=node, credential_type="openAIApi", path=path)


def chain(*nodes: str) -> list[PatchOp]:
    """Connections from each node to the next; "node/1" leaves by branch 1."""
    ops: list[PatchOp] = []
    for source, target in pairwise(nodes):
        name, _, branch = source.partition("/")
        ops.append(Connect(source_node_id=name, source_anchor=branch or None, target_node_id=target.partition("/")[0]))
    return ops


def start(**params: Any) -> AddNode:
    return step("startAgentflow_0", **params)


def reply(message: str, number: int = 0) -> AddNode:
    return step(f"directReplyAgentflow_{number}", directReplyMessage=message)


def condition(type_: str, value: str, operation: str, other: object) -> AddNode:
    row = {"type": type_, "value1": value, "operation": operation, "value2": other}
    return step("conditionAgentflow_0", conditions=[row])


START, LLM, LLM1, REPLY, REPLY1 = (
    "startAgentflow_0",
    "llmAgentflow_0",
    "llmAgentflow_1",
    "directReplyAgentflow_0",
    "directReplyAgentflow_1",
)


def either(
    type_: str, value: str, operation: str, other: object, *before: PatchOp, source: str = START
) -> list[PatchOp]:
    """A condition that answers IF or ELSE."""
    return [
        start(),
        *before,
        condition(type_, value, operation, other),
        reply("IF"),
        reply("ELSE", 1),
        *chain(source, "conditionAgentflow_0/0", REPLY),
        *chain("conditionAgentflow_0/1", REPLY1),
    ]


def structured(**fields: Any) -> Callable[[RecordedRequest], Reply]:
    """What a model answers that is asked for these fields."""
    return lambda request: Reply(tool_calls=(StandInToolCall(request.forced_tool, fields),))


def seen(standin: ModelStandIn) -> list[list[tuple[str, str]]]:
    """Of each request to a model its turns."""
    return [[(turn.role, turn.text) for turn in request.messages] for request in standin.requests]


def ran(answer: Any) -> list[str]:
    return [entry["nodeId"] for entry in answer["agentFlowExecutedData"]]


# --- the chapter itself ----------------------------------------------------------------------------------------------


def test_every_statement_of_the_chapter_is_shown_by_a_test() -> None:
    matched = [[line for line in STATEMENTS if line.startswith(beginning)] for beginning in _SHOWN]
    assert [beginning for beginning, lines in zip(_SHOWN, matched, strict=True) if len(lines) != 1] == []
    assert sorted(STATEMENTS) == sorted(lines[0] for lines in matched)
    assert len(EXAMPLES) == 6


@pytest.mark.parametrize("title", EXAMPLES)
async def test_a_worked_example_passes_the_checks(title: str, server: Server) -> None:
    assert server.findings(EXAMPLES[title]) == []


async def test_the_example_with_approval_drafts_again_with_the_comment(server: Server, standin: ModelStandIn) -> None:
    flow = await server.create(*EXAMPLES["Sort, an answer per branch, approval on one branch only"])
    standin.script("what the parent's message to the school is about", Reply('{"output": "leave for a trip"}'), times=1)
    standin.script("Write an answer to the request for leave", lambda request: Reply(f"draft {len(standin.requests)}"))
    session = str(uuid4())

    asked = await server.ask(flow, "Two days off, please", session=session)
    again = await server.ask(flow, session=session, humanInput={"type": "reject", "feedback": "warmer"})
    sent = await server.text(flow, session=session, humanInput={"type": "proceed"})

    assert asked["action"] is not None
    assert again["action"] is not None
    assert ("user", "warmer") in seen(standin)[-1]
    assert sent == "draft 3"


@pytest.mark.parametrize(("scenario", "answer"), [("a child is ill", "Get well"), ("anything else", None)])
async def test_the_example_with_approval_asks_nobody_on_other_branches(
    scenario: str, answer: str | None, server: Server, standin: ModelStandIn
) -> None:
    flow = await server.create(*EXAMPLES["Sort, an answer per branch, approval on one branch only"])
    standin.script("what the parent's message to the school is about", Reply(json.dumps({"output": scenario})), times=1)
    standin.script("You confirm that the child is excused", Reply("Get well"))
    given = await server.ask(flow, "Hello")
    assert given["text"] == (answer or "Please call the office for that.")
    assert given.get("action") is None


@pytest.mark.parametrize(
    ("weight", "decision", "answer"),
    [
        (4, None, "We collect your parcel of 4 kg."),
        (35, "proceed", "The depot takes your parcel of 35 kg."),
        (35, "reject", "We cannot take a parcel of 35 kg."),
    ],
)
async def test_the_example_with_a_number_asks_above_the_limit(
    weight: int, decision: str | None, answer: str, server: Server, standin: ModelStandIn
) -> None:
    flow = await server.create(*EXAMPLES["Read a number, compare it, ask a person above a limit"])
    standin.script("Read the weight", structured(weight=weight))
    session = str(uuid4())
    text = await server.text(flow, f"A box of {weight}", session=session)
    if decision:
        assert text.endswith(f"Take a parcel of {weight} kg?")
        text = await server.text(flow, session=session, humanInput={"type": decision})
    assert text == answer


async def test_the_example_with_a_check_translates_four_times_at_most(server: Server, standin: ModelStandIn) -> None:
    flow = await server.create(*EXAMPLES["Translate, check, translate again with the remark (four times at most)"])
    standin.script("Translate the text", lambda _: Reply(f"text {len(standin.requests)}"))
    standin.script("Is this good Icelandic", structured(good=False, remark="too stiff"))

    text = await server.text(flow, "Good morning")

    made = [turns for turns in seen(standin) if turns[0][1].startswith("Translate the text")]
    assert [turns[0][1].rpartition(": ")[2] for turns in made] == ["none yet", *["too stiff"] * 3]
    assert text == "text 7"
    standin.reset()
    standin.script("Translate the text", Reply("Góðan dag"))
    standin.script("Is this good Icelandic", structured(good=True, remark=""))
    assert await server.text(flow, "Good morning") == "Góðan dag"


async def test_the_example_with_a_list_works_on_each_item(server: Server, standin: ModelStandIn) -> None:
    flow = await server.create(*EXAMPLES["One step per item of a list"])
    standin.script("List the cities", structured(cities=["Rome", "Oslo"]))
    standin.script("one travel tip", lambda request: Reply(f"see {request.messages[-1].text}"))
    assert await server.text(flow, "Rome and Oslo") == "see Rome\nsee Oslo"


async def test_the_example_with_a_request_hands_fields_to_the_model(server: Server, standin: ModelStandIn) -> None:
    ops = [
        op.model_copy(update={"params": {**op.params, "url": f"{standin.endpoint}/?station={{{{ question }}}}"}})
        if isinstance(op, AddNode) and op.node_name == "httpAgentflow"
        else op.model_copy(update={"params": {**op.params, "customFunctionJavascriptFunction": _STATION_OF_STANDIN}})
        if isinstance(op, AddNode) and op.node_name == "customFunctionAgentflow"
        else op
        for op in EXAMPLES["Ask an address, take fields out of its answer by code, write with them"]
    ]
    flow = await server.create(*ops)
    standin.script("whether to take a jacket", lambda request: Reply(f"At {request.messages[-1].text}"))
    assert await server.text(flow, "123") == "At /v1 degrees, wind false"


#: The stand-in's page has other fields than a weather station's.
_STATION_OF_STANDIN = "const now = JSON.parse($station);\nreturn `${now.openai} degrees, wind ${now.model}`;"


async def test_the_example_with_a_schedule_is_kept_and_not_asked(server: Server) -> None:
    flow = await server.create(*EXAMPLES["Every evening"])
    assert "configured as a Scheduled Trigger" in await server.text(flow, "now")


# --- kind, start, connections ----------------------------------------------------------------------------------------


async def test_a_chatflow_node_does_not_run_in_an_agentflow(server: Server) -> None:
    ops = [start(), step("calculator_0"), reply("x"), *chain(START, REPLY)]
    assert "KIND_MISMATCH" in server.findings(ops)


@states("There is exactly one `startAgentflow`", "`startInputType: chatInput` gives the person's message")
async def test_one_start_reaches_every_step(server: Server) -> None:
    good = [start(), reply("You said {{ question }}"), *chain(START, REPLY)]
    assert await server.text(await server.create(*good), "hi") == "You said hi"
    loose = [*good, reply("nobody leads here", 1)]
    assert "Multiple starting nodes are not allowed" in await server.text(await server.create(*loose), "hi")
    assert server.findings(loose)


@states("`startInputType: formInput` with")
async def test_a_form_gives_its_fields_and_no_question(server: Server) -> None:
    form = start(
        startInputType="formInput",
        formTitle="Who",
        formDescription="are you?",
        formInputTypes=[{"type": "string", "label": "Name", "name": "name"}],
    )
    flow = await server.create(form, reply("{{ $form.name }}|{{ question }}"), *chain(START, REPLY))
    assert await server.text(flow, form={"name": "Eva"}) == "Eva|"
    colour = {"type": "options", "label": "Colour", "name": "colour", "addOptions": [{"option": "Red"}]}
    choosing = [start(startInputType="formInput", formTitle="x", formDescription="x", formInputTypes=[colour])]
    choosing += [reply("{{ $form.colour }}"), *chain(START, REPLY)]
    assert server.findings(choosing) == []
    assert await server.text(await server.create(*choosing), form={"colour": "Red"}) == "Red"


@states("`startInputType: webhookTrigger` gives the request")
async def test_a_webhook_gives_its_parts_and_cannot_be_asked(server: Server) -> None:
    hook = start(
        startInputType="webhookTrigger", webhookInputMode="text", webhookDefaultInput="Order {{ $webhook.body.id }}"
    )
    shown = reply("{{ question }}|{{ $webhook.query.id }}|{{ $webhook.headers.content-type }}")
    flow = await server.create(hook, shown, *chain(START, REPLY))
    assert await server.webhook(flow, "id=7", id=42) == "Order 42|7|application/json"
    assert "configured as a Webhook Trigger" in await server.text(flow, "hi")


@states("A weekly schedule is `startInputType: scheduleInput`")
async def test_a_weekly_schedule_passes_the_checks(server: Server) -> None:
    weekly = start(
        startInputType="scheduleInput",
        scheduleType="visualPicker",
        scheduleFrequency="weekly",
        scheduleOnDayOfWeek="2,5",
        scheduleOnTime="09:05",
        scheduleTimezone="Europe/Lisbon",
        scheduleInputMode="text",
        scheduleDefaultInput="go",
    )
    ops = [weekly, reply("{{ question }}"), *chain(START, REPLY)]
    assert server.findings(ops) == []
    assert "configured as a Scheduled Trigger" in await server.text(await server.create(*ops), "now")


@states("A start that needs no text has")
async def test_a_start_without_a_text_needs_no_default_and_gives_no_question(server: Server) -> None:
    every_hour = {
        "startInputType": "scheduleInput",
        "scheduleType": "visualPicker",
        "scheduleFrequency": "hourly",
        "scheduleOnMinute": 5,
    }
    silent = [start(**every_hour, scheduleInputMode="none"), reply("x"), *chain(START, REPLY)]
    spoken = [start(**every_hour, scheduleInputMode="text"), reply("x"), *chain(START, REPLY)]
    assert server.findings(silent) == []
    assert server.findings(spoken) == ["REQUIRED_PARAM_MISSING"]
    hook = start(startInputType="webhookTrigger", webhookInputMode="none")
    flow = await server.create(hook, reply("got {{ $webhook.body.id }}|{{ question }}|"), *chain(START, REPLY))
    assert await server.webhook(flow, "", id=42) == "got 42| |"


@states("`Connect` runs the target after the source", "A step with several plain sources waits for all of them")
async def test_steps_run_in_order_and_wait_for_all_plain_sources(server: Server, standin: ModelStandIn) -> None:
    standin.script("ONE", "one")
    standin.script("TWO", "two")
    both = [
        start(),
        *llm(0, "system: ONE"),
        *llm(1, "system: TWO"),
        reply("{{ llmAgentflow_0 }}+{{ llmAgentflow_1 }}"),
        *chain(START, LLM, REPLY),
        *chain(START, LLM1, REPLY),
    ]
    answer = await server.ask(await server.create(*both), "hi")
    assert answer["text"] == "one+two"
    assert ran(answer) == [START, LLM, LLM1, REPLY]
    joined = [
        start(),
        condition("string", "{{ question }}", "contains", "refund"),
        *llm(0, "system: ONE"),
        *llm(1, "system: TWO"),
        reply("done"),
        *chain(START, "conditionAgentflow_0/0", LLM, REPLY),
        *chain("conditionAgentflow_0/1", LLM1, REPLY),
    ]
    assert ran(await server.ask(await server.create(*joined), "hi")) == [START, "conditionAgentflow_0", LLM1, REPLY]


@states("Each branch leads to one step only")
async def test_a_second_step_on_a_branch_runs_also_when_the_branch_is_not_taken(
    server: Server, standin: ModelStandIn
) -> None:
    standin.script("ONE", "one")
    ops = [
        *either("string", "{{ question }}", "contains", "refund"),
        *llm(0, "system: ONE"),
        *chain("conditionAgentflow_0/0", LLM),
    ]
    assert ran(await server.ask(await server.create(*ops), "hello")) == [START, "conditionAgentflow_0", REPLY1, LLM]


@states("A step behind two different branching steps")
async def test_a_step_behind_two_branching_steps_never_runs(server: Server, standin: ModelStandIn) -> None:
    standin.script("ONE", "one")
    ops = [
        start(),
        condition("string", "{{ question }}", "contains", "refund"),
        _human("Go on?"),
        *llm(0, "system: ONE"),
        reply("no", 1),
        *chain(START, "conditionAgentflow_0/0", "humanInputAgentflow_0/0", LLM),
        *chain("conditionAgentflow_0/1", LLM),
        *chain("humanInputAgentflow_0/1", REPLY1),
    ]
    flow, session = await server.create(*ops), str(uuid4())
    assert LLM not in ran(await server.ask(flow, "hi", session=str(uuid4())))
    await server.ask(flow, "refund", session=session)
    assert LLM not in ran(await server.ask(flow, session=session, humanInput={"type": "proceed"}))
    straight = [
        start(),
        condition("string", "{{ question }}", "contains", "refund"),
        *llm(0, "system: ONE"),
        *chain(START, "conditionAgentflow_0/0", LLM),
        *chain("conditionAgentflow_0/1", LLM),
    ]
    assert LLM not in ran(await server.ask(await server.create(*straight), "hi"))


@states("Steps that begin side by side")
@pytest.mark.parametrize("memory", [True, False])
async def test_parallel_steps_see_each_other_with_memory_only(
    memory: bool, server: Server, standin: ModelStandIn
) -> None:
    standin.script("ONE", "one")
    standin.script("TWO", "two")
    say = "user: {{ question }}"
    ops = [
        start(),
        *llm(0, "system: ONE", say, llmEnableMemory=memory),
        *llm(1, "system: TWO", say, llmEnableMemory=memory),
        *chain(START, LLM),
        *chain(START, LLM1),
    ]
    await server.ask(await server.create(*ops), "hi")
    _, second = seen(standin)
    assert (("user", "one") in second) is memory


async def test_a_condition_has_an_else_without_a_row_for_it(server: Server) -> None:
    answer = await server.ask(await server.create(*either("string", "{{ question }}", "contains", "refund")), "hi")
    (output,) = (one["data"]["output"] for one in answer["agentFlowExecutedData"] if "condition" in one["nodeId"])
    assert [row["value1"] for row in output["conditions"]] == ["hi", ""]
    assert answer["text"] == "ELSE"


async def test_a_text_of_a_form_is_cut_after_an_approval_and_the_state_is_not(server: Server) -> None:
    fields = [{"type": "string", "label": "Note", "name": "note"}]
    kept = [{"key": "note", "value": "{{ $form.note }}"}]
    ops = [
        start(
            startInputType="formInput",
            formTitle="x",
            formDescription="x",
            formInputTypes=fields,
            startState=[{"key": "note", "value": ""}],
        ),
        step("customFunctionAgentflow_0", customFunctionJavascriptFunction="return 1", customFunctionUpdateState=kept),
        _human("Go on?"),
        reply("{{ $form.note }}|{{ $flow.state.note }}"),
        *chain(START, "customFunctionAgentflow_0", "humanInputAgentflow_0/0", REPLY),
    ]
    flow, session, note = await server.create(*ops), str(uuid4()), "First line\nsecond: end"
    await server.ask(flow, session=session, form={"note": note})
    assert await server.text(flow, session=session, humanInput={"type": "proceed"}) == f"First line|{note}"


@states("Nothing goes on beside a human input")
async def test_what_is_beside_a_person_is_forgotten_and_a_loop_waits_for_its_own(server: Server) -> None:
    functions = [step(f"customFunctionAgentflow_{n}", customFunctionJavascriptFunction="return 1") for n in range(3)]
    first, second, third = (one.node_id for one in functions)
    ends = [*chain(START, first, third), *chain(START, "humanInputAgentflow_0/0", second, third)]
    flow, session = await server.create(start(), *functions, _human("Go on?"), *ends), str(uuid4())
    await server.ask(flow, "hi", session=session)
    answer = await server.ask(flow, session=session, humanInput={"type": "proceed"})
    assert ran(answer) == [START, first, "humanInputAgentflow_0", second]
    # The first round has both, the second one waits in vain.
    loop = step("loopAgentflow_0", loopBackToNode=second, maxLoopCount=3)
    looped = [start(), *functions, loop, *chain(START, first, third), *chain(START, second, third, loop.node_id)]
    answer = await server.ask(await server.create(*looped), "hi")
    assert ran(answer) == [START, first, second, third, loop.node_id, second]
    assert server.findings(looped) == ["STEP_NEVER_RUNS"]


@states("The answer of the flow is the output of the step that ran last")
async def test_the_last_step_answers(server: Server, standin: ModelStandIn) -> None:
    standin.script("ONE", "one")
    ops = [start(), *llm(0, "system: ONE"), reply("at once"), *chain(START, LLM), *chain(START, REPLY)]
    answer = await server.ask(await server.create(*ops), "hi")
    assert sorted(ran(answer)) == sorted([START, LLM, REPLY])
    assert answer["text"] == {LLM: "one", REPLY: "at once"}[ran(answer)[-1]]
    request = step("httpAgentflow_0", method="GET", url=standin.endpoint)
    assert (await server.text(await server.create(start(), request, *chain(START, request.node_id)), "hi")) == " "


# --- variables and state ---------------------------------------------------------------------------------------------


@states(
    "`{{ llmAgentflow_0 }}` is the answer of that step",
    "`{{ llmAgentflow_0.output.score }}` is the field",
    "A structured answer is declared in rows",
)
async def test_outputs_are_read_whole_or_by_field(server: Server, standin: ModelStandIn) -> None:
    standin.script("SCORE", structured(score=4, kind="a", tags=["x"], good=True, rows=[{"n": 1}]))
    rows = [
        {"key": "score", "type": "number", "description": "1 to 5"},
        {"key": "kind", "type": "enum", "enumValues": "a, b", "description": "which"},
        {"key": "tags", "type": "stringArray", "description": "tags"},
        {"key": "good", "type": "boolean", "description": "whether"},
        {"key": "rows", "type": "jsonArray", "jsonSchema": '{"n": {"type": "number"}}', "description": "rows"},
    ]
    o = "{{ llmAgentflow_0.output"
    shown = reply(f"{o}.score }}}}|{o}.kind }}}}|{o}.tags }}}}|{o}.good }}}}|{o}.rows }}}}|{o} }}}}")
    flow = await server.create(
        start(), *llm(0, "system: SCORE", llmStructuredOutput=rows), shown, *chain(START, LLM, REPLY)
    )
    assert await server.text(flow, "hi") == '4|a|["x"]|true|[{"n":1}]|{{ llmAgentflow_0.output }}'


_SWITCH = [{"type": "boolean", "label": "Rush", "name": "rush"}]


@states("What cannot be filled stays in the text")
async def test_what_cannot_be_filled_stays_in_the_text(server: Server, standin: ModelStandIn) -> None:
    text = (
        "{{ qestion }} {{ $flow.sate }} {{ llmAgentflow_9 }} {{ directReplyAgentflow_0 }} {{ $form.x }} {{ $vars.a }}"
    )
    ops = [start(), *llm(0, f"system: {text}"), reply("later"), *chain(START, LLM, REPLY)]
    await server.ask(await server.create(*ops), "hi")
    assert seen(standin)[0][0] == ("system", text)
    branch = [
        start(),
        condition("string", "{{ question }}", "contains", "refund"),
        reply("yes"),
        reply("Your answer: {{ directReplyAgentflow_0 }}", 1),
        *chain(START, "conditionAgentflow_0/0", REPLY),
        *chain("conditionAgentflow_0/1", REPLY1),
    ]
    assert await server.text(await server.create(*branch), "hi") == "Your answer: {{ directReplyAgentflow_0 }}"
    shown = [reply("{{ $webhook.body.id }}"), *chain(START, REPLY)]
    hook = {"startInputType": "webhookTrigger", "webhookInputMode": "none"}
    assert await server.webhook(await server.create(start(**hook), *shown), "a=1", name="x") == "{{ $webhook.body.id }}"
    form = start(startInputType="formInput", formTitle="x", formDescription="x", formInputTypes=_SWITCH)
    untouched = await server.create(form, reply("{{ $form.rush }}"), *chain(START, REPLY))
    assert await server.text(untouched, form={"name": "x"}) == "{{ $form.rush }}"
    rows = [{"name": "id", "type": "string", "required": True}]
    checked = start(**hook, webhookEnableValidation=True, webhookBodyParams=rows)
    with pytest.raises(KeyError):  # the answer is an error without a text
        await server.webhook(await server.create(checked, *shown), "a=1", name="x")


@states("`{{ $flow.state.total }}` is state")
async def test_the_flow_knows_state_session_and_time(server: Server) -> None:
    first = start(startState=[{"key": "total", "value": "12"}])
    shown = reply("{{ $flow.state.total }}|{{ $flow.sessionId }}|{{ current_date_time }}|{{ $vars.shop }}")
    flow = await server.create(first, shown, *chain(START, REPLY))
    session = str(uuid4())
    total, asked, now, variable = (await server.text(flow, "hi", session=session)).split("|")
    assert (total, asked, variable) == ("12", session, "{{ $vars.shop }}")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", now)


@states("`{{ file_attachment }}` is the text of the files")
async def test_uploaded_files_are_text_where_the_flow_allows_them(server: Server) -> None:
    flow = await server.create(start(), reply("Read: {{ file_attachment }}"), *chain(START, REPLY))
    refused = await server.upload(flow, "note.txt", "fourteen seats")
    assert "not enabled" in refused["message"]
    await server.configure(flow, {"fullFileUpload": {"status": True, "allowedUploadFileTypes": "text/plain"}})
    (file,) = await server.upload(flow, "note.txt", "fourteen seats")
    attached = {"data": file["content"], "type": "file:full", "name": "note.txt", "mime": "text/plain"}
    assert "fourteen seats" in await server.text(flow, "hi", uploads=[attached])


async def test_the_text_of_files_stands_before_the_message(server: Server, standin: ModelStandIn) -> None:
    standin.script("READ", "fine")
    steps = [start(), *llm(0, "system: READ"), reply("{{ question }}|{{ file_attachment }}"), *chain(START, LLM, REPLY)]
    flow = await server.create(*steps)
    await server.configure(flow, {"fullFileUpload": {"status": True, "allowedUploadFileTypes": "text/plain"}})
    attached = {"data": "fourteen seats", "type": "file:full", "name": "note.txt", "mime": "text/plain"}
    message, _, files = (await server.text(flow, "hi", uploads=[attached])).partition("|")
    assert message.index("fourteen seats") < message.index("hi")
    assert "fourteen seats" in files
    assert "hi" not in files
    assert any("fourteen seats" in text and "hi" in text for _, text in seen(standin)[0])


@states("After a person's approval `{{ question }}` is empty")
async def test_after_an_approval_the_question_is_in_the_output_of_the_start(server: Server) -> None:
    ops = [
        start(),
        _human("Go on?"),
        reply("{{ question }}|{{ startAgentflow_0.output.question }}"),
        reply("no", 1),
        *chain(START, "humanInputAgentflow_0/0", REPLY),
        *chain("humanInputAgentflow_0/1", REPLY1),
    ]
    flow, session = await server.create(*ops), str(uuid4())
    await server.ask(flow, "my wish", session=session)
    assert await server.text(flow, session=session, humanInput={"type": "proceed"}) == "|my wish"


@states("State is declared at the start with rows", "Before its first change `{{ $flow.state.reason }}`")
async def test_a_step_changes_the_state_and_the_first_value_shows_before(server: Server, standin: ModelStandIn) -> None:
    standin.script("FIRST", structured(reason="too long"))
    standin.script("SECOND", "fine")
    rows = [{"key": "reason", "type": "string", "description": "why"}]
    ops = [
        start(startState=[{"key": "reason", "value": "none"}, {"key": "all", "value": ""}]),
        *llm(
            0,
            "system: FIRST {{ $flow.state.reason }}",
            llmStructuredOutput=rows,
            llmUpdateState=[
                {"key": "reason", "value": "{{ output.reason }}"},
                {"key": "told", "value": "It is {{ output.reason }}."},
            ],
        ),
        *llm(1, "system: SECOND", llmUpdateState=[{"key": "all", "value": "{{ output }}"}]),
        reply("{{ $flow.state.reason }}|{{ $flow.state.all }}|{{ $flow.state.told }}"),
        *chain(START, LLM, LLM1, REPLY),
    ]
    assert await server.text(await server.create(*ops), "hi") == "too long|fine|too long"
    assert seen(standin)[0][0] == ("system", "FIRST none")


@pytest.mark.parametrize(("persist", "counts"), [(True, ["1", "2"]), (False, ["1", "1"])])
@states("Each message of a conversation begins", "Counting is done by a custom function")
async def test_a_function_counts_the_messages_of_a_conversation(
    persist: bool, counts: list[str], server: Server
) -> None:
    count = step(
        "customFunctionAgentflow_0",
        customFunctionInputVariables=[{"variableName": "count", "variableValue": "{{ $flow.state.count }}"}],
        customFunctionJavascriptFunction="return Number($count) + 1;",
        customFunctionUpdateState=[{"key": "count", "value": "{{ output }}"}],
    )
    begin = start(startState=[{"key": "count", "value": "0"}], startPersistState=persist)
    shown = reply("{{ $flow.state.count }}")
    flow = await server.create(begin, count, shown, *chain(START, "customFunctionAgentflow_0", REPLY))
    session = str(uuid4())
    assert [await server.text(flow, "hi", session=session) for _ in counts] == counts


# --- models and agents -----------------------------------------------------------------------------------------------


@states("A step's model is a component name", "Instructions are rows `llmMessages")
async def test_a_model_is_a_component_with_its_settings_beside_it(server: Server, standin: ModelStandIn) -> None:
    standin.script("BE BRIEF", "ok")
    good = [start(), *llm(0, "system: BE BRIEF"), *chain(START, LLM)]
    assert await server.text(await server.create(*good), "hi") == "ok"
    assert standin.requests[0].model == "gpt-4o-mini"
    wrong = [start(), *llm(0, "system: BE BRIEF", llmModel="gpt-4o-mini")[:1], *chain(START, LLM)]
    assert "NESTED_NODE_UNKNOWN" in server.findings(wrong)
    assert "reading 'filePath'" in await server.text(await server.create(*wrong), "hi")


@states("With memory on (the default)", "With `llmEnableMemory: false` a later step sees only")
async def test_memory_sends_question_and_earlier_answers_along(server: Server, standin: ModelStandIn) -> None:
    standin.script("ONE", "one")
    standin.script("TWO", "two")
    standin.script("THREE", "three")
    ops = [
        start(),
        *llm(0, "system: ONE"),
        *llm(1, "system: TWO"),
        *llm(2, "system: THREE", "user: Given {{ llmAgentflow_0 }}", llmEnableMemory=False),
        *chain(START, LLM, LLM1, "llmAgentflow_2"),
    ]
    await server.ask(await server.create(*ops), "hi")
    first, second, third = seen(standin)
    assert first == [("system", "ONE"), ("user", "hi")]
    assert second == [("system", "TWO"), ("user", "hi"), ("user", "one")]
    assert third == [("system", "THREE"), ("user", "Given one")]
    standin.script("FOUR", structured(name="Eva"))
    fields = [{"key": "name", "type": "string", "description": "x"}]
    ops = [start(), *llm(0, "system: FOUR", llmEnableMemory=False, llmStructuredOutput=fields)]
    await server.ask(await server.create(*ops, *llm(1, "system: TWO"), *chain(START, LLM, LLM1)), "hi")
    assert [(role, "Eva" in text) for role, text in seen(standin)[-1][1:]] == [("user", False), ("user", True)]
    made = step("customFunctionAgentflow_0", customFunctionJavascriptFunction="return 'made'")
    ops = [start(), made, *llm(1, "system: TWO"), *chain(START, made.node_id, LLM1)]
    await server.ask(await server.create(*ops), "hi")
    assert seen(standin)[-1] == [("system", "TWO"), ("user", "hi")]


@states("`llmMemoryType: windowSize` with")
@pytest.mark.parametrize("node", [LLM, "agentAgentflow_0"])
async def test_a_window_counts_pairs_with_the_present_message(node: str, server: Server, standin: ModelStandIn) -> None:
    standin.script("", "a")
    window = {"MemoryType": "windowSize", "MemoryWindowSize": 3}
    kind = "llm" if node == LLM else "agent"
    params = {f"{kind}{name}": value for name, value in window.items()}
    asked = llm(0, "system: WINDOW", **params) if node == LLM else agent(**params)
    flow, session = await server.create(start(), *asked, *chain(START, node)), str(uuid4())
    for number in range(5):
        await server.text(flow, f"q{number}", session=session)
    turns = [text for role, text in seen(standin)[-1] if role != "system"]
    assert turns == ["a", "q2", "a", "q3", "a", "q4"]


PICTURE = {
    "data": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg==",
    "type": "file",
    "name": "dot.png",
    "mime": "image/png",
}


def _sorted_first(first: Sequence[PatchOp], name: str, **memory: Any) -> list[PatchOp]:
    """A branching step, then a step that looks at the picture."""
    looks = {"llmModelConfig": {**MODEL, "allowImageUploads": True}, **memory}
    return [
        start(),
        *first,
        *llm(0, "system: LOOK", **looks),
        reply("else", 1),
        *chain(START, f"{name}/0", LLM),
        *chain(f"{name}/1", REPLY1),
    ]


@states("An uploaded picture reaches only the first step")
async def test_a_picture_reaches_the_first_model_only(server: Server, standin: ModelStandIn) -> None:
    standin.script("LOOK", "seen")
    standin.script("sort", Reply('{"output": "picture"}'))

    def sorting(**config: Any) -> list[PatchOp]:
        by_model = step(
            "conditionAgentAgentflow_0",
            conditionAgentModel="chatOpenAI",
            conditionAgentModelConfig={**MODEL, **config},
            conditionAgentInstructions="sort",
            conditionAgentInput="{{ question }}",
            conditionAgentScenarios=[{"scenario": "picture"}, {"scenario": "other"}],
        )
        return [by_model, bind("conditionAgentAgentflow_0", "conditionAgentModelConfig")]

    rule = [condition("string", "{{ question }}", "contains", "look")]
    flows = {
        "model": _sorted_first(sorting(), "conditionAgentAgentflow_0"),
        "seeing model": _sorted_first(sorting(allowImageUploads=True), "conditionAgentAgentflow_0"),
        "seeing model without memory": _sorted_first(
            sorting(allowImageUploads=True), "conditionAgentAgentflow_0", llmEnableMemory=False
        ),
        "rule": _sorted_first(rule, "conditionAgentflow_0"),
    }
    shown = {}
    for name, ops in flows.items():
        assert await server.text(await server.create(*ops), "look", uploads=[PICTURE]) == "seen"
        shown[name] = any("[image/png" in text for _, text in seen(standin)[-1])
    assert shown == {"model": False, "seeing model": True, "seeing model without memory": False, "rule": True}


@states("An agent's tools are rows `agentTools")
async def test_an_agent_uses_the_tools_of_its_rows(server: Server) -> None:
    tools = [{"agentSelectedTool": "calculator", "agentSelectedToolConfig": {}}]
    flow = await server.create(start(), *agent(agentTools=tools), *chain(START, "agentAgentflow_0"))
    answer = await server.ask(flow, "what is 12*14")
    assert answer["text"] == "The result is 168"
    assert answer["agentFlowExecutedData"][-1]["data"]["output"]["usedTools"][0]["tool"] == "calculator"


@states("`agentSelectedToolRequiresHumanInput: true` in a row")
async def test_a_tool_can_wait_for_a_person(server: Server) -> None:
    row = {
        "agentSelectedTool": "calculator",
        "agentSelectedToolConfig": {},
        "agentSelectedToolRequiresHumanInput": True,
    }
    flow = await server.create(start(), *agent(agentTools=[row]), *chain(START, "agentAgentflow_0"))
    session = str(uuid4())
    stopped = await server.ask(flow, "what is 12*14", session=session)
    assert stopped["action"]["data"]["nodeId"] == "agentAgentflow_0"
    assert await server.text(flow, session=session, humanInput={"type": "proceed"}) == "The result is 168"


# --- branches --------------------------------------------------------------------------------------------------------


def _sorting() -> list[PatchOp]:
    node = "conditionAgentAgentflow_0"
    return [
        start(),
        step(
            node,
            conditionAgentModel="chatOpenAI",
            conditionAgentModelConfig=MODEL,
            conditionAgentInstructions="Sort the message",
            conditionAgentInput="{{ question }}",
            conditionAgentScenarios=[{"scenario": "billing"}, {"scenario": "technical"}],
        ),
        bind(node, "conditionAgentModelConfig"),
        reply("about money"),
        *chain(START, f"{node}/0", REPLY),
    ]


@states("`conditionAgentAgentflow` sorts by meaning", "Every scenario leads somewhere")
async def test_scenarios_are_branches_and_one_that_leads_nowhere_shows_json(
    server: Server, standin: ModelStandIn
) -> None:
    standin.script("invoice", Reply('{"output": "billing"}'))
    standin.script("modem", Reply('{"output": "technical"}'))
    flow = await server.create(*_sorting())
    assert await server.text(flow, "my invoice") == "about money"
    assert json.loads(await server.text(flow, "my modem")) == {"output": "technical"}
    standin.script("weather", Reply('{"output": "rain"}'))
    answer = await server.ask(flow, "the weather")
    (output,) = (one["data"]["output"] for one in answer["agentFlowExecutedData"] if "condition" in one["nodeId"])
    assert [row["isFulfilled"] for row in output["conditions"]] == [False, True]


@states("`conditionAgentflow` compares", "A number is read from the beginning of the text")
async def test_numbers_are_compared_by_how_the_text_begins(server: Server) -> None:
    flow = await server.create(*either("number", "{{ question }}", "larger", "30"))
    answers = {text: await server.text(flow, text) for text in ("35", "35 kg", "It weighs 35", "30")}
    assert answers == {"35": "IF", "35 kg": "IF", "It weighs 35": "ELSE", "30": "ELSE"}


@states("Compare with the type of the value")
async def test_a_boolean_field_is_compared_as_a_boolean(server: Server, standin: ModelStandIn) -> None:
    standin.script("FLAG", structured(flag=True))
    rows = [{"key": "flag", "type": "boolean", "description": "whether"}]
    before = [*llm(0, "system: FLAG", llmStructuredOutput=rows), *chain(START, LLM)]
    flag = "{{ llmAgentflow_0.output.flag }}"
    good = either("boolean", flag, "equal", True, *before, source=LLM)
    wrong = either("string", flag, "equal", "true", *before, source=LLM)
    quoted = either("boolean", flag, "equal", "true", *before, source=LLM)
    assert await server.text(await server.create(*good), "hi") == "IF"
    assert "CONDITION_TYPE_MISMATCH" not in server.findings(good)
    standin.script("CALM", structured(flag=False))
    calm = [*llm(0, "system: CALM", llmStructuredOutput=rows), *chain(START, LLM)]
    for other, branch in ((True, "ELSE"), (False, "IF")):
        no = either("boolean", flag, "equal", other, *calm, source=LLM)
        assert await server.text(await server.create(*no), "hi") == branch
    # The compiler gives a row the type that it is compared as.
    assert await server.text(await server.create(*quoted), "hi") == "IF"
    assert "is not a function" in await server.text(await server.create(*wrong), "hi")


@states("A switch of a form or webhook")
async def test_a_switch_of_a_form_is_the_text_true(server: Server, standin: ModelStandIn) -> None:
    form = start(startInputType="formInput", formTitle="Order", formDescription="x", formInputTypes=_SWITCH)
    hook = start(startInputType="webhookTrigger", webhookInputMode="none")
    code = step("customFunctionAgentflow_0", customFunctionJavascriptFunction="return true;")

    async def answers(first: AddNode, switch: str, **sent: Any) -> list[str]:
        """Compared as a text and as a boolean."""
        found: list[str] = []
        for type_, other in (("string", "true"), ("boolean", True)):
            ops = [first if op == start() else op for op in either(type_, switch, "equal", other)]
            if switch.startswith("{{ custom"):
                ops = either(type_, switch, "equal", other, code, *chain(START, code.node_id), source=code.node_id)
            flow = await server.create(*ops)
            found.append(await (server.webhook(flow, "a=1", **sent) if first is hook else server.text(flow, **sent)))
            assert ("CONDITION_TYPE_MISMATCH" in server.findings(ops)) is (type_ == "boolean")
        return found

    assert await answers(form, "{{ $form.rush }}", form={"rush": True}) == ["IF", "ELSE"]
    assert await answers(form, "{{ $form.rush }}", form={"rush": False}) == ["ELSE", "ELSE"]
    assert await answers(hook, "{{ $webhook.body.rush }}", rush=True) == ["IF", "ELSE"]
    assert await answers(start(), "{{ customFunctionAgentflow_0 }}", question="x") == ["IF", "ELSE"]
    state = start(startState=[{"key": "rush", "value": "true"}])
    assert await answers(state, "{{ $flow.state.rush }}", question="x") == ["IF", "ELSE"]
    said = await server.create(form, reply('{"rush": {{ $form.rush }}}'), *chain(START, REPLY))
    assert json.loads(await server.text(said, form={"rush": False})) == {"rush": False}


@states("Texts are compared as written")
async def test_texts_are_compared_with_their_capitals(server: Server) -> None:
    flow = await server.create(*either("string", "{{ question }}", "contains", "refund"))
    assert [await server.text(flow, text) for text in ("a refund", "a Refund")] == ["IF", "ELSE"]


async def test_a_branch_that_leads_nowhere_answers_nothing(server: Server) -> None:
    whole = either("string", "{{ question }}", "contains", "refund")
    ops = [op for op in whole if REPLY1 not in (getattr(op, "node_id", ""), getattr(op, "target_node_id", ""))]
    assert (await server.text(await server.create(*ops), "hello")).strip() == ""


# --- loops and lists -------------------------------------------------------------------------------------------------


def _loop(limit: int, **params: Any) -> list[PatchOp]:
    return [
        start(),
        *llm(0, "system: WRITE"),
        step("loopAgentflow_0", loopBackToNode="llmAgentflow_0", maxLoopCount=limit, **params),
        *chain(START, LLM, "loopAgentflow_0"),
    ]


@states("`loopAgentflow` goes back to", "At the limit the answer is `fallbackMessage`")
@pytest.mark.parametrize("limit", [1, 3])
async def test_the_limit_of_a_loop_counts_all_runs(limit: int, server: Server, standin: ModelStandIn) -> None:
    standin.script("WRITE", lambda _: Reply(f"text {len(standin.requests)}"))
    flow = await server.create(*_loop(limit, fallbackMessage="Best: {{ llmAgentflow_0 }}"))
    assert await server.text(flow, "hi") == f"Best: text {limit}"
    assert len(standin.requests) == limit


@states("The count begins again after every approval")
async def test_a_loop_through_a_person_has_no_limit(server: Server, standin: ModelStandIn) -> None:
    standin.script("WRITE", "text")
    ops = [
        start(),
        *llm(0, "system: WRITE"),
        _human("Good?"),
        reply("sent"),
        step("loopAgentflow_0", loopBackToNode="llmAgentflow_0-LLM 0", maxLoopCount=2),
        *chain(START, LLM, "humanInputAgentflow_0/0", REPLY),
        *chain("humanInputAgentflow_0/1", "loopAgentflow_0"),
    ]
    flow, session = await server.create(*ops), str(uuid4())
    await server.ask(flow, "hi", session=session)
    for _ in range(3):
        answer = await server.ask(flow, session=session, humanInput={"type": "reject"})
        assert answer["action"] is not None
    assert len(standin.requests) == 4


async def test_a_circle_of_connections_is_refused(server: Server) -> None:
    ops = [start(), *llm(0, "system: A"), *llm(1, "system: B"), *chain(START, LLM, LLM1, LLM)]
    assert server.findings(ops)


def _iteration(items: str, item: str) -> list[PatchOp]:
    return [
        start(),
        step("iterationAgentflow_0", iterationInput=items),
        *llm(0, "system: EACH", f"user: {item}", llmEnableMemory=False),
        SetParent(node_id=LLM, parent_id="iterationAgentflow_0"),
        reply("All: {{ iterationAgentflow_0 }}"),
        *chain(START, "iterationAgentflow_0", REPLY),
    ]


@states("`iterationAgentflow` runs the steps inside it", "Inside, `{{ $iteration }}` is the item")
async def test_an_iteration_runs_its_steps_for_each_item(server: Server, standin: ModelStandIn) -> None:
    standin.script("EACH", lambda request: Reply(f"<{request.messages[-1].text}>"))
    texts = await server.create(*_iteration('["a", "b"]', "{{ $iteration }}"))
    assert await server.text(texts, "hi") == "All: <a>\n<b>"
    objects = await server.create(*_iteration('[{"name": "x"}]', "{{ $iteration.name }}"))
    assert await server.text(objects, "hi") == "All: <x>"
    text = await server.create(*_iteration("{{ question }}", "{{ $iteration }}"))
    assert "error" in await server.text(text, "no list")


@states("Inside an iteration the answers of steps outside it")
async def test_inside_an_iteration_outer_answers_are_missing_and_state_is_there(
    server: Server, standin: ModelStandIn
) -> None:
    standin.script("OUTER", "outer answer")
    standin.script("EACH", lambda request: Reply(f"<{request.messages[-1].text}>"))
    rows = [{"key": "kept", "value": "{{ output }}"}]
    inner = llm(
        0, "system: EACH", "user: {{ llmAgentflow_1 }}|{{ $flow.state.kept }}|{{ question }}", llmEnableMemory=False
    )
    ops = [
        start(startState=[{"key": "kept", "value": ""}]),
        *llm(1, "system: OUTER", llmUpdateState=rows),
        step("iterationAgentflow_0", iterationInput='["a"]'),
        *inner,
        SetParent(node_id=LLM, parent_id="iterationAgentflow_0"),
        reply("{{ iterationAgentflow_0 }}"),
        *chain(START, LLM1, "iterationAgentflow_0", REPLY),
    ]
    answer = await server.text(await server.create(*ops), "hi")
    outer, state, question = answer.strip("<>").split("|")
    assert "outer answer" not in outer
    assert (state, question) == ("outer answer", "hi")


# --- people ----------------------------------------------------------------------------------------------------------


def _human(description: str, *, feedback: bool = True) -> AddNode:
    return step(
        "humanInputAgentflow_0",
        humanInputDescriptionType="fixed",
        humanInputDescription=description,
        humanInputEnableFeedback=feedback,
    )


@states(
    "`humanInputAgentflow` with `humanInputDescriptionType: fixed`",
    "With `humanInputEnableFeedback: true` the person's remark",
)
async def test_a_person_proceeds_rejects_and_remarks(server: Server, standin: ModelStandIn) -> None:
    standin.script("DRAFT", "the draft")
    standin.script("REVISE", "revised")
    ops = [
        start(),
        *llm(0, "system: DRAFT"),
        _human("Send it?"),
        *llm(1, "system: REVISE {{ humanInputAgentflow_0 }}"),
        *chain(START, LLM, "humanInputAgentflow_0/0", LLM1),
    ]
    flow = await server.create(*ops)
    session = str(uuid4())
    assert await server.text(flow, "hi", session=session) == "the draft\n\nSend it?"
    answered = await server.text(flow, session=session, humanInput={"type": "proceed", "feedback": "shorter"})
    assert answered == "revised"
    assert seen(standin)[-1][0] == ("system", "REVISE shorter")
    assert seen(standin)[-1][-1] == ("user", "shorter")
    session = str(uuid4())
    await server.ask(flow, "hi", session=session)
    assert await server.text(flow, session=session, humanInput={"type": "reject"}) == "reject"


@states("Inside an iteration it asks nobody")
async def test_a_person_is_not_asked_inside_an_iteration(server: Server) -> None:
    inside = [_human("Take {{ $iteration }}?"), reply("taken"), *chain("humanInputAgentflow_0/0", REPLY)]
    inside += [SetParent(node_id=one, parent_id="iterationAgentflow_0") for one in ("humanInputAgentflow_0", REPLY)]
    outside = [start(), step("iterationAgentflow_0", iterationInput='["a"]'), reply("end", 1)]
    ops = [*outside, *inside, *chain(START, "iterationAgentflow_0", REPLY1)]
    assert server.findings(ops) == ["BAD_PARENT"]
    answer = await server.ask(await server.create(*ops), "hi", session=str(uuid4()))
    assert answer["text"] == "end"
    assert REPLY not in ran(answer)


@pytest.mark.parametrize(
    ("description", "shown"),
    [("Send it?", "the draft\n\nSend it?"), ("Send {{ customFunctionAgentflow_0 }}?", "the draft\n\nSend CUT?")],
)
async def test_a_person_sees_what_a_function_made_by_its_variable_only(
    description: str, shown: str, server: Server, standin: ModelStandIn
) -> None:
    standin.script("DRAFT", "the draft")
    cut = step("customFunctionAgentflow_0", customFunctionJavascriptFunction="return 'CUT'")
    ops = [start(), *llm(0, "system: DRAFT"), cut, _human(description)]
    flow = await server.create(*ops, *chain(START, LLM, "customFunctionAgentflow_0", "humanInputAgentflow_0"))
    assert await server.text(flow, "hi", session=str(uuid4())) == shown


# --- requests and code -----------------------------------------------------------------------------------------------


@states("`httpAgentflow` with `method` and `url`")
async def test_a_request_gives_its_body_and_fields(server: Server, standin: ModelStandIn) -> None:
    def asking(url: str, field: str = "data.openai") -> list[PatchOp]:
        http = step("httpAgentflow_0", method="GET", url=url)
        shown = reply(f"{{{{ httpAgentflow_0.output.http.{field} }}}}|{{{{ httpAgentflow_0 }}}}")
        return [start(), http, shown, *chain(START, "httpAgentflow_0", REPLY)]

    answer = await server.text(await server.create(*asking(f"{standin.endpoint}/?q={{{{ question }}}}")), "1")
    field, body = answer.split("|")
    assert (field, json.loads(body)["openai"]) == ("/v1", "/v1")
    refused = await server.text(await server.create(*asking(f"{standin.endpoint}/no/such", "status")), "1")
    assert refused.startswith("404|")
    bare = await server.create(*asking(standin.endpoint.removeprefix("http://")))
    assert "error" in await server.text(bare, "1")


@states("A variable inside a JSON `body` breaks it")
async def test_a_body_of_json_is_built_by_code(server: Server, standin: ModelStandIn) -> None:
    node, url = "customFunctionAgentflow_0", f"{standin.endpoint}/v1/chat/completions"
    message = '{"model": "x", "messages": [{"role": "user", "content": "{{ question }}"}]}'
    pasted = step("httpAgentflow_0", method="POST", url=url, bodyType="json", body=message)
    flow = await server.create(start(), pasted, reply("sent"), *chain(START, "httpAgentflow_0", REPLY))
    assert await server.text(flow, "plain") == "sent"
    for words in ('a "quotation"', "two\nlines"):
        assert "error" in await server.text(flow, words)
    code = 'return JSON.stringify({model: "x", messages: [{role: "user", content: $note}]});'
    ops = [
        start(),
        step(
            node,
            customFunctionInputVariables=[{"variableName": "note", "variableValue": "{{ question }}"}],
            customFunctionJavascriptFunction=code,
        ),
        step("httpAgentflow_0", method="POST", url=url, bodyType="json", body=f"{{{{ {node} }}}}"),
        reply("sent"),
        *chain(START, node, "httpAgentflow_0", REPLY),
    ]
    built = await server.create(*ops)
    for words in ('a "quotation"', "two\nlines"):
        assert await server.text(built, words) == "sent"
        assert seen(standin)[-1][-1] == ("user", words)


@states("`customFunctionAgentflow` runs JavaScript", "What it returns is `{{ customFunctionAgentflow_0 }}`")
@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("return $title.toUpperCase()", "HI|HI|{{ customFunctionAgentflow_0.output.content.a }}"),
        ("return {a: JSON.parse($json).x}", None),
        ("$title", "{{ customFunctionAgentflow_0 }}|"),
        ("return title", "error"),
    ],
)
async def test_a_custom_function_returns_text(code: str, answer: str | None, server: Server) -> None:
    rows = [
        {"variableName": "title", "variableValue": "{{ question }}"},
        {"variableName": "json", "variableValue": '{"x": 4}'},
    ]
    node = "customFunctionAgentflow_0"
    ops = [
        start(),
        step(node, customFunctionInputVariables=rows, customFunctionJavascriptFunction=code),
        reply(f"{{{{ {node} }}}}|{{{{ {node}.output.content }}}}|{{{{ {node}.output.content.a }}}}"),
        *chain(START, node, REPLY),
    ]
    text = await server.text(await server.create(*ops), "hi")
    if answer is None:
        whole, _, field = text.split("|")
        assert (json.loads(whole), field) == ({"a": 4}, f"{{{{ {node}.output.content.a }}}}")
    else:
        assert text.startswith(answer)


@states("`executeFlowAgentflow` with `executeFlowSelectedFlow`")
async def test_another_flow_gives_its_answer_or_its_error(server: Server) -> None:
    function = "customFunctionAgentflow_0"
    failing = step(function, customFunctionJavascriptFunction="throw new Error('broken')")
    inner = {
        "<hi>": [start(), reply("<{{ question }}>"), *chain(START, REPLY)],
        "broken": [start(), failing, *chain(START, function)],
    }
    for said, ops in inner.items():
        other = {"executeFlowSelectedFlow": await server.create(*ops), "executeFlowInput": "{{ question }}"}
        call = step("executeFlowAgentflow_0", **other)
        shown = reply("{{ executeFlowAgentflow_0 }}")
        flow = await server.create(start(), call, shown, *chain(START, call.node_id, REPLY))
        assert said in await server.text(flow, "hi")


@states("`toolAgentflow` calls one tool without a model")
async def test_a_tool_runs_without_a_model(server: Server, standin: ModelStandIn) -> None:
    tool = step(
        "toolAgentflow_0",
        toolAgentflowSelectedTool="calculator",
        toolAgentflowSelectedToolConfig={},
        toolInputArgs=[{"inputArgName": "input", "inputArgValue": "{{ question }}"}],
    )
    flow = await server.create(start(), tool, reply("= {{ toolAgentflow_0 }}"), *chain(START, "toolAgentflow_0", REPLY))
    assert await server.text(flow, "3*4") == "= 12"
    assert standin.requests == []
