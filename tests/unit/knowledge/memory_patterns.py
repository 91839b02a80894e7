"""The pattern table in memory, with the same rules."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from uuid import UUID

from flowise_dev_agent.errors import DatabaseUnavailableError
from flowise_dev_agent.persistence import NewPattern, StoredPattern


class MemoryPatterns:
    def __init__(self) -> None:
        self.rows: dict[int, StoredPattern] = {}
        self.uses: set[tuple[int, UUID]] = set()
        self.broken = False

    async def save(self, pattern: NewPattern, *, replace: bool = True) -> int | None:
        self._check()
        for row in self.rows.values():
            if (row.owner, row.instance_id, row.terms) == (pattern.owner, pattern.instance_id, pattern.terms):
                if not replace:
                    return None
                counts = {"success_count": row.success_count, "failure_count": row.failure_count}
                self.rows[row.id] = StoredPattern(**{**asdict(pattern), **counts}, id=row.id)
                return row.id
        id_ = len(self.rows) + 1
        self.rows[id_] = StoredPattern(**asdict(pattern), id=id_, created_at=datetime.now(UTC))
        return id_

    async def matching(
        self, owner: str, instance_id: str, terms: Sequence[str], *, limit: int = 50
    ) -> list[StoredPattern]:
        self._check()
        mine = [row for row in self.rows.values() if (row.owner, row.instance_id) == (owner, instance_id)]
        return [row for row in mine if set(row.terms.split()) & set(terms)][:limit]

    async def record(self, owner: str, pattern_ids: Sequence[int], session_id: UUID, *, accepted: bool) -> None:
        self._check()
        for pattern_id in pattern_ids:
            row = self.rows[pattern_id]
            if (pattern_id, session_id) in self.uses or row.owner != owner:
                continue
            self.uses.add((pattern_id, session_id))
            self.rows[pattern_id] = replace(
                row, success_count=row.success_count + accepted, failure_count=row.failure_count + (not accepted)
            )

    def _check(self) -> None:
        if self.broken:
            raise DatabaseUnavailableError("The database does not answer.")
