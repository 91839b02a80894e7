"""Memories for clients: patterns and notes of the caller's owner."""

from flowise_dev_agent.errors import SecretInTextError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.pattern_library import terms_of
from flowise_dev_agent.ops.patterns import PatternService
from flowise_dev_agent.persistence import Database, NoteRow, Notes, StoredPattern
from flowise_dev_agent.redaction import holds_secret
from flowise_dev_agent.schemas.base import view_of
from flowise_dev_agent.schemas.node_artifacts import Memory, MemoryDetail, MemoryKind, MemoryPage, NewMemory
from flowise_dev_agent.sessions.node_artifacts import ids_of_request
from flowise_dev_agent.texts import text


class MemoryService:
    """Memories for REST, MCP and the client."""

    def __init__(self, database: Database, instances: Instances) -> None:
        self._notes = Notes(database)
        self._patterns = PatternService(database, instances)
        self._instances = instances

    async def page(
        self,
        *,
        query: str,
        memory_id: int | None,
        instance_id: str | None,
        limit: int,
        offset: int = 0,
        kind: MemoryKind | None = None,
    ) -> MemoryPage:
        """A page of notes, then patterns, best first: all, matches of a query, or the memory with an id."""
        terms = terms_of(query)
        end = offset + limit
        notes: list[NoteRow] = []
        if (terms or not query) and kind != "pattern":
            notes = await self._notes.page(instance_id=instance_id, terms=terms, limit=end, note_id=memory_id)
        patterns: list[StoredPattern] = []
        if kind != "note":
            patterns = await self._patterns.page(
                query=query or None, category=None, instance_id=instance_id, limit=end, pattern_id=memory_id
            )
        items = [*map(_of_note, notes), *map(_of_pattern, patterns)][offset:end]
        return MemoryPage(
            **ids_of_request(), memory_id=memory_id, count=len(items), limit=limit, offset=offset, items=items
        )

    async def add(self, body: NewMemory) -> MemoryDetail:
        """Store a note. Raises SecretInTextError, InvalidInputError for an unknown instance, MemoryNotFoundError."""
        if holds_secret(body.text):
            raise SecretInTextError(text("error.secret_in_note"), details={"field": "text"})
        self._instances.endpoint(body.instance)
        instance_id = body.instance or self._instances.default_id
        row = await self._notes.add(instance_id, body.text, terms_of(body.text), replaces=body.memory_id)
        return MemoryDetail(**ids_of_request(), memory_id=row.id, item=_of_note(row))

    async def delete(self, memory_id: int) -> None:
        """Delete a note. Raises MemoryNotFoundError."""
        await self._notes.delete(memory_id)


def _of_note(row: NoteRow) -> Memory:
    return Memory(memory_id=row.id, kind="note", text=row.text, instance=row.instance_id, created_at=row.created_at)


def _of_pattern(row: StoredPattern) -> Memory:
    return view_of(Memory, row, memory_id=row.id, kind="pattern", text=row.requirement, instance=row.instance_id)
