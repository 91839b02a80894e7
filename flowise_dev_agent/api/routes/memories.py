"""Memories: the accepted flows that new ones may start from (patterns), and what people had remembered (notes)."""

from typing import Annotated

from fastapi import Path, Query

from flowise_dev_agent.api.deps import MAX_SEQ, MemoriesOfOwner, words
from flowise_dev_agent.api.once import ONCE, OnceRoute
from flowise_dev_agent.api.responses import REPEATED, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.schemas.node_artifacts import MemoryDetail, MemoryKind, MemoryPage, NewMemory

router = Routes(prefix="/memories", tags=["patterns"], route_class=OnceRoute)


@router.get("", responses=declared())
async def list_memories(
    memories: MemoriesOfOwner,
    query: Annotated[str, words("query_text")],
    memory_id: Annotated[int | None, Query(ge=1, le=MAX_SEQ, description="Only this one.")] = None,
    instance: Annotated[str | None, Query(max_length=64, description="Only of this Flowise instance.")] = None,
    kind: Annotated[MemoryKind | None, Query(description="Only notes, or only patterns.")] = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000, description="Those before it are left out.")] = 0,
) -> MemoryPage:
    """Notes and patterns that the service remembers for the owner: notes first, best matches of the words first."""
    return await memories.page(
        query=query, memory_id=memory_id, instance_id=instance, limit=limit, offset=offset, kind=kind
    )


@router.post(
    "",
    status_code=201,
    dependencies=[ONCE],
    responses=declared("memory_not_found", "secret_in_text", *REPEATED),
)
async def add_memory(body: NewMemory, memories: MemoriesOfOwner) -> MemoryDetail:
    """Have a note remembered: a model that plans reads it with every later requirement. `replace` puts it in the place
    of `memory_id`."""
    return await memories.add(body)


@router.delete("/{memory_id}", status_code=204, responses=declared("memory_not_found"))
async def delete_memory(
    memory_id: Annotated[int, Path(ge=1, le=MAX_SEQ, description="The note's id.")], memories: MemoriesOfOwner
) -> None:
    """Forget a note. A pattern is removed by `DELETE /patterns/{id}`."""
    await memories.delete(memory_id)
