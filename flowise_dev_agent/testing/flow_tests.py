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
from flowise_dev_agent.testing.trials import ConversationRunner, Patience, TrialConversation, TrialRun, hold_all

_AT_A_TIME = 4


async def hold_tests(
    client: FlowiseClient, chatflow_id: str, flow_data: str, tests: Sequence[TestCase], *, trials: int, session: str
) -> list[TrialRun]:
    """Hold each conversation `trials` times, each in a session of its own that is removed from Flowise afterwards.

    Their session ids begin with `session`. Raises PatchError for a text that is not a flow.
    """
    graph = GraphIR.from_flow_data(flow_data)
    gate = asyncio.Semaphore(_AT_A_TIME)
    patience = Patience()

    async def hold(case: TestCase, number: int) -> TrialRun:
        async with gate:
            conversation = TrialConversation(
                chatflow_id,
                flow_data,
                case,
                number,
                f"{session}-{case.id}-{number}",
                not_testable=why_not_testable(case, graph),
                timeout=patience.seconds,
            )
            try:
                run = await ConversationRunner(client, conversation).run()
            finally:
                # Best effort: the API key may lack the permission.
                with suppress(FlowiseError):
                    await client.delete_messages(chatflow_id, conversation.session_id)
        patience.note(run)
        return replace(run, trial=as_expected(run.trial, run.trace, case, flow_data))

    return await hold_all(cases_for(tests, graph), hold, trials=trials)
