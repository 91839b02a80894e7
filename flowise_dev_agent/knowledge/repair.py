"""Decision whether the server's definition of a node type is newer than the known one, with reasons."""

from dataclasses import asdict, dataclass
from typing import Literal

from flowise_dev_agent.knowledge.snapshot import node_hash
from flowise_dev_agent.patch import NodeSchema

RepairAction = Literal[
    "update_new_node", "skip_same_version", "update_changed_version_or_hash", "update_no_version_info", "not_found"
]


@dataclass(frozen=True)
class RepairDecision:
    """The action taken on a response of `GET /nodes/:name`, and its reason. A missing version is None."""

    node_type: str
    action: RepairAction
    decision_reason: str
    comparison_method: Literal["none", "version", "hash"] = "none"
    local_version: str | None = None
    api_version: str | None = None
    local_hash: str | None = None
    api_hash: str | None = None

    def as_dict(self) -> dict[str, str]:
        """The decision for the database and events, without empty fields."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Repair:
    """The result of asking for one type: the current schema; None if the server lacks it too."""

    schema: NodeSchema | None
    decision: RepairDecision

    @property
    def updated(self) -> bool:
        """True if the store changed."""
        return self.decision.action.startswith("update_")


def decide_repair(local: NodeSchema | None, remote: NodeSchema) -> RepairDecision:
    """Compare by version if both sides have one, else by hash of the definition without its texts for people."""
    name = remote.name
    ours, theirs = version_of(local) if local else None, version_of(remote)
    if local is None:
        return RepairDecision(name, "update_new_node", "the type was not known", api_version=theirs)
    if ours and theirs:
        same = ours == theirs
        return RepairDecision(
            name,
            "skip_same_version" if same else "update_changed_version_or_hash",
            "the versions are equal" if same else f"the version went from {ours} to {theirs}",
            comparison_method="version",
            local_version=ours,
            api_version=theirs,
        )
    hashes = node_hash(local), node_hash(remote)
    if hashes[0] == hashes[1]:
        action, reason = "skip_same_version", "the definitions are equal"
    elif ours or theirs:
        action, reason = "update_changed_version_or_hash", "the definitions differ, and only one side has a version"
    else:
        action, reason = "update_no_version_info", "the definitions differ, and neither side has a version"
    return RepairDecision(
        name,
        action,
        reason,
        comparison_method="hash",
        local_version=ours,
        api_version=theirs,
        local_hash=hashes[0],
        api_hash=hashes[1],
    )


def not_found(name: str) -> Repair:
    """The result for a type that the server does not know either."""
    return Repair(None, RepairDecision(name, "not_found", "the server does not know the type"))


def version_of(schema: NodeSchema) -> str | None:
    """The version as text: ``2``, ``2.0`` and ``" 2 "`` are "2"; zero, blank and absent are None."""
    raw = schema.raw.get("version")
    text = f"{raw:g}" if isinstance(raw, int | float) else str(raw or "").strip()
    try:
        number = float(text)
    except ValueError:
        return text or None
    return f"{number:g}" if number else None
