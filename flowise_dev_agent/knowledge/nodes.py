"""Node types of a Flowise instance: live when its server can be read, the committed snapshot otherwise."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Literal

from flowise_dev_agent.errors import FlowiseError, FlowiseNotFoundError
from flowise_dev_agent.knowledge.search import SearchIndex
from flowise_dev_agent.knowledge.snapshot import by_name, fingerprint, read_snapshot
from flowise_dev_agent.knowledge.sources import NodeSource
from flowise_dev_agent.patch.schema import NodeSchema, Schemas
from flowise_dev_agent.patch.suggest import closest, fold

Source = Literal["live", "snapshot"]

#: How long to go on with what there is after a server could not be read, before asking it again.
_RETRY_SECS = 30.0

_log = logging.getLogger(__name__)


class NodeStore:
    """A catalogue of node types. Immutable; look-ups are by dict, the search index is built at the first search."""

    def __init__(
        self, snapshot: Schemas, flowise_version: str, *, source: Source = "snapshot", fingerprint: str | None = None
    ) -> None:
        self.schemas: Schemas = snapshot
        self.flowise_version = flowise_version
        self.source: Source = source
        self._fingerprint = fingerprint

    @classmethod
    def from_snapshot(cls) -> "NodeStore":
        """The committed snapshot; raises ConfigurationError when the installation lacks it."""
        schemas, meta = read_snapshot()
        return cls(schemas, meta.flowise_version, fingerprint=meta.sha256)

    @classmethod
    async def from_server(cls, client: NodeSource) -> "NodeStore":
        """Everything that the server offers, in two calls; raises FlowiseError."""
        version = await client.version()
        return cls(by_name(await client.list_nodes()), version, source="live")

    @property
    def fingerprint(self) -> str:
        """Hex SHA-256 of all schemas: equal on two hosts exactly when their catalogues are."""
        if self._fingerprint is None:
            self._fingerprint = fingerprint(self.schemas.values())
        return self._fingerprint

    def __len__(self) -> int:
        return len(self.schemas)

    def get(self, name: str) -> NodeSchema | None:
        """By name, case and separators not minding."""
        return self.schemas.get(name) or self.schemas.get(self._by_fold.get(fold(name), ""))

    def suggest(self, name: str, n: int = 3) -> list[str]:
        """Names close to a misspelt one, best first; a label ("Buffer Memory") counts as its name."""
        folded = fold(name)
        by_label = [schema.name for schema in self.schemas.values() if fold(schema.label) == folded]
        return list(dict.fromkeys([*by_label, *closest(name, self.schemas, n)]))[:n]

    def search(self, text: str, limit: int = 20, *, kind: str | None = None) -> list[NodeSchema]:
        """Types that fit a description, best first; ``kind`` ("CHATFLOW") leaves out what runs only elsewhere."""
        return self._index.search(text, limit, kind)

    def accepting(self, anchor_types: Iterable[str]) -> list[NodeSchema]:
        """Types of which an output fits an anchor of these classes; deprecated ones last, else by name."""
        wanted = set(anchor_types)
        fitting = [
            schema
            for schema in self.schemas.values()
            if any(wanted & set(output.base_classes) for output in schema.outputs)
        ]
        return sorted(fitting, key=lambda schema: (schema.deprecated, schema.name))

    def with_node(self, schema: NodeSchema) -> "NodeStore":
        """The same catalogue with one type added or replaced."""
        return NodeStore({**self.schemas, schema.name: schema}, self.flowise_version, source=self.source)

    @cached_property
    def _by_fold(self) -> dict[str, str]:
        return {fold(name): name for name in self.schemas}

    @cached_property
    def _index(self) -> SearchIndex:
        return SearchIndex(self.schemas.values())


class NodeKnowledge:
    """One catalogue per instance, read from its server at most once per ``ttl_secs`` (0: at each request)."""

    def __init__(self, ttl_secs: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl = ttl_secs
        self._clock = clock
        self._stores: dict[str, NodeStore] = {}
        self._fresh_until: dict[str, float] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._snapshot: NodeStore | None = None

    async def store(self, instance_id: str, client: NodeSource) -> NodeStore:
        """The instance's catalogue.

        When the server cannot be read: the last one read from it, else the snapshot (``source`` says which); the server
        is asked again after half a minute.
        """
        async with self._lock(instance_id):
            store = self._stores.get(instance_id)
            if store is not None and self._clock() < self._fresh_until[instance_id]:
                return store
            try:
                store = await NodeStore.from_server(client)
                lifetime = self._ttl
            except FlowiseError as exc:
                _log.warning("node list of instance %s cannot be read, using what is known: %s", instance_id, exc)
                store = store or self._committed()
                lifetime = min(self._ttl, _RETRY_SECS)
            self._stores[instance_id] = store
            self._fresh_until[instance_id] = self._clock() + lifetime
            return store

    async def repair(self, instance_id: str, client: NodeSource, name: str) -> NodeSchema | None:
        """Ask the server for one type that the catalogue lacks and keep it; None when the server lacks it too.

        Raises FlowiseError when the server cannot be asked.
        """
        try:
            raw = await client.get_node(name)
        except FlowiseNotFoundError:
            return None
        schema = NodeSchema.from_raw(raw)
        async with self._lock(instance_id):
            store = self._stores.get(instance_id) or self._committed()
            self._stores[instance_id] = store.with_node(schema)
            self._fresh_until.setdefault(instance_id, self._clock())
        return schema

    def _lock(self, instance_id: str) -> asyncio.Lock:
        return self._locks.setdefault(instance_id, asyncio.Lock())

    def _committed(self) -> NodeStore:
        if self._snapshot is None:
            self._snapshot = NodeStore.from_snapshot()
        return self._snapshot
