"""Names of what an instance has, for the model that plans."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.knowledge.document_stores import read_stores
from flowise_dev_agent.knowledge.model_ends import listed_models
from flowise_dev_agent.planning.requests import ServerNames
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import clean_text, shortened

#: Of each list, which are read at the same time. A plan without the names is still one.
READ_SECS: Final = 5.0
_NAME_CHARS: Final = 80
T = TypeVar("T")


async def server_names(
    flowise: FlowiseClient, with_models: Sequence[str] = (), *, read_secs: float = READ_SECS
) -> ServerNames:
    """Variables by name, custom tools and document stores by name and id, and the models of these node types. None
    stands for what cannot be read: the API key may lack the permission.
    """
    models, variables, tools, stores = await asyncio.gather(
        listed_models(with_models, flowise),
        _read(flowise.list_variables(), read_secs),
        _read(flowise.list_tools(), read_secs),
        _read(read_stores(flowise), read_secs),
    )
    return ServerNames(
        variables=_shown(variables, lambda one: str(one.get("name") or "")),
        tools=None if tools is None else {str(one.get("id")): _clean(one.get("name") or "") for one in tools},
        stores=_shown(stores, lambda one: f"{one.name} = {one.id}"),
        models={name: models[name] for name in with_models if models.get(name)},
    )


async def _read(listing: Awaitable[Sequence[T]], secs: float) -> Sequence[T] | None:
    try:
        async with asyncio.timeout(secs):
            return await listing
    except (FlowiseError, TimeoutError):
        return None


def _shown(listed: Sequence[T] | None, name_of: Callable[[T], str]) -> tuple[str, ...] | None:
    if listed is None:
        return None
    return tuple(_clean(name) for one in listed if (name := name_of(one)))


def _clean(name: str) -> str:
    return clean_text(shortened(masked(" ".join(name.split())), _NAME_CHARS))
