"""Secrets of 60 forms and more, in 40 places around a session, reach nothing that it keeps, shows or sends."""

import json
from contextvars import ContextVar
from typing import Any

import pytest

from flowise_dev_agent.agent import project, result_of
from flowise_dev_agent.errors import FlowiseServerError
from flowise_dev_agent.flowise.document_stores import DocumentStore
from flowise_dev_agent.flowise.models import ChatflowCreate, Credential, Prediction
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.knowledge.pattern_library import PatternLibrary
from flowise_dev_agent.persistence import NewEvent
from flowise_dev_agent.persistence.events import event_params
from flowise_dev_agent.planning.prompts import classify_prompt, judge_prompt, patch_prompt, plan_prompt
from flowise_dev_agent.planning.requests import Reasoned
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.interrupts import raised_interrupt
from flowise_dev_agent.schemas.plan import Intent
from flowise_dev_agent.schemas.verdict import Verdict
from tests.unit.agent.rig import OPENAI, OTHER_OPENAI, Bench, Script
from tests.unit.agent.test_update import COLDER, PLAN, flow_data
from tests.unit.knowledge.memory_patterns import MemoryPatterns
from tests.unit.test_redaction import KNOWN, LIKELY, marks_of

PLACES = (
    *("flow name", "node label", "system prompt", "address", "header row", "json text", "json in json", "document"),
    *("note", "unknown key", "named field", "chatbot config", "api config", "category", "credential name"),
    *("other flow", "option label", "tool name", "tool description", "answer", "second answer", "tool output"),
    *("source", "step output", "error", "second error", "failed step", "verdict", "fix", "tool input"),
    *("second label", "second prompt", "edge", "store name", "store description", "third flow", "source metadata"),
    *("speech to text", "step state", "second credential name"),
)
FORMS = {**KNOWN, **LIKELY}
#: Each round puts another form into each place; all of them are tried at night.
ROUNDS = [pytest.param(number, marks=() if number % 25 == 0 else pytest.mark.nightly) for number in range(len(FORMS))]
_round: ContextVar[int] = ContextVar("round", default=0)


def secret(place: str) -> str:
    return [*FORMS.values()][(PLACES.index(place) + _round.get()) % len(FORMS)]


class Leaky(Script):
    """A model that repeats secrets, and keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []

    async def _show(self, prompt: Any, request: Any) -> None:
        self.shown += [prompt.system, prompt.user]
        for tool in request.tools.definitions if request.tools else ():
            given: dict[str, Any] = {"node": "chatOpenAI", "node_id": "chatOpenAI_0", "name": "chatOpenAI"}
            given |= {"param": "modelName", "query": "bot", "chatflow_id": "x", "question": "Hello", "trial": 1}
            arguments = {name: given[name] for name in tool.parameters.get("properties", {}) if name in given}
            self.shown.append(await request.tools.call(tool.name, arguments))

    async def classify(self, request: Any) -> Reasoned[Any]:
        await self._show(classify_prompt(request), request)
        return await super().classify(request)

    async def plan(self, request: Any) -> Reasoned[Any]:
        await self._show(plan_prompt(request), request)
        return await super().plan(request)

    async def patch(self, request: Any) -> Reasoned[Any]:
        await self._show(patch_prompt(request), request)
        return await super().patch(request)

    async def judge(self, request: Any) -> Reasoned[Any]:
        await self._show(judge_prompt(request), request)
        return await super().judge(request)


def planted(bench: Bench) -> str:
    document = json.loads(flow_data(bench))
    nodes = {node["id"]: node["data"] for node in document["nodes"]}
    model, chain = nodes["chatOpenAI_0"], nodes["conversationChain_0"]
    model["label"] = secret("node label")
    model["inputs"] |= {
        "basepath": f"https://models.example/v1 {secret('address')}",
        "baseOptions": json.dumps(
            {
                "headers": [{"key": "Authorization", "value": secret("header row")}],
                "x": secret("json text"),
                "y": json.dumps({"apiKey": secret("json in json")}),
            }
        ),
        "openAIApiKey": secret("named field"),
    }
    nodes["bufferMemory_0"]["label"] = secret("second label")
    nodes["bufferMemory_0"]["inputs"]["memoryKey"] = secret("second prompt")
    document["edges"][0]["data"] = {"label": secret("edge"), "edgeLabel": secret("edge")}
    chain["inputs"]["systemMessagePrompt"] = f"Call us with {secret('system prompt')}."
    nodes["stickyNote_0"]["inputs"]["note"] = secret("note")
    document["aKeyOfTheirs"] = {"kept": secret("unknown key"), "text": secret("document")}
    return json.dumps(document)


@pytest.mark.parametrize("number", ROUNDS)
async def test_p102_secrets_in_forty_places_are_in_nothing_that_a_session_keeps_or_shows(number: int) -> None:
    assert (len(PLACES) >= 40, len(FORMS) >= 60) == (True, True)
    _round.set(number)
    rows = MemoryPatterns()
    names = [
        Credential(id=OPENAI, name=secret("credential name"), credential_name="openAIApi"),
        Credential(id=OTHER_OPENAI, name=secret("second credential name"), credential_name="openAIApi"),
    ]
    model = Leaky()
    bench = Bench(
        COLDER, CredentialStore.from_rows(names), reasoner=model, patterns=PatternLibrary(rows, instance_id="default")
    )
    flowise = bench.flowise
    columns: dict[str, Any] = {
        "chatbot_config": json.dumps({"a": secret("chatbot config")}),
        "category": secret("category"),
    }
    columns |= {"speech_to_text": json.dumps({"c": secret("speech to text")})}
    columns |= {"api_config": json.dumps({"b": secret("api config")})}
    text = planted(bench)
    row = await flowise.create_chatflow(ChatflowCreate(name=secret("flow name"), flow_data=text, **columns))
    await flowise.create_chatflow(ChatflowCreate(name=secret("other flow"), flow_data=text))
    await flowise.create_chatflow(ChatflowCreate(name=f"Third {secret('third flow')}", flow_data=text))
    flowise.options = [{"name": "gpt-4o", "label": secret("option label")}]
    flowise.stores = [DocumentStore(id="d", name=secret("store name"), description=secret("store description"))]
    flowise.tools = [{"id": "t", "name": secret("tool name"), "description": secret("tool description")}]
    flowise.failed_steps = [{"nodeLabel": "x", "status": "ERROR", "data": {"error": secret("failed step")}}]
    step: JsonObject = {
        "nodeId": "a",
        "nodeLabel": "b",
        "status": "FINISHED",
        "data": {"o": secret("step output"), "state": {"x": secret("step state")}},
    }
    flowise.answers = {
        "Hello": Prediction(
            text=f"The key is {secret('answer')}",
            used_tools=[{"tool": "t", "toolInput": {"a": secret("tool input")}, "toolOutput": secret("tool output")}],
            source_documents=[{"pageContent": secret("source"), "metadata": {"a": secret("source metadata")}}],
            agent_flow_executed_data=[step],
        ),
        "And": f"Once more {secret('second answer')}",
        "Break": FlowiseServerError(f"It failed with {secret('error')} and {secret('second error')}"),
    }
    model.patches = [COLDER]
    model.intents = [Intent(operation="update", ambiguity=0, title="Edit")]
    model.plans = [PLAN.with_questions(["Hello", "And", "Break"])]
    verdict = Verdict(done=False, category="LOGIC", reason=secret("verdict"), fix=secret("fix"))
    model.verdicts = [verdict, Verdict(done=True)]
    shown: list[Any] = []
    waiting = await bench.start("colder", target=row.id)
    actions = {"plan_approval": "approve", "credential_check": "skip"}
    while waiting:
        shown.append(waiting)
        open_ = await bench.open_interrupt()
        kept = result_of(raised_interrupt(open_.value, open_.id))
        shown.append(kept and kept.model_dump(mode="json"))
        waiting = await bench.answer(action=actions.get(waiting["type"], "accept"))
    values = await bench.values()
    events = [NewEvent(e["type"], summary=e["summary"], data=e["data"]) for e in bench.events]
    flows = {row.flow_data for row in flowise.flows.values()} | {text}
    settings = values["write"]["settings_sha"]
    places = {
        "the checkpoint": json.dumps(values, default=str),
        "the session's row": json.dumps(project(values), default=str),
        "questions and results": json.dumps(shown, default=str),
        "events": str(event_params(bench.session_id, None, events)["events"].obj),
        "prompts and tools": "\n".join(model.shown),
        "patterns": repr(rows.rows),
        # Flows and their settings are kept as they are, or they could not be restored.
        "blobs": "\n".join(
            item for sha256, item in bench.blobs.rows.items() if not (is_flow(item, flows) or sha256 == settings)
        ),
    }
    marks = {mark: place for place in PLACES for mark in marks_of(secret(place))}
    found = {
        f"{where}: {place}": told[max(0, at - 60) : at + 60]
        for where, told in places.items()
        for mark, place in marks.items()
        if (at := told.find(mark)) >= 0
    }
    assert found == {}


def is_flow(text: str, flows: set[str]) -> bool:
    return text in flows or '"aKeyOfTheirs"' in text
