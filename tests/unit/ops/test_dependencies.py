"""What the settings give to the agent."""

from typing import Any

import pytest

from flowise_dev_agent.ops import dependencies
from flowise_dev_agent.ops.connections import Connections
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.settings import FlowiseSettings, ReasoningSettings, load_settings


async def test_each_kind_of_knowledge_has_the_ttl_of_its_own_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    ttls: dict[str, float] = {}
    for name in ("NodeKnowledge", "CredentialKnowledge", "TemplateKnowledge"):

        def recorded(ttl_secs: float, *_: Any, name: str = name) -> None:
            ttls[name] = ttl_secs

        monkeypatch.setattr(dependencies, name, recorded)
    settings = load_settings(
        reasoning=ReasoningSettings(engine_choice="deterministic"),
        flowise=FlowiseSettings(
            DISCOVER_CACHE_TTL_SECS=1, CREDENTIAL_SNAPSHOT_TTL_SECONDS=2, TEMPLATE_SNAPSHOT_TTL_SECONDS=3
        ),
    )

    database = Database("postgresql://nowhere")
    async with dependencies.open_agent(settings, database, Connections(settings, database)):
        assert ttls == {"NodeKnowledge": 1, "CredentialKnowledge": 2, "TemplateKnowledge": 3}
