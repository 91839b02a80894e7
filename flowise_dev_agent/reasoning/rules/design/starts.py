"""How a flow of steps begins, as the text says it: with a message, a form, a schedule or a call from outside."""

import re
from dataclasses import dataclass, field
from typing import Any

from flowise_dev_agent.reasoning.rules.design.comparing import choices
from flowise_dev_agent.reasoning.rules.design.details import Field, in_ascii, listed
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, patterns
from flowise_dev_agent.reasoning.rules.language.text import capital, masked, signals


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
        return "\n".join(f"{_title(one)}: {{{{ $form.{name} }}}}" for name, one in self.fields.items())


def start_of(text: str, answer: str, title: str, world: World) -> Start:
    form = pattern("steps", "form").search(text)
    if form and (fields := listed(form["fields"])):
        params = {"startInputType": "formInput", "formTitle": title, "formDescription": title,
                  "formInputTypes": [*map(_row, fields)]}  # fmt: skip
        return Start(masked(text, *form.span()), params, {one.name: one for one in fields}, form[0])
    if called := pattern("steps", "webhook").search(text):
        params = {"startInputType": "webhookTrigger", "webhookMethod": "POST", "webhookInputMode": "payload"}
        return Start(masked(text, *called.span()), params, said=called[0])
    place = next((match for match, kind in signals(text) if kind == "schedule"), None)
    clock = pattern("steps", "clock").match(text, place.start()) if place else None
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
    question = "" if zone else world.say("question_zone", clause=said.strip())
    hidden = re.compile(rf"\(?{re.escape(zone or said)}\)?|{pattern('steps', 'by_itself').pattern}")
    return Start(
        hidden.sub(lambda one: "\x00" * len(one[0]), masked(text, *clock.span())), params, said=said, question=question
    )


def _row(one: Field) -> dict[str, Any]:
    """A field of a form: a list in brackets is what people choose from."""
    options = choices(one)
    row = {"type": "options" if options else one.kind, "label": _title(one), "name": one.name}
    return row | ({"addOptions": [{"option": option} for option in options]} if options else {})


def _title(one: Field) -> str:
    explained = choices(one) or one.kind == "boolean"
    return capital(re.sub(r"\s?\([^()]*\)|\s?:\s.*|\s\w+/\w+$", "", one.description) if explained else one.description)


def _zone(said: str, answer: str, world: World) -> str:
    """The time zone that is named, in an answer by its city, too; empty for none."""
    zones = next(one.options for one in world.schema("startAgentflow").params if one.name == "scheduleTimezone")
    named = [zone for zone in zones if zone in said or zone in answer]
    cities = [one for one in zones if one.rpartition("/")[2].replace("_", " ").lower() in in_ascii(answer).lower()]
    return max(named, key=len, default="") or next(iter(cities), "")
