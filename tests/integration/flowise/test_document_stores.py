"""What Flowise 3.1.4 does with document stores, measured; vectors go to pgvector."""

import uuid
from collections.abc import AsyncIterator

import pytest

from flowise_dev_agent.errors import FlowiseNotFoundError, FlowiseServerError
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.document_stores import Component, LoaderSpec, VectorSpec
from flowise_dev_agent.patch.model.placeholders import placeholder_file

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


async def test_a_refresh_without_a_record_manager_writes_every_piece_twice(
    flowise_client: FlowiseClient, store: str, vectors: VectorSpec
) -> None:
    loader = pdf_loader()
    await flowise_client.save_loader(store, loader)
    await flowise_client.process_loader(store, loader, timeout=30)
    await flowise_client.insert_vectors(store, vectors, timeout=30)
    assert await flowise_client.refresh_document_store(store, timeout=30) == 1
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
