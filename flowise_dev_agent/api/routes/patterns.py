"""Patterns: the accepted flows that new ones may start from. See, remove, take along, bring in."""

from typing import Annotated

from fastapi import Path, Query

from flowise_dev_agent.api.deps import MAX_SEQ, IfMatch, MemoriesOfOwner, PatternsOfOwner, words
from flowise_dev_agent.api.once import ONCE, OnceRoute
from flowise_dev_agent.api.responses import REPEATED, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.schemas.base import view_of
from flowise_dev_agent.schemas.node_artifacts import MemoryDetail, MemoryKind, MemoryPage, NewMemory
from flowise_dev_agent.schemas.patterns import (
    Category,
    ImportResult,
    PatternData,
    PatternFile,
    PatternList,
    PatternView,
    Skipped,
)

router = Routes(prefix="/patterns", tags=["patterns"], route_class=OnceRoute)
memories_router = Routes(prefix="/memories", tags=["patterns"], route_class=OnceRoute)

InstanceId = Annotated[str | None, Query(max_length=64, description="Only patterns of this Flowise instance.")]


@router.get("", responses=declared())
async def list_patterns(
    library: PatternsOfOwner,
    query: Annotated[str, words("q")],
    category: Category | None = None,
    instance: InstanceId = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    id: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="Only this one.")] = None,  # noqa: A002 - the parameter's name
) -> PatternList:
    """Patterns, the most successful first."""
    rows = await library.page(query=query or None, category=category, instance_id=instance, limit=limit, pattern_id=id)
    patterns = [view_of(PatternView, row, instance=row.instance_id, ops=len(row.ops)) for row in rows]
    return PatternList(patterns=patterns)


@router.get("/export", responses=declared())
async def export_patterns(library: PatternsOfOwner, instance: InstanceId = None) -> PatternFile:
    """All patterns in a form that `import` takes, here or elsewhere."""
    rows = await library.page(query=None, category=None, instance_id=instance, limit=500)
    return PatternFile(patterns=[view_of(PatternData, row) for row in rows])


@router.post("/import", dependencies=[ONCE], responses=declared(*REPEATED))
async def import_patterns(body: PatternFile, library: PatternsOfOwner, instance: InstanceId = None) -> ImportResult:
    """Import patterns for one instance. An existing pattern for the same words stays unchanged."""
    imported: list[int] = []
    skipped: list[Skipped] = []
    for index, item in enumerate(body.patterns):
        try:
            pattern_id = await library.bring_in(item, instance)
        except ValueError as error:
            skipped.append(Skipped(index=index, reason=str(error)))
            continue
        imported.append(pattern_id)
    return ImportResult(imported=imported, skipped=skipped)


@router.delete("/{pattern_id}", status_code=204, responses=declared("pattern_not_found"))
async def delete_pattern(
    pattern_id: Annotated[int, Path(ge=1, le=2**63 - 1, description="The pattern's id.")],
    library: PatternsOfOwner,
    if_match: IfMatch,
) -> None:
    """Remove a pattern. Flows that were made from it stay."""
    await library.delete(pattern_id, if_match)


# --- memories: patterns, and what people had remembered (notes) ------------------------------------------------------


@memories_router.get("", responses=declared())
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


@memories_router.post(
    "",
    status_code=201,
    dependencies=[ONCE],
    responses=declared("memory_not_found", "secret_in_text", *REPEATED),
)
async def add_memory(body: NewMemory, memories: MemoriesOfOwner) -> MemoryDetail:
    """Have a note remembered: a model that plans reads it with every later requirement. `replace` puts it in the place
    of `memory_id`."""
    return await memories.add(body)


@memories_router.delete("/{memory_id}", status_code=204, responses=declared("memory_not_found"))
async def delete_memory(
    memory_id: Annotated[int, Path(ge=1, le=MAX_SEQ, description="The note's id.")], memories: MemoriesOfOwner
) -> None:
    """Forget a note. A pattern is removed by `DELETE /patterns/{id}`."""
    await memories.delete(memory_id)
