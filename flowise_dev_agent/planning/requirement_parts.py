"""Parts of everything that the person has said: a plan must account for each."""

from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.planning.wording import MAX_PARTS, clauses, one_line
from flowise_dev_agent.schemas.plan import Part, Plan

#: Most parts of one plan.
_MOST: Final = 40


def parts_of(
    quotes: Sequence[str], clarifications: Sequence[tuple[str, str]], feedback: str, previous: Plan | None
) -> tuple[Part, ...]:
    """Parts of the requirement (`quotes`), the answers and the feedback, each with its source.

    Feedback of earlier rounds is taken from the plan that answered it. Beyond 40 parts the oldest feedback goes first.
    """
    said = [("requirement", quote) for quote in quotes]
    answers = [(f"answer:{n}", text) for n, (_, text) in enumerate(clarifications, start=1)]
    by_clause = [(source, quote) for source, text in answers for quote in clauses(text)]
    fits = len(said) + len(by_clause) <= MAX_PARTS  # the rest is for feedback
    said += by_clause if fits else [(source, one_line(text)) for source, text in answers]
    former = previous.parts if previous else []
    repeated = [(part.source, part.quote) for part in former if part.source.startswith("feedback:")]
    new = clauses(feedback)
    if new and not set(new) <= {quote for _, quote in repeated}:
        number = 1 + max((int(source.partition(":")[2]) for source, _ in repeated), default=0)
        room = _MOST - len(said) - len(repeated)
        repeated += [(f"feedback:{number}", quote) for quote in (new if len(new) <= room else [one_line(feedback)])]
    said += repeated[-max(_MOST - len(said), 1) :] if repeated else []
    return tuple(
        Part(id=f"p{number}", source=source, quote=quote)
        for number, (source, quote) in enumerate(said, start=1)
        if quote
    )
