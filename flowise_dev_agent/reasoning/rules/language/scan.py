"""A text that remembers which of its stretches were recognised, and what they stand for."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flowise_dev_agent.reasoning.rules.language.text import is_negated


@dataclass(frozen=True)
class Span:
    """A recognised stretch. `names` are node types and `params` fields that it asks for; `keep` is said of what
    stays, and `task` belongs to the words that the model gets, too."""

    start: int
    end: int
    names: frozenset[str] = frozenset()
    params: frozenset[str] = frozenset()
    denied: bool = False
    task: bool = False
    keep: bool = False


class Scan:
    """Looks for patterns in a text and notes what it finds."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans: list[Span] = []

    def find(
        self,
        pattern: re.Pattern[str],
        *,
        names: Iterable[str] = (),
        params: Iterable[str] = (),
        task: bool = False,
        keep: bool = False,
    ) -> list[re.Match[str]]:
        """The matches that are not negated. Negated ones are noted as such."""
        found: list[re.Match[str]] = []
        for match in pattern.finditer(self.text):
            denied = is_negated(self.text, match.start(), match.end())
            self.note(match.start(), match.end(), names=names, params=params, denied=denied, task=task, keep=keep)
            if not denied:
                found.append(match)
        return found

    def has(
        self,
        pattern: re.Pattern[str],
        *,
        names: Iterable[str] = (),
        params: Iterable[str] = (),
        task: bool = False,
        keep: bool = False,
    ) -> bool:
        return bool(self.find(pattern, names=names, params=params, task=task, keep=keep))

    def note(
        self,
        start: int,
        end: int,
        *,
        names: Iterable[str] = (),
        params: Iterable[str] = (),
        denied: bool = False,
        task: bool = False,
        keep: bool = False,
    ) -> None:
        self.spans.append(Span(start, end, frozenset(names), frozenset(params), denied, task, keep))


def covered(spans: Sequence[Span], position: int) -> bool:
    """Whether a recognised stretch covers the position."""
    return any(span.start <= position < span.end for span in spans)
