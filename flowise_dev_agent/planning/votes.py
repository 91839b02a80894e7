"""Judgements of a model: validate one answer, and combine several."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.models.parsing import UnusableOutputError
from flowise_dev_agent.planning.requests import JudgeRequest
from flowise_dev_agent.schemas.verdict import CriterionVerdict, CriterionVote, Judgement, Verdict
from flowise_dev_agent.texts import text

#: Asked for when the first judgement calls a criterion a close one.
MORE_VOTES: Final = 2
NO_REAL_MODEL: Final = text("verdict.no_real_model")
#: Step types whose output a model decides.
_BY_MODELS: Final = frozenset(
    {
        *("startAgentflow", "llmAgentflow", "agentAgentflow", "conditionAgentAgentflow"),
        *("directReplyAgentflow", "loopAgentflow", "iterationAgentflow"),
    }
)


def checked_judgement(judgement: Judgement, request: JudgeRequest) -> Judgement:
    """Judgement without votes on unknown criteria. Raises UnusableOutputError with its problems."""
    problems: list[str] = []
    known = {criterion.id for criterion in request.plan.criteria if criterion.tests}
    votes = list({vote.id: vote for vote in judgement.criteria if vote.id in known}.values())
    count = len(request.trials)
    if wrong := [number for number in judgement.failed_trials if not 1 <= number <= count]:
        problems.append(f"There are {count} trials; {wrong} are not among them.")
    failed = [vote.id for vote in votes if vote.state == "failed"]
    if judgement.done and (judgement.failed_trials or failed):
        problems.append(
            "done is true only when no trial and no criterion failed; `failed_trials` or `criteria` name some."
        )
    if not judgement.done and (judgement.category is None or not judgement.reason.strip()):
        problems.append("done is false, so `category` and `reason` must say why.")
    if problems:
        raise UnusableOutputError(problems)
    category = None if judgement.done else judgement.category
    return judgement.model_copy(update={"criteria": votes, "category": category})


def shows_content_only(request: JudgeRequest) -> bool:
    """True if the trials show only text of the flow's models: no source was expected or found, and every step that ran
    follows a model.
    """
    if any(test.expect.sources for test in request.plan.tests):
        return False
    return not any(
        trace.sources or any(step.name not in _BY_MODELS for step in trace.steps) for trace in request.traces
    )


def without_a_real_model(request: JudgeRequest) -> Verdict:
    """Verdict on answers of a stand-in model."""
    return Verdict(
        done=True,
        criteria=[
            CriterionVerdict(id=criterion.id, state="not_shown", judged_by="code", reason=NO_REAL_MODEL)
            for criterion in request.plan.criteria
            if criterion.tests
        ],
    )


def agreed(judgements: Sequence[Judgement]) -> bool:
    """True if two judgements say the same: a third could not change the majority."""
    said = Counter((one.done, *sorted((vote.id, vote.state) for vote in one.criteria)) for one in judgements)
    return max(said.values()) > 1


def verdict_of(judgements: Sequence[Judgement]) -> Verdict:
    """Judgement of the majority; on a tie the more cautious one."""
    by_done = Counter(judgement.done for judgement in judgements)
    done = by_done[True] > by_done[False]
    kept = next(judgement for judgement in judgements if judgement.done == done)
    criteria = [
        _majority([vote for one in judgements for vote in one.criteria if vote.id == own.id]) for own in kept.criteria
    ]
    if done:
        criteria = [
            vote.model_copy(update={"state": "not_shown"}) if vote.state == "failed" else vote for vote in criteria
        ]
    return Verdict(
        done=done,
        category=kept.category,
        reason=kept.reason,
        fix=kept.fix,
        notes=kept.notes,
        faults=kept.faults,
        failed_trials=kept.failed_trials,
        criteria=[
            CriterionVerdict(
                id=vote.id, state=vote.state, judged_by="model", evidence=vote.evidence, reason=vote.reason
            )
            for vote in criteria
        ],
    )


def _majority(votes: Sequence[CriterionVote]) -> CriterionVote:
    counted = Counter(vote.state for vote in votes)
    careful = ("failed", "not_shown", "shown")
    state = max(careful, key=lambda one: counted[one])
    return next(vote for vote in votes if vote.state == state)
