"""Tests of a flow and their judgement."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, Field

from flowise_dev_agent.patch.model.labels import titled
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import Contract, JsonMapping, JsonObject, JsonValue, Versioned, Worded
from flowise_dev_agent.schemas.plan import Decision, Decisions
from flowise_dev_agent.texts import Text, in_brief, listed, quoted, sentences, text

#: Causes of a failure that a model may give. STRUCTURE, LOGIC and INCOMPLETE are flow bugs and iterate; the
#: others ask the person.
JudgedCategory = Literal["STRUCTURE", "LOGIC", "INCOMPLETE", "CREDENTIAL", "CONFIG", "EXTERNAL", "TIMEOUT"]
VerdictCategory = JudgedCategory | Literal["UNKNOWN"]
FLOW_BUGS: frozenset[str] = frozenset({"STRUCTURE", "LOGIC", "INCOMPLETE"})
#: Causes outside the flow: it could not be tested, and no plan helps.
NOT_THE_FLOW: frozenset[str] = frozenset({"CREDENTIAL", "CONFIG", "EXTERNAL", "TIMEOUT"})
#: Most items that a line lists for one reason, and most characters of each.
_MOST_LISTED, _LONGEST_LISTED = 3, 60
#: Code of the reason of a verdict that no model gave.
_NOT_JUDGED = "verdict.not_judged"
#: Characters by which a cause that was told before is known again.
_CAUSE = 60
Headline = Literal["works", "runs", "fails", "not_tested"]


#: What a stand-in does in a conversation that finds out what the flow makes of it; or a loop goes round to its limit.
ProbeKind = Literal["error", "empty", "limit"]


class Mark(Contract):
    """A person's judgement of a test."""

    good: bool
    by: str


class Trial(Versioned, Worded):
    """One execution of a test conversation with the written flow.

    `category` is None when transport and shape of the answers are fine; content is judged later. A trial that is not
    `passed` and has no `category` was not executed: `error` says why.
    """

    question: str = Field(description="Messages of the conversation, one turn a line.")
    trial: int = Field(default=1, description="Number of the trial of this question, from 1.")
    passed: bool
    answer: str = ""
    category: VerdictCategory | None = None
    error: str = ""
    duration_ms: int = 0
    tokens: int = Field(default=0, description="Tokens of the flow's models, as far as it tells them.")
    usd: float | None = Field(default=None, description="Price of these by list price, where it is known.")
    used_tools: list[str] = Field(default_factory=list)
    test: str | None = Field(default=None, description="Id of the test case.")
    human: Decisions = Field(
        default_factory=list[Decision], description="Decisions where the flow waited for a person, in order."
    )
    simulated: list[str] = Field(
        default_factory=list, description="What a stand-in did instead: nothing outside was called."
    )
    called: list[str] = Field(default_factory=list, description="What was really done, as a person named its address.")
    probe: ProbeKind | None = Field(
        default=None,
        description="A simulated call failed or answered nothing, or a loop went to its limit: see `Verdict.ways`.",
    )
    mark: Mark | None = Field(default=None, description="Set by a person who judged it; counts before all others.")
    trace_sha256: str | None = Field(default=None, description="For `GET /sessions/{id}/traces/{sha256}`.")

    def shortened(self, limit: int) -> "Trial":
        """Copy with `answer` and `error` cut to `limit` characters."""
        answer = self.answer if len(self.answer) <= limit else self.answer[: limit - 1] + "…"
        error = self.worded("error") if len(self.error) <= limit else in_brief(self.worded("error"), limit)
        return self.model_copy(update={"answer": answer, "error": error})


class Regression(Worded):
    """Difference in kind between the answers to a question before and after a change."""

    question: str
    kind: Literal["status", "error", "shape", "tools"] = Field(
        description="Works or fails, fails otherwise than before, text or JSON, tools used."
    )
    worse: bool
    before: str
    after: str


class TraceStep(Contract):
    """One node that ran; a loop or an iteration gives several of the same node."""

    node_id: str
    label: str = ""
    name: str = ""
    status: str = ""
    input: JsonValue = None
    output: JsonValue = None
    error: str = ""
    duration_ms: int | None = None
    simulated: bool = Field(default=False, description="A stand-in ran instead: nothing outside was called.")


class TracedTool(Contract):
    """One call of a tool."""

    tool: str
    input: JsonValue = None
    output: JsonValue = None
    error: str = ""
    simulated: bool = Field(default=False, description="A stand-in answered: nothing outside was called.")


class TracedSource(Contract):
    """A piece of text that was retrieved."""

    text: str
    metadata: JsonObject = Field(default_factory=dict)


class TracedTurn(Contract):
    """A message to the flow and its answer."""

    said: str
    answer: str


class Trace(Versioned):
    """Execution of the flow during a trial; secrets are masked."""

    turns: list[TracedTurn] = Field(default_factory=list)
    steps: list[TraceStep] = Field(default_factory=list)
    used_tools: list[TracedTool] = Field(default_factory=list)
    sources: list[TracedSource] = Field(default_factory=list)
    state: JsonObject = Field(default_factory=dict)
    tokens: dict[str, int] = Field(default_factory=dict, description="Sums over the steps, where told.")
    cut: bool = Field(default=False, description="Texts were shortened, or steps left out, because of the size.")


class PassK(Contract):
    """pass^k: a question has passed when each of its `k` trials has."""

    k: int
    questions: int
    passed: int


class Evidence(Contract):
    """Evidence for a vote: a quote from a trial or its trace."""

    trial: int = Field(description="Number of the trial, from 1.")
    node_id: str | None = None
    quote: str


class CriterionVote(Contract):
    """A model's vote on one criterion."""

    id: str
    state: Literal["shown", "not_shown", "failed"]
    evidence: list[Evidence] = Field(default_factory=list, description="verbatim quotes from trials")
    reason: str = ""
    sure: bool = Field(default=True, description="false: a close call")


class Judgement(Contract):
    """Judgement of the trials by the criteria. `category`, `reason` and `fix` say why not."""

    # A model always has to give its votes.
    model_config = ConfigDict(json_schema_extra={"required": ["done", "criteria"]})

    done: bool
    category: JudgedCategory | None = None
    reason: str = ""
    fix: str = ""
    criteria: list[CriterionVote] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list, description="one short remark per trial, in order")
    faults: list[str] = Field(default_factory=list, description="faults of the flow that no criterion names")
    failed_trials: list[int] = Field(default_factory=list, description="numbers of the trials that fail, from 1")


#: Strength of what was shown: ran for real, ran with stand-ins for what changes the world, said by a person, read from
#: the flow's settings.
Level = Literal["verified", "simulated", "person", "setting"]
CriterionState = Literal["shown", "not_shown", "failed", "not_tested"]


class CriterionVerdict(Worded):
    """One condition of success, judged."""

    id: str
    text: str = ""
    state: CriterionState = "not_tested"
    judged_by: Literal["code", "model", "person"] = "code"
    level: Level | None = Field(default=None, description="Strength of what was shown; null if nothing was.")
    evidence: list[Evidence] = Field(default_factory=list)
    reason: str = ""


W = TypeVar("W", bound=Worded)


def _titled(words: W, titles: Mapping[str, str], *fields: str) -> W:
    """Copy with titles in these fields; what code wrote has a code, and titles already."""
    written = {name: getattr(words, name) for name in fields if name not in words.texts}
    return words.model_copy(update={name: titled(one, titles) for name, one in written.items()})


class PartVerdict(Worded):
    """Judgement of one part of the requirement in the current flow."""

    id: str
    quote: str = ""
    state: Literal["done", "assumed", "not_shown", "missing", "not_possible"] = "missing"
    reason: str = ""
    level: Level | None = Field(default=None, description="The weakest level of its criteria; null if not done.")


class TestedIteration(Contract):
    """Test result of an iteration of the session; `accept` can select an earlier one."""

    __test__ = False  # not a pytest class

    iteration: int
    headline: Headline
    shown: list[str] = Field(default_factory=list, description="Criteria that were shown.")


class Verdict(Versioned, Worded):
    """A judgement with the counts and checks of code."""

    done: bool
    category: VerdictCategory | None = None
    reason: str = ""
    fix: str = ""
    notes: list[str] = Field(default_factory=list, description="One short remark per trial, in order.")
    faults: list[str] = Field(
        default_factory=list, description="Faults of the flow that a model saw and that no criterion names."
    )
    failed_trials: list[int] = Field(default_factory=list, description="Numbers of the trials that fail, from 1.")
    pass_k: PassK | None = None
    headline: Headline | None = None
    criteria: list[CriterionVerdict] = Field(default_factory=list)
    parts: list[PartVerdict] = Field(default_factory=list)
    simulated: list[str] = Field(
        default_factory=list, description="What the tests simulated: nothing of it was really done."
    )
    called: list[str] = Field(
        default_factory=list, description="What the tests really did, as a person named its address."
    )
    ways: list[str] = Field(
        default_factory=list,
        description="What the flow did where a simulated call failed or answered nothing, and what no test reached.",
    )

    def to_dict(self) -> JsonObject:
        """The short form: `{verdict: DONE | ITERATE, category, reason, fixes}`."""
        return {
            "verdict": "DONE" if self.done else "ITERATE",
            "category": self.category,
            "reason": self.reason,
            "fixes": [self.fix] if self.fix else [],
        }

    @classmethod
    def from_dict(cls, short: JsonMapping) -> "Verdict":
        """The inverse of `to_dict`. Raises pydantic.ValidationError."""
        fixes = short.get("fixes")
        return cls.model_validate(
            {
                "done": short.get("verdict") == "DONE",
                "category": short.get("category"),
                "reason": short.get("reason") or "",
                "fix": " ".join(str(fix) for fix in fixes) if isinstance(fixes, list) else "",
            }
        )

    def in_titles(self, titles: Mapping[str, str]) -> "Verdict":
        """Verdict for people: in what models wrote, nodes have their titles in place of their ids."""
        update: dict[str, Any] = {
            "faults": [titled(fault, titles) for fault in self.faults],
            "criteria": [_titled(one, titles, "text", "reason") for one in self.criteria],
            "parts": [_titled(one, titles, "reason") for one in self.parts],
        }
        if not any(field.startswith("notes.") for field in self.texts):
            update["notes"] = [titled(note, titles) for note in self.notes]
        return _titled(self, titles, "reason", "fix").model_copy(update=update)

    def with_marks(self, trials: Sequence[Trial], tested: Mapping[str, Sequence[str]]) -> "Verdict":
        """Verdict in which what people marked counts before all other judgements. `tested`: tests by criterion."""
        marks: dict[str, list[bool]] = {}
        for trial in trials:
            if trial.mark:
                marks.setdefault(trial.test or "", []).append(trial.mark.good)
        criteria: list[CriterionVerdict] = []
        for one in self.criteria:
            said = [good for test in tested.get(one.id, ()) for good in marks.get(test, ())]
            state = one.state if not said else "shown" if all(said) else "failed"
            # A good answer to one of several tests shows no more than that.
            if said and not (state == "shown" and not set(tested[one.id]) <= set(marks)):
                one = one.model_copy(
                    update={"state": state, "judged_by": "person", "level": "person" if state == "shown" else None}
                )
            criteria.append(one)
        wrong = any(not good for said in marks.values() for good in said)
        # Only a mark makes a flow fail that is done otherwise: the person may take it back.
        back = "runs" if self.headline == "fails" and self.done else self.headline
        return self.model_copy(update={"criteria": criteria, "headline": "fails" if wrong else back})

    def what_was_shown(self) -> str:
        """Summary of the criteria for a flow that runs: running alone shows no part of the requirement."""
        shown = sum(item.state == "shown" for item in self.criteria)
        if shown and shown == len(self.criteria):
            only_left = self.not_done() and not self.not_shown()
            return text("verdict.all_shown" if only_left else "verdict.not_every_part")
        if shown:
            some = text("verdict.some_shown", shown=shown, total=len(self.criteria))
            reason = self.worded("reason")
            return sentences(some, reason) if _code(reason) == _NOT_JUDGED else some
        if any(item.judged_by == "model" for item in self.criteria):
            return text("verdict.answers_not_shown")
        return text("verdict.answers_not_checked")

    def shown_by(self, level: Level) -> str:
        """The criteria that are known at this level, in one line; empty if there are none."""
        found = [_short(one.worded("text")) for one in self.criteria if (one.state, one.level) == ("shown", level)]
        return _first(found) if found else ""

    def not_shown(self) -> list[str]:
        """Reasons why a running flow is not called working, one line each; the cause in `reason` is not told again."""
        told = {item.reason for item in self.criteria}
        found = [
            (item.worded("reason"), _short(item.worded("text"))) for item in self.criteria if item.state != "shown"
        ] + [
            (part.worded("reason"), quoted(_short(part.quote)))
            for part in self.parts
            if part.state not in ("done", "assumed", "not_possible") and (not part.reason or part.reason not in told)
        ]
        # That nobody judged the answers is said once, for all (`what_was_shown`).
        unjudged = not any(item.state == "shown" or item.judged_by == "model" for item in self.criteria)
        by_reason: dict[str, list[str]] = {}
        for reason, words in found:
            if unjudged and _code(reason) == _NOT_JUDGED:
                continue
            known = bool(reason) and " ".join(reason.split())[:_CAUSE] in self.reason
            by_reason.setdefault("" if known else reason, []).append(words)
        return [_listed(texts, reason) for reason, texts in by_reason.items()]

    def not_done(self) -> list[str]:
        """Parts of the requirement that are not possible, with the reason."""
        return [
            _listed([quoted(_short(part.quote))], part.worded("reason"))
            for part in self.parts
            if part.state == "not_possible"
        ]


def _code(words: str) -> str:
    return words.code if isinstance(words, Text) else ""


def _short(words: str) -> str:
    return words if isinstance(words, Text) else shortened(words.rstrip(". "), _LONGEST_LISTED)


def _first(texts: list[str]) -> str:
    first, more = listed(texts[:_MOST_LISTED]), len(texts) - _MOST_LISTED
    return text("verdict.and_more", listed=first, number=more) if more > 0 else first


def _listed(texts: list[str], reason: str) -> str:
    said = _first(texts)
    return text("verdict.listed", listed=said, reason=reason) if reason else text("verdict.listed_alone", listed=said)
