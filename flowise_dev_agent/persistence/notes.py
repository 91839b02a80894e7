"""Repository of notes: short texts that users store for their flows. The database shows only the caller's owner's."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from flowise_dev_agent.errors import MemoryNotFoundError
from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Database
from flowise_dev_agent.sanitize import clean_text
from flowise_dev_agent.texts import text

#: Notes kept per owner and instance; the oldest go first.
MAX_NOTES: Final = 200
_COLUMNS: Final[LiteralString] = "id, instance_id, text, created_at"
_ADD: Final = f"""
    WITH gone AS (
        DELETE FROM notes WHERE id IN (
            SELECT id FROM notes WHERE instance_id = %(instance)s ORDER BY id DESC OFFSET %(others)s))
    INSERT INTO notes (instance_id, text, terms) VALUES (%(instance)s, %(text)s, %(terms)s) RETURNING {_COLUMNS}
"""
_REPLACE: Final = f"""
    UPDATE notes SET text = %(text)s, terms = %(terms)s, created_at = now()
    WHERE id = %(id)s AND instance_id = %(instance)s RETURNING {_COLUMNS}
"""
_RANK: Final[LiteralString] = "ts_rank(search, to_tsquery('simple', %(query)s))"


@dataclass(frozen=True)
class NoteRow:
    """A note."""

    id: int
    instance_id: str
    text: str
    created_at: datetime


class Notes:
    """Repository of notes. Unknown ids raise MemoryNotFoundError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, instance_id: str, text: str, terms: Sequence[str], *, replaces: int | None = None) -> NoteRow:
        """Store a note, or replace one. `terms` are the words by which it is found."""
        params = {
            "id": replaces,
            "instance": instance_id,
            "text": clean_text(text),
            "terms": " ".join(terms),
            "others": MAX_NOTES - 1,
        }
        async with self._database.transaction() as connection:
            cursor = await connection.execute(_ADD if replaces is None else _REPLACE, params)
            row = await cursor.fetchone()
            if row is None:
                raise _unknown(replaces)
            await record(connection, Fact("memory.add", instance_id=instance_id, words=text))
        return NoteRow(**row)

    async def page(
        self, *, instance_id: str | None, terms: Sequence[str], limit: int, note_id: int | None = None
    ) -> list[NoteRow]:
        """Notes that share a word with `terms`, those that share most first; without terms all, newest first."""
        return await self._database.rows(
            NoteRow,
            f"SELECT {_COLUMNS} FROM notes WHERE (%(instance)s::text IS NULL OR instance_id = %(instance)s)"
            " AND (%(id)s::bigint IS NULL OR id = %(id)s)"
            " AND (%(query)s = '' OR search @@ to_tsquery('simple', %(query)s))"
            f" ORDER BY {_RANK} DESC, id DESC LIMIT %(limit)s",
            {"instance": instance_id, "id": note_id, "query": " | ".join(terms), "limit": limit},
        )

    async def nearest(self, instance_id: str, terms: Sequence[str], *, limit: int) -> list[NoteRow]:
        """Notes by the number of words shared with `terms`, then the newest: a note for every flow may share none."""
        return await self._database.rows(
            NoteRow,
            f"SELECT {_COLUMNS} FROM notes WHERE instance_id = %(instance)s"
            f" ORDER BY {_RANK} DESC, id DESC LIMIT %(limit)s",
            {"instance": instance_id, "query": " | ".join(terms), "limit": limit},
        )

    async def delete(self, note_id: int) -> None:
        """Delete a note."""
        async with self._database.transaction() as connection:
            cursor = await connection.execute("DELETE FROM notes WHERE id = %s RETURNING instance_id", (note_id,))
            row = await cursor.fetchone()
            if row is None:
                raise _unknown(note_id)
            await record(connection, Fact("memory.delete", instance_id=row["instance_id"], words=f"note {note_id}"))


def _unknown(note_id: int | None) -> MemoryNotFoundError:
    return MemoryNotFoundError(text("error.no_note", note=str(note_id)), hint=text("error.no_note_hint"))
