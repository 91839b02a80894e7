"""Document stores are made once, whatever is lost on the way, and removed only by the session that made them."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from flowise_dev_agent.errors import (
    FlowiseConnectionLostError,
    FlowiseError,
    FlowiseNotFoundError,
    FlowiseServerError,
    FlowiseTimeoutError,
    WriteFailedError,
)
from flowise_dev_agent.flowise.document_stores import (
    Component,
    DocumentStore,
    FoundDocument,
    LoaderSpec,
    StoreLoader,
    StoreRow,
    VectorSpec,
)
from flowise_dev_agent.flowise.flow_tags import store_tag
from flowise_dev_agent.publish import MadeStore, Publisher, StoreSpec, store_files
from tests.unit.publish.fakes import FakeIntents, FakeVersions

SESSION = UUID("11111111-1111-4111-8111-111111111111")
LOADER = LoaderSpec(id="l1", loader_id="pdfFile", loader_name="Pdf File", loader_config={"pdfFile": "data:"})
MODEL = DocumentStore(
    id="model",
    name="Travel",
    status="UPSERTED",
    vector_store_config=Component(name="postgres", config={"host": "db", "tableName": "travel", "credential": "c1"}),
    embedding_config=Component(name="openAIEmbeddings", config={"credential": "c2", "modelName": "small"}),
)
SPEC = StoreSpec(name="Handbook", about="Made of handbook.pdf", loaders=[LOADER], like="model", probe="vacation")


class Stores:
    """Document stores in memory. `lost` names a call whose answer is lost once, after its effect; `failing` one that
    fails once, as Flowise does: the store stays UPSERTING."""

    def __init__(self, lost: str = "", failing: str = "") -> None:
        self.rows = {MODEL.id: MODEL}
        self.lost, self.failing = lost, failing
        self.collections: list[object] = []
        self.embedded: list[str | None] = []
        self.vectors_gone: list[str] = []
        self.queries: list[str] = []
        self.made = self.read = self.upserted = 0
        self.pieces = 3
        self.error: type[FlowiseError] = FlowiseServerError
        self.finds = True

    def _answer(self, call: str) -> None:
        if call == self.lost:
            self.lost = ""
            raise FlowiseConnectionLostError("The connection broke.")

    def _set_loader(self, store_id: str, loader: LoaderSpec, status: str, chunks: int) -> None:
        row = self.rows[store_id]
        others = [one for one in row.loaders if one.id != loader.id]
        new = StoreLoader(id=loader.id, loader_id=loader.loader_id, status=status, total_chunks=chunks)
        loaders = [*others, new]
        total = sum(one.total_chunks for one in loaders)
        self.rows[store_id] = row.model_copy(update={"loaders": loaders, "total_chunks": total, "status": "SYNC"})

    async def list_document_stores(self) -> list[DocumentStore]:
        return list(self.rows.values())

    async def get_document_store(self, store_id: str) -> DocumentStore:
        if store_id not in self.rows:
            raise FlowiseNotFoundError("There is none.")
        return self.rows[store_id]

    async def create_document_store(self, name: str, description: str) -> StoreRow:
        self.made += 1
        row = DocumentStore(id=str(uuid4()), name=name, description=description, created_date=str(self.made))
        self.rows[row.id] = row
        self._answer("create")
        return StoreRow(id=row.id, name=name)

    async def describe_document_store(self, store_id: str, description: str) -> None:
        self.rows[store_id] = self.rows[store_id].model_copy(update={"description": description})

    async def delete_document_store(self, store_id: str) -> None:
        del self.rows[store_id]
        self._answer("delete")

    async def save_loader(self, store_id: str, loader: LoaderSpec) -> None:
        self._set_loader(store_id, loader, "SYNCING", 0)

    async def process_loader(self, store_id: str, loader: LoaderSpec, *, timeout: float) -> int:  # noqa: ASYNC109
        self.read += 1
        self._set_loader(store_id, loader, "SYNC", self.pieces)
        self._answer("process")
        return self.pieces

    async def insert_vectors(
        self,
        store_id: str,
        vectors: VectorSpec,
        *,
        loader_id: str | None = None,
        timeout: float,  # noqa: ASYNC109
    ) -> int:
        self.collections.append(vectors.vector_store.config["tableName"])
        self.embedded.append(loader_id)
        config = {"vector_store_config": vectors.vector_store, "embedding_config": vectors.embedding}
        failed = self.failing == "insert"
        status = "UPSERTING" if failed else "UPSERTED"
        self.rows[store_id] = self.rows[store_id].model_copy(update={**config, "status": status})
        if failed:
            self.failing = ""
            raise self.error("It failed.", details={"flowise_message": "no such host"})
        self._answer("insert")
        return 3

    async def delete_vectors(self, store_id: str, loader_id: str, *, timeout: float) -> None:  # noqa: ASYNC109
        self.vectors_gone.append(loader_id)

    async def delete_loader(self, store_id: str, loader_id: str) -> None:
        row = self.rows[store_id]
        self.rows[store_id] = row.model_copy(update={"loaders": [one for one in row.loaders if one.id != loader_id]})

    async def upserts(self, chatflow_id: str) -> list[int]:
        return [3] * self.upserted

    async def upsert_vectors(self, chatflow_id: str, node_id: str, *, timeout: float) -> int:  # noqa: ASYNC109
        if self.failing == "upsert":
            self.failing = ""
            raise self.error("It failed.", details={"flowise_message": "no such host"})
        self.upserted += 1
        self._answer("upsert")
        return 3

    async def query_document_store(self, store_id: str, query: str) -> list[FoundDocument]:
        self.queries.append(query)
        return [FoundDocument(page_content=query)] if self.finds else []


class Desk:
    """A session; each call is by another worker, with the same tables and server."""

    def __init__(self, server: Stores) -> None:
        self.server, self.intents = server, FakeIntents()
        self.said: list[str] = []

    def worker(self) -> Publisher:
        fakes: Any = (self.server, self.intents, FakeVersions())
        return Publisher(
            session_id=SESSION, instance_id="main", client=fakes[0], intents=fakes[1], lease=None, versions=fakes[2]
        )

    async def make(self, spec: StoreSpec = SPEC) -> MadeStore:
        return await self.worker().make_store(spec, self.said.append)

    def told(self, op: str) -> list[str]:
        """States of the writes of a kind."""
        return [row.status for row in self.intents.rows.values() if row.op == op]

    @property
    def own(self) -> list[DocumentStore]:
        return [row for row in self.server.rows.values() if row.id != MODEL.id]


async def test_a_store_takes_configuration_and_credentials_of_its_model_and_a_collection_of_its_own() -> None:
    desk = Desk(Stores())
    made = await desk.make()
    (row,) = desk.own
    assert (made.id, made.chunks, made.embedded) == (row.id, 3, 3)
    assert desk.server.queries == ["vacation"]
    assert row.embedding_config == MODEL.embedding_config
    assert row.vector_store_config is not None
    config = dict(row.vector_store_config.config)
    assert config.pop("tableName") != "travel"
    assert config == {"host": "db", "credential": "c1"}
    assert [line.rpartition(": ")[2] for line in desk.said] == [
        "created",
        "read 1 of 1 file, 3 pieces",
        "3 pieces embedded, and found by a search",
    ]


@pytest.mark.parametrize("lost", ["create", "process", "insert"])
async def test_a_lost_answer_makes_no_second_store_and_embeds_nothing_twice(lost: str) -> None:
    desk = Desk(Stores(lost=lost))
    if lost == "process":
        with pytest.raises(FlowiseConnectionLostError):
            await desk.make()
    made = await desk.make()
    again = await desk.make()
    assert [row.id for row in desk.own] == [made.id] == [again.id]
    assert (len(desk.server.collections), desk.server.read) == (1, 1)


async def test_an_insert_that_a_proxy_ended_may_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(Stores(failing="insert"))
    desk.server.error = FlowiseTimeoutError
    monkeypatch.setattr(store_files, "WAIT_SECS", 0.0)
    with pytest.raises(FlowiseTimeoutError):
        await desk.make()
    assert desk.told("store_embed") == ["open"]


async def test_a_source_without_text_is_read_again_when_it_is_tried_again() -> None:
    desk = Desk(Stores())
    desk.server.pieces = 0
    with pytest.raises(WriteFailedError, match="text"):
        await desk.make()
    desk.server.pieces = 3
    assert (await desk.make()).chunks == 3
    assert desk.server.read == 2


async def test_a_store_that_another_worker_was_about_to_make_is_found_by_its_tag() -> None:
    desk = Desk(Stores())
    tag = store_tag(str(SESSION), SPEC.sha256[:12])
    await desk.worker()._open("store_create", iteration=0, sha256=SPEC.sha256, tag=tag, name=SPEC.name)
    row = await desk.server.create_document_store(SPEC.name, f"{SPEC.about} [{tag}]")
    assert (await desk.make()).id == row.id
    assert desk.server.made == 1


async def test_a_failed_insert_is_followed_by_one_into_a_collection_of_its_own() -> None:
    desk = Desk(Stores(failing="insert"))
    with pytest.raises(WriteFailedError, match="no such host"):
        await desk.make()
    made = await desk.make()
    assert made.embedded == 3
    assert len(set(desk.server.collections)) == 2


async def test_an_insert_that_may_still_go_on_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(Stores(lost="insert"))
    desk.server.failing = ""
    monkeypatch.setattr(store_files, "LOOK_SECS", 0.0)
    looks = iter(["UPSERTING", "UPSERTING", "UPSERTED"])
    plain = desk.server.get_document_store

    async def look(store_id: str) -> DocumentStore:
        row = await plain(store_id)
        if store_id == MODEL.id or not desk.server.collections:
            return row
        return row.model_copy(update={"status": next(looks, "UPSERTED")})

    monkeypatch.setattr(desk.server, "get_document_store", look)
    assert (await desk.make()).embedded == 3
    assert next(looks, None) is None
    assert len(desk.server.collections) == 1


async def test_a_file_that_may_still_be_read_is_waited_for_and_not_read_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(Stores(lost="process"))
    monkeypatch.setattr(store_files, "LOOK_SECS", 0.0)
    with pytest.raises(FlowiseConnectionLostError):
        await desk.make()
    looks = iter(["SYNCING", "SYNCING"])
    plain = desk.server.get_document_store

    async def look(store_id: str) -> DocumentStore:
        row = await plain(store_id)
        busy = next(looks, None) if store_id != MODEL.id else None
        if busy is None:
            return row
        return row.model_copy(update={"loaders": [one.model_copy(update={"status": busy}) for one in row.loaders]})

    monkeypatch.setattr(desk.server, "get_document_store", look)
    made = await desk.make()
    assert next(looks, None) is None
    assert (made.chunks, desk.server.read) == (3, 1)


async def test_a_vector_store_that_finds_nothing_is_no_success() -> None:
    desk = Desk(Stores())
    desk.server.finds = False
    with pytest.raises(WriteFailedError, match="finds none of them"):
        await desk.make()


async def test_the_tag_goes_with_the_acceptance_and_then_the_store_stays() -> None:
    desk = Desk(Stores())
    made = await desk.make()
    await desk.worker().take_store(made.id)
    assert desk.server.rows[made.id].description == SPEC.about
    with pytest.raises(WriteFailedError, match="no longer has this session's tag"):
        await desk.worker().delete_store(made.id)
    assert made.id in desk.server.rows


@pytest.mark.parametrize("lost", ["", "delete"])
async def test_a_store_is_deleted_once_and_what_stays_is_named(lost: str) -> None:
    desk = Desk(Stores())
    made = await desk.make()
    desk.server.lost = lost
    left = await desk.worker().delete_store(made.id)
    assert left is not None
    assert left.startswith("The vectors of 'Handbook' stay in postgres (tableName fda_")
    assert desk.own == []
    assert await desk.worker().delete_store(made.id) == left
    assert await desk.worker().own_stores() == {}


async def test_a_store_is_the_sessions_from_its_create_to_its_delete_only() -> None:
    desk = Desk(Stores())
    worker = desk.worker()
    await worker._open("store_create", iteration=0, sha256="lost", tag="t", name="Lost")
    made = await desk.make()
    await worker.take_store(MODEL.id)
    own = await worker.own_stores()
    await worker._open("store_delete", iteration=0, target_id=made.id)
    assert own == await worker.own_stores() == {"Handbook": made.id}


async def test_pieces_that_the_flow_keeps_in_memory_are_not_embedded() -> None:
    desk = Desk(Stores())
    made = await desk.make(StoreSpec(name="Handbook", about="Made of handbook.pdf", loaders=[LOADER]))
    assert (made.embedded, desk.server.collections) == (None, [])
    assert await desk.worker().delete_store(made.id) is None
