"""Repository of links that show a session, or the history of a flow, to people without a key."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final
from uuid import UUID

from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.errors import ShareNotFoundError
from flowise_dev_agent.persistence.audit import Fact, record
from flowise_dev_agent.persistence.database import Database, across_owners
from flowise_dev_agent.texts import text

_ACTIVE: Final = "revoked_at IS NULL AND ends_at > now()"
_COLUMNS: Final = (
    f"id, owner, session_id, chatflow_id, title, made_by, made_at, ends_at, revoked_at, opened_on, {_ACTIVE} AS active"
)
_ADD: Final = f"""
    WITH old AS (DELETE FROM shares WHERE ends_at < now() - interval '90 days')
    INSERT INTO shares (id, session_id, chatflow_id, title, made_by, ends_at)
    VALUES (%(id)s, %(session)s, %(chatflow)s, %(title)s, %(by)s, %(ends)s) RETURNING {_COLUMNS}
"""


@dataclass(frozen=True)
class ShareRow:
    """A link to a session or a flow. `title` is the subject's title when the link was made."""

    id: UUID
    owner: str
    session_id: UUID | None
    chatflow_id: str | None
    title: str
    made_by: str
    made_at: datetime
    ends_at: datetime
    revoked_at: datetime | None
    #: Day of the last access.
    opened_on: date | None
    active: bool

    def fact(self, action: str) -> Fact:
        """The audit log entry of an action on the link."""
        return Fact(action, session_id=self.session_id, chatflow_id=self.chatflow_id, words=f"link {self.id}")


class Shares:
    """Repository of links. Actions on them are in the audit log. Unknown ids raise ShareNotFoundError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, share_id: UUID, *, session_id: UUID | None, chatflow_id: str | None, title: str, ends_at: datetime
    ) -> ShareRow:
        """Store a new link; links that ended 90 days ago are removed."""
        values = {
            "id": share_id,
            "session": session_id,
            "chatflow": chatflow_id,
            "title": title,
            "by": current_caller().name,
            "ends": ends_at,
        }
        row = await self._change(_ADD, values, "share.create")
        assert row is not None  # noqa: S101 - an insert returns its row
        return row

    async def page(self, *, session_id: UUID | None, chatflow_id: str | None, limit: int) -> list[ShareRow]:
        """Links of a session, of a flow, or all, newest first."""
        return await self._database.rows(
            ShareRow,
            f"SELECT {_COLUMNS} FROM shares WHERE (%(session)s::uuid IS NULL OR session_id = %(session)s)"
            " AND (%(chatflow)s::text IS NULL OR chatflow_id = %(chatflow)s) ORDER BY made_at DESC, id LIMIT %(limit)s",
            {"session": session_id, "chatflow": chatflow_id, "limit": limit},
        )

    async def get(self, share_id: UUID) -> ShareRow:
        """A link of the caller's owner."""
        row = await self._database.row(ShareRow, f"SELECT {_COLUMNS} FROM shares WHERE id = %s", (share_id,))
        if row is None:
            raise _not_found(share_id)
        return row

    async def of_anybody(self, share_id: UUID) -> ShareRow | None:
        """A link of any owner, for its recipient; None if it is gone."""
        with across_owners():
            return await self._database.row(ShareRow, f"SELECT {_COLUMNS} FROM shares WHERE id = %s", (share_id,))

    async def note_opened(self, share_id: UUID) -> None:
        """Record an access to a link: the first one of a day goes to the audit log."""
        statement = (
            "UPDATE shares SET opened_on = current_date WHERE id = %(id)s AND opened_on IS DISTINCT FROM current_date"
            f" RETURNING {_COLUMNS}"
        )
        await self._change(statement, {"id": share_id}, "share.open")

    async def revoke(self, share_id: UUID) -> None:
        """Revoke a link at once. Idempotent."""
        await self.get(share_id)
        statement = (
            f"UPDATE shares SET revoked_at = now() WHERE id = %(id)s AND revoked_at IS NULL RETURNING {_COLUMNS}"
        )
        await self._change(statement, {"id": share_id}, "share.revoke")

    async def _change(self, statement: str, values: Mapping[str, object], action: str) -> ShareRow | None:
        async with self._database.transaction() as connection:
            found = await connection.execute(statement, values)  # pyright: ignore[reportArgumentType]
            changed = await found.fetchone()
            if changed is None:
                return None
            row = ShareRow(**changed)
            await record(connection, row.fact(action))
            return row


def _not_found(share_id: UUID) -> ShareNotFoundError:
    return ShareNotFoundError(text("error.no_share", share=str(share_id)), hint=text("error.no_share_hint"))
