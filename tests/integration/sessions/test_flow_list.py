"""The flows of a server page by page, each with the newest session on it, on a real Postgres."""

from collections.abc import AsyncIterator

import pytest

from flowise_dev_agent.caller import ALL_SCOPES, Caller, acting_for
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.models import Chatflow, ChatflowPage
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.ops import Runtime
from tests.integration.sessions.test_flow_writes import apply, edited
from tests.writing_world import BOT, Servers, writing_service


@pytest.fixture
def servers(catalogue: NodeStore) -> Servers:
    servers = Servers(catalogue)
    bot = servers.dev.flows[BOT]
    for number in range(230):
        id_ = f"00000000-0000-4000-8000-{number:012d}"
        servers.dev.flows[id_] = bot.model_copy(update={"id": id_, "name": f"Flow {number:03d}"})
    return servers


@pytest.fixture
async def runtime(database_dsn: str, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    async def rows(**_: object) -> AsyncIterator[Chatflow]:
        for row in servers.dev.flows.values():
            yield row

    async def page(page: int = 1, limit: int = 20) -> ChatflowPage:
        every = list(servers.dev.flows.values())
        return ChatflowPage(data=every[(page - 1) * limit : page * limit], total=len(every))

    monkeypatch.setattr(servers.dev, "iter_chatflows", rows, raising=False)
    monkeypatch.setattr(servers.dev, "list_chatflows", page, raising=False)
    async with writing_service(database_dsn, servers) as runtime:
        yield runtime


async def test_every_flow_of_a_server_is_on_one_page(runtime: Runtime) -> None:
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = await runtime.flows.find(None, "flow", limit=100, cursor=cursor)
        names += [flow.name for flow in page.flows]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert page.total == len(names) == len(set(names)) == 230
    with pytest.raises(InvalidInputError):
        await runtime.flows.find(None, "", limit=5, cursor="mine")


async def test_a_flow_comes_with_the_newest_session_on_it(runtime: Runtime) -> None:
    await apply(runtime)
    done = await apply(
        runtime, ops=[{"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "topP", "value": 1}]
    )
    assert done.session_id is not None
    await runtime.service.rename(done.session_id, "Look further")
    (bot,) = (await runtime.flows.find(None, "bot", limit=5)).flows
    assert bot.last_session is not None
    assert (bot.last_session.thread_id, bot.last_session.session_name) == (done.session_id, "Look further")
    assert (bot.last_session.status, bot.last_session.outcome) == ("completed", "accepted")
    assert bot.picture is None
    (bot,) = (await runtime.flows.find(None, "bot", limit=5, pictures=True)).flows
    assert bot.picture is not None
    assert len(bot.picture.boxes) == bot.nodes > 1
    assert all(line.source != line.target for line in bot.picture.lines)
    assert "Chat Models" in {box.category for box in bot.picture.boxes}
    (other,) = (await runtime.flows.find(None, "flow 007", limit=5)).flows
    assert other.last_session is None


async def test_a_flow_says_who_changed_it_last_until_somebody_does_in_flowise(
    runtime: Runtime, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowise_dev_agent.flows.search._KEPT_SECS", 0.0)

    async def changed_by(words: str) -> str | None:
        (flow,) = (await runtime.flows.find(None, words, limit=5)).flows
        return flow.changed_by

    assert await changed_by("bot") is None
    with acting_for(Caller("Ada", ALL_SCOPES)):
        await apply(runtime)
    assert await changed_by("bot") == "Ada"
    assert await changed_by("flow 007") is None
    edited(servers, BOT)
    assert await changed_by("bot") is None
