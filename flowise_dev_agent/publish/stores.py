"""Document stores that a session makes: each step once, whatever is lost on the way.

A store is found again by the session's tag in its description. Its sources have ids of ours and may be read again. To
embed them is not safe to repeat (every piece would be there twice), so a call with an unknown outcome is waited for,
and one that failed is followed by another into a collection of its own.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from flowise_dev_agent.errors import FlowiseNotFoundError, FlowiseServerError, WriteFailedError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.document_stores import (
    DocumentStore,
    LoaderSpec,
    StoreRow,
    VectorSpec,
    collection_of,
    vectors_like,
)
from flowise_dev_agent.flowise.flow_tags import store_tag
from flowise_dev_agent.publish.outcomes import stated
from flowise_dev_agent.publish.steps import WriteSteps

#: For one source, and for all embeddings of a store.
_READ_SECS: Final = 300.0
_EMBED_SECS: Final = 600.0
#: How long a store that is being embedded is waited for after a lost answer, and how often it is looked at.
_WAIT_SECS: Final = 120.0
_LOOK_SECS: Final = 2.0
#: Flowise's own errors; those of a proxy in front of it say nothing about the end.
_FAILED: Final = 500
#: Calls to embed one store.
_MOST_TRIES: Final = 3

Progress = Callable[[str], None]


@dataclass(frozen=True)
class StoreSpec:
    """A store to be. `like` is the id of the store whose vector store and embeddings it uses; without it the pieces are
    not embedded. `probe` is a text that a search must find something for."""

    name: str
    about: str
    loaders: Sequence[LoaderSpec] = field(repr=False)
    like: str | None = None
    probe: str = field(default="", repr=False)

    @property
    def sha256(self) -> str:
        """Of everything that makes it another store."""
        parts = [self.name, self.like or "", *(loader.model_dump_json() for loader in self.loaders)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class MadeStore:
    """A store that is there. `embedded` counts the pieces in its vector store, None without one."""

    id: str
    name: str
    chunks: int
    embedded: int | None = None


@dataclass(frozen=True)
class _Work:
    """What a store shows of a call: the pieces once it is done, and whether Flowise may still be at it."""

    done: int | None
    busy: bool


class StoreSteps(WriteSteps):
    """Making, taking and removing document stores."""

    async def make_store(self, spec: StoreSpec, progress: Progress) -> MadeStore:
        """Create, fill and embed a store, or go on where an earlier try ended.

        Raises:
            FlowiseError: the server refused, or the outcome is unknown.
            WriteFailedError: a source holds no text, or the vector store finds nothing of it.
        """
        tag = store_tag(str(self._session_id), spec.sha256[:12])
        store_id = await self._create_store(spec, tag)
        progress(f"Document store '{spec.name}': created")
        chunks = 0
        for number, loader in enumerate(spec.loaders, start=1):
            chunks += await self._fill_store(spec, store_id, loader, tag)
            read = f"{number} of {len(spec.loaders)} files read, {pieces(chunks)}"
            progress(f"Document store '{spec.name}': {read}")
        if spec.like is None:
            return MadeStore(store_id, spec.name, chunks)
        embedded = await self._embed_store(spec, store_id, tag)
        if not await self._client.query_document_store(store_id, spec.probe or spec.name):
            raise WriteFailedError(
                f"The vector store took {pieces(embedded)} of the document store '{spec.name}' and finds nothing.",
                hint="Look at the store in Flowise; another vector store may be needed.",
                details={"store_id": store_id},
            )
        progress(f"Document store '{spec.name}': {pieces(embedded)} embedded, and found by a search")
        return MadeStore(store_id, spec.name, chunks, embedded)

    async def upsert(self, chatflow_id: str, node_id: str, sha256: str) -> int | None:
        """Write the documents of a flow's vector store node there, once for what `sha256` stands for: how many pieces
        were added. None when that was done before.

        Raises:
            FlowiseError: the server refused, or the outcome is unknown.
            WriteFailedError: Flowise could not do it.
        """
        before = len(await self._client.upserts(chatflow_id))
        intent = await self._open("upsert", iteration=0, sha256=sha256, name=f"{chatflow_id}@{before}")
        if intent.status == "done":
            return None
        flow, _, count = (intent.name or "").partition("@")

        async def landed() -> int | None:
            until = time.monotonic() + _WAIT_SECS
            while len(added := await self._client.upserts(flow)) <= int(count):
                if time.monotonic() > until:
                    return None
                await asyncio.sleep(_LOOK_SECS)
            return added[int(count)]

        async def send() -> int:
            try:
                return await self._client.upsert_vectors(chatflow_id, node_id, timeout=_EMBED_SECS)
            except FlowiseServerError as error:
                if error.details.get("status") != _FAILED:
                    raise
                await self._intents.finish(self._lease, intent.key, status="failed", result={"node_id": node_id})
                said = error.details.get("flowise_message")
                raise WriteFailedError(f"The vector store {node_id} could not be filled: {said}") from error

        with stated(intent) as attempt:
            added = None if intent.is_new else await landed()
            if added is None:
                added, _ = await self._send(intent, attempt, send, landed=landed)
            attempt.written = "yes"
            result = {"chatflow_id": chatflow_id, "node_id": node_id, "added": added}
            await self._intents.finish(self._lease, intent.key, status="done", result=result)
        return added

    async def own_stores(self) -> dict[str, str]:
        """The stores that this session has made and not deleted, name -> id: those of a failed try as well."""
        intents = await self._intents.list_for(self._session_id)
        deleted = {item.target_id for item in intents if item.op == "store_delete" and item.status == "done"}
        made = [item for item in intents if item.op == "store_create" and item.result and item.status == "done"]
        ids = {item.name or "": str((item.result or {})["store_id"]) for item in made}
        return {name: id_ for name, id_ in ids.items() if id_ not in deleted}

    async def take_store(self, store_id: str) -> None:
        """The store is the person's from now on: its description loses the tag. Safe to repeat; one that somebody
        has deleted meanwhile is let go."""
        intent = await self._open("store_take", iteration=0, target_id=store_id)
        if intent.status == "done":
            return
        with suppress(FlowiseNotFoundError), stated(intent):
            store = await self._client.get_document_store(store_id)
            described = store.description or ""
            plain = re.sub(rf"\s*\[{re.escape(store_tag(str(self._session_id)))}\w*\]", "", described)
            if plain != described:
                await self._client.describe_document_store(store_id, plain)
        await self._intents.finish(self._lease, intent.key, status="done", result={"store_id": store_id})

    async def delete_store(self, store_id: str) -> str | None:
        """Delete a store that this session made; says what it leaves behind, if anything.

        Raises:
            WriteFailedError: it no longer carries the tag, so it is somebody's.
        """
        intent = await self._open("store_delete", iteration=0, target_id=store_id)
        if intent.status == "done":
            return (intent.result or {}).get("left")
        left: str | None = None
        with stated(intent) as attempt:
            try:
                store = await self._client.get_document_store(store_id)
            except FlowiseNotFoundError:
                pass
            else:
                if store_tag(str(self._session_id)) not in (store.description or ""):
                    raise WriteFailedError(
                        f"The document store '{store.name}' was not deleted: its description no longer has this "
                        "session's tag, so it may be in use.",
                        hint="Delete it in Flowise if it is not needed.",
                        details={"store_id": store_id},
                    )
                left = _left_behind(store)

                async def landed() -> bool | None:
                    return True if await self._is_gone(store_id) else None

                async def delete() -> bool:
                    await self._client.delete_document_store(store_id)
                    return True

                await self._send(intent, attempt, delete, landed=landed)
            result = {"store_id": store_id, "left": left}
            await self._intents.finish(self._lease, intent.key, status="done", result=result)
        return left

    async def _create_store(self, spec: StoreSpec, tag: str) -> str:
        intent = await self._open("store_create", iteration=0, sha256=spec.sha256, tag=tag, name=spec.name)
        if intent.status == "done" and intent.result:
            return str(intent.result["store_id"])

        async def create() -> StoreRow:
            return await self._client.create_document_store(spec.name, f"{spec.about} [{tag}]")

        async def landed() -> StoreRow | None:
            return next(iter(await self._tagged_stores(tag)), None)

        with stated(intent) as attempt:
            found = None if intent.is_new else await landed()
            if found is None:
                found, _ = await self._send(intent, attempt, create, landed=landed)
                if not intent.is_new:
                    # The call of a lost worker may have landed in between.
                    oldest, *younger = await self._tagged_stores(tag) or [found]
                    for twin in younger:
                        await self._client.delete_document_store(twin.id)
                    found = oldest
            attempt.written = "yes"
            await self._intents.finish(self._lease, intent.key, status="done", result={"store_id": found.id})
        return found.id

    async def _fill_store(self, spec: StoreSpec, store_id: str, loader: LoaderSpec, tag: str) -> int:
        sha256 = hashlib.sha256(loader.model_dump_json().encode()).hexdigest()
        intent = await self._open("store_fill", iteration=0, target_id=store_id, sha256=sha256, tag=tag, name=loader.id)
        if intent.status == "done" and intent.result:
            return int(intent.result["chunks"])
        with stated(intent) as attempt:
            attempt.written = "unknown"
            # Two calls that read one source at the same time would leave its pieces twice.
            chunks = None if intent.is_new else await self._finished(store_id, lambda store: _read(store, loader.id))
            if chunks is None:
                await self._client.save_loader(store_id, loader)
                chunks = await self._client.process_loader(store_id, loader, timeout=_READ_SECS)
            result = {"store_id": store_id, "chunks": chunks}
            if not chunks:
                await self._intents.finish(self._lease, intent.key, status="failed", result=result)
                raise WriteFailedError(
                    f"Flowise found no text in a file of the document store '{spec.name}'.",
                    hint="A scanned file needs text recognition first.",
                    details=result,
                )
            await self._intents.finish(self._lease, intent.key, status="done", result=result)
        return chunks

    async def _embed_store(self, spec: StoreSpec, store_id: str, tag: str) -> int:
        tried = [
            item
            for item in await self._intents.list_for(self._session_id)
            if (item.op, item.target_id) == ("store_embed", store_id)
        ]
        for item in tried:
            if item.status == "done" and item.result:
                return int(item.result["embedded"])
            if item.status == "open" and (count := await self._finished(store_id, _embedded)) is not None:
                await self._finish_embedding(item.key, store_id, count)
                return count
        if len(tried) >= _MOST_TRIES:
            raise WriteFailedError(
                f"The document store '{spec.name}' could not be embedded in {len(tried)} tries.",
                hint="Look at its vector store and embeddings in Flowise.",
                details={"store_id": store_id},
            )
        vectors = await self._vectors(spec, len(tried) + 1)
        sha256 = hashlib.sha256(vectors.model_dump_json().encode()).hexdigest()
        intent = await self._open("store_embed", iteration=0, target_id=store_id, sha256=sha256, tag=tag)

        async def insert() -> int:
            try:
                return await self._client.insert_vectors(store_id, vectors, timeout=_EMBED_SECS)
            except FlowiseServerError as error:
                if error.details.get("status") != _FAILED:
                    raise
                # It is over: what it has written is in a collection that no other try uses.
                result = {"store_id": store_id}
                await self._intents.finish(self._lease, intent.key, status="failed", result=result)
                raise WriteFailedError(
                    f"The document store '{spec.name}' could not be embedded: {error.details.get('flowise_message')}",
                    hint="Look at its vector store and embeddings in Flowise, then try again.",
                    details=result,
                ) from error

        with stated(intent) as attempt:
            count, _ = await self._send(intent, attempt, insert, landed=lambda: self._finished(store_id, _embedded))
            attempt.written = "yes"
            await self._finish_embedding(intent.key, store_id, count)
        return count

    async def _vectors(self, spec: StoreSpec, number: int) -> VectorSpec:
        """The configuration of the model store, with a collection of this try's own."""
        model = await self._client.get_document_store(str(spec.like))
        collection = f"fda_{self._session_id.hex[:12]}_{spec.sha256[:6]}_{number}"
        vectors = vectors_like(model, collection)
        if vectors is None:
            raise WriteFailedError(
                f"The document store '{model.name}' no longer has a vector store that a new one could use.",
                hint="Plan again.",
                details={"store_id": model.id},
            )
        return vectors

    async def _finish_embedding(self, key: UUID, store_id: str, count: int) -> None:
        result = {"store_id": store_id, "embedded": count}
        await self._intents.finish(self._lease, key, status="done", result=result)

    async def _finished(self, store_id: str, look: Callable[[DocumentStore], _Work]) -> int | None:
        """The pieces of what an earlier call has begun, once Flowise is no longer at it; None when it is not done."""
        until = time.monotonic() + _WAIT_SECS
        while True:
            work = look(await self._client.get_document_store(store_id))
            if not work.busy or time.monotonic() > until:
                return work.done
            await asyncio.sleep(_LOOK_SECS)

    async def _tagged_stores(self, tag: str) -> list[StoreRow]:
        """Oldest first."""
        found = [one for one in await self._client.list_document_stores() if f"[{tag}]" in (one.description or "")]
        rows = [
            StoreRow(id=one.id, name=one.name, description=one.description, created_date=one.created_date)
            for one in found
        ]
        return sorted(rows, key=lambda row: (row.created_date, row.id))

    async def _is_gone(self, store_id: str) -> bool:
        try:
            await self._client.get_document_store(store_id)
        except FlowiseNotFoundError:
            return True
        return False


async def find_tagged_stores(client: FlowiseClient, tags: Collection[str]) -> dict[str, list[str]]:
    """Ids of the document stores that carry one of these tags, by tag. Raises FlowiseError."""
    found: dict[str, list[str]] = {}
    for store in await client.list_document_stores():
        for tag in re.findall(r"\[(fda:[^\[\]\s]+)\]", store.description or ""):
            if tag in tags:
                found.setdefault(tag, []).append(store.id)
    return found


async def remove_unclaimed_store(
    client: FlowiseClient, store_id: str, *, tag: str, names: Collection[str]
) -> str | None:
    """Delete a document store that a session left, and say what was done; None when it is gone or may be a person's.

    It is the session's when it has its tag and one of `names`, and no flow uses it. Raises FlowiseError; safe to
    repeat.
    """
    try:
        store = await client.get_document_store(store_id)
        if store.where_used or store.name not in names or f"[{tag}]" not in (store.description or ""):
            return None
        await client.delete_document_store(store_id)
    except FlowiseNotFoundError:
        return None
    return " ".join(filter(None, [f"Deleted the document store '{store.name}'.", _left_behind(store)]))


def pieces(count: int) -> str:
    """A number of pieces in words."""
    return "1 piece" if count == 1 else f"{count} pieces"


def _read(store: DocumentStore, loader_id: str) -> _Work:
    loader = next((one for one in store.loaders if one.id == loader_id), None)
    if loader is None:
        return _Work(None, busy=False)
    return _Work(loader.total_chunks if loader.status == "SYNC" else None, busy=loader.status == "SYNCING")


def _embedded(store: DocumentStore) -> _Work:
    return _Work(store.total_chunks if store.status == "UPSERTED" else None, busy=store.status == "UPSERTING")


def _left_behind(store: DocumentStore) -> str | None:
    vectors = store.vector_store_config
    if vectors is None:
        return None
    return f"The vectors of '{store.name}' stay in {vectors.name} ({collection_of(store)}): Flowise cannot remove them."
