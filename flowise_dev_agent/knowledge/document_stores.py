"""Document stores of an instance, as far as plans and people may see them."""

from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.document_stores import Component, DocumentStore, vectors_like
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import clean_text, shortened
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.texts import counted

_MODEL_FIELDS: Final = ("modelName", "model", "azureOpenAIApiEmbeddingsDeploymentName")
_NAME_CHARS: Final = 120
_SOURCES_SHOWN: Final = 20


async def read_stores(client: FlowiseClient) -> list[DocumentStoreView]:
    """All stores, last updated first. Raises FlowiseError."""
    return [view_of(store) for store in await client.list_document_stores()]


def store_lines(stores: Sequence[DocumentStoreView]) -> list[str]:
    """A line for each store, for a model or a terminal."""
    return [
        f"- {one.id} {one.name} ({one.status}; {'searchable' if one.searchable else 'not searchable'}): "
        + "; ".join(
            part
            for part in (
                f"{counted('pieces', one.chunks)} of {', '.join(one.sources) or 'nothing'}",
                f"{one.embeddings} in {one.vector_store}" if one.vector_store else "no vector store",
                one.description,
            )
            if part
        )
        for one in stores
    ]


def view_of(store: DocumentStore) -> DocumentStoreView:
    """The public view of a store: without settings, which may hold addresses and keys."""
    return DocumentStoreView(
        id=store.id,
        name=_shown(store.name),
        description=_shown(store.description or ""),
        status=store.status,
        searchable=store.status == "UPSERTED",
        sources=[_shown(loader.title) for loader in store.loaders[:_SOURCES_SHOWN]],
        chunks=store.total_chunks,
        embeddings=_model_of(store.embedding_config),
        vector_store=store.vector_store_config.name if store.vector_store_config else "",
        used_by=[_shown(str(one.get("name") if isinstance(one, dict) else one)) for one in store.where_used],
        can_remove=store.vector_store_config is None or store.record_manager_config is not None,
        can_be_copied=store.status == "UPSERTED" and vectors_like(store, "x") is not None,
    )


def _model_of(component: Component | None) -> str:
    if component is None:
        return ""
    model = next((component.config[name] for name in _MODEL_FIELDS if component.config.get(name)), None)
    return f"{component.name} ({_shown(str(model))})" if model else component.name


def _shown(text: str) -> str:
    return clean_text(shortened(masked(" ".join(text.split())), _NAME_CHARS))
