"""Results of the tools: views of the REST API as structured content, and a text for the model."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict, Field

from flowise_dev_agent.sanitize import bounded, json_size, shortened
from flowise_dev_agent.schemas.change import SessionChange
from flowise_dev_agent.schemas.interrupts import Interrupt
from flowise_dev_agent.schemas.question_text import question_text, test_lines
from flowise_dev_agent.schemas.session import ResultView, SessionPage, SessionView
from flowise_dev_agent.schemas.verdict import Trace

#: Limits of one result. The page shows everything.
_TEXT_CHARS: Final = 12_000
_PART_CHARS: Final = 4_000
_LINE_CHARS: Final = 300
_DATA_BYTES: Final = 40_000
_PROBLEM_BYTES: Final = 8_000


class ChangeInWords(BaseModel):
    """Description of a session's change to its flow."""

    model_config = ConfigDict(frozen=True)

    summary: str
    text: str = Field(description="Added, removed and changed nodes, settings and connections.")


class SessionReport(BaseModel):
    """A session with the change that its open question or its end is about."""

    model_config = ConfigDict(frozen=True)

    session: SessionView
    change: ChangeInWords | None = Field(
        description="Null while the session is running, and when nothing has changed yet."
    )
    page: str = Field(description="Where a person sees the session and answers its questions.")


def report(view: SessionView, change: SessionChange | None, page: str) -> SessionReport:
    """The report of a session, cut to the limits."""
    words = ChangeInWords(summary=change.diff.summary, text=change.diff.text) if change else None
    return SessionReport(session=_cut_view(view), change=words, page=page)


def fitted_page(page: SessionPage) -> SessionPage:
    """A page of sessions with shortened requirements."""
    rows = [row.model_copy(update={"requirement": shortened(row.requirement, _LINE_CHARS)}) for row in page.sessions]
    return page.model_copy(update={"sessions": rows})


def fitted_trace(trace: Trace) -> Trace:
    """A trace cut to about `_DATA_BYTES`: fewer steps, tools and sources; the turns stay."""
    for kept in (50, 20, 5, 0):
        if json_size(trace.model_dump(mode="json")) <= _DATA_BYTES:
            break
        trace = trace.model_copy(
            update={
                "steps": trace.steps[:kept],
                "used_tools": trace.used_tools[:kept],
                "sources": trace.sources[:kept],
                "cut": True,
            }
        )
    return trace


def succeeded(lines: Iterable[str], content: BaseModel) -> CallToolResult:
    """A tool's successful result."""
    text = shortened_text(line for line in lines if line)
    return CallToolResult(content=[TextContent(text=text)], structured_content=content.model_dump(mode="json"))


def shortened_text(lines: Iterable[str]) -> str:
    """Lines as one text, cut to the limit."""
    return shortened("\n".join(lines), _TEXT_CHARS)


def failed(problem: Mapping[str, Any]) -> CallToolResult:
    """A tool's error in JSON: `{code, detail, hint?, details?}` as in the REST API."""
    # Not as structured content: TypeScript clients check that against the tool's output schema, also for errors.
    text = json.dumps(bounded(problem, _PROBLEM_BYTES), ensure_ascii=False)
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def session_lines(view: SessionView, about: SessionReport, actions: Iterable[str]) -> Iterator[str]:
    """Lines of a session for a model; `about` is its bounded report, `actions` are the possible answers to its
    question.
    """
    name = f" '{view.session_name}'" if view.session_name else ""
    yield f"Session {view.thread_id}{name} on {view.instance}: {view.status}" + (
        f" ({view.outcome})" if view.outcome else ""
    )
    if view.chatflow_id:
        yield f"Chatflow {view.chatflow_id} {view.chatflow_url or ''}".rstrip()
    if view.answer:
        yield shortened(view.answer, _PART_CHARS)
    if view.error:
        yield f"{view.error.code}: {view.error.detail} {view.error.hint or ''}".rstrip()
    if view.in_progress:
        yield "It is running. Call get_session with wait_secs to wait for its next question or its end."
    if view.interrupt:
        yield from ("", f"It asks ({view.interrupt.type}, interrupt_id {view.interrupt.id}):")
        yield question_text(view.interrupt)
        yield from actions
        yield f"Answer with answer_question; or a person answers at {about.page}"
    elif view.result:
        yield view.result.summary
        yield from test_lines(view.result.tests)
    if about.change:
        yield from ("", f"Change: {about.change.summary}", shortened(about.change.text, _PART_CHARS))


def _cut_view(view: SessionView) -> SessionView:
    given: dict[str, Interrupt | ResultView] = {}
    if view.interrupt:
        given["interrupt"] = view.interrupt.model_copy(update={"data": view.interrupt.data.fitted(_DATA_BYTES)})
    if view.result:
        given["result"] = view.result.fitted(_DATA_BYTES)
    return view.model_copy(update=given)
