"""Flowise's document stores: texts in pieces that flows answer from (Flowise 3.1.4, measured).

A store has loaders, each of one source. `save_loader` announces one, `process_loader` reads and splits it; then the
store is `SYNC`, and a flow can read the pieces (node `documentStore`). `insert` embeds them and writes them to the
store's vector store; then it is `UPSERTED`, and a flow can search it (node `documentStoreVS`).

Pitfalls: after a failed insert a store stays `UPSERTING` for ever. An insert that is repeated, and a refresh, write
every piece once more unless the store has a record manager, and only then can its vectors be removed: deleting the
store leaves them. With a record manager an insert of one source (`docId`), and so Flowise's own refresh, removes the
vectors of the others (of those with the same source key, or of all). Of several stores with one table or collection
each answers from the pieces of all. The in-memory vector store is accepted and keeps nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator
from pydantic.alias_generators import to_camel

from flowise_dev_agent.flowise.calls import FlowiseCalls, segment
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.texts import text

_WIRE: Final = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")
_STORE: Final = "/document-store/store"
#: The field that keeps apart what several stores write to one vector store, of those that make it themselves.
COLLECTION_FIELDS: Final[Mapping[str, str]] = {
    "chroma": "collectionName",
    "elasticsearch": "indexName",
    "milvus": "milvusCollection",
    "openSearch": "indexName",
    "pinecone": "pineconeNamespace",
    "postgres": "tableName",
    "qdrant": "qdrantCollection",
    "redis": "indexName",
    "singlestore": "tableName",
}
#: The same of record managers.
_NAMESPACE: Final = "namespace"
_PREVIEWED: Final = 3


class Component(BaseModel):
    """A node that a store uses: its type and the values of its fields, its credential's id among them."""

    name: str
    config: JsonObject = Field(default_factory=dict, repr=False)


class StoreLoader(BaseModel):
    """One source of a store. `status` is `SYNC` once it is read; `source` names its file or address."""

    model_config = _WIRE

    id: str
    loader_id: str
    loader_name: str | None = None
    loader_config: JsonObject = Field(default_factory=dict, repr=False)
    splitter_id: str | None = None
    splitter_name: str | None = None
    splitter_config: JsonObject = Field(default_factory=dict)
    credential: str | None = None
    total_chunks: int = 0
    total_chars: int = 0
    status: str = ""
    source: str = "None"
    files: list[JsonObject] = Field(default_factory=list[JsonObject], repr=False)

    @property
    def title(self) -> str:
        """Names of files, an address without its query, which may hold a key, else the type of the loader."""
        named = self.source if self.source and self.source != "None" else self.loader_name or self.loader_id
        return named.partition("?")[0].strip('[]"')

    @property
    def spec(self) -> "LoaderSpec":
        """The loader that reads this source again."""
        return LoaderSpec(
            id=self.id,
            loader_id=self.loader_id,
            loader_name=self.loader_name or self.loader_id,
            loader_config=self.loader_config,
            splitter_id=self.splitter_id or "",
            splitter_name=self.splitter_name or "",
            splitter_config=self.splitter_config,
            credential=self.credential,
        )

    @field_validator("loader_config", "splitter_config", mode="before")
    @classmethod
    def _none_is_empty(cls, value: Any) -> Any:
        return value or {}


class DocumentStore(BaseModel):
    """A document store. `where_used` holds ids of flows, or their names too when one store is read."""

    model_config = _WIRE

    id: str
    name: str
    description: str | None = None
    status: str = "EMPTY"
    loaders: list[StoreLoader] = Field(default_factory=list[StoreLoader])
    where_used: list[str | JsonObject] = Field(default_factory=list[str | JsonObject])
    vector_store_config: Component | None = None
    embedding_config: Component | None = None
    record_manager_config: Component | None = None
    total_chunks: int = 0
    total_chars: int = 0
    created_date: str = ""
    updated_date: str = ""

    @property
    def state(self) -> str:
        """A hash that changes with sources, files, numbers of pieces and vectors.

        The date tells vectors that were written again. Flowise also moves it when a flow that reads the pieces without
        vectors is saved or deleted; those are in `where_used`, so it does not count while there are any.
        """
        left_out = {"name", "description", "where_used"} | ({"updated_date"} if self.where_used else set[str]())
        return payload_sha256(self.model_dump_json(exclude=left_out))


class StoreRow(BaseModel):
    """A store as writes answer with it: lists are JSON texts there, so only these columns are read."""

    model_config = _WIRE

    id: str
    name: str
    description: str | None = None
    created_date: str = ""


class LoaderSpec(BaseModel):
    """A loader to be: the node types of loader and splitter with the values of their fields.

    A file is a data URL that ends with `,filename:<name>`. `id` is the caller's to choose.
    """

    model_config = _WIRE | ConfigDict(extra="forbid")

    id: str
    loader_id: str
    loader_name: str
    loader_config: JsonObject = Field(repr=False)
    splitter_id: str = ""
    splitter_name: str = ""
    splitter_config: JsonObject = Field(default_factory=dict)
    credential: str | None = None

    def body(self, store_id: str) -> JsonObject:
        """The body of a request to the loader routes."""
        return {**self.model_dump(by_alias=True, exclude_none=True), "storeId": store_id}


class VectorSpec(BaseModel):
    """Embedding model, vector store and record manager of a store; without the last nothing can be removed later."""

    embedding: Component
    vector_store: Component
    record_manager: Component | None = None

    def body(self, store_id: str) -> JsonObject:
        """The body of a request to the vector store routes."""
        manager = self.record_manager
        return {
            "storeId": store_id,
            "embeddingName": self.embedding.name,
            "embeddingConfig": self.embedding.config,
            "vectorStoreName": self.vector_store.name,
            "vectorStoreConfig": self.vector_store.config,
            "recordManagerName": manager.name if manager else "",
            "recordManagerConfig": manager.config if manager else {},
        }


def vectors_like(store: DocumentStore, collection: str) -> VectorSpec | None:
    """The configuration of a store with a collection of its own; None when it has none that can be kept apart.

    Credentials are those of the store, by their ids.
    """
    vectors, embedding, manager = store.vector_store_config, store.embedding_config, store.record_manager_config
    field = COLLECTION_FIELDS.get(vectors.name) if vectors else None
    if vectors is None or embedding is None or field is None:
        return None
    return VectorSpec(
        embedding=embedding,
        vector_store=Component(name=vectors.name, config={**vectors.config, field: collection}),
        record_manager=Component(name=manager.name, config={**manager.config, _NAMESPACE: collection})
        if manager
        else None,
    )


def vectors_of(store: DocumentStore) -> VectorSpec | None:
    """The configuration of a store; None when it has no vector store."""
    vectors, embedding = store.vector_store_config, store.embedding_config
    if vectors is None or embedding is None:
        return None
    return VectorSpec(embedding=embedding, vector_store=vectors, record_manager=store.record_manager_config)


def collection_of(store: DocumentStore) -> str:
    """The place in its vector store that holds the pieces of a document store, in words."""
    vectors = store.vector_store_config
    field = COLLECTION_FIELDS.get(vectors.name) if vectors else None
    return f"{field} {vectors.config.get(field) or 'default'}" if vectors and field else "its default place"


class FoundDocument(BaseModel):
    """A piece that a search found."""

    model_config = _WIRE

    page_content: str
    metadata: JsonObject = Field(default_factory=dict)


_STORES: Final = TypeAdapter(list[DocumentStore])
_FOUND: Final = TypeAdapter(list[FoundDocument])


class DocumentStoreCalls(FlowiseCalls):
    """The calls for document stores; the API key needs `documentStores:*`."""

    async def list_document_stores(self) -> list[DocumentStore]:
        """All stores, last updated first."""
        return self._parse(_STORES, await self._get(_STORE), f"GET {_STORE}")

    async def get_document_store(self, store_id: str) -> DocumentStore:
        """One store. FlowiseNotFoundError when there is none; FlowiseServerError for an id that is not a UUID."""
        path = f"{_STORE}/{segment(store_id)}"
        return self._parse(DocumentStore, await self._get(path, route=f"{_STORE}/:id"), f"GET {path}")

    async def create_document_store(self, name: str, description: str) -> StoreRow:
        """Create an empty store. Sent once. Names need not be unique, and an id of the client's is ignored."""
        answer = await self._post(_STORE, {"name": name, "description": description})
        return self._parse(StoreRow, answer, f"POST {_STORE}")

    async def describe_document_store(self, store_id: str, description: str) -> None:
        """Change the description. Sent once."""
        await self._transport.call(
            "PUT",
            f"{_STORE}/{segment(store_id)}",
            total_secs=self._timeout,
            route=f"{_STORE}/:id",
            body={"description": description},
        )

    async def delete_document_store(self, store_id: str) -> None:
        """Delete a store with its pieces and files, also while flows use it; vectors stay in the vector store.

        FlowiseNotFoundError when there is none. Sent once.
        """
        await self._transport.call(
            "DELETE", f"{_STORE}/{segment(store_id)}", total_secs=self._timeout, route=f"{_STORE}/:id"
        )

    async def preview_chunks(self, loader: LoaderSpec, *, timeout: float) -> int:  # noqa: ASYNC109 - of one call
        """Read and split a source without keeping anything: the number of pieces.

        FlowiseServerError with the reader's words when it cannot be read.
        """
        path = "/document-store/loader/preview"
        body: JsonObject = {**loader.body(""), "previewChunkCount": _PREVIEWED}
        answer = await self._post(path, body, total_secs=timeout)
        total = answer.get("totalChunks") if isinstance(answer, dict) else None
        if not isinstance(total, int):
            raise self._odd(f"POST {path}", text("error.flowise_odd_no_number"))
        return total

    async def save_loader(self, store_id: str, loader: LoaderSpec) -> None:
        """Announce a source, or replace the one with this id: safe to repeat. Nothing is read yet."""
        await self._post("/document-store/loader/save", loader.body(store_id))

    async def process_loader(self, store_id: str, loader: LoaderSpec, *, timeout: float) -> int:  # noqa: ASYNC109
        """Read and split an announced source; pieces of an earlier time are replaced: safe to repeat.

        Returns the number of pieces. Within `timeout` seconds; after that it may still be going on.
        """
        route = "/document-store/loader/process"
        path = f"{route}/{segment(loader.id)}"
        answer = await self._post(path, loader.body(store_id), route=f"{route}/:id", total_secs=timeout)
        count = answer.get("count") if isinstance(answer, dict) else None
        if not isinstance(count, int):
            raise self._odd(f"POST {path}", text("error.flowise_odd_no_number"))
        return count

    async def insert_vectors(
        self,
        store_id: str,
        vectors: VectorSpec,
        *,
        loader_id: str | None = None,
        timeout: float,  # noqa: ASYNC109
    ) -> int:
        """Keep the configuration, embed all pieces, or those of one loader, and write them to the vector store: how
        many were added.

        Not safe to repeat, see the module.
        """
        path = "/document-store/vectorstore/insert"
        body = {**vectors.body(store_id), **({"docId": loader_id} if loader_id else {})}
        return self._added(await self._post(path, body, total_secs=timeout), f"POST {path}")

    async def delete_loader(self, store_id: str, loader_id: str) -> None:
        """Delete a source with its pieces and files; vectors stay, see `delete_vectors`. FlowiseServerError when the
        store has no such source."""
        await self._transport.call(
            "DELETE",
            f"/document-store/loader/{segment(store_id)}/{segment(loader_id)}",
            total_secs=self._timeout,
            route="/document-store/loader/:id/:loaderId",
        )

    async def delete_vectors(self, store_id: str, loader_id: str, *, timeout: float) -> None:  # noqa: ASYNC109
        """Delete the vectors of a source, which takes a record manager. Safe to repeat; the answer is empty."""
        await self._transport.send(
            "DELETE",
            f"/document-store/vectorstore/{segment(store_id)}",
            total_secs=timeout,
            route="/document-store/vectorstore/:storeId",
            params={"docId": loader_id},
        )

    async def query_document_store(self, store_id: str, query: str) -> list[FoundDocument]:
        """The pieces that are nearest to a text, as a flow would find them."""
        path = "/document-store/vectorstore/query"
        answer = await self._post(path, {"storeId": store_id, "query": query}, total_secs=self._prediction_timeout)
        return self._parse(_FOUND, answer.get("docs") if isinstance(answer, dict) else None, f"POST {path}")

    async def upsert_vectors(self, chatflow_id: str, node_id: str, *, timeout: float) -> int:  # noqa: ASYNC109
        """Run what feeds a vector store node of a chatflow and write it there: how many pieces were added.

        Not safe to repeat, as `insert_vectors`.
        """
        path = f"/vector/upsert/{segment(chatflow_id)}"
        answer = await self._post(path, {"stopNodeId": node_id}, route="/vector/upsert/:id", total_secs=timeout)
        return self._added(answer, f"POST {path}")

    async def upserts(self, chatflow_id: str) -> list[int]:
        """Pieces added by each write to the vector stores of a chatflow, oldest first; Flowise's history has no failed
        calls."""
        path = f"/upsert-history/{segment(chatflow_id)}"
        rows = self._rows(await self._get(path, route="/upsert-history/:id"), f"GET {path}")
        return [self._added(row.get("result"), f"GET {path}") for row in rows]

    def _added(self, answer: Any, call: str) -> int:
        """Number of pieces a write added; a record manager skips those that were there already."""
        if not isinstance(answer, dict):
            raise self._odd(call, "no result")
        counts = [answer.get(name) for name in ("numAdded", "numUpdated", "numSkipped")]
        return sum(count for count in counts if isinstance(count, int))
