"""Flows: found by words, drawn, compared, tried out."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.api.deps import FlowId, SessionId, engine
from flowise_dev_agent.api.problems import declared
from flowise_dev_agent.patch.views.canvas_view import CanvasView
from flowise_dev_agent.runtime.flows.chat import CHAT_ID_PATTERN, ChatAnswer
from flowise_dev_agent.runtime.flows.service import FlowService
from flowise_dev_agent.runtime.flows.views import FlowChange, FlowPage, FlowSummary, FlowView, SessionChange
from flowise_dev_agent.runtime.sessions.requests import Question

router = APIRouter(tags=["flows"])


def _flows(request: Request) -> FlowService:
    return engine(request).flows


Flows = Annotated[FlowService, Depends(_flows)]
Instance = Annotated[str | None, Query(max_length=200, description="Flowise instance; the default one.")]
ChatId = Annotated[str, Path(pattern=CHAT_ID_PATTERN, description="A conversation that `chat` began.")]
Reference = Annotated[
    str,
    Query(
        max_length=80, pattern=r"^(live|[0-9a-f-]{36}:v\d{1,6}\.0)$", description="`<session id>:<label>`, or `live`."
    ),
]


class ChatQuestion(BaseModel):
    """The body of `POST /flows/{id}/chat`."""

    model_config = ConfigDict(extra="forbid")

    question: Question
    chat_id: str | None = Field(
        default=None, pattern=CHAT_ID_PATTERN, description="Of the answer before; a new conversation when left out."
    )


@router.get("/flows", responses=declared(502, 504))
async def find_flows(
    flows: Flows,
    query: Annotated[str, Query(max_length=200, description="Each word must begin a word of the flow.")] = "",
    instance: Instance = None,
    drafts: Annotated[bool, Query(description="Also drafts of sessions.")] = False,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> FlowPage:
    """Flows of a server by their name, id, tags, node types and prompts; without words those changed last."""
    return await flows.find(instance, query, limit=limit, drafts=drafts)


@router.get("/flows/{chatflow_id}/graph", responses=declared(404, 502, 504))
async def get_flow_graph(
    chatflow_id: FlowId,
    flows: Flows,
    instance: Instance = None,
    params: Annotated[bool, Query(description="Also what is set on the nodes.")] = True,
) -> FlowView:
    """A flow on the server to be drawn, a draft as well. Credentials and secrets are left out."""
    return await flows.live(str(chatflow_id), instance, params=params)


@router.get("/flows/{chatflow_id}/summary", responses=declared(404, 502, 504))
async def get_flow_summary(chatflow_id: FlowId, flows: Flows, instance: Instance = None) -> FlowSummary:
    """A flow on the server in words, a draft as well. Credentials and secrets are left out."""
    return await flows.summary(str(chatflow_id), instance)


@router.get("/flows/{chatflow_id}/compare", responses=declared(404, 502, 504))
async def compare_flow_versions(
    chatflow_id: FlowId,
    flows: Flows,
    before: Reference,
    after: Reference = "live",
) -> FlowChange:
    """Two kept versions of a chatflow, of any sessions, or one of them and the flow as it is now."""
    return await flows.compare(str(chatflow_id), before, after)


@router.get("/sessions/{session_id}/change", responses=declared(404))
async def get_session_change(session_id: SessionId, flows: Flows) -> SessionChange | None:
    """What the session does to its flow: before, after, the difference and the ops, as of its last question or its
    end. `null` before there is anything to see."""
    return await flows.session_change(session_id)


@router.get("/sessions/{session_id}/versions/{label}/graph", responses=declared(404))
async def get_version_graph(
    session_id: SessionId, label: Annotated[str, Path(pattern=r"^v\d{1,6}\.0$")], flows: Flows
) -> CanvasView:
    """A kept version to be drawn."""
    return await flows.version(session_id, label)


@router.post("/flows/{chatflow_id}/chat", responses=declared(404, 413, 502, 504))
async def ask_flow(chatflow_id: FlowId, body: ChatQuestion, flows: Flows, instance: Instance = None) -> ChatAnswer:
    """Ask a flow, in a conversation of its own that Flowise shows under an id beginning with `fda-try-`."""
    return await flows.ask(str(chatflow_id), instance, body.question, body.chat_id)


@router.delete("/flows/{chatflow_id}/chat/{chat_id}", status_code=204, responses=declared(404, 502, 504))
async def delete_chat(chatflow_id: FlowId, chat_id: ChatId, flows: Flows, instance: Instance = None) -> None:
    """Remove such a conversation from Flowise."""
    await flows.forget(str(chatflow_id), instance, chat_id)
