"""Tests of flows without a session: queued by clients, run by the workers."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
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
)
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flows.proposals import Proposal, Proposals
from flowise_dev_agent.observability import log_context
from flowise_dev_agent.patch import Finding, GraphIR, errors, payload_sha256
from flowise_dev_agent.persistence import FlowTestRow, FlowTests
from flowise_dev_agent.publish import create_draft, draft_tag, find_tagged, remove_unclaimed, why_not_staged
from flowise_dev_agent.schemas.base import Failure
from flowise_dev_agent.schemas.flow_tests import (
    FlowTestView,
    FlowValidation,
    TestFlow,
    TestFlowText,
    ValidatedFlow,
    ValidateFlow,
)
from flowise_dev_agent.schemas.flow_writes import FlowType
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.schemas.verdict import Trace, Trial
from flowise_dev_agent.testing.flow_tests import hold_tests
from flowise_dev_agent.texts import text
from flowise_dev_agent.timings import Timings

logger = logging.getLogger(__name__)

#: Seconds for a whole test; the Flowise client limits each question.
_TEST_SECS: Final = 1_800.0
_CLEAN_UP_SECS: Final = 30.0
_LONGEST_ANSWER: Final = 32_000
_MOST_FINDINGS: Final = 20
_LOST: Final = Failure(code="worker_lost", detail=text("error.test_lost_worker"), hint=text("error.start_test_again"))


class FlowTestService:
    """Validation and tests of flows for clients.

    Raises InvalidInputError for an unknown instance, and FlowiseError for a server that fails.
    """

    def __init__(self, tests: FlowTests, instances: Instances, proposals: Proposals) -> None:
        self._tests = tests
        self._instances = instances
        self._proposals = proposals

    async def validate(self, body: ValidateFlow, instance: str | None) -> ValidatedFlow:
        """Findings of the validator about a flow on an instance. Raises NotAFlowError."""
        _, findings = await self._checked(body.flow_data, body.kind, self._instances.resolve(instance))
        return ValidatedFlow(validation=FlowValidation.of(findings))

    async def start(self, chatflow_id: str, body: TestFlow, instance: str | None) -> FlowTestView:
        """Queue a test of a flow on a server."""
        instance_id = self._instances.resolve(instance)
        endpoint = self._instances.endpoint(instance_id)
        await self._instances.client(instance_id).get_chatflow(chatflow_id)
        return _view(
            await self._tests.start(uuid4(), instance_id, _request(body), endpoint=endpoint, chatflow_id=chatflow_id)
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
        test_id = uuid4()
        draft = {
            "tag": draft_tag(str(test_id)),
            "name": f"Test {test_id} (draft)",
            "type": kind,
            "sha256": payload_sha256(body.flow_data),
        }
        return _view(
            await self._tests.start(
                test_id, instance_id, _request(body), endpoint=endpoint, flow_data=body.flow_data, draft=draft
            )
        )

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

    def __init__(self, tests: FlowTests, instances: Instances, timings: Timings) -> None:
        self._tests = tests
        self._instances = instances
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
                    trials = await self._trials(row, client)
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
            await self._tests.conclude(row.id, job_id, trials=trials)

    async def _trials(self, row: FlowTestRow, client: FlowiseClient) -> list[tuple[dict[str, object], str]]:
        chatflow_id, flow_data = await _on_server(row, client)
        runs = await hold_tests(
            client,
            chatflow_id,
            flow_data,
            [TestCase.model_validate(test) for test in row.request["tests"]],
            trials=int(row.request["trials"]),
            session=f"fda-test-{row.id}",
        )
        return [
            (run.trial.shortened(_LONGEST_ANSWER).model_dump(mode="json"), run.trace.model_dump_json()) for run in runs
        ]


async def _on_server(row: FlowTestRow, client: FlowiseClient) -> tuple[str, str]:
    """(id, flowData) of the flow to test: the existing one, or a draft made from the text."""
    if row.draft is None or row.flow_data is None:
        found = await client.get_chatflow(row.chatflow_id or "")
        return found.id, found.flow_data
    draft = row.draft
    made = await create_draft(
        client,
        tag=draft["tag"],
        name=draft["name"],
        kind=draft["type"],
        flow_data=row.flow_data,
        validated_sha256=draft["sha256"],
    )
    return made.id, row.flow_data


async def _remove(client: FlowiseClient, draft: Mapping[str, str]) -> None:
    """Delete the draft, even if the call that created it was not answered. A failure is left to the maintenance."""
    tag, names, texts = draft["tag"], [draft["name"]], [draft["sha256"]]
    with suppress(FlowiseError, TimeoutError):
        async with asyncio.timeout(_CLEAN_UP_SECS):
            for chatflow_id in (await find_tagged(client, {tag})).get(tag, ()):
                await remove_unclaimed(client, chatflow_id, tag=tag, names=names, texts=texts)


def _request(body: TestFlow) -> dict[str, object]:
    return body.model_dump(mode="json", include={"tests", "trials"})


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
            "error": Failure.model_validate(row.error) if row.error else None,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
        }
    )
