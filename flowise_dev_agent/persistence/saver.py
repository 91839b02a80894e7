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
from typing import Any, Final, LiteralString

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
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.types import Interrupt
from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from flowise_dev_agent.persistence.database import (
    ASSERT_OWNER_SQL,
    ROUND_TRIP_SECS,
    Database,
    Lease,
    jsonb,
    translated_errors,
)
from flowise_dev_agent.schemas.base import Kept

_OWNER: Final = "WITH owner AS MATERIALIZED (SELECT assert_owner(%(run)s, %(epoch)s))"
# All of it reads `owner`, so nothing happens without it. The step is one parameter because psycopg takes as long to
# adapt a dozen as Postgres to store them.
_STEP: Final = f"""
    {_OWNER}, step AS (
        SELECT item.* FROM owner, jsonb_to_record(%(step)s) AS item
            (thread text, ns text, id text, parent text, checkpoint jsonb, metadata jsonb, blobs jsonb)
    ), stored AS (
        INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
        SELECT step.thread, step.ns, item.channel, item.version, item.type, decode(item.blob, 'base64')
        FROM step, jsonb_to_recordset(step.blobs) AS item (channel text, version text, type text, blob text)
        ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING
    )
"""
# Texts of the session that its state refers to, if there are any new ones.
_TEXTS: Final = """
    , texts AS (
        INSERT INTO blobs (session_id, sha256, content)
        SELECT step.thread::uuid, text.sha256, text.content
        FROM step, unnest(%(hashes)s::text[], %(contents)s::bytea[]) AS text (sha256, content)
        ON CONFLICT DO NOTHING
    )
"""
_PUT: Final = """
    INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
    SELECT thread, ns, id, parent, checkpoint, metadata FROM step
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
    DO UPDATE SET checkpoint = EXCLUDED.checkpoint, metadata = EXCLUDED.metadata
"""
_INSERT_WRITES: Final = """
    INSERT INTO checkpoint_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
    SELECT item.thread, item.ns, item.checkpoint, item.task, item.path, item.idx, item.channel, item.type,
           decode(item.blob, 'base64')
    FROM owner, jsonb_to_recordset(%(writes)s) AS item (thread text, ns text, checkpoint text, task text, path text,
        idx integer, channel text, type text, blob text)
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
"""
# As the base class: what reports the end of a task replaces what was reported before, anything else is stored once.
_REPLACING: Final = "DO UPDATE SET channel = EXCLUDED.channel, type = EXCLUDED.type, blob = EXCLUDED.blob"
_KEEPING: Final = "DO NOTHING"
_PUT_WITH_WRITES: Final = f", written AS ({_INSERT_WRITES} {_KEEPING}) {_PUT}"
# What no session can go on from any more is removed, as by the base class's `aprune`.
_PUT_LAST: Final = f"""
    , of_writes AS (
        DELETE FROM checkpoint_writes AS item USING step
        WHERE item.thread_id = step.thread AND item.checkpoint_ns = step.ns
    ), of_blobs AS (
        DELETE FROM checkpoint_blobs AS item USING step
        WHERE item.thread_id = step.thread AND item.checkpoint_ns = step.ns
        AND item.version IS DISTINCT FROM step.checkpoint -> 'channel_versions' ->> item.channel
    ), earlier AS (
        DELETE FROM checkpoints AS item USING step
        WHERE item.thread_id = step.thread AND item.checkpoint_ns = step.ns AND item.checkpoint_id <> step.id
    ) {_PUT}
"""
#: Channels whose values are in the checkpoint itself, as in the base class.
_INLINE: Final = (str, int, float, bool, type(None))
#: LangGraph's own channel for the graph's input, until the first step has read it.
_INPUT: Final = "__start__"

#: Converts the state's channels to the form of this version; None if they have it.
Upgrade = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
#: True if a checkpoint can wait for the next one. Arguments: the nodes that ended since the last stored one, and the
#: next ones (`__start__` among them at the beginning). After a kill, waiting steps are repeated at no cost and without
#: an effect.
CanWait = Callable[[Set[str], Set[str]], bool]


def never(ended: Set[str], following: Set[str]) -> bool:
    """Store every checkpoint."""
    return False


def plain_serializer() -> JsonPlusSerializer:
    """A serializer of LangGraph's own safe types: the state is plain JSON, and checkpoints must import no classes."""
    return JsonPlusSerializer(allowed_msgpack_modules=None)


@dataclass(frozen=True)
class _Step:
    """A waiting checkpoint, with the id of the last stored one and all channels that changed since."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent: str | None
    changed: Set[str]
    #: Nodes that have ended since the last stored checkpoint.
    ended: Set[str]


@dataclass(frozen=True)
class _Writes:
    """Writes of one task."""

    config: RunnableConfig
    writes: Sequence[tuple[str, Any]]
    task_id: str
    task_path: str

    @property
    def replacing(self) -> bool:
        return all(channel in WRITES_IDX_MAP for channel, _ in self.writes)

    def by_index(self) -> dict[int, tuple[str, Any]]:
        """Each channel and its value by row number."""
        rows: dict[int, tuple[str, Any]] = {}
        for number, (channel, value) in enumerate(self.writes):
            index = WRITES_IDX_MAP.get(channel, number)
            if self.replacing or index not in rows:
                rows[index] = channel, value
        return rows


class FencedSaver(AsyncPostgresSaver):
    """Saver that writes checkpoints only while `lease` owns its run; afterwards every write raises LeaseLostError.

    One object per run, over the shared pool: the base class serialises everything that goes through one object. As the
    run is the only writer of its thread, its last read or stored checkpoint is the latest one and is not read again;
    `fresh` means that there is none yet.

    Writes of a task become rows when they matter for a resume: with an interrupt or an error in the same step, or when
    the state is read before the next checkpoint. A kill between a node's end and the next checkpoint, a moment later,
    repeats that node. A person's answer is in its run. DeltaChannels are not supported.

    A checkpoint that `can_wait` becomes a row together with writes that become rows, or when the state is read;
    otherwise the next checkpoint includes it. After the last one, which no node follows, there are no others.

    A checkpoint of an earlier version of the state is converted by `upgrade`, and stored so with the next step.
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
        #: Texts of the session by hash, stored by the next step: until then nothing refers to them.
        self.texts: dict[str, bytes] = {}
        self._can_wait = can_wait
        self._waiting: _Step | None = None
        self._known = fresh
        self._latest: CheckpointTuple | None = None
        #: Rows written by tasks after the latest checkpoint; None if there may be unknown ones.
        self._rows: dict[tuple[str, str, int], tuple[str, str, Any]] | None = None
        self._upgrade = upgrade
        #: Channels stored only under their earlier names.
        self._upgraded: frozenset[str] = frozenset()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read as the base class does; the latest checkpoint is read once."""
        await self.flush()
        place = config.get("configurable", {})
        if "checkpoint_id" in place or place.get("checkpoint_ns"):
            return await super().aget_tuple(config)
        if not self._known:
            self._latest, self._known = self._in_this_version(await super().aget_tuple(config)), True
        # LangGraph changes the object that it gets.
        return self._latest and self._latest._replace(checkpoint=copy_checkpoint(self._latest.checkpoint))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint as the base class does, in one statement or none, with the held writes of its step."""
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
            {*ended, *(waiting.ended if waiting else ())},
        )
        following = next_nodes(checkpoint)
        if not ns and self._can_wait(step.ended, following):
            self._waiting = step
        else:
            await self._store(step, _PUT if ns or following else _PUT_LAST)
        saved = _config(thread_id, ns, checkpoint["id"])
        if not ns:
            before = None if parent is None else _config(thread_id, ns, parent)
            self._latest = CheckpointTuple(saved, copy_checkpoint(checkpoint), metadata, before, [])
            self._known, self._rows = True, {}
        return saved

    async def flush(self) -> None:
        """Store the waiting checkpoint and writes."""
        held, self._held = self._held, []
        if self._waiting is not None:
            rows = {row: value for one in held for row, value in self._rows_of(one).items()}
            await self._store(self._waiting, _PUT_WITH_WRITES, writes=jsonb(list(rows.values())))
            self._waiting = None
            for one in held:
                self._remember(one)
        else:
            for one in held:
                await self._write(one)

    async def _store(self, step: _Step, statement: LiteralString, **more: Jsonb) -> None:
        checkpoint, place = step.checkpoint, step.config.get("configurable", {})
        values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
        inline = {name: value for name, value in values.items() if isinstance(value, _INLINE)}
        changed = [name for name in values if name in step.changed and name not in inline]
        row = {
            "thread": place["thread_id"],
            "ns": place["checkpoint_ns"],
            "id": checkpoint["id"],
            "parent": None if statement is _PUT_LAST else step.parent,
            "checkpoint": {**checkpoint, "channel_values": inline},
            "metadata": get_serializable_checkpoint_metadata(step.config, step.metadata),
            "blobs": [self._blob(name, str(versions[name]), values[name]) for name in changed],
        }
        texts = dict(self.texts)
        params: dict[str, Any] = {**more, "step": jsonb(row)}
        if texts:
            params |= {"hashes": list(texts), "contents": list(texts.values())}
        await self._execute(f"{_STEP} {_TEXTS if texts else ''} {statement}", **params)
        for sha256 in texts:
            self.texts.pop(sha256, None)
        self._upgraded = frozenset()

    async def _execute(self, statement: LiteralString, **params: Any) -> None:
        async with self._database.connection() as connection:
            await connection.execute(statement, {"run": self._lease.run_id, "epoch": self._lease.epoch, **params})

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Hold a task's writes; store them, and waiting ones, if the task reports an interrupt or an error."""
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

    def _blob(self, channel: str, version: str, value: Any) -> dict[str, str]:
        return {"channel": channel, "version": version, **self._encoded(value)}

    def _encoded(self, value: Any) -> dict[str, str]:
        type_, content = self.serde.dumps_typed(value)
        return {"type": type_, "blob": b64encode(content).decode()}

    def _in_this_version(self, found: CheckpointTuple | None) -> CheckpointTuple | None:
        """The stored checkpoint, upgraded if an earlier version wrote its state."""
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

    def _rows_of(self, held: _Writes) -> dict[tuple[str, int], dict[str, Any]]:
        place = held.config.get("configurable", {})
        where = {
            "thread": place["thread_id"],
            "ns": place["checkpoint_ns"],
            "checkpoint": place["checkpoint_id"],
            "task": held.task_id,
            "path": held.task_path,
        }
        return {
            (held.task_id, index): {**where, "idx": index, "channel": channel, **self._encoded(value)}
            for index, (channel, value) in held.by_index().items()
        }

    async def _write(self, held: _Writes) -> None:
        statement = f"{_OWNER} {_INSERT_WRITES} {_REPLACING if held.replacing else _KEEPING}"
        await self._execute(statement, writes=jsonb(list(self._rows_of(held).values())))
        self._remember(held)

    def _remember(self, held: _Writes) -> None:
        """Update the checkpoint in memory by the writes after it."""
        checkpoint_id = held.config.get("configurable", {})["checkpoint_id"]
        if self._rows is None or self._latest is None or self._latest.checkpoint["id"] != checkpoint_id:
            self._known = False
            return
        for index, (channel, value) in held.by_index().items():
            key, row = (held.task_path, held.task_id, index), (held.task_id, channel, value)
            self._rows[key] = row if held.replacing else self._rows.get(key, row)
        in_order = sorted(self._rows.items(), key=lambda item: writes_sort_key(*item[0]))
        self._latest = self._latest._replace(pending_writes=[row for _, row in in_order])


@dataclass(frozen=True)
class Standing:
    """Position of a thread: values of the state's channels, the next nodes, and open interrupts."""

    values: Mapping[str, Any]
    following: Set[str]
    interrupts: Sequence[Interrupt]


def standing(found: CheckpointTuple) -> Standing:
    """The standing according to a checkpoint and the writes after it."""
    values = {name: value for name, value in _values(found).items() if not _is_control(name)}
    written = found.pending_writes or []
    done = {task for task, channel, _ in written if channel not in WRITES_IDX_MAP}
    raised = [value for task, channel, value in written if channel == INTERRUPT and task not in done]
    return Standing(values, next_nodes(found.checkpoint), [interrupt for several in raised for interrupt in several])


def _values(found: CheckpointTuple) -> Mapping[str, Any]:
    return found.checkpoint["channel_values"]


def next_nodes(checkpoint: Checkpoint) -> frozenset[str]:
    """The nodes that run after a checkpoint."""
    values = checkpoint["channel_values"]
    return frozenset(name.removeprefix("branch:to:") for name in values if name.startswith((_INPUT, "branch:to:")))


def _is_control(channel: str) -> bool:
    """True if a channel is LangGraph's own and not one of the state."""
    return channel.startswith(("__", "branch:"))


def _config(thread_id: str, ns: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}
