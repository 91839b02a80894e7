"""LangGraph's Postgres saver under a lease."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg_pool import AsyncConnectionPool

from flowise_dev_agent.persistence.database import ROUND_TRIP_SECS, Connection, translated_errors
from flowise_dev_agent.persistence.lease import ASSERT_OWNER_SQL, Lease


def plain_serializer() -> JsonPlusSerializer:
    """Only LangGraph's own safe types: the state is plain JSON, and a checkpoint must not import anything else."""
    return JsonPlusSerializer(allowed_msgpack_modules=None)


class FencedSaver(AsyncPostgresSaver):
    """Writes checkpoints only while `lease` owns its run; afterwards every write raises LeaseLostError.

    One object per leg, over the shared pool: the base class serialises everything that goes through one object.
    """

    def __init__(self, pool: AsyncConnectionPool[Connection], lease: Lease) -> None:
        super().__init__(pool, serde=plain_serializer())
        self._lease = lease

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[AsyncCursor[DictRow]]:
        # Writes are pipelined, reads are not. The pipeline is one implicit transaction: the owner check and the rows
        # stand or fall together, and its error surfaces when the base class closes the pipeline.
        with translated_errors():
            async with asyncio.timeout(ROUND_TRIP_SECS), super()._cursor(pipeline=pipeline) as cursor:
                if pipeline:
                    await cursor.execute(ASSERT_OWNER_SQL, (self._lease.run_id, self._lease.epoch))
                yield cursor

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As the base class, after a check of the lease."""
        async with self._cursor() as cursor:
            await cursor.execute(ASSERT_OWNER_SQL, (self._lease.run_id, self._lease.epoch))
        await super().aprune(thread_ids, strategy=strategy)
