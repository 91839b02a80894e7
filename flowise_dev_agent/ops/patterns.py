"""Administration of the pattern library."""

from functools import cached_property

from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.errors import PatternNotFoundError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.pattern_library import make_pattern, read_ops, terms_of
from flowise_dev_agent.patch import Schemas
from flowise_dev_agent.persistence import Database, Patterns, StoredPattern
from flowise_dev_agent.schemas.etags import Expected
from flowise_dev_agent.schemas.patterns import PatternData
from flowise_dev_agent.texts import text


class PatternService:
    """The patterns of the caller's owner on all instances."""

    def __init__(self, database: Database, instances: Instances) -> None:
        self._rows = Patterns(database)
        self._instances = instances

    async def page(
        self,
        *,
        query: str | None,
        category: str | None,
        instance_id: str | None,
        limit: int,
        pattern_id: int | None = None,
    ) -> list[StoredPattern]:
        """Patterns, the most successful first; a query without a meaningful word finds none."""
        terms = terms_of(query) if query else []
        if query and not terms:
            return []
        return await self._rows.page(
            current_caller().owner,
            instance_id=instance_id,
            category=category,
            terms=terms,
            limit=limit,
            pattern_id=pattern_id,
        )

    async def bring_in(self, data: PatternData, instance_id: str | None) -> int:
        """Store an imported pattern after cleaning; returns its id.

        Raises ValueError when it is not a valid pattern or already stored, InvalidInputError for an unknown instance.
        """
        self._instances.endpoint(instance_id)
        pattern = make_pattern(
            read_ops(data.ops),
            **data.model_dump(exclude={"ops"}),
            schemas=self._schemas,
            owner=current_caller().owner,
            instance_id=instance_id or self._instances.default_id,
        )
        if not pattern.terms:
            raise ValueError("requirement: it has no word to find the pattern by.")
        pattern_id = await self._rows.save(pattern, replace=False)
        if pattern_id is None:
            raise ValueError("there is a pattern for these words already.")
        return pattern_id

    @cached_property
    def _schemas(self) -> Schemas:
        return NodeStore.from_snapshot().schemas

    async def delete(self, pattern_id: int, expected: Expected | None = None) -> None:
        """Delete a pattern. Raises PatternNotFoundError and PreconditionFailedError."""
        if not await self._rows.delete(current_caller().owner, pattern_id, expected):
            raise PatternNotFoundError(
                text("error.no_pattern", pattern=str(pattern_id)), hint=text("error.no_pattern_hint")
            )
