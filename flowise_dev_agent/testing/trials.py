"""Run test conversations with a written flow: several turns, forms, webhooks, human decisions.

Measured on Flowise 3.1.4: a decision goes to the door by which the flow was started (prediction or webhook) with the
same `chatId`, and the reply has the steps of the whole turn. The steps of a run that failed are in `/executions` only.
An agent's tool that waits for consent is decided in the same way. A run that has ended cannot be decided again.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.models import HumanAnswer, ImageUpload, Prediction
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.plan import MOST_DECISIONS, Decision, Expectation, TestCase
from flowise_dev_agent.schemas.verdict import Trace, Trial, VerdictCategory
from flowise_dev_agent.testing.cases import MOST_HELD, next_id
from flowise_dev_agent.testing.simulation import NOTHING_SIMULATED, Simulation
from flowise_dev_agent.testing.traces import Exchange, trace_of
from flowise_dev_agent.testing.verdicts import classify_failure, classify_prediction, failure_text
from flowise_dev_agent.testing.ways import Probe, TrialRun
from flowise_dev_agent.texts import text

_OUTCOMES: Final[tuple[Decision, ...]] = ("proceed", "reject")
#: Waits in vain after which the other tests of a flow get fewer seconds for each answer.
_MOST_IN_VAIN, _SHORT_WAIT = 2, 15.0


@dataclass(frozen=True)
class TrialConversation:
    """Conversation to run: the test case, the number of the trial, and the session id in the flow.

    Each question to a person gets its decision of `case.human`, in order, and `proceed` after the last of them.
    """

    chatflow_id: str
    flow_data: str
    case: TestCase
    number: int
    session_id: str
    #: Reason why this test cannot run; if set, it is skipped.
    not_testable: str | None = None
    #: Images sent with the first message.
    images: Sequence[ImageUpload] = ()
    #: Stand-ins in the flow that is asked.
    simulation: Simulation = NOTHING_SIMULATED
    #: Seconds for each answer; None: as long as the client waits.
    timeout: float | None = None


class Patience:
    """Time that the tests of one flow wait for answers: what is out of reach is not waited for in each of them."""

    def __init__(self) -> None:
        self._in_vain = 0

    @property
    def seconds(self) -> float | None:
        """Seconds for each answer of the next test; None: as long as the client waits."""
        return _SHORT_WAIT if self._in_vain >= _MOST_IN_VAIN else None

    def note(self, run: TrialRun) -> None:
        """Count a test whose answer did not come in time."""
        self._in_vain += run.trial.category == "TIMEOUT"


#: Runs a case: (case, number of the trial).
Hold = Callable[[TestCase, int], Coroutine[Any, Any, TrialRun]]
#: Cases for what the conversations so far have not shown.
More = Callable[[Sequence[TrialRun]], Sequence[TestCase]]


async def hold_all(
    cases: Sequence[TestCase], hold: Hold, *, trials: int = 1, more: More | None = None
) -> list[TrialRun]:
    """Run every case `trials` times, then human decisions that no case has taken and what `more` finds, once each, as
    long as there is something. Probes come last.
    """
    runs = await _together(hold(case, number) for case in cases for number in range(1, trials + 1))
    while more is not None and (added := undriven([run.case for run in runs], runs) or more(runs)):
        runs += await _together(hold(case, 1) for case in added)
    return sorted(runs, key=lambda run: isinstance(run.case, Probe))


async def _together(runs: Iterable[Coroutine[Any, Any, TrialRun]]) -> list[TrialRun]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run) for run in runs]
    return [task.result() for task in tasks]


def undriven(cases: Sequence[TestCase], runs: Sequence[TrialRun]) -> list[TestCase]:
    """New cases for human decisions that no conversation has taken.

    Each repeats the conversation that reached the node first, with its decisions up to there.
    """
    taken = {decision for run in runs for decision in run.decisions}
    by_id = {case.id: case for case in cases}
    first: dict[str, TestCase] = {}
    for run in runs:
        for position, (node, _) in enumerate(run.decisions):
            before = [decision for _, decision in run.decisions[:position]]
            first.setdefault(node, by_id[str(run.trial.test)].model_copy(update={"human": before}))
    held = [(case.turns, case.payload, case.human) for case in cases]
    added: list[TestCase] = []
    for node, outcome in itertools.product(first, _OUTCOMES):
        human = [*first[node].human, outcome]
        is_new = (first[node].turns, first[node].payload, human) not in held
        if (node, outcome) not in taken and is_new and len(cases) + len(added) < MOST_HELD:
            new = {"id": next_id([*cases, *added]), "human": human, "expect": Expectation()}
            added.append(first[node].model_copy(update=new))
    return added


class ConversationRunner:
    """Runs one conversation."""

    def __init__(self, flowise: FlowiseClient, conversation: TrialConversation) -> None:
        self._flowise = flowise
        self._of = conversation
        self._exchanges: list[Exchange] = []
        self._decisions: list[tuple[str, Decision]] = []

    async def run(self) -> TrialRun:
        """Run to the end of the last turn or to the first error. Errors of Flowise become results, never exceptions."""
        start = time.monotonic()
        case = self._of.case
        question = "\n".join(case.turns)
        if self._of.not_testable:
            trial = Trial(
                question=question, trial=self._of.number, passed=False, error=self._of.not_testable, test=case.id
            )
            return TrialRun(case, trial, Trace())
        category: VerdictCategory | None = None
        error = ""
        failed_steps: Sequence[JsonObject] = ()
        try:
            for said in self._said():
                category, error = await self._turn(said)
                if category:
                    break
        except FlowiseError as failure:
            category, error = classify_failure(failure), failure_text(failure)
            with suppress(FlowiseError):
                failed_steps = await self._flowise.executed_steps(self._of.chatflow_id, self._of.session_id)
            # These include the completed steps of the failed turn.
            self._exchanges[-1].reply = Prediction()
        trace = trace_of(self._exchanges, failed_steps)
        if broken := next((step for step in trace.steps if failed_steps and step.status == "ERROR"), None):
            error = text("verdict.step_failed", step=broken.label or broken.node_id, error=error)
        trial = Trial(
            question=question,
            trial=self._of.number,
            passed=category is None,
            answer=self._exchanges[-1].reply.answer,
            category=category,
            error=error,
            duration_ms=int((time.monotonic() - start) * 1000),
            tokens=trace.tokens.get("total", 0),
            used_tools=[tool.tool for tool in trace.used_tools],
            test=case.id,
            human=[decision for _, decision in self._decisions],
            probe=case.kind if isinstance(case, Probe) else None,
        )
        if called := self._of.simulation.called_in(trace):
            trial = trial.model_copy(update={"called": called})
        if used := self._of.simulation.used_in(trace):
            trial = trial.model_copy(update={"simulated": used, "answer": self._of.simulation.restored(trial.answer)})
        if used or self._of.simulation.limits:
            trace = self._of.simulation.told(trace)
        return TrialRun(case, trial, trace, tuple(self._decisions))

    def _said(self) -> Sequence[str]:
        """User messages, one per turn; forms and webhooks are submitted once."""
        return self._of.case.turns if self._of.case.input == "chat" else self._of.case.turns[:1]

    async def _turn(self, said: str) -> tuple[VerdictCategory | None, str]:
        exchange = Exchange([said])
        self._exchanges.append(exchange)
        exchange.reply = self._of.simulation.answered(await self._ask(said))
        exchange.answers.append(exchange.reply.answer)
        for _ in range(MOST_DECISIONS):
            if (node := exchange.reply.waits_at) is None:
                return classify_prediction(exchange.reply, is_read=self._is_read(exchange.reply))
            decision = self._decision(node)
            self._decisions.append((node, decision.type))
            exchange.said.append(f"[{decision.type}] {decision.feedback}".rstrip())
            exchange.reply = self._of.simulation.answered(await self._decide(decision))
            exchange.answers.append(exchange.reply.answer)
        if exchange.reply.waits_at is None:
            return classify_prediction(exchange.reply, is_read=self._is_read(exchange.reply))
        return "LOGIC", text("not_tested.waits", count=MOST_DECISIONS)

    def _is_read(self, reply: Prediction) -> bool:
        """True if somebody reads the answer: not of a schedule, nor of a webhook that only hands on what it is sent."""
        case = self._of.case
        hands_on = case.input == "webhook" and self._of.simulation.ends_with_request(reply)
        return case.input != "schedule" and not hands_on

    def _decision(self, node: str) -> HumanAnswer:
        case, position = self._of.case, len(self._decisions)
        given = case.human[position] if position < len(case.human) else "proceed"
        feedback = case.human_feedback[position] if position < len(case.human_feedback) else ""
        return HumanAnswer(type=given, start_node_id=node, feedback=feedback)

    async def _ask(self, said: str) -> Prediction:
        of, case, payload = self._of, self._of.case, self._of.case.payload or {}
        given: dict[str, Any] = {"session_id": of.session_id, "timeout": of.timeout}
        if case.input == "webhook":
            return await self._flowise.call_webhook(of.chatflow_id, payload, **given)
        if case.input == "form":
            return await self._flowise.predict(of.chatflow_id, form=payload, **given)
        images = of.images if len(self._exchanges) == 1 else ()
        return await self._flowise.predict(of.chatflow_id, said, images=images, **given)

    async def _decide(self, decision: HumanAnswer) -> Prediction:
        of = self._of
        given: dict[str, Any] = {"session_id": of.session_id, "timeout": of.timeout, "human": decision}
        if of.case.input == "webhook":
            return await self._flowise.call_webhook(of.chatflow_id, {}, **given)
        return await self._flowise.predict(of.chatflow_id, **given)
