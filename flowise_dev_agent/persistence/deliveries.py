"""Stored webhooks: a session's endpoint, the outbox, and the result of each delivery.

Like a run, a delivery belongs to one job at a time, `job_id`: other jobs change nothing.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID, uuid4

from psycopg.rows import DictRow, class_row
from psycopg.types.json import Jsonb

from flowise_dev_agent.errors import DeliveryNotFoundError
from flowise_dev_agent.persistence.database import Connection, Database, across_owners
from flowise_dev_agent.persistence.lost_jobs import take_back_each
from flowise_dev_agent.persistence.queue import DELIVERY_TASK, Queue
from flowise_dev_agent.persistence.read_model import SESSION_COLUMNS, SessionRow
from flowise_dev_agent.schemas.base import JsonObject, TextCode
from flowise_dev_agent.texts import Text, text

_TURN_LOCK_KEY: Final = 5_914_870_236_401_127_369
_COLUMNS: Final = (
    "id, session_id, type, interrupt_id, status, attempts, next_attempt_at, response_status, error, texts, created_at,"
    " updated_at, delivered_at"
)
_MAX_LISTED: Final = 200


@dataclass(frozen=True)
class WebhookMessage:
    """A webhook message: the event's type and its JSON text."""

    type: str
    body: str


#: The message about the current state of a session.
Render = Callable[[SessionRow], WebhookMessage]


@dataclass(frozen=True)
class Endpoint:
    """Target of a session's webhooks. `secret` is its own; None means the service's."""

    url: str
    secret: str | None
    disabled_at: datetime | None

    def __repr__(self) -> str:
        return "Endpoint(...)"


@dataclass(frozen=True)
class DeliveryRow:
    """One delivery as stored, without its body."""

    id: UUID
    session_id: UUID
    type: str
    interrupt_id: str | None
    status: str
    attempts: int
    next_attempt_at: datetime | None
    response_status: int | None
    error: str | None
    #: Codes of the texts in other fields.
    texts: JsonObject
    created_at: datetime
    updated_at: datetime
    delivered_at: datetime | None


@dataclass(frozen=True)
class ListedDelivery:
    """A delivery in the list of all sessions."""

    delivery: DeliveryRow
    session_name: str | None
    url: str


@dataclass(frozen=True)
class DeliveryAttempt:
    """An attempt that this worker may make; `number` counts from 1."""

    id: UUID
    job_id: int
    owner: str
    number: int
    body: str
    endpoint: Endpoint


@dataclass(frozen=True)
class Result:
    """The result of an attempt. `error` is a line for people, without text from the receiver."""

    delivered: bool
    response_status: int | None = None
    error: str | None = None
    #: The receiver wants no more webhooks of this session.
    gone: bool = False
    #: The pause in seconds that the receiver requested.
    retry_after: float | None = None


class Outbox:
    """Adds deliveries inside the transactions that they report."""

    def __init__(self, queue: Queue, render: Render) -> None:
        self._queue = queue
        self._render = render

    async def add(self, connection: Connection, session_id: UUID) -> None:
        """Queue the message about the session's new state if it has an active endpoint.

        Call it last in the transaction, once the session's row and events are written.
        """
        async with connection.cursor(row_factory=class_row(SessionRow)) as cursor:
            await cursor.execute(
                f"SELECT {SESSION_COLUMNS} FROM sessions WHERE id = %s AND EXISTS (SELECT 1 FROM webhook_endpoints"
                " WHERE session_id = sessions.id AND disabled_at IS NULL)",
                (session_id,),
            )
            row = await cursor.fetchone()
        if row is None:
            return
        message, delivery_id = self._render(row), uuid4()
        job_id = await self._queue.defer_delivery(connection, delivery_id)
        await connection.execute(
            "INSERT INTO webhook_deliveries"
            " (id, session_id, event_seq, type, interrupt_id, body, job_id, next_attempt_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, now())",
            (delivery_id, session_id, row.event_seq, message.type, row.interrupt_id, message.body, job_id),
        )


class Deliveries:
    """Repository of deliveries."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self._database = database
        self._queue = queue

    # --- for clients -------------------------------------------------------------------------------------------------

    async def endpoint(self, session_id: UUID) -> Endpoint | None:
        """The session's endpoint; None if it has no webhooks."""
        row = await self._database.fetch_one(
            "SELECT url, secret, disabled_at FROM webhook_endpoints WHERE session_id = %s", (session_id,)
        )
        return Endpoint(**row) if row else None

    async def of_session(self, session_id: UUID) -> list[DeliveryRow]:
        """The session's deliveries, newest first, 200 at most."""
        rows = await self._database.fetch_all(
            f"SELECT {_COLUMNS} FROM webhook_deliveries WHERE session_id = %s ORDER BY event_seq DESC LIMIT %s",
            (session_id, _MAX_LISTED),
        )
        return [DeliveryRow(**row) for row in rows]

    async def page(
        self, *, status: str | None, limit: int, before: tuple[datetime, UUID] | None = None
    ) -> list[ListedDelivery]:
        """Deliveries of all sessions, newest first."""
        rows = await self._database.fetch_all(
            f"SELECT {_COLUMNS}, (SELECT name FROM sessions WHERE sessions.id = session_id) AS session_name,"
            " (SELECT url FROM webhook_endpoints AS endpoint WHERE endpoint.session_id = delivery.session_id) AS url"
            " FROM webhook_deliveries AS delivery WHERE (%(status)s::text IS NULL OR status = %(status)s)"
            " AND (%(created_at)s::timestamptz IS NULL OR (created_at, id) < (%(created_at)s, %(id)s))"
            " ORDER BY created_at DESC, id DESC LIMIT %(limit)s",
            {
                "status": status,
                "limit": limit,
                "created_at": before[0] if before else None,
                "id": before[1] if before else None,
            },
        )
        return [
            ListedDelivery(session_name=row.pop("session_name"), url=row.pop("url"), delivery=DeliveryRow(**row))
            for row in rows
        ]

    async def replay(self, session_id: UUID, delivery_id: UUID) -> DeliveryRow:
        """Send a delivery again from the first attempt on, under its old id; its endpoint becomes active again.

        Raises DeliveryNotFoundError.
        """
        async with self._database.transaction() as connection:
            job_id = await self._queue.defer_delivery(connection, delivery_id)
            cursor = await connection.execute(
                "UPDATE webhook_deliveries SET status = 'pending', attempts = 0, job_id = %s, next_attempt_at = now(),"
                f" updated_at = now() WHERE id = %s AND session_id = %s RETURNING {_COLUMNS}",
                (job_id, delivery_id, session_id),
            )
            row = await cursor.fetchone()
            if row is None:
                raise DeliveryNotFoundError(
                    text("error.no_delivery", session=str(session_id), delivery=str(delivery_id)),
                    hint=text("error.no_delivery_hint"),
                )
            await connection.execute(
                "UPDATE webhook_endpoints SET disabled_at = NULL WHERE session_id = %s", (session_id,)
            )
        return DeliveryRow(**row)

    # --- for the worker ----------------------------------------------------------------------------------------------

    async def claim(self, delivery_id: UUID, job_id: int) -> DeliveryAttempt | None:
        """Count an attempt and hand it to the caller; None if the delivery is over or another job's.

        The attempt counts from here on: a delivery that kills its worker is not tried for ever.
        """
        with across_owners():
            row = await self._claimed(delivery_id, job_id)
        if row is None or row["status"] != "pending":
            return None
        endpoint = Endpoint(row["url"], row["secret"], row["disabled_at"])
        return DeliveryAttempt(delivery_id, job_id, row["owner"], row["attempts"], row["body"], endpoint)

    async def _claimed(self, delivery_id: UUID, job_id: int) -> DictRow | None:
        return await self._database.fetch_one(
            "UPDATE webhook_deliveries AS delivery SET"
            " attempts = attempts + (endpoint.disabled_at IS NULL)::int, next_attempt_at = NULL,"
            " updated_at = now(),"
            " status = CASE WHEN endpoint.disabled_at IS NULL THEN 'pending' ELSE 'disabled' END"
            " FROM webhook_endpoints AS endpoint WHERE delivery.id = %s AND delivery.job_id = %s"
            " AND delivery.status = 'pending' AND endpoint.session_id = delivery.session_id"
            " RETURNING delivery.status, delivery.owner, delivery.attempts, delivery.body,"
            " endpoint.url, endpoint.secret, endpoint.disabled_at",
            (delivery_id, job_id),
        )

    async def conclude(self, attempt: DeliveryAttempt, result: Result, *, retry_in: float | None) -> None:
        """Store the result of an attempt; the next one follows after `retry_in` seconds, None for never."""
        codes = {"error": TextCode.of(result.error).model_dump()} if isinstance(result.error, Text) else {}
        async with self._database.transaction() as connection:
            again = not result.delivered and not result.gone and retry_in is not None
            job_id, pause = attempt.job_id, retry_in if again else None
            if pause is not None:
                job_id = await self._queue.defer_delivery(connection, attempt.id, delay=pause)
            # A job that lost the delivery in the meantime leaves only its next job behind, which finds nothing to do.
            cursor = await connection.execute(
                "UPDATE webhook_deliveries SET status = %(status)s, job_id = %(job)s, response_status = %(response)s,"
                " error = %(error)s, texts = %(texts)s, updated_at = now(),"
                " next_attempt_at = now() + make_interval(secs => %(pause)s),"
                " delivered_at = CASE WHEN %(status)s = 'delivered' THEN now() ELSE delivered_at END"
                " WHERE id = %(id)s AND job_id = %(before)s RETURNING session_id",
                {
                    "status": "pending" if again else _final_status(result),
                    "job": job_id,
                    "response": result.response_status,
                    "error": result.error,
                    "texts": Jsonb(codes),
                    "pause": pause,
                    "id": attempt.id,
                    "before": attempt.job_id,
                },
            )
            row = await cursor.fetchone()
            if row is not None and result.gone:
                await connection.execute(
                    "UPDATE webhook_endpoints SET disabled_at = now() WHERE session_id = %s", (row["session_id"],)
                )

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[bool]:
        """Try to take the lock of a clean-up pass; True for one process at a time."""
        async with self._database.transaction() as connection:
            cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(%s) AS ours", (_TURN_LOCK_KEY,))
            row = await cursor.fetchone()
            yield bool(row and row["ours"])

    async def take_back_lost(self, seconds: float) -> int:
        """Give a new job to deliveries whose job is gone or whose worker has been silent for `seconds`."""
        return await take_back_each(
            self._database,
            self._queue,
            DELIVERY_TASK,
            "webhook_deliveries",
            unfinished="status = 'pending'",
            seconds=seconds,
            take_back=self._take_back,
        )

    async def _take_back(self, delivery_id: UUID, job_id: int | None) -> bool:
        async with self._database.transaction() as connection:
            found = await connection.execute(
                "SELECT 1 FROM webhook_deliveries WHERE id = %s AND job_id IS NOT DISTINCT FROM %s"
                " AND status = 'pending' FOR UPDATE",
                (delivery_id, job_id),
            )
            if found.rowcount == 0:
                return False
            new_job_id = await self._queue.defer_delivery(connection, delivery_id)
            await connection.execute(
                "UPDATE webhook_deliveries SET job_id = %s, next_attempt_at = now(), updated_at = now() WHERE id = %s",
                (new_job_id, delivery_id),
            )
        return True


def _final_status(result: Result) -> str:
    if result.delivered:
        return "delivered"
    return "disabled" if result.gone else "failed"
