"""Tools for sessions: start, get, answer, cancel, list, and the trace of a test."""

import asyncio
import hashlib
import json
from base64 import b64decode
from contextlib import aclosing, suppress
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from mcp.server.mcpserver import ElicitationResult, Resolve
from mcp_types import CallToolResult
from pydantic import Field, ValidationError

from flowise_dev_agent.client import RUN_END_EVENTS, AgentClient
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.mcp.consent import Confirmation, action_lines, check_confirmed, confirmation
from flowise_dev_agent.mcp.host import SessionId, ToolContext, WaitSecs, client_of, host_of, page_of
from flowise_dev_agent.mcp.results import (
    SessionReport,
    fitted_page,
    fitted_trace,
    report,
    session_lines,
    succeeded,
)
from flowise_dev_agent.schemas.attachments import AttachmentView
from flowise_dev_agent.schemas.requests import (
    Line,
    LongText,
    Question,
    ResumeSession,
    SessionName,
    StartSession,
)
from flowise_dev_agent.schemas.session import PublicStatus, SessionPage, SessionView
from flowise_dev_agent.schemas.verdict import Trace

#: Types of the events reported as progress.
_PROGRESS: Final = frozenset({"node_start", "node_end", "retry", "fallback", "write", "test"})

Report = Annotated[CallToolResult, SessionReport]


async def start_session(
    ctx: ToolContext,
    requirement: Annotated[
        LongText | None, Field(description="What to build or change, in plain words; left out with new_name.")
    ] = None,
    operation: Annotated[
        Literal["auto", "create", "update", "copy"],
        Field(description="auto reads it from the requirement; update and copy need an existing chatflow."),
    ] = "auto",
    target: Annotated[
        Line | None, Field(description="Id or exact name of the chatflow to update or copy (see list_chatflows).")
    ] = None,
    new_name: Annotated[
        SessionName | None,
        Field(description="Instead of requirement: the name of a plain copy of target, or its new name (update)."),
    ] = None,
    instance: Annotated[Line | None, Field(description="Flowise instance; the default one when left out.")] = None,
    session_name: Annotated[SessionName | None, Field(description="A title; made from the requirement.")] = None,
    write_mode: Annotated[
        Literal["staged", "direct"] | None,
        Field(description="staged tries an update on a draft first (the default for updates)."),
    ] = None,
    review_patch: Annotated[bool, Field(description="Also ask with the difference before any write.")] = False,
    test_questions: Annotated[
        list[Question] | None, Field(max_length=10, description="Questions to test the flow with.")
    ] = None,
    test_trials: Annotated[int, Field(ge=1, le=10, description="How often each question must pass.")] = 1,
    model: Annotated[Line | None, Field(description="Model for the service's reasoning in this session.")] = None,
    attachments: Annotated[
        list[UUID] | None, Field(max_length=10, description="Ids of files that were handed over with attach_file.")
    ] = None,
    budget_usd: Annotated[
        float | None, Field(gt=0, le=10_000, allow_inf_nan=False, description="The most to spend; the service's.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        Field(pattern=r"^[\x21-\x7e]{1,255}$", description="A repeated call with it starts no second session."),
    ] = None,
    wait_secs: WaitSecs = 30,
) -> Report:
    """Start building a new Flowise chatflow, or changing, copying or renaming an existing one.

    The service plans first and asks; nothing is written to Flowise before a person has approved the plan. The answer is
    the session with its open question: show it (the plan, above all) to the person, then use answer_question. If the
    session is still running, use get_session.
    """
    given: dict[str, Any] = {
        "requirement": requirement,
        "operation": operation,
        "target": target,
        "new_name": new_name,
        "flowise_instance_id": instance,
        "session_name": session_name,
        "write_mode": write_mode,
        "review_patch": review_patch,
        "test_questions": test_questions,
        "test_trials": test_trials,
        "model": model,
        "attachments": attachments,
        "budget": None if budget_usd is None else {"usd": budget_usd},
    }
    try:
        request = StartSession(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise InvalidInputError(f"The session cannot be started: {error.errors()[0]['msg']}.") from None
    return await _wait_and_report(ctx, await client_of(ctx).start(request, idempotency_key=idempotency_key), wait_secs)


async def attach_file(
    ctx: ToolContext,
    name: Annotated[
        Line,
        Field(description="File name with its ending: .pdf, .docx, .txt, .md, .csv, .json, .yaml, .png, .jpg, .webp."),
    ],
    text: Annotated[str | None, Field(max_length=1_000_000, description="The content of a text file.")] = None,
    content_base64: Annotated[
        str | None, Field(max_length=28_000_000, description="The content of any file, in Base64.")
    ] = None,
) -> Annotated[CallToolResult, AttachmentView]:
    """Hand over a file for a session: a document that the chatflow answers from, an OpenAPI description whose
    operations become tools, or a CSV of test questions.

    Its id goes into `attachments` of start_session or answer_question within a day.
    """
    if (text is None) == (content_base64 is None):
        raise InvalidInputError("Give either `text` or `content_base64`.")
    try:
        content = text.encode() if text is not None else b64decode(content_base64 or "", validate=True)
    except ValueError:
        raise InvalidInputError("`content_base64` is not Base64.") from None
    stored = await client_of(ctx).attach(name, content)
    return succeeded([f"{stored.facts.name}: {stored.id} ({stored.facts.kind}, {stored.facts.size} bytes)"], stored)


async def get_session(ctx: ToolContext, session_id: SessionId, wait_secs: WaitSecs = 0) -> Report:
    """Get a session: status, plan, the open question with its actions and `response_schema`, change, test results, end.

    With wait_secs it waits for the next question or the end.
    """
    return await _wait_and_report(ctx, await client_of(ctx).get(session_id), wait_secs)


async def answer_question(
    ctx: ToolContext,
    session_id: SessionId,
    interrupt_id: Annotated[Line, Field(description="Id of the open question, as the session showed it.")],
    answer: Annotated[
        dict[str, Any],
        Field(
            description='An object by the question\'s response_schema with one of its actions, such as {"action": '
            '"request_changes", "feedback": "..."}, {"action": "approve"}, {"action": "choose", "choose": '
            '{"openAIApi": "<credential id>"}}, {"action": "accept"}.'
        ),
    ],
    confirmed: Annotated[ElicitationResult[Confirmation], Resolve(confirmation)],
    attachments: Annotated[
        list[UUID] | None, Field(max_length=10, description="Ids of files that go with the answer.")
    ] = None,
    wait_secs: WaitSecs = 30,
) -> Report:
    """Answer a session's open question on a person's behalf.

    The decision is theirs: show them the question and ask before you approve, accept, roll back, overwrite or choose a
    credential. Unless the operator of the service has allowed agents to decide (MCP_APPROVAL=agent), such an answer is
    confirmed by the person in their client; where the client cannot ask, the error says where they decide themselves.
    Asking for changes, giving details and cancelling need no confirmation. The same answer may be sent again; when the
    question has been answered otherwise the error is session_conflict.
    """
    check_confirmed(confirmed)
    try:
        body = ResumeSession(interrupt_id=interrupt_id, answer=answer, attachments=attachments or [])
    except ValidationError as error:
        raise InvalidInputError(f"The answer cannot be taken: {error.errors()[0]['msg']}.") from None
    given = [str(session_id), interrupt_id, answer, *map(str, body.attachments)]
    content = json.dumps(given, sort_keys=True)
    key = f"mcp-{hashlib.sha256(content.encode()).hexdigest()[:32]}"
    view = await client_of(ctx).resume(session_id, body, idempotency_key=key)
    return await _wait_and_report(ctx, view, wait_secs)


async def cancel_session(ctx: ToolContext, session_id: SessionId) -> Report:
    """Stop a session, running or waiting. What it has written to Flowise stays."""
    return await _wait_and_report(ctx, await client_of(ctx).cancel(session_id), 0)


async def list_sessions(
    ctx: ToolContext,
    status: Annotated[PublicStatus | None, Field(description="Only those in this state.")] = None,
    instance: Annotated[str | None, Field(max_length=64, description="Only those on this Flowise instance.")] = None,
    chatflow: Annotated[str | None, Field(max_length=200, description="Only those of this chatflow id.")] = None,
    text: Annotated[
        str | None, Field(max_length=200, description="Each word must begin a word of the name or the requirement.")
    ] = None,
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    cursor: Annotated[str | None, Field(max_length=200, description="next_cursor of the page before.")] = None,
) -> Annotated[CallToolResult, SessionPage]:
    """List sessions, newest first. Status pending_interrupt finds those that wait for an answer."""
    page = fitted_page(
        await client_of(ctx).list(
            status=status, instance=instance, chatflow=chatflow, text=text, limit=limit, cursor=cursor
        )
    )
    lines = [
        f"- {row.thread_id} {row.outcome or row.status}: {row.session_name or row.requirement}" for row in page.sessions
    ]
    more = f"More with cursor {page.next_cursor}" if page.next_cursor else ""
    return succeeded([*(lines or ["No sessions match."]), more], page)


async def read_trace(
    ctx: ToolContext,
    session_id: SessionId,
    trace_sha256: Annotated[
        str, Field(pattern=r"^[0-9a-f]{64}$", description="`trace_sha256` of one of the session's tests.")
    ],
) -> Annotated[CallToolResult, Trace]:
    """Show the inside of a flow during a test of a session: turns, steps, tools, sources.

    Secrets are masked; a long trace is shortened.
    """
    trace = fitted_trace(await client_of(ctx).trace(session_id, trace_sha256))
    lines = [f"- {step.label or step.node_id} ({step.name}): {step.error or step.status}" for step in trace.steps]
    lines += [f"- tool {tool.tool}: {tool.error or 'ok'}" for tool in trace.used_tools]
    said = [f"> {turn.said}\n{turn.answer}" for turn in trace.turns]
    cut = ["Some texts were shortened, or steps left out."] if trace.cut else []
    return succeeded([*cut, *said, "Steps and tools:", *(lines or ["none"])], trace)


async def _wait_and_report(ctx: ToolContext, view: SessionView, wait_secs: float) -> CallToolResult:
    """Report the session once it asks or ends, or after `wait_secs`; meanwhile report its events as progress."""
    client = client_of(ctx)
    if view.in_progress and wait_secs > 0:
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_secs):
                await _follow(ctx, client, view)
        view = await client.get(view.thread_id)
    change = None if view.in_progress else await client.change(view.thread_id)
    about = report(view, change, page_of(ctx, view.thread_id))
    actions = action_lines(view.interrupt, host_of(ctx).approval) if view.interrupt else []
    return succeeded(session_lines(view, about, actions), about)


async def _follow(ctx: ToolContext, client: AgentClient, view: SessionView) -> None:
    """Report progress until the session asks or ends, or the service stops."""
    steps = 0
    while view.in_progress:
        async with aclosing(client.events(view.thread_id, view.last_event_seq)) as events:
            async for event in events:
                if event.type in RUN_END_EVENTS:
                    break
                if event.type in _PROGRESS:
                    steps += 1
                    await ctx.report_progress(steps, message=event.summary)
            else:
                return
        view = await client.get(view.thread_id)
