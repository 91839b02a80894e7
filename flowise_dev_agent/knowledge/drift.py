"""Comparison of catalogues: changes of a server's node types during a session, or since the snapshot."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from flowise_dev_agent.knowledge.repair import version_of
from flowise_dev_agent.knowledge.snapshot import node_hash, read_meta
from flowise_dev_agent.patch import NodeSchema, Schemas
from flowise_dev_agent.persistence import InstanceNodes
from flowise_dev_agent.schemas.event_data import DriftCounts, DriftData
from flowise_dev_agent.schemas.knowledge import InstanceKnowledge, KnowledgeReport, SnapshotInfo
from flowise_dev_agent.texts import sentences, text

#: Maximum number of names in a sentence or an event; the counts are complete.
_NAMED = 5


@dataclass(frozen=True)
class CatalogueChange:
    """A change from one catalogue to another. ``types_known`` is false if the former one is no longer stored.

    ``changed`` holds sentences such as "chatOpenAI 8.2 → 8.3".
    """

    before: str
    after: str
    version_before: str | None
    version_after: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    types_known: bool = False

    @property
    def any(self) -> bool:
        """True if the catalogues differ."""
        return self.before != self.after

    @property
    def text(self) -> str:
        """A sentence for people."""
        version = f"Flowise {self.version_after}"
        if self.version_before and self.version_before != self.version_after:
            version = f"Flowise {self.version_before} → {self.version_after}"
        parts = [
            text(f"drift.{part}", number=len(names), names=[*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])
            for part, names in (("added", self.added), ("removed", self.removed), ("changed", self.changed))
            if names
        ]
        if self.types_known and not parts:
            parts = [text("drift.descriptions")]
        return sentences(text("drift.types", version=version), *parts)

    def as_event(self) -> DriftData:
        """The data of a `drift` event."""
        return DriftData(
            before=self.before[:12],
            after=self.after[:12],
            flowise_version=self.version_after,
            counts=DriftCounts(added=len(self.added), removed=len(self.removed), changed=len(self.changed)),
            added=list(self.added[: 4 * _NAMED]),
            removed=list(self.removed[: 4 * _NAMED]),
            changed=list(self.changed[: 4 * _NAMED]),
        )


class Catalogue(Protocol):
    """A node store, as far as the comparison needs it."""

    schemas: Schemas
    flowise_version: str

    @property
    def fingerprint(self) -> str: ...


def compare(before: Catalogue, after: Catalogue) -> CatalogueChange:
    """Compare two catalogues: added, removed and redefined types; texts for people do not count."""
    old, new = before.schemas, after.schemas
    return CatalogueChange(
        before=before.fingerprint,
        after=after.fingerprint,
        version_before=before.flowise_version,
        version_after=after.flowise_version,
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(
            _change(old[name], new[name])
            for name in sorted(old.keys() & new.keys())
            if node_hash(old[name]) != node_hash(new[name])
        ),
        types_known=True,
    )


def _change(old: NodeSchema, new: NodeSchema) -> str:
    versions = version_of(old), version_of(new)
    return f"{new.name} {versions[0]} → {versions[1]}" if versions[0] != versions[1] else new.name


async def knowledge_health(cache: InstanceNodes, instances: Iterable[tuple[str, str]]) -> KnowledgeReport:
    """Read the state of each server's knowledge, and its drift from the snapshot.

    ``instances`` are (id, endpoint). Reads only the database, never a server; raises DatabaseUnavailableError.
    """
    meta = read_meta()
    report: dict[str, InstanceKnowledge] = {}
    for instance_id, endpoint in instances:
        head = await cache.head(instance_id, endpoint)
        if head is None or head.fingerprint is None:
            report[instance_id] = InstanceKnowledge(source="snapshot", repaired=head.repaired if head else 0)
            continue
        report[instance_id] = InstanceKnowledge(
            source="live",
            flowise_version=head.flowise_version,
            fingerprint=head.fingerprint[:12],
            node_count=head.node_count,
            age_secs=round(head.age_secs or 0),
            repaired=head.repaired,
            drift=head.fingerprint != meta.sha256,
        )
    snapshot = SnapshotInfo(
        flowise_version=meta.flowise_version, fingerprint=meta.sha256[:12], node_count=meta.node_count
    )
    return KnowledgeReport(snapshot=snapshot, instances=report)
