"""The caches of nodes and templates in memory, with the same rules."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from flowise_dev_agent.persistence import CatalogueHead


@dataclass
class _Instance:
    endpoint: str
    head: CatalogueHead
    checked_at: float | None = None
    lists: dict[str, tuple[str, str]] = field(default_factory=dict)
    repaired: dict[str, str] = field(default_factory=dict)


class MemoryNodes:
    """See `persistence.InstanceNodes`. ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._instances: dict[str, _Instance] = {}

    async def head(self, instance_id: str, endpoint: str) -> CatalogueHead | None:
        kept = self._instances.get(instance_id)
        if kept is None or kept.endpoint != endpoint:
            return None
        age = None if kept.checked_at is None else self._clock() - kept.checked_at
        return replace(kept.head, age_secs=age, repaired=len(kept.repaired))

    async def load(self, instance_id: str, fingerprint: str) -> tuple[str, str] | None:
        return self._instances[instance_id].lists.get(fingerprint) if instance_id in self._instances else None

    async def save(
        self,
        instance_id: str,
        endpoint: str,
        *,
        fingerprint: str,
        flowise_version: str,
        etag: str | None,
        nodes: str,
        names: Sequence[str],
    ) -> None:
        kept = self._kept(instance_id, endpoint)
        kept.checked_at = self._clock()
        kept.lists[fingerprint] = (flowise_version, nodes)
        kept.repaired = {name: node for name, node in kept.repaired.items() if name not in names}
        kept.head = replace(
            kept.head,
            revision=kept.head.revision + 1,
            fingerprint=fingerprint,
            flowise_version=flowise_version,
            etag=etag,
            node_count=len(names),
        )

    async def confirm(self, instance_id: str, endpoint: str) -> None:
        self._kept(instance_id, endpoint).checked_at = self._clock()

    async def repaired(self, instance_id: str) -> dict[str, str]:
        return dict(self._instances[instance_id].repaired)

    async def save_repaired(
        self, instance_id: str, endpoint: str, name: str, node: str, decision: dict[str, Any]
    ) -> None:
        del decision
        kept = self._kept(instance_id, endpoint)
        kept.repaired[name] = node
        kept.head = replace(kept.head, revision=kept.head.revision + 1)

    def _kept(self, instance_id: str, endpoint: str) -> _Instance:
        kept = self._instances.get(instance_id)
        if kept is None or kept.endpoint != endpoint:
            kept = _Instance(endpoint, CatalogueHead(0, None, None, None, None, 0, 0))
            self._instances[instance_id] = kept
        return kept


class MemoryTemplates:
    """See `persistence.InstanceTemplates`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.lists = 0
        self._listed: dict[tuple[str, str], tuple[list[dict[str, Any]], float]] = {}
        self._contents: dict[str, str] = {}

    async def read_at(self, instance_id: str, endpoint: str) -> tuple[datetime, float] | None:
        entry = self._listed.get((instance_id, endpoint))
        return None if entry is None else (datetime.fromtimestamp(entry[1], UTC), self._clock() - entry[1])

    async def listed(self, instance_id: str, endpoint: str) -> tuple[list[dict[str, Any]], float] | None:
        self.lists += 1
        entry = self._listed.get((instance_id, endpoint))
        return None if entry is None else (entry[0], self._clock() - entry[1])

    async def save(
        self, instance_id: str, endpoint: str, entries: Sequence[Mapping[str, Any]], contents: Mapping[str, str]
    ) -> None:
        self._listed[instance_id, endpoint] = ([dict(entry) for entry in entries], self._clock())
        self._contents.update(contents)

    async def content(self, sha256: str) -> str | None:
        return self._contents.get(sha256)
