"""Changes in words without a model: text is not interpreted, so no requirement reaches more nodes than it names."""

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.planning.requests import PlanRequest
from flowise_dev_agent.schemas.plan import Intent
from tests.unit.patch.test_cases import case


async def test_a_change_of_a_node_that_no_name_fits_changes_nothing(catalogue: NodeStore) -> None:
    """It set the temperature of all four models."""
    requirement = case("E3-scope-of-a-change")["requirement"]
    intent = Intent(operation="update", ambiguity=0, title="Bot", language="en")
    request = PlanRequest(
        requirement=requirement, intent=intent, nodes=catalogue, target_kind="CHATFLOW", flow_summary="x"
    )
    plan = (await DeterministicReasoner().plan(request)).value
    assert plan.declined
    assert (plan.nodes, plan.connections) == ([], [])
