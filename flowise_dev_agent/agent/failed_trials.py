"""Failed trials of the last test, for the plan and the patch of a repair."""

from typing import Final

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.planning.requests import FailedTrial
from flowise_dev_agent.schemas.verdict import Trace
from flowise_dev_agent.testing.judging import as_judged

#: Most failures that a prompt shows, one for each test.
_MOST_SHOWN: Final = 3


async def failed_trials(state: AgentState, context: AgentContext) -> tuple[FailedTrial, ...]:
    """First failed trial of each test that the verdict is about; empty if there is nothing to repair."""
    verdict = state.review.verdict
    if verdict is None or verdict.done:
        return ()
    first = {trial.test: trial for trial in reversed(as_judged(state.tests.results, verdict)) if trial.category}
    shown = list(reversed(first.values()))[:_MOST_SHOWN]
    return tuple(
        [
            FailedTrial(
                trial,
                Trace.model_validate_json(await context.blobs.get(trial.trace_sha256))
                if trial.trace_sha256
                else Trace(),
            )
            for trial in shown
        ]
    )
