"""A session's tools: bounds, repeated calls, events, what is kept; and that only summaries leave them (DD-074)."""

import asyncio
import json
from typing import Any

import pytest

from flowise_dev_agent.agent import FlowiseCapability, ToolRegistry, ToolResult
from flowise_dev_agent.agent.domain import Domains, ToolScope
from flowise_dev_agent.agent.phases import _scope
from flowise_dev_agent.agent.projection import project
from flowise_dev_agent.agent.state import AgentState, PlanState
from flowise_dev_agent.agent.tool_definition import as_tool
from flowise_dev_agent.agent.toolbox import SessionToolbox
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.models.messages import MAX_TOOL_CALLS
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.planning.requests import Reasoned
from tests.unit.agent.rig import OPENAI, Bench, Script, plan
from tests.unit.agent.test_graph import credentials, ops

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


class Recorder:
    """In place of an `Emitter`."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def put(self, data: Any, summary: str = "") -> None:
        self.events.append(data)


class Counted:
    """Tools that count how often they run."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.wait = asyncio.Event()
        self.wait.set()

    async def look(self, name: str = "") -> ToolResult:
        """Look."""
        self.runs.append(name)
        await self.wait.wait()
        return ToolResult(True, f"about {name}", facts={name: 1}, data={"raw": "x" * 9_000}, artifacts={"last": name})

    async def refuse(self) -> ToolResult:
        """Refuse."""
        self.runs.append("refused")
        raise InvalidInputError("Not now.")

    async def run(self) -> ToolResult:
        """Run."""
        self.runs.append("run")
        return ToolResult(True, "ran")


def toolbox(counted: Counted, emit: Any = None, **values: Any) -> SessionToolbox:
    registry = ToolRegistry()
    for definition, function in (
        as_tool(counted.look),
        as_tool(counted.refuse),
        as_tool(counted.run, answered_once=False),
    ):
        registry.register("flowise", definition, {"discover"}, function)
    return SessionToolbox(registry, "discover", emit or Recorder(), **values)


async def test_identical_calls_are_answered_once_also_at_the_same_time() -> None:
    counted = Counted()
    box = toolbox(counted)

    texts = await asyncio.gather(*(box.call("flowise.look", {"name": "a"}) for _ in range(3)))
    texts.append(await box.call("look", {"name": "a"}))
    await box.call("look", {"name": "b"})

    assert texts == ["about a"] * 4
    assert counted.runs == ["a", "b"]
    assert [call.repeated for call in box.calls] == [False, True, True, True, False]
    assert box.counts == {"flowise.look": 5}


async def test_what_runs_something_and_what_failed_is_called_again() -> None:
    counted = Counted()
    box = toolbox(counted)

    for name in ("run", "run", "refuse", "refuse"):
        await box.call(name, {})

    assert counted.runs == ["run", "run", "refused", "refused"]


async def test_a_phase_has_at_most_twenty_calls() -> None:
    counted = Counted()
    box = toolbox(counted)

    texts = [await box.call("run", {}) for _ in range(MAX_TOOL_CALLS + 2)]

    assert len(counted.runs) == MAX_TOOL_CALLS == 20
    assert texts[-1].startswith("Not called: a phase has at most 20 calls.")


async def test_a_call_that_takes_too_long_is_a_failed_one() -> None:
    counted = Counted()
    counted.wait.clear()
    box = toolbox(counted, call_secs=0.01)

    assert await box.call("look", {"name": "a"}) == "flowise.look failed: no answer within 0.01 s."
    assert not box.calls[0].result.ok


async def test_events_name_the_tool_with_masked_arguments_size_and_time() -> None:
    emit = Recorder()
    box = toolbox(Counted(), emit)

    await box.call("look", {"name": f"key {SECRET}", "apiKey": "hunter2"})
    await box.call("nothing", {"x": "y" * 5_000})

    called, answered, unknown, refused = emit.events
    assert called.event_type == "tool_call"
    assert called.name == "flowise.look"
    assert SECRET not in str(called.arguments)
    assert "hunter2" not in str(called.arguments)
    assert (answered.event_type, answered.ok, answered.repeated) == ("tool_result", True, False)
    assert answered.characters == len("about key [secret]")
    assert len(json.dumps(unknown.arguments)) <= 1_000
    assert (refused.name, refused.ok) == ("unknown", False)


async def test_facts_and_artifacts_of_all_results_are_kept_by_domain() -> None:
    box = toolbox(Counted())

    await box.call("look", {"name": "a"})
    await box.call("look", {"name": "b"})

    assert box.facts == {"flowise": {"a": 1, "b": 1}}
    assert box.artifacts == {"flowise": {"last": "b"}}
    last = box.result_of("flowise.look")
    assert last is not None
    assert last.summary == "about b"
    assert box.result_of("flowise.run") is None


class Curious(Script):
    """Looks things up in each phase; dies once in the phases of `dies_in`, after the look-up."""

    def __init__(self) -> None:
        super().__init__()
        self.dies_in: list[str] = []
        self.offered: dict[str, list[str]] = {}

    async def _look(self, phase: str, request: Any) -> None:
        self.offered[phase] = [one.name for one in request.tools.definitions]
        if phase != "judge":
            await request.tools.call("flowise.get_node", {"name": "chatOpenAI"})
        if phase in self.dies_in:
            self.dies_in.remove(phase)
            raise RuntimeError("the process is gone")

    async def plan(self, request: Any) -> Reasoned[Any]:
        await self._look("plan", request)
        return await super().plan(request)

    @property
    def skills_version(self) -> str:
        return "builder 3"

    async def patch(self, request: Any) -> Reasoned[Any]:
        await self._look("patch", request)
        return await super().patch(request)

    async def judge(self, request: Any) -> Reasoned[Any]:
        await self._look("judge", request)
        return await super().judge(request)


@pytest.fixture
def bench() -> Bench:
    curious = Curious()
    curious.patches = [ops()]
    made = Bench(ops(), credentials(OPENAI), reasoner=curious)
    made.reasoner = curious
    return made


async def test_each_phase_gets_its_tools_and_leaves_its_measures_and_counts(bench: Bench) -> None:
    await bench.start()
    await bench.answer(action="approve")
    state, reasoner = await bench.state(), bench.reasoner
    assert isinstance(reasoner, Curious)

    assert "flowise.search_nodes" in reasoner.offered["plan"]
    assert "flowise.check_ops" in reasoner.offered["patch"]
    assert reasoner.offered["judge"] == ["flowise.ask_flow", "flowise.read_trace"]
    totals = project(await bench.values())["totals"]
    phases = totals["phase_metrics"]
    assert [one["phase"] for one in phases] == ["classify", "plan", "patch", "test", "judge"]
    assert [one["tool_call_count"] for one in phases] == [0, 1, 1, 0, 0]
    assert phases[1]["input_tokens"] == 10
    assert [one["skills"] for one in phases] == ["builder 3", "builder 3", "builder 3", None, "builder 3"]
    assert totals["get_node_calls_total"] == 2
    record = json.loads(bench.blobs.rows[str(state.debug["flowise"]["plan_tools"])])
    assert (record[0]["name"], record[0]["ok"]) == ("flowise.get_node", True)
    types = [event["type"] for event in bench.events if event["type"].startswith("tool_")]
    assert types == ["tool_call", "tool_result"] * 2


@pytest.mark.parametrize("approved", [False, True])
async def test_only_an_approved_plan_lets_tools_run_its_code(bench: Bench, approved: bool) -> None:
    state = AgentState(plan=PlanState(contract=plan(), approved=approved))

    scope = await _scope(state, bench.context(), "patch")

    assert (scope.plan is not None) is approved


@pytest.mark.parametrize("phase", ["plan", "patch", "judge"])
async def test_a_run_that_dies_among_look_ups_repeats_the_phase_and_never_a_write(bench: Bench, phase: str) -> None:
    reasoner = bench.reasoner
    assert isinstance(reasoner, Curious)
    reasoner.dies_in = [phase]

    async def survive(step: Any) -> None:
        try:
            await step
        except RuntimeError:
            await bench.run(None)

    await survive(bench.start())
    await survive(bench.answer(action="approve"))
    await bench.answer(action="accept")

    assert reasoner.dies_in == []
    assert len(bench.flowise.flows) == 1
    assert sum(event["type"] == "write" and "Created" in event["summary"] for event in bench.events) == 1
    assert (await bench.state()).outcome == "accepted"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_nodes", {"query": ""}),
        ("get_node", {"name": "agentAgentflow"}),
        ("list_options", {"node": "chatOpenAI", "param": "modelName"}),
        ("search_templates", {"query": "agent"}),
        ("get_template", {"name": "SQL Agent"}),
        ("read_flow", {}),
        ("read_flow", {"chatflow_id": "live"}),
        ("list_flows", {}),
        ("list_credentials", {}),
    ],
)
async def test_prompt_safety_no_tool_shows_raw_data_flow_data_or_long_server_json(
    bench: Bench, name: str, arguments: dict[str, Any]
) -> None:
    store = bench.knowledge.store
    text = compile_ops(GraphIR.empty(), ops(), store.schemas, credentials={"openAIApi": OPENAI}).flow_data
    text = text.replace('"sessionId":""', f'"sessionId":"{SECRET}"')
    bench.knowledge.template_flows["SQL Agent"] = text
    bench.flowise.options = [{"name": "m" * 300, "label": "l" * 300}] * 200
    live = bench.flowise.add(ChatflowCreate(name="Live", flow_data=text)).id
    context = bench.context()
    scope = ToolScope(flowise=context.flowise, knowledge=context.knowledge, base=GraphIR.from_flow_data(text))
    box = SessionToolbox(Domains([FlowiseCapability()]).registry(scope), "discover", Recorder())  # type: ignore[arg-type]

    shown = await box.call(name, {key: live if value == "live" else value for key, value in arguments.items()})

    assert box.calls[0].result.ok
    assert len(shown) <= 6_000
    assert not any(word in shown for word in (SECRET, OPENAI, "inputAnchors", "positionAbsolute", '"flowData"'))
    assert all(len(found) <= 500 for line in shown.splitlines() if (found := _json(line)))


def _json(line: str) -> str:
    """The part of a line that is a JSON object or list with keys, if any."""
    start = line.find('{"')
    return line[start:] if start >= 0 else ""
