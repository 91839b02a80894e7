"""A server that is upgraded under a session: told, refused once or read anew, as the policy says."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.credential_store import CredentialStore, KnownCredential
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.snapshot import by_name
from flowise_dev_agent.patch import AddNode, BindCredential, Connect
from flowise_dev_agent.schemas.plan import PlannedNode
from tests.unit.agent.rig import OPENAI, Bench, plan


def _bench(policy: str) -> Bench:
    ops = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name="conversationChain", node_id="conversationChain_0"),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
        BindCredential(node_id="chatOpenAI_0", credential_id=OPENAI),
    ]
    return Bench(ops, CredentialStore([KnownCredential(id=OPENAI, name="key", type="openAIApi")]), drift_policy=policy)


def _upgraded(store: NodeStore) -> NodeStore:
    raw = {name: dict(schema.raw) for name, schema in store.schemas.items()}
    raw["conversationChain"]["version"] = 99
    return NodeStore(by_name(raw.values()), "3.2.0", source="live")


def _drifts(bench: Bench) -> list[dict[str, Any]]:
    return [event for event in bench.events if event["type"] == "drift" and event["node"] == "compile_flow_data"]


async def test_a_session_keeps_the_fingerprint_of_each_iteration() -> None:
    bench = _bench("warn")
    await bench.start()
    await bench.answer(action="approve")

    assert (await bench.state()).catalogue.fingerprints == {"0": bench.knowledge.store.fingerprint}
    assert _drifts(bench) == []


@pytest.mark.parametrize("policy", ["warn", "refresh"])
async def test_p82_an_upgrade_between_plan_and_patch_is_told_and_used(policy: str) -> None:
    bench = _bench(policy)
    await bench.start()
    if policy == "warn":
        bench.knowledge.store = _upgraded(bench.knowledge.store)
    else:
        bench.knowledge.upgraded = _upgraded(bench.knowledge.store)

    review = await bench.answer(action="approve")

    (drift,) = _drifts(bench)
    assert "Flowise 3.1.4 → 3.2.0" in drift["summary"]
    assert drift["data"]["changed"] == ["conversationChain 3 → 99"]
    assert drift["data"]["policy"] == policy
    assert review["type"] == "result_review"
    (flow,) = bench.flowise.flows.values()
    assert '"version":99' in flow.flow_data.replace(" ", "")
    assert (await bench.state()).catalogue.fingerprints == {"0": bench.knowledge.store.fingerprint}


async def test_p82_policy_fail_sends_the_ops_back_once() -> None:
    bench = _bench("fail")
    await bench.start()
    bench.knowledge.store = _upgraded(bench.knowledge.store)

    review = await bench.answer(action="approve")

    assert review["type"] == "result_review"
    assert len(bench.reasoner.seen["patch"]) == 2
    assert [finding.code for finding in bench.reasoner.seen["patch"][1].findings] == ["SCHEMA_DRIFT"]
    assert len(_drifts(bench)) == 1


async def test_building_on_the_snapshot_is_told() -> None:
    bench = _bench("warn")
    await bench.start()

    assert any("cannot be read" in event["summary"] for event in bench.events if event["type"] == "drift")


async def test_p25_repairs_stay_within_their_budget() -> None:
    bench = _bench("warn")
    bench.limits = bench.limits.model_copy(update={"max_schema_repairs_per_iter": 1})
    unknown = [AddNode(node_name=name, node_id=f"{name}_0") for name in ("zzzFirst", "qqqSecond")]
    bench.reasoner.patches = [unknown]
    planned = [PlannedNode(node_id=op.node_id, node_name=op.node_name, purpose="new") for op in unknown]
    bench.reasoner.plans = [plan(nodes=planned)]
    await bench.start()

    await bench.answer(action="approve")

    assert len(bench.knowledge.repairs) == 1
    told = [event["data"] for event in bench.events if event["node"] == "repair_schema" and event["type"] == "drift"]
    assert told[0]["decisions"][0]["action"] == "not_found"
