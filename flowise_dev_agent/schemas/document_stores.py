"""Document stores of Flowise: existing ones, and ones that a plan makes from the person's files."""

from pydantic import Field

from flowise_dev_agent.schemas.base import Contract


class DocumentStoreView(Contract):
    """A document store of an instance, without the settings of its components."""

    id: str
    name: str
    description: str = ""
    status: str = Field(description="EMPTY, SYNC (read), UPSERTED (in its vector store), STALE, SYNCING or UPSERTING.")
    searchable: bool = Field(description="True if a flow can search it (node documentStoreVS).")
    sources: list[str] = Field(default_factory=list, description="Names of files, addresses, else types of loaders.")
    chunks: int = Field(default=0, description="Pieces that its texts were split into.")
    embeddings: str = Field(default="", description="Embeddings: node type and model.")
    vector_store: str = Field(default="", description="Node type.")
    used_by: list[str] = Field(default_factory=list, description="Names or ids of flows.")
    can_be_copied: bool = Field(
        default=False, description="True if a new store may use the same vector store with its own collection."
    )
    can_remove: bool = Field(
        default=True,
        description="True if pieces can be removed again: it has a record manager, or no vector store. Without that"
        " a refresh writes every piece once more.",
    )


class DocumentStoreList(Contract):
    """The document stores of an instance, last updated first."""

    instance: str
    stores: list[DocumentStoreView]


class RefreshedStore(Contract):
    """A document store whose sources were read again."""

    store: DocumentStoreView
    written: int = Field(description="Pieces that its vector store holds of it, those that were there included.")


class PlannedStore(Contract):
    """A document store that is created or filled with the person's files before the flow is written."""

    name: str = Field(min_length=1, max_length=120)
    id: str | None = Field(default=None, description="Of the store that exists and gets the files.")
    files: list[str] = Field(min_length=1)
    chunk_size: int = Field(default=1_000, description="Characters of a piece, at most.")
    chunk_overlap: int = 200
    chunks: int | None = Field(default=None, description="Pieces that Flowise made of the files when it was planned.")
    embeddings: str = Field(default="", description="Node type and model that embed the pieces.")
    vector_store: str = Field(default="", description="Node type; empty: the flow keeps the vectors in memory.")
    like: str | None = Field(
        default=None, description="Id of the store whose embeddings, vector store and credentials are used."
    )
    like_name: str = ""
    used_by: list[str] = Field(default_factory=list, description="Flows that answer from a store that exists.")
    can_remove: bool = Field(default=True, description="True if a rollback removes the pieces from the vector store.")
