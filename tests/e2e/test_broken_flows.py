"""Flows broken on purpose that still answer: tests and judge tell them, and say nothing against the right ones.

The judge's answers were given by people who saw the prompts only; `scripts/bench/verdicts.py --record` asks again.
"""

import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from scripts.bench.verdicts import CASES, SIDES, read_cases, report, run

pytestmark = pytest.mark.nightly


async def test_broken_flows_are_told_and_right_ones_are_not(
    flowise: FlowiseAccess, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    del flowise_client  # deletes what the test leaves on the server
    flows = await run([(case, side) for case in read_cases() for side in SIDES], standin, flowise)
    table = report(flows)
    assert [flow.case.id for flow in flows if flow.unscripted] == []
    assert [flow.case.id for flow in flows if flow.side == "right" and flow.alarm] == []
    assert [flow.case.id for flow in flows if flow.side == "broken" and not flow.alarm] == []
    assert (table["broken"], table["right"]) == (25, 25)
    # Each of them answers something: an error alone tells none.
    assert table["told_by_an_error_alone"] == 0


async def test_mistakes_in_flows_that_act_are_told_by_code_and_nothing_is_called(
    flowise: FlowiseAccess, flowise_client: FlowiseClient, standin: ModelStandIn
) -> None:
    del flowise_client
    cases = read_cases(CASES.with_name("acting.yaml"))
    flows = await run([(case, side) for case in cases for side in SIDES], standin, flowise, by_code=True)
    table = report(flows)
    assert (table["outside"], table["false_alarms"], table["right"]) == (0, 0, 20)
    # Code cannot know that a customer is to be told of a refusal; the review says it (`ways`).
    assert [flow.case.id for flow in flows if flow.side == "broken" and not flow.alarm] == ["only-what-worked"]
