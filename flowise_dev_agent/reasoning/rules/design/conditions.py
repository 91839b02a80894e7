"""Conditions on the person's message, by which an agentflow chooses its way: "if the message contains 'refund' ..."."""

import re
from dataclasses import dataclass

from flowise_dev_agent.reasoning.rules.language import grammar
from flowise_dev_agent.reasoning.rules.language.text import squeeze

#: Operations of Flowise's condition node, each with the words for it; "does not contain" stands before "contain".
_OPERATIONS = {
    "notContains": r"(?:does not|doesn['’]?t) (?:contain|include|mention|have)|no contiene|ne contient pas|não contém",
    "notEqual": r"is not|isn['’]?t|does not equal|doesn['’]?t equal",
    "startsWith": r"(?:starts?|begins?) with|beginnt mit|empieza (?:con|por)|commence par|começa (?:com|por)",
    "endsWith": r"ends? with|endet (?:mit|auf)|termina (?:con|en|com|em)|(?:se )?termine par",
    "contains": r"contains?|includes?|mentions?|has|enthält|contiene|incluye|menciona|contient|contém|inclui",
    "equal": r"is(?: exactly| equal to)?|equals?|says|lautet|ist|es(?: igual a)?|est|é(?: igual a)?",
}
#: In German the verb stands last.
_CASES = grammar.patterns("conditions", "cases")
_OTHERWISE = grammar.pattern("conditions", "otherwise")
_NUMBERS = grammar.pattern("conditions", "numbers")


@dataclass(frozen=True)
class Case:
    """What is done when the message fits. `operation` is one of Flowise's for texts."""

    operation: str
    value: str
    then: str

    @property
    def example(self) -> str | None:
        """A message that fits, for operations that say what one holds."""
        return None if self.operation.startswith("not") else self.value


@dataclass(frozen=True)
class Conditions:
    """The cases in their order, and what is done when none fits; None when the text does not say."""

    cases: tuple[Case, ...] = ()
    otherwise: str | None = None


def read_conditions(text: str) -> Conditions:
    """The conditions on the message that the text names; none when it names none that the rules understand."""
    before, *behind = _OTHERWISE.split(squeeze(text), maxsplit=1)
    found = sorted((match for pattern in _CASES for match in pattern.finditer(before)), key=lambda match: match.start())
    ends = [*(match.start() for match in found[1:]), len(before)]
    cases = [
        Case(_operation(match["operation"]), match["value"].strip("\"'“”„«» "), _clause(before[match.end() : end]))
        for match, end in zip(found, ends, strict=False)
    ]
    if not cases or not all(case.then for case in cases):
        return Conditions()
    return Conditions(tuple(cases), (_clause(behind[0]) if behind else "") or None)


def compares_numbers(text: str) -> bool:
    """Whether something is to depend on a number ("if the score is above 7")."""
    return _NUMBERS.search(text) is not None


def _operation(words: str) -> str:
    return next(name for name, pattern in _OPERATIONS.items() if re.fullmatch(pattern, words, re.IGNORECASE))


def _clause(text: str) -> str:
    clause = re.split(r"(?<=[.!?])\s|\n", text.strip(" ,;:"))[0]
    clause = re.sub(r"^(?:then|dann|entonces|alors|então)\b[\s,:]*", "", clause, flags=re.IGNORECASE)
    return re.sub(r"[\s,;:.]*(?:\b(?:and|und|y|et|e))?[\s,;:.]*$", "", clause)
