"""Models and their settings that sentences beside the steps name, each for the step that it speaks of."""

import re
from collections.abc import Mapping
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
from flowise_dev_agent.reasoning.rules.language.text import masked, quoted, to_number

_SETTINGS = {"model", "temperature", "max_tokens", "memory", "memory_window"}
_LEAD, _REST = pattern("steps", "lead"), pattern("steps", "rest")
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
    """The text with NULs for the clauses that only name a model or its settings, and what they set."""
    said, taken = [*clauses(text, change=False)], list[Setting]()
    for whole in (one for one in said if one.whole):
        inside = [one for one in leaves(said) if whole.start <= one.start and one.end <= whole.end]
        named = {*whole.asks()}.union(*(one.asks() for one in inside)) & _SETTINGS
        former = Setting("", Reading("", ""), ())
        for one in inside:
            setting, does = _setting(one.said, former, store), _LEAD.sub("", one.said)
            spoken, former = named or (setting and setting.of_sorter), setting or former
            sets = {*one.asks()[:1]} <= _SETTINGS | {"kind"} and (setting or one.sense.part > one.sense.told)
            if spoken and sets and not quoted(one.said) and not (kind_of(does) and found("does", does)):
                taken += [setting] if setting else []
                text = masked(text, one.start, one.end)
    return text, taken


def _setting(said: str, former: Setting, store: NodeStore) -> Setting | None:
    own, cheap, number = read(said, store), bool(_CHEAP.search(said)), _NUMBER.search(said)
    rest = said
    for span in (one for one in own.spans if one.names or one.params):
        rest = masked(rest, span.start, span.end)
    about = tuple(one for one in _WORD.findall(_CHEAP.sub(" ", rest))
                  if not (is_empty(one) or one.casefold() in _KNOWN or _REST.match(one)))  # fmt: skip
    if not (own.provider or own.model or own.numbers) and number and "temperature" in former.reading.numbers:
        # "The writer at temperature 0.8, the critic 0."
        own = replace(own, numbers={"temperature": to_number(number[0])})
    # "The writer with gpt-4o and temperature 0.9": of whom it is, was said before; "the rest" is all others.
    rest = any(map(_REST.match, _WORD.findall(said)))
    made = Setting(said, own, about if about or rest else former.about, cheap)
    return made if own.provider or own.model or own.numbers or cheap else None
