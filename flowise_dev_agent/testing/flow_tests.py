"""Tests of a flow without a session, plan or judge: code evaluates the answers and traces."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.testing.cases import cases_for, why_not_testable
from flowise_dev_agent.testing.checks import as_expected
from flowise_dev_agent.testing.simulation import NOTHING_SIMULATED, Simulation
from flowise_dev_agent.testing.tool_names import custom_tools
from flowise_dev_agent.testing.trials import ConversationRunner, More, Patience, TrialConversation, TrialRun, hold_all
from flowise_dev_agent.testing.ways import answered_branches, more_ways, session_of

_AT_A_TIME = 4


def asked_cases(graph: GraphIR, tests: Sequence[TestCase], *, ways: bool) -> Sequence[TestCase]:
    """Tests as the flow is started, with those for branches that depend on an answer if its `ways` are wanted."""
    cases = cases_for(tests, graph)
    return (*cases, *answered_branches(graph, cases)) if ways else cases


async def hold_tests(
    client: FlowiseClient,
    chatflow_id: str,
    flow_data: str,
    cases: Sequence[TestCase],
    *,
    trials: int,
    session: str,
    simulation: Simulation = NOTHING_SIMULATED,
    ways: bool = False,
) -> list[TrialRun]:
    """Hold each conversation `trials` times, each in a session of its own that is removed from Flowise afterwards.

    Their session ids begin with `session`. `simulation` is that of the flow that is asked. Raises PatchError for a text
    that is not a flow.
    """
    graph = GraphIR.from_flow_data(flow_data)
    gate = asyncio.Semaphore(_AT_A_TIME)
    patience = Patience()
    tools = await custom_tools(client, flow_data)

    async def hold(case: TestCase, number: int) -> TrialRun:
        async with gate:
            conversation = TrialConversation(
                chatflow_id,
                flow_data,
                case,
                number,
                session_of(session, case, number),
                not_testable=why_not_testable(case, graph, in_copy=simulation.by_message),
                simulation=simulation,
                timeout=patience.seconds,
            )
            try:
                run = await ConversationRunner(client, conversation).run()
            finally:
                # Best effort: the API key may lack the permission.
                with suppress(FlowiseError):
                    await client.delete_messages(chatflow_id, conversation.session_id)
        patience.note(run)
        return replace(run, trial=as_expected(run.trial, run.trace, case, flow_data, tools))

    more: More | None = (lambda runs: more_ways(runs, graph, simulation)) if ways else None
    return await hold_all(cases, hold, trials=trials, more=more)
