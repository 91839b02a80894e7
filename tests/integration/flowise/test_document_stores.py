"""What Flowise 3.1.4 does with document stores, measured; vectors go to pgvector."""
# pyright: reportArgumentType=false, reportAssignmentType=false

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from flowise_dev_agent.agent.store_writes import fed_vector_stores
from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.errors import (
    FlowiseNotFoundError,
    FlowiseServerError,
    FlowiseTimeoutError,
    InvalidInputError,
    WriteFailedError,
)
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.flowise.document_stores import Component, LoaderSpec, VectorSpec
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.ops.document_stores import refresh_store
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    GraphIR,
    PatchOp,
    Schemas,
    compile_ops,
    validate_flow,
)
from flowise_dev_agent.patch.model.placeholders import placeholder_file
from flowise_dev_agent.persistence import AuditFilter, AuditLog, Database
from flowise_dev_agent.publish import Publisher, StoreSpec
from flowise_dev_agent.settings import FlowiseSettings
from tests.unit.publish.fakes import FakeIntents, FakeVersions

SESSION = uuid.uuid4()
TEXT = "Employees of the Zurich office have 31 days of vacation a year."


def pdf_loader(url: str | None = None) -> LoaderSpec:
    url = url or f"{str(placeholder_file('.pdf', TEXT)).rpartition(',filename:')[0]},filename:Our handbook.pdf"
    return LoaderSpec(
        id=str(uuid.uuid4()),
        loader_id="pdfFile",
        loader_name="Pdf File",
        loader_config={"pdfFile": url, "usage": "perPage", "metadata": '{"file": "Our handbook.pdf"}'},
        splitter_id="recursiveCharacterTextSplitter",
        splitter_name="Recursive Character Text Splitter",
        splitter_config={"chunkSize": 1000, "chunkOverlap": 200},
    )


@pytest.fixture
async def store(flowise_client: FlowiseClient) -> AsyncIterator[str]:
    made = await flowise_client.create_document_store("Handbook", "of a test")
    yield made.id
    if made.id in {one.id for one in await flowise_client.list_document_stores()}:
        await flowise_client.delete_document_store(made.id)


async def test_a_file_is_split_embedded_and_found_with_its_name(
    flowise_client: FlowiseClient, store: str, vectors: VectorSpec
) -> None:
    loader = pdf_loader()
    assert await flowise_client.preview_chunks(loader, timeout=30) == 1
    assert (await flowise_client.get_document_store(store)).status == "EMPTY"
    await flowise_client.save_loader(store, loader)
    assert (await flowise_client.get_document_store(store)).status == "STALE"
    assert await flowise_client.process_loader(store, loader, timeout=30) == 1
    read = await flowise_client.get_document_store(store)
    assert (read.status, read.total_chunks, read.loaders[0].id) == ("SYNC", 1, loader.id)
    assert read.loaders[0].loader_config["pdfFile"] == 'FILE-STORAGE::["Our handbook.pdf"]'
    # To read it once more replaces its pieces.
    await flowise_client.save_loader(store, loader)
    assert await flowise_client.process_loader(store, loader, timeout=30) == 1

    assert await flowise_client.insert_vectors(store, vectors, timeout=30) == 1
    (found,) = await flowise_client.query_document_store(store, "vacation")
    assert (found.page_content, found.metadata["file"]) == (TEXT, "Our handbook.pdf")
    written = await flowise_client.get_document_store(store)
    assert written.status == "UPSERTED"
    assert written.vector_store_config == vectors.vector_store
    assert written.embedding_config == vectors.embedding
    options = await flowise_client.node_options("documentStoreVS", "listStores")
    assert store in {option["name"] for option in options}


async def test_an_insert_that_is_repeated_without_a_record_manager_writes_every_piece_twice(
    flowise_client: FlowiseClient, store: str, vectors: VectorSpec
) -> None:
    loader = pdf_loader()
    await flowise_client.save_loader(store, loader)
    await flowise_client.process_loader(store, loader, timeout=30)
    for _ in range(2):
        await flowise_client.insert_vectors(store, vectors, timeout=30)
    assert len(await flowise_client.query_document_store(store, "vacation")) == 2


async def test_two_stores_with_one_table_answer_from_the_pieces_of_both(
    flowise_client: FlowiseClient, store: str, vectors: VectorSpec
) -> None:
    loader = pdf_loader()
    await flowise_client.save_loader(store, loader)
    await flowise_client.process_loader(store, loader, timeout=30)
    await flowise_client.insert_vectors(store, vectors, timeout=30)
    other = await flowise_client.create_document_store("Other", "of a test")
    try:
        assert await flowise_client.insert_vectors(other.id, vectors, timeout=30) == 0
        assert [one.page_content for one in await flowise_client.query_document_store(other.id, "vacation")] == [TEXT]
    finally:
        await flowise_client.delete_document_store(other.id)


async def test_an_insert_that_fails_leaves_the_store_upserting(
    flowise_client: FlowiseClient, store: str, vectors: VectorSpec
) -> None:
    loader = pdf_loader()
    await flowise_client.save_loader(store, loader)
    await flowise_client.process_loader(store, loader, timeout=30)
    nowhere = Component(name="postgres", config={**vectors.vector_store.config, "host": "/nonexistent"})
    with pytest.raises(FlowiseServerError, match="ENOENT /nonexistent"):
        await flowise_client.insert_vectors(store, vectors.model_copy(update={"vector_store": nowhere}), timeout=30)
    assert (await flowise_client.get_document_store(store)).status == "UPSERTING"
    assert await flowise_client.insert_vectors(store, vectors, timeout=30) == 1
    assert (await flowise_client.get_document_store(store)).status == "UPSERTED"


async def test_the_in_memory_vector_store_is_accepted_and_keeps_nothing(
    flowise_client: FlowiseClient, store: str, vectors: VectorSpec
) -> None:
    loader = pdf_loader()
    await flowise_client.save_loader(store, loader)
    await flowise_client.process_loader(store, loader, timeout=30)
    memory = vectors.model_copy(update={"vector_store": Component(name="memoryVectorStore")})
    assert await flowise_client.insert_vectors(store, memory, timeout=30) == 1
    assert (await flowise_client.get_document_store(store)).status == "UPSERTED"
    assert await flowise_client.query_document_store(store, "vacation") == []


async def test_a_file_that_cannot_be_read_fails_and_a_store_that_is_gone_is_not_found(
    flowise_client: FlowiseClient, store: str
) -> None:
    broken = pdf_loader("data:application/pdf;base64,QUJD,filename:broken.pdf")
    with pytest.raises(FlowiseServerError, match="Invalid PDF structure"):
        await flowise_client.preview_chunks(broken, timeout=30)
    await flowise_client.describe_document_store(store, "changed")
    assert (await flowise_client.get_document_store(store)).description == "changed"
    await flowise_client.delete_document_store(store)
    with pytest.raises(FlowiseNotFoundError):
        await flowise_client.get_document_store(store)
    with pytest.raises(FlowiseNotFoundError):
        await flowise_client.delete_document_store(store)


def bot_on(vectors: VectorSpec, openai: str, schemas: Schemas, **changed: object) -> str:
    """A flow that answers from a PDF in the vector store."""
    config = {**vectors.vector_store.config, **changed}
    credential = str(config.pop("credential"))
    names = ["pdfFile", "openAIEmbeddings", "chatOpenAI", "conversationalRetrievalQAChain"]
    wires = [
        ("pdfFile_0", "postgres_0", "document"),
        ("openAIEmbeddings_0", "postgres_0", "embeddings"),
        ("chatOpenAI_0", "conversationalRetrievalQAChain_0", "model"),
        ("postgres_0", "conversationalRetrievalQAChain_0", "vectorStoreRetriever"),
    ]
    params = {
        "pdfFile": {"pdfFile": pdf_loader().loader_config["pdfFile"]},
        "conversationalRetrievalQAChain": {"returnSourceDocuments": True},
    }
    ops: list[PatchOp] = [
        *(AddNode(node_name=name, node_id=f"{name}_0", params=params.get(name, {})) for name in names),
        AddNode(node_name="postgres", node_id="postgres_0", params=config),
        *(Connect(source_node_id=source, target_node_id=to, target_anchor=at) for source, to, at in wires),
        *(
            BindCredential(node_id=f"{name}_0", credential_type="openAIApi", credential_id=openai)
            for name in ("chatOpenAI", "openAIEmbeddings")
        ),
        BindCredential(node_id="postgres_0", credential_type="PostgresApi", credential_id=credential),
    ]
    return compile_ops(GraphIR.empty(), ops, schemas).flow_data


def publisher_of(client: FlowiseClient, intents: FakeIntents) -> Publisher:
    fakes: Any = (intents, FakeVersions())
    return Publisher(
        session_id=SESSION, instance_id="main", client=client, intents=fakes[0], lease=None, versions=fakes[1]
    )


async def test_a_flow_finds_what_was_written_to_its_vector_store_once(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, vectors: VectorSpec, schemas: Schemas
) -> None:
    text = bot_on(vectors, flowise.credentials["openAIApi"], schemas)
    flow = await flowise_client.create_chatflow(ChatflowCreate(name="Bot", flow_data=text))
    ((node_id, _, sha256),) = fed_vector_stores(GraphIR.from_flow_data(flow.flow_data), {"postgres_0", "chatOpenAI_0"})
    question = "How many days of vacation?"
    with pytest.raises(FlowiseServerError, match="does not exist"):
        await flowise_client.predict(flow.id, question, session_id="before")

    intents = FakeIntents()
    assert await publisher_of(flowise_client, intents).upsert(flow.id, node_id, sha256) == 1
    assert await publisher_of(flowise_client, intents).upsert(flow.id, node_id, sha256) is None
    filled = await flowise_client.predict(flow.id, question, session_id="after")
    assert [one["pageContent"] for one in filled.source_documents] == [TEXT]

    # A worker was lost between the call and its answer: Flowise's history tells.
    (row,) = intents.rows.values()
    intents.rows[row.key] = replace(row, status="open", result=None)
    assert await publisher_of(flowise_client, intents).upsert(flow.id, node_id, sha256) == 1
    assert await flowise_client.upserts(flow.id) == [1]


@pytest.mark.parametrize("has_manager", [False, True])
async def test_a_second_upsert_adds_all_again_unless_a_record_manager_is_connected(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, vectors: VectorSpec, schemas: Schemas, has_manager: bool
) -> None:
    text = bot_on(vectors, flowise.credentials["openAIApi"], schemas)
    if has_manager:
        config = {**vectors.vector_store.config, "tableName": f"r_{uuid.uuid4().hex[:8]}"}
        credential = str(config.pop("credential"))
        ops = [
            AddNode(node_name="postgresRecordManager", node_id="manager", params=config),
            Connect(source_node_id="manager", target_node_id="postgres_0", target_anchor="recordManager"),
            BindCredential(node_id="manager", credential_type="PostgresApi", credential_id=credential),
        ]
        text = compile_ops(GraphIR.from_flow_data(text), ops, schemas).flow_data
    flow = await flowise_client.create_chatflow(ChatflowCreate(name="Bot", flow_data=text))
    for _ in range(2):
        await flowise_client.upsert_vectors(flow.id, "postgres_0", timeout=30)
    answer = await flowise_client.predict(flow.id, "How many days of vacation?", session_id="twice")
    assert [one["pageContent"] for one in answer.source_documents] == [TEXT] * (1 if has_manager else 2)

    found = validate_flow(text, schemas=schemas, credentials=None)
    assert ("UPSERT_DOUBLES" in {one.code for one in found}) is not has_manager


async def test_a_vector_store_that_cannot_be_filled_is_said(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, vectors: VectorSpec, schemas: Schemas
) -> None:
    text = bot_on(vectors, flowise.credentials["openAIApi"], schemas, host="/nonexistent")
    flow = await flowise_client.create_chatflow(ChatflowCreate(name="Bot", flow_data=text))
    with pytest.raises(WriteFailedError, match=r"postgres_0 could not be filled: .*ENOENT"):
        await publisher_of(flowise_client, FakeIntents()).upsert(flow.id, "postgres_0", "x")


def managed(vectors: VectorSpec, cleanup: str) -> VectorSpec:
    """The vector store with a record manager beside it."""
    config = {name: value for name, value in vectors.vector_store.config.items() if name != "tableName"}
    own = {"tableName": f"r_{uuid.uuid4().hex[:8]}", "namespace": "n", "cleanup": cleanup, "sourceIdKey": "source"}
    manager = Component(name="postgresRecordManager", config={**config, **own})
    return vectors.model_copy(update={"record_manager": manager})


@pytest.mark.parametrize("cleanup", ["full", "incremental", None])
async def test_a_file_that_is_added_to_a_store_is_found_and_taken_out_alone(
    flowise_client: FlowiseClient, store: str, vectors: VectorSpec, cleanup: str | None
) -> None:
    first = pdf_loader()
    await flowise_client.save_loader(store, first)
    await flowise_client.process_loader(store, first, timeout=30)
    await flowise_client.insert_vectors(store, managed(vectors, cleanup) if cleanup else vectors, timeout=30)
    name = (await flowise_client.get_document_store(store)).name
    text = "The canteen opens at eleven."
    # The source is that of every file.
    config = {"text": text, "metadata": '{"source": "blob"}'}
    plain = LoaderSpec(id=str(uuid.uuid4()), loader_id="plainText", loader_name="Plain Text", loader_config=config)
    spec = StoreSpec(name=name, about="", loaders=[plain], id=store, like=store)
    intents = FakeIntents()

    for _ in range(2):
        made = await publisher_of(flowise_client, intents).make_store(spec, lambda _: None)
        assert (made.id, made.chunks) == (store, 1)
    found = [one.page_content for one in await flowise_client.query_document_store(store, "canteen")]
    assert sorted(found) == sorted([text, TEXT])

    publisher = publisher_of(flowise_client, intents)
    ((_, added),) = await publisher.own_files()
    said = await publisher.remove_file(store, added)
    assert said.startswith(f"Removed Plain Text from the document store '{name}'.")
    assert ("stay in postgres" in said) is (cleanup is None)
    assert await publisher.own_files() == []
    after = await flowise_client.get_document_store(store)
    assert ([one.id for one in after.loaders], after.status) == ([first.id], "UPSERTED")
    left = [one.page_content for one in await flowise_client.query_document_store(store, "canteen")]
    assert sorted(left) == (sorted([text, TEXT]) if cleanup is None else [TEXT])


@pytest.mark.parametrize("cleanup", ["full", "incremental"])
async def test_a_refresh_keeps_the_vectors_of_every_source_which_an_insert_of_one_source_does_not(
    flowise_client: FlowiseClient,
    flowise: FlowiseAccess,
    database: Database,
    store: str,
    vectors: VectorSpec,
    cleanup: str,
) -> None:
    spec = managed(vectors, cleanup)
    other = f"{str(placeholder_file('.pdf', 'The canteen opens at eleven.')).rpartition(',')[0]},filename:Canteen.pdf"
    loaders = [pdf_loader(), pdf_loader(other)]
    for loader in loaders:
        await flowise_client.save_loader(store, loader)
        await flowise_client.process_loader(store, loader, timeout=30)
    await flowise_client.insert_vectors(store, spec, timeout=30)
    await flowise_client.insert_vectors(store, spec, loader_id=loaders[0].id, timeout=30)
    assert len(await flowise_client.query_document_store(store, "canteen")) == 1

    servers = [{"id": "main", "endpoint": flowise.endpoint, "api_key": flowise.api_key.get_secret_value()}]
    instances = Instances(FlowiseSettings(FLOWISE_INSTANCES=json.dumps(servers)))
    try:
        for _ in range(2):
            done = await refresh_store(instances, AuditLog(database), uuid.UUID(store), None)
            assert (done.written, done.store.chunks, done.store.status) == (2, 2, "UPSERTED")
    finally:
        await instances.aclose()
    assert len(await flowise_client.query_document_store(store, "canteen")) == 2
    rows, _ = await AuditLog(database).page(AuditFilter(action="store.refresh"), limit=5)
    assert [row.words for row in rows] == ["Handbook: 2 of 2 sources, 2 pieces in the vector store"] * 2


async def test_a_refresh_that_failed_is_in_the_ledger_with_what_it_has_read(
    flowise_client: FlowiseClient,
    flowise: FlowiseAccess,
    database: Database,
    store: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaders = [pdf_loader(), pdf_loader()]
    for loader in loaders:
        await flowise_client.save_loader(store, loader)
        await flowise_client.process_loader(store, loader, timeout=30)
    process = FlowiseClient.process_loader
    read: list[str] = []

    async def once(self: FlowiseClient, store_id: str, loader: LoaderSpec, **options: Any) -> Any:
        if read:
            raise FlowiseTimeoutError("The source was not read.")
        read.append(loader.id)
        return await process(self, store_id, loader, **options)

    monkeypatch.setattr(FlowiseClient, "process_loader", once)
    servers = [{"id": "main", "endpoint": flowise.endpoint, "api_key": flowise.api_key.get_secret_value()}]
    instances = Instances(FlowiseSettings(FLOWISE_INSTANCES=json.dumps(servers)))
    try:
        with pytest.raises(FlowiseTimeoutError):
            await refresh_store(instances, AuditLog(database), uuid.UUID(store), None)
    finally:
        await instances.aclose()
    rows, _ = await AuditLog(database).page(AuditFilter(action="store.refresh"), limit=5)
    assert [row.words for row in rows] == ["Handbook: 1 of 2 sources, 0 pieces in the vector store"]


async def test_two_refreshes_of_one_store_follow_one_another(
    flowise_client: FlowiseClient,
    flowise: FlowiseAccess,
    database: Database,
    store: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loader = pdf_loader()
    await flowise_client.save_loader(store, loader)
    await flowise_client.process_loader(store, loader, timeout=30)
    process = FlowiseClient.process_loader
    reading: list[int] = [0]

    async def counted(self: FlowiseClient, store_id: str, loader: LoaderSpec, **options: Any) -> Any:
        reading[0] += 1
        assert reading[0] == 1
        try:
            return await process(self, store_id, loader, **options)
        finally:
            reading[0] -= 1

    monkeypatch.setattr(FlowiseClient, "process_loader", counted)
    servers = [{"id": "main", "endpoint": flowise.endpoint, "api_key": flowise.api_key.get_secret_value()}]
    instances = Instances(FlowiseSettings(FLOWISE_INSTANCES=json.dumps(servers)))
    try:
        done = await asyncio.gather(
            *(refresh_store(instances, AuditLog(database), uuid.UUID(store), None) for _ in range(2))
        )
    finally:
        await instances.aclose()
    assert [one.store.chunks for one in done] == [1, 1]


async def test_a_refresh_that_would_write_every_piece_twice_is_refused_and_one_without_vectors_is_done(
    flowise_client: FlowiseClient, flowise: FlowiseAccess, database: Database, store: str, vectors: VectorSpec
) -> None:
    loader = pdf_loader()
    await flowise_client.save_loader(store, loader)
    await flowise_client.process_loader(store, loader, timeout=30)
    servers = [{"id": "main", "endpoint": flowise.endpoint, "api_key": flowise.api_key.get_secret_value()}]
    instances = Instances(FlowiseSettings(FLOWISE_INSTANCES=json.dumps(servers)))
    try:
        done = await refresh_store(instances, AuditLog(database), uuid.UUID(store), None)
        assert (done.written, done.store.chunks, done.store.status) == (0, 1, "SYNC")
        await flowise_client.insert_vectors(store, vectors, timeout=30)
        with pytest.raises(InvalidInputError, match="has no record manager"):
            await refresh_store(instances, AuditLog(database), uuid.UUID(store), None)
    finally:
        await instances.aclose()
    assert len(await flowise_client.query_document_store(store, "vacation")) == 1


async def test_the_state_of_a_store_changes_with_what_is_in_it_and_not_with_the_flows_that_read_it(
    flowise_client: FlowiseClient, store: str, vectors: VectorSpec, schemas: Schemas
) -> None:
    async def state() -> str:
        (row,) = [one for one in await flowise_client.list_document_stores() if one.id == store]
        return row.state

    async def read_by(number: int) -> str:
        """The date of the store once it knows this number of flows, which Flowise does not wait for."""
        async with asyncio.timeout(30):
            while len((row := await flowise_client.get_document_store(store)).where_used) != number:
                pass
        return row.updated_date

    loader = pdf_loader()
    await flowise_client.save_loader(store, loader)
    await flowise_client.process_loader(store, loader, timeout=30)
    read = await state()
    await flowise_client.insert_vectors(store, vectors, timeout=30)
    written = await state()
    await flowise_client.insert_vectors(store, vectors, timeout=30)
    assert len({read, written, await state()}) == 3

    ops: list[PatchOp] = [
        AddNode(node_name="documentStore", node_id="documentStore_0", params={"selectedStore": store})
    ]
    text = compile_ops(GraphIR.empty(), ops, schemas).flow_data
    live = await flowise_client.create_chatflow(ChatflowCreate(name="Live", flow_data=text))
    await flowise_client.update_chatflow(live.id, flow_data=text)
    await read_by(1)
    used = await state()
    copy = await flowise_client.create_chatflow(ChatflowCreate(name="Copy of a test", flow_data=text))
    await flowise_client.update_chatflow(copy.id, flow_data=text)
    during = await read_by(2)
    assert await state() == used
    await flowise_client.delete_chatflow(copy.id)
    after = await read_by(1)
    assert (await state(), during != after) == (used, True)
    # A file of the same name and size.
    other = f"{str(placeholder_file('.pdf', TEXT.replace('31', '32'))).rpartition(',')[0]},filename:Our handbook.pdf"
    again = loader.model_copy(update={"loader_config": {**loader.loader_config, "pdfFile": other}})
    await flowise_client.save_loader(store, again)
    await flowise_client.process_loader(store, again, timeout=30)
    await flowise_client.insert_vectors(store, vectors, timeout=30)
    assert await state() != used
