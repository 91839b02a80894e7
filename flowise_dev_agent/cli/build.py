"""`build`: run one session from the requirement to acceptance, showing progress."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from flowise_dev_agent.cli.answers import ask_person, default_answer
from flowise_dev_agent.cli.console import counted, fail, fail_with, out, print_json, say
from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.client import RUN_END_EVENTS, AgentClient, ServiceError
from flowise_dev_agent.errors import NeedsPersonError
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.events import SessionEvent
from flowise_dev_agent.schemas.interrupts import (
    ClarificationInterrupt,
    Interrupt,
    PatchReviewInterrupt,
    PlanApprovalInterrupt,
    ResultReviewInterrupt,
)
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.schemas.verdict import Verdict

_MARKS: Final = {
    "node_end": ("✓", "green"),
    "node_error": ("✗", "red"),
    "error": ("✗", "red"),
    "write": ("●", "cyan"),
    "test": ("●", "cyan"),
    "fallback": ("!", "yellow"),
    "retry": ("!", "yellow"),
    "drift": ("!", "yellow"),
}
#: For a session that asks nobody.
_LONGEST_SECS: Final = 86_400.0
_HEADLINES: Final = {
    "works": "works: every criterion was shown",
    "runs": "it answers.",
    "fails": "fails:",
    "not_tested": "not tested:",
}


async def build(client: AgentClient, request: StartSession, *, assume_yes: bool, attach: Sequence[Path] = ()) -> Exit:
    """Start a session, with files if any, show its progress, answer its questions."""
    view = await _started(client, request, attach)
    say(f"Session {view.thread_id} at {client.base_url}/#/s/{view.thread_id}")
    seen = 0
    verdict: Verdict | None = None
    while True:
        view, seen = await _follow(client, view, seen)
        if view.in_progress:
            continue
        if view.interrupt is None:
            return Exit.DONE if conclude(view, verdict) else _refused(view)
        if isinstance(view.interrupt, ResultReviewInterrupt):
            verdict = view.interrupt.data.verdict
        present(view.interrupt)
        try:
            answer = _answer(view.interrupt, assume_yes)
        except NeedsPersonError as error:
            fail(error.message, f"{error.hint} Answer at {client.base_url}/#/s/{view.thread_id}")
            return Exit.NEEDS_ANSWER
        try:
            view = await client.resume(view.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer=answer))
        except ServiceError as error:
            if error.problem_code != "invalid_answer" or assume_yes:
                raise
            fail_with(error)


async def build_as_json(
    client: AgentClient, request: StartSession, *, assume_yes: bool, attach: Sequence[Path] = ()
) -> Exit:
    """Start a session and print it as JSON at its end, or at the first question that `--yes` does not answer."""
    view = await follow(client, await _started(client, request, attach), assume_yes=assume_yes)
    print_json(view)
    if view.interrupt is not None or view.in_progress:
        return Exit.NEEDS_ANSWER
    return Exit.DONE if view.outcome == "accepted" else _refused(view)


async def follow(
    client: AgentClient, view: SessionView, *, assume_yes: bool, wait: float = _LONGEST_SECS
) -> SessionView:
    """A session at its end, or at the first question that `--yes` does not answer; `wait` seconds for each."""
    while True:
        view = await client.wait(view.thread_id, wait)
        if view.interrupt is None or not assume_yes:
            return view
        try:
            answer = default_answer(view.interrupt)
        except NeedsPersonError:
            return view
        view = await client.resume(view.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer=answer))


async def _started(client: AgentClient, request: StartSession, attach: Sequence[Path]) -> SessionView:
    files = [await client.attach(path.name, path.read_bytes()) for path in attach]
    if files:
        request = request.model_copy(update={"attachments": [one.id for one in files]})
    return await client.start(request)


def _refused(view: SessionView) -> Exit:
    return Exit.FAILED if view.status == "error" else Exit.NO


async def _follow(client: AgentClient, view: SessionView, seen: int) -> tuple[SessionView, int]:
    """Show events until the session asks, ends or fails; returns the session and the number of the last event."""
    with Progress(out()) as progress:
        async for event in client.events(view.thread_id, after_seq=seen):
            seen = event.seq or seen
            progress.show(event)
            if event.type in RUN_END_EVENTS:
                break
    return await client.get(view.thread_id), seen


def present(interrupt: Interrupt, *, full: bool = False) -> None:
    """Print a question with everything that is needed to answer it; of a plan, long texts as a whole if `full`."""
    out().rule(interrupt.type.replace("_", " "))
    match interrupt:
        case PlanApprovalInterrupt(data=data) if data.plan:
            # Only plans need the Markdown parser, which is a third of what a command loads.
            from rich.markdown import Markdown

            # Wrapped at the width of the terminal, unlike lines that people may want to copy.
            plan = data.plan
            if full:
                from flowise_dev_agent.planning.plan_text import plan_markdown

                plan = plan_markdown(data.contract, data.details, data.language, full=True)
            out().print(Markdown(plan), soft_wrap=False)
        case ClarificationInterrupt(data=data):
            for question in data.questions:
                say(f"  - {question}")
        case PatchReviewInterrupt(data=data):
            if data.change:
                say(data.change.text)
            for finding in data.findings:
                say(f"  {finding.line}", "yellow")
        case ResultReviewInterrupt(data=data):
            for test in data.tests:
                mark, style = ("✓", "green") if test.passed else ("✗", "red")
                say(f"  {mark} {' → '.join(test.question.splitlines())}", style)
                say(f"    {test.answer or test.error}")
        case _:
            pass
    say(interrupt.message)


def _answer(interrupt: Interrupt, assume_yes: bool) -> JsonObject:
    if assume_yes:
        answer = default_answer(interrupt)
        say(f"  -> {answer['action']}", "bold")
        return answer
    if not sys.stdin.isatty():
        raise NeedsPersonError(interrupt.message, hint="No terminal is attached to answer: use --yes, or answer later.")
    return ask_person(interrupt)


def conclude(view: SessionView, verdict: Verdict | None = None) -> bool:
    """Print how a session ended; True when its chatflow was accepted. `verdict` is that of its last review."""
    out().rule(view.outcome or view.status)
    if view.error:
        fail(view.error.detail or "The session failed.", view.error.hint)
    if view.chatflow_id:
        say(f"Chatflow  {view.chatflow_id}")
        say(f"Link      {view.chatflow_url} (in Flowise)")
    if verdict:
        headline = verdict.headline or ("runs" if verdict.done else "fails")
        known = f" {verdict.what_was_shown()}" if headline == "runs" else ""
        say(f"Verdict   {_HEADLINES[headline]}{known}")
        for text in (*verdict.not_shown(), *verdict.not_done(), *([] if verdict.done else [verdict.reason])):
            say(f"          {text}", "yellow")
    totals = view.totals
    used = [counted("model_calls", totals.model_calls), counted("tokens", totals.input_tokens + totals.output_tokens)]
    unknown = (
        f", {counted('model_calls', totals.unpriced_calls)} without a known price" if totals.unpriced_calls else ""
    )
    say(f"Cost      {', '.join(used)}, {totals.usd:.4f} USD{unknown}")
    for item in view.degraded:
        say(f"Degraded  {item.phase}: {item.fallback_reason}", "yellow")
    return view.outcome == "accepted"


class Progress:
    """Prints events as lines: one per finished step. On a terminal a spinner shows the step that is running.

    Use it as a context manager and `show` every event.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self._status:
            self._status.stop()
            self._status = None

    def show(self, event: SessionEvent) -> None:
        """Print a line for the event if it is shown; move the spinner to a step that starts."""
        if event.type == "node_start" and self._status:
            self._status.update(Text(f"{event.phase or ''}: {event.node}"))
        if event.type not in _MARKS:
            return
        mark, style = _MARKS[event.type]
        line = Text.assemble("  ", (mark, style), " ", (f"{event.phase or '':<9}", "bold"), f"{event.node or '':<25}")
        if event.duration_ms is not None:
            line.append(f"{event.duration_ms / 1000:6.1f} s", "dim")
        if event.type != "node_end" and event.summary:
            line.append(f"  {event.summary}")
        self._console.print(line)
