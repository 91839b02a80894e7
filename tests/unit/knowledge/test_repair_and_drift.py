"""When an answer of the server is taken over, and what is told of a catalogue that has changed."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.drift import compare, knowledge_health
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.repair import decide_repair
from flowise_dev_agent.knowledge.snapshot import by_name, read_meta
from flowise_dev_agent.patch import NodeSchema, Schemas
from flowise_dev_agent.schemas.event_data import DriftCounts
from flowise_dev_agent.schemas.knowledge import InstanceKnowledge, SnapshotInfo
from flowise_dev_agent.texts import sentences, text
from tests.unit.knowledge.memory_caches import MemoryNodes


def _node(**values: Any) -> NodeSchema:
    return NodeSchema.from_raw({"name": "n", "label": "N"} | values)


@pytest.mark.parametrize(
    ("local", "remote", "action", "method"),
    [
        (None, _node(version=1), "update_new_node", "none"),
        (_node(version=2), _node(version=2, label="other"), "skip_same_version", "version"),
        (_node(version=2), _node(version="2"), "skip_same_version", "version"),
        (_node(version=2.0), _node(version=" 2 "), "skip_same_version", "version"),
        (_node(version=2), _node(version=2.1), "update_changed_version_or_hash", "version"),
        (_node(), _node(), "skip_same_version", "hash"),
        (_node(), _node(description="Flowise's words"), "skip_same_version", "hash"),
        (_node(), _node(label="other"), "update_no_version_info", "hash"),
        (_node(version=0), _node(version="  ", label="other"), "update_no_version_info", "hash"),
        (_node(version=1), _node(label="other"), "update_changed_version_or_hash", "hash"),
        (_node(), _node(version=1), "update_changed_version_or_hash", "hash"),
    ],
)
def test_repair_is_gated_by_version_then_by_hash(
    local: NodeSchema | None, remote: NodeSchema, action: str, method: str
) -> None:
    decision = decide_repair(local, remote)

    assert (decision.action, decision.comparison_method) == (action, method)
    assert decision.decision_reason
    assert ("local_hash" in decision.as_dict()) == (method == "hash")


def test_the_decision_says_what_was_compared() -> None:
    assert decide_repair(_node(version=8.2), _node(version=8.3)).as_dict() == {
        "node_type": "n",
        "action": "update_changed_version_or_hash",
        "decision_reason": "the version went from 8.2 to 8.3",
        "comparison_method": "version",
        "local_version": "8.2",
        "api_version": "8.3",
    }


def test_p82_a_change_of_the_catalogue_is_told_by_name_and_version(schemas: Schemas) -> None:
    raw = {name: dict(schema.raw) for name, schema in schemas.items()}
    raw["chatOpenAI"]["version"] = 9
    raw["calculator"]["label"] = "Abacus"
    raw["new"] = {"name": "new"}
    del raw["csvFile"]

    change = compare(NodeStore(schemas, "3.1.4"), NodeStore(by_name(raw.values()), "3.2.0"))

    assert change.any
    assert (change.added, change.removed) == (("new",), ("csvFile",))
    assert change.changed == ("calculator", "chatOpenAI 8.3 → 9")
    assert change.text == sentences(
        text("drift.types", version="Flowise 3.1.4 → 3.2.0"),
        text("drift.added", number=1, names=["new"]),
        text("drift.removed", number=1, names=["csvFile"]),
        text("drift.changed", number=2, names=["calculator", "chatOpenAI 8.3 → 9"]),
    )
    assert change.as_event().counts == DriftCounts(added=1, removed=1, changed=2)


def test_other_words_of_flowise_are_no_change(catalogue: NodeStore) -> None:
    described = by_name(dict(schema.raw) | {"description": "words"} for schema in catalogue.schemas.values())

    assert not compare(catalogue, NodeStore(described, "3.1.4")).any


async def test_health_tells_which_servers_differ_from_the_snapshot() -> None:
    cache = MemoryNodes()
    for instance, fingerprint in (("same", read_meta().sha256), ("other", "f" * 64)):
        await cache.save(
            instance, "http://x", fingerprint=fingerprint, flowise_version="3.1.4", etag=None, nodes="[]", names=["a"]
        )
    await cache.save_repaired("single", "http://x", "n", "{}", {})

    report = await knowledge_health(cache, [(name, "http://x") for name in ("same", "other", "single", "never")])

    assert report.snapshot == SnapshotInfo(flowise_version="3.1.4", fingerprint=read_meta().sha256[:12], node_count=297)
    instances = report.instances
    assert (instances["same"].drift, instances["other"].drift) == (False, True)
    assert instances["other"].fingerprint == "f" * 12
    assert instances["single"] == InstanceKnowledge(source="snapshot", repaired=1)
    assert instances["never"] == InstanceKnowledge(source="snapshot", repaired=0)
