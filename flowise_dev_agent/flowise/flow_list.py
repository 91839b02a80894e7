"""Keeps what is known of the flows of a server up to date, without reading all of them again.

Flowise lists chatflows with their whole text, last changed first. So what is new stands before what is known: reading
ends with the first page that ends in a flow which is as it was, if the number of flows says that none is missing and
none has gone.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow

_PAGE: Final = 50
#: 20 000 flows.
_MOST_PAGES: Final = 400
#: Flows changed at the same moment among which a gone one is looked for.
_LONGEST_RUN: Final = 10


class KnownFlows(Protocol):
    """The stored list of the flows of one server."""

    async def dates(self, ids: Sequence[str], /) -> Mapping[str, str]:
        """When these flows were changed, as far as they are known."""
        ...

    async def count(self) -> int:
        """Number of known flows."""
        ...

    async def order(self) -> Sequence[tuple[str, str]]:
        """Ids and dates of all known flows, last changed first."""
        ...

    async def keep(self, rows: Sequence[Chatflow], /) -> None:
        """Add these flows, or what they are now."""
        ...

    async def forget(self, ids: Sequence[str], /) -> None:
        """Remove flows that are gone."""
        ...


async def refresh(client: FlowiseClient, known: KnownFlows, *, quiet: bool = False) -> None:
    """Make `known` what the server has, up to 20 000 flows. Raises FlowiseError; what was read until then is kept.

    `quiet`: the last refresh, of a whole page, found nothing new. Then one look at the newest flow shows if something
    has changed since. Right after a change it would not: of two writes the earlier one may show later.
    """
    if quiet and await _is_as_known(client, known):
        return
    total = await _read(client, known, 1, to_the_end=False)
    count = await known.count()
    if count < total:
        # A first reading was cut off: what is missing was changed before all that is known.
        total = await _read(client, known, count // _PAGE + 1, to_the_end=True)
        count = await known.count()
    # Of flows changed at the same moment a new one may stand behind known ones.
    if count < total or (count > total and not await _forget_gone(client, known, total)):
        await _read_all(client, known)


async def _is_as_known(client: FlowiseClient, known: KnownFlows) -> bool:
    listed = await client.list_chatflows(1, 1)
    dates = await known.dates([row.id for row in listed.data])
    same = all(dates.get(row.id) == row.updated_date for row in listed.data)
    return same and await known.count() == min(listed.total, _MOST_PAGES * _PAGE)


async def _read(client: FlowiseClient, known: KnownFlows, first: int, *, to_the_end: bool) -> int:
    """Read pages until all that follows is known, or all; returns the number of the server's flows."""
    total = 0
    for page in range(first, _MOST_PAGES + 1):
        listed = await client.list_chatflows(page, _PAGE)
        total = min(listed.total, _MOST_PAGES * _PAGE)
        dates = await known.dates([row.id for row in listed.data])
        if changed := [row for row in listed.data if dates.get(row.id) != row.updated_date]:
            await known.keep(changed)
        last = listed.data[-1] if listed.data else None
        if last is None or page * _PAGE >= total or (not to_the_end and dates.get(last.id) == last.updated_date):
            break
    return total


async def _read_all(client: FlowiseClient, known: KnownFlows) -> None:
    seen: set[str] = set()
    before = {id_ for id_, _ in await known.order()}
    for page in range(1, _MOST_PAGES + 1):
        listed = await client.list_chatflows(page, _PAGE)
        dates = await known.dates([row.id for row in listed.data])
        seen |= {row.id for row in listed.data}
        if changed := [row for row in listed.data if dates.get(row.id) != row.updated_date]:
            await known.keep(changed)
        if page * _PAGE >= listed.total or not listed.data:
            break
    await known.forget(sorted(before - seen))


async def _forget_gone(client: FlowiseClient, known: KnownFlows, total: int) -> bool:
    """Find the flows that the server no longer has by looking where its order differs from the known one.

    Each takes as many looks at single flows as it takes to halve the list down to one. False when reading all pages is
    cheaper, or when the list changes meanwhile.
    """
    order = list(await known.order())
    if (len(order) - total) * total.bit_length() > total // _PAGE:
        return False
    while len(order) > total:
        low, high = 0, total
        while low < high:
            middle = (low + high) // 2
            found = await _at(client, middle, total)
            if found is None:
                return False
            if found.updated_date == order[middle][1]:
                low = middle + 1
            else:
                high = middle
        # The gone flow is the last of those changed at that moment, or one of them.
        run = [place for place in range(max(0, low - _LONGEST_RUN), low + 1) if order[place][1] == order[low][1]]
        if len(run) > _LONGEST_RUN:
            return False
        left = [await _at(client, place, total) for place in run[:-1]]
        gone = {order[place][0] for place in run} - {row.id for row in left if row}
        if len(gone) != 1:
            return False
        await known.forget(sorted(gone))
        order = [(id_, date) for id_, date in order if id_ not in gone]
    return True


async def _at(client: FlowiseClient, place: int, total: int) -> Chatflow | None:
    """The flow at a place of the list (from 0); None when its length has changed."""
    listed = await client.list_chatflows(place + 1, 1)
    return listed.data[0] if listed.data and listed.total == total else None
