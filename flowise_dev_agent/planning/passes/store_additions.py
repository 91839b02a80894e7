"""More files for the document store that a flow answers from already: the store grows, the flow stays as it is."""

from collections.abc import Sequence

from flowise_dev_agent.contracts.attachments import AttachmentFacts
from flowise_dev_agent.contracts.document_stores import DocumentStoreView
from flowise_dev_agent.contracts.plan import PlanContract
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.attached_files import STORE_FIELD, STORE_NODES, more_for
from flowise_dev_agent.planning.passes.document_stores import documents_of, grown


def stores_of(base: GraphIR) -> dict[str, str]:
    """The nodes of a flow that answer from a store -> what they hold: its id."""
    held = {node.id: node.inputs.get(STORE_FIELD) for node in base.nodes if node.name in STORE_NODES}
    # A loader holds `<id>` or `<id>:<name>`.
    return {node_id: value.partition(":")[0] for node_id, value in held.items() if isinstance(value, str) and value}


def with_additions(
    plan: PlanContract, base: GraphIR, attachments: Sequence[AttachmentFacts], stores: Sequence[DocumentStoreView]
) -> PlanContract:
    """The plan with the person's files in the store of an existing node, where the plan says so by a mark."""
    held = {node_id: one for node_id, id_ in stores_of(base).items() for one in stores if one.id == id_}
    documents = documents_of(attachments)
    if not held or not documents:
        return plan
    for value in plan.values:
        wanted = more_for(value.value) if value.node_id in held and value.param == STORE_FIELD else None
        known = next((one for one in stores if wanted in (one.id, one.name)), None)
        if known is None:
            continue
        same = known.id == held[value.node_id].id
        others = [one for one in plan.values if one is not value]
        chosen = [] if same else [value.model_copy(update={"value": known.id})]
        more = [*plan.document_stores, grown(known, documents)]
        plan = plan.model_copy(update={"values": [*others, *chosen], "document_stores": more})
    return plan
