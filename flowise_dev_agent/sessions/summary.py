"""Summary of a session on one page of Markdown: request, course, result."""

import html
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flows.service import FlowService
from flowise_dev_agent.flows.views import ChatflowLink
from flowise_dev_agent.patch.views.flow_diff import NO_DIFFERENCE
from flowise_dev_agent.persistence import AuditFilter, AuditLog, Events, Sessions, StoredEvent
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.audit import AuditRow
from flowise_dev_agent.schemas.base import TextCode, Worded
from flowise_dev_agent.schemas.change import Conflict, Difference, SessionChange
from flowise_dev_agent.schemas.session import ApprovedPlan, SessionSummary, SessionView
from flowise_dev_agent.sessions.answer_words import ledger_lines
from flowise_dev_agent.sessions.views import session_view
from flowise_dev_agent.texts import Param, say_in, translated

_TOLD = ("interrupt", "write", "test", "fallback", "drift", "error")
_MOST_EVENTS = 200
_LINE = 300


class Summaries:
    """Writes summaries. Unknown sessions raise SessionNotFoundError."""

    def __init__(
        self, *, sessions: Sessions, events: Events, audit_log: AuditLog, flows: FlowService, link: ChatflowLink
    ) -> None:
        self._sessions = sessions
        self._events = events
        self._audit_log = audit_log
        self._flows = flows
        self._link = link

    async def of(self, session_id: UUID, language: str = "en") -> SessionSummary:
        """Write the summary of a session; sections without content are left out."""
        row = await self._sessions.get(session_id)
        events = await self._events.read(session_id, after=0, limit=_MOST_EVENTS, types=list(_TOLD))
        rows, _ = await self._audit_log.page(AuditFilter(session_id=session_id), limit=_MOST_EVENTS)
        try:
            change = await self._flows.session_change(session_id)
        except InvalidInputError:
            change = None  # flows are kept only so long
        writer = _Writer(language)
        sections = writer.sections(session_view(row, self._link), events, rows[::-1], change)
        lines = [line for section in sections for line in (*section, "")]
        return SessionSummary(thread_id=session_id, summary="\n".join(lines).strip() + "\n")


def as_html(summary: SessionSummary) -> str:
    """Write the summary as an HTML page to print or to send. Its texts contain no markup, and it loads nothing."""
    # Loaded where it is needed: few ask for it.
    from markdown_it import MarkdownIt

    title = html.escape(summary.summary.partition("\n")[0].removeprefix("# "))
    # Links become plain text: people and models wrote them, so nothing here may lead elsewhere.
    body = MarkdownIt("commonmark", {"html": False}).disable(["link", "image", "autolink"]).render(summary.summary)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    return f"<!doctype html>\n<html><head>{head}</head>\n<body>\n{body}</body></html>\n"


@dataclass(frozen=True)
class _Writer:
    """Writes the sections of a summary in a language."""

    language: str

    def _say(self, code: str, **params: Param) -> str:
        return say_in(self.language, code, **params)

    def _heading(self, code: str, **params: Param) -> str:
        return f"## {self._say(code, **params)}"

    def sections(
        self, view: SessionView, events: list[StoredEvent], audit_log: list[AuditRow], change: SessionChange | None
    ) -> Iterator[list[str]]:
        """The sections, each with its heading."""
        yield [f"# {view.session_name or self._say('summary.title')}"]
        yield list(self._facts(view))
        yield [self._heading("summary.requirement"), "", *(f"> {line}" for line in view.requirement.splitlines())]
        if view.plan:
            yield [self._heading("summary.plan"), "", *self._plan(view.plan)]
        if view.answer:
            yield [self._heading("summary.answer"), "", view.answer]
        if view.interrupt:
            yield [self._heading("summary.open_question"), "", self._translated(view.interrupt, "message")]
        if view.error:
            words = f"{self._translated(view.error, 'detail')} {self._translated(view.error, 'hint')}"
            yield [self._heading("summary.error"), "", words.strip()]
        if change and (change.diff.text != NO_DIFFERENCE):
            heading = self._heading("summary.change", change=self._difference(change.diff))
            yield [heading, "", "```diff", *change.diff.text.splitlines(), "```"]
        if view.result and view.result.conflicts:
            yield [self._heading("summary.conflicts"), "", *map(self._saved_over, view.result.conflicts)]
        for code, type_ in (("questions", "interrupt"), ("writes", "write"), ("tests", "test")):
            lines = [self._event(event) for event in events if event.type == type_]
            if lines:
                yield [self._heading(f"summary.{code}"), "", *lines]
        if audit_log:
            yield [self._heading("summary.actions"), "", *ledger_lines(audit_log, self.language)]
        rest = [self._event(event) for event in events if event.type in {"fallback", "drift", "error"}]
        if rest:
            yield [self._heading("summary.also"), "", *rest]

    def _facts(self, view: SessionView) -> Iterator[str]:
        totals = view.totals
        yield f"- {self._say('summary.session', session=f'`{view.thread_id}`', instance=f'`{view.instance}`')}"
        status = self._say(f"status.{view.status}")
        if view.outcome:
            yield f"- {self._say('summary.ended', status=status, outcome=self._say(f'outcome.{view.outcome}'))}"
        else:
            yield f"- {self._say('summary.status', status=status)}"
        if view.operation_mode:
            operation = self._say(f"operation.{view.operation_mode}")
            again = [self._say("summary.again", count=view.iteration)] if view.iteration else []
            yield f"- {', '.join([self._say('summary.operation', operation=operation), *again])}"
        if view.chatflow_id:
            place = f"`{view.chatflow_id}`" + (f", {view.chatflow_url}" if view.chatflow_url else "")
            yield f"- {self._say('summary.chatflow', chatflow=place)}"
        started, changed = f"{view.created_at:%Y-%m-%d %H:%M}", f"{view.updated_at:%Y-%m-%d %H:%M}"
        yield f"- {self._say('summary.times', started=started, changed=changed)}"
        cost = self._say(
            "summary.cost",
            tokens=self._say("count.tokens", count=totals.input_tokens + totals.output_tokens),
            usd=f"${totals.usd:.4f}",
            model_calls=self._say("count.model_calls", count=totals.model_calls),
            flowise_calls=self._say("count.flowise_calls", count=totals.flowise_calls),
        )
        yield f"- {cost}"
        if view.degraded:
            yield f"- {self._say('summary.degraded', phases=', '.join(item.phase for item in view.degraded))}"

    def _plan(self, plan: ApprovedPlan) -> Iterator[str]:
        if plan.approach:
            yield self._say("summary.approach", approach=plan.approach)
            yield ""
        for line in plan.text.strip().splitlines():
            yield f"##{line}" if line.startswith("#") else line

    def _difference(self, diff: Difference) -> str:
        counts = {
            "nodes_added": len(diff.added),
            "nodes_removed": len(diff.removed),
            "nodes_moved": len(diff.moved),
            "fields_changed": sum(len(node.fields) for node in diff.changed),
            "connections_made": len(diff.connected),
            "connections_cut": len(diff.disconnected),
        }
        return ", ".join(self._say(f"change.{code}", count=count) for code, count in counts.items() if count)

    def _saved_over(self, conflict: Conflict) -> str:
        ours, theirs = conflict.ours[:12], conflict.theirs[:12]
        return f"- {self._say('summary.saved_over', flow=f'`{conflict.chatflow_id}`', ours=ours, theirs=theirs)}"

    def _translated(self, document: Worded, field: str) -> str:
        return translated(document.worded(field) or "", self.language)

    def _event(self, event: StoredEvent) -> str:
        codes = event.data.get("texts") or {}
        words = event.summary
        if "summary" in codes:
            words = translated(TextCode.model_validate(codes["summary"]).as_text(words), self.language)
        return f"- {event.ts:%H:%M:%S} {shortened(' '.join(words.split()), _LINE)}"
