"""Tools of the agents inside an agentflow by rules: rows of a list that hold the name of a tool and its values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import BindCredential, NodeSchema, PatchOp, SetParam
from flowise_dev_agent.reasoning.contracts import AgentTools
from flowise_dev_agent.reasoning.credential_requirements import credential_type
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.filling import open_params
from flowise_dev_agent.reasoning.rules.design.reading import Reading
from flowise_dev_agent.reasoning.rules.design.selection import unwanted
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters
from flowise_dev_agent.reasoning.rules.language import words
from flowise_dev_agent.reasoning.rules.language.text import mentioned

_SELECTED = "agentSelectedTool"
_CATEGORIES = frozenset({"Tools", "Tools (MCP)"})


class LackingError(Exception):
    """The sentence that says to the person what is missing."""


def is_tool(schema: NodeSchema | None) -> bool:
    """Whether an agent of an agentflow may use it."""
    return schema is not None and schema.category in _CATEGORIES


def tool_row(
    names: Sequence[str], store: NodeStore, available: Mapping[str, int], reading: Reading, language: str
) -> dict[str, Any]:
    """The row of the first of these tools whose credential is at hand, else of the first. Raises LackingError."""
    usable = [schema for name in names if (schema := store.get(name))]
    if not usable:
        raise LackingError(say("declined_missing", language, name=names[0]))
    at_hand = [schema for schema in usable if any(available.get(kind) for kind in schema.credential_names)]
    schema = (at_hand or usable)[0]
    config = parameters(schema, Said(reading), language=language)
    if lacking := [param.label for param in open_params(schema, config)]:
        raise LackingError(say("declined_params", language, label=schema.label, params=", ".join(lacking)))
    return {_SELECTED: schema.name, f"{_SELECTED}Config": config}


class Toolbox:
    """The agents of a flow, whose tools are changed wish by wish."""

    def __init__(
        self, agents: Sequence[AgentTools], store: NodeStore, available: Mapping[str, int], language: str
    ) -> None:
        self._agents = agents
        self._store = store
        self._available = available
        self._language = language
        #: Of each agent the rows of the list to be, each with whether it is new.
        self._rows = {agent.node_id: [(row, False) for row in agent.rows] for agent in agents}

    def change(self, text: str, change: Reading, *, done_before: bool = False) -> bool:
        """Do what the text says about tools; False when it says nothing. Raises LackingError.

        With `done_before` the flow may hold the change already, so that a tool is not missed that is gone.
        """
        dropped = {name for name in unwanted(text, self._store) if is_tool(self._store.get(name))}
        wanted = [names for names in change.tools if not dropped & set(names)]
        named = [name for name in change.requested if name not in dropped and is_tool(self._store.get(name))]
        wanted += [(name,) for name in named if not any(name in names for names in wanted)]
        if not dropped and not wanted:
            return False
        if not self._agents:
            raise LackingError(say("declined_no_agent_inside", self._language))
        losers = self._remove(text, dropped, done_before=done_before) if dropped else []
        for names in wanted:
            self._add(losers or self._meant(text), names, change)
        return True

    def ops(self) -> list[PatchOp]:
        """One list of tools for each agent that was changed, and the credentials of the new ones."""
        found: list[PatchOp] = []
        for agent in self._agents:
            rows = self._rows[agent.node_id]
            if [row for row, _ in rows] == list(agent.rows):
                continue
            value: Any = [dict(row) for row, _ in rows]
            found.append(SetParam(node_id=agent.node_id, param_name=agent.field, value=value))
            for index, (row, new) in enumerate(rows):
                needed = credential_type(self._store.schemas[row[_SELECTED]], self._available) if new else None
                if needed:
                    path = f"{agent.field}[{index}].{_SELECTED}Config"
                    found.append(BindCredential(node_id=agent.node_id, credential_type=needed, path=path))
        return found

    def steps(self) -> list[str]:
        """What `ops` does, in words."""
        found: list[str] = []
        for agent in self._agents:
            before, after = [_name(row) for row in agent.rows], self._tools(agent)
            for key, names in (
                ("step_tool_remove", [name for name in before if name not in after]),
                ("step_tool_add", [name for name in after if name not in before]),
            ):
                if names:
                    tools = ", ".join(map(self._label, names))
                    found.append(say(key, self._language, tools=tools, agent=agent.label, node=agent.node_id))
        return found

    def _remove(self, text: str, dropped: set[str], *, done_before: bool) -> list[AgentTools]:
        """The agents that lost a tool: those that the text names, else those that have it."""
        having = [agent for agent in self._agents if dropped & set(self._tools(agent))]
        losers = [agent for agent in self._named(text) if agent in having] or having
        if not losers and not done_before:
            labels = ", ".join(sorted({self._label(name) for name in dropped if name in self._store.schemas}))
            raise LackingError(say("declined_tool_absent", self._language, tools=labels))
        if len(losers) > 1 and losers == having:
            self._check_all_meant(text, losers)
        for agent in losers:
            self._rows[agent.node_id] = [
                (row, new) for row, new in self._rows[agent.node_id] if _name(row) not in dropped
            ]
        return losers

    def _add(self, agents: Sequence[AgentTools], names: Sequence[str], change: Reading) -> None:
        row = tool_row(names, self._store, self._available, change, self._language)
        for agent in agents:
            if row[_SELECTED] not in self._tools(agent):
                self._rows[agent.node_id].append((row, True))

    def _meant(self, text: str) -> list[AgentTools]:
        """The agents that get a tool: those that the text names, else the only one."""
        if named := self._named(text):
            return named
        if len(self._agents) > 1:
            self._check_all_meant(text, self._agents)
        return list(self._agents)

    def _named(self, text: str) -> list[AgentTools]:
        return [
            agent
            for agent in self._agents
            if any(
                re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
                for name in (agent.node_id, agent.label)
                # "Agent" alone is what people call any of them.
                if name and name.casefold() != "agent"
            )
        ]

    def _check_all_meant(self, text: str, agents: Sequence[AgentTools]) -> None:
        if not mentioned(text, words.ALL_AGENTS):
            nodes = ", ".join(f"{agent.label} ({agent.node_id})" for agent in agents)
            raise LackingError(say("declined_which", self._language, nodes=nodes))

    def _tools(self, agent: AgentTools) -> list[str]:
        return [_name(row) for row, _ in self._rows[agent.node_id]]

    def _label(self, name: str) -> str:
        schema = self._store.get(name)
        return schema.label if schema else name


def _name(row: Mapping[str, Any]) -> str:
    return str(row.get(_SELECTED))
