"""Document stores of a server: list them, read their sources again."""

import asyncio
from typing import Final
from uuid import UUID
from weakref import WeakValueDictionary

from flowise_dev_agent.errors import FlowiseTimeoutError, InvalidInputError
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.document_stores import vectors_of
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.document_stores import read_stores, view_of
from flowise_dev_agent.persistence import AuditLog, Fact
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.document_stores import DocumentStoreList, RefreshedStore
from flowise_dev_agent.texts import counted, text

#: Seconds for one call, and for a whole refresh.
_CALL_SECS: Final = 300.0
_ALL_SECS: Final = 900.0
#: Locks of the stores that are being read, by server and id.
_turns: Final[WeakValueDictionary[tuple[str, UUID], asyncio.Lock]] = WeakValueDictionary()


async def document_stores(instances: Instances, instance: str | None) -> DocumentStoreList:
    """The document stores of a server. Raises FlowiseError, InvalidInputError for an unknown instance."""
    name = instance or instances.default_id
    return DocumentStoreList(instance=name, stores=await read_stores(instances.client(name)))


async def refresh_store(
    instances: Instances, audit_log: AuditLog, store_id: UUID, instance: str | None
) -> RefreshedStore:
    """Read every source of a store again and write the changes to its vector store. Safe to repeat.

    Flowise's own refresh is not used: it removes the vectors of all sources but one, or writes each twice. Concurrent
    refreshes of a store run one after the other, since they could write the same pieces twice.

    Raises:
        InvalidInputError: the vector store would hold every piece twice, since there is no record manager.
        FlowiseError: a source could not be read, or the rest could not be written; what was read stays read.
    """
    name = instance or instances.default_id
    client = instances.client(name)
    turn = _turns.setdefault((client.endpoint, store_id), asyncio.Lock())
    async with turn:
        return await _refreshed(client, audit_log, str(store_id), name)


async def _refreshed(client: FlowiseClient, audit_log: AuditLog, store_id: str, name: str) -> RefreshedStore:
    store = await client.get_document_store(store_id)
    if not view_of(store).can_remove:
        raise InvalidInputError(
            text("error.store_no_record_manager", store=masked(store.name)),
            hint=text("error.give_record_manager"),
        )
    read = added = 0
    try:
        async with asyncio.timeout(_ALL_SECS):
            for loader in store.loaders:
                await client.save_loader(store.id, loader.spec)
                await client.process_loader(store.id, loader.spec, timeout=_CALL_SECS)
                read += 1
            if (vectors := vectors_of(store)) is not None and store.loaders:
                added = await client.insert_vectors(store.id, vectors, timeout=_CALL_SECS)
    except TimeoutError:
        raise FlowiseTimeoutError(
            text("error.store_slow", seconds=f"{_ALL_SECS:g}"), hint=text("error.refresh_again")
        ) from None
    finally:
        # Also after a failure: sources that were read stay read.
        words = f"{store.name}: {read} of {len(store.loaders)} sources, {counted('pieces', added)} in the vector store"
        await audit_log.add(Fact("store.refresh", instance_id=name, words=words))
    return RefreshedStore(store=view_of(await client.get_document_store(store.id)), written=added)
