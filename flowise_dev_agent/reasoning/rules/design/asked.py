"""The values that a wish for a change asks for, of nodes and of the models and tools inside of them."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.validate.limits import BOUNDS
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, leaves
from flowise_dev_agent.reasoning.rules.design.owners import all_of, in_named, set_in
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.selection import TOOL, tool_row, unwanted
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import NUMBER, words
from flowise_dev_agent.reasoning.rules.language.text import Span, mentions, to_number
from flowise_dev_agent.reasoning.rules.render import telling

AGENT, _MODELS, _HALF, _NEAR = "agentAgentflow", "Chat Models", 0.5, 8


def one_each(*some: Sequence[PlannedValue]) -> list[PlannedValue]:
    """One value for each field, the last."""
    return list({(one.node_id, one.param): one for values in some for one in values}.values())


def in_range(request: PlanRequest, value: PlannedValue, world: World) -> PlannedValue:
    """The value, with the answer where no field of its name takes it. Raises DeclinedError, a question."""
    number, (low, high) = value.value, BOUNDS.get(value.param.rpartition(".")[2], (None, None))
    if not isinstance(number, int | float) or low is None or low <= number <= (high or math.inf):
        return value
    most, said = "" if high is None else f" – {high:g}", f"{number:g}"
    question = world.say("question_range", where=value.param, value=said, low=f"{low:g}", high=most)
    if (answer := re.search(NUMBER, dict(request.clarifications).get(question, ""))) is None:
        raise DeclinedError(question)
    return value.model_copy(update={"value": to_number(answer[0])})


def own_tools(
    request: PlanRequest, change: Reading, wish: str, world: World
) -> tuple[list[PlannedValue], list[str], list[str]]:
    """(the tools of agents inside an agentflow as they are to be, the types that come, those that go). Raises
    DeclinedError."""
    agents = {id_: schema for id_, schema in world.schemas(request.existing).items() if schema.name == AGENT}
    # "Tavily instead of Brave": what is only not to be used for something stays.
    instead = {name for one in mentions(change.text, words("instead_of")) for span in change.spans
               if change.tools and 0 <= span.start - one.end() <= _NEAR for name in span.names}  # fmt: skip
    dropped, found, come, gone = unwanted(change.text, world) | instead, list[PlannedValue](), list[str](), list[str]()
    for id_ in in_named(request, agents, wish, world):
        rows: Any = request.stored(id_, "agentTools") or []
        there = {row[TOOL] for row in rows}
        new = [tool_row(names, change, world) for names in change.tools if not {*names} & {*dropped, *there}]
        if new or there & dropped:
            kept = [row for row in rows if row[TOOL] not in dropped]
            found.append(PlannedValue(node_id=id_, param="agentTools", value=[*kept, *new]))
        gone, come = [*gone, *(there & dropped)], [*come, *(row[TOOL] for row in new)]
    if len(found) > 1 and not all_of(wish, [one.node_id for one in found]):
        raise world.decline("declined_which", nodes=", ".join(request.labels.get(one.node_id, "") for one in found))
    return found, come, gone


def asked_values(
    request: PlanRequest, change: Reading, stays: Mapping[str, NodeSchema], wish: str, world: World
) -> tuple[list[PlannedValue], list[Span]]:  # fmt: skip
    """The values that are asked for, of nodes and of the models inside of them; another model inside where one of
    another provider is named. And where they are asked for, if nothing says of which model."""
    found, wanted = list[PlannedValue](), world.store.get(change.provider.chat) if change.provider else None
    inside = {place: schema for place, schema in world.schemas(request.inside).items() if schema.category == _MODELS}
    models = [*inside.values(), *([wanted] if wanted else [])]
    own = {"@Chat Models", *(one.name for one in models), *(param.name for one in models for param in one.params)}
    about = [one for one in change.spans if (one.names | one.params) & own]
    placed = set_in(request, inside, wish, about)
    lost = [Span(*one.words, frozenset({"signal"})) for one in leaves([*clauses(wish, change=True)])
            if inside and not placed and one.meets(about) and one.sense.part > _HALF > one.sense.told]  # fmt: skip
    # Of nodes of which there is one of a kind nobody says which.
    kinds = Counter(one.category for one in stays.values())
    several = {id_: one for id_, one in stays.items() if kinds[one.category] > 1}
    named = in_named(request, several, wish, world)
    meant = {place: inside[place] for place in placed}
    meant |= {id_: one for id_, one in stays.items() if id_ in named or id_ not in several}
    for place, current in meant.items():
        node_id, _, path = place.partition(".")
        own = placed.get(place, [])
        mine = _of(change, own, world)
        wanted = world.store.get(mine.provider.chat) if mine.provider else None
        schema = wanted if wanted and any(one.names or "modelName" in one.params for one in own) else current
        other = schema.name != current.name
        values = parameters(schema, Said(mine), language=world.language, asked_only=not other)
        # Of what is asked for elsewhere nothing is set here.
        elsewhere = {name for one in about for name in one.params} - {name for one in own for name in one.params}
        values = {name: value for name, value in values.items() if not (path and name in elsewhere)}
        if other and not mine.model and (there := [id_ for id_, one in inside.items() if one.name == schema.name]):
            # The same as another step has.
            same: Any = request.stored(*there[0].split(".", 1))
            values["modelName"] = same["modelName"]
        if other and isinstance(old := request.stored(node_id, path), dict):
            # What the wish does not speak of stays: numbers and switches that both have.
            plain = [param.name for param in schema.params if param.type in ("number", "boolean")]
            values = {name: old[name] for name in plain if old.get(name) not in (None, "")} | values
        new = {path.removesuffix("Config"): schema.name} if other else {}
        new |= {f"{path}.{name}" if path else name: value for name, value in values.items()}
        # A text that the flow answers from goes on, unless it is to be another one.
        held = "" if words("change").search(wish) else request.stored(node_id, "text")
        found += [PlannedValue(node_id=node_id, param=name, value=value, mode="append" if name == "text" and held
                  and not telling.stands_in(held) else "set") for name, value in new.items()]  # fmt: skip
    return found, lost


def _of(change: Reading, own: Sequence[Span], world: World) -> Reading:
    """The reading with the model and the numbers of the clauses in which these stretches are: "the Sorter on Claude,
    the Writer on gpt-4o-mini"."""
    said = [one.said for one in leaves([*clauses(change.text, change=True)]) if one.meets(own)]
    mine = read("\n".join(said), world.store) if said else change
    model = mine.model or (None if mine.provider else change.model)
    numbers = {**change.numbers, **mine.numbers}
    return replace(change, provider=mine.provider or change.provider, model=model, numbers=numbers)
