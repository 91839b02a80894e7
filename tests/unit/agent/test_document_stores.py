"""Which document store a plan gets: one that exists, or one made of the person's files."""

from typing import Any

import pytest

from flowise_dev_agent.agent.nodes.plan import is_approved
from flowise_dev_agent.agent.state import AgentState, PlanState
from flowise_dev_agent.agent.store_writes import UPSERT_FAILED
from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.errors import AgentError, FlowiseServerError
from flowise_dev_agent.flowise.document_stores import Component, DocumentStore, LoaderSpec, StoreLoader
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from flowise_dev_agent.knowledge.document_stores import view_of
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, BindCredential, Connect, GraphIR, PatchOp, SetParam, compile_ops
from flowise_dev_agent.planning.made_with_flow import plan_with_ids
from flowise_dev_agent.planning.passes.document_stores import (
    NO_VECTOR_STORE,
    agreed_stores,
    measured,
    store_spec,
    with_stores,
)
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.plan import Intent, Plan, PlannedNode, PlannedValue
from tests.unit.agent.rig import OPENAI, Bench, BenchFlowise, plan
from tests.unit.agent.test_attached import HANDBOOK, Files
from tests.unit.agent.test_graph import credentials

SCHEMAS = NodeStore.from_snapshot().schemas
NOTES = AttachmentFacts(name="notes.md", kind="markdown", size=5)
HR = DocumentStoreView(id="id-hr", name="HR policies", status="UPSERTED", searchable=True, can_be_copied=True,
                       embeddings="openAIEmbeddings (small)", vector_store="postgres")  # fmt: skip
DRAFTS = DocumentStoreView(id="id-drafts", name="HR", status="SYNC", searchable=False)


def proposed(store_node: str, *others: str, **values: Any) -> Plan:
    names = [store_node, *others, "chatOpenAI", "conversationalRetrievalQAChain"]
    nodes = [PlannedNode(node_id=f"{name}_0", node_name=name, purpose=name) for name in names]
    return plan(nodes=nodes, **values)


def chosen(store: str, node: str = "documentStore") -> PlannedValue:
    return PlannedValue(node_id=f"{node}_0", param="selectedStore", value=store)


def value_of(made: Plan) -> list[object]:
    return [one.value for one in made.values if one.param == "selectedStore"]


def stored(made: Plan, said: str = "", *, files: Any = (), stores: Any = (), by_form: bool = False) -> Any:
    return with_stores(made, files, stores, said, by_form=by_form, schemas=SCHEMAS)


@pytest.mark.parametrize("said", ["Answer from HR policies.", "Source: id-hr"])
@pytest.mark.parametrize("chosen", ["HR policies", "id-hr", None])
def test_a_store_that_exists_is_taken_by_id_by_name_or_by_the_persons_words(chosen: str | None, said: str) -> None:
    given = [PlannedValue(node_id="documentStoreVS_0", param="selectedStore", value=chosen)] if chosen else []
    made = stored(proposed("documentStoreVS", values=given), said, stores=[DRAFTS, HR])
    assert value_of(made) == ["id-hr"]
    assert made.document_stores == []


def test_files_become_a_store_like_the_one_that_was_embedded_last() -> None:
    made = stored(proposed("documentStoreVS"), files=[HANDBOOK, NOTES], stores=[DRAFTS, HR])
    (store,) = made.document_stores
    assert (store.name, store.files) == ("Support bot", ["handbook.pdf", "notes.md"])
    assert (store.like, store.embeddings, store.vector_store) == ("id-hr", HR.embeddings, "postgres")
    assert value_of(made) == ["[NEW STORE: Support bot]"]
    assert capability_of(made, SCHEMAS, GraphIR.empty()).effects == ["document_store"]
    shown = plan_markdown(made)
    assert "handbook.pdf, notes.md" in shown
    assert "embedded with openAIEmbeddings (small) in postgres, as the store HR policies" in shown
    assert value_of(plan_with_ids(made, {"[NEW STORE: Support bot]": "id-new"})) == ["id-new"]


def test_without_a_vector_store_to_use_a_search_is_refused_and_a_loader_is_not() -> None:
    searched = stored(proposed("documentStoreVS"), files=[HANDBOOK], stores=[DRAFTS])
    assert [one.code for one in searched.findings] == [NO_VECTOR_STORE]
    assert [one.code for one in stored(searched, files=[HANDBOOK], stores=[DRAFTS]).findings] == [NO_VECTOR_STORE]
    loaded = stored(proposed("documentStore", "memoryVectorStore", "openAIEmbeddings"), files=[HANDBOOK])
    assert loaded.findings == []
    assert (loaded.document_stores[0].like, loaded.document_stores[0].vector_store) == (None, "")


@pytest.mark.parametrize(("stores", "searched"), [([HR], True), ([DRAFTS], False)])
def test_what_a_form_plans_in_memory_is_searched_where_that_is_possible(stores: Any, searched: bool) -> None:
    form = proposed("documentStore", "memoryVectorStore", "openAIEmbeddings")
    made = stored(form, files=[HANDBOOK], stores=stores, by_form=True)
    names = {node.node_name for node in made.nodes}
    assert ("documentStoreVS" in names, "memoryVectorStore" in names, "openAIEmbeddings" in names) == (
        searched,
        not searched,
        not searched,
    )
    assert len(made.document_stores) == 1


def test_a_store_that_a_form_names_and_the_server_lacks_is_asked_for() -> None:
    asked = stored(proposed("documentStore", values=[chosen("Payroll")]), stores=[HR, DRAFTS], by_form=True)
    assert asked.declined == "There are: HR policies, HR. Which document store should it answer from?"
    assert asked.asks


@pytest.mark.parametrize("searched", [True, False])
def test_a_store_that_a_form_names_is_searched_where_that_is_possible(searched: bool) -> None:
    names = ("documentStore", "memoryVectorStore", "openAIEmbeddings")
    store = HR if searched else DRAFTS
    made = stored(proposed(*names, values=[chosen(store.name)]), stores=[HR, DRAFTS], by_form=True)
    assert value_of(made) == [store.id]
    assert ("documentStoreVS_0" in {node.node_id for node in made.nodes}) is searched


@pytest.mark.parametrize(
    ("given", "by_form", "adds"),
    [
        ("HR policies", True, True),
        ("[ADD TO STORE: HR policies]", False, True),
        ("[ADD TO STORE: id-hr]", False, True),
        ("id-hr", False, False),
    ],
    ids=["form", "mark by name", "mark by id", "an id alone"],
)
def test_files_are_added_to_a_store_only_where_form_or_plan_say_so(given: str, by_form: bool, adds: bool) -> None:
    planned = proposed("documentStoreVS", values=[chosen(given, "documentStoreVS")])
    made = stored(planned, "Answer from HR policies", files=[HANDBOOK], stores=[HR], by_form=by_form)
    assert [one.id for one in made.document_stores if one.id] == (["id-hr"] if adds else [])
    assert value_of(made) == ["id-hr"]


def test_what_is_added_to_a_store_is_shown_with_the_flows_that_use_it_and_whether_it_can_be_undone() -> None:
    given = [PlannedValue(node_id="documentStoreVS_0", param="selectedStore", value="[ADD TO STORE: HR policies]")]
    store = HR.model_copy(update={"can_remove": False})
    made = stored(proposed("documentStoreVS", values=given), files=[HANDBOOK], stores=[store])
    grown = made.document_stores[0].model_copy(update={"chunks": 1, "used_by": ["Bot A", "Bot B"]})
    made = made.model_copy(update={"document_stores": [grown]})
    assert capability_of(made, SCHEMAS, GraphIR.empty()).effects == ["document_store"]
    assert (
        "- **HR policies**: pieces of handbook.pdf: 1, at most 1000 characters each; added to the store that exists; "
        "embedded with openAIEmbeddings (small) in postgres; flows that use it: Bot A, Bot B; "
        "a rollback leaves them in the vector store\n"
    ) in plan_markdown(made)


def test_an_approval_does_not_cover_other_files_or_another_vector_store() -> None:
    approved = stored(proposed("documentStoreVS"), files=[HANDBOOK], stores=[HR])
    approved = approved.model_copy(update={"capability": capability_of(approved, SCHEMAS, GraphIR.empty())})
    state = AgentState(plan=PlanState(contract=approved, approved=True, agreed=approved.capability))
    counted = [one.model_copy(update={"chunks": 7}) for one in approved.document_stores]
    assert is_approved(state, approved, approved.model_copy(update={"document_stores": counted}))
    for change in ({"files": ["other.pdf"]}, {"like": "another"}):
        other = [one.model_copy(update=change) for one in agreed_stores(approved)]
        assert not is_approved(state, approved, approved.model_copy(update={"document_stores": other}))


async def test_the_pieces_are_counted_before_the_approval_and_a_broken_file_is_said() -> None:
    made = stored(proposed("documentStoreVS"), files=[HANDBOOK], stores=[HR])

    class Server:
        def __init__(self, error: Exception | None = None) -> None:
            self.error = error

        async def preview_chunks(self, loader: LoaderSpec, *, timeout: float) -> int:  # noqa: ASYNC109
            if self.error:
                raise self.error
            assert loader.loader_config["metadata"] == '{"file": "handbook.pdf"}'
            return 4

    files: Any = Files(HANDBOOK)
    server: Any = Server()
    assert (await measured(made, files, server)).document_stores[0].chunks == 4
    broken: Any = Server(FlowiseServerError("x", details={"flowise_message": "Invalid PDF structure"}))
    (finding,) = (await measured(made, files, broken)).findings
    assert finding.code == "FILE_UNREADABLE"
    assert "Invalid PDF structure" in finding.message
    one, two = [(await store_spec(made.document_stores[0], files, session)).loaders[0].id for session in "ab"]
    assert one != two


def test_a_view_shows_no_settings() -> None:
    store = DocumentStore(
        id="1",
        name="HR",
        status="UPSERTED",
        loaders=[StoreLoader(id="l", loader_id="cheerio", source="https://x.test/?key=secret", total_chunks=2)],
        vector_store_config=Component(name="postgres", config={"host": "db.secret", "password": "secret"}),
        embedding_config=Component(name="openAIEmbeddings", config={"modelName": "small", "credential": "secret"}),
        where_used=[{"id": "f", "name": "Bot"}],
    )
    view = view_of(store)
    assert "secret" not in view.model_dump_json()
    assert (view.sources, view.used_by, view.can_be_copied) == (["https://x.test/"], ["Bot"], True)
    unknown = store.model_copy(update={"vector_store_config": Component(name="supabase")})
    assert not view_of(unknown).can_be_copied


def filled_ops() -> list[PatchOp]:
    names = ["plainText", "openAIEmbeddings", "chatOpenAI", "conversationalRetrievalQAChain"]
    wires = [
        ("plainText_0", "qdrant_0", "document"),
        ("openAIEmbeddings_0", "qdrant_0", "embeddings"),
        ("chatOpenAI_0", "conversationalRetrievalQAChain_0", "model"),
        ("qdrant_0", "conversationalRetrievalQAChain_0", "vectorStoreRetriever"),
    ]
    address: Any = {"qdrantServerUrl": "http://qdrant.test", "qdrantCollection": "hr"}
    ops: list[PatchOp] = [
        *(
            AddNode(node_name=name, node_id=f"{name}_0", params={"text": "31 days"} if name == "plainText" else {})
            for name in names
        ),
        AddNode(node_name="qdrant", node_id="qdrant_0", params=address),
        *(Connect(source_node_id=source, target_node_id=to, target_anchor=at) for source, to, at in wires),
        *(
            BindCredential(node_id=f"{name}_0", credential_type="openAIApi")
            for name in ("chatOpenAI", "openAIEmbeddings")
        ),
    ]
    return ops


class Filled(BenchFlowise):
    """Counts what is written to vector stores; `added` may be an error."""

    def __init__(self, added: int | AgentError) -> None:
        super().__init__()
        self.added = added
        self.written: list[int] = []

    async def upserts(self, chatflow_id: str) -> list[int]:
        return self.written

    async def upsert_vectors(self, chatflow_id: str, node_id: str, *, timeout: float) -> int:  # noqa: ASYNC109
        assert node_id == "qdrant_0"
        if isinstance(self.added, AgentError):
            raise self.added
        self.written.append(self.added)
        return self.added


BROKEN = FlowiseServerError("x", details={"status": 500, "flowise_message": "connect ECONNREFUSED"})


@pytest.mark.parametrize(
    ("added", "said"),
    [(3, None), (0, "The loader found no text"), (BROKEN, "could not be written: connect ECONN")],
)
async def test_the_vector_store_of_a_written_flow_is_filled_within_the_approval(
    added: int | AgentError, said: str | None
) -> None:
    names = ["plainText", "qdrant", "openAIEmbeddings", "chatOpenAI", "conversationalRetrievalQAChain"]
    nodes = [PlannedNode(node_id=f"{name}_0", node_name=name, purpose=name) for name in names]
    bench = Bench(filled_ops(), credentials(OPENAI), flowise=Filled(added))
    values = [PlannedValue(node_id="qdrant_0", param="qdrantServerUrl", value="http://qdrant.test")]
    bench.reasoner.plans = [plan(nodes=nodes, values=values)]

    approval = await bench.start("A bot that answers from Qdrant at http://qdrant.test")
    assert approval["data"]["capability"]["effects"] == ["upsert:qdrant_0"]
    assert "Documents are written to the vector store Qdrant." in approval["data"]["plan"]
    review = await bench.answer(action="approve")

    assert review["type"] == "result_review"
    warnings = [one for one in review["data"]["warnings"] if one["code"] == UPSERT_FAILED]
    assert [said in one["message"] for one in warnings] == ([True] if said else [])
    told = [one["summary"] for one in bench.events if one["type"] == "write"]
    assert ("Wrote 3 pieces to the vector store Qdrant" in told) == (added == 3)


async def test_no_placeholder_is_written_among_the_documents_of_a_vector_store() -> None:
    names = ["plainText", "qdrant", "openAIEmbeddings", "chatOpenAI", "conversationalRetrievalQAChain"]
    nodes = [PlannedNode(node_id=f"{name}_0", node_name=name, purpose=name) for name in names]
    server = Filled(BROKEN)
    bench = Bench(filled_ops(), credentials(OPENAI), flowise=server)
    values = [
        PlannedValue(node_id="qdrant_0", param="qdrantServerUrl", value="http://qdrant.test"),
        PlannedValue(node_id="plainText_0", param="text", value="[PLACEHOLDER: paste the handbook]"),
    ]
    bench.reasoner.plans = [plan(nodes=nodes, values=values)]
    await bench.start("A bot that answers from Qdrant at http://qdrant.test")
    review = await bench.answer(action="approve")
    (warning,) = [one for one in review["data"]["warnings"] if one["code"] == UPSERT_FAILED]
    assert "Still to be filled in: Plain Text" in warning["message"]


class Live(BenchFlowise):
    """Keeps what is written to which vector store, and the flow that holds it."""

    def __init__(self) -> None:
        super().__init__()
        self.filled: list[tuple[str, str]] = []
        self.made: dict[str, str] = {}

    async def create_chatflow(self, chatflow: ChatflowCreate) -> Chatflow:
        row = await super().create_chatflow(chatflow)
        self.made[row.id] = row.flow_data
        return row

    async def upserts(self, chatflow_id: str) -> list[int]:
        return [1 for flow, _ in self.filled if flow == chatflow_id]

    async def upsert_vectors(self, chatflow_id: str, node_id: str, *, timeout: float) -> int:  # noqa: ASYNC109
        self.filled.append((chatflow_id, node_id))
        return 1


@pytest.mark.parametrize("place", ["the live one", "another"])
async def test_a_draft_writes_nothing_to_the_vector_store_that_the_live_flow_answers_from(place: str) -> None:
    ops = [
        op.model_copy(update={"node_name": "faiss", "params": {"basePath": "hr"}})
        if isinstance(op, AddNode) and op.node_name == "qdrant"
        else op.model_copy(update={"credential_id": OPENAI})
        if isinstance(op, BindCredential)
        else op
        for op in filled_ops()
    ]
    made = compile_ops(GraphIR.empty(), ops, SCHEMAS).flow_data
    server = Live()
    row = await server.create_chatflow(ChatflowCreate(name="HR bot", flow_data=made))
    changes: list[PatchOp] = [SetParam(node_id="plainText_0", param_name="text", value="45 days")]
    if place == "another":
        changes.append(SetParam(node_id="qdrant_0", param_name="basePath", value="hr2"))
    bench = Bench(changes, credentials(OPENAI), flowise=server)
    bench.reasoner.intents = [Intent(operation="update", ambiguity=0, title="Edit")]
    names = {"plainText_0": "plainText", "qdrant_0": "faiss"}
    nodes = [PlannedNode(node_id=id_, node_name=name, purpose="", existing=True) for id_, name in names.items()]
    values = [
        PlannedValue(node_id=op.node_id, param=op.param_name, value=op.value)
        for op in changes
        if isinstance(op, SetParam)
    ]
    bench.reasoner.plans = [plan(operation="update", nodes=nodes, values=values)]
    approval = await bench.start("45 days in the documents", target=row.id)
    assert approval["data"]["capability"]["effects"] == ["upsert:qdrant_0"], approval
    review = await bench.answer(action="approve")
    assert review["type"] == "result_review", review
    draft = review["data"]["draft"]["id"]
    shared = place == "the live one"
    # What the copies hold in memory is nobody's.
    assert [flow for flow, _ in server.filled if flow in (draft, row.id)] == ([] if shared else [draft])
    stores = {node.name for node in GraphIR.from_flow_data(server.made[server.asked_of[-1]]).nodes}
    assert {"memoryVectorStore", "faiss"} & stores == {"memoryVectorStore" if shared else "faiss"}
    await bench.answer(action="accept")
    assert [flow for flow, _ in server.filled if flow in (draft, row.id)] == [row.id if shared else draft]
