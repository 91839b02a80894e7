"""Tests that cannot run are not run: nothing is asked, and the person reads what to fill in."""

from types import SimpleNamespace
from typing import Any

import pytest

from flowise_dev_agent.agent.domains.flowise import FlowiseCapability
from flowise_dev_agent.patch import AddNode, GraphIR, Schemas, compile_ops
from flowise_dev_agent.schemas.plan import TestCase
from flowise_dev_agent.testing.checks import keep_from_running
from flowise_dev_agent.testing.trials import TrialConversation

LEFT = "[PLACEHOLDER: the address]"


def flow(schemas: Schemas, node: str, **params: Any) -> GraphIR:
    return compile_ops(GraphIR.empty(), [AddNode(node_name=node, node_id=f"{node}_0", params=params)], schemas).graph


@pytest.mark.parametrize(
    ("node", "params", "stops"),
    [
        ("sqlDatabaseChain", {"url": LEFT}, True),
        ("notionPage", {"pageId": LEFT}, True),
        ("plainText", {"text": LEFT}, False),
        ("promptTemplate", {"template": LEFT}, False),
        ("requestsGet", {"requestsGetUrl": LEFT}, False),
        ("httpAgentflow", {"url": LEFT}, False),
        ("sqlDatabaseChain", {"url": "postgresql://db.example/x", "customPrompt": LEFT}, False),
    ],
)
def test_only_a_required_setting_keeps_a_chatflow_from_running(
    node: str, params: dict[str, Any], *, stops: bool, schemas: Schemas
) -> None:
    assert bool(keep_from_running(flow(schemas, node, **params))) is stops


async def test_a_flow_that_cannot_be_built_is_not_asked(schemas: Schemas) -> None:
    data = flow(schemas, "sqlDatabaseChain", url=LEFT).to_flow_data()
    nobody: Any = SimpleNamespace(flowise=None)
    conversation = TrialConversation("f", data, TestCase(id="t1", turns=["Hi"]), 1, "s")
    run = await FlowiseCapability().run_trial(nobody, conversation)
    assert (run.trial.passed, run.trial.category) == (False, "CONFIG")
    assert "Still to be filled in: Sql Database Chain" in run.trial.error
