"""The flow that a session made, taken back over MCP."""

from typing import Any
from uuid import UUID

import pytest

from flowise_dev_agent.schemas.versions import RolledBack
from tests.unit.api.service_double import EngineDouble
from tests.unit.mcp.conftest import Person, client_of, server_of


@pytest.mark.parametrize(("created", "done"), [("delete", "is deleted"), ("undeploy", "is undeployed")])
async def test_a_person_confirms_that_a_flow_that_a_session_made_is_taken_back(
    engine: EngineDouble, asks: UUID, monkeypatch: pytest.MonkeyPatch, created: str, done: str
) -> None:
    async def rollback(_id: UUID, label: str | None, **given: Any) -> RolledBack:
        assert (label, given["created"]) == (None, created)
        row = {"label": "v1.0", "chatflow_id": "c1", "sha256": "ab", "updated_date": "d", "already_there": False}
        return RolledBack.model_validate(row | {"created": created})

    monkeypatch.setattr(engine.versions, "rollback", rollback)
    person = Person(confirm=True)
    async with client_of(server_of(engine), person=person) as client:
        result = await client.call_tool("rollback", {"session_id": str(asks), "created": created})
    assert done in str(result.content)
    assert f"{created} the chatflow" in person.asked[0]
