"""Document stores in plans: existing stores are found by name and may get the person's files; other files become a new
store.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID, uuid5

from flowise_dev_agent.errors import FlowiseError, FlowiseServerError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.document_stores import LoaderSpec
from flowise_dev_agent.knowledge.credential_requirements import required_types
from flowise_dev_agent.patch import Finding, GraphIR, Schemas
from flowise_dev_agent.patch.model.attached_files import (
    STORE_FIELD,
    STORE_NODES,
    file_value,
    more_for,
    new_store,
    store_mark,
)
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.requests import FILE_LOADERS
from flowise_dev_agent.planning.session_files import SessionFiles
from flowise_dev_agent.publish import StoreSpec
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.document_stores import DocumentStoreView, PlannedStore
from flowise_dev_agent.schemas.plan import Plan, PlannedNode, PlannedValue
from flowise_dev_agent.texts import text

#: Codes of findings: a new store cannot be searched here, and a file cannot be read.
NO_VECTOR_STORE: Final = "NO_VECTOR_STORE"
FILE_UNREADABLE: Final = "FILE_UNREADABLE"
_OWN_CODES: Final = frozenset({NO_VECTOR_STORE, FILE_UNREADABLE})
_SEARCHED: Final = "documentStoreVS"
_IN_MEMORY: Final = "memoryVectorStore"
_SPLITTER: Final = ("recursiveCharacterTextSplitter", "Recursive Character Text Splitter")
#: Flowise's name of a loader, and the field for its file.
_LOADERS: Final[Mapping[str, tuple[str, str]]] = {
    "pdfFile": ("Pdf File", "pdfFile"),
    "docxFile": ("Docx File", "docxFile"),
    "csvFile": ("Csv File", "csvFile"),
    "textFile": ("Text File", "txtFile"),
}
_LOADER_IDS: Final = UUID("5f0a4b52-6c1b-5b0c-8d53-51f2b9a0c4de")
_PREVIEW_SECS: Final = 60.0
_NAME_CHARS: Final = 100
_PROBE_CHARS: Final = 200
_NAMES_SHOWN: Final = 20


async def document_stores(context: PlanContext) -> PlanContext:
    """Set the document store of each node that reads from one, and add the person's files to an existing store."""
    plan, attachments = context.plan, context.request.attachments
    if plan.answer is not None or context.lookups is None:
        return context
    asked = concerns(plan) or (documents_of(attachments) and stores_of(context.base))
    stores = await context.lookups.document_stores() if asked else []
    plan = with_stores(
        plan, attachments, stores, " ".join(context.words), by_form=context.by_form, schemas=context.schemas
    )
    return context.having(with_additions(plan, context.base, attachments, stores))


async def measured_stores(context: PlanContext) -> PlanContext:
    """Count the chunks that Flowise makes of the stores' files."""
    if context.lookups is None or not context.is_open:
        return context
    return context.having(await context.lookups.measure_stores(context.plan))


def concerns(plan: Plan) -> bool:
    """True if a new node of the plan reads from a document store."""
    return any(node.node_name in STORE_NODES and not node.existing for node in plan.nodes)


def with_stores(
    plan: Plan,
    attachments: Sequence[AttachmentFacts],
    stores: Sequence[DocumentStoreView],
    said: str,
    *,
    by_form: bool = False,
    schemas: Schemas,
) -> Plan:
    """Set a store in each new node that reads from one.

    An existing store is used if the plan names it, or if the person names it and attached no files; it gets the files
    if the plan says so. Otherwise the files become one new store, with the embeddings and vector store of the store
    embedded last. With `by_form`, an in-memory search is replaced by a search in the store where possible.
    """
    plan = plan.model_copy(
        update={"document_stores": [], "findings": [one for one in plan.findings if one.code not in _OWN_CODES]}
    )
    if not concerns(plan):
        return plan
    documents = documents_of(attachments)
    by_words = None if documents else named_in(said, stores)
    named = _chosen(plan, stores) if by_form else by_words
    model = next((one for one in stores if one.can_be_copied), None)
    if by_form and (named.searchable if named else model is not None):
        plan = _searched(plan, schemas)
    values = {(one.node_id, one.param): one for one in plan.values}
    name = shortened(plan.flow_name, _NAME_CHARS)
    made: PlannedStore | None = None
    lacking: list[Finding] = []
    for node in plan.nodes:
        place = (node.node_id, STORE_FIELD)
        if node.node_name not in STORE_NODES or node.existing:
            continue
        chosen = values[place].value if place in values else None
        more = more_for(chosen)
        known = next((one for one in stores if chosen and (more or chosen) in (one.id, one.name)), None)
        if known is None and (by_form or new_store(chosen) is None):
            known = named
        if known is not None:
            if documents and (more or by_form):
                made = grown(known, documents)
            values[place] = PlannedValue(node_id=node.node_id, param=STORE_FIELD, value=known.id)
        elif documents:
            made = made or _planned(new_store(chosen) or name, documents)
            values[place] = PlannedValue(node_id=node.node_id, param=STORE_FIELD, value=store_mark(made.name))
            if node.node_name == _SEARCHED and model is None:
                lacking.append(_no_vector_store(node))
            elif node.node_name == _SEARCHED and model is not None:
                made = made.model_copy(
                    update={
                        "embeddings": model.embeddings,
                        "vector_store": model.vector_store,
                        "like": model.id,
                        "like_name": model.name,
                    }
                )
        elif by_form:
            return plan.model_copy(update={"declined": _which(stores)})
    left = [one for one in values.values() if stands_in(one.value)]
    return plan.model_copy(
        update={
            "values": [*values.values()],
            "placeholders": plan.placeholders if left else [],
            "document_stores": [made] if made else [],
            "findings": [*plan.findings, *lacking],
        }
    )


def _chosen(plan: Plan, stores: Sequence[DocumentStoreView]) -> DocumentStoreView | None:
    """Store that a form names."""
    names = [one.value for one in plan.values if one.param == STORE_FIELD]
    return next((one for one in stores if one.id in names or one.name in names), None)


def stores_of(base: GraphIR) -> dict[str, str]:
    """Nodes of a flow that read from a document store: node id -> store id."""
    held = {node.id: node.inputs.get(STORE_FIELD) for node in base.nodes if node.name in STORE_NODES}
    # A loader holds `<id>` or `<id>:<name>`.
    return {node_id: value.partition(":")[0] for node_id, value in held.items() if isinstance(value, str) and value}


def with_additions(
    plan: Plan, base: GraphIR, attachments: Sequence[AttachmentFacts], stores: Sequence[DocumentStoreView]
) -> Plan:
    """Add the person's files to the store of an existing node, where the plan asks for it by a placeholder."""
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


def documents_of(attachments: Sequence[AttachmentFacts]) -> list[AttachmentFacts]:
    """Files that a store accepts: no images, and no tables of questions or examples."""
    return [one for one in attachments if one.kind in FILE_LOADERS and not (one.tests or one.examples)]


def named_in(said: str, stores: Sequence[DocumentStoreView]) -> DocumentStoreView | None:
    """Store whose id or name occurs in the text; the longest name of several; None if no store is named."""
    if exact := next((one for one in stores if one.id in said), None):
        return exact
    found = [one for one in stores if re.search(rf"(?<!\w){re.escape(one.name)}(?!\w)", said, re.IGNORECASE)]
    return max(found, key=lambda one: len(one.name), default=None)


def grown(store: DocumentStoreView, documents: Iterable[AttachmentFacts]) -> PlannedStore:
    """Existing store with more files and the same embedding."""
    return PlannedStore(
        name=store.name,
        id=store.id,
        files=[one.name for one in documents],
        embeddings=store.embeddings,
        vector_store=store.vector_store,
        like=store.id if store.searchable else None,
        like_name=store.name if store.searchable else "",
        can_remove=store.can_remove,
    )


def agreed_stores(plan: Plan) -> list[PlannedStore]:
    """Planned stores as the approval covers them, without measured figures."""
    return [one.model_copy(update={"chunks": None}) for one in plan.document_stores]


async def measured(plan: Plan, files: SessionFiles | None, flowise: FlowiseClient) -> Plan:
    """Add to each new store the number of chunks that Flowise makes of its files, and a finding for each unreadable
    file. Nothing is kept on the server.
    """
    stores: list[PlannedStore] = []
    findings: list[Finding] = []
    for store in plan.document_stores:
        count: int | None = 0
        for loader in (await store_spec(store, files, "")).loaders:
            try:
                pieces = await flowise.preview_chunks(loader, timeout=_PREVIEW_SECS)
                count = count + pieces if count is not None else None
            except FlowiseServerError as error:
                findings.append(_unreadable(store, str(error.details.get("flowise_message"))))
            except FlowiseError:
                count = None
        used_by = [shortened(name, _NAME_CHARS) for name in await _users(store, flowise)]
        stores.append(store.model_copy(update={"chunks": count, "used_by": used_by}))
    return plan.model_copy(update={"document_stores": stores, "findings": [*plan.findings, *findings]})


async def _users(store: PlannedStore, flowise: FlowiseClient) -> list[str]:
    """Flows that read from an existing store."""
    return sorted(await flowise.flows_with(store.id)) if store.id else []


async def store_spec(store: PlannedStore, files: SessionFiles | None, session_id: str) -> StoreSpec:
    """Build the store's specification for Flowise; files that the session no longer has are left out."""
    loaders: list[LoaderSpec] = []
    probe = ""
    kinds = {one.name: one.kind for one in await files.facts()} if files else {}
    for name in store.files:
        content = await files.content(name) if files else None
        if content is None:
            continue
        type_ = FILE_LOADERS[kinds[name]]
        label, field = _LOADERS[type_]
        probe = probe or content[2][:_PROBE_CHARS]
        loaders.append(
            LoaderSpec(
                id=str(uuid5(_LOADER_IDS, f"{session_id}|{store.name}|{name}")),
                loader_id=type_,
                loader_name=label,
                # The pieces of a file do not name it otherwise.
                loader_config={
                    field: file_value([(name, content[0], content[1])]),
                    "metadata": json.dumps({"file": name}),
                },
                splitter_id=_SPLITTER[0],
                splitter_name=_SPLITTER[1],
                splitter_config={"chunkSize": store.chunk_size, "chunkOverlap": str(store.chunk_overlap)},
            )
        )
    return StoreSpec(name=store.name, about=about(store), loaders=loaders, id=store.id, like=store.like, probe=probe)


def about(store: PlannedStore) -> str:
    """Description of a store on the server."""
    return f"Made of {', '.join(store.files)}"


def _planned(name: str, documents: Iterable[AttachmentFacts]) -> PlannedStore:
    return PlannedStore(name=new_store(store_mark(name)) or "Documents", files=[one.name for one in documents])


def _which(stores: Sequence[DocumentStoreView]) -> str:
    """Question that asks for the store to use."""
    names = [one.name for one in stores[:_NAMES_SHOWN]]
    return text("declined.store_which", names=names) if names else text("declined.store_none")


def _searched(plan: Plan, schemas: Schemas) -> Plan:
    """Replace an in-memory search, which embeds its chunks at each question, by a search in the document store."""
    loaders = [node for node in plan.nodes if node.node_name == "documentStore" and not node.existing]
    others = [node for node in plan.nodes if node not in loaders and _gives_documents(node, schemas)]
    memory = [node for node in plan.nodes if node.node_name == _IN_MEMORY and not node.existing]
    if len(loaders) != 1 or len(memory) != 1 or others:
        return plan
    embeds = [node for node in plan.nodes if _category(node, schemas) == "Embeddings" and not node.existing]
    gone = {node.node_id for node in [*memory, *embeds]}
    searched = loaders[0].model_copy(update={"node_id": f"{_SEARCHED}_0", "node_name": _SEARCHED})
    nodes = [searched if node is loaders[0] else node for node in plan.nodes if node.node_id not in gone]
    moved = {loaders[0].node_id: searched.node_id}
    parts = [
        part.model_copy(
            update={"nodes": [*dict.fromkeys(moved.get(id_, id_) for id_ in part.nodes if id_ not in gone)]}
        )
        for part in plan.parts
    ]
    return plan.model_copy(
        update={
            "nodes": nodes,
            "parts": parts,
            "values": [one for one in plan.values if one.node_id not in {*gone, *moved}],
            "credential_requirements": required_types(
                [schema for node in nodes if not node.existing and (schema := schemas.get(node.node_name))],
                dict.fromkeys(plan.credential_requirements, 1),
            ),
        }
    )


def _gives_documents(node: PlannedNode, schemas: Schemas) -> bool:
    return _category(node, schemas) == "Document Loaders" and not node.existing


def _category(node: PlannedNode, schemas: Schemas) -> str:
    schema = schemas.get(node.node_name)
    return schema.category if schema else ""


def _no_vector_store(node: PlannedNode) -> Finding:
    return Finding(
        code=NO_VECTOR_STORE,
        severity="error",
        detail="No document store of this Flowise has a vector store that a new one could use.",
        where=node.node_id,
        hint="Use the loader documentStore with memoryVectorStore and embeddings, or set up a store in Flowise first.",
    )


def _unreadable(store: PlannedStore, said: str) -> Finding:
    return Finding(
        code=FILE_UNREADABLE,
        severity="error",
        detail=f"Flowise cannot read a file of the document store '{store.name}': {shortened(said, 200)}",
        params={"store": store.name, "reason": shortened(said, 200)},
        hint="Hand it over in another form.",
    )
