"""Models and their settings that sentences beside the steps name, each for the step that it speaks of."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, leaves
from flowise_dev_agent.reasoning.rules.design.kinds import found, kind_of
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.language.lexicon import (
    FUNCTIONS,
    NUMBER,
    NUMBER_WORDS,
    constants,
    pattern,
    wordset,
)
from flowise_dev_agent.reasoning.rules.language.text import quoted, to_number

_SETTINGS = {"model", "temperature", "max_tokens", "memory", "memory_window"}
_CHEAP, _SORTER = pattern("steps", "cheap"), pattern("steps", "sorter")
_WORD, _NUMBER = re.compile(r"[^\W\d_][\w-]*"), re.compile(NUMBER, re.IGNORECASE)
#: Words that name no step.
_KNOWN = FUNCTIONS | frozenset(NUMBER_WORDS) | wordset("preferring") | wordset("everyday")
#: Chat model node -> the words for its small model.
_SMALL: Mapping[str, str] = constants("small")


@dataclass(frozen=True, eq=False)
class Setting:
    """What a stretch names. `about` are its words that name a step, none for all of them."""

    said: str
    reading: Reading
    about: tuple[str, ...]
    cheap: bool = False

    @property
    def of_sorter(self) -> bool:
        return any(_SORTER.search(word) for word in self.about)

    def small(self, chat: str) -> Reading:
        """With the small model of a provider where a cheap one will do."""
        found = read(_SMALL[chat]) if self.cheap and chat in _SMALL else self.reading
        return replace(found, numbers={**found.numbers, **self.reading.numbers})


def take_settings(text: str, store: NodeStore) -> tuple[str, list[Setting]]:
    """The text with NULs for the sentences that both readers take for settings, and what they set."""
    said, taken = [*clauses(text, change=False)], list[Setting]()
    for one in (whole for whole in said if whole.whole):
        inside = [other for other in leaves(said) if one.start <= other.start and other.end <= one.end]
        own = [*_settings([other.said for other in inside], store)]
        # Each of its clauses names a setting, in the words of both readers or of one of them.
        read_ = {setting.said for setting in own}
        asks = [{*other.asks()} for other in inside]
        all_ = all(other.said in read_ or names or other.sense.part > other.sense.told
                   for other, names in zip(inside, asks, strict=True))  # fmt: skip
        named = {*one.asks()}.union(*asks)
        agreed = named & _SETTINGS or (one.sense.part > one.sense.told and all(setting.cheap for setting in own))
        other = quoted(one.said) or any(map(_does, [one.said, *(each.said for each in inside)]))
        if own and all_ and agreed and named <= _SETTINGS | {"kind"} and not other:
            taken += own
            text = text[: one.start] + "\x00" * (one.end - one.start) + text[one.end :]
    return text, taken


def _does(said: str) -> bool:
    """Whether a stretch is a step, and does not only say who does one."""
    kind = kind_of(said)
    return bool(kind) and (kind != "who" or found("does", said) is not None)


def _settings(stretches: Sequence[str], store: NodeStore) -> Iterator[Setting]:
    former, of = Reading("", ""), ()
    for said in stretches:
        own, cheap, number = read(said, store), _CHEAP.search(said), _NUMBER.search(said)
        spans = [span for span in own.spans if span.names or span.params]
        rest = "".join(
            " " if any(span.start <= at < span.end for span in spans) else sign for at, sign in enumerate(said)
        )
        about = tuple(
            one for one in _WORD.findall(_CHEAP.sub(" ", rest)) if not (is_empty(one) or one.casefold() in _KNOWN)
        )
        # "The writer with gpt-4o and temperature 0.9": of whom it is, was said before.
        of = about = about or of
        if not (own.provider or own.model or own.numbers) and number and "temperature" in former.numbers:
            # "The writer at temperature 0.8, the critic 0."
            own = replace(own, numbers={"temperature": to_number(number[0])})
        if own.provider or own.model or own.numbers or cheap:
            yield Setting(said, own, about, bool(cheap))
        former = own
