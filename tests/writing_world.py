"""A service on a real Postgres whose Flowise servers are doubles in memory: `dev` with one flow, and `prod`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.patch import GraphIR, compile_ops
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.timings import Timings
from tests.fixtures.golden_flows import NOWHERE, chat
from tests.runtime_world import FAST, World, make_agent
from tests.unit.publish.fakes import FakeServer

#: The flow on `dev`.
BOT = "aaaaaaaa-0000-4000-8000-000000000001"
DEV_KEY, PROD_KEY = NOWHERE["openAIApi"], "33333333-3333-4333-8333-333333333333"


class Servers:
    """Stands for `Instances`."""

    default_id = "dev"
    ids = ("dev", "prod")

    def __init__(self, catalogue: NodeStore) -> None:
        self.addresses = {id_: f"http://{id_}.test" for id_ in self.ids}
        self.dev = FakeServer(catalogue, DEV_KEY, self.endpoint("dev"))
        self.prod = FakeServer(catalogue, PROD_KEY, self.endpoint("prod"))
        made = compile_ops(GraphIR.empty(), chat(NOWHERE), catalogue.schemas)
        self.dev.flows[BOT] = Chatflow(
            id=BOT, name="Bot", type="CHATFLOW", flow_data=made.flow_data, updated_date="2026-01-01T00:00:00.000Z"
        )

    def client(self, id_: str | None = None) -> FakeServer:
        if id_ not in {None, *self.ids}:
            raise InvalidInputError(f"There is no Flowise instance called '{id_}'.")
        return self.prod if id_ == "prod" else self.dev

    def endpoint(self, id_: str | None = None) -> str:
        return self.addresses[id_ or self.default_id]

    def is_at(self, id_: str, endpoint: str | None) -> bool:
        return endpoint in {None, self.endpoint(id_)}

    client_at: Any = Instances.client_at
    resolve: Any = Instances.resolve


@asynccontextmanager
async def writing_service(
    dsn: str, servers: Servers, *, worker: bool = True, timings: Timings = FAST, **options: Any
) -> AsyncGenerator[Runtime]:
    """The runtime of a service over `servers`."""
    instances: Any = servers
    agent = replace(make_agent(World(dsn)), instances=instances)
    database = Database(dsn, min_size=1, max_size=8, connect_timeout=2)
    async with Runtime.assemble(database, dsn, agent, worker=worker, timings=timings, **options) as runtime:
        yield runtime
