"""Names of what an instance has, for the model that plans."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Final, TypeVar

from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.knowledge.document_stores import read_stores
from flowise_dev_agent.planning.requests import ServerNames
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import clean_text, shortened

#: Of each list, which are read at the same time. A plan without the names is still one.
READ_SECS: Final = 5.0
_NAME_CHARS: Final = 80
T = TypeVar("T")


async def server_names(flowise: FlowiseClient, *, read_secs: float = READ_SECS) -> ServerNames:
    """Variables by name, custom tools and document stores by name and id. What cannot be read is left out: the API key
    may lack the permission.
    """
    variables, tools, stores = await asyncio.gather(
        _read(flowise.list_variables(), read_secs),
        _read(flowise.list_tools(), read_secs),
        _read(read_stores(flowise), read_secs),
    )
    return ServerNames(
        variables=_shown(str(one.get("name") or "") for one in variables),
        tools=_shown(f"{one.get('name', '')} = {one.get('id', '')}" for one in tools),
        stores=_shown(f"{one.name} = {one.id}" for one in stores),
    )


async def _read(listing: Awaitable[Sequence[T]], secs: float) -> Sequence[T]:
    try:
        async with asyncio.timeout(secs):
            return await listing
    except (FlowiseError, TimeoutError):
        return ()


def _shown(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(clean_text(shortened(masked(" ".join(name.split())), _NAME_CHARS)) for name in names if name)
