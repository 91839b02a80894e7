"""What is known of each flow of a server, without reading all of them again.

Flowise lists chatflows with their whole text, last changed first. So what is new stands before what is known: reading
ends with the first page that ends in a flow which is as it was, if the number of flows says that none has gone.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow

T = TypeVar("T")

_PAGE: Final = 50
#: After it everything is read again: a database that was put back may have other flows of the same number.
_LONGEST_SECS: Final = 3_600.0


class FlowList(Generic[T]):
    """What `make` takes from each of the `most` flows that were changed last; the texts are not kept."""

    def __init__(
        self, make: Callable[[Chatflow], T], most: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._make = make
        self._most = most
        self._clock = clock
        self._lock = asyncio.Lock()
        #: By id, last changed first: when it was changed, and what was taken from it.
        self._known: dict[str, tuple[str, T]] = {}
        self._total = 0
        self._read_at = float("-inf")

    async def read(self, client: FlowiseClient) -> Sequence[T]:
        """All flows as they are now, last changed first. Raises FlowiseError."""
        async with self._lock:
            if time.monotonic() - self._read_at > _LONGEST_SECS or not await self._read_new(client):
                await self._read_all(client)
            return [made for _, made in self._known.values()]

    async def _read_new(self, client: FlowiseClient) -> bool:
        """Read what has changed; False when that does not explain the number of flows."""
        found: dict[str, tuple[str, T]] = {}
        for page in range(1, self._most // _PAGE + 1):
            listed = await client.list_chatflows(page, _PAGE)
            for row in listed.data:
                found[row.id] = self._taken(row)
            last = listed.data[-1] if listed.data else None
            if last is None or self._known.get(last.id, ("", None))[0] == last.updated_date:
                # A flow that is not known is new, or was changed too long ago to be kept.
                unknown = sum(id_ not in self._known for id_ in found)
                fewest = self._total if self._total > self._most else self._total + unknown
                if not fewest <= listed.total <= self._total + unknown:
                    return False
                self._keep(
                    {**found, **{id_: kept for id_, kept in self._known.items() if id_ not in found}}, listed.total
                )
                return True
        return False

    async def _read_all(self, client: FlowiseClient) -> None:
        found: dict[str, tuple[str, T]] = {}
        total = 0
        for page in range(1, self._most // _PAGE + 1):
            listed = await client.list_chatflows(page, _PAGE)
            total = listed.total
            for row in listed.data:
                found.setdefault(row.id, self._taken(row))
            if page * _PAGE >= total or not listed.data:
                break
        self._keep(found, total)
        self._read_at = time.monotonic()

    def _taken(self, row: Chatflow) -> tuple[str, T]:
        known = self._known.get(row.id)
        return known if known and known[0] == row.updated_date else (row.updated_date, self._make(row))

    def _keep(self, found: dict[str, tuple[str, T]], total: int) -> None:
        self._known = dict(list(found.items())[: self._most])
        self._total = total
