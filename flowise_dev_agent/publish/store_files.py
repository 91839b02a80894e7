"""The sources of document stores: read once, also into a store that a person has, and taken out of that again."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from flowise_dev_agent.errors import FlowiseNotFoundError, FlowiseServerError, WriteFailedError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.document_stores import DocumentStore, LoaderSpec, collection_of, vectors_of
from flowise_dev_agent.flowise.flow_tags import store_tag
from flowise_dev_agent.publish.outcomes import stated
from flowise_dev_agent.publish.steps import WriteSteps
from flowise_dev_agent.texts import counted, text

#: For one source, and for all embeddings of a store.
_READ_SECS: Final = 300.0
EMBED_SECS: Final = 600.0
#: How long what an earlier call has begun is waited for, and how often it is looked at.
WAIT_SECS: Final = 120.0
LOOK_SECS: Final = 2.0

Progress = Callable[[str], None]


@dataclass(frozen=True)
class StoreSpec:
    """A store to be, or with an `id` one that exists and gets more sources. `like` is the id of the store whose vector
    store and embeddings it uses; without it the pieces are not embedded. `probe` is a text that a search must find
    something for."""

    name: str
    about: str
    loaders: Sequence[LoaderSpec] = field(repr=False)
    id: str | None = None
    like: str | None = None
    probe: str = field(default="", repr=False)

    @property
    def sha256(self) -> str:
        """Of everything that makes it another store."""
        parts = [self.id or self.name, self.like or "", *(loader.model_dump_json() for loader in self.loaders)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Work:
    """Progress of a call as its store shows it: the pieces once it is done, and whether Flowise may be at it."""

    done: int | None
    busy: bool


class StoreFiles(WriteSteps):
    """Reading sources into stores, and taking out what was added to the stores of people."""

    async def add_files(self, spec: StoreSpec, progress: Progress) -> int:
        """Add sources to a store that exists, and embed them where that store is: how many pieces.

        Raises:
            FlowiseError: the server refused, or the outcome is unknown.
            WriteFailedError: a source holds no text, or could not be embedded.
        """
        store_id = str(spec.id)
        tag = store_tag(str(self._session_id), spec.sha256[:12])
        count = 0
        for number, loader in enumerate(spec.loaders, start=1):
            count += await self._fill_store(spec.name, store_id, loader, tag)
            if spec.like is not None:
                await self._embed_file(spec.name, store_id, loader, tag)
            total = len(spec.loaders)
            progress(
                text(
                    "event.store_added",
                    store=spec.name,
                    done=number,
                    files=counted("files", total),
                    pieces=counted("pieces", count),
                )
            )
        return count

    async def own_files(self) -> list[tuple[str, str]]:
        """(store, loader) of what this session has added to stores of people and not taken out again."""
        intents = await self._intents.list_for(self._session_id)
        made = {str((item.result or {}).get("store_id")) for item in intents if item.op == "store_create"}
        gone = {(item.target_id, item.name) for item in intents if item.op == "store_remove" and item.status == "done"}
        filled = [(str(item.target_id), str(item.name)) for item in intents if item.op == "store_fill"]
        return [one for one in filled if one[0] not in made and one not in gone]

    async def remove_file(self, store_id: str, loader_id: str) -> str:
        """Take out of a store what this session has added, and say what was done and what stays. Safe to repeat."""
        intent = await self._open("store_remove", iteration=0, target_id=store_id, sha256=loader_id, name=loader_id)
        if intent.status == "done":
            return str((intent.result or {}).get("said") or "")
        with stated(intent) as attempt:
            attempt.written = "unknown"
            said = await remove_loader(self._client, store_id, loader_id)
            result = {"store_id": store_id, "said": said}
            await self._intents.finish(self._lease, intent.key, status="done", result=result)
        return said

    async def _fill_store(self, name: str, store_id: str, loader: LoaderSpec, tag: str) -> int:
        sha256 = _sha256(loader)
        intent = await self._open("store_fill", iteration=0, target_id=store_id, sha256=sha256, tag=tag, name=loader.id)
        if intent.status == "done" and intent.result:
            return int(intent.result["chunks"])
        with stated(intent) as attempt:
            attempt.written = "unknown"
            # Two calls that read one source at the same time would leave its pieces twice.
            chunks = None if intent.is_new else await self._finished(store_id, lambda store: read_of(store, loader.id))
            if chunks is None:
                await self._client.save_loader(store_id, loader)
                chunks = await self._client.process_loader(store_id, loader, timeout=_READ_SECS)
            result = {"store_id": store_id, "chunks": chunks}
            if not chunks:
                await self._intents.finish(self._lease, intent.key, status="failed", result=result)
                raise WriteFailedError(
                    text("error.store_file_no_text", store=name),
                    hint=text("error.scan_needs_ocr"),
                    details=result,
                )
            await self._intents.finish(self._lease, intent.key, status="done", result=result)
        return chunks

    async def _embed_file(self, name: str, store_id: str, loader: LoaderSpec, tag: str) -> None:
        intent = await self._open("store_embed", iteration=0, target_id=store_id, sha256=_sha256(loader), tag=tag)
        if intent.status == "done":
            return
        vectors = vectors_of(await self._client.get_document_store(store_id))
        if vectors is None:
            raise WriteFailedError(
                text("error.store_no_vectors", store=name),
                hint=text("error.plan_again"),
                details={"store_id": store_id},
            )

        async def landed() -> int | None:
            # Reading the source has set the status back.
            return await self._finished(store_id, embedding_of)

        async def insert() -> int:
            try:
                # A record manager skips pieces that are there, and may remove all that a call does not name.
                only = None if vectors.record_manager else loader.id
                return await self._client.insert_vectors(store_id, vectors, loader_id=only, timeout=EMBED_SECS)
            except FlowiseServerError as error:
                result = {"store_id": store_id}
                await self._intents.finish(self._lease, intent.key, status="failed", result=result)
                raise WriteFailedError(
                    text("error.store_files_not_embedded", store=name, said=str(error.details.get("flowise_message"))),
                    hint=text("error.look_at_embeddings"),
                    details=result,
                ) from error

        with stated(intent) as attempt:
            if intent.is_new or await landed() is None:
                await self._send(intent, attempt, insert, landed=landed)
            attempt.written = "yes"
            result = {"store_id": store_id}
            await self._intents.finish(self._lease, intent.key, status="done", result=result)

    async def _finished(self, store_id: str, look: Callable[[DocumentStore], Work]) -> int | None:
        """The pieces of what an earlier call has begun, once Flowise is no longer at it; None when it is not done."""
        until = time.monotonic() + WAIT_SECS
        while True:
            work = look(await self._client.get_document_store(store_id))
            if not work.busy or time.monotonic() > until:
                return work.done
            await asyncio.sleep(LOOK_SECS)


async def remove_loader(client: FlowiseClient, store_id: str, loader_id: str) -> str:
    """Take a source that a session has added out of a store, and say what was done and what stays; empty when it is
    gone. Raises FlowiseError; safe to repeat."""
    with suppress(FlowiseNotFoundError):
        store = await client.get_document_store(store_id)
        loader = next((one for one in store.loaders if one.id == loader_id), None)
        if loader is None:
            return ""
        left = ""
        vectors = store.vector_store_config
        if store.record_manager_config is not None:
            await client.delete_vectors(store_id, loader_id, timeout=EMBED_SECS)
        elif vectors is not None and loader.total_chunks:
            left = (
                f" Its pieces stay in {vectors.name} ({collection_of(store)}), and flows still find them: without a"
                " record manager Flowise cannot remove them."
            )
        await client.delete_loader(store_id, loader_id)
        return f"Removed {loader.title} from the document store '{store.name}'.{left}"
    return ""


def read_of(store: DocumentStore, loader_id: str) -> Work:
    """Progress of reading a source."""
    loader = next((one for one in store.loaders if one.id == loader_id), None)
    if loader is None:
        return Work(None, busy=False)
    return Work(loader.total_chunks if loader.status == "SYNC" else None, busy=loader.status == "SYNCING")


def embedding_of(store: DocumentStore) -> Work:
    """Progress of embedding a store."""
    return Work(store.total_chunks if store.status == "UPSERTED" else None, busy=store.status == "UPSERTING")


def left_behind(store: DocumentStore) -> str | None:
    """The vectors that stay when the store is deleted, in words; None without any."""
    vectors = store.vector_store_config
    if vectors is None:
        return None
    return f"The vectors of '{store.name}' stay in {vectors.name} ({collection_of(store)}): Flowise cannot remove them."


def _sha256(loader: LoaderSpec) -> str:
    return hashlib.sha256(loader.model_dump_json().encode()).hexdigest()
