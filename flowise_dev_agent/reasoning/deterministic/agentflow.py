"""Flows of type AGENTFLOW: steps that run one after the other, branches by what is asked, a person's approval."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, NodeSchema
from flowise_dev_agent.reasoning.deterministic import vocabulary as words
from flowise_dev_agent.reasoning.deterministic.conditions import Conditions, compares_numbers, read_conditions
from flowise_dev_agent.reasoning.deterministic.parameters import instruction, parameters, without_braces
from flowise_dev_agent.reasoning.deterministic.providers import default_provider
from flowise_dev_agent.reasoning.deterministic.reading import Reading, read
from flowise_dev_agent.reasoning.deterministic.text import mentioned, quoted, squeeze
from flowise_dev_agent.reasoning.deterministic.toolbox import LackingError, tool_row
from flowise_dev_agent.reasoning.phrases import say

_LLM, _AGENT, _ROUTER = "llmAgentflow", "agentAgentflow", "conditionAgentAgentflow"
_CONDITION = "conditionAgentflow"
_START, _HUMAN, _REPLY, _LOOP = "startAgentflow", "humanInputAgentflow", "directReplyAgentflow", "loopAgentflow"
#: Fields of the nodes that talk to a model begin with these.
PREFIXES: Mapping[str, str] = {_LLM: "llm", _AGENT: "agent", _ROUTER: "conditionAgent"}
_ROLE = re.compile(
    r"\b(?:an?|one|the|eine?n?|un[ae]?|uma?)\s+(?P<role>(?:[\w-]+\s){0,2}?(?:[\w-]+(?:er|or|ist|ant|eur|euse|erin|ora?|ista)"
    r"|[\w-]+ (?:agent|worker|llm)))\s+(?:agent\s+)?(?:who|that|which|to|der|die|que|qui)\s+(?P<does>[^.;\n]+?)"
    r"(?=,?\s+(?:and|und|y|et|e|then)\s+(?:then\s+)?(?:an?|one|the|eine?n?|un[ae]?|uma?)\s|,\s+(?:an?|eine?|un[ae]?)\s|[.;\n]|$)",
    re.IGNORECASE,
)
_NAMED_AGENT = re.compile(
    r"\b(?P<name>(?!(?:one|another|other|an?|the|ai|multi|each|right|single|tool)\b)[\w-]+)\s+agents?\b", re.IGNORECASE
)
_MODEL_NODE = re.compile(r"\bllms?\b", re.IGNORECASE)
#: A fixed answer, when the words to say stand in quotes.
_SAYS = re.compile(
    r"(?<!\w)(?:repl(?:y|ies)|responds?|answers?|says?|antwort\w*|sag\w*|respond\w*|responde\w*|contesta\w*|di(?:ga|z|ce)"
    r"|répon\w*|dit|dis)(?!\w)",
    re.IGNORECASE,
)
_LONGEST_LABEL = 40


@dataclass(frozen=True)
class Design:
    """The whole flow as ops without credentials; or the sentence that declines."""

    nodes: tuple[AddNode, ...] = ()
    links: tuple[Connect, ...] = ()
    declined: str | None = None


@dataclass(frozen=True)
class _Step:
    """One call of a model: what it is told, and what it may use."""

    label: str
    task: str
    tools: tuple[tuple[str, ...], ...] = ()
    agent: bool = False


def design(reading: Reading, store: NodeStore, available: Mapping[str, int], language: str) -> Design:
    """The nodes and connections of a new agentflow. The same reading gives the same ids."""
    if reading.knowledge:
        return Design(declined=say("declined_agentflow_documents", language))
    builder = _Builder(reading, store, available, language)
    if mentioned(reading.text, words.LOOPS) and not mentioned(reading.text, words.APPROVAL):
        return Design(declined=say("declined_agentflow_loop", language))
    conditions = read_conditions(reading.text)
    clauses = [*(case.then for case in conditions.cases), conditions.otherwise or ""]
    if compares_numbers(reading.text) or (conditions.cases and any(mentioned(one, words.HUMAN) for one in clauses)):
        return Design(declined=say("declined_agentflow_condition", language))
    branches = _branches(reading, language)
    try:
        if conditions.cases:
            builder.choose(conditions)
        elif branches:
            builder.route(branches)
        else:
            steps = _roles(reading, language) or _stages(reading, language) or (_single(reading, language),)
            if len(steps) == 1 and mentioned(reading.text, words.TEAM):
                return Design(declined=say("declined_team", language))
            for step in steps:
                builder.step(step)
            if mentioned(reading.text, words.APPROVAL):
                builder.approval()
    except LackingError as lacking:
        return Design(declined=str(lacking))
    return Design(tuple(builder.nodes), tuple(builder.links))


class _Builder:
    def __init__(self, reading: Reading, store: NodeStore, available: Mapping[str, int], language: str) -> None:
        self.nodes = [AddNode(node_name=_START, node_id=f"{_START}_0")]
        self.links: list[Connect] = []
        self._reading, self._store, self._language = reading, store, language
        self._available = available
        self._provider = reading.provider or default_provider(store.schemas, available, with_embeddings=False)
        self._last = self.nodes[0].node_id

    def step(self, step: _Step) -> str:
        """Add a step behind the last one."""
        before = self._last
        self._last = self._model_node(step, before if before != f"{_START}_0" else None)
        self.links.append(Connect(source_node_id=before, target_node_id=self._last))
        return self._last

    def route(self, branches: Sequence[_Step]) -> None:
        """A node that looks at the question, and a branch for each kind of it."""
        scenarios = [{"scenario": branch.label} for branch in branches]
        router = self._add(
            _ROUTER,
            {
                **self._model(_ROUTER),
                "conditionAgentInstructions": say("route", self._language),
                "conditionAgentScenarios": scenarios,
            },
        )
        self.links.append(Connect(source_node_id=self._last, target_node_id=router))
        for number, branch in enumerate(branches):
            node = self._model_node(branch, None)
            self.links.append(Connect(source_node_id=router, source_anchor=str(number), target_node_id=node))

    def choose(self, conditions: Conditions) -> None:
        """A node that holds the message against the conditions, a branch for each, and one for all other messages."""
        rows = [
            {"type": "string", "value1": "{{ question }}", "operation": case.operation, "value2": case.value}
            for case in conditions.cases
        ]
        chooser = self._add(_CONDITION, {"conditions": rows})
        self.links.append(Connect(source_node_id=self._last, target_node_id=chooser))
        for number, clause in enumerate([*(case.then for case in conditions.cases), conditions.otherwise]):
            anchor = str(number)
            self.links.append(
                Connect(source_node_id=chooser, source_anchor=anchor, target_node_id=self._branch(clause))
            )

    def _branch(self, clause: str | None) -> str:
        """The node that does what a clause says; without one it answers as well as it can."""
        if clause is None:
            return self._model_node(_Step(_label(""), say("plain", self._language)), None)
        if (words_of := quoted(clause)) and _SAYS.search(clause):
            return self._add(_REPLY, {"directReplyMessage": without_braces(words_of[0])})
        own = read(clause)
        agent = own.agent and not _MODEL_NODE.search(clause)
        task = say("task_of_role", self._language, task=without_braces(clause))
        return self._model_node(_Step(_label(clause), task, own.tools, agent), None)

    def approval(self) -> None:
        """A person says yes, or the last step is done again with what they say."""
        draft = next(node for node in self.nodes if node.node_id == self._last)
        text = say("approval", self._language)
        human = self._add(_HUMAN, {"humanInputDescriptionType": "fixed", "humanInputDescription": text})
        reply = self._add(_REPLY, {"directReplyMessage": f"{{{{ {draft.node_id} }}}}"})
        again = self._add(_LOOP, {"loopBackToNode": f"{draft.node_id}-{draft.label}"})
        self.links += [
            Connect(source_node_id=draft.node_id, target_node_id=human),
            Connect(source_node_id=human, source_anchor="proceed", target_node_id=reply),
            Connect(source_node_id=human, source_anchor="reject", target_node_id=again),
        ]

    def _model_node(self, step: _Step, before: str | None) -> str:
        name = _AGENT if step.agent or step.tools else _LLM
        prefix = PREFIXES[name]
        messages = [{"role": "system", "content": step.task}]
        if before:
            messages.append({"role": "user", "content": f"{{{{ {before} }}}}"})
        values = {**self._model(name), f"{prefix}Messages": messages, **self._memory(prefix)}
        tools = [tool_row(names, self._store, self._available, self._reading, self._language) for names in step.tools]
        if tools:
            values["agentTools"] = tools
        reading = self._reading
        if name == _LLM and reading.structured and reading.fields:
            values["llmStructuredOutput"] = [
                {
                    "key": field.name,
                    "type": field.kind,
                    "enumValues": "",
                    "jsonSchema": "",
                    "description": field.description,
                }
                for field in reading.fields
            ]
        return self._add(name, values, step.label)

    def _model(self, name: str) -> dict[str, Any]:
        prefix, chat = PREFIXES[name], self._provider.chat
        schema = self._schema(chat)
        config = parameters(schema, self._reading, language=self._language)
        # A config that does not say whose it is gets the defaults of the model.
        return {f"{prefix}Model": chat, f"{prefix}ModelConfig": config}

    def _memory(self, prefix: str) -> dict[str, Any]:
        window = self._reading.quantities.memory_window
        if self._reading.no_memory:
            return {f"{prefix}EnableMemory": False}
        return {f"{prefix}MemoryType": "windowSize", f"{prefix}MemoryWindowSize": window} if window else {}

    def _add(self, name: str, params: dict[str, Any], label: str | None = None) -> str:
        schema = self._schema(name)
        number = sum(node.node_name == name for node in self.nodes)
        taken = {node.label for node in self.nodes}
        label = label or (schema.label if schema.label not in taken else f"{schema.label} {number}")
        node_id = f"{name}_{number}"
        self.nodes.append(AddNode(node_name=name, node_id=node_id, label=label, params=params))
        return node_id

    def _schema(self, name: str) -> NodeSchema:
        schema = self._store.get(name)
        if schema is None:
            raise LackingError(say("declined_missing", self._language, name=name))
        return schema


def _single(reading: Reading, language: str) -> _Step:
    agent = bool(reading.tools) or (reading.agent and not _MODEL_NODE.search(reading.text))
    role = reading.persona.role or reading.persona.prompt
    return _Step(_label(role or ""), instruction(reading, language), reading.tools, agent)


def _roles(reading: Reading, language: str) -> tuple[_Step, ...]:
    """People of a team with what each does, at least two."""
    steps: list[_Step] = []
    for match in _ROLE.finditer(reading.text):
        role, does = squeeze(match.group("role")), squeeze(match.group("does"))
        task = say("role", language, role=f"the {role}" if language == "en" else role)
        task += f" {say('task_of_role', language, task=does)}"
        agent = not _MODEL_NODE.search(role)
        steps.append(_Step(_label(role), without_braces(task), read(match.group()).tools, agent))
    return tuple(steps) if len(steps) >= 2 else ()


def _stages(reading: Reading, language: str) -> tuple[_Step, ...]:
    steps: list[_Step] = []
    for stage in reading.stages:
        own = replace(reading, task=stage)
        agent = not _MODEL_NODE.search(reading.text) and bool(words.AGENT.search(reading.text))
        steps.append(_Step(_label(stage), instruction(own, language), read(stage).tools, agent))
    return tuple(steps)


def _branches(reading: Reading, language: str) -> tuple[_Step, ...]:
    """A step for each kind of question that is told apart, at least two."""
    if not mentioned(reading.text, words.ROUTES):
        return ()
    topics = list(reading.topics)
    if len(topics) < 2:
        topics = list(dict.fromkeys(match.group("name").lower() for match in _NAMED_AGENT.finditer(reading.text)))
    if len(topics) < 2:
        return ()
    agent = not _MODEL_NODE.search(reading.text)
    return tuple(
        _Step(_label(topic), say("expert_in", language, topic=topic), reading.tools, agent) for topic in topics
    )


def _label(text: str) -> str:
    chosen = text.split()[:5]
    while len(chosen) > 1 and chosen[-1].lower() in words.LOOSE_ENDS:
        chosen.pop()
    label = " ".join(chosen)[:_LONGEST_LABEL].strip(" ,.;:")
    return f"{label[:1].upper()}{label[1:]}" or "Answer"
