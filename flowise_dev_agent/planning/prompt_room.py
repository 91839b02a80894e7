"""Room of a prompt in a model's window, and pieces of text that are filled into it by importance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

#: Characters of a token: an estimate, good for English prose and JSON.
_CHARS: Final = 4
#: Share of a window that a prompt may take. Tools, the answer's schema, look-ups, the answer and its correction take
#: the rest.
_SHARE: Final = 0.36
_SHORTENED: Final = "Shortened or left out, for lack of room: {}."


@dataclass(frozen=True)
class Form:
    """One form of a piece. `worth`: of two forms the one of less worth gives way first."""

    text: str | None
    worth: int


@dataclass(frozen=True)
class Piece:
    """Piece of a prompt: a form that always fits a use, and richer ones before it, in falling length and rising worth.

    `lost` names the piece, and how it can be looked up, where a shorter form stands.
    """

    shortest: str | None
    richer: tuple[Form, ...] = ()
    lost: str = ""

    def form(self, number: int) -> str:
        """Text of a form, counted from the richest."""
        return (self.richer[number].text if number < len(self.richer) else self.shortest) or ""


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text) // _CHARS)


def room_in(window: int) -> int:
    """Tokens that a prompt may take in a window of so many tokens."""
    return int(window * _SHARE)


def filled(pieces: Sequence[Piece], room: int, separator: str = "\n") -> str:
    """Join the pieces in `room` tokens: each in its richest form, else the forms of least worth give way.

    It is longer than `room` if the shortest forms are. A last line names what was shortened.
    """
    chosen = [0] * len(pieces)
    steps = sorted((form.worth, at) for at, piece in enumerate(pieces) for form in piece.richer)

    def text() -> str:
        shown = [piece.form(number) for piece, number in zip(pieces, chosen, strict=True)]
        lost = [piece.lost for piece, number in zip(pieces, chosen, strict=True) if number and piece.lost]
        note = [_SHORTENED.format("; ".join(lost))] if lost else []
        return separator.join([*filter(None, shown), *note])

    given: list[int] = []
    for _, at in steps:
        if tokens_of(text()) <= room:
            break
        chosen[at] += 1
        given.append(at)
    for at in reversed(given):
        # A long piece that gave way may leave room for a shorter one of less worth.
        if chosen[at] == 0:
            continue
        chosen[at] -= 1
        if tokens_of(text()) > room:
            chosen[at] += 1
    return text()
