"""Who decides: a person, through their client or on the page, unless the operator lets agents."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from mcp_types import ElicitResult, InputRequiredResult
from pydantic import SecretStr

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.schemas.answers import decides
from flowise_dev_agent.schemas.attachments import AttachmentFacts, AttachmentView
from flowise_dev_agent.schemas.document_stores import DocumentStoreList, DocumentStoreView, RefreshedStore
from tests.fixtures.interrupts import interrupt_of
from tests.unit.api.service_double import EngineDouble
from tests.unit.mcp.conftest import (
    ERAS,
    PAGE,
    Person,
    client_of,
    names_of,
    plan_question,
    problem_of,
    server_of,
    text_of,
)


def answering(session_id: UUID, interrupt_id: str = "i1", **answer: Any) -> dict[str, Any]:
    return {"session_id": str(session_id), "interrupt_id": interrupt_id, "answer": answer, "wait_secs": 0}


@pytest.mark.parametrize("mode", ERAS)
async def test_a_person_confirms_an_approval_in_their_client(engine: EngineDouble, asks: UUID, mode: str) -> None:
    person = Person(confirm=True)
    async with client_of(server_of(engine), mode=mode, person=person) as client:
        result = await client.call_tool("answer_question", answering(asks, action="approve"))
    assert not result.is_error
    (shown,) = person.asked
    assert "# Support bot" in shown
    assert '{"action": "approve"}' in shown
    (call,) = [details for name, details in engine.service.calls if name == "resume"]
    assert (call[0], call[1].interrupt_id, call[1].answer) == (asks, "i1", {"action": "approve"})


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("person", [Person("decline"), Person("cancel"), Person(confirm=False)])
async def test_p60_without_their_yes_nothing_is_answered(
    engine: EngineDouble, asks: UUID, mode: str, person: Person
) -> None:
    async with client_of(server_of(engine), mode=mode, person=person) as client:
        result = await client.call_tool("answer_question", answering(asks, action="approve"))
    assert problem_of(result)["code"] == "person_declined"
    assert "resume" not in names_of(engine)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_cannot_ask_is_told_where_the_person_decides(
    engine: EngineDouble, asks: UUID, mode: str
) -> None:
    async with client_of(server_of(engine), mode=mode) as client:
        result = await client.call_tool("answer_question", answering(asks, action="approve"))
    problem = problem_of(result)
    assert (problem["code"], problem["details"]["page"]) == ("needs_person", f"{PAGE}/#/s/{asks}")
    assert "resume" not in names_of(engine)


def hand_made(count: int) -> dict[str, Any]:
    """Many harmless ops, and one at their end that is not."""
    op = {"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "temperature", "value": 0.2}
    last = {"op_type": "AddNode", "node_id": "requestsPost_0", "node_name": "evilPost"}
    return {"action": "iterate", "ops": [*[op] * count, last]}


async def test_a_form_shows_the_whole_answer(engine: EngineDouble, asks: UUID) -> None:
    engine.service.settle(asks, interrupt=interrupt_of("result_review"))
    person = Person(confirm=True)
    async with client_of(server_of(engine), person=person) as client:
        result = await client.call_tool("answer_question", answering(asks, **hand_made(20)))
    assert not result.is_error, text_of(result)
    assert '"evilPost"}]}' in person.asked[0]


async def test_what_is_too_long_for_a_form_is_decided_on_the_page(engine: EngineDouble, asks: UUID) -> None:
    person = Person(confirm=True)
    for interrupt, answer in (
        (interrupt_of("result_review"), hand_made(59)),
        (plan_question("# Support bot\n" + "- a line\n" * 2_000), {"action": "approve"}),
    ):
        engine.service.settle(asks, interrupt=interrupt)
        async with client_of(server_of(engine), person=person) as client:
            problem = problem_of(await client.call_tool("answer_question", answering(asks, interrupt.id, **answer)))
        assert (problem["code"], problem["details"]["page"]) == ("needs_person", f"{PAGE}/#/s/{asks}")
        assert "too long" in problem["detail"]
    assert person.asked == []
    assert "resume" not in names_of(engine)


async def test_a_form_names_the_files_that_go_with_the_answer(
    engine: EngineDouble, asks: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def get(id_: UUID, *, text: bool) -> AttachmentView:
        assert not text
        now = datetime.now(UTC)
        facts = AttachmentFacts(name="prices.csv", kind="csv", size=3)
        times = {"created_at": now, "expires_at": now}
        return AttachmentView(
            id=id_, session_id=None, media_type="text/csv", sha256="", text_sha256="", facts=facts, **times
        )

    monkeypatch.setattr(engine, "attachments", SimpleNamespace(get=get), raising=False)
    person = Person(confirm=True)
    given = answering(asks, action="approve") | {"attachments": [str(uuid4())]}
    async with client_of(server_of(engine), person=person) as client:
        assert not (await client.call_tool("answer_question", given)).is_error
    assert "- prices.csv" in person.asked[0]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_person_confirms_a_rollback_and_without_their_yes_nothing_is_put_back(
    engine: EngineDouble, asks: UUID, mode: str
) -> None:
    given = {"session_id": str(asks), "version": "v1.0"}
    for person, code in ((Person("decline"), "person_declined"), (None, "needs_person")):
        async with client_of(server_of(engine), mode=mode, person=person) as client:
            assert problem_of(await client.call_tool("rollback", given))["code"] == code
    assert engine.versions.calls == []
    person = Person(confirm=True)
    async with client_of(server_of(engine), mode=mode, person=person) as client:
        result = await client.call_tool("rollback", given)
    assert result.structured_content["label"] == "v1.0"
    assert "v1.0" in person.asked[0]
    assert engine.versions.calls == [("rollback", asks, "v1.0")]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_person_confirms_a_refresh_of_the_store_that_the_form_names(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    store = DocumentStoreView(id=str(uuid4()), name="Handbook", status="SYNC", searchable=False)
    refreshed: list[tuple[str, str | None]] = []

    async def stores(_: AgentClient, instance: str | None = None) -> DocumentStoreList:
        assert instance == "main"
        return DocumentStoreList(instance="main", stores=[store])

    async def refresh(_: AgentClient, store_id: str, instance: str | None = None) -> RefreshedStore:
        refreshed.append((store_id, instance))
        return RefreshedStore(store=store, written=1)

    monkeypatch.setattr(AgentClient, "document_stores", stores)
    monkeypatch.setattr(AgentClient, "refresh_document_store", refresh)
    given = {"store_id": store.id, "instance": "main"}
    for person, code in ((Person("decline"), "person_declined"), (None, "needs_person")):
        async with client_of(server_of(engine), mode=mode, person=person) as client:
            problem = problem_of(await client.call_tool("refresh_document_store", given))
            assert problem["code"] == code
    assert f"document-stores main --refresh {store.id}" in problem["hint"]
    person = Person(confirm=True)
    async with client_of(server_of(engine), mode=mode, person=person) as client:
        unknown = await client.call_tool("refresh_document_store", given | {"store_id": str(uuid4())})
        assert problem_of(unknown)["code"] == "invalid_input"
        assert refreshed == []
        assert not (await client.call_tool("refresh_document_store", given)).is_error
    assert ["'Handbook'" in asked for asked in person.asked] == [True]
    assert refreshed == [(store.id, "main")]


async def test_an_operator_may_let_agents_decide(engine: EngineDouble, asks: UUID) -> None:
    person = Person("decline")
    async with client_of(server_of(engine, approval="agent"), person=person) as client:
        told = await client.call_tool("get_session", {"session_id": str(asks)})
        result = await client.call_tool("answer_question", answering(asks, action="approve"))
    assert "a person decides" not in str(told.content)
    assert (result.is_error, person.asked) == (False, [])


@pytest.mark.parametrize("answer", [{"action": "request_changes", "feedback": "yes but shorter"}, {"action": "cancel"}])
async def test_what_writes_nothing_needs_no_confirmation(
    engine: EngineDouble, asks: UUID, answer: dict[str, Any]
) -> None:
    async with client_of(server_of(engine)) as client:
        assert not (await client.call_tool("answer_question", answering(asks, **answer))).is_error
    assert "resume" in names_of(engine)


@pytest.mark.parametrize(
    "answer", [{}, {"action": "accept"}, {"action": "approve", "approach": "none such"}, {"action": "approve", "x": 1}]
)
async def test_nobody_is_asked_about_an_answer_that_does_not_fit(
    engine: EngineDouble, asks: UUID, answer: dict[str, Any]
) -> None:
    person = Person(confirm=True)
    async with client_of(server_of(engine), person=person) as client:
        result = await client.call_tool("answer_question", answering(asks, **answer))
    assert problem_of(result)["code"] == "invalid_answer"
    assert person.asked == []
    assert "resume" not in names_of(engine)


async def test_p01_nobody_is_asked_about_a_question_that_is_no_longer_open(engine: EngineDouble, asks: UUID) -> None:
    person = Person(confirm=True)
    async with client_of(server_of(engine), person=person) as client:
        await client.call_tool("answer_question", answering(asks, "earlier", action="approve"))
    assert person.asked == []
    (call,) = [details for name, details in engine.service.calls if name == "resume"]
    assert call[1].interrupt_id == "earlier"


async def test_p01_a_repeated_answer_carries_the_same_key_and_another_one_another(
    engine: EngineDouble, asks: UUID
) -> None:
    async with client_of(server_of(engine, approval="agent")) as client:
        for action in ("approve", "approve", "cancel"):
            await client.call_tool("answer_question", answering(asks, action=action))
    first, again, other = [details[2] for name, details in engine.service.calls if name == "resume"]
    assert first == again != other


@pytest.mark.parametrize("shared", [True, False])
async def test_a_confirmation_may_end_at_another_process_of_the_service_but_not_be_made_up(
    engine: EngineDouble, asks: UUID, shared: bool
) -> None:
    person, secret = Person(confirm=True), SecretStr("k")
    arguments = answering(asks, action="approve")
    async with (
        client_of(server_of(engine, secret=secret), person=person) as one,
        client_of(server_of(engine, secret=secret if shared else None), person=person) as other,
    ):
        asked = await one.session.call_tool("answer_question", arguments, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        assert asked.input_requests is not None
        (key,) = asked.input_requests
        again = other.session.call_tool(
            "answer_question",
            arguments,
            input_responses={key: ElicitResult(action="accept", content={"confirm": True})},
            request_state=asked.request_state,
            allow_input_required=True,
        )
        if shared:
            assert not getattr(await again, "is_error", True)
        else:
            with pytest.raises(Exception, match="requestState"):
                await again
    assert ("resume" in names_of(engine)) is shared


async def test_a_confirmation_of_one_question_is_none_of_the_next(engine: EngineDouble, asks: UUID) -> None:
    person = Person(confirm=True)
    arguments = answering(asks, action="approve")
    async with client_of(server_of(engine), person=person) as client:
        asked = await client.session.call_tool("answer_question", arguments, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        engine.service.settle(asks, interrupt=plan_question("# Something else"))
        (key,) = asked.input_requests or {}
        result = await client.session.call_tool(
            "answer_question",
            arguments,
            input_responses={key: ElicitResult(action="accept", content={"confirm": True})},
            request_state=asked.request_state,
            allow_input_required=True,
        )
    assert isinstance(result, InputRequiredResult)
    assert "resume" not in names_of(engine)


@pytest.mark.parametrize(
    ("type_", "action", "person"),
    [
        ("clarification", "answer", False),
        ("select_target", "select", False),
        ("plan_approval", "approve", True),
        ("credential_check", "choose", True),
        ("credential_check", "skip", True),
        ("credential_check", "retry", False),
        ("patch_review", "continue", True),
        ("patch_review", "overwrite", True),
        ("patch_review", "raise_budget", True),
        ("patch_review", "replan", True),
        ("result_review", "accept", True),
        ("result_review", "iterate", True),
        ("result_review", "rollback", True),
    ],
)
def test_what_lets_something_be_written_needs_a_person(type_: str, action: str, person: bool) -> None:
    assert decides(type_, action) is person
