"""Flowise restarts or stands still while a session needs it: the session waits for it and makes one chatflow."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import UUID

import pytest

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.devkit.flowise import LocalFlowise
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.schemas.requests import ResumeSession
from tests.e2e.people import MakeService
from tests.e2e.service import QUICK, until_settled
from tests.support.sessions import new_flow

pytestmark = pytest.mark.nightly


@pytest.fixture
async def client(make_service: MakeService) -> AsyncIterator[AgentClient]:
    """A service that gives up calls soon and runs late."""
    service = make_service(QUICK, FLOWISE_TIMEOUT="2", RUN_ATTEMPTS="300")
    await service.start()
    async with AgentClient(service.url) as client:
        yield client


async def planned(client: AgentClient, session_id: UUID) -> ResumeSession:
    """The approval of the session's plan."""
    view = await until_settled(client, session_id)
    assert view.interrupt is not None, view.error
    assert view.interrupt.type == "plan_approval"
    return ResumeSession(interrupt_id=view.interrupt.id, answer={"action": "approve"})


async def first_retry(client: AgentClient, session_id: UUID) -> str:
    """The code of the error for which the session's run is tried again."""
    async with asyncio.timeout(60):
        async for event in client.events(session_id):
            if event.type == "retry":
                return str(event.data.code)
    raise AssertionError("the session ended without a retry")


async def one_chatflow_after_review(client: AgentClient, flowise_client: FlowiseClient, session_id: UUID) -> None:
    view = await until_settled(client, session_id)
    assert view.interrupt is not None, view.error
    assert view.interrupt.type == "result_review"
    tagged = await flowise_client.find_chatflow_by_category_tag(f"fda:{session_id}:flow")
    assert [flow.id for flow in tagged] == [view.chatflow_id]


async def test_p02_a_session_outlives_a_restart_of_flowise(
    client: AgentClient, flowise_server: LocalFlowise, flowise_client: FlowiseClient
) -> None:
    started = await client.start(new_flow())
    approval = await planned(client, started.thread_id)
    await asyncio.to_thread(flowise_server.stop)
    try:
        await client.resume(started.thread_id, approval)
        assert await first_retry(client, started.thread_id) == "flowise_unreachable"
    finally:
        await asyncio.to_thread(flowise_server.start)
    await one_chatflow_after_review(client, flowise_client, started.thread_id)


async def test_p02_a_session_outlives_a_flowise_that_stands_still(
    client: AgentClient, flowise_server: LocalFlowise, flowise_client: FlowiseClient
) -> None:
    pid = flowise_server.pid
    assert pid is not None
    started = await client.start(new_flow())
    approval = await planned(client, started.thread_id)
    os.kill(pid, signal.SIGSTOP)
    try:
        await client.resume(started.thread_id, approval)
        assert await first_retry(client, started.thread_id) == "flowise_timeout"
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    await one_chatflow_after_review(client, flowise_client, started.thread_id)
