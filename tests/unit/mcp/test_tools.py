"""The tools: what they take, what they answer, what they say meanwhile."""

import logging
from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID, uuid4

import pytest

from flowise_dev_agent.client import transport
from flowise_dev_agent.errors import DatabaseUnavailableError, SessionConflictError
from flowise_dev_agent.schemas.events import SessionEvent
from flowise_dev_agent.schemas.flow_writes import FlowDocument
from flowise_dev_agent.schemas.session import ResultView
from flowise_dev_agent.schemas.verdict import Trace, TracedTurn, TraceStep, Trial
from tests.unit.api.service_double import EngineDouble, ServiceDouble, event
from tests.unit.mcp.conftest import ERAS, PAGE, client_of, names_of, plan_question, problem_of, server_of, text_of

READS = {
    *("get_session", "list_sessions", "list_chatflows", "read_chatflow"),
    *("search_catalogue", "get_node_types", "get_node_details", "list_options", "list_document_stores"),
    *("check_flow", "read_trace", "list_versions", "compare_versions", "export_chatflow"),
    *("list_chatflow_versions", "compare_chatflow_versions"),
    *("list_fleet", "get_test_set", "get_guard", "get_certificate"),
    *("get_plan", "get_memory", "get_milestone", "get_decision_artifact", "get_node_artifact"),
}


@pytest.mark.parametrize("mode", ERAS)
async def test_every_tool_has_schemas_a_description_and_honest_hints(engine: EngineDouble, mode: str) -> None:
    async with client_of(server_of(engine), mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    destroys = {"answer_question", "cancel_session", "test_flow", "rollback", "delete_memory"}
    destroys |= {"restore_chatflow_version", "put_test_set"}
    acts = {"start_session", "attach_file", "refresh_document_store", "add_memory", "put_guard"}
    assert set(tools) == READS | destroys | acts
    for name, tool in tools.items():
        assert tool.description
        assert tool.output_schema is not None
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name in READS)
        assert tool.annotations.destructive_hint is (name in destroys)
    assert "person" in str(tools["answer_question"].description)
    assert "confirmed" not in tools["answer_question"].input_schema["properties"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_start_waits_for_the_question_and_tells_what_happens(engine: EngineDouble, mode: str) -> None:
    told: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    class Working(ServiceDouble):
        async def events(self, session_id: UUID, after_seq: int = 0) -> AsyncGenerator[SessionEvent]:
            yield event(session_id, 1, "node_start")
            yield event(session_id, 2, "cost")
            self.settle(session_id, interrupt=plan_question("# Orders"))
            yield event(session_id, 3, "interrupt")

    engine.service = Working()
    async with client_of(server_of(engine), mode=mode) as client:
        result = await client.call_tool(
            "start_session", {"requirement": "An order bot", "target": "Shop"}, progress_callback=on_progress
        )
    (_, (request, _)) = next(call for call in engine.service.calls if call[0] == "start")
    assert (request.requirement, request.target, request.operation) == ("An order bot", "Shop", "auto")
    assert told == ["two\nlines"]
    report = result.structured_content
    assert report["session"]["interrupt"]["response_schema"]["oneOf"]
    assert report["page"] == f"{PAGE}/#/s/{report['session']['session_id']}"
    assert report["change"]["summary"]
    text = text_of(result)
    assert "# Orders" in text
    assert "- approve: Approve.  [a person decides]" in text
    assert "- request_changes: Request changes. \n" in text
    assert "interrupt_id i1" in text


async def test_p41_a_wait_ends_with_the_session_as_it_stands(engine: EngineDouble) -> None:
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool("start_session", {"requirement": "x", "wait_secs": 0.01})
    assert result.structured_content["session"]["status"] == "in_progress"
    assert result.structured_content["change"] is None
    assert "get_session" in text_of(result)
    assert engine.service.streams_closed == names_of(engine).count("events")


async def test_a_session_that_ended_shows_its_result(engine: EngineDouble) -> None:
    session_id = uuid4()
    tests = [Trial(question="Where?", passed=True, answer="Here.")]
    engine.service.settle(
        session_id,
        "completed",
        outcome="accepted",
        chatflow_id="c1",
        chatflow_url="http://flowise/canvas/c1",
        result=ResultView(summary="It works.", tests=tests),
    )
    async with client_of(server_of(engine)) as client:
        text = text_of(await client.call_tool("get_session", {"session_id": str(session_id)}))
    for part in ("completed (accepted)", "http://flowise/canvas/c1", "It works.", "- passed: Where? -> Here."):
        assert part in text


async def test_a_failed_session_shows_its_error(engine: EngineDouble) -> None:
    session_id = uuid4()
    engine.service.settle(session_id, "error", error={"code": "model_auth", "detail": "No.", "hint": "Set a key."})
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool("get_session", {"session_id": str(session_id)})
    assert not result.is_error
    assert "model_auth: No. Set a key." in text_of(result)


async def test_cancel_stops_a_session(engine: EngineDouble, asks: UUID) -> None:
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool("cancel_session", {"session_id": str(asks)})
    assert result.structured_content["session"]["outcome"] == "cancelled"


async def test_lists_take_filters_and_are_short(engine: EngineDouble, asks: UUID) -> None:
    engine.service.settle(asks, requirement="long " * 5_000)
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool("list_sessions", {"status": "pending_interrupt", "text": "bot", "limit": 3})
        flows = await client.call_tool("list_chatflows", {"query": "order", "instance": "dev"})
        hits = await client.call_tool("search_catalogue", {"query": "memory"})
    assert len(result.structured_content["sessions"][0]["requirement"]) == 300
    assert str(asks) in text_of(result)
    assert ("dev", "order", 20, False) in engine.flows.calls
    assert flows.structured_content["total"] == 0
    assert hits.structured_content["nodes"] == []


async def test_node_types_are_listed_shown_and_their_options_read(engine: EngineDouble) -> None:
    async with client_of(server_of(engine)) as client:
        listed = await client.call_tool("get_node_types", {"query": "openai"})
        details = await client.call_tool("get_node_details", {"nodes": [{"node_type": "chatOpenAI"}]})
        options = await client.call_tool("list_options", {"node": "chatOpenAI", "param": "modelName"})
        unknown = await client.call_tool("get_node_details", {"nodes": [{"node_type": "chatOpenAl"}]})
        elsewhere = {"node_type": "Tools", "subtype": "chatOpenAI"}
        misplaced = await client.call_tool("get_node_details", {"nodes": [elsewhere]})
    assert listed.structured_content["total"] == 1
    assert text_of(details) == "### chatOpenAI"
    assert options.structured_content["options"][0]["name"] == "gpt-4o"
    assert problem_of(unknown)["hint"] == "Close names: chatOpenAI."
    assert problem_of(misplaced)["detail"] == "chatOpenAI is not of the category 'Tools', but of 'Chat Models'."


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "Give either `text` or `content_base64`."),
        ({"text": "a", "content_base64": "YQ=="}, "Give either `text` or `content_base64`."),
        ({"content_base64": "no base64"}, "`content_base64` is not Base64."),
    ],
)
async def test_a_file_that_cannot_be_taken_is_said(engine: EngineDouble, given: dict[str, str], problem: str) -> None:
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool("attach_file", {"name": "a.txt", **given})
    assert problem_of(result)["detail"] == problem


async def test_a_flow_too_large_for_an_answer_is_not_exported(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def document(chatflow_id: str, instance: str | None) -> FlowDocument:
        return FlowDocument(
            id=chatflow_id, name="Big", type="CHATFLOW", flow_data="x" * 400_001, sha256="ab" * 32, updated="d"
        )

    monkeypatch.setattr(engine.flows, "document", document)
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool("export_chatflow", {"chatflow_id": str(uuid4())})
    assert problem_of(result)["code"] == "invalid_input"
    assert "flowise-dev-agent export" in problem_of(result)["hint"]


async def test_a_start_takes_a_model_trials_and_a_budget(engine: EngineDouble) -> None:
    given = {"requirement": "A bot", "model": "gpt-4o", "test_trials": 3, "budget_usd": 0.5, "wait_secs": 0}
    async with client_of(server_of(engine)) as client:
        await client.call_tool("start_session", given)
    ((request, *_),) = [details for name, details in engine.service.calls if name == "start"]
    assert (request.model, request.test_trials, request.budget.usd) == ("gpt-4o", 3, 0.5)


async def test_p30_an_answer_is_bounded_whatever_the_session_holds(engine: EngineDouble, asks: UUID) -> None:
    engine.service.settle(asks, interrupt=plan_question("p" * 1_000_000))
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool("get_session", {"session_id": str(asks)})
    assert result.structured_content["session"]["interrupt"]["data"]["truncated"] == ["plan"]
    assert len(result.model_dump_json()) < 60_000
    assert len(text_of(result)) <= 12_000
    assert "pppp" in text_of(result)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (DatabaseUnavailableError("The database does not answer."), "database_unavailable"),
        (SessionConflictError("Answered."), "session_conflict"),
    ],
)
async def test_errors_keep_the_words_of_the_service(
    engine: EngineDouble, failure: Exception, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The service asks for pauses of 5 s; the client's own tests hold that it makes them.
    monkeypatch.setattr(transport, "_LONGEST_PAUSE_SECS", 0)
    engine.service.failure = failure
    async with client_of(server_of(engine)) as client:
        assert problem_of(await client.call_tool("list_sessions", {}))["code"] == code


async def test_p62_what_nobody_foresaw_tells_nothing(engine: EngineDouble, caplog: pytest.LogCaptureFixture) -> None:
    engine.service.failure = RuntimeError("SELECT s3cret FROM sessions")
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool("list_sessions", {})
    assert problem_of(result)["code"] == "internal_error"
    assert "s3cret" not in result.model_dump_json()
    assert [record.levelno for record in caplog.records if "unexpected error" in record.message] == [logging.ERROR]


@pytest.mark.parametrize(
    ("tool", "arguments", "part"),
    [
        ("start_session", {"requirement": "  "}, "blank"),
        ("start_session", {"requirement": "a\x00s3cret"}, "NUL"),
        ("start_session", {"requirement": "s3cret" * 10_000}, "32000"),
        ("start_session", {"requirement": "x", "webhook_url": "https://s3cret"}, "webhook_url"),
        ("start_session", {"requirement": "x", "wait_secs": 301}, "wait_secs"),
        ("get_session", {"session_id": "s3cret/../b"}, "session_id"),
        ("answer_question", {"session_id": str(uuid4()), "interrupt_id": "i", "answer": "s3cret"}, "answer"),
        ("list_sessions", {"limit": 51}, "limit"),
    ],
)
async def test_p64_p68_wrong_arguments_are_refused_and_not_repeated(
    engine: EngineDouble, tool: str, arguments: dict[str, Any], part: str
) -> None:
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool(tool, arguments)
    assert problem_of(result)["code"] == "invalid_request"
    assert part in problem_of(result)["detail"]
    assert "s3cret" not in result.model_dump_json()
    assert names_of(engine) == []


@pytest.mark.parametrize(
    ("arguments", "part"), [({}, "requirement"), ({"new_name": "Second", "operation": "copy"}, "target")]
)
async def test_a_start_with_nothing_to_do_is_refused(
    engine: EngineDouble, arguments: dict[str, Any], part: str
) -> None:
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool("start_session", arguments)
    assert problem_of(result)["code"] == "invalid_input"
    assert part in problem_of(result)["detail"]
    assert names_of(engine) == []


async def test_a_plain_copy_needs_no_requirement(engine: EngineDouble) -> None:
    asked = {"new_name": "Second", "operation": "copy", "target": "Desk", "wait_secs": 0}
    async with client_of(server_of(engine)) as client:
        assert not (await client.call_tool("start_session", asked)).is_error
    assert names_of(engine) == ["start"]


async def test_an_unknown_tool_is_an_error(engine: EngineDouble) -> None:
    async with client_of(server_of(engine)) as client:
        assert problem_of(await client.call_tool("drop_everything", {}))["code"] == "tool_error"


async def test_a_trace_of_a_test_is_shown_and_cut_to_what_a_result_may_hold(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [TraceStep(node_id=f"llmAgentflow_{n}", status="FINISHED", output="x" * 4_000) for n in range(60)]
    trace = Trace(turns=[TracedTurn(said="Hello", answer="Hello heron")], steps=steps)

    async def read(session_id: UUID, sha256: str) -> Trace:
        return trace

    monkeypatch.setattr(engine.service, "trace", read, raising=False)
    async with client_of(server_of(engine)) as client:
        result = await client.call_tool("read_trace", {"session_id": str(uuid4()), "trace_sha256": "a" * 64})
    assert not result.is_error
    shown = result.structured_content or {}
    assert (shown["turns"][0]["answer"], shown["cut"]) == ("Hello heron", True)
    assert 0 < len(shown["steps"]) < 60
    assert len(result.model_dump_json()) < 100_000
    assert "llmAgentflow_0" in text_of(result)
