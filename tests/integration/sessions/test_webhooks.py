"""Webhooks from the commit to the receiver: a real Postgres, a real HTTP server, real worker processes."""

import asyncio
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from ipaddress import ip_network
from typing import Any
from uuid import UUID, uuid4

import pytest

from flowise_dev_agent.errors import DeliveryNotFoundError, SessionNotFoundError, WebhookSecretError, WebhookUrlError
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.schemas.webhooks import DeliveryView
from flowise_dev_agent.webhooks.policy import UrlPolicy
from flowise_dev_agent.webhooks.service import WebhookConfig
from tests.fixtures.receiver import Receiver, running_receiver
from tests.integration.sessions.conftest import StartWorker
from tests.runtime_world import World, running_engine, until

SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
WAIT = 20.0
LOOPBACK = (ip_network("127.0.0.0/8"),)
CONFIG = WebhookConfig(
    policy=UrlPolicy(allowed_networks=LOOPBACK),
    secrets=(SECRET,),
    base_url="https://agent.test",
    retry_secs=(0.05,) * 7,
    timeout=2.0,
)
MakeEngine = Callable[..., AbstractAsyncContextManager[Runtime]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture
async def hooked(database_dsn: str) -> AsyncIterator[Runtime]:
    async with running_engine(database_dsn, webhooks=CONFIG) as engine:
        yield engine


def start(url: str, *words: str, **fields: Any) -> StartSession:
    return StartSession(requirement=" ".join(words), webhook_url=url, **fields)


async def received(receiver: Receiver, count: int) -> list[Any]:
    return await asyncio.to_thread(receiver.wait_for, count)


async def answer(engine: Runtime, view: SessionView) -> None:
    assert view.interrupt is not None
    await engine.service.resume(view.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer={"ok": True}))


async def deliveries(engine: Runtime, session_id: UUID) -> list[DeliveryView]:
    return (await engine.service.deliveries(session_id)).deliveries


async def settled(engine: Runtime, session_id: UUID, count: int = 1) -> list[DeliveryView]:
    """The session's deliveries once there are `count`, none of them pending."""

    async def check() -> list[DeliveryView] | None:
        found = await deliveries(engine, session_id)
        return found if len(found) == count and all(one.status != "pending" for one in found) else None

    return await until(check, "the deliveries are over")


async def test_p63_question_and_end_are_told_once_each_signed_and_with_the_links(
    hooked: Runtime, receiver: Receiver
) -> None:
    view = await hooked.service.start(start(receiver.url("/hook?token=t0ken"), "work:a", "ask:why", "end:accepted"))
    (first,) = await received(receiver, 1)
    waiting = await hooked.service.wait(view.thread_id, WAIT)
    payload = first.verified(SECRET)
    data = payload["data"]
    assert payload["type"] == "session.waiting"
    assert (data["session_id"], data["status"]) == (str(view.thread_id), "pending_interrupt")
    assert waiting.interrupt is not None
    assert data["interrupt"]["id"] == waiting.interrupt.id
    assert (data["interrupt"]["type"], data["interrupt"]["message"]) == ("clarification", "why")
    assert {"reason", "options", "response_schema"} <= set(data["interrupt"])
    assert "data" not in data["interrupt"]
    base = f"https://agent.test/sessions/{view.thread_id}"
    assert data["links"] == {
        "session": base,
        "resume": f"{base}/resume",
        "page": f"https://agent.test/#/s/{view.thread_id}",
    }
    assert first.headers["host"] == f"127.0.0.1:{receiver.port}"
    await answer(hooked, waiting)
    second = (await received(receiver, 2))[1].verified(SECRET)
    assert (second["type"], second["data"]["outcome"]) == ("session.completed", "accepted")
    assert second["data"]["interrupt"] is None
    assert second["data"]["event_seq"] > data["event_seq"]
    done = await settled(hooked, view.thread_id, 2)
    assert [one.status for one in done] == ["delivered", "delivered"]
    assert {str(one.id) for one in done} == {request.id for request in receiver.received}
    assert [one.interrupt_id for one in done] == [None, waiting.interrupt.id]
    assert len(receiver.received) == 2


async def test_a_session_that_fails_or_is_cancelled_is_told_of(hooked: Runtime, receiver: Receiver) -> None:
    failing = await hooked.service.start(start(receiver.url(), "fail"))
    payload = (await received(receiver, 1))[0].verified(SECRET)
    assert (payload["type"], payload["data"]["status"]) == ("session.failed", "error")
    assert payload["data"]["error"]["code"] == "flowise_auth"
    assert payload["data"]["session_id"] == str(failing.thread_id)
    asking = await hooked.service.start(start(receiver.url(), "ask:q"))
    await received(receiver, 2)
    await hooked.service.wait(asking.thread_id, WAIT)
    await hooked.service.cancel(asking.thread_id)
    payload = (await received(receiver, 3))[2].verified(SECRET)
    assert (payload["type"], payload["data"]["status"]) == ("session.completed", "cancelled")
    assert payload["data"]["outcome"] == "cancelled"


async def test_a_session_without_a_webhook_leaves_nothing_behind(hooked: Runtime, world: World) -> None:
    view = await hooked.service.start(StartSession(requirement="end:accepted"))
    await hooked.service.wait(view.thread_id, WAIT)
    listed = await hooked.service.deliveries(view.thread_id)
    assert (listed.endpoint, listed.deliveries) == (None, [])
    assert await world.fetch("SELECT 1 FROM procrastinate_jobs WHERE task_name = 'webhook'") == []


async def test_an_unwilling_receiver_is_tried_again_with_the_same_message(hooked: Runtime, receiver: Receiver) -> None:
    receiver.answer = lambda number, _: 500 if number < 2 else 204
    view = await hooked.service.start(start(receiver.url(), "ask:q"))
    requests = await received(receiver, 3)
    (delivery,) = await settled(hooked, view.thread_id)
    assert (delivery.status, delivery.attempts, delivery.response_status, delivery.error) == ("delivered", 3, 204, None)
    assert len({request.id for request in requests}) == 1
    assert len({request.body for request in requests}) == 1
    for request in requests:
        request.verified(SECRET)


async def test_eight_attempts_are_the_end_of_it(hooked: Runtime, receiver: Receiver) -> None:
    receiver.answer = lambda *_: 503
    view = await hooked.service.start(start(receiver.url(), "ask:q"))
    (delivery,) = await settled(hooked, view.thread_id)
    assert (delivery.status, delivery.attempts, delivery.response_status) == ("failed", 8, 503)
    assert delivery.next_attempt_at is None
    assert len(receiver.received) == 8


async def test_gone_ends_the_webhooks_of_this_session_until_a_replay(hooked: Runtime, receiver: Receiver) -> None:
    receiver.answer = lambda number, _: 410 if number == 0 else 200
    view = await hooked.service.start(start(receiver.url(), "ask:q", "ask:r", "end:accepted"))
    (delivery,) = await settled(hooked, view.thread_id)
    assert (delivery.status, delivery.attempts) == ("disabled", 1)
    listed = await hooked.service.deliveries(view.thread_id)
    assert listed.endpoint is not None
    assert listed.endpoint.disabled_at is not None
    await answer(hooked, await hooked.service.wait(view.thread_id, WAIT))
    waiting = await hooked.service.wait(view.thread_id, WAIT)
    assert len(await deliveries(hooked, view.thread_id)) == 1
    replayed = await hooked.service.replay(view.thread_id, delivery.id)
    assert (replayed.status, replayed.attempts) == ("pending", 0)
    assert {request.id for request in await received(receiver, 2)} == {str(delivery.id)}
    assert [one.status for one in await settled(hooked, view.thread_id)] == ["delivered"]
    await answer(hooked, waiting)
    assert (await received(receiver, 3))[2].verified(SECRET)["type"] == "session.completed"


async def test_a_receiver_that_says_nothing_is_cut_off(database_dsn: str, receiver: Receiver) -> None:
    silent = threading.Event()
    receiver.answer = lambda number, _: (silent.wait(20), 200)[1] if number == 0 else 200
    config = replace(CONFIG, timeout=0.3)
    async with running_engine(database_dsn, webhooks=config) as engine:
        view = await engine.service.start(start(receiver.url(), "ask:q"))
        requests = await received(receiver, 2)
        (delivery,) = await settled(engine, view.thread_id)
    silent.set()
    assert (delivery.status, delivery.attempts) == ("delivered", 2)
    assert requests[0].id == requests[1].id


async def test_a_slow_receiver_holds_no_session(database_dsn: str, receiver: Receiver) -> None:
    release = threading.Event()
    receiver.answer = lambda *_: (release.wait(20), 200)[1]
    async with running_engine(database_dsn, webhooks=replace(CONFIG, timeout=15.0), concurrency=1) as engine:
        await engine.service.start(start(receiver.url(), "ask:q"))
        await received(receiver, 1)
        other = await engine.service.start(StartSession(requirement="work:a end:accepted"))
        assert (await engine.service.wait(other.thread_id, WAIT)).status == "completed"
        assert not release.is_set()
        release.set()


async def test_p63_redirects_are_not_followed(hooked: Runtime, receiver: Receiver) -> None:
    with running_receiver() as inner:
        receiver.answer = lambda number, _: (307, {"Location": inner.url()}) if number == 0 else 200
        view = await hooked.service.start(start(receiver.url(), "ask:q"))
        (delivery,) = await settled(hooked, view.thread_id)
        assert inner.received == []
    assert (delivery.status, delivery.attempts) == ("delivered", 2)


async def test_p63_a_host_that_turns_private_after_the_start_is_not_reached(
    database_dsn: str, receiver: Receiver
) -> None:
    answers = iter(["8.8.8.8"])

    async def rebinding(host: str, port: int) -> list[str]:
        return [next(answers, "127.0.0.1")]

    config = replace(CONFIG, policy=UrlPolicy(resolve=rebinding), retry_secs=())
    async with running_engine(database_dsn, webhooks=config) as engine:
        url = f"https://rebinding.test:{receiver.port}/"
        view = await engine.service.start(start(url, "ask:q"))
        (delivery,) = await settled(engine, view.thread_id)
    assert delivery.status == "failed"
    assert "private" in str(delivery.error)
    assert receiver.received == []


async def test_p63_what_is_checked_is_what_is_connected_to(database_dsn: str, receiver: Receiver) -> None:
    """One look-up for each attempt: there is no second one that could say something else."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    policy = UrlPolicy(allowed_networks=LOOPBACK, resolve=resolve)
    async with running_engine(database_dsn, webhooks=replace(CONFIG, policy=policy)) as engine:
        view = await engine.service.start(start(f"http://hooks.test:{receiver.port}/", "ask:q"))
        (request,) = await received(receiver, 1)
        await settled(engine, view.thread_id)
    # The name is known to this resolver only, so a second look-up would have failed.
    assert asked == ["hooks.test", "hooks.test"]
    assert request.headers["host"] == f"hooks.test:{receiver.port}"


async def test_p63_private_addresses_are_refused_at_the_start(database_dsn: str, world: World) -> None:
    async with running_engine(database_dsn, webhooks=WebhookConfig(secrets=(SECRET,)), worker=False) as engine:
        for url in ("http://127.0.0.1:9/", "https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/"):
            with pytest.raises(WebhookUrlError):
                await engine.service.start(start(url, "ask:q"))
    assert await world.fetch("SELECT 1 FROM sessions") == []


async def test_without_any_secret_no_webhook_is_promised(database_dsn: str, receiver: Receiver) -> None:
    async with running_engine(database_dsn, webhooks=replace(CONFIG, secrets=())) as engine:
        with pytest.raises(WebhookSecretError):
            await engine.service.start(start(receiver.url(), "ask:q"))
        own = await engine.service.start(start(receiver.url(), "ask:q", webhook_own_secret=True))
        assert own.webhook_secret is not None
        (request,) = await received(receiver, 1)
        assert request.verified(own.webhook_secret)["type"] == "session.waiting"


async def test_a_secret_of_its_own_is_shown_once_and_nowhere_else(
    hooked: Runtime, receiver: Receiver, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.answer = lambda number, _: 500 if number == 0 else 200
    asked = start(receiver.url("/t0ken"), "ask:q", webhook_own_secret=True)
    started = await hooked.service.start(asked, idempotency_key="k")
    secret = started.webhook_secret
    assert secret is not None
    (request, _) = await received(receiver, 2)
    request.verified(secret)
    (delivery,) = await settled(hooked, started.thread_id)
    assert (await hooked.service.start(asked, idempotency_key="k")).webhook_secret is None
    listed = await hooked.service.deliveries(started.thread_id)
    assert listed.endpoint is not None
    assert (listed.endpoint.own_secret, listed.endpoint.origin) == (True, f"http://127.0.0.1:{receiver.port}")
    shown = [
        listed.model_dump_json(),
        (await hooked.service.get(started.thread_id)).model_dump_json(),
        repr(started),
        request.body.decode(),
        caplog.text,
        *(event.model_dump_json() for event in await _events(hooked, started)),
        *(json.dumps(row, default=str) for row in await world.fetch("SELECT to_jsonb(sessions) FROM sessions")),
        *(json.dumps(row, default=str) for row in await world.fetch("SELECT to_jsonb(j) FROM procrastinate_jobs j")),
    ]
    for text in shown:
        assert secret not in text
        assert "t0ken" not in text
    assert delivery.status == "delivered"
    await hooked.service.delete(started.thread_id)
    assert await world.fetch("SELECT 1 FROM webhook_endpoints") == []
    assert await world.fetch("SELECT 1 FROM webhook_deliveries") == []


async def test_p47_deleting_a_session_takes_the_webhooks_that_still_wait_for_an_attempt(
    database_dsn: str, receiver: Receiver, world: World
) -> None:
    receiver.answer = lambda *_: 503
    async with running_engine(database_dsn, webhooks=replace(CONFIG, retry_secs=(3600.0,) * 7)) as engine:
        view = await engine.service.start(start(receiver.url(), "ask:q"))

        async def postponed() -> bool:
            return any(one.attempts == 1 and one.error for one in await deliveries(engine, view.thread_id))

        await until(postponed, "the first attempt has failed")
        waiting = "SELECT 1 FROM procrastinate_jobs WHERE task_name = 'webhook' AND status = 'todo'"
        assert len(await world.fetch(waiting)) == 1
        await engine.service.delete(view.thread_id)
        assert await world.fetch(waiting) == []


async def _events(engine: Runtime, view: SessionView) -> list[Any]:
    found: list[Any] = []
    async for event in engine.service.events(view.thread_id):
        found.append(event)
        if event.type == "interrupt":
            break
    return found


async def test_p63_the_outbox_survives_a_restart(database_dsn: str, receiver: Receiver) -> None:
    receiver.answer = lambda number, _: 500 if number == 0 else 200
    config = replace(CONFIG, retry_secs=(1.0,) * 7)
    async with running_engine(database_dsn, webhooks=config) as engine:
        view = await engine.service.start(start(receiver.url(), "ask:q"))
        await received(receiver, 1)

        async def noted() -> bool:
            (delivery,) = await deliveries(engine, view.thread_id)
            return delivery.next_attempt_at is not None and delivery.response_status == 500

        await until(noted, "the failure is written down")
    async with running_engine(database_dsn, webhooks=config) as engine:
        first, second = await received(receiver, 2)
        (delivery,) = await settled(engine, view.thread_id)
    assert first.id == second.id == str(delivery.id)
    assert (delivery.status, delivery.attempts) == ("delivered", 2)


async def test_p63_a_worker_lost_after_sending_means_the_same_webhook_again(
    database_dsn: str, receiver: Receiver, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("WEBHOOK_ALLOW", "127.0.0.0/8")
    silent = threading.Event()
    receiver.answer = lambda number, _: (silent.wait(20), 200)[1] if number == 0 else 200
    async with running_engine(database_dsn, worker=False, webhooks=CONFIG) as engine:
        dying = await start_worker()
        view = await engine.service.start(start(receiver.url(), "ask:q"))
        await received(receiver, 1)
        dying.kill()
        await dying.wait()
        await start_worker()
        first, second = await received(receiver, 2)
        (delivery,) = await settled(engine, view.thread_id)
    silent.set()
    assert first.id == second.id == str(delivery.id)
    assert first.body == second.body
    assert (delivery.status, delivery.attempts) == ("delivered", 2)


async def test_replay_knows_only_the_deliveries_of_the_session(hooked: Runtime, receiver: Receiver) -> None:
    one = await hooked.service.start(start(receiver.url(), "ask:q"))
    other = await hooked.service.start(start(receiver.url(), "ask:q"))
    (delivery,) = await settled(hooked, one.thread_id)
    for wrong in (delivery.id, uuid4()):
        with pytest.raises(DeliveryNotFoundError):
            await hooked.service.replay(other.thread_id, wrong)
    for call in (hooked.service.deliveries(uuid4()), hooked.service.replay(uuid4(), delivery.id)):
        with pytest.raises(SessionNotFoundError):
            await call
    assert len(await received(receiver, 2)) == 2


async def test_nobody_listening_is_a_failed_attempt(database_dsn: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with running_engine(database_dsn, webhooks=replace(CONFIG, retry_secs=())) as engine:
        view = await engine.service.start(start(f"http://127.0.0.1:{port}/", "ask:q"))
        (delivery,) = await settled(engine, view.thread_id)
    assert (delivery.status, delivery.attempts, delivery.response_status) == ("failed", 1, None)
    assert delivery.texts["error"].code == "delivery.unreachable"


async def test_the_deliveries_of_all_sessions_are_paged_newest_first(hooked: Runtime, receiver: Receiver) -> None:
    sessions = [await hooked.service.start(start(receiver.url(), "end:accepted")) for _ in range(3)]
    for view in sessions:
        await settled(hooked, view.thread_id)
    first = await hooked.service.all_deliveries(limit=2)
    rest = await hooked.service.all_deliveries("delivered", limit=2, cursor=first.next_cursor)
    found = [*first.deliveries, *rest.deliveries]
    assert sorted(item.session_id for item in found) == sorted(view.thread_id for view in sessions)
    assert [item.created_at for item in found] == sorted((item.created_at for item in found), reverse=True)
    assert (rest.next_cursor, found[0].session_name) == (None, "A script")
    assert found[0].origin in receiver.url()
    assert (await hooked.service.all_deliveries("failed")).deliveries == []
