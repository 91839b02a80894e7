"""Tests of flows without a session: queued by clients, run by the workers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID, uuid4

from flowise_dev_agent.caller import serving
from flowise_dev_agent.errors import (
    AgentError,
    DatabaseUnavailableError,
    FlowiseError,
    FlowiseTimeoutError,
    FlowTestNotFoundError,
    InvalidInputError,
    NotAFlowError,
    PatchError,
    TraceNotFoundError,
    VersionNotFoundError,
)
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flows.proposals import Proposal, Proposals
from flowise_dev_agent.flows.test_sets import set_of_flow
from flowise_dev_agent.models.prices import cost
from flowise_dev_agent.observability import log_context
from flowise_dev_agent.patch import Finding, GraphIR, Schemas, errors, other_versions, payload_sha256
from flowise_dev_agent.patch.model.model_uses import model_uses
from flowise_dev_agent.persistence import FlowTestRow, FlowTests, TestSets, Versions
from flowise_dev_agent.publish import (
    create_draft,
    draft_tag,
    find_tagged,
    remove_unclaimed,
    uploaded_file,
    why_not_staged,
)
from flowise_dev_agent.schemas.base import Failure, TextCode, kept
from flowise_dev_agent.schemas.flow_tests import (
    FlowTestView,
    FlowValidation,
    GivenTest,
    TestFlow,
    TestFlowText,
    TestSummary,
    ValidatedFlow,
    ValidateFlow,
)
from flowise_dev_agent.schemas.flow_writes import FlowType
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.schemas.verdict import Trace, Trial
from flowise_dev_agent.testing.flow_tests import asked_cases, hold_tests
from flowise_dev_agent.testing.simulation import NOTHING_SIMULATED, OF_ONE_FLOW, Simulation, simulated
from flowise_dev_agent.testing.trials import TrialRun
from flowise_dev_agent.testing.ways import told_ways
from flowise_dev_agent.texts import Text, text
from flowise_dev_agent.timings import Timings

logger = logging.getLogger(__name__)

#: Seconds for a whole test; the Flowise client limits each question.
_TEST_SECS: Final = 1_800.0
_CLEAN_UP_SECS: Final = 30.0
_FILL_SECS: Final = 120.0
_LONGEST_ANSWER: Final = 32_000
_MOST_FINDINGS: Final = 20
_LOST: Final = Failure(code="worker_lost", detail=text("error.test_lost_worker"), hint=text("error.start_test_again"))


class FlowTestService:
    """Validation and tests of flows for clients.

    Raises InvalidInputError for an unknown instance, and FlowiseError for a server that fails.
    """

    def __init__(
        self, tests: FlowTests, instances: Instances, proposals: Proposals, versions: Versions, sets: TestSets
    ) -> None:
        self._tests = tests
        self._versions = versions
        self._sets = sets
        self._instances = instances
        self._proposals = proposals

    async def validate(self, body: ValidateFlow, instance: str | None) -> ValidatedFlow:
        """Findings of the validator about a flow on an instance. Raises NotAFlowError."""
        instance_id = self._instances.resolve(instance)
        _, findings = await self._checked(body.flow_data, body.kind, instance_id)
        schemas, flow = await self._proposals.schemas(instance_id), GraphIR.from_flow_data(body.flow_data)
        versions = await asyncio.to_thread(other_versions, flow, schemas)
        return ValidatedFlow(validation=FlowValidation.of(findings), versions=versions)

    async def start(self, chatflow_id: str, body: TestFlow, instance: str | None) -> FlowTestView:
        """Queue a test of a flow on a server, of a version of it, or of its test set. Raises VersionNotFoundError."""
        instance_id = self._instances.resolve(instance)
        if not body.tests:
            body = body.model_copy(update={"tests": await self.set_of(instance_id, chatflow_id)})
        if body.version is not None:
            flow_data = await self._version(chatflow_id, int(body.version.removeprefix("v")))
            asked = body.model_dump(exclude={"version"})
            return await self.start_text(TestFlowText.model_validate({**asked, "flow_data": flow_data}), instance)
        endpoint = self._instances.endpoint(instance_id)
        flow = await self._instances.client(instance_id).get_chatflow(chatflow_id)
        test_id, copy, draft = uuid4(), await self._copy(flow.flow_data, body, instance_id), None
        if copy is not None:
            draft = _draft(test_id, flow.type or "CHATFLOW", copy.flow_data)
        return _view(
            await self._tests.start(
                test_id,
                instance_id,
                _request(body),
                endpoint=endpoint,
                chatflow_id=chatflow_id,
                flow_data=flow.flow_data if draft else None,
                draft=draft,
            )
        )

    async def start_text(self, body: TestFlowText, instance: str | None) -> FlowTestView:
        """Queue a test of a flow that is not on the server.

        Raises NotAFlowError, and InvalidInputError for a flow that may not be written there.
        """
        instance_id = self._instances.resolve(instance)
        endpoint = self._instances.endpoint(instance_id)
        kind, findings = await self._checked(body.flow_data, body.kind, instance_id)
        if forbidding := errors(findings):
            raise InvalidInputError(
                text("error.flow_not_tested", problem=forbidding[0].text),
                hint="POST /flows/validate lists all of them.",
                details={"findings": [item.model_dump(mode="json") for item in forbidding[:_MOST_FINDINGS]]},
            )
        if why := why_not_staged(GraphIR.from_flow_data(body.flow_data)):
            raise InvalidInputError(text("error.not_a_draft", why=why), hint=text("error.test_by_id"))
        copy = await self._copy(body.flow_data, body, instance_id)
        test_id = uuid4()
        draft = _draft(test_id, kind, copy.flow_data if copy else body.flow_data)
        return _view(
            await self._tests.start(
                test_id, instance_id, _request(body), endpoint=endpoint, flow_data=body.flow_data, draft=draft
            )
        )

    async def set_of(self, instance_id: str, chatflow_id: str) -> list[GivenTest]:
        """The test set of a flow, without what only a judge can tell."""
        found = await set_of_flow(self._sets, instance_id, chatflow_id)
        plain = [one.model_copy(update={"expect": one.expect.model_copy(update={"language": None})}) for one in found]
        return [GivenTest.model_validate(one.model_dump()) for one in plain]

    async def _version(self, chatflow_id: str, number: int) -> str:
        row = await self._versions.with_number(chatflow_id, number)
        if row is None:
            raise VersionNotFoundError(text("error.no_version", version=f"v{number}"), hint=text("error.versions_hint"))
        return await self._versions.text(row)

    async def get(self, test_id: UUID) -> FlowTestView:
        """State of a test. Raises FlowTestNotFoundError."""
        row = await self._tests.get(test_id)
        if row is None:
            raise FlowTestNotFoundError(text("error.no_test", test=str(test_id)), hint=text("error.no_test_hint"))
        return _view(row)

    async def trace(self, test_id: UUID, sha256: str) -> Trace:
        """Steps inside the flow during one trial of the test. Raises TraceNotFoundError."""
        stored = await self._tests.trace(test_id, sha256)
        if stored is None:
            raise TraceNotFoundError(
                text("error.no_test_trace", test=str(test_id), sha=sha256[:12]), hint=text("error.no_test_trace_hint")
            )
        return Trace.model_validate_json(stored)

    async def _copy(self, flow_data: str, body: TestFlow, instance_id: str) -> Simulation | None:
        """Copy to ask in place of the flow; None if the flow may be asked itself.

        Raises InvalidInputError if its tests would change the world, and NotAFlowError.
        """
        if body.real is True:
            return None
        try:
            graph = GraphIR.from_flow_data(flow_data)
        except PatchError as error:
            raise NotAFlowError(error.message, hint=text("error.not_a_flow_hint")) from None
        schemas = await self._proposals.schemas(instance_id)
        simulation = await asyncio.to_thread(_simulation, graph, schemas, _request(body))
        if simulation.acting or (simulation.is_copy and uploaded_file(graph)):
            raise InvalidInputError(_why_not(simulation), hint=text("error.test_real_hint"))
        if isinstance(body.real, list) and (
            unknown := sorted({*body.real} - {one.address for one in simulation.named if one.address})
        ):
            known = simulation.addresses()
            raise InvalidInputError(
                text("error.address_not_called", addresses=unknown),
                hint=text("error.addresses_called", addresses=known) if known else text("error.test_real_hint"),
            )
        return simulation if simulation.is_copy else None

    async def _checked(self, flow_data: str, kind: FlowType | None, instance_id: str) -> tuple[str, list[Finding]]:
        try:
            found = kind or GraphIR.from_flow_data(flow_data).kind
        except PatchError as error:
            raise NotAFlowError(error.message, hint=text("error.not_a_flow_hint")) from None
        proposal = Proposal(
            operation="import", title="", instance_id=instance_id, name="", type=found, flow_data=flow_data
        )
        return found, await self._proposals.check(proposal)


class FlowTester:
    """Runs the queued tests, and fails tests whose worker was lost."""

    def __init__(
        self,
        tests: FlowTests,
        instances: Instances,
        schemas: Callable[[str], Awaitable[Schemas]],
        timings: Timings,
    ) -> None:
        self._tests = tests
        self._instances = instances
        self._schemas = schemas
        self._timings = timings

    async def run(self, test_id: UUID, job_id: int) -> None:
        """Run a test; does nothing when another job has taken it over."""
        with log_context(test=test_id, job=job_id):
            try:
                row = await self._tests.claim(test_id, job_id)
                if row is not None:
                    with serving(row.owner):
                        await self._hold(row, job_id)
            except DatabaseUnavailableError:
                logger.warning("The database does not answer; the test will be given up.")

    async def give_up_lost(self) -> None:
        """Fail the tests of lost workers."""
        if await self._tests.give_up_lost(self._timings.stalled, error=_LOST.as_row()):
            logger.warning("A test of a flow lost its worker; it has failed.")

    async def _hold(self, row: FlowTestRow, job_id: int) -> None:
        try:
            client = self._instances.client_at(row.instance_id, row.endpoint)
            try:
                async with asyncio.timeout(_TEST_SECS):
                    trials, ways = await self._trials(row, client)
            finally:
                if row.draft is not None:
                    await _remove(client, row.draft)
        except DatabaseUnavailableError:
            raise
        except TimeoutError:
            late = FlowiseTimeoutError(
                text("error.test_too_slow", seconds=f"{_TEST_SECS:.0f}"), hint=text("error.ask_fewer")
            )
            await self._tests.conclude(row.id, job_id, error=Failure.of(late).as_row())
        except AgentError as error:
            await self._tests.conclude(row.id, job_id, error=Failure.of(error).as_row())
        else:
            await self._tests.conclude(row.id, job_id, trials=trials, ways=ways)

    async def _trials(
        self, row: FlowTestRow, client: FlowiseClient
    ) -> tuple[list[tuple[dict[str, object], str]], list[dict[str, object]]]:
        """Trials with their traces, and lines on ways through the flow with their codes."""
        flow_data, simulation = row.flow_data, NOTHING_SIMULATED
        if flow_data is None:
            flow_data = (await client.get_chatflow(row.chatflow_id or "")).flow_data
        graph = GraphIR.from_flow_data(flow_data)
        schemas = await self._schemas(row.instance_id)
        if row.request.get("real") is not True:
            simulation = await asyncio.to_thread(_simulation, graph, schemas, row.request)
            if row.draft is None and (simulation.is_copy or simulation.acting):
                # Somebody saved another flow since the test was queued.
                raise InvalidInputError(_why_not(simulation), hint=text("error.start_test_again"))
        runs = await hold_tests(
            client,
            await _asked(row, client, simulation.flow_data if simulation.is_copy else flow_data),
            flow_data,
            _cases(graph, row.request),
            trials=int(row.request["trials"]),
            session=f"fda-test-{row.id}",
            simulation=simulation,
            ways=bool(row.request.get("ways")),
        )
        told = told_ways(runs, graph, simulation) if row.request.get("ways") else []
        models = {use.model for use in model_uses(graph, schemas)}
        trials = [
            (_priced(run, models).shortened(_LONGEST_ANSWER).model_dump(mode="json"), run.trace.model_dump_json())
            for run in runs
            if run.trial.probe is None
        ]
        return trials, [kept(one).model_dump(mode="json") for one in told]


def _priced(run: TrialRun, models: Collection[str]) -> Trial:
    """Trial with its price by list price, where it is known: of a flow with one model."""
    tokens = run.trace.tokens
    if len(models) != 1 or not tokens:
        return run.trial
    used = {"input_tokens": tokens.get("input", 0), "output_tokens": tokens.get("output", 0)}
    return run.trial.model_copy(update={"usd": cost(next(iter(models)), provider=None, **used)})


def _simulation(graph: GraphIR, schemas: Schemas, request: Mapping[str, Any]) -> Simulation:
    real = request.get("real")
    named = real if isinstance(real, list) else None
    limits = bool(request.get("ways")) and named is None
    return simulated(graph, schemas, _cases(graph, request), named, limits=limits)


def _why_not(simulation: Simulation) -> Text:
    """Reason why the flow may not be asked itself."""
    does = dict.fromkeys([*simulation.acting, *simulation.actions()])
    return text("not_tested.acts", actions="; ".join(does)) if does else text("not_tested.schedule")


def _cases(graph: GraphIR, request: Mapping[str, Any]) -> Sequence[TestCase]:
    tests = [TestCase.model_validate(test) for test in request["tests"]]
    return asked_cases(graph, tests, ways=bool(request.get("ways")))


async def _asked(row: FlowTestRow, client: FlowiseClient, flow_data: str) -> str:
    """Id of the flow to ask: the existing one, or a draft or copy made for this test."""
    if row.draft is None:
        return row.chatflow_id or ""
    draft = row.draft
    made = await create_draft(
        client,
        tag=draft["tag"],
        name=draft["name"],
        kind=draft["type"],
        flow_data=flow_data,
        validated_sha256=draft["sha256"],
    )
    for node in GraphIR.from_flow_data(flow_data).nodes:
        if node.name == OF_ONE_FLOW:
            await client.upsert_vectors(made.id, node.id, timeout=_FILL_SECS)
    return made.id


def _draft(test_id: UUID, kind: str, flow_data: str) -> dict[str, str]:
    return {
        "tag": draft_tag(str(test_id)),
        "name": f"Test {test_id} (draft)",
        "type": kind,
        "sha256": payload_sha256(flow_data),
    }


async def _remove(client: FlowiseClient, draft: Mapping[str, str]) -> None:
    """Delete the draft, even if the call that created it was not answered. A failure is left to the maintenance."""
    tag, names, texts = draft["tag"], [draft["name"]], [draft["sha256"]]
    with suppress(FlowiseError, TimeoutError):
        async with asyncio.timeout(_CLEAN_UP_SECS):
            for chatflow_id in (await find_tagged(client, {tag})).get(tag, ()):
                await remove_unclaimed(client, chatflow_id, tag=tag, names=names, texts=texts)


def _request(body: TestFlow) -> dict[str, object]:
    return body.model_dump(mode="json", include={"tests", "trials", "real", "ways"})


def _view(row: FlowTestRow) -> FlowTestView:
    trials = [Trial.model_validate(trial) for trial in row.trials]
    return FlowTestView.model_validate(
        {
            "id": row.id,
            "instance": row.instance_id,
            "chatflow_id": row.chatflow_id,
            "status": row.status,
            "passed": all(trial.passed for trial in trials) if row.status == "done" else None,
            "trials": trials,
            "summary": TestSummary.of(trials) if row.status == "done" else None,
            "ways": [TextCode.model_validate(one).words for one in row.ways],
            "error": Failure.model_validate(row.error) if row.error else None,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
        }
    )
