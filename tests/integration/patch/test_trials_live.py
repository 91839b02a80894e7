"""What a real Flowise does with the flows that the validator judges in `tests/unit/patch/test_trial_flows.py`."""

import asyncio

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.patch import GraphIR, Schemas, compile_ops
from tests.fixtures.trial_flows import TRIAL_FLOWS, TrialFlow

AT_ONCE = 8
#: The first trial of each finding, and of the flows that are right, in each kind of flow.
ONE_EACH = list({(trial.kind, trial.code): trial for trial in reversed(TRIAL_FLOWS)}.values())


@pytest.mark.parametrize(
    "trials", [pytest.param(ONE_EACH, id="one of each"), pytest.param(TRIAL_FLOWS, id="all", marks=pytest.mark.nightly)]
)
async def test_p27_the_server_fails_on_the_very_flows_that_are_said_to_fail(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, schemas: Schemas, trials: list[TrialFlow]
) -> None:
    free = asyncio.Semaphore(AT_ONCE)

    answers: dict[str, str] = {}

    async def fails(trial: TrialFlow) -> bool:
        text = compile_ops(GraphIR.empty(), trial.build(flowise.credentials), schemas).flow_data
        async with free:
            flow = await flowise_client.create_chatflow(
                ChatflowCreate(name=trial.name, flow_data=text, type=trial.kind)
            )
            try:
                for _ in range(1 + trial.fails_later):
                    answer = await flowise_client.predict(
                        flow.id, "What is 12 times 14?", session_id=f"trial-{flow.id}"
                    )
                    answers[trial.name] = answer.answer
            except FlowiseError:
                return True
        return False

    failed = await asyncio.gather(*(fails(trial) for trial in trials))

    said = {trial.name for trial in trials if trial.fails or trial.fails_later}
    assert {trial.name for trial, has in zip(trials, failed, strict=True) if has} == said
    otherwise = {
        trial.name: answers.get(trial.name) for trial in trials if trial.says not in answers.get(trial.name, "")
    }
    assert otherwise == {}
