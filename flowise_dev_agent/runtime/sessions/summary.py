"""A session told on one page of Markdown: what was asked for, what happened, what it came to."""

import html
from collections.abc import Iterator
from uuid import UUID

from flowise_dev_agent.contracts.audit import AuditRow
from flowise_dev_agent.contracts.change import Conflict, SessionChange
from flowise_dev_agent.contracts.session import PlanView, SessionSummary, SessionView
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.persistence import AuditFilter, Events, Ledger, SessionRow, Sessions, StoredEvent
from flowise_dev_agent.runtime.flows.service import FlowService
from flowise_dev_agent.runtime.sessions.ledger import told
from flowise_dev_agent.runtime.sessions.views import ChatflowLink, session_view
from flowise_dev_agent.sanitize import shortened

_TOLD = ("interrupt", "write", "test", "fallback", "drift", "error")
_MOST_EVENTS = 200
_LINE = 300


class Summaries:
    """Writes summaries. Unknown sessions raise SessionNotFoundError."""

    def __init__(
        self, *, sessions: Sessions, events: Events, ledger: Ledger, flows: FlowService, link: ChatflowLink
    ) -> None:
        self._sessions = sessions
        self._events = events
        self._ledger = ledger
        self._flows = flows
        self._link = link

    async def of(self, session_id: UUID) -> SessionSummary:
        """The summary of a session as it stands; sections without content are left out."""
        row = await self._sessions.get(session_id)
        events = await self._events.read(session_id, after=0, limit=_MOST_EVENTS, types=list(_TOLD))
        rows, _ = await self._ledger.page(AuditFilter(session_id=session_id), limit=_MOST_EVENTS)
        try:
            change = await self._flows.session_change(session_id)
        except InvalidInputError:
            change = None  # flows are kept only so long
        lines = [line for section in _sections(row, self._link, events, rows[::-1], change) for line in (*section, "")]
        return SessionSummary(thread_id=session_id, summary="\n".join(lines).strip() + "\n")


def as_html(summary: SessionSummary) -> str:
    """The summary as a page to print or to send. Nothing in its texts is markup, and it loads nothing."""
    # Loaded where it is needed: few ask for it.
    from markdown_it import MarkdownIt

    title = html.escape(summary.summary.partition("\n")[0].removeprefix("# "))
    # As text, links included: what people and models wrote leads nowhere.
    body = MarkdownIt("commonmark", {"html": False}).disable(["link", "image", "autolink"]).render(summary.summary)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    return f"<!doctype html>\n<html><head>{head}</head>\n<body>\n{body}</body></html>\n"


def _sections(
    row: SessionRow,
    link: ChatflowLink,
    events: list[StoredEvent],
    ledger: list[AuditRow],
    change: SessionChange | None,
) -> Iterator[list[str]]:
    view = session_view(row, link)
    yield [f"# {view.session_name or 'Session'}"]
    yield list(_facts(view))
    yield ["## Requirement", "", *(f"> {line}" for line in view.requirement.splitlines())]
    if view.plan:
        yield ["## Approved plan", "", *_plan(view.plan)]
    if view.answer:
        yield ["## Answer", "", view.answer]
    if view.interrupt:
        yield ["## Open question", "", view.interrupt.message]
    if view.error:
        yield ["## Error", "", f"{view.error.detail} {view.error.hint or ''}".strip()]
    if change and (change.diff.text != "no difference"):
        yield [f"## Change: {change.diff.summary}", "", "```diff", *change.diff.text.splitlines(), "```"]
    if view.result and view.result.conflicts:
        yield ["## Saved by others right after a write", "", *(_saved_over(one) for one in view.result.conflicts)]
    for title, type_ in (("Questions", "interrupt"), ("Writes", "write"), ("Tests", "test")):
        lines = [_told(event) for event in events if event.type == type_]
        if lines:
            yield [f"## {title}", "", *lines]
    if ledger:
        yield ["## Who did what", "", *told(ledger)]
    rest = [_told(event) for event in events if event.type in {"fallback", "drift", "error"}]
    if rest:
        yield ["## Also noted", "", *rest]


def _facts(view: SessionView) -> Iterator[str]:
    totals = view.totals
    yield f"- Session: `{view.thread_id}` on `{view.instance}`"
    yield f"- Status: {view.status}" + (f" ({view.outcome})" if view.outcome else "")
    if view.operation_mode:
        yield f"- Operation: {view.operation_mode}, iteration {view.iteration}"
    if view.chatflow_id:
        yield f"- Chatflow: `{view.chatflow_id}`" + (f", {view.chatflow_url}" if view.chatflow_url else "")
    yield f"- Started {view.created_at:%Y-%m-%d %H:%M} UTC, last change {view.updated_at:%Y-%m-%d %H:%M} UTC"
    yield (
        f"- Cost: {totals.input_tokens + totals.output_tokens} tokens, ${totals.usd:.4f},"
        f" {totals.model_calls} model calls, {totals.flowise_calls} Flowise calls"
    )
    if view.degraded:
        yield f"- Answered in another mode than set: {', '.join(item.phase for item in view.degraded)}"


def _plan(plan: PlanView) -> Iterator[str]:
    if plan.approach:
        yield f"Approach: **{plan.approach}**"
        yield ""
    for line in plan.text.strip().splitlines():
        yield f"##{line}" if line.startswith("#") else line


def _saved_over(conflict: Conflict) -> str:
    ours, theirs = conflict.ours[:12], conflict.theirs[:12]
    return f"- `{conflict.chatflow_id}` held {theirs} instead of this session's {ours}; both are versions of it"


def _told(event: StoredEvent) -> str:
    return f"- {event.ts:%H:%M:%S} {shortened(' '.join(event.summary.split()), _LINE)}"
