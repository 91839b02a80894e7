"""The state of the Flowise servers, for the page and the client."""

import asyncio
from types import SimpleNamespace
from typing import Any, NoReturn, cast

from flowise_dev_agent.errors import FlowiseUnreachableError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.ops.instances import survey


class Away:
    """A server that refuses the call with a key and does not answer any other."""

    async def list_chatflows(self, **_: Any) -> NoReturn:
        await asyncio.sleep(0)
        raise FlowiseUnreachableError("away")

    async def version(self) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_server_that_is_away_leaves_no_call_behind() -> None:
    instances = SimpleNamespace(
        ids=("away",), default_id="away", endpoint=lambda _: "http://away", client=lambda _: Away()
    )
    before = asyncio.all_tasks()
    (view,) = (await survey(cast("Instances", instances))).instances
    assert (view.state, view.error) == ("unavailable", "away")
    assert asyncio.all_tasks() == before
