"""The network side of the HTTP clients against small servers of its own."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from flowise_dev_agent import sockets
from flowise_dev_agent.sockets import Connection, read_by_asyncio

#: A certificate for `hooks.test`, signed by itself.
TLS = Path(__file__).resolve().parents[1] / "fixtures" / "tls"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def serving(handle: Handler, **options: Any) -> AsyncGenerator[int]:
    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handled, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def client(**options: Any) -> AsyncGenerator[httpx2.AsyncClient]:
    gather_secs = options.pop("gather_secs", 0.0)
    async with read_by_asyncio(httpx2.AsyncClient(trust_env=False, **options), gather_secs=gather_secs) as http:
        yield http


async def request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), b":0")
    return await reader.readexactly(int(length.split(b":")[1]))


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        body = await request(reader)
        writer.write(HEAD + chunk(body or b"nothing") + chunk(b""))
        await writer.drain()


async def test_requests_share_a_connection_and_large_bodies_go_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Connection] = []
    monkeypatch.setattr(sockets, "Connection", lambda secs: made.append(Connection(secs)) or made[-1])
    body = bytes(range(256)) * 20_000
    async with serving(echo) as port, client() as http:
        for _ in range(3):
            response = await http.post(f"http://127.0.0.1:{port}/", content=body)
            assert response.content == body
        assert (await http.get(f"http://localhost:{port}/")).text == "nothing"
    assert len(made) == 2


async def test_tls_holds_the_certificate_against_the_name() -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    trusted = ssl.create_default_context(cafile=TLS / "certificate.pem")
    async with serving(echo, ssl=server) as port, client(verify=trusted) as http:
        answer = await http.get(f"https://127.0.0.1:{port}/", extensions={"sni_hostname": "hooks.test"})
        assert answer.text == "nothing"
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await http.get(f"https://localhost:{port}/")


async def test_each_wait_has_its_own_limit() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await request(reader)
        await reader.read()

    async def deaf(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.Event().wait()

    async with serving(silent) as port, client(timeout=httpx2.Timeout(5, read=0.05)) as http:
        with pytest.raises(httpx2.ReadTimeout):
            await http.get(f"http://127.0.0.1:{port}/")
    async with serving(deaf, limit=1024) as port, client(timeout=httpx2.Timeout(5, write=0.05)) as http:
        with pytest.raises(httpx2.WriteTimeout):
            await http.post(f"http://127.0.0.1:{port}/", content=bytes(64 * 2**20))


async def test_a_server_that_hangs_up_is_an_error_and_its_connection_is_not_used_again() -> None:
    connections = 0

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        body = await request(reader)
        if body != b"hang up":
            writer.write(HEAD + chunk(b"ok") + chunk(b""))

    async with serving(once) as port, client() as http:
        for _ in range(2):
            assert (await http.get(f"http://127.0.0.1:{port}/")).text == "ok"
            await asyncio.sleep(0.05)
        assert connections == 2
        with pytest.raises(httpx2.RemoteProtocolError):
            await http.post(f"http://127.0.0.1:{port}/", content=b"hang up")
    with pytest.raises(httpx2.ConnectError):
        async with client() as http:
            await http.get(f"http://127.0.0.1:{port}/")


async def test_a_trickle_is_read_in_bundles_and_the_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[bytes] = []
    read = Connection.read

    async def noted(self: Connection, max_bytes: int, timeout: float | None) -> bytes:  # noqa: ASYNC109
        reads.append(await read(self, max_bytes, timeout))
        return reads[-1]

    monkeypatch.setattr(Connection, "read", noted)
    monkeypatch.setattr(sockets, "_SHARE", 1.0)
    sent = [b"%d " % number for number in range(20)]

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(HEAD)
        for part in sent:
            await asyncio.sleep(0.01)
            writer.write(chunk(part))
        writer.write(chunk(b""))

    async with serving(trickle) as port, client(gather_secs=5) as http:
        async with asyncio.timeout(4):
            assert (await http.get(f"http://127.0.0.1:{port}/")).content == b"".join(sent)
    assert len(reads) < len(sent)


async def test_the_next_address_is_tried_beside_one_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_NEXT_ADDRESS_SECS", 0.01)
    connect, tried = sockets.__dict__["_connect"], list[str]()

    async def one_is_silent(family: int, address: Any, local_address: str | None) -> socket.socket:
        tried.append(address[0])
        if family == socket.AF_INET6:
            await asyncio.Event().wait()
        return await connect(family, address, local_address)

    async with serving(echo) as port:

        async def found(*_: Any, **__: Any) -> list[Any]:
            six = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", (f"::{n}", port, 0, 0)) for n in (1, 2)]
            return [*six, (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

        monkeypatch.setattr(sockets, "_connect", one_is_silent)
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
        async with client() as http:
            assert (await http.get(f"http://both.test:{port}/")).text == "nothing"
    assert tried == ["::1", "127.0.0.1"]


async def test_a_name_without_an_address_and_a_silent_one_are_connect_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    async def silent(*_: Any) -> socket.socket:
        await asyncio.Event().wait()
        raise AssertionError

    async with client(timeout=httpx2.Timeout(5, connect=0.05)) as http:
        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
            with pytest.raises(httpx2.ConnectError, match="not known"):
                await http.get("http://nobody.test/")
        monkeypatch.setattr(sockets, "_connect", silent)
        with pytest.raises(httpx2.ConnectTimeout):
            await http.get("http://127.0.0.1:9/")


def test_it_is_the_same_with_the_loop_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    uvloop = pytest.importorskip("uvloop")
    uvloop.run(test_tls_holds_the_certificate_against_the_name())
    uvloop.run(test_each_wait_has_its_own_limit())
    uvloop.run(test_a_server_that_hangs_up_is_an_error_and_its_connection_is_not_used_again())
    uvloop.run(test_requests_share_a_connection_and_large_bodies_go_both_ways(monkeypatch))
    uvloop.run(test_a_trickle_is_read_in_bundles_and_the_end_is_not_waited_for(monkeypatch))
