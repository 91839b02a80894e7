"""Tools of the agents inside an agentflow: rows of a list that hold the name of a tool and its values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flowise_dev_agent.contracts.plan import PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.contracts import AgentTools
from flowise_dev_agent.reasoning.credential_requirements import credential_type
from flowise_dev_agent.reasoning.rules.design.details import named_components
from flowise_dev_agent.reasoning.rules.design.naming import is_named
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.selection import check_filled
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters
from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, table, words
from flowise_dev_agent.reasoning.rules.language.text import is_negated, mentioned, mentions

_SELECTED = "agentSelectedTool"
_CATEGORIES = frozenset({"Tools", "Tools (MCP)"})


def is_tool(schema: NodeSchema | None) -> bool:
    """Whether an agent of an agentflow may use it."""
    return schema is not None and schema.category in _CATEGORIES


def tool_row(names: Sequence[str], reading: Reading, world: World) -> dict[str, Any]:
    """The row of the first of these tools whose credential is at hand, else of the first. Raises DeclinedError."""
    usable = [schema for name in names if (schema := world.store.get(name))] or [world.schema(names[0])]
    schema = next((schema for schema in usable if world.at_hand(schema)), usable[0])
    check_filled([schema], reading, world)
    config = parameters(schema, Said(reading), language=world.language)
    return {_SELECTED: schema.name, f"{_SELECTED}Config": config}


def unwanted(text: str, world: World) -> frozenset[str]:
    """Names of the node types that a wish takes back ("without the calculator", "replace SerpAPI by")."""
    going = [text[match.end() : _end_of_removed(text, match.end())] for match in mentions(text, words("remove"))]

    def removed(looked_for: re.Pattern[str]) -> bool:
        return any(looked_for.search(stretch) for stretch in going)

    def out(looked_for: re.Pattern[str]) -> bool:
        said = any(is_negated(text, *match.span()) for match in looked_for.finditer(text))
        return removed(looked_for) or (said and not mentioned(text, looked_for))

    found = {name for looked_for, names in table("tools") if out(looked_for) for name in names}
    for name, category in (("memory", "Memory"), ("split", "Text Splitters")):
        if out(words(name)):
            found |= {schema.name for schema in world.store.schemas.values() if schema.category == category}
    # One that is named is wanted where only its kind is taken out ("replace the web search by Brave").
    for looked_for, names in table("tools"):
        if len(names) == 1 and mentioned(text, looked_for) and not removed(looked_for):
            found.difference_update(names)
    return frozenset(found | {item.name for stretch in going for item in named_components(stretch, world.store)})


def _end_of_removed(text: str, start: int) -> int:
    return start + len(pattern("selection", "after_removed").split(text[start : start + 60])[0])


def changed_tools(
    agents: Sequence[AgentTools], text: str, change: Reading, world: World
) -> tuple[list[PlannedValue], list[str], list[str]] | None:
    """(the new lists of tools, what is done in words, credential types of new ones); None when the text says nothing
    about tools. Raises DeclinedError."""
    dropped = {name for name in unwanted(text, world) if is_tool(world.store.get(name))}
    wanted = [names for names in change.tools if not dropped & set(names)]
    named = [name for name in change.requested if name not in dropped and is_tool(world.store.get(name))]
    wanted += [(name,) for name in named if not any(name in names for names in wanted)]
    if not dropped and not wanted:
        return None
    if not agents:
        raise world.decline("declined_no_agent_inside")
    having = [agent for agent in agents if dropped & set(_names(agent))]
    losers = [agent for agent in _meant(agents, text) if agent in having] or having
    if dropped and not losers:
        raise world.decline("declined_tool_absent", tools=_labels(sorted(dropped), world))
    if dropped and losers == having:
        _check_all_meant(losers, text, world)
    winners = losers or _meant(agents, text) or _check_all_meant(agents, text, world)
    values: list[PlannedValue] = []
    steps: list[str] = []
    needed: list[str] = []
    for agent in agents:
        rows = [row for row in agent.rows if agent not in losers or row.get(_SELECTED) not in dropped]
        for names in wanted if agent in winners else ():
            row = tool_row(names, change, world)
            if row[_SELECTED] not in [one.get(_SELECTED) for one in rows]:
                rows.append(row)
                kind = credential_type(world.schema(row[_SELECTED]), world.available)
                needed += [kind] if kind else []
        if rows != list(agent.rows):
            values.append(PlannedValue(node_id=agent.node_id, param=agent.field, value=[dict(row) for row in rows]))
            after = _names(replace(agent, rows=tuple(rows)))
            lost, new = ([n for n in _names(agent) if n not in after], [n for n in after if n not in _names(agent)])
            for key, names in (("step_tool_remove", lost), ("step_tool_add", new)):
                if names:
                    steps.append(world.say(key, tools=_labels(names, world), agent=agent.label, node=agent.node_id))
    return values, steps, needed


def _meant(agents: Sequence[AgentTools], text: str) -> list[AgentTools]:
    """The agents that the text names. "Agent" alone is what people call any of them."""
    names = {agent.node_id: {agent.node_id, agent.label} - {"Agent", "agent"} for agent in agents}
    return [agent for agent in agents if any(is_named(name, text) for name in names[agent.node_id])]


def _check_all_meant(agents: Sequence[AgentTools], text: str, world: World) -> Sequence[AgentTools]:
    """Of several agents it must be said that all are meant. Raises DeclinedError."""
    if len(agents) > 1 and not mentioned(text, words("all_agents")):
        nodes = ", ".join(f"{agent.label} ({agent.node_id})" for agent in agents)
        raise world.decline("declined_which", nodes=nodes)
    return agents


def _names(agent: AgentTools) -> list[str]:
    return [str(row.get(_SELECTED)) for row in agent.rows]


def _labels(names: Sequence[str], world: World) -> str:
    return ", ".join(schema.label if (schema := world.store.get(name)) else name for name in names)


def with_planned(agents: Sequence[AgentTools], planned: Sequence[PlannedValue]) -> list[AgentTools]:
    """The agents with the tools that a plan before gives them."""
    given: Mapping[tuple[str, str], Any] = {(v.node_id, v.param): v.value for v in planned}
    lists = {agent.node_id: given.get((agent.node_id, agent.field)) for agent in agents}
    return [replace(agent, rows=tuple(rows)) if isinstance(rows := lists[agent.node_id], list) else agent
            for agent in agents]  # fmt: skip
