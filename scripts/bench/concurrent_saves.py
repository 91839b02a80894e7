"""How often a save in Flowise is lost under a write: `python scripts/bench/concurrent_saves.py [WRITES]`.

On a real Flowise and Postgres, started in a temporary folder. Each write of the publisher meets one save of a person at
a random moment, and what became of that save is counted. The share that was lost without a trace, times the span of the
moments, is the window that remains.
"""

import asyncio
import random
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from uuid import UUID, uuid4

from flowise_dev_agent.caller import DEFAULT_OWNER, serving
from flowise_dev_agent.devkit.stack import DevStack
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.persistence import Blobs, Database, Versions, WriteIntents, migrate
from flowise_dev_agent.publish import Base, Publisher, Stale


def text(by: str) -> str:
    return f'{{"nodes":[],"edges":[],"by":"{by}"}}'


class Trials:
    """Writes of one session, each to a flow of its own."""

    def __init__(self, client: FlowiseClient, database: Database, session_id: UUID) -> None:
        self.client = client
        self.versions = Versions(database, Blobs(database))
        self.publisher = Publisher(
            session_id=session_id,
            instance_id="main",
            client=client,
            intents=WriteIntents(database),
            lease=None,
            versions=self.versions,
        )
        self.session_id = session_id

    async def alone(self, number: int) -> float:
        """Seconds that a write takes that nobody disturbs."""
        row = await self._made(number)
        began = time.monotonic()
        await self._write(row, number)
        return time.monotonic() - began

    async def disturbed(self, number: int, span: float) -> str:
        """What became of a person's save at a random moment of `span` seconds from the beginning of a write."""
        row, theirs = await self._made(number), text(f"person-{number}")

        async def save() -> None:
            await asyncio.sleep(random.uniform(0, span))  # noqa: S311 - a moment
            await self.client.update_chatflow(row.id, flow_data=theirs)

        _, result = await asyncio.gather(save(), self._write(row, number))
        holds = (await self.client.get_chatflow(row.id)).flow_data
        kept = [version.sha256 for version in await self.versions.of_session(self.session_id)]
        if isinstance(result, Stale):
            if holds != theirs and payload_sha256(theirs) not in kept:
                return "lost, told"
            return "asked after the write" if result.conflict else "asked before the write"
        if holds == theirs:
            return "saved after the write was done"
        return "kept" if payload_sha256(theirs) in kept else "lost"

    async def _made(self, number: int) -> Chatflow:
        return await self.client.create_chatflow(ChatflowCreate(name=f"Bot {number}", flow_data=text("before")))

    async def _write(self, row: Chatflow, number: int) -> object:
        ours = text(f"session-{number}")
        return await self.publisher.update(
            chatflow_id=row.id,
            flow_data=ours,
            validated_sha256=payload_sha256(ours),
            base=Base(payload_sha256(row.flow_data), row.updated_date),
            iteration=number,
        )


async def measure(stack: DevStack, writes: int) -> None:
    access = stack.flowise
    await migrate(stack.dsn)
    async with (
        Database(stack.dsn, min_size=1, max_size=4) as database,
        FlowiseClient(access.endpoint, access.api_key) as client,
    ):
        session_id = uuid4()
        async with database.connection() as connection:
            await connection.execute(
                "INSERT INTO sessions (id, requirement, request, instance_id, status)"
                " VALUES (%s, 'r', '{}', 'main', 'failed')",
                (session_id,),
            )
        trials = Trials(client, database, session_id)
        alone = [await trials.alone(number) for number in range(20)]
        span = 1.5 * statistics.median(alone)
        print(
            f"a write alone: {1000 * statistics.median(alone):.0f} ms; saves within {1000 * span:.0f} ms of its start"
        )
        became = Counter([await trials.disturbed(number, span) for number in range(100, 100 + writes)])
        for what, count in became.most_common():
            print(f"{count:6} {what}")
        print(f"window: {1000 * span * became['lost'] / writes:.1f} ms")


def main() -> None:
    writes = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with (
        tempfile.TemporaryDirectory(prefix="fda-bench-") as folder,
        DevStack(Path(folder), flowise_port=port) as stack,
        serving(DEFAULT_OWNER),
    ):
        asyncio.run(measure(stack, writes))


if __name__ == "__main__":
    main()
