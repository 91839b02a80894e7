"""Document stores that a session makes: each step once, whatever is lost on the way.

A store is found again by the session's tag in its description. Its sources have ids of ours and may be read again. To
embed them is not safe to repeat (every piece would be there twice), so a call with an unknown outcome is waited for,
and one that failed is followed by another into a collection of its own.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from flowise_dev_agent.errors import FlowiseNotFoundError, FlowiseServerError, WriteFailedError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.document_stores import (
    StoreRow,
    VectorSpec,
    vectors_like,
)
from flowise_dev_agent.flowise.flow_tags import store_tag
from flowise_dev_agent.publish.outcomes import stated
from flowise_dev_agent.publish.store_files import (
    EMBED_SECS,
    LOOK_SECS,
    WAIT_SECS,
    Progress,
    StoreFiles,
    StoreSpec,
    embedding_of,
    left_behind,
    remove_loader,
)
from flowise_dev_agent.texts import counted, text

#: Calls to embed one store.
_MOST_TRIES: Final = 3


@dataclass(frozen=True)
class MadeStore:
    """A store that is there. `embedded` counts the pieces in its vector store, None without one."""

    id: str
    name: str
    chunks: int
    embedded: int | None = None


class StoreSteps(StoreFiles):
    """Making, taking and removing document stores."""

    async def make_store(self, spec: StoreSpec, progress: Progress) -> MadeStore:
        """Create, fill and embed a store, or go on where an earlier try ended; add the files to one that exists.

        Raises:
            FlowiseError: the server refused, or the outcome is unknown.
            WriteFailedError: a source holds no text, or the vector store finds nothing of it.
        """
        if spec.id is not None:
            count = await self.add_files(spec, progress)
            return MadeStore(spec.id, spec.name, count, count if spec.like else None)
        tag = store_tag(str(self._session_id), spec.sha256[:12])
        store_id = await self._create_store(spec, tag)
        progress(text("event.store_created", store=spec.name))
        chunks = 0
        for number, loader in enumerate(spec.loaders, start=1):
            chunks += await self._fill_store(spec.name, store_id, loader, tag)
            total = len(spec.loaders)
            progress(
                text(
                    "event.store_read",
                    store=spec.name,
                    done=number,
                    files=counted("files", total),
                    pieces=counted("pieces", chunks),
                )
            )
        if spec.like is None:
            return MadeStore(store_id, spec.name, chunks)
        embedded = await self._embed_store(spec, store_id, tag)
        if not await self._client.query_document_store(store_id, spec.probe or spec.name):
            raise WriteFailedError(
                text("error.store_finds_none", pieces=counted("pieces", embedded), store=spec.name),
                hint=text("error.store_finds_none_hint"),
                details={"store_id": store_id},
            )
        progress(text("event.store_embedded", store=spec.name, pieces=counted("pieces", embedded)))
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
            until = time.monotonic() + WAIT_SECS
            while len(added := await self._client.upserts(flow)) <= int(count):
                if time.monotonic() > until:
                    return None
                await asyncio.sleep(LOOK_SECS)
            return added[int(count)]

        async def send() -> int:
            try:
                return await self._client.upsert_vectors(chatflow_id, node_id, timeout=EMBED_SECS)
            except FlowiseServerError as error:
                await self._intents.finish(self._lease, intent.key, status="failed", result={"node_id": node_id})
                said = error.details.get("flowise_message")
                raise WriteFailedError(text("error.vectors_not_filled", node=node_id, said=str(said))) from error

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
                        text("error.store_not_deleted", store=store.name),
                        hint=text("error.delete_in_flowise"),
                        details={"store_id": store_id},
                    )
                left = left_behind(store)

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

    async def _embed_store(self, spec: StoreSpec, store_id: str, tag: str) -> int:
        tried = [
            item
            for item in await self._intents.list_for(self._session_id)
            if (item.op, item.target_id) == ("store_embed", store_id)
        ]
        for item in tried:
            if item.status == "done" and item.result:
                return int(item.result["embedded"])
            if item.status == "open" and (count := await self._finished(store_id, embedding_of)) is not None:
                await self._finish_embedding(item.key, store_id, count)
                return count
        if len(tried) >= _MOST_TRIES:
            raise WriteFailedError(
                text("error.store_not_embedded_in_tries", store=spec.name, count=len(tried)),
                hint=text("error.look_at_vectors"),
                details={"store_id": store_id},
            )
        vectors = await self._vectors(spec, len(tried) + 1)
        sha256 = hashlib.sha256(vectors.model_dump_json().encode()).hexdigest()
        intent = await self._open("store_embed", iteration=0, target_id=store_id, sha256=sha256, tag=tag)

        async def insert() -> int:
            try:
                return await self._client.insert_vectors(store_id, vectors, timeout=EMBED_SECS)
            except FlowiseServerError as error:
                # It is over: what it has written is in a collection that no other try uses.
                result = {"store_id": store_id}
                await self._intents.finish(self._lease, intent.key, status="failed", result=result)
                raise WriteFailedError(
                    text("error.store_not_embedded", store=spec.name, said=str(error.details.get("flowise_message"))),
                    hint=text("error.look_at_embeddings"),
                    details=result,
                ) from error

        with stated(intent) as attempt:
            count, _ = await self._send(intent, attempt, insert, landed=lambda: self._finished(store_id, embedding_of))
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
                text("error.store_no_model_vectors", store=model.name),
                hint=text("error.plan_again"),
                details={"store_id": model.id},
            )
        return vectors

    async def _finish_embedding(self, key: UUID, store_id: str, count: int) -> None:
        result = {"store_id": store_id, "embedded": count}
        await self._intents.finish(self._lease, key, status="done", result=result)

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


async def remove_unclaimed_stores(client: FlowiseClient, left: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """Remove what sessions left in document stores, and say for each tag what was done; `left` is tag -> names of
    stores and ids of sources.

    A store is a session's when it has its tag and one of the names, and no flow uses it; in other stores the sources
    are. Raises FlowiseError; safe to repeat.
    """
    said: dict[str, list[str]] = {tag: [] for tag in left}
    for store in await client.list_document_stores():
        for tag, names in left.items():
            if f"[{tag}]" in (store.description or ""):
                said[tag].append(await _remove_store(client, store.id, tag, names))
            else:
                ours = [loader.id for loader in store.loaders if loader.id in names]
                said[tag] += [await remove_loader(client, store.id, loader_id) for loader_id in ours]
    return {tag: [words for words in one if words] for tag, one in said.items()}


async def _remove_store(client: FlowiseClient, store_id: str, tag: str, names: Collection[str]) -> str:
    try:
        store = await client.get_document_store(store_id)
        if store.name not in names or f"[{tag}]" not in (store.description or ""):
            return ""
        if await client.flows_with(store_id):
            return ""
        await client.delete_document_store(store_id)
    except FlowiseNotFoundError:
        return ""
    return " ".join(filter(None, [f"Deleted the document store '{store.name}'.", left_behind(store)]))
