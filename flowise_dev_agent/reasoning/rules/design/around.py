"""What a text says around its steps: how the flow begins (with a message, a form or a schedule), and which models and
settings the steps have."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from flowise_dev_agent.reasoning.rules.design.clauses import clauses, leaves
from flowise_dev_agent.reasoning.rules.design.details import Field, in_ascii, listed
from flowise_dev_agent.reasoning.rules.design.kinds import bare, found, kind_of
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language import lexicon
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, pattern, patterns, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import capital, masked, quoted, signals, squeeze

_LEAD, _SETTINGS = pattern("steps", "lead"), {"model", "temperature", "max_tokens", "memory", "memory_window"}
_WORD = re.compile(r"[^\W\d_][\w-]*")
_KNOWN = FUNCTIONS | frozenset(lexicon.NUMBER_WORDS) | wordset("preferring") | wordset("everyday")


@dataclass(frozen=True)
class Start:
    """`text`: with NULs for what was read; `params`: of the start node; `fields`: of a form, by their names."""

    text: str
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    fields: dict[str, Field] = field(default_factory=dict[str, Field])
    #: The person's words for it.
    said: str = ""
    #: In which time zone a schedule is, where nothing tells it.
    question: str = ""

    @property
    def given(self) -> str:
        """The fields of the form as a text."""
        return "\n".join(f"{capital(one.description)}: {{{{ $form.{name} }}}}" for name, one in self.fields.items())


def start_of(text: str, answer: str, title: str, world: World) -> Start:
    form = found("form", text) or (found("a_flow", text) and found("filled_in", text))
    if form and not found("who", form[0]) and (fields := _fields(form)):
        rows = [{"type": one.kind, "label": capital(squeeze(one.description)), "name": one.name} for one in fields]
        rows = [{**row, "type": "options", "addOptions": options} if (options := _choice(one)) else row
                for row, one in zip(rows, fields, strict=True)]  # fmt: skip
        params = {"startInputType": "formInput", "formTitle": title, "formDescription": title, "formInputTypes": rows}
        return Start(masked(text, *form.span()), params, {one.name: one for one in fields}, form[0])
    places = [one.start() for one, kind in signals(text) if kind == "schedule"]
    places += [one.start for one in leaves([*clauses(text, change=False)]) if "schedule" in one.asks()]
    places += [one.start() for one in pattern("steps", "recurs").finditer(text)]
    clock = next(filter(None, (pattern("steps", "clock").match(text, place) for place in places)), None)
    if clock is None or int(clock["hour"]) > 23 or int(clock["minute"] or 0) > 59:
        return Start(text)
    said, half, hour = clock.group(), clock["half"], int(clock["hour"])
    hour = hour % 12 + 12 * (half in "pP") if half else hour
    days = [str(number) for number, day in enumerate(patterns("days", "names"), 1) if day.search(said)]
    weekly = "1,2,3,4,5" if pattern("steps", "workday").search(said) else ",".join(days)
    if not (weekly or pattern("steps", "every_day").search(said)):
        return Start(text)
    params = {"startInputType": "scheduleInput", "scheduleType": "visualPicker",
              "scheduleFrequency": "weekly" if weekly else "daily",
              **({"scheduleOnDayOfWeek": weekly} if weekly else {}),
              "scheduleOnTime": f"{hour:02}:{int(clock['minute'] or 0):02}",
              "scheduleTimezone": (zone := _zone(text, answer or clock["place"] or "", world)),
              "scheduleInputMode": "text", "scheduleDefaultInput": title}  # fmt: skip
    named = re.compile(rf"(?<![=\w])\(?{re.escape(zone or said)}\)?")
    rest = named.sub(lambda one: "\x00" * len(one[0]), masked(text, *clock.span()))
    return Start(rest, params, {}, said, "" if zone else world.say("question_zone", clause=said.strip()))


def _fields(form: re.Match[str]) -> list[Field]:
    """The fields of a form, each in the words for it; none where one of them has no name."""
    put, parts = found("put_in", form[0]), pattern("steps", "field_ends").split(form["fields"])
    said = [one for one in map(bare, [*([put["what"]] if put else []), *parts]) if one]
    # What is asked in many words is named by the last of them, and a number of things by the thing.
    # "Date" alone is one, though "data" of JSON is none.
    made = [
        (*listed(f"aa, bb, {one}")[2:], *listed(" ".join(re.sub(r"^\d+\s", "", one).split()[-5:])))[:1] for one in said
    ]
    fields = [replace(field, description=one, kind="string" if found("identifies", one) else field.kind)
              for one, fields in zip(said, made, strict=True) for field in fields]  # fmt: skip
    return fields if all(made) else []


def _choice(field: Field) -> list[dict[str, str]]:
    """What is to be chosen for a field: "kind (oak, ash or other)"."""
    choice = found("choice", field.description) if field.kind == "string" else None
    options = pattern("steps", "listed").split(choice["options"].replace("/", ", ")) if choice else []
    return [{"option": bare(one)} for one in options]


def _zone(said: str, answer: str, world: World) -> str:
    """The time zone that is named, in an answer by its city, too; empty for none."""
    zones = next(one.options for one in world.schema("startAgentflow").params if one.name == "scheduleTimezone")
    cities = {one: one.rpartition("/")[2].replace("_", " ").lower() for one in zones}
    named = [one for one in zones if one in said or one in answer]
    return max(named or [one for one in zones if cities[one] in in_ascii(answer).lower()], key=len, default="")


class Setting(NamedTuple):
    """What a clause names. `about` are its words that name a step, none for all of them."""

    said: str
    reading: Reading
    about: tuple[str, ...]


def take_settings(text: str, world: World) -> tuple[str, list[Setting]]:
    """The text with NULs for the clauses that only name a model or its settings, and what they set."""
    said, taken = [*clauses(text, change=False)], list[Setting]()
    for whole in (one for one in said if one.whole):
        inside = [one for one in leaves(said) if whole.start <= one.start and one.end <= whole.end]
        if not {*whole.asks()}.union(*(one.asks() for one in inside)) & _SETTINGS:
            continue
        about: list[str] = []
        for one in inside:
            own, rest = read(one.said, world.store), one.said
            for span in (span for span in own.spans if span.names or span.params):
                rest = masked(rest, span.start, span.end)
            # "The writer with gpt-4o and temperature 0.9": of whom it is, was said before; "the rest" is all others.
            others = any(found("rest", word) for word in _WORD.findall(rest))
            about = [word for word in _WORD.findall(rest) if not _is_known(word)] or ([] if others else about)
            named = own.provider or own.model or own.numbers
            sets = {*one.asks()[:1]} <= _SETTINGS | {"kind"} and (named or one.sense.part > one.sense.told)
            parts = [one.said, rest.replace("\x00", " ").strip(), *one.said.split(": ")[1:]]
            does = any(kind_of(bare(_LEAD.sub("", said))) for said in parts)
            # Beside one that is named, "something cheap" is the one that a flow has anyway.
            cheap = not named and one is not inside[0] and wordset("cheap") & {*one.said.casefold().split()}
            if (cheap or (sets and (named or one.asks()[:1] == ["model"]))) and not (quoted(one.said) or does):
                taken += [Setting(one.said, own, tuple(about))] if named else []
                text = masked(text, one.start, one.end)
    return text, taken


def _is_known(word: str) -> bool:
    """Whether a word names no step."""
    known = is_empty(word) or word.casefold() in _KNOWN or words("all_of_them").fullmatch(word)
    return bool(known or any(found(name, word) for name in ("rest", "a_flow")))
