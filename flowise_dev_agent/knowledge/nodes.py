"""Node types of a Flowise instance: the server's last answer, stored for all workers, else the committed snapshot."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Literal

from flowise_dev_agent.errors import FlowiseError, FlowiseNotFoundError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.knowledge.drift import CatalogueChange, compare
from flowise_dev_agent.knowledge.repair import Repair, decide_repair, not_found
from flowise_dev_agent.knowledge.search import NodeIndex
from flowise_dev_agent.knowledge.snapshot import by_name, fingerprint, full_text, read_snapshot, text_of
from flowise_dev_agent.patch import NodeSchema, Schemas
from flowise_dev_agent.patch.model.suggest import closest, fold
from flowise_dev_agent.persistence import CatalogueHead, InstanceNodes

Source = Literal["live", "snapshot"]

#: Time after a failed read of a server before it is asked again.
_RETRY_SECS = 30.0

_log = logging.getLogger(__name__)


class NodeStore:
    """A catalogue of node types. Immutable; look-ups use a dict, the search index is built at the first search.

    ``repaired`` names types that were requested one by one. They are in ``schemas``, but the fingerprint leaves them
    out, so a repair is not a drift.
    """

    def __init__(
        self,
        catalogue: Schemas,
        flowise_version: str,
        *,
        source: Source = "snapshot",
        fingerprint: str | None = None,
        repaired: Schemas | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._fingerprint = fingerprint
        self.schemas: Schemas = {**catalogue, **repaired} if repaired else catalogue
        self.repaired: tuple[str, ...] = tuple(repaired or ())
        self.flowise_version = flowise_version
        self.source: Source = source

    @classmethod
    def from_snapshot(cls) -> "NodeStore":
        """Read the committed snapshot; raises ConfigurationError if the installation lacks it."""
        schemas, meta = read_snapshot()
        return cls(schemas, meta.flowise_version, fingerprint=meta.sha256)

    @classmethod
    async def from_server(cls, client: FlowiseClient) -> "NodeStore":
        """Read all node types of the server, in two calls; raises FlowiseError."""
        version = await client.version()
        return cls(by_name((await client.list_nodes()).nodes), version, source="live")

    def __getstate__(self) -> dict[str, object]:
        """The state to pickle: with the fingerprint, without the search index, which cannot leave its process."""
        kept: dict[str, object] = {name: value for name, value in vars(self).items() if name != "_index"}
        return kept | {"_fingerprint": self.fingerprint}

    @property
    def fingerprint(self) -> str:
        """Hex SHA-256 of all schemas without texts for people: equal on two hosts exactly if their catalogues are."""
        if self._fingerprint is None:
            self._fingerprint = fingerprint(self._catalogue.values())
        return self._fingerprint

    def __len__(self) -> int:
        return len(self.schemas)

    def get(self, name: str) -> NodeSchema | None:
        """Find a node type by name, ignoring case and separators."""
        return self.schemas.get(name) or self.schemas.get(self._by_fold.get(fold(name), ""))

    def suggest(self, name: str, n: int = 3) -> list[str]:
        """Names close to a misspelt one, best first; a label ("Buffer Memory") counts as its name."""
        folded = fold(name)
        by_label = [schema.name for schema in self.schemas.values() if fold(schema.label) == folded]
        return list(dict.fromkeys([*by_label, *closest(name, self.schemas, n)]))[:n]

    def search(
        self,
        text: str,
        limit: int = 20,
        *,
        kind: str | None = None,
        category: str | None = None,
        accepting: Iterable[str] | None = None,
    ) -> list[NodeSchema]:
        """Types that match a description, best first; for an empty text all that pass the filters, by name.

        Filters: ``kind`` is the flow type in which they run ("CHATFLOW"), ``category`` their category ("Chat Models"),
        ``accepting`` the classes of an anchor that takes them.
        """
        return self._index.search(text, limit, kind=kind, category=category, accepting=accepting)

    def accepting(self, anchor_types: Iterable[str]) -> list[NodeSchema]:
        """Types with an output that fits an anchor of these classes; deprecated ones last, else by name."""
        names = {name for type_ in anchor_types for name in self._giving.get(type_, ())}
        return sorted((self.schemas[name] for name in names), key=lambda schema: (schema.deprecated, schema.name))

    def with_repaired(self, repaired: Schemas) -> "NodeStore":
        """The same catalogue with types added or replaced."""
        return NodeStore(
            self._catalogue, self.flowise_version, source=self.source, fingerprint=self.fingerprint, repaired=repaired
        )

    @cached_property
    def _giving(self) -> dict[str, set[str]]:
        """Names of types by the classes of their outputs."""
        found: dict[str, set[str]] = {}
        for name, schema in self.schemas.items():
            for output in schema.outputs:
                for class_ in output.base_classes:
                    found.setdefault(class_, set()).add(name)
        return found

    @cached_property
    def _by_fold(self) -> dict[str, str]:
        return {fold(name): name for name in self.schemas}

    @cached_property
    def _index(self) -> NodeIndex:
        return NodeIndex(self.schemas.values())


class NodeKnowledge:
    """One catalogue per instance, the same for all workers that share ``cache``.

    A server is asked at most once per ``ttl_secs`` (0: at each request) over all workers, and sends its list only if it
    has changed.
    """

    def __init__(self, ttl_secs: float, cache: InstanceNodes, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.ttl_secs = ttl_secs
        self._cache = cache
        self._clock = clock
        self._stores: dict[str, tuple[tuple[str, int], NodeStore]] = {}
        #: By address.
        self._ask_again_at: dict[str, float] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def store(self, instance_id: str, client: FlowiseClient, *, refresh: bool = False) -> NodeStore:
        """The instance's catalogue; ``refresh`` asks the server now.

        If the server cannot be read: the last list that any worker read from it, else the snapshot (see ``source``);
        the server is asked again after half a minute. With ``refresh`` it is a FlowiseError instead.
        """
        async with self._locks.setdefault(instance_id, asyncio.Lock()):
            head = await self._cache.head(instance_id, client.endpoint)
            if refresh or not self._holds(client.endpoint, head):
                head = await self._ask(instance_id, client, head, must=refresh)
            return await self._store_at(instance_id, client.endpoint, head)

    async def repair(self, instance_id: str, client: FlowiseClient, name: str) -> Repair:
        """Ask the server for one type and store it for all workers, unless this version is known.

        Raises FlowiseError if the server cannot be asked.
        """
        try:
            remote = NodeSchema.from_raw(await client.get_node(name))
        except FlowiseNotFoundError:
            return not_found(name)
        local = (await self.store(instance_id, client)).schemas.get(remote.name)
        decision = decide_repair(local, remote)
        repair = Repair(remote, decision)
        if not repair.updated:
            return Repair(local, decision)
        await self._cache.save_repaired(
            instance_id, client.endpoint, remote.name, text_of(remote.raw), decision.as_dict()
        )
        return repair

    async def changes_since(self, instance_id: str, fingerprint: str, store: NodeStore) -> CatalogueChange:
        """Changes since the catalogue with this fingerprint; its types are unknown if it is no longer stored."""
        former: NodeStore | None = None
        if kept := await self._cache.load(instance_id, fingerprint):
            former = _parsed(*kept, fingerprint)
        elif self._committed.fingerprint == fingerprint:
            former = self._committed
        if former is None:
            return CatalogueChange(fingerprint, store.fingerprint, None, store.flowise_version)
        return compare(former, store)

    def _holds(self, endpoint: str, head: CatalogueHead | None) -> bool:
        if head is not None and head.age_secs is not None and head.age_secs < self.ttl_secs:
            return True
        return self._clock() < self._ask_again_at.get(endpoint, float("-inf"))

    async def _ask(
        self, instance_id: str, client: FlowiseClient, head: CatalogueHead | None, *, must: bool
    ) -> CatalogueHead | None:
        try:
            version = await client.version()
            same = head is not None and head.flowise_version == version
            listed = await client.list_nodes(head.etag if head and same else None)
        except FlowiseError as exc:
            if must:
                raise
            _log.warning("node list of instance %s cannot be read, using what is known: %s", instance_id, exc)
            self._ask_again_at[client.endpoint] = self._clock() + min(self.ttl_secs, _RETRY_SECS)
            return head
        self._ask_again_at.pop(client.endpoint, None)
        if listed.unchanged:
            await self._cache.confirm(instance_id, client.endpoint)
            return head
        schemas = by_name(listed.nodes)
        await self._cache.save(
            instance_id,
            client.endpoint,
            fingerprint=fingerprint(schemas.values()),
            flowise_version=version,
            etag=listed.etag,
            nodes=full_text(schemas.values()),
            names=list(schemas),
        )
        return await self._cache.head(instance_id, client.endpoint)

    async def _store_at(self, instance_id: str, endpoint: str, head: CatalogueHead | None) -> NodeStore:
        if head is None:
            return self._committed
        at = (endpoint, head.revision)
        known = self._stores.get(instance_id)
        if known is not None and known[0] == at:
            return known[1]
        kept = await self._cache.load(instance_id, head.fingerprint) if head.fingerprint else None
        store = _parsed(*kept, head.fingerprint) if kept else self._committed
        repaired = await self._cache.repaired(instance_id)
        if repaired:
            store = store.with_repaired(by_name(json.loads(node) for node in repaired.values()))
        self._stores[instance_id] = (at, store)
        return store

    @cached_property
    def _committed(self) -> NodeStore:
        return NodeStore.from_snapshot()


def _parsed(flowise_version: str, nodes: str, fingerprint: str | None) -> NodeStore:
    return NodeStore(by_name(json.loads(nodes)), flowise_version, source="live", fingerprint=fingerprint)
