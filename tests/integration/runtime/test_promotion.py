"""Promotions and rollbacks as rows: what is kept of them, and what of those that fail."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from flowise_dev_agent.errors import FlowiseServerError, InvalidInputError
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.compile.compiler import compile_ops
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.persistence import Blobs, Database, Events, OutOfBandWrites, Versions, WriteIntents
from flowise_dev_agent.runtime.flows.promotion import Promotions
from tests.fixtures.golden_flows import NOWHERE, chat
from tests.unit.publish.fakes import FakeServer

PROD_KEY = "33333333-3333-4333-8333-333333333333"


class Servers:
    """`dev` with one flow, and `prod`."""

    default_id = "dev"

    def __init__(self, catalogue: NodeStore) -> None:
        self.dev = FakeServer(catalogue, NOWHERE["openAIApi"])
        self.prod = FakeServer(catalogue, PROD_KEY)
        made = compile_ops(GraphIR.empty(), chat(NOWHERE), catalogue.schemas)
        self.dev.flows["f1"] = Chatflow(id="f1", name="Bot", type="CHATFLOW", flow_data=made.flow_data)

    def client(self, id_: str | None = None) -> FakeServer:
        return self.prod if id_ == "prod" else self.dev


@pytest.fixture
def servers(catalogue: NodeStore) -> Servers:
    return Servers(catalogue)


@pytest.fixture
def promotions(database: Database, servers: Servers) -> Promotions:
    instances: Any = servers
    return Promotions(
        out_of_band=OutOfBandWrites(database),
        versions=Versions(database, Blobs(database)),
        intents=WriteIntents(database),
        instances=instances,
    )


async def sessions(database: Database) -> list[Mapping[str, Any]]:
    return await database.fetch_all("SELECT * FROM sessions ORDER BY created_at", ())


async def test_p11_a_promotion_over_a_flow_keeps_what_was_there(
    database: Database, servers: Servers, promotions: Promotions
) -> None:
    first = await promotions.promote("f1", source=None, target="prod")
    there = servers.prod.flows[first.chatflow_id]
    servers.prod.flows[there.id] = there.model_copy(update={"flow_data": there.flow_data.replace("gpt-", "old-")})
    second = await promotions.promote("f1", source="dev", target="prod", target_chatflow_id=there.id)
    assert (second.created, servers.prod.flows[there.id].flow_data) == (False, there.flow_data)
    before, after = await Versions(database, Blobs(database)).of_session(second.session_id)
    assert (before.reason, after.reason) == ("before_promotion", "promotion")
    assert "old-" in await Versions(database, Blobs(database)).text(before)
    assert [(row["status"], row["outcome"], row["instance_id"]) for row in await sessions(database)] == [
        ("completed", "accepted", "prod"),
        ("completed", "accepted", "prod"),
    ]


async def test_p09_a_promotion_whose_write_fails_is_cancelled_with_the_reason(
    database: Database, servers: Servers, promotions: Promotions
) -> None:
    servers.prod.before["create"] = servers.prod.lose(FlowiseServerError)
    with pytest.raises(FlowiseServerError):
        await promotions.promote("f1", source=None, target="prod")
    (row,) = await sessions(database)
    assert (row["status"], row["outcome"], row["chatflow_id"]) == ("cancelled", "cancelled", None)
    events = await Events(database).read(row["id"], after=0)
    assert [event.type for event in events] == ["error", "done"]
    assert servers.prod.flows == {}


async def test_a_promotion_that_is_refused_leaves_no_session(
    database: Database, servers: Servers, promotions: Promotions
) -> None:
    broken = servers.dev.flows["f1"]
    servers.dev.flows["f1"] = broken.model_copy(update={"flow_data": broken.flow_data.replace("chatOpenAI", "noNode")})
    with pytest.raises(InvalidInputError, match="The flow was not written"):
        await promotions.promote("f1", source=None, target="prod")
    assert await sessions(database) == []
    assert servers.prod.calls == []


@pytest.mark.parametrize(
    ("status", "outcome", "expected"),
    [("completed", "accepted", "rolled_back"), ("cancelled", "cancelled", "cancelled")],
)
async def test_a_rollback_is_part_of_the_sessions_story(
    database: Database, status: str, outcome: str, expected: str
) -> None:
    session_id = uuid4()
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO sessions (id, requirement, request, instance_id, status, outcome)"
            " VALUES (%s, 'r', '{}', 'dev', %s, %s)",
            (session_id, status, outcome),
        )
    data = {"version": "v1.0"}
    await OutOfBandWrites(database).rolled_back(
        session_id, outcome="rolled_back", summary="Put 'Bot' back to v1.0", data=data
    )
    (row,) = await sessions(database)
    assert (row["status"], row["outcome"]) == (status, expected)
    (event,) = await Events(database).read(session_id, after=0)
    assert (event.type, event.summary, event.data) == ("write", "Put 'Bot' back to v1.0", data)
