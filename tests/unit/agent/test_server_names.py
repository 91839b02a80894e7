"""Names of the server for a planner: what can be read in time, without secrets."""

import asyncio
from typing import Any

from flowise_dev_agent.agent.server_names import server_names
from flowise_dev_agent.errors import FlowiseAuthError, FlowiseError
from flowise_dev_agent.flowise.document_stores import DocumentStore
from flowise_dev_agent.planning.requests import ServerNames

STORE = DocumentStore.model_validate({"id": "s-1", "name": "Policies", "status": "UPSERTED"})


class Server:
    """A Flowise that answers, refuses or keeps silent, list by list."""

    def __init__(self, **lists: Any) -> None:
        self._lists = lists

    async def list_variables(self) -> Any:
        return await self._listed("variables")

    async def list_tools(self) -> Any:
        return await self._listed("tools")

    async def list_document_stores(self) -> Any:
        return await self._listed("stores")

    async def node_options(self, name: str, method: str) -> Any:
        return [{"name": f"{name}-1"}] if (name, method) == ("chatAnthropic", "listModels") else []

    async def _listed(self, name: str) -> Any:
        found = self._lists.get(name, [])
        if isinstance(found, FlowiseError):
            raise found
        if found is None:
            await asyncio.Event().wait()
        return found


async def names_of(**lists: Any) -> ServerNames:
    server: Any = Server(**lists)
    return await server_names(server, read_secs=0.05)


async def test_names_of_all_kinds_are_read() -> None:
    names = await names_of(
        variables=[{"name": "shop", "value": "secret value"}], tools=[{"id": "t-1", "name": "Postage"}], stores=[STORE]
    )
    assert names == ServerNames(variables=("shop",), tools={"t-1": "Postage"}, stores=("Policies = s-1",))


async def test_a_list_that_is_refused_or_late_leaves_the_others() -> None:
    names = await names_of(variables=[{"name": "shop"}], tools=FlowiseAuthError("No."), stores=None)
    assert names == ServerNames(variables=("shop",))
    assert await names_of() == ServerNames(variables=(), tools={}, stores=())


async def test_the_models_of_the_types_that_matter_are_read() -> None:
    server: Any = Server()
    names = await server_names(server, ["chatAnthropic", "groqChat"])
    assert names.models == {"chatAnthropic": ("chatAnthropic-1",)}


async def test_a_key_in_a_name_is_masked() -> None:
    key = "sk-proj-" + "a1B2" * 8
    names = await names_of(tools=[{"id": "t-1", "name": f"Post {key}"}])
    assert names.tools
    assert key not in names.tools["t-1"]
