"""The tools. Those for sessions: start, get, answer, cancel, list; and those that read chatflows and the catalogue."""

import asyncio
import hashlib
import json
from contextlib import aclosing, suppress
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from mcp.server.mcpserver import ElicitationResult, Resolve
from mcp_types import CallToolResult
from pydantic import Field, ValidationError

from flowise_dev_agent.client import RUN_END_EVENTS, AgentClient
from flowise_dev_agent.contracts.flow_tests import FlowTestView, TestFlow, ValidatedFlow, ValidateFlow
from flowise_dev_agent.contracts.flow_writes import MAX_FLOW_CHARS
from flowise_dev_agent.contracts.nodes import NodeOptions, NodeTypeDetails, NodeTypePage
from flowise_dev_agent.contracts.plan import TestCase
from flowise_dev_agent.contracts.question_text import test_lines
from flowise_dev_agent.contracts.requests import (
    Line,
    LongText,
    Question,
    ResumeSession,
    SessionName,
    StartSession,
)
from flowise_dev_agent.contracts.session import PublicStatus, SessionPage, SessionView
from flowise_dev_agent.contracts.verdict import Trace
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.mcp.consent import Confirmation, action_lines, check_confirmed, confirmation
from flowise_dev_agent.mcp.host import ToolContext, client_of, host_of, page_of
from flowise_dev_agent.mcp.results import (
    SessionReport,
    fitted_page,
    fitted_trace,
    report,
    session_lines,
    succeeded,
)
from flowise_dev_agent.runtime.admin.catalogue import MOST_HITS, CatalogueHits
from flowise_dev_agent.runtime.flows.views import FlowPage, FlowSummary

#: Types of the events that are reported as progress.
_PROGRESS: Final = frozenset({"node_start", "node_end", "retry", "fallback", "write", "test"})

SessionId = Annotated[UUID, Field(description="The session's id.")]
WaitSecs = Annotated[
    float,
    Field(
        ge=0,
        le=300,
        description="Seconds to wait for the next question or the end; keep it below your client's own time limit.",
    ),
]
Instance = Annotated[str | None, Field(max_length=200, description="Flowise instance; the default one when left out.")]
Report = Annotated[CallToolResult, SessionReport]


async def start_session(
    ctx: ToolContext,
    requirement: Annotated[LongText, Field(description="What to build or change, in plain words.")],
    operation: Annotated[
        Literal["auto", "create", "update", "copy"],
        Field(description="auto reads it from the requirement; update and copy need an existing chatflow."),
    ] = "auto",
    target: Annotated[
        Line | None, Field(description="Id or exact name of the chatflow to update or copy (see list_chatflows).")
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
    budget_usd: Annotated[
        float | None, Field(gt=0, le=10_000, allow_inf_nan=False, description="The most to spend; the service's.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        Field(pattern=r"^[\x21-\x7e]{1,255}$", description="A repeated call with it starts no second session."),
    ] = None,
    wait_secs: WaitSecs = 30,
) -> Report:
    """Start building a new Flowise chatflow, or changing an existing one, from a requirement in plain words.

    The service plans first and asks; nothing is written to Flowise before a person has approved the plan. The answer is
    the session with its open question: show it (the plan, above all) to the person, then use answer_question. If the
    session is still running, use get_session.
    """
    given: dict[str, Any] = {
        "requirement": requirement,
        "operation": operation,
        "target": target,
        "flowise_instance_id": instance,
        "session_name": session_name,
        "write_mode": write_mode,
        "review_patch": review_patch,
        "test_questions": test_questions,
        "test_trials": test_trials,
        "model": model,
        "budget": None if budget_usd is None else {"usd": budget_usd},
    }
    request = StartSession(**{name: value for name, value in given.items() if value is not None})
    return await _wait_and_report(ctx, await client_of(ctx).start(request, idempotency_key=idempotency_key), wait_secs)


async def get_session(ctx: ToolContext, session_id: SessionId, wait_secs: WaitSecs = 0) -> Report:
    """Get a session: status, the open question with its actions and `response_schema`, the plan, the change to the
    chatflow, test results, how it ended. With wait_secs it waits for the next question or the end."""
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
        body = ResumeSession(interrupt_id=interrupt_id, answer=answer)
    except ValidationError as error:
        raise InvalidInputError(f"The answer cannot be taken: {error.errors()[0]['msg']}.") from None
    content = json.dumps([str(session_id), interrupt_id, answer], sort_keys=True)
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


async def list_chatflows(
    ctx: ToolContext,
    query: Annotated[str, Field(max_length=200, description="Each word must begin a word of the flow.")] = "",
    instance: Instance = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> Annotated[CallToolResult, FlowPage]:
    """Find chatflows and agentflows of a Flowise server by name, id, tags, node types and prompts; without a query the
    most recently changed ones. Drafts of sessions are left out."""
    page = await client_of(ctx).find_flows(query, instance=instance, limit=limit)
    lines = [f"- {row.id} {row.name} ({row.type}, {row.nodes} nodes, changed {row.updated})" for row in page.flows]
    return succeeded([f"{len(page.flows)} of {page.total} matching chatflows:", *lines], page)


async def read_chatflow(
    ctx: ToolContext,
    chatflow_id: Annotated[UUID, Field(description="The chatflow's id (see list_chatflows).")],
    instance: Instance = None,
) -> Annotated[CallToolResult, FlowSummary]:
    """Describe a chatflow: its nodes with their settings, and how they are connected. Credentials and secrets are never
    shown."""
    found = await client_of(ctx).flow_summary(str(chatflow_id), instance=instance)
    return succeeded([f"{found.flow.name} ({found.flow.type}) {found.flow.url or ''}", found.summary], found)


async def search_catalogue(
    ctx: ToolContext,
    query: Annotated[Line, Field(description="What is looked for, such as 'vector store' or 'web search tool'.")],
    instance: Instance = None,
    limit: Annotated[int, Field(ge=1, le=MOST_HITS, description="Of node types, and of templates.")] = 10,
) -> Annotated[CallToolResult, CatalogueHits]:
    """Find what chatflows can be made of on a Flowise server: node types, and marketplace templates of such flows.
    Useful to word a requirement; the service itself needs no node names."""
    hits = await client_of(ctx).search_catalogue(query, instance=instance, limit=limit)
    nodes = [f"- {hit.name} ({hit.label}, {hit.category}): {hit.description}" for hit in hits.nodes]
    templates = [f"- {hit.name} ({hit.type}): {', '.join(hit.nodes)}" for hit in hits.templates]
    return succeeded(["Node types:", *(nodes or ["none"]), "Templates:", *(templates or ["none"])], hits)


async def get_node_types(
    ctx: ToolContext,
    query: Annotated[str, Field(max_length=200, description="Words; all node types without any.")] = "",
    category: Annotated[str | None, Field(max_length=100, description="Such as 'Chat Models'.")] = None,
    instance: Instance = None,
    limit: Annotated[int, Field(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Field(max_length=200, description="next_cursor of the page before.")] = None,
) -> Annotated[CallToolResult, NodeTypePage]:
    """List node types of a Flowise server, by words and category."""
    page = await client_of(ctx).node_types(query, category=category, instance=instance, limit=limit, cursor=cursor)
    lines = [f"- {node.name} ({node.label}, {node.category}): {node.description}" for node in page.nodes]
    more = f"More with cursor {page.next_cursor}" if page.next_cursor else ""
    return succeeded([f"{len(page.nodes)} of {page.total} node types:", *lines, more], page)


async def get_node_details(
    ctx: ToolContext,
    name: Annotated[Line, Field(description="Name of a node type, such as chatOpenAI (see get_node_types).")],
    instance: Instance = None,
) -> Annotated[CallToolResult, NodeTypeDetails]:
    """Show a node type: its params, what can be connected to it, its outputs and credential."""
    found = await client_of(ctx).node_type(name, instance=instance)
    return succeeded([found.card], found)


async def list_options(
    ctx: ToolContext,
    node: Annotated[Line, Field(description="Name of a node type.")],
    param: Annotated[Line, Field(description="Name of a param whose options the server lists, such as modelName.")],
    instance: Instance = None,
) -> Annotated[CallToolResult, NodeOptions]:
    """List what a param of a node type may be set to: models of a provider, tools, document stores, flows."""
    found = await client_of(ctx).node_options(node, param, instance=instance)
    lines = [f"- {option.name} ({option.label})" for option in found.options]
    return succeeded([f"{found.node}.{found.param}:", *(lines or ["The server lists nothing."])], found)


async def check_flow(
    ctx: ToolContext,
    chatflow_id: Annotated[
        UUID | None, Field(description="Id of a chatflow on the server; or give flow_data instead.")
    ] = None,
    flow_data: Annotated[
        str | None, Field(max_length=MAX_FLOW_CHARS, description="`flowData` as text, of a flow made elsewhere.")
    ] = None,
    instance: Instance = None,
) -> Annotated[CallToolResult, ValidatedFlow]:
    """Check a flow against what a Flowise server has, and write nothing: errors would keep it from being written."""
    client = client_of(ctx)
    if (chatflow_id is None) == (flow_data is None):
        raise InvalidInputError("Give either `chatflow_id` or `flow_data`.")
    given: dict[str, Any] = {"flow_data": flow_data}
    if chatflow_id is not None:
        found = await client.export_flow(str(chatflow_id), instance=instance)
        given = {"flow_data": found.flow_data, "kind": found.type}
    checked = await client.validate_flow(ValidateFlow(**given), instance=instance)
    said = checked.validation
    lines = [f"- {finding.severity}: {finding.text}" for finding in (*said.errors, *said.warnings)]
    return succeeded(["Valid." if said.valid else "Not valid.", *lines], checked)


async def test_flow(
    ctx: ToolContext,
    chatflow_id: Annotated[UUID, Field(description="The chatflow's id (see list_chatflows).")],
    tests: Annotated[
        list[TestCase] | None,
        Field(max_length=10, description="Conversations with what is expected; one plain question when left out."),
    ] = None,
    trials: Annotated[int, Field(ge=1, le=10, description="How often each conversation has to pass.")] = 1,
    instance: Instance = None,
    wait_secs: WaitSecs = 120,
) -> Annotated[CallToolResult, FlowTestView]:
    """Ask a chatflow test questions, in conversations that are removed afterwards; nothing is written to it.

    What the flow's own tools do is done: ask the person first where they send or change something.
    """
    test = TestFlow(tests=tests or [], trials=trials)
    view = await client_of(ctx).test_flow(test, str(chatflow_id), instance=instance, wait=wait_secs)
    error = f"{view.error.code}: {view.error.detail}" if view.error else ""
    result = {True: "All passed.", False: "Not all passed.", None: f"Test {view.id}: {view.status}."}[view.passed]
    return succeeded([result, error, *test_lines(view.trials)], view)


async def read_trace(
    ctx: ToolContext,
    session_id: SessionId,
    trace_sha256: Annotated[
        str, Field(pattern=r"^[0-9a-f]{64}$", description="`trace_sha256` of one of the session's tests.")
    ],
) -> Annotated[CallToolResult, Trace]:
    """Show what happened inside the flow during a test of a session: turns, steps, tools, sources. Secrets are masked;
    a long trace is shortened."""
    trace = fitted_trace(await client_of(ctx).trace(session_id, trace_sha256))
    lines = [f"- {step.label or step.node_id} ({step.name}): {step.error or step.status}" for step in trace.steps]
    lines += [f"- tool {tool.tool}: {tool.error or 'ok'}" for tool in trace.used_tools]
    said = [f"> {turn.said}\n{turn.answer}" for turn in trace.turns]
    return succeeded([*said, "Steps and tools:", *(lines or ["none"])], trace)


async def _wait_and_report(ctx: ToolContext, view: SessionView, wait_secs: float) -> CallToolResult:
    """The session once it asks or ends, or as it is after `wait_secs` seconds; its events are reported as progress."""
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
