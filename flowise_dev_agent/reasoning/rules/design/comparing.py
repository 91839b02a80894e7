"""What a condition of a flow of steps compares: a number, a choice or yes and no, of a form or of what a step reads
out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flowise_dev_agent.reasoning.rules.design.details import Field, in_ascii
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, pattern, wordset
from flowise_dev_agent.reasoning.rules.language.text import squeeze, to_number

_COMPARES, _VERDICT, _NOT = (pattern("steps", name) for name in ("compares", "verdict", "negates"))
_WORD = re.compile(r"[^\W\d_][\w-]*")
_OPPOSITE = {"larger": "smallerEqual", "smallerEqual": "larger", "smaller": "largerEqual", "largerEqual": "smaller"}
_ALL = wordset("all_things")
#: What a number is called that nobody names.
SCORE, _LONGEST_NAME, _LONGEST_CHOICE = "score", 3, 2


@dataclass(frozen=True)
class Comparison:
    """`about` is what the person calls the value, `said` the whole condition. `value`: of a yes or no whether it has to
    be yes, else a number, or one of the choices of a form."""

    about: str
    said: str
    operation: str
    value: float | bool | str

    @property
    def field(self) -> Field:
        """What a step has to read out for it."""
        kind = "boolean" if isinstance(self.value, bool) else "string" if isinstance(self.value, str) else "number"
        return Field(name_of(self.about), kind, self.about)

    def ends(self, other: "Comparison") -> bool:
        """Whether it holds where the other one does not: "up to 200" and "over 200"."""
        if isinstance(self.value, bool):
            return self.about == other.about and self.value != other.value
        outside = {_OPPOSITE.get(other.operation), _OPPOSITE.get(other.operation, "").removesuffix("Equal")}
        return self.value == other.value and self.operation in outside

    @property
    def turned(self) -> "Comparison":
        """It does not hold."""
        if isinstance(self.value, bool):
            return replace(self, value=not self.value)
        return replace(self, operation=_OPPOSITE.get(self.operation, "notEqual"))

    def row(self, place: str, *, form: bool) -> dict[str, Any]:
        """The condition of a node, of the value at a place. Yes and no of a form come as a text."""
        if isinstance(self.value, bool):
            operation, kind = "equal" if self.value else "notEqual", "string" if form else "boolean"
            return {"type": kind, "value1": place, "operation": operation, "value2": "true" if form else True}
        kind = "string" if isinstance(self.value, str) else "number"
        return {"type": kind, "value1": place, "operation": self.operation, "value2": self.value}


def name_of(said: str) -> str:
    """What people call a value as the name of a field."""
    return "_".join(re.findall(r"[a-z0-9]+", in_ascii(said).lower())) or "value"


def compared(case: str, fields: Mapping[str, Field]) -> Comparison | None:
    """What a condition compares; None where only a model can tell whether it holds."""
    said = squeeze(case)
    if match := _COMPARES.search(said):
        operation = next(name for name, words in match.groupdict().items() if words).strip("_")
        given = match.lastindex or 0
        about = _named(said[: match.start()]) or _named(said[match.end(given) :]) or SCORE
        number = to_number(match[given])
        return Comparison(about, said, operation, round(number) if number == int(number) else number)
    yes, words = not _NOT.search(said), _WORD.findall(said)
    for field in fields.values():
        if field.kind == "boolean" and any(_alike(word, field.name) for word in words):
            return Comparison(field.description, said, "equal", yes)
        for choice in choices(field):
            if yes and any(_alike(word, choice) for word in words):
                return Comparison(field.description, said, "equal", choice)
    return Comparison("ok", said, "equal", yes) if _VERDICT.search(said) else None


def choices(field: Field) -> Sequence[str]:
    """What a field of a form lets people choose from: "size (small, large)"."""
    listing = re.search(r"\(([^()]+)\)|\s?:\s(.+)$", field.description)
    listed = (listing[1] or listing[2]) if listing and field.kind == "string" else ""
    parts = [one.strip() for one in re.split(r"[,/]|\s(?:or|oder|ou|o|of|lub)\s", listed)]
    return parts if len(parts) > 1 and all(len(one.split()) <= _LONGEST_CHOICE for one in parts) else []


def _named(said: str) -> str:
    """The last words of a stretch that say something."""
    known = [one for one in _WORD.findall(said) if one.casefold() not in FUNCTIONS | _ALL]
    return " ".join(known[-_LONGEST_NAME:])


def _alike(word: str, other: str) -> bool:
    """Whether a word is a form of another one."""
    one, two = in_ascii(word).lower(), in_ascii(other).lower()
    stem = max(4, min(len(one), len(two)) - 2)
    return one[:stem] == two[:stem]
