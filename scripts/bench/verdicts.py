"""Are broken flows told, and right ones not? Runs pairs of flows on a real Flowise and prints what told each.

    python scripts/bench/verdicts.py [CASES.yaml] [--by-code] [--answers DIR [--record]] [--half 1|2] [--case ID ...]
                                         [--json FILE] [--verbose]

Starts Postgres, the stand-in and a Flowise of its own. The model inside the flows is scripted by the case and answers
on the wire, so that Flowise really runs and the traces are real. Each flow is checked by the static rules, tested with
the case's tests and judged as a session does it. A flow is told by

- `static`: an error of the validator; nothing would be written,
- `code`: an answer or a trace that code sees to be wrong,
- `judge`: a criterion that is not shown, or a step that no test came to.

The judge is the model of the settings (REASONING_ENGINE, ...). `--answers` plays what it said before from DIR; what is
missing there is asked with `--record` and kept, else the flow counts as not judged. `--half` takes the right flow of
every other case and the broken one of the rest, so that people who answer for the judge see each requirement once.

Beside it the count of the first implementation: an answer came, and no error.
"""

import argparse
import asyncio
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import httpx2
import yaml
from pydantic import TypeAdapter

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flowise_dev_agent.agent import AgentContext, FlowiseCapability
from flowise_dev_agent.agent.domain import EvaluateRequest, TestSuite
from flowise_dev_agent.devkit.flowise import FlowiseAccess, LocalFlowise
from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.errors import AgentError, ModelUnavailableError, PatchError
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models import ReasoningEngine, engine_for
from flowise_dev_agent.models.messages import DeltaSink, EngineResponse, Message, ToolDef
from flowise_dev_agent.patch import GraphIR, compile_ops, errors, validate_flow
from flowise_dev_agent.planning.llm import LlmReasoner
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.schemas.verdict import Trace, Verdict
from flowise_dev_agent.settings import ReasoningSettings
from flowise_dev_agent.testing.checks import as_expected
from flowise_dev_agent.testing.judging import unreached_steps
from flowise_dev_agent.testing.simulation import Simulation, simulated
from flowise_dev_agent.testing.trials import TrialConversation, TrialRun, hold_all
from flowise_dev_agent.testing.ways import session_of
from scripts.bench.verdict_cases import Case, CustomTool, ScriptedModel, World

CASES: Final = Path(__file__).parent / "cases" / "verdicts.yaml"
ANSWERS: Final = Path(__file__).parent / "cases" / "verdicts"
SIDES: Final = ("right", "broken")
_AT_A_TIME: Final = 4
#: Ids, addresses and times that differ from run to run.
_PASSING: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|127\.0\.0\.1:\d+"
    r"|\d{4}-\d\d-\d\dT[\d:.]+Z?|\w{3}, \d\d \w{3} \d{4} [\d:]+ GMT"
)


@dataclass
class Tested:
    """A flow that was run. `told` lists the parts that tell that something is wrong."""

    case: Case
    side: str
    told: list[str] = field(default_factory=list[str])
    why: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    #: The first implementation saw an error, or no answer.
    told_at_first: bool = False
    unscripted: list[str] = field(default_factory=list[str])
    flow_data: str = ""
    #: What the flow did where a simulated call failed, and what no test reached.
    ways: list[str] = field(default_factory=list[str])
    #: Calls of the world that change it; there must be none.
    outside: list[str] = field(default_factory=list[str])
    beside: list[Trace] = field(default_factory=list[Trace])
    runs: list[TrialRun] = field(default_factory=list[TrialRun])
    verdict: Verdict | None = None
    not_judged: str = ""

    @property
    def alarm(self) -> bool:
        """The person is told that something is wrong or not shown."""
        return bool(self.told)


# --- the judge -------------------------------------------------------------------------------------------------------


class KeptAnswers(ReasoningEngine):
    """The judge of one flow: answers from a file; what is missing is asked from `engine`, if there is one, and kept.

    An answer belongs to its prompt. Where that has changed the next answer is given, and `changed` says so.
    """

    def __init__(self, file: Path, engine: ReasoningEngine | None) -> None:
        self._file = file
        self._engine = engine
        self._kept: list[dict[str, str]] = json.loads(file.read_text("utf-8")) if file.exists() else []
        self._given = 0
        self.changed = False

    async def complete(
        self,
        messages: Sequence[Message],
        system: str,
        tools: Sequence[ToolDef] = (),
        temperature: float | None = None,
        *,
        may_look_up: bool = True,
        output_schema: JsonObject | None = None,
        model: str | None = None,
        phase: str = "",
        max_tokens: int | None = None,
        on_delta: DeltaSink | None = None,
    ) -> EngineResponse:
        """See `ReasoningEngine.complete`."""
        digest = _digest("\n".join(message.content for message in messages))
        left = self._kept[self._given :]
        kept = next((one for one in left if one["prompt_sha256"] == digest), None)
        if kept is None and self._engine is not None:
            answer = await self._engine.complete(
                messages, system, tools, temperature, output_schema=output_schema, model=model, max_tokens=max_tokens
            )
            self._kept = [*self._kept[: self._given], {"prompt_sha256": digest, "text": answer.text}]
            self._given = len(self._kept)
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(self._kept, ensure_ascii=False, indent=1) + "\n", "utf-8")
            return answer
        if kept is None and not left:
            raise ModelUnavailableError(f"{self._file.name} has no answer for this prompt.", hint="Record it.")
        self.changed |= kept is None
        kept = kept or left[0]
        self._given = self._kept.index(kept) + 1
        return EngineResponse(text=kept["text"])

    def model_id(self) -> str:
        """None of its own."""
        return self._engine.model_id() if self._engine else "kept answers"

    async def aclose(self) -> None:
        """The engine belongs to all flows."""


def _digest(text: str) -> str:
    return hashlib.sha256(_PASSING.sub("*", text).encode()).hexdigest()


# --- running ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """Parts that all cases share."""

    standin: ModelStandIn
    world: World
    flowise: FlowiseClient
    access: FlowiseAccess
    nodes: NodeStore
    domain: FlowiseCapability
    answers: Path
    settings: ReasoningSettings
    engine: ReasoningEngine | None
    by_code: bool = False

    async def tested(self, case: Case, side: str) -> Tested:
        """Build the flow, check it and hold its tests."""
        async with self._tools(case.tools_of(side)) as tools:
            return await self._tested(case, side, tools)

    async def _tested(self, case: Case, side: str, tools: Mapping[str, str]) -> Tested:
        tested = Tested(case, side)
        model = ScriptedModel(case.rules(side))
        self.standin.reset()
        self.standin.script(lambda request: request.kind == "chat", model)
        self.world.pages = case.world
        kind = "AGENTFLOW" if case.is_agentflow else "CHATFLOW"
        try:
            compiled = compile_ops(
                GraphIR.empty(),
                case.flow(side).ops(self.world.endpoint, tools),
                self.nodes.schemas,
                credentials=self.access.credentials,
            )
        except PatchError as error:
            _tell(tested, "static", error.message)
            return tested
        tested.flow_data = compiled.flow_data
        types = {identity: type_ for type_, identity in self.access.credentials.items()}
        findings = validate_flow(compiled.flow_data, schemas=self.nodes.schemas, credentials=types, kind=kind)
        for finding in errors(findings):
            _tell(tested, "static", f"{finding.code}: {finding.text}")
        tested.warnings = [f"{one.code}: {one.text}" for one in findings if one.severity == "warning"]
        suite = self.domain.generate_tests(case.plan(), compiled.flow_data, trials=1)
        # The judge's answers belong to flows whose tools of the case really ran.
        simulation = (
            simulated(compiled.graph, self.nodes.schemas, suite.cases)
            if self.by_code
            else Simulation(compiled.flow_data)
        )
        row = await self.flowise.create_chatflow(
            ChatflowCreate(name=f"{case.id} {side}", flow_data=simulation.flow_data, type=kind)
        )
        self.world.called.clear()
        try:
            await self._hold(tested, row.id, suite, simulation)
        finally:
            tested.outside = [call for call in self.world.called if not call.startswith("GET ")]
            await self.flowise.delete_chatflow(row.id)
        tested.unscripted = model.unscripted
        planned = {test.id for test in case.tests}
        tested.told_at_first = any(
            not run.trial.answer.strip() or (run.trial.category and "failed" in run.trial.error)
            for run in tested.runs
            if run.trial.test in planned
        )
        for run in tested.runs:
            if run.trial.category:
                _tell(tested, "code", f"{run.trial.test}: {run.trial.error}")
        return tested

    @asynccontextmanager
    async def _tools(self, tools: Iterable[CustomTool]) -> AsyncGenerator[dict[str, str]]:
        """Custom tools on the server by their names, as long as the context."""
        headers = {"Authorization": f"Bearer {self.access.api_key.get_secret_value()}"}
        made: dict[str, str] = {}
        async with httpx2.AsyncClient(base_url=self.access.endpoint, headers=headers, trust_env=False) as http:
            try:
                for tool in tools:
                    answer = await http.post("/api/v1/tools", json=tool.row())
                    made[tool.name] = str(answer.raise_for_status().json()["id"])
                yield made
            finally:
                for identity in made.values():
                    await http.delete(f"/api/v1/tools/{identity}")

    async def _hold(self, tested: Tested, chatflow_id: str, suite: TestSuite, simulation: Simulation) -> None:
        """As a session holds them."""
        flow_data = tested.flow_data
        gate = asyncio.Semaphore(_AT_A_TIME)

        async def hold(test: TestCase, number: int) -> TrialRun:
            session = session_of(f"bench-{chatflow_id}", test, number)
            reason = suite.not_testable.get(test.id)
            async with gate:
                return await self.domain.run_trial(
                    self._context(None),
                    TrialConversation(chatflow_id, flow_data, test, number, session, reason, simulation=simulation),
                )

        def more(runs: Sequence[TrialRun]) -> list[TestCase]:
            return self.domain.more_tests(flow_data, runs, simulation)

        runs = await hold_all(suite.cases, hold, trials=suite.trials, more=more)
        tested.ways = [str(one) for one in self.domain.told_ways(flow_data, runs, simulation)]
        tested.runs = [run for run in runs if run.trial.probe is None]
        tested.beside = [run.trace for run in runs if run.trial.probe]

    async def judge(self, tested: Tested) -> None:
        """The verdict of the product; the judge is only asked where code saw nothing."""
        if not tested.runs:
            return
        if self.by_code:
            self._judge_by_code(tested)
            return
        judge = KeptAnswers(self.answers / f"{tested.case.id}.{tested.side}.json", self.engine)
        request = EvaluateRequest(
            requirement=tested.case.requirement,
            plan=tested.case.plan(),
            results=tuple(run.trial for run in tested.runs),
            traces=tuple(run.trace for run in tested.runs),
            beside=tuple(tested.beside),
            flow_data=tested.flow_data,
        )
        try:
            result = await self.domain.evaluate(self._context(LlmReasoner(judge, self.settings)), request)
        except AgentError as error:
            tested.not_judged = error.message
            return
        verdict = tested.verdict = result.value
        if verdict.headline != "works" and "code" not in tested.told:
            lines = verdict.not_shown()
            _tell(tested, "judge", *(lines if verdict.done else [verdict.reason, *lines]))
        if judge.changed:
            tested.not_judged = "the prompt has changed since it was answered"

    def _judge_by_code(self, tested: Tested) -> None:
        """Findings by code alone: unmet expectations, steps and ways that no test reached."""
        for run in tested.runs:
            trial = as_expected(run.trial, run.trace, run.case, tested.flow_data)
            if trial.category and not run.trial.category:
                _tell(tested, "code", f"{trial.test}: {trial.error}")
        graph = GraphIR.from_flow_data(tested.flow_data)
        lacking = unreached_steps(graph, [*(run.trace for run in tested.runs), *tested.beside])
        lacking += [one for one in tested.ways if one.startswith("No test took")]
        if lacking:
            _tell(tested, "ways", *lacking)

    def _context(self, reasoner: LlmReasoner | None) -> AgentContext:
        """Only what trials and verdicts use; the scripted model is a real one to the product."""
        nothing = cast("Any", None)
        return AgentContext(
            session_id="bench",
            instance_id="bench",
            endpoint=self.access.endpoint,
            flowise=self.flowise,
            knowledge=nothing,
            reasoner=cast("Any", reasoner),
            blobs=nothing,
            publisher=nothing,
            limits=nothing,
        )


def _tell(tested: Tested, part: str, *reasons: str) -> None:
    if part not in tested.told:
        tested.told.append(part)
    tested.why += reasons


async def run(
    pairs: Sequence[tuple[Case, str]],
    standin: ModelStandIn,
    access: FlowiseAccess,
    *,
    answers: Path = ANSWERS,
    record: bool = False,
    by_code: bool = False,
    verbose: bool = False,
) -> list[Tested]:
    """Flows as (case, side): first all are run, one after the other, then all are judged at the same time."""
    settings = ReasoningSettings()
    engine = engine_for(settings) if record else None
    with World() as world:
        async with FlowiseClient(access.endpoint, access.api_key) as flowise:
            bench = Bench(
                standin=standin,
                world=world,
                flowise=flowise,
                access=access,
                nodes=NodeStore.from_snapshot(),
                domain=FlowiseCapability(),
                answers=answers,
                settings=settings,
                engine=engine,
                by_code=by_code,
            )
            flows: list[Tested] = []
            for case, side in pairs:
                flows.append(await bench.tested(case, side))
                _print(flows[-1], verbose=verbose)
            await asyncio.gather(*(bench.judge(flow) for flow in flows))
    if engine is not None:
        await engine.aclose()
    return flows


@contextmanager
def local_flowise() -> Generator[tuple[ModelStandIn, FlowiseAccess]]:
    """A Flowise of this run, its models answered by the stand-in; it may call servers of this machine."""
    with (
        tempfile.TemporaryDirectory(prefix="fda-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "postgres") as postgres,
        ModelStandIn() as standin,
    ):
        postgres.create_database("flowise")
        env = {**standin.flowise_env(), "HTTP_SECURITY_CHECK": "false"}
        server = LocalFlowise(data_dir=Path(folder) / "flowise", postgres=postgres, env=env)
        try:
            server.start()
            yield standin, server.bootstrap()
        finally:
            server.stop()


# --- report ----------------------------------------------------------------------------------------------------------


def _print(flow: Tested, *, verbose: bool) -> None:
    print(f"ran {flow.case.id} {flow.side}: {len(flow.runs)} trials {', '.join(flow.told)}", flush=True)
    if flow.unscripted:
        print(f"  unscripted: {flow.unscripted[:3]}", flush=True)
    if verbose:
        for run_ in flow.runs:
            trial = run_.trial
            ran = " ".join(step.node_id for step in run_.trace.steps)
            print(f"  {trial.test} {trial.human or ''} {trial.question!r} -> {trial.answer!r} {trial.error} [{ran}]")
        for line in flow.why + flow.warnings + flow.ways:
            print(f"  {line}", flush=True)


def report(flows: Sequence[Tested]) -> dict[str, Any]:
    """The counts, and a line for each flow."""
    table: dict[str, Any] = {"flows": []}
    for flow in flows:
        expected = flow.alarm == (flow.side == "broken")
        told = "+".join(flow.told) or "-"
        mark = "ok" if expected else "MISSED" if flow.side == "broken" else "FALSE ALARM"
        reason = flow.not_judged or "; ".join(flow.why)
        print(f"{mark:11} {flow.case.id:28} {flow.side:6} {told:14} {reason[:160]}")
        table["flows"].append(
            {
                "case": flow.case.id,
                "side": flow.side,
                "author": flow.case.author,
                "told": flow.told,
                "why": flow.why,
                "told_at_first": flow.told_at_first,
                "headline": flow.verdict.headline if flow.verdict else None,
                "not_judged": flow.not_judged,
            }
        )
    right = [flow for flow in flows if flow.side == "right"]
    broken = [flow for flow in flows if flow.side == "broken"]
    counts = {
        "broken": len(broken),
        "broken_told": sum(flow.alarm for flow in broken),
        "right": len(right),
        "false_alarms": sum(flow.alarm for flow in right),
        "outside": sum(len(flow.outside) for flow in flows),
        "not_judged": sum(bool(flow.not_judged) for flow in flows),
        "told_by_static": sum("static" in flow.told for flow in broken),
        "told_by_code": sum("code" in flow.told for flow in broken),
        "told_by_ways": sum("ways" in flow.told for flow in broken),
        "told_by_judge": sum("judge" in flow.told for flow in broken),
        "told_by_an_error_alone": sum(flow.told_at_first for flow in broken),
    }
    table |= counts
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return table


def read_cases(file: Path = CASES) -> list[Case]:
    """The cases of a file."""
    return TypeAdapter(list[Case]).validate_python(yaml.safe_load(file.read_text("utf-8")))


def _run(arguments: argparse.Namespace) -> int:
    pairs = [
        (case, side)
        for number, case in enumerate(read_cases(arguments.cases))
        for half, side in enumerate(SIDES, start=1)
        if not arguments.case or case.id in arguments.case
        if arguments.half in (None, 2 - (half + number) % 2)
    ]
    with local_flowise() as (standin, access):
        flows = asyncio.run(
            run(
                pairs,
                standin,
                access,
                answers=arguments.answers,
                record=arguments.record,
                by_code=arguments.by_code,
                verbose=arguments.verbose,
            )
        )
    table = report(flows)
    if arguments.json:
        arguments.json.write_text(json.dumps(table, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return table["broken"] - table["broken_told"] + table["false_alarms"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, nargs="?", default=CASES)
    parser.add_argument("--answers", type=Path, default=ANSWERS, help="folder of the judge's answers")
    parser.add_argument("--record", action="store_true", help="ask the judge of the settings for what is missing")
    parser.add_argument("--by-code", action="store_true", help="judge by code alone: expectations, and ways not taken")
    parser.add_argument("--half", type=int, choices=(1, 2), help="one flow of each case")
    parser.add_argument("--case", action="append", help="only this id; may be given several times")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    parser.add_argument("--verbose", action="store_true", help="print trials, reasons and warnings")
    sys.exit(1 if _run(parser.parse_args()) else 0)
