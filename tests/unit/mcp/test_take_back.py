"""Versions put back over MCP, and the flow that a session made taken back: a person confirms both."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.schemas.flow_writes import FlowWriteResult
from flowise_dev_agent.schemas.versions import RolledBack
from tests.unit.api.service_double import EngineDouble
from tests.unit.mcp.conftest import Person, client_of, problem_of, server_of


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


@pytest.mark.parametrize("confirm", [True, False, None])
async def test_a_version_is_restored_only_when_a_person_confirms_it(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch, confirm: bool | None
) -> None:
    restored: list[tuple[str, str]] = []

    async def restore(_self: AgentClient, chatflow_id: str, version: str, **_: Any) -> FlowWriteResult:
        restored.append((chatflow_id, version))
        row = {"status": "completed", "session_id": None, "instance": "i", "name": "Shop", "type": "CHATFLOW"}
        row |= {"chatflow_id": chatflow_id, "sha256": "ab", "created": False, "credentials": [], "findings": []}
        return FlowWriteResult.model_validate(row)

    monkeypatch.setattr(AgentClient, "restore_version", restore)
    person, body = None if confirm is None else Person(confirm=confirm), {"chatflow_id": str(uuid4()), "version": "v4"}
    async with client_of(server_of(engine), person=person) as client:
        result = await client.call_tool("restore_chatflow_version", body)
    assert restored == ([(body["chatflow_id"], "v4")] if confirm else [])
    if not confirm:
        assert problem_of(result)["code"] == ("needs_person" if confirm is None else "person_declined")
