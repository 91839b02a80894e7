"""LangGraph's Postgres saver under a lease: one statement per step.

The base class sends two pipelines a step, the writes of its tasks and then the checkpoint that contains them. Here the
writes are held until it is known that they are needed: mostly the checkpoint comes next and says it all. What is stored
is what the base class would store, and it reads it.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    copy_checkpoint,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import RESUME
from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from flowise_dev_agent.contracts.base import Kept
from flowise_dev_agent.persistence.database import ROUND_TRIP_SECS, Database, translated_errors
from flowise_dev_agent.persistence.lease import ASSERT_OWNER_SQL, Lease

# Both inserts read `owner`, so neither happens without it. The step is one parameter because psycopg takes as long to
# adapt a dozen as Postgres to store them.
_PUT: Final = """
    WITH owner AS MATERIALIZED (SELECT assert_owner(%(run)s, %(epoch)s)),
    step AS (
        SELECT item.* FROM owner, jsonb_to_record(%(step)s) AS item
            (thread text, ns text, id text, parent text, checkpoint jsonb, metadata jsonb, blobs jsonb)
    ), stored AS (
        INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
        SELECT step.thread, step.ns, item.channel, item.version, item.type, decode(item.blob, 'base64')
        FROM step, jsonb_to_recordset(step.blobs) AS item (channel text, version text, type text, blob text)
        ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING
    )
    INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
    SELECT thread, ns, id, parent, checkpoint, metadata FROM step
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
    DO UPDATE SET checkpoint = EXCLUDED.checkpoint, metadata = EXCLUDED.metadata
"""
# As the base class: what reports the end of a task replaces what was reported before, anything else is stored once.
_PUT_WRITES: Final = """
    WITH owner AS MATERIALIZED (SELECT assert_owner(%(run)s, %(epoch)s))
    INSERT INTO checkpoint_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
    SELECT %(thread)s, %(ns)s, %(checkpoint)s, %(task)s, %(path)s, item.idx, item.channel, item.type,
           decode(item.blob, 'base64')
    FROM owner, jsonb_to_recordset(%(writes)s) AS item (idx integer, channel text, type text, blob text)
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
"""
_REPLACING: Final = "DO UPDATE SET channel = EXCLUDED.channel, type = EXCLUDED.type, blob = EXCLUDED.blob"
_KEEPING: Final = "DO NOTHING"
# The base class takes a dozen statements, one for each channel: it also reads threads of subgraphs and DeltaChannels.
_PRUNE: Final = """
    WITH owner AS MATERIALIZED (SELECT assert_owner(%(run)s, %(epoch)s)),
    head AS (
        SELECT latest.checkpoint_id AS id, latest.checkpoint -> 'channel_versions' AS versions
        FROM owner, checkpoints AS latest WHERE latest.thread_id = %(thread)s AND latest.checkpoint_ns = ''
        ORDER BY latest.checkpoint_id DESC LIMIT 1
    ), of_writes AS (
        DELETE FROM checkpoint_writes AS item USING head
        WHERE item.thread_id = %(thread)s AND item.checkpoint_ns = '' AND item.checkpoint_id <> head.id
    ), of_blobs AS (
        DELETE FROM checkpoint_blobs AS item USING head
        WHERE item.thread_id = %(thread)s AND item.checkpoint_ns = ''
        AND item.version IS DISTINCT FROM head.versions ->> item.channel
    ), orphaned AS (
        UPDATE checkpoints AS item SET parent_checkpoint_id = NULL FROM head
        WHERE item.thread_id = %(thread)s AND item.checkpoint_ns = '' AND item.checkpoint_id = head.id
    )
    DELETE FROM checkpoints AS item USING head
    WHERE item.thread_id = %(thread)s AND item.checkpoint_ns = '' AND item.checkpoint_id <> head.id
"""
#: Channels whose values are in the checkpoint itself, as in the base class.
_INLINE: Final = (str, int, float, bool, type(None))
#: LangGraph's own channel for the graph's input, until the first step has read it.
_INPUT: Final = "__start__"

#: The state's channels in the form of this version; None when they have it.
Upgrade = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
#: Whether a checkpoint can wait for the next one, from the nodes that have ended and those that follow; `__start__`
#: is among them at the beginning. What can wait is repeated after a kill: at no cost and without an effect.
CanWait = Callable[[Set[str], Set[str]], bool]


def never(ended: Set[str], following: Set[str]) -> bool:
    """Every checkpoint is stored."""
    return False


def plain_serializer() -> JsonPlusSerializer:
    """Only LangGraph's own safe types: the state is plain JSON, and a checkpoint must not import anything else."""
    return JsonPlusSerializer(allowed_msgpack_modules=None)


@dataclass(frozen=True)
class _Step:
    """A checkpoint that waits, with the id of the last one that is stored and all channels that changed since."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent: str | None
    changed: Set[str]


@dataclass(frozen=True)
class _Writes:
    """What one task has written."""

    config: RunnableConfig
    writes: Sequence[tuple[str, Any]]
    task_id: str
    task_path: str


class FencedSaver(AsyncPostgresSaver):
    """Writes checkpoints only while `lease` owns its run; afterwards every write raises LeaseLostError.

    One object per run, over the shared pool: the base class serialises everything that goes through one object. As the
    run is the only writer of its thread, what it has read or put last is the latest checkpoint, and is not read again;
    `fresh` says that there is none yet.

    Writes of a task become rows when they matter for a resume: with an interrupt or an error in the same step, or when
    the state is read before the next checkpoint. A kill between a node's end and the next checkpoint, a moment later,
    runs that node again. A person's answer is in its run. DeltaChannels are not supported.

    A checkpoint that `can_wait` becomes a row with the writes that become rows, or when the state is read; otherwise
    the next one says it, too.

    A checkpoint of an earlier version of the state is read as `upgrade` gives it, and stored so with the next step.
    """

    def __init__(
        self,
        database: Database,
        lease: Lease,
        *,
        fresh: bool = False,
        upgrade: Upgrade | None = None,
        can_wait: CanWait = never,
    ) -> None:
        super().__init__(database.pool, serde=plain_serializer())
        self._database = database
        self._lease = lease
        self._held: list[_Writes] = []
        self._can_wait = can_wait
        self._waiting: _Step | None = None
        self._known = fresh
        self._latest: CheckpointTuple | None = None
        #: The rows of what tasks wrote after the latest checkpoint; None when some may be there that are not known.
        self._rows: dict[tuple[str, str, int], tuple[str, str, Any]] | None = None
        self._upgrade = upgrade
        #: Channels that are stored under their earlier names only.
        self._upgraded: frozenset[str] = frozenset()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As the base class; the latest checkpoint is read once."""
        await self.flush()
        place = config.get("configurable", {})
        if "checkpoint_id" in place or place.get("checkpoint_ns"):
            return await super().aget_tuple(config)
        if not self._known:
            self._latest, self._known = self._in_this_version(await super().aget_tuple(config)), True
        # LangGraph changes the one that it gets.
        return self._latest and self._latest._replace(checkpoint=copy_checkpoint(self._latest.checkpoint))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As the base class, in one statement or none. The held writes of the step before are in this checkpoint."""
        self._held.clear()
        place = config.get("configurable", {})
        thread_id, ns, parent = place["thread_id"], place["checkpoint_ns"], place.get("checkpoint_id")
        ended = next_nodes(self._latest.checkpoint) if self._latest else frozenset[str]()
        waiting, self._waiting = self._waiting, None
        step = _Step(
            config,
            checkpoint,
            metadata,
            waiting.parent if waiting else parent,
            {*new_versions, *self._upgraded, *(waiting.changed if waiting else ())},
        )
        if not ns and self._can_wait(ended, next_nodes(checkpoint)):
            self._waiting = step
        else:
            await self._store(step)
        saved = _config(thread_id, ns, checkpoint["id"])
        if not ns:
            before = None if parent is None else _config(thread_id, ns, parent)
            self._latest = CheckpointTuple(saved, copy_checkpoint(checkpoint), metadata, before, [])
            self._known, self._rows = True, {}
        return saved

    async def flush(self) -> None:
        """Store what waits."""
        if self._waiting is not None:
            await self._store(self._waiting)
            self._waiting = None
        for held in self._take_held():
            await self._write(held)

    async def _store(self, step: _Step) -> None:
        checkpoint, place = step.checkpoint, step.config.get("configurable", {})
        values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
        inline = {name: value for name, value in values.items() if isinstance(value, _INLINE)}
        changed = [name for name in values if name in step.changed and name not in inline]
        row = {
            "thread": place["thread_id"],
            "ns": place["checkpoint_ns"],
            "id": checkpoint["id"],
            "parent": step.parent,
            "checkpoint": {**checkpoint, "channel_values": inline},
            "metadata": get_serializable_checkpoint_metadata(step.config, step.metadata),
            "blobs": [self._blob(name, str(versions[name]), values[name]) for name in changed],
        }
        async with self._database.connection() as connection:
            await connection.execute(_PUT, {"run": self._lease.run_id, "epoch": self._lease.epoch, "step": Jsonb(row)})
        self._upgraded = frozenset()

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Hold what a task wrote; write it, and what waits, when it reports an interrupt or an error."""
        self._held.append(_Writes(config, writes, task_id, task_path))
        if any(channel in WRITES_IDX_MAP and channel != RESUME for channel, _ in writes):
            await self.flush()

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[AsyncCursor[DictRow]]:
        # The base class pipelines its writes and nothing else. The pipeline is one implicit transaction: the owner
        # check and the rows stand or fall together, and its error surfaces when the base class closes the pipeline.
        with translated_errors():
            async with asyncio.timeout(ROUND_TRIP_SECS), super()._cursor(pipeline=pipeline) as cursor:
                if pipeline:
                    await cursor.execute(ASSERT_OWNER_SQL, (self._lease.run_id, self._lease.epoch))
                yield cursor

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As the base class, with its strategies `keep_latest` and `delete`; fenced, one statement a thread to keep.

        Raises ValueError for another strategy.
        """
        if strategy not in {"keep_latest", "delete"}:
            raise ValueError(f"The prune strategy must be 'keep_latest' or 'delete', not {strategy!r}.")
        if strategy == "delete":
            self._held.clear()
            self._known, self._latest, self._rows = True, None, {}
            for thread in thread_ids:
                await self.adelete_thread(thread)
            return
        async with self._database.connection() as connection:
            for thread in thread_ids:
                params = {"run": self._lease.run_id, "epoch": self._lease.epoch, "thread": thread}
                await connection.execute(_PRUNE, params)

    def _blob(self, channel: str, version: str, value: Any) -> dict[str, str]:
        return {"channel": channel, "version": version, **self._encoded(value)}

    def _encoded(self, value: Any) -> dict[str, str]:
        type_, content = self.serde.dumps_typed(value)
        return {"type": type_, "blob": b64encode(content).decode()}

    def _in_this_version(self, found: CheckpointTuple | None) -> CheckpointTuple | None:
        """What was read, its state upgraded where an earlier version wrote it."""
        if found is None or self._upgrade is None:
            return found
        values = {name: Kept(value) if type(value) is dict else value for name, value in _values(found).items()}
        checkpoint: Checkpoint = {**found.checkpoint, "channel_values": values}
        found = found._replace(checkpoint=checkpoint)
        state = self._upgrade(values.get(_INPUT, values))
        if state is None:
            return found
        if _INPUT in values:
            upgraded, latest = {_INPUT: dict(state)}, checkpoint["channel_versions"]
        else:
            upgraded = dict(state)
            # A version that no stored value has: names may be the same in both forms.
            newest = max(str(version) for version in checkpoint["channel_versions"].values())
            latest = dict.fromkeys(upgraded, self.get_next_version(newest, None))
        self._upgraded = frozenset(upgraded)
        own = {name: value for name, value in values.items() if _is_control(name)}
        versions = {name: value for name, value in checkpoint["channel_versions"].items() if _is_control(name)}
        seen = {
            node: {name: value for name, value in known.items() if _is_control(name)}
            for node, known in checkpoint["versions_seen"].items()
        }
        return found._replace(
            checkpoint={
                **checkpoint,
                "channel_values": {**own, **upgraded},
                "channel_versions": {**versions, **latest},
                "versions_seen": seen,
            },
            # What a task wrote in the earlier form is dropped, and its node runs again.
            pending_writes=[write for write in found.pending_writes or [] if write[1] in WRITES_IDX_MAP],
        )

    def _take_held(self) -> list[_Writes]:
        held, self._held = self._held, []
        return held

    async def _write(self, held: _Writes) -> None:
        place = held.config.get("configurable", {})
        replacing = all(channel in WRITES_IDX_MAP for channel, _ in held.writes)
        rows: dict[int, tuple[str, Any]] = {}
        for number, (channel, value) in enumerate(held.writes):
            index = WRITES_IDX_MAP.get(channel, number)
            if replacing or index not in rows:
                rows[index] = channel, value
        params = {
            "run": self._lease.run_id,
            "epoch": self._lease.epoch,
            "thread": place["thread_id"],
            "ns": place["checkpoint_ns"],
            "checkpoint": place["checkpoint_id"],
            "task": held.task_id,
            "path": held.task_path,
            "writes": Jsonb(
                [{"idx": index, "channel": channel, **self._encoded(value)} for index, (channel, value) in rows.items()]
            ),
        }
        async with self._database.connection() as connection:
            await connection.execute(f"{_PUT_WRITES} {_REPLACING if replacing else _KEEPING}", params)
        self._remember(place["checkpoint_id"], held, rows, replacing=replacing)

    def _remember(
        self, checkpoint_id: str, held: _Writes, rows: Mapping[int, tuple[str, Any]], *, replacing: bool
    ) -> None:
        """Have the latest checkpoint, which is in memory, say what was written after it."""
        if self._rows is None or self._latest is None or self._latest.checkpoint["id"] != checkpoint_id:
            self._known = False
            return
        for index, (channel, value) in rows.items():
            key, row = (held.task_path, held.task_id, index), (held.task_id, channel, value)
            self._rows[key] = row if replacing else self._rows.get(key, row)
        in_order = sorted(self._rows.items(), key=lambda item: writes_sort_key(*item[0]))
        self._latest = self._latest._replace(pending_writes=[row for _, row in in_order])


def _values(found: CheckpointTuple) -> Mapping[str, Any]:
    return found.checkpoint["channel_values"]


def next_nodes(checkpoint: Checkpoint) -> frozenset[str]:
    """The nodes that run after a checkpoint."""
    values = checkpoint["channel_values"]
    return frozenset(name.removeprefix("branch:to:") for name in values if name.startswith((_INPUT, "branch:to:")))


def _is_control(channel: str) -> bool:
    """Whether a channel is LangGraph's own and not one of the state."""
    return channel.startswith(("__", "branch:"))


def _config(thread_id: str, ns: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}
