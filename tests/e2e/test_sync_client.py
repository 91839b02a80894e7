"""A whole session by the client without async, as a script has it."""

import asyncio

import pytest

from flowise_dev_agent.client import RUN_END_EVENTS, SyncAgentClient
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.schemas.requests import ResumeSession
from flowise_dev_agent.schemas.session import SessionView
from tests.e2e.people import SharedService
from tests.support.sessions import new_flow

pytestmark = pytest.mark.nightly


def script(url: str) -> SessionView:
    with SyncAgentClient(url) as client:
        view: SessionView = client.start(new_flow(), wait=90)
        for action in ("approve", "accept"):
            assert view.interrupt is not None
            answer = ResumeSession(interrupt_id=view.interrupt.id, answer={"action": action})
            seen = [event.type for event in client.resume_events(view.thread_id, answer)]
            assert seen[-1] in RUN_END_EVENTS
            view = client.wait(view.thread_id, 60)
        assert [event.type for event in client.events(view.thread_id)][-1] == "done"
        assert client.versions(view.thread_id).versions
    return view


async def test_a_script_builds_a_chatflow_without_async(
    shared_service: SharedService, flowise_client: FlowiseClient
) -> None:
    service = await shared_service()
    view = await asyncio.to_thread(script, service.url)
    assert view.outcome == "accepted"
    assert (await flowise_client.get_chatflow(str(view.chatflow_id))).deployed is True
