"""What the results of tools look like in the requests of both engines: only their short texts leave (DD-074)."""

import json
from typing import Any

import pytest

from flowise_dev_agent.agent import FlowiseCapability
from flowise_dev_agent.agent.domain import Domains, ToolScope
from flowise_dev_agent.agent.toolbox import SessionToolbox
from flowise_dev_agent.agent.tools import ToolPhase
from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInToolCall
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.knowledge.pattern_library import Match
from flowise_dev_agent.models import engine_for
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.planning.llm import LlmReasoner
from flowise_dev_agent.planning.requests import ClassifyRequest
from flowise_dev_agent.schemas.plan import PlannedNode
from flowise_dev_agent.settings import ReasoningSettings
from tests.unit.agent.rig import OPENAI, Bench, plan
from tests.unit.agent.test_graph import credentials, ops
from tests.unit.agent.test_toolbox import Recorder

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
INTENT = {"operation": "create", "ambiguity": 1, "title": "A bot"}
#: Of server answers in JSON.
MOST = 500
Calls = dict[str, dict[str, Any]]


class OnePattern:
    """In place of the library."""

    async def find(self, *_: Any) -> list[Match]:
        found = Match(id=1, requirement="a support bot", score=1, ops=tuple(ops()), flow_kind="CHATFLOW")
        return [found]


def toolbox(bench: Bench, phase: ToolPhase) -> SessionToolbox:
    context, patterns, emit = bench.context(), OnePattern(), Recorder()
    fakes: Any = patterns, emit
    schemas = bench.knowledge.store.schemas
    code = PlannedNode(node_id="customFunction_0", node_name="customFunction", purpose="converts")
    approved = plan(nodes=[*plan().nodes, code])
    approved = approved.model_copy(update={"capability": capability_of(approved, schemas, GraphIR.empty())})
    stored = compile_ops(GraphIR.empty(), ops(), schemas, credentials={"openAIApi": OPENAI}).graph
    bench.knowledge.template_flows["SQL Agent"] = stored.to_flow_data()
    bench.flowise.add(ChatflowCreate(name="Shop bot", flow_data=stored.to_flow_data()))
    scope = ToolScope(
        flowise=context.flowise,
        knowledge=context.knowledge,
        patterns=fakes[0],
        is_new=True,
        stored=stored,
        plan=approved,
        chosen={"openAIApi": OPENAI},
    )
    return SessionToolbox(Domains([FlowiseCapability()]).registry(scope), phase, fakes[1])


async def tool_messages(name: str, standin: ModelStandIn, box: SessionToolbox, calls: Calls) -> list[str]:
    """What the model is sent for its calls, read from the body of the request."""
    asked = tuple(StandInToolCall(f"flowise__{tool}", given, f"call_{tool}") for tool, given in calls.items())
    standin.script(lambda request: request.messages[-1].role != "tool", Reply(tool_calls=asked))
    standin.script(lambda _: True, Reply(json=INTENT))
    settings = ReasoningSettings(
        REASONING_ENGINE=name,
        ANTHROPIC_API_KEY="sk-key-1234",
        OPENAI_API_KEY="sk-key-1234",
        ANTHROPIC_BASE_URL=standin.base_url_anthropic,
        OPENAI_BASE_URL=standin.base_url_openai,
    )
    reasoner = LlmReasoner(engine_for(settings), settings)
    try:
        await reasoner.classify(ClassifyRequest(requirement="A bot", tools=box))
    finally:
        await reasoner.aclose()
    body = standin.requests[1].body
    if name == "openai":
        return [message["content"] for message in body["messages"] if message["role"] == "tool"]
    parts = [part for message in body["messages"] for part in message["content"] if isinstance(part, dict)]
    results = [part["content"] for part in parts if part["type"] == "tool_result"]
    return [text if isinstance(text, str) else "".join(part["text"] for part in text) for text in results]


def long_values(text: str) -> list[str]:
    """The JSON objects and lists in a text that take more than 500 characters."""
    decoder, found = json.JSONDecoder(), list[str]()
    for start in (index for index, char in enumerate(text) if char in "{["):
        try:
            _, end = decoder.raw_decode(text, start)
        except ValueError:
            continue
        found += [text[start:end]] if end - start > MOST else []
    return found


@pytest.mark.parametrize("engine", ["claude", "openai"])
@pytest.mark.parametrize(
    ("phase", "calls"),
    [
        (
            "discover",
            {
                "search_nodes": {"query": "chat model"},
                "get_node": {"name": "chatOpenAI"},
                "list_options": {"node": "chatOpenAI", "param": "modelName"},
                "get_template": {"name": "SQL Agent"},
                "list_flows": {"query": "shop"},
                "list_credentials": {},
                "search_patterns": {"query": "support bot"},
            },
        ),
        (
            "patch",
            {
                "read_flow": {},
                "check_ops": {"ops": [op.model_dump(mode="json") for op in ops()]},
                "run_function": {"node_id": "customFunction_0", "code": "return $rows", "variables": {"rows": []}},
            },
        ),
    ],
    ids=["plan", "patch"],
)
async def test_tool_messages_of_both_engines_hold_short_texts_and_no_data(
    engine: str, phase: ToolPhase, calls: Calls, standin: ModelStandIn
) -> None:
    bench = Bench(ops(), credentials(OPENAI))
    bench.flowise.options = [{"name": f"gpt-{number}", "raw": "RAWDATA" * 20} for number in range(300)]  # type: ignore[typeddict-unknown-key]
    bench.flowise.function_result = {"key": SECRET, "rows": [{"number": number} for number in range(200)]}
    box = toolbox(bench, phase)

    messages = await tool_messages(engine, standin, box, calls)

    assert [call.result.ok for call in box.calls] == [True] * len(calls)
    assert len(messages) == len(calls)
    for text in messages:
        assert text.strip()
        assert len(text) <= 6_000
        assert not long_values(text)
        assert len(text.partition("The function gives dict: ")[2]) <= MOST
    sent = json.dumps(standin.requests[1].body)
    for word in (SECRET, OPENAI, "RAWDATA", "inputAnchors", "positionAbsolute", "outputAnchors", "viewport"):
        assert word not in sent


@pytest.mark.parametrize("engine", ["claude", "openai"])
async def test_a_pattern_in_use_is_shown_to_both_engines_as_a_summary(engine: str, standin: ModelStandIn) -> None:
    box = toolbox(Bench(ops(), credentials(OPENAI)), "discover")
    await box.call("flowise.search_patterns", {"query": "support bot"})

    (text,) = await tool_messages(engine, standin, box, {"use_pattern": {"pattern_id": 1}})

    assert isinstance(box.calls[-1].result.data, Match)
    assert "chatOpenAI_0 (chatOpenAI)" in text
    assert not long_values(text)
    assert "op_type" not in text
