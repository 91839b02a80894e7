"""The socket and the drain."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from flowise_dev_agent.api import create_worker_app
from flowise_dev_agent.api import server as api_server
from flowise_dev_agent.api.middleware import PlacesMiddleware
from flowise_dev_agent.api.server import Server, bind, url_of
from flowise_dev_agent.caller import ALL_SCOPES, Caller, acting_for
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.settings import ServerSettings, load_settings
from tests.unit.api.conftest import MakeApp
from tests.unit.api.service_double import EngineDouble


def server(host: str = "127.0.0.1", port: int = 0, key: str | None = None) -> ServerSettings:
    return ServerSettings(host=host, port=port, api_key=SecretStr(key) if key else None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - what is refused
def test_without_a_key_only_this_machine_is_served(host: str) -> None:
    with pytest.raises(ConfigurationError, match="AGENT_API_KEY") as caught:
        bind(server(host))
    assert "AGENT_API_KEY" in str(caught.value.hint)


def test_with_a_key_any_address_is_served() -> None:
    with bind(server("0.0.0.0", key="k")) as listener:  # noqa: S104
        assert url_of(listener).startswith("http://localhost:")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_needs_no_key(host: str) -> None:
    with bind(server(host)) as listener:
        assert url_of(listener) == f"http://localhost:{listener.getsockname()[1]}"


def test_a_taken_port_is_said_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"Port {port} .* is in use") as caught:
            bind(server(port=port))
    assert "--port" in str(caught.value.hint)


def test_an_unknown_host_is_said_in_a_sentence() -> None:
    with pytest.raises(ConfigurationError, match="cannot be resolved"):
        bind(server("no.such.host.invalid"))


async def test_p50_sigterm_ends_streams_and_waits_at_once(make_app: MakeApp, engine: EngineDouble) -> None:
    app = make_app()
    listener = bind(server())
    listener.listen()
    running = Server(app)
    serving = asyncio.create_task(running.serve(sockets=[listener]))
    async with httpx2.AsyncClient(base_url=url_of(listener)) as http:
        start = await http.post("/sessions?wait=0", json={"requirement": "x"})
        path = start.headers["location"]
        waiting = asyncio.create_task(http.post("/sessions?wait=60", json={"requirement": "x"}))
        async with http.stream("GET", f"{path}/stream") as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == "retry: 2000"
            await engine.service.until("wait")
            signal.raise_signal(signal.SIGTERM)
            assert [line async for line in lines if line] == []
        assert (await waiting).status_code == 202
    async with asyncio.timeout(5):
        await serving


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[socket.socket]:
    listener = bind(server())
    listener.listen()
    running = Server(app)
    task = asyncio.create_task(running.serve(sockets=[listener]))
    try:
        yield listener
    finally:
        running.stop()
        await task
        listener.close()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "])
async def test_a_request_that_is_never_finished_is_closed(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(api_server, "HEADER_SECS", 0.1)
    async with serving(make_app()) as listener:
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(sent)
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        writer.close()


#: Requests that are not finished: nothing sent, half a line, half of the headers.
HALF_SENT = (b"", b"GET /li", b"POST /sessions HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")


@asynccontextmanager
async def half_open(
    listener: socket.socket, count: int
) -> AsyncIterator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    try:
        for number in range(count):
            opened.append(await asyncio.open_connection(*listener.getsockname()))
            opened[-1][1].write(HALF_SENT[number % len(HALF_SENT)])
        yield opened
    finally:
        for _, writer in opened:
            writer.close()


async def test_900_half_open_requests_are_closed_and_others_answered_meanwhile(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "HEADER_SECS", 1.0)
    async with (
        serving(make_app()) as listener,
        httpx2.AsyncClient(base_url=url_of(listener)) as http,
        asyncio.timeout(60),
        half_open(listener, 900) as opened,
    ):
        for path in ("/live", "/health"):
            assert (await http.get(path)).status_code == 200
        assert [await reader.read() for reader, _ in opened] == [b""] * 900
        assert (await http.get("/live")).status_code == 200


async def test_more_half_open_requests_than_connections_are_allowed_leave_room_for_others(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No time limit helps here.
    monkeypatch.setattr(api_server, "HEADER_SECS", 3600.0)
    async with (
        serving(make_app(max_connections=100)) as listener,
        httpx2.AsyncClient(base_url=url_of(listener)) as http,
        asyncio.timeout(60),
        half_open(listener, 300) as opened,
    ):
        # The oldest go first, the newest half of what is allowed stays open.
        assert [await reader.read() for reader, _ in opened[:250]] == [b""] * 250
        assert (await http.get("/health")).status_code == 200
        reader, writer = opened[-1]
        writer.write(b"x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 4")


async def test_a_stream_outlives_the_time_for_headers(
    make_app: MakeApp, engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "HEADER_SECS", 0.05)
    async with serving(make_app()) as listener, httpx2.AsyncClient(base_url=url_of(listener)) as http:
        start = await http.post("/sessions?wait=0.3", json={"requirement": "x"})
        assert start.status_code == 202


async def test_headers_have_a_limit(make_app: MakeApp) -> None:
    async with serving(make_app()) as listener, httpx2.AsyncClient(base_url=url_of(listener)) as http:
        assert (await http.get("/live", headers={"X-Long": "x" * 20_000})).status_code == 200
        assert (await http.get("/live", headers={"X-Long": "x" * 80_000})).status_code in {400, 431}


async def test_beyond_the_most_connections_requests_are_refused_at_once(make_app: MakeApp) -> None:
    async with serving(make_app(max_connections=10)) as listener:
        idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        for _ in range(11):
            idle.append(await asyncio.open_connection(*listener.getsockname()))
            # Only its body is still to come.
            idle[-1][1].write(b"POST /sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        async with httpx2.AsyncClient(base_url=url_of(listener)) as http:
            assert (await http.get("/sessions")).status_code == 503
            assert (await http.get("/live")).status_code == 200
            assert (await http.get("/ready")).status_code == 200
            for _, writer in idle:
                writer.close()
                await writer.wait_closed()
            async with asyncio.timeout(10):
                while (await http.get("/sessions")).status_code != 200:
                    pass


async def test_one_key_takes_a_quarter_of_the_places_and_leaves_the_rest(make_app: MakeApp) -> None:
    waiting = b"POST /sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
    async with serving(make_app(max_connections=40)) as listener:
        held = [await asyncio.open_connection(*listener.getsockname()) for _ in range(10)]
        for _, writer in held:
            writer.write(waiting)
            await writer.drain()
        async with httpx2.AsyncClient(base_url=url_of(listener)) as http:
            refused = await http.get("/sessions")
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert (await http.get("/live")).status_code == 200
            held.pop()[1].close()
            async with asyncio.timeout(10):
                while (await http.get("/sessions")).status_code != 200:
                    pass
        for _, writer in held:
            writer.close()


async def test_the_places_of_a_key_an_owner_and_an_address_are_counted_apart() -> None:
    entered, end = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        entered.set()
        await end.wait()

    places = PlacesMiddleware(slow, most=8)

    async def ask(name: str, owner: str, address: str, path: str = "/sessions") -> int | None:
        told: list[Any] = []

        async def send(message: Any) -> None:
            told.append(message)

        scope = {"type": "http", "path": path, "method": "GET", "headers": [], "client": (address, 1)}
        with acting_for(Caller(name, ALL_SCOPES, owner=owner)):
            running = asyncio.ensure_future(places(scope, cast(Any, None), send))
        for _ in range(5):
            await asyncio.sleep(0)
        tasks.append(running)
        return told[0]["status"] if told else None

    tasks: list[asyncio.Future[None]] = []
    assert [await ask("a", "x", "1") for _ in range(3)] == [None, None, 429]
    assert [await ask(key, "x", "2") for key in "bcd"] == [None, None, 429]
    assert [await ask(key, key, "2") for key in "efg"] == [None, None, 429]
    assert await ask("z", "z", "3") is None
    assert await ask("a", "x", "1", "/ready") is None
    end.set()
    await asyncio.gather(*tasks)
    assert await ask("a", "x", "1") is None


async def test_the_port_of_a_worker_is_served_with_the_same_limits(engine: EngineDouble) -> None:
    settings = load_settings(server=ServerSettings(max_connections=10))
    app = create_worker_app(settings, cast(Any, engine))
    async with serving(app) as listener, httpx2.AsyncClient(base_url=url_of(listener)) as http:
        assert (await http.get("/live")).status_code == 200


async def test_a_server_that_is_told_to_stop_does_so_before_it_looks_again(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "_TICK_SECS", 3600.0)
    running = Server(make_app())
    serving = asyncio.create_task(running.main_loop())
    await asyncio.sleep(0)
    assert not serving.done()
    running.stop()
    async with asyncio.timeout(5):
        await serving
