"""Files for the document store that a flow answers from already: a change of the store alone."""

from typing import Any

import pytest

from flowise_dev_agent.flowise.document_stores import Component, DocumentStore
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, PatchOp, compile_ops
from flowise_dev_agent.planning.passes.document_stores import stores_of, with_additions
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.plan import Intent, Plan, PlannedValue
from tests.unit.agent.rig import OPENAI, Bench, BenchFlowise, plan
from tests.unit.agent.test_attached import HANDBOOK, Files
from tests.unit.agent.test_document_stores import DRAFTS, HR
from tests.unit.agent.test_graph import credentials

HR_ID, DRAFTS_ID = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
STORES = [DRAFTS.model_copy(update={"id": DRAFTS_ID}), HR.model_copy(update={"id": HR_ID})]
SCHEMAS = NodeStore.from_snapshot().schemas
TABLE = AttachmentFacts(name="questions.csv", kind="csv", size=5, tests=[("How many?", "31")])
REQUIREMENT = "Add this file to my bot's document store"


def flow(*stores: str) -> GraphIR:
    ops: list[PatchOp] = [
        AddNode(node_name="documentStoreVS", node_id=f"documentStoreVS_{number}", params={"selectedStore": store})
        for number, store in enumerate(stores)
    ]
    ops += [AddNode(node_name=name, node_id=f"{name}_0") for name in ("chatOpenAI", "conversationalRetrievalQAChain")]
    wires = [("chatOpenAI_0", "model"), *((f"documentStoreVS_{n}", "vectorStoreRetriever") for n in range(len(stores)))]
    chain = "conversationalRetrievalQAChain_0"
    ops += [Connect(source_node_id=source, target_node_id=chain, target_anchor=at) for source, at in wires[:2]]
    return compile_ops(GraphIR.empty(), ops, SCHEMAS).graph


def changed(*, mark: str | None = None) -> Plan:
    values = [PlannedValue(node_id="documentStoreVS_0", param="selectedStore", value=mark)] if mark else []
    return plan(operation="update", nodes=[], values=values)


def added(made: Plan, base: GraphIR, *, files: Any = (HANDBOOK,)) -> Any:
    return with_additions(made, base, files, STORES)


def test_a_loader_holds_the_name_of_its_store_behind_its_id() -> None:
    loader = AddNode(
        node_name="documentStore", node_id="documentStore_0", params={"selectedStore": f"{HR_ID}:HR policies"}
    )
    assert stores_of(compile_ops(GraphIR.empty(), [loader], SCHEMAS).graph) == {"documentStore_0": HR_ID}


@pytest.mark.parametrize("mark", ["[ADD TO STORE: HR policies]", f"[ADD TO STORE: {HR_ID}]"])
def test_a_plan_says_by_a_mark_that_the_store_of_a_node_grows(mark: str) -> None:
    made = added(changed(mark=mark), flow(HR_ID))
    (store,) = made.document_stores
    assert (store.id, store.files, store.like) == (HR_ID, ["handbook.pdf"], HR_ID)
    assert (made.values, made.only_fills) == ([], True)


def test_a_mark_for_another_store_also_changes_the_flow() -> None:
    made = added(changed(mark="[ADD TO STORE: HR policies]"), flow(DRAFTS_ID))
    assert [one.id for one in made.document_stores] == [HR_ID]
    assert ([one.value for one in made.values], made.only_fills) == ([HR_ID], False)


@pytest.mark.parametrize(
    ("made", "base", "files"),
    [
        (changed(mark="[ADD TO STORE: Payroll]"), flow(HR_ID), [HANDBOOK]),
        (changed(mark="[ADD TO STORE: HR policies]"), flow(HR_ID), [TABLE]),
        (changed(mark="[ADD TO STORE: HR policies]"), flow(), [HANDBOOK]),
    ],
    ids=["an unknown store", "no document", "a flow without a store"],
)
def test_nothing_is_added_without_a_store_of_the_flow_and_a_document(
    made: Plan, base: GraphIR, files: list[AttachmentFacts]
) -> None:
    assert added(made, base, files=files) == made


class Server(BenchFlowise):
    """Has the store, and a flow that answers from it."""

    def __init__(self) -> None:
        super().__init__()
        part = Component(name="postgres", config={})
        self.stores = [
            DocumentStore(
                id=HR_ID, name="HR policies", status="UPSERTED", vector_store_config=part, embedding_config=part
            )
        ]
        self.row = self.add(ChatflowCreate(name="Travel bot", flow_data=flow(HR_ID).to_flow_data()))

    async def preview_chunks(self, loader: object, *, timeout: float) -> int:  # noqa: ASYNC109
        return 3

    async def flows_with(self, store_id: str) -> list[str]:
        return ["Travel bot"]


async def test_the_approval_covers_the_files_and_says_that_flows_have_them_at_once() -> None:
    server = Server()
    bench = Bench([], credentials(OPENAI), flowise=server)
    bench.files = Files(HANDBOOK)
    bench.reasoner.intents = [Intent(operation="update", ambiguity=0, title="Travel bot")]
    bench.reasoner.plans = [changed(mark="[ADD TO STORE: HR policies]")]

    approval = await bench.start(REQUIREMENT, operation="update", target=server.row.id)

    assert (approval["type"], approval["reason"]) == ("plan_approval", "plan_ready"), approval["message"]
    assert "answer from the new files as soon as those are added" in approval["message"]
    assert approval["data"]["capability"]["effects"] == ["document_store"]
    assert approval["data"]["capability"]["nodes"] == {}
    assert "added to the store that exists" in approval["data"]["plan"]
    await bench.answer(action="cancel")
    assert server.flows[server.row.id] == server.row
