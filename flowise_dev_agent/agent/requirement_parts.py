"""What the person has said so far, part by part: a plan accounts for each."""

from typing import Final

from flowise_dev_agent.agent.state import AgentState
from flowise_dev_agent.contracts.plan import Part
from flowise_dev_agent.reasoning.wording import MAX_PARTS, clauses, one_line, split

#: Of one plan.
_MOST: Final = 40


def parts_of(state: AgentState) -> tuple[Part, ...]:
    """The requirement, the answers to questions and the feedback, each part with the source that it is a quote of.

    Feedback of earlier rounds is taken from the plan that answered it. Beyond 40 parts the oldest feedback goes first.
    """
    said = [("requirement", quote) for quote in state.intent.current.parts or split(state.request.requirement)]
    answers = [(f"answer:{n}", text) for n, (_, text) in enumerate(state.intent.clarifications, start=1)]
    by_clause = [(source, quote) for source, text in answers for quote in clauses(text)]
    fits = len(said) + len(by_clause) <= MAX_PARTS  # the rest is for feedback
    said += by_clause if fits else [(source, one_line(text)) for source, text in answers]
    former = state.plan.contract.parts if state.plan.contract else []
    feedback = [(part.source, part.quote) for part in former if part.source.startswith("feedback:")]
    new = clauses(state.plan.feedback or "")
    if new and not set(new) <= {quote for _, quote in feedback}:
        number = 1 + max((int(source.partition(":")[2]) for source, _ in feedback), default=0)
        room = _MOST - len(said) - len(feedback)
        feedback += [
            (f"feedback:{number}", quote)
            for quote in (new if len(new) <= room else [one_line(state.plan.feedback or "")])
        ]
    said += feedback[-max(_MOST - len(said), 1) :] if feedback else []
    return tuple(
        Part(id=f"p{number}", source=source, quote=quote)
        for number, (source, quote) in enumerate(said, start=1)
        if quote
    )
