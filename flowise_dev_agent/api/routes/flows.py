"""Flows: found by words, drawn, compared, tried out, written."""

import asyncio
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Query, Request, Response

from flowise_dev_agent.api.deps import (
    TAGGED,
    FlowId,
    IdempotencyKey,
    IfMatch,
    Service,
    SessionId,
    WaitSecs,
    engine,
    part_of,
    tagged,
)
from flowise_dev_agent.api.limits import limit_chat
from flowise_dev_agent.api.once import ONCE, OnceRoute
from flowise_dev_agent.api.responses import FLOWISE, REPEATED, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.flowise.models import HumanAnswer
from flowise_dev_agent.flows.chat import ChatInput
from flowise_dev_agent.flows.flow_tests import FlowTestService
from flowise_dev_agent.flows.service import FlowService
from flowise_dev_agent.flows.test_sets import TestSetService
from flowise_dev_agent.patch import CanvasView
from flowise_dev_agent.schemas.change import FlowChange, SessionChange
from flowise_dev_agent.schemas.chat import CHAT_ID_PATTERN, ChatAnswer, ChatQuestion
from flowise_dev_agent.schemas.flow_exports import read_flows
from flowise_dev_agent.schemas.flow_tests import (
    FlowTestView,
    PutTestSet,
    TestFlow,
    TestFlowText,
    TestMark,
    TestSetView,
    ValidatedFlow,
    ValidateFlow,
)
from flowise_dev_agent.schemas.flow_writes import (
    ApplyToFlow,
    FlowDocument,
    FlowOps,
    FlowWriteResult,
    ImportFlow,
    PromoteFlow,
    ReadExport,
    ReadFlows,
    RestoreVersion,
)
from flowise_dev_agent.schemas.flows import FlowPage, FlowPreview, FlowSummary, FlowView, PreviewFlow
from flowise_dev_agent.schemas.guards import GuardSettings, GuardView
from flowise_dev_agent.schemas.reach import FlowReach
from flowise_dev_agent.schemas.turns import Conversation
from flowise_dev_agent.schemas.verdict import Trace, Trial
from flowise_dev_agent.sessions.flow_writer import FlowWriter
from flowise_dev_agent.sessions.service import SessionService
from flowise_dev_agent.testing.test_files import Format

router = Routes(tags=["flows"], route_class=OnceRoute)


TestSetsDep = Annotated[TestSetService, part_of("test_sets")]
FlowTesting = Annotated[FlowTestService, part_of("flow_tests")]
TestId = Annotated[UUID, Path(description="The test's id.")]
Flows = Annotated[FlowService, part_of("flows")]
Writer = Annotated[FlowWriter, part_of("flow_writer")]
Instance = Annotated[str | None, Query(max_length=200, description="Flowise instance; the default one.")]
ChatId = Annotated[str, Path(pattern=CHAT_ID_PATTERN, description="A conversation that `chat` began.")]
Version = Annotated[str, Path(pattern=r"^v[0-9]{1,9}$", description="Such as `v4`.")]
Reference = Annotated[
    str,
    Query(
        max_length=80,
        pattern=r"^(live|v[0-9]{1,6}|[0-9a-f-]{36}:v[0-9]{1,6}\.0)$",
        description="`v4` as in `GET /flows/{id}/versions`, `<session id>:<label>`, or `live`.",
    ),
]

_WRITES = ("approval_needed", "patch_error", "idempotency_key_reused", "stale_base", "write_failed", *FLOWISE)
_WRITING = {202: {"model": FlowWriteResult, "description": "Still at it; see the session."}}


@router.get("/flows", responses=declared(*FLOWISE))
async def find_flows(
    flows: Flows,
    query: Annotated[str, Query(max_length=200, description="Each word must begin a word of the flow.")] = "",
    instance: Instance = None,
    drafts: Annotated[bool, Query(description="Also drafts of sessions.")] = False,
    pictures: Annotated[bool, Query(description="Also what each looks like, in small.")] = False,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before.")] = None,
) -> FlowPage:
    """Flows of a server by their name, id, tags, node types and prompts, each with the newest session on it; without
    words those changed last."""
    return await flows.find(instance, query, limit=limit, drafts=drafts, cursor=cursor, pictures=pictures)


@router.get("/flows/{chatflow_id}/graph", responses=TAGGED | declared("flowise_not_found", *FLOWISE))
async def get_flow_graph(
    response: Response,
    chatflow_id: FlowId,
    flows: Flows,
    instance: Instance = None,
    params: Annotated[bool, Query(description="Also what is set on the nodes.")] = True,
) -> FlowView:
    """A flow on the server to be drawn, a draft as well. Credentials and secrets are left out."""
    return tagged(response, await flows.live(str(chatflow_id), instance, params=params))


@router.get("/flows/{chatflow_id}/conversation", responses=declared())
async def get_flow_conversation(
    request: Request,
    chatflow_id: FlowId,
    instance: Instance = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
    cursor: Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before.")] = None,
) -> Conversation:
    """The sessions on a flow as one conversation, newest last: what the person said in each, what it asked, what came
    of it. A cursor gets the sessions before."""
    return await engine(request).conversations.of_flow(str(chatflow_id), instance, limit=limit, cursor=cursor)


@router.get("/flows/{chatflow_id}/reach", responses=TAGGED | declared("flowise_not_found", *FLOWISE))
async def get_flow_reach(response: Response, chatflow_id: FlowId, flows: Flows, instance: Instance = None) -> FlowReach:
    """The ways by which people reach a flow: chat page, API, web sites, starter questions, limit.

    `POST /flows/{id}/apply` with `reach` changes it.
    """
    return tagged(response, await flows.reach(str(chatflow_id), instance))


@router.get("/flows/{chatflow_id}/summary", responses=TAGGED | declared("flowise_not_found", *FLOWISE))
async def get_flow_summary(
    response: Response, chatflow_id: FlowId, flows: Flows, instance: Instance = None
) -> FlowSummary:
    """A flow on the server in words, a draft as well. Credentials and secrets are left out."""
    return tagged(response, await flows.summary(str(chatflow_id), instance))


@router.get("/flows/{chatflow_id}/compare", responses=declared("version_not_found", "flowise_not_found", *FLOWISE))
async def compare_flow_versions(
    chatflow_id: FlowId,
    flows: Flows,
    before: Reference,
    after: Reference = "live",
) -> FlowChange:
    """Two kept versions of a chatflow, of any sessions, or one of them and the flow as it is now."""
    return await flows.compare(str(chatflow_id), before, after)


@router.get("/sessions/{session_id}/change", responses=declared("session_not_found"))
async def get_session_change(session_id: SessionId, flows: Flows) -> SessionChange | None:
    """The session's change to its flow: before, after, the difference and the ops, as of its last question or its end.

    `null` if there is none yet.
    """
    return await flows.session_change(session_id)


@router.get(
    "/sessions/{session_id}/versions/{label}/graph", responses=declared("session_not_found", "version_not_found")
)
async def get_version_graph(
    session_id: SessionId, label: Annotated[str, Path(pattern=r"^v[0-9]{1,6}\.0$")], flows: Flows
) -> CanvasView:
    """A kept version to be drawn."""
    return await flows.version(session_id, label)


@router.post(
    "/flows/{chatflow_id}/chat",
    dependencies=[Depends(limit_chat), ONCE],
    responses=declared("flowise_not_found", "attachment_not_found", "rate_limited", *REPEATED, *FLOWISE),
)
async def ask_flow(
    request: Request, chatflow_id: FlowId, body: ChatQuestion, flows: Flows, instance: Instance = None
) -> ChatAnswer:
    """Ask a flow, fill in its form, or decide where it waits for a person; in a conversation of its own that Flowise
    shows under an id beginning with `fda-try-`."""
    human = body.human and HumanAnswer(
        type=body.human.decision, start_node_id=body.human.node_id, feedback=body.human.feedback
    )
    files = await engine(request).attachments.texts(body.files)
    said = ChatInput(question=body.question, form=body.form, human=human, files=files)
    return await flows.ask(str(chatflow_id), instance, said, body.chat_id)


@router.delete(
    "/flows/{chatflow_id}/chat/{chat_id}", status_code=204, responses=declared("flowise_not_found", *FLOWISE)
)
async def delete_chat(chatflow_id: FlowId, chat_id: ChatId, flows: Flows, instance: Instance = None) -> None:
    """Remove such a conversation from Flowise."""
    await flows.forget(str(chatflow_id), instance, chat_id)


# --- checks and tests ------------------------------------------------------------------------------------------------


@router.post("/flows/preview", responses=declared("flowise_not_found", "patch_error", *FLOWISE))
async def preview_flow(request: Request, body: PreviewFlow) -> FlowPreview:
    """Draw a flow of the server, or a new one, as a person's ops make it, with what is wrong and what would be
    approved. Nothing is stored. `POST /sessions` with the same `ops` builds and tests it."""
    return await engine(request).previews.of_ops(body)


@router.post("/flows/validate", responses=declared("not_a_flow", *FLOWISE))
async def validate_flow(body: ValidateFlow, tests: FlowTesting, instance: Instance = None) -> ValidatedFlow:
    """Check a flow against what the server has, and write nothing. 400 for a text that is not a flow; else 200, with
    what is wrong in `validation`."""
    return await tests.validate(body, instance)


@router.post(
    "/flows/{chatflow_id}/test",
    status_code=202,
    dependencies=[Depends(limit_chat), ONCE],
    responses=declared("flowise_not_found", "version_not_found", "rate_limited", *REPEATED, *FLOWISE),
)
async def start_flow_test(
    response: Response, chatflow_id: FlowId, body: TestFlow, tests: FlowTesting, instance: Instance = None
) -> FlowTestView:
    """Hold conversations with a flow in the background; `GET /tests/{id}` has the results. Nothing is written to the
    flow, and the conversations are removed from Flowise. What the flow's own tools do is done."""
    return _queued(response, await tests.start(str(chatflow_id), body, instance))


@router.post(
    "/flows/test",
    status_code=202,
    dependencies=[Depends(limit_chat), ONCE],
    responses=declared("not_a_flow", "rate_limited", *REPEATED, *FLOWISE),
)
async def start_flow_text_test(
    response: Response, body: TestFlowText, tests: FlowTesting, instance: Instance = None
) -> FlowTestView:
    """The same for a flow that is not on the server: it is checked, then tested as a draft that is deleted."""
    return _queued(response, await tests.start_text(body, instance))


@router.get("/flows/{chatflow_id}/guard", responses=declared("guard_not_found"))
async def get_guard(request: Request, chatflow_id: FlowId, instance: Instance = None) -> GuardView:
    """A guarded flow: its state, its results over time, and an alarm with what failed, what changed since all tests
    passed, and the request for a session that proposes a repair."""
    return await engine(request).guards.view(str(chatflow_id), instance)


@router.put("/flows/{chatflow_id}/guard", responses=declared("webhook_url_refused"))
async def put_guard(request: Request, chatflow_id: FlowId, body: GuardSettings, instance: Instance = None) -> GuardView:
    """Guard a flow: its test set is held on a schedule and after changes of the flow, the node types or the server.
    Nothing is written to the flow."""
    return await engine(request).guards.put(str(chatflow_id), body, instance)


@router.delete("/flows/{chatflow_id}/guard", status_code=204, responses=declared())
async def delete_guard(request: Request, chatflow_id: FlowId, instance: Instance = None) -> None:
    """Stop guarding a flow. Its results are removed."""
    await engine(request).guards.remove(str(chatflow_id), instance)


@router.get("/flows/{chatflow_id}/tests", responses=declared())
async def get_test_set(
    chatflow_id: FlowId,
    sets: TestSetsDep,
    instance: Instance = None,
    form: Annotated[Format, Query(alias="format", description="Also as a file.")] = "json",
) -> TestSetView:
    """The test set of a flow: what people marked, accepted or gave. A test without tests of its own holds these, and a
    session that changes the flow takes them over."""
    return await sets.view(str(chatflow_id), instance, form)


@router.put("/flows/{chatflow_id}/tests", responses=declared())
async def put_test_set(
    chatflow_id: FlowId, body: PutTestSet, sets: TestSetsDep, instance: Instance = None
) -> TestSetView:
    """Replace the test set of a flow, by data or by the text of a file."""
    return await sets.put(str(chatflow_id), body, instance)


@router.post(
    "/sessions/{session_id}/tests/{number}/verdict",
    dependencies=[ONCE],
    responses=declared("session_not_found", "flow_test_not_found", "session_conflict", *REPEATED),
)
async def mark_test(
    session_id: SessionId,
    number: Annotated[int, Path(ge=1, le=1_000, description="The test in `result.tests`, from 1.")],
    body: TestMark,
    sets: TestSetsDep,
) -> Trial:
    """Judge a test of a session yourself: it counts before all other judgements, and goes into the flow's test set."""
    return await sets.mark(session_id, number, body, current_caller().name)


@router.get("/tests/{test_id}", responses=declared("flow_test_not_found"))
async def get_flow_test(test_id: TestId, tests: FlowTesting) -> FlowTestView:
    """A test of a flow, with its results once it is done."""
    return await tests.get(test_id)


@router.get("/tests/{test_id}/traces/{sha256}", responses=declared("flow_test_not_found", "trace_not_found"))
async def get_flow_test_trace(
    test_id: TestId,
    sha256: Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="`trace_sha256` of a trial.")],
    tests: FlowTesting,
) -> Trace:
    """The trace of a trial of such a test: the steps inside the flow."""
    return await tests.trace(test_id, sha256)


def _queued(response: Response, view: FlowTestView) -> FlowTestView:
    response.headers["Location"] = f"/tests/{view.id}"
    return view


# --- files and writes ------------------------------------------------------------------------------------------------


@router.get("/flows/{chatflow_id}/export", responses=TAGGED | declared("flowise_not_found", *FLOWISE))
async def export_flow(response: Response, chatflow_id: FlowId, flows: Flows, instance: Instance = None) -> FlowDocument:
    """A flow with everything in it, byte for byte, to be kept in a file: the ids of its credentials and whatever is set
    on its nodes as well."""
    return tagged(response, await flows.document(str(chatflow_id), instance))


@router.get("/flows/{chatflow_id}/versions/{version}/export", responses=declared("version_not_found"))
async def export_version(chatflow_id: FlowId, version: Version, flows: Flows) -> FlowDocument:
    """A version of a flow with everything in it, byte for byte, without Flowise's columns beside the text."""
    return await flows.version_document(str(chatflow_id), int(version.removeprefix("v")))


@router.get("/flows/{chatflow_id}/ops", responses=declared("flowise_not_found", "patch_error", *FLOWISE))
async def flow_ops(chatflow_id: FlowId, flows: Flows, instance: Instance = None) -> FlowOps:
    """The ops that build a flow from nothing."""
    return await flows.ops(str(chatflow_id), instance)


@router.post("/flows/import/read", responses=declared())
async def read_flows_of_a_file(body: ReadExport) -> ReadFlows:
    """The flows of a file that Flowise wrote, each as the body of an import. Nothing is written."""
    return await asyncio.to_thread(read_flows, body)


@router.post("/flows/import", responses=_WRITING | declared(*_WRITES))
async def import_flow(
    response: Response,
    body: ImportFlow,
    writer: Writer,
    service: Service,
    wait_secs: WaitSecs,
    instance: Instance = None,
    idempotency_key: IdempotencyKey = None,
) -> FlowWriteResult:
    """Make a new flow from `flow_data` or `ops`: checked before, read back after. It is not deployed.

    The write is a session of its own, with versions, change and rollback like any other. With `dry_run` nothing is
    written, and the answer has the findings and the difference.
    """
    taken = await writer.import_flow(body, instance=instance, idempotency_key=idempotency_key)
    return await _written(response, writer, service, taken, wait_secs)


@router.post("/flows/{chatflow_id}/apply", responses=_WRITING | declared("flowise_not_found", *_WRITES))
async def apply_to_flow(
    response: Response,
    chatflow_id: FlowId,
    body: ApplyToFlow,
    writer: Writer,
    service: Service,
    wait_secs: WaitSecs,
    if_match: IfMatch,
    instance: Instance = None,
    idempotency_key: IdempotencyKey = None,
) -> FlowWriteResult:
    """Change a flow by `ops`, replace it by `flow_data`, or change its `reach`: checked before, read back after.

    The write is a session of its own: `POST /sessions/{session_id}/rollback` with the answer's `session_id` puts back
    what the flow held before. With `dry_run` nothing is written, and the answer has the findings and the difference.
    """
    taken = await writer.apply(
        str(chatflow_id), body, instance=instance, idempotency_key=idempotency_key, expected=if_match
    )
    return await _written(response, writer, service, taken, wait_secs)


@router.post("/flows/{chatflow_id}/promote", responses=_WRITING | declared("flowise_not_found", *_WRITES))
async def promote_flow(
    response: Response,
    chatflow_id: FlowId,
    body: PromoteFlow,
    writer: Writer,
    service: Service,
    wait_secs: WaitSecs,
    if_match: IfMatch,
    idempotency_key: IdempotencyKey = None,
) -> FlowWriteResult:
    """Copy a flow to another server, credentials mapped by name and type; checked before and read back after.

    The write is a session of its own: `POST /sessions/{session_id}/rollback` with the answer's `session_id` puts back
    what a flow there held before. With `dry_run` nothing is written; the answer has the findings and the difference.
    """
    taken = await writer.promote(str(chatflow_id), body, idempotency_key=idempotency_key, expected=if_match)
    return await _written(response, writer, service, taken, wait_secs)


@router.post(
    "/flows/{chatflow_id}/versions/{version}/restore",
    responses=_WRITING | declared("version_not_found", *_WRITES),
)
async def restore_version(
    response: Response,
    chatflow_id: FlowId,
    version: Version,
    body: RestoreVersion,
    writer: Writer,
    service: Service,
    wait_secs: WaitSecs,
    if_match: IfMatch,
    idempotency_key: IdempotencyKey = None,
) -> FlowWriteResult:
    """Write a version of a flow back, of a session or seen by the watch, as it was kept; read back after it.

    The write is a session of its own. A flow that was deleted is made again: `created` is true then, and `chatflow_id`
    is its new id, since Flowise takes none. With `dry_run` nothing is written; the answer has the findings and the
    difference.
    """
    number = int(version.removeprefix("v"))
    taken = await writer.restore(str(chatflow_id), number, body, idempotency_key=idempotency_key, expected=if_match)
    return await _written(response, writer, service, taken, wait_secs)


async def _written(
    response: Response, writer: FlowWriter, service: SessionService, taken: FlowWriteResult, wait_secs: float
) -> FlowWriteResult:
    """Wait until the write has ended: 200 then, 202 while it goes on. A write that failed is a problem."""
    if taken.session_id is None:
        return taken
    if taken.status == "in_progress" and wait_secs > 0:
        await service.wait(taken.session_id, wait_secs)
        taken = await writer.result(taken.session_id)
    response.headers["Location"] = f"/sessions/{taken.session_id}"
    response.status_code = 202 if taken.status == "in_progress" else 200
    return taken
