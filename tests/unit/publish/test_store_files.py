"""Sources that are added to stores of people: read and embedded once, and taken out again by their session alone."""

import pytest

from flowise_dev_agent.errors import (
    FlowiseConnectionLostError,
    FlowiseError,
    FlowiseServerError,
    FlowiseTimeoutError,
    WriteFailedError,
)
from flowise_dev_agent.flowise.document_stores import Component
from flowise_dev_agent.publish import StoreSpec, store_files, stores
from tests.unit.publish.test_stores import LOADER, MODEL, SPEC, Desk, Stores

ADDED = StoreSpec(name="Travel", about="", loaders=[LOADER], id=MODEL.id, like=MODEL.id)
OTHER = LOADER.model_copy(update={"id": "l0", "loader_config": {"pdfFile": "data:other"}})


async def test_files_go_into_the_store_that_is_there_and_only_they_are_embedded() -> None:
    desk = Desk(Stores())
    made = await desk.make(ADDED)
    assert (made.id, made.chunks, made.embedded, desk.own) == (MODEL.id, 3, 3, [])
    assert (desk.server.collections, desk.server.embedded) == (["travel"], ["l1"])
    await desk.make(ADDED)
    assert (desk.server.read, desk.server.embedded) == (1, ["l1"])


async def test_a_record_manager_gets_the_whole_store() -> None:
    desk = Desk(Stores())
    desk.server.rows[MODEL.id] = MODEL.model_copy(update={"record_manager_config": Component(name="p", config={})})
    await desk.make(ADDED)
    assert desk.server.embedded == [None]


async def test_of_several_sources_the_one_whose_answer_was_lost_is_looked_at() -> None:
    desk = Desk(Stores())
    await desk.make(StoreSpec(name="Travel", about="", loaders=[OTHER], id=MODEL.id))
    desk.server.lost, desk.server.pieces = "process", 5
    spec = StoreSpec(name="Travel", about="", loaders=[LOADER], id=MODEL.id)
    with pytest.raises(FlowiseConnectionLostError):
        await desk.make(spec)
    assert ((await desk.make(spec)).chunks, desk.server.read) == (5, 2)


async def test_files_whose_embedding_had_a_lost_answer_are_not_embedded_twice() -> None:
    desk = Desk(Stores(lost="insert"))
    await desk.make(ADDED)
    desk.intents.rows = {
        key: row if row.op != "store_embed" else row.__class__(**{**vars(row), "status": "open", "result": None})
        for key, row in desk.intents.rows.items()
    }
    await desk.make(ADDED)
    assert desk.server.embedded == ["l1"]


@pytest.mark.parametrize(
    ("error", "raised", "told"),
    [(FlowiseServerError, WriteFailedError, "failed"), (FlowiseTimeoutError, FlowiseTimeoutError, "open")],
)
async def test_only_flowises_own_error_ends_an_embedding(
    error: type[FlowiseError], raised: type[Exception], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(Stores(failing="insert"))
    desk.server.error = error
    monkeypatch.setattr(store_files, "WAIT_SECS", 0.0)
    with pytest.raises(raised):
        await desk.make(ADDED)
    assert desk.told("store_embed") == [told]


async def test_a_session_takes_out_what_it_added_to_stores_of_people_and_nothing_else() -> None:
    desk = Desk(Stores())
    await desk.make(SPEC)
    await desk.make(ADDED)
    assert await desk.worker().own_files() == [(MODEL.id, "l1")]
    await desk.worker()._open("store_remove", iteration=0, target_id=MODEL.id, sha256="l1", name="l1")
    assert await desk.worker().own_files() == [(MODEL.id, "l1")]
    said = await desk.worker().remove_file(MODEL.id, "l1")
    assert "Its pieces stay in postgres (tableName travel)" in said
    assert await desk.worker().own_files() == []
    assert (desk.server.rows[MODEL.id].loaders, desk.server.vectors_gone) == ([], [])
    assert await desk.worker().remove_file(MODEL.id, "never") == ""


async def test_with_a_record_manager_the_vectors_go_too() -> None:
    desk = Desk(Stores())
    desk.server.rows[MODEL.id] = MODEL.model_copy(update={"record_manager_config": Component(name="p", config={})})
    await desk.make(ADDED)
    assert "stay" not in await desk.worker().remove_file(MODEL.id, "l1")
    assert desk.server.vectors_gone == ["l1"]


async def test_of_a_store_without_vectors_nothing_stays() -> None:
    desk = Desk(Stores())
    desk.server.rows[MODEL.id] = MODEL.model_copy(update={"vector_store_config": None})
    await desk.make(StoreSpec(name="Travel", about="", loaders=[LOADER], id=MODEL.id))
    assert "stay" not in await desk.worker().remove_file(MODEL.id, "l1")


async def test_the_documents_of_a_flow_are_written_once() -> None:
    desk = Desk(Stores(lost="upsert"))
    assert await desk.worker().upsert("f", "n", "a" * 64) == 3
    assert await desk.worker().upsert("f", "n", "a" * 64) is None
    assert desk.server.upserted == 1


@pytest.mark.parametrize(
    ("error", "raised", "told"),
    [(FlowiseServerError, WriteFailedError, "failed"), (FlowiseTimeoutError, FlowiseTimeoutError, "open")],
)
async def test_only_flowises_own_error_ends_the_writing_of_documents(
    error: type[FlowiseError], raised: type[Exception], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(Stores(failing="upsert"))
    desk.server.error = error
    monkeypatch.setattr(stores, "WAIT_SECS", 0.0)
    with pytest.raises(raised):
        await desk.worker().upsert("f", "n", "a" * 64)
    assert desk.told("upsert") == [told]
