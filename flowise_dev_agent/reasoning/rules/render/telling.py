"""How a design is told: purposes, steps, criteria, questions to test with, placeholders."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from flowise_dev_agent.contracts.plan import Criterion, Design, PlannedNode, PlannedValue, TestCase
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.reasoning.rules.design.values import Said, topic_of
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import constants
from flowise_dev_agent.reasoning.rules.language.text import squeeze
from flowise_dev_agent.sanitize import shortened

#: Type or category -> the phrase for what it is there for.
_PURPOSES: Final = constants("purposes")
_SEARCHES: Final = frozenset({"serpAPI", "serper", "braveSearchAPI", "googleCustomSearch", "exaSearch", "searXNG"})
_MOST_QUESTIONS, _LONGEST_VALUE, _LONGEST_QUOTE = 6, 300, 160


def short(text: str) -> str:
    return shortened(squeeze(text.replace("\x00", " ")), _LONGEST_VALUE)


def planned(
    nodes: Mapping[str, NodeSchema], world: World, *, existing: Collection[str] = (),
    labels: Mapping[str, str] | None = None,
) -> list[PlannedNode]:  # fmt: skip
    """The nodes as the plan lists them."""
    kinds = {id_: _PURPOSES.get(one.category, "step" if one.is_agentflow else "other") for id_, one in nodes.items()}
    return [
        PlannedNode(node_id=id_, node_name=one.name, existing=id_ in existing, label=(labels or {}).get(id_, ""),
                    purpose=world.say(f"purpose_{_PURPOSES.get(one.name) or kinds[id_]}", label=one.label))
        for id_, one in nodes.items()
    ]  # fmt: skip


def told(design: Design, nodes: Mapping[str, NodeSchema], said: Said, world: World) -> Design:
    """The design with its steps, tests, criteria and placeholders. `nodes` are all that it is about."""
    labels = [node.label or nodes[node.node_id].label for node in design.nodes if not node.existing]
    tests = [TestCase(id=f"t{n}", turns=turns) for n, turns in enumerate(_questions(said, nodes, world), start=1)]
    ids, found = [test.id for test in tests], enumerate(_criteria(said, nodes, world), start=1)
    criteria = [Criterion(id=f"c{n}", text=text, tests=ids) for n, text in found]
    more = {"tests": tests, "criteria": criteria, "placeholders": placeholders(design.values)}
    return design.model_copy(update={**more, "steps": [*design.steps, *steps(labels, design, world)]})


def steps(added: Sequence[str], design: Design, world: World) -> list[str]:
    """What will be done besides the values, which are shown as they are: nodes by their titles, credentials."""
    found = [world.say("step_add", nodes=", ".join(added))] if added else []
    found += [world.say("step_window", where=f"{one.node_id}.k", number=one.value) for one in design.values
              if one.param == "k" and "Memory" in one.node_id]  # fmt: skip
    return found + [world.say("step_credential", type=name) for name in design.credential_requirements]


def _questions(said: Said, nodes: Mapping[str, NodeSchema], world: World) -> list[list[str]]:
    """What to ask the flow, turn by turn: what the person named, each once."""
    reading, names = said.reading, {schema.name for schema in nodes.values()}
    if "llmChain" in names:
        return [[world.say("test_task")]]
    found = [[world.say("test_documents", topic=topic)] for topic in _topics(said, world)]
    found += [[world.say(f"test_{name}")] for name in ("calculator", "currentDateTime") if name in names]
    found += [[world.say("test_search")]] if names & _SEARCHES else []
    prompt = shortened(squeeze(said.prompt or reading.system_text or ""), _LONGEST_QUOTE)
    found += [[world.say("test_about", quote=prompt)]] if prompt else []
    found += [[world.say("test_name"), world.say("test_name_again")]] if reading.memory else []
    if reading.denied_words:
        # A flow that refuses everything would refuse the word, too.
        found = [*(found or [[world.say("test_hello")]]), [world.say("test_refused", word=reading.denied_words[0])]]
    return found[:_MOST_QUESTIONS] or [[world.say("test_hello")]]


def _topics(said: Said, world: World) -> list[str]:
    topics: Sequence[str | None] = (said.reading.topics or (None,)) if said.reading.knowledge else ()
    return [topic_of(Said(said.reading, topic=topic), world.language) for topic in topics]


def _criteria(said: Said, nodes: Mapping[str, NodeSchema], world: World) -> list[str]:
    reading = said.reading
    found, prompt = [world.say("criterion_answer")], said.prompt or reading.system_text
    found += [world.say("criterion_behaviour", behaviour=short(prompt))] if prompt else []
    found += [world.say("criterion_documents", topic=topic) for topic in _topics(said, world)]
    tools = [schema for schema in nodes.values() if schema.category == "Tools" and schema.name != "retrieverTool"]
    found += [world.say("criterion_tool", label=label) for label in dict.fromkeys(one.label for one in tools)]
    fields, refused = ", ".join(field.name for field in reading.fields), ", ".join(reading.denied_words)
    found += [world.say("criterion_json", fields=fields)] if reading.structured and fields else []
    return found + ([world.say("criterion_refuse", words=refused)] if refused else [])


def placeholders(values: Sequence[PlannedValue]) -> list[str]:
    """What stands in for what is still to come: marked texts, and fields (`node.field`) to be filled in."""
    missing = [one for one in values if stands_in(one.value)]
    places = ("" if one.param == "text" else f"{one.node_id}.{one.param}: " for one in missing)
    return list(dict.fromkeys(f"{place}{one.value}" for place, one in zip(places, missing, strict=True)))
