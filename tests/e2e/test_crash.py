"""Whatever is killed or lost on the way: the session goes on by itself and there is exactly one chatflow."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from flowise_dev_agent.client import AgentClient, ServiceUnreachableError
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.schemas.requests import ResumeSession
from tests.e2e.people import MakeService
from tests.e2e.service import QUICK, ServiceProcess, all_events, until_settled
from tests.fixtures.proxy import FaultyProxy
from tests.support.sessions import new_flow

#: Where the CREATE path works between its two questions and after the last.
STEPS = (
    "classify_intent",
    "hydrate_context",
    "plan_v2",
    "define_patch_scope",
    "compile_patch_ir",
    "compile_flow_data",
    "validate",
    "preflight_validate_patch",
    "apply_patch",
    "test_v2",
    "evaluate",
)


@pytest.fixture
async def service(make_service: MakeService, faulty_flowise: FaultyProxy) -> ServiceProcess:
    """A running service whose Flowise may lose answers."""
    # Every kill costs its run an attempt, and one run is killed at eight of its steps.
    service = make_service(QUICK, FLOWISE_API_ENDPOINT=faulty_flowise.endpoint, RUN_ATTEMPTS="20")
    await service.start()
    return service


@pytest.fixture
async def client(service: ServiceProcess) -> AsyncIterator[AgentClient]:
    async with AgentClient(service.url) as client:
        yield client


async def _flows(flowise_client: FlowiseClient) -> set[str]:
    return {row.id async for row in flowise_client.iter_chatflows()}


@pytest.mark.nightly
async def test_p40_p02_kill_9_at_every_step_leaves_one_finished_session_and_one_chatflow(
    service: ServiceProcess, client: AgentClient, flowise_client: FlowiseClient
) -> None:
    before = await _flows(flowise_client)
    view = await client.start(new_flow())
    killed: list[str] = []
    answered: set[str] = set()
    seen = 0
    while True:
        node = None
        try:
            async for event in client.events(view.thread_id, after_seq=seen):
                seen = event.seq or seen
                node = event.node if event.type == "node_start" else None
                if (node in STEPS and node not in killed) or event.type in {"interrupt", "done", "error"}:
                    break
        except ServiceUnreachableError:
            continue
        if node in STEPS and node not in killed:
            killed.append(node)
            await service.kill()
            await service.start()
            continue
        view = await client.get(view.thread_id)
        if view.error and view.error.code == "session_quarantined":
            # Two of the kills met the same checkpoint; a person retries such a session.
            view = await client.retry(view.thread_id)
            continue
        if view.interrupt is None:
            break
        assert view.interrupt.id not in answered
        answered.add(view.interrupt.id)
        action = "approve" if view.interrupt.type == "plan_approval" else "accept"
        await client.resume(view.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer={"action": action}))
    assert set(killed) == set(STEPS)
    assert (view.status, view.outcome) == ("completed", "accepted")
    assert await _flows(flowise_client) - before == {view.chatflow_id}
    events = await all_events(client, view.thread_id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len(answered) == 2


async def test_p02_kill_9_while_the_create_is_in_flight_leaves_one_chatflow(
    service: ServiceProcess, client: AgentClient, flowise_client: FlowiseClient, faulty_flowise: FaultyProxy
) -> None:
    before = await _flows(flowise_client)
    started = await client.start(new_flow())
    plan = (await until_settled(client, started.thread_id)).interrupt
    assert plan is not None
    faulty_flowise.fault("POST /api/v1/chatflows", "hold_answer")
    await client.resume(started.thread_id, ResumeSession(interrupt_id=plan.id, answer={"action": "approve"}))
    assert await asyncio.to_thread(faulty_flowise.holding.wait, 60)
    await service.kill()
    assert len(await _flows(flowise_client) - before) == 1
    await service.start()
    view = await until_settled(client, started.thread_id)
    assert view.interrupt is not None
    assert view.interrupt.type == "result_review"
    assert await _flows(flowise_client) - before == {view.chatflow_id}
    assert sum(line.startswith("POST /api/v1/chatflows") for line in faulty_flowise.seen) == 1


@pytest.mark.parametrize("fault", ["drop_answer", pytest.param("drop_request", marks=pytest.mark.nightly)])
async def test_p03_a_create_whose_answer_is_lost_is_adopted_or_made_once(
    service: ServiceProcess, client: AgentClient, flowise_client: FlowiseClient, faulty_flowise: FaultyProxy, fault: str
) -> None:
    before = await _flows(flowise_client)
    started = await client.start(new_flow())
    plan = (await until_settled(client, started.thread_id)).interrupt
    assert plan is not None
    faulty_flowise.fault("POST /api/v1/chatflows", fault)  # type: ignore[arg-type]
    await client.resume(started.thread_id, ResumeSession(interrupt_id=plan.id, answer={"action": "approve"}))
    view = await until_settled(client, started.thread_id)
    assert view.interrupt is not None
    assert view.interrupt.type == "result_review"
    assert await _flows(flowise_client) - before == {view.chatflow_id}


@pytest.mark.nightly
@pytest.mark.parametrize(("fault", "words"), [("status_500", "Boom"), ("html", "Flowise")])
async def test_p12_a_create_that_flowise_refuses_is_said_in_its_words_and_never_called_built(
    service: ServiceProcess,
    client: AgentClient,
    flowise_client: FlowiseClient,
    faulty_flowise: FaultyProxy,
    fault: str,
    words: str,
) -> None:
    before = await _flows(flowise_client)
    started = await client.start(new_flow())
    plan = (await until_settled(client, started.thread_id)).interrupt
    assert plan is not None
    faulty_flowise.fault("POST /api/v1/chatflows", fault)  # type: ignore[arg-type]
    await client.resume(started.thread_id, ResumeSession(interrupt_id=plan.id, answer={"action": "approve"}))
    view = await until_settled(client, started.thread_id)
    assert (view.status, view.chatflow_id) == ("error", None)
    assert view.error is not None
    assert words in view.error.detail
    assert await _flows(flowise_client) == before


@pytest.mark.nightly
async def test_sigterm_hands_the_work_to_the_next_process(service: ServiceProcess, client: AgentClient) -> None:
    started = await client.start(new_flow())
    assert await service.stop() == 0
    await service.start()
    view = await until_settled(client, started.thread_id)
    assert view.interrupt is not None
    assert view.interrupt.type == "plan_approval"
