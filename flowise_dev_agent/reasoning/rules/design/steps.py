"""Agentflows from a small grammar of sequence and condition. What it cannot parse in full is declined.

A text is a sequence of clauses. Each is one step: answer, sort into named branches, do something on a named branch,
ask a person (always, or on a named branch), call an address, try again at most n times, reply with given words.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flowise_dev_agent.contracts.plan import Design, DesignConnection, Part, PlannedNode, PlannedValue, TestCase
from flowise_dev_agent.patch import AddNode, NodeSchema
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import nested_types
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.conditions import Conditions, compares_numbers, read_conditions
from flowise_dev_agent.reasoning.rules.design.prompt import prompt_of
from flowise_dev_agent.reasoning.rules.design.providers import default_provider
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.sequence import DOES
from flowise_dev_agent.reasoning.rules.design.toolbox import LackingError, tool_row
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters, without_braces
from flowise_dev_agent.reasoning.rules.language import grammar, words
from flowise_dev_agent.reasoning.rules.language.text import mentioned, quoted, squeeze
from flowise_dev_agent.reasoning.rules.render import telling

_LLM, _AGENT, _SORT, _IF = "llmAgentflow", "agentAgentflow", "conditionAgentAgentflow", "conditionAgentflow"
_START, _HUMAN, _REPLY, _LOOP, _HTTP = (
    "startAgentflow",
    "humanInputAgentflow",
    "directReplyAgentflow",
    "loopAgentflow",
    "httpAgentflow",
)
_PREFIXES: Mapping[str, str] = {_LLM: "llm", _AGENT: "agent", _SORT: "conditionAgent"}
_LEAD = grammar.pattern("steps", "lead")
#: Where one clause ends and the next begins.
_NEXT = grammar.pattern("steps", "next")
_SORTS = grammar.pattern("steps", "sorts")
_INTO = grammar.pattern("steps", "into")
_TO_EACH = grammar.pattern("steps", "to_each")
_NO_TOPIC = grammar.pattern("steps", "no_topic")
_KINDS = grammar.pattern("steps", "kinds")
_LISTED = grammar.pattern("steps", "listed")
_ON_BRANCH = grammar.pattern("steps", "on_branch")
_OWN_AGENTS = grammar.pattern("steps", "own_agents")
_ASKS_PERSON = grammar.pattern("steps", "asks_person")
_ALWAYS = grammar.pattern("steps", "always")
_TAIL_TOPIC = grammar.pattern("steps", "tail_topic")
_CALLS = grammar.pattern("steps", "calls")
_METHOD = grammar.pattern("steps", "method")
_AGAIN = grammar.pattern("steps", "again")
_SAYS = grammar.pattern("steps", "says")
_MODEL_NODE = grammar.pattern("steps", "model_node")
_WHO = grammar.pattern("steps", "who")
_OPENING = re.compile(r"^(?:and|und|y|et|e|first|zuerst|primero|d'abord|primeiro)\b[\s,]*", re.IGNORECASE)
_REPLIES = re.compile(
    r"(?:it\s)?(?:repl(?:y|ies)|responds?|sends?\s(?:it|the (?:answer|result)))(?:\s(?:to|with)\s[\w ]{1,30})?",
    re.IGNORECASE,
)
_COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10}
_LONGEST_LABEL = 40
#: Kinds of signals that make a flow one of steps.
_STEPWISE = frozenset({"team", "approval", "branch", "loop"})


class _NotParsedError(Exception):
    """The clause that the grammar does not parse."""


@dataclass
class _Flow:
    """The flow so far. `ends` are the places where the next step goes on: (node id, output)."""

    nodes: list[AddNode] = field(default_factory=list)
    links: list[DesignConnection] = field(default_factory=list)
    ends: list[tuple[str, str]] = field(default_factory=list)
    #: Branch name -> the node that answers on it.
    branches: dict[str, str] = field(default_factory=dict)
    parts: list[tuple[str, list[str]]] = field(default_factory=list)


def is_stepwise(reading: Reading) -> bool:
    """Whether the text speaks of steps that a chatflow does not have."""
    if read_conditions(reading.text).cases or compares_numbers(reading.text):
        return True
    # A node type asked for by name is a part of a chatflow.
    if reading.requested or reading.prompt_text or reading.system_text:
        return any(mentioned(reading.text, pattern) for pattern, kinds in words.SIGNALS if kinds[0] == "team")
    return any(mentioned(reading.text, pattern) for pattern, kinds in words.SIGNALS if kinds[0] in _STEPWISE)


def design_steps(request: PlanRequest, text: str, reading: Reading, language: str) -> Design:
    """The design of a new agentflow, or one that declines with what it does not understand."""
    base = Design(
        goal=telling.short(text),
        operation=request.intent.operation,
        flow_name=request.intent.title,
        flow_kind="AGENTFLOW",
    )
    if reading.knowledge:
        return base.model_copy(
            update={"flow_kind": "CHATFLOW", "declined": say("declined_agentflow_documents", language)}
        )
    builder = _Builder(request, reading, language)
    try:
        flow = builder.built(reading.text, request.intent.title)
    except _NotParsedError as clause:
        team = mentioned(text, words.TEAM)
        reason = say("declined_team" if team else "declined_steps", language, clause=str(clause))
        return base.model_copy(update={"flow_kind": "CHATFLOW", "declined": reason})
    except LackingError as lacking:
        return base.model_copy(update={"flow_kind": "CHATFLOW", "declined": str(lacking)})
    store = request.nodes
    schemas = {op.node_id: store.schemas[op.node_name] for op in flow.nodes}
    design = base.model_copy(
        update={
            "nodes": [
                PlannedNode(
                    node_id=op.node_id,
                    node_name=op.node_name,
                    purpose=telling.purpose(schemas[op.node_id], language),
                    label=op.label or "",
                )
                for op in flow.nodes
            ],
            "values": [
                PlannedValue(node_id=op.node_id, param=name, value=value)
                for op in flow.nodes
                for name, value in op.params.items()
            ],
            "connections": flow.links,
            "credential_requirements": nested_types(flow.nodes, store.schemas, request.credential_types),
            "parts": [
                Part(id=f"p{n}", quote=quote, state="covered", nodes=nodes)
                for n, (quote, nodes) in enumerate(flow.parts[:40], start=1)
            ],
        }
    )
    told = telling.told(design, schemas, Said(reading, prompt_of(reading.text, reading.spans)), language)
    asked = [f"{name}?" for name in flow.branches]
    if cases := read_conditions(reading.text).cases:
        asked = [*(case.example for case in cases if case.example), say("test_hello", language)]
    tests = [TestCase(id=f"t{n}", turns=[question]) for n, question in enumerate(asked, start=1)] or told.tests
    criteria = [one.model_copy(update={"tests": [test.id for test in tests]}) for one in told.criteria]
    return told.model_copy(update={"tests": tests[:10], "criteria": criteria})


class _Builder:
    def __init__(self, request: PlanRequest, reading: Reading, language: str) -> None:
        self._store, self._available = request.nodes, request.credential_types
        self._reading, self._language = reading, language
        self._provider = reading.provider or default_provider(
            self._store.schemas, self._available, with_embeddings=False
        )
        self._flow = _Flow()

    def built(self, text: str, title: str) -> _Flow:
        flow = self._flow
        start = self._add(_START, {})
        flow.ends = [(start, "")]
        conditions = read_conditions(text)
        if compares_numbers(text):
            raise LackingError(say("declined_agentflow_condition", self._language))
        if conditions.cases:
            self._choose(text, conditions)
        elif not is_stepwise(self._reading):
            self._after(self._step(text, title))
            flow.parts.append((squeeze(text), [flow.nodes[-1].node_id]))
        else:
            for clause in _clauses(text):
                before = len(flow.nodes)
                self._clause(clause)
                new = [node.node_id for node in flow.nodes[before:]]
                flow.parts.append((clause, new or [flow.nodes[-1].node_id]))
        if len(flow.nodes) < 2:
            raise _NotParsedError(squeeze(text)[:200])
        # "One LLM that answers" is one step; a team of which nobody is named is none.
        models = [node for node in flow.nodes if node.node_name in (_LLM, _AGENT)]
        if len(models) < 2 and mentioned(text, words.TEAM):
            raise LackingError(say("declined_team", self._language))
        return flow

    def _clause(self, clause: str) -> None:
        if (match := _ASKS_PERSON.match(clause)) is not None:
            self._approve(clause, match["tail"] or "")
        elif match := _SORTS.match(clause):
            self._sort(clause, match["rest"])
        elif self._flow.branches and (match := _ON_BRANCH.match(clause)):
            self._on_branch(clause, match["topic"], match["do"])
        elif self._flow.branches and (match := _OWN_AGENTS.match(clause)):
            named = [squeeze(name) for name in (match["topic"], match["second"]) if name]
            if any(self._branch(name) is None for name in named):
                raise _NotParsedError(clause)
        elif match := _CALLS.match(clause):
            method = _METHOD.search(clause)
            address = match["url"].rstrip(".,;")
            verb = method.group(1).upper() if method else "GET"
            self._after(self._add(_HTTP, {"method": verb, "url": address}))
        elif match := _AGAIN.match(clause):
            self._again(match)
        elif _SAYS.match(clause) and (given := quoted(clause)):
            self._after(self._add(_REPLY, {"directReplyMessage": without_braces(given[0])}))
        elif _REPLIES.fullmatch(clause) and len(self._flow.ends) == 1 and len(self._flow.nodes) > 1:
            self._after(self._add(_REPLY, {"directReplyMessage": f"{{{{ {self._flow.ends[0][0]} }}}}"}))
        elif _understood(clause):
            self._after(self._step(clause))
        else:
            raise _NotParsedError(clause)

    def _sort(self, clause: str, rest: str) -> None:
        """A node that looks at the message, and a branch with its own answer for each kind."""
        if self._flow.branches:
            raise _NotParsedError(clause)
        each = [squeeze(match["topic"]) for match in _TO_EACH.finditer(rest)]
        into = _INTO.match(rest)
        names = (
            each
            if len(each) > 1
            else [squeeze(_KINDS.sub("", part)) for part in _LISTED.split(into["list"])]
            if into
            else []
        )
        names = [re.sub(r"^(?:either|an?|the)\s", "", name, flags=re.IGNORECASE) for name in names if name]
        if len(names) < 2 or any(len(name.split()) > 4 or _NO_TOPIC.search(name) for name in names):
            raise _NotParsedError(clause)
        scenarios = [{"scenario": name} for name in names]
        params = {
            **self._model(_SORT),
            "conditionAgentInstructions": say("route", self._language),
            "conditionAgentInput": "{{ question }}",
            "conditionAgentScenarios": scenarios,
        }
        sorter = self._add(_SORT, params)
        self._after(sorter)
        ends: list[tuple[str, str]] = []
        agent = not _MODEL_NODE.search(self._reading.text)
        for number, name in enumerate(names):
            prompt = say("expert_in", self._language, topic=name)
            node = self._model_node(name, prompt, self._reading.tools if agent else (), agent=agent)
            self._flow.links.append(DesignConnection(source=sorter, output=str(number), target=node))
            self._flow.branches[name.casefold()] = node
            ends.append((node, ""))
        self._flow.ends = ends

    def _on_branch(self, clause: str, topic: str, do: str) -> None:
        node = self._branch(topic)
        if node is None:
            raise _NotParsedError(clause)
        if (person := _ASKS_PERSON.match(do)) and _ALWAYS.match(person["tail"] or ""):
            self._ask([node])
        elif len(do.split()) > 1 and not _names_structure(do):
            self._instruct(node, do)
        else:
            raise _NotParsedError(clause)

    def _approve(self, clause: str, tail: str) -> None:
        """A person looks at the answers so far, or at that of the branch that is named."""
        if _ALWAYS.match(tail):
            self._ask([end for end, _ in self._flow.ends])
            return
        named = _TAIL_TOPIC.match(tail)
        node = self._branch(named["topic"]) if named else None
        if node is None:
            raise _NotParsedError(clause)
        self._ask([node])

    def _ask(self, drafts: list[str]) -> None:
        """A person says yes, or the step is done again with what they say."""
        by_id = {node.node_id: node for node in self._flow.nodes}
        for id_ in drafts:
            draft = by_id[id_]
            if draft.node_name not in (_LLM, _AGENT):
                raise LackingError(say("declined_nothing_to_approve", self._language))
            text = say("approval", self._language)
            params = {
                "humanInputDescriptionType": "fixed",
                "humanInputDescription": text,
                "humanInputEnableFeedback": True,
            }
            human = self._add(_HUMAN, params)
            reply = self._add(_REPLY, {"directReplyMessage": f"{{{{ {id_} }}}}"})
            again = self._add(_LOOP, {"loopBackToNode": f"{id_}-{draft.label}"})
            self._flow.links += [
                DesignConnection(source=id_, target=human),
                DesignConnection(source=human, output="proceed", target=reply),
                DesignConnection(source=human, output="reject", target=again),
            ]
            self._flow.ends = [end for end in self._flow.ends if end[0] != id_] + [(reply, "")]

    def _again(self, match: re.Match[str]) -> None:
        """Back to the last step until a model finds that the condition holds, a limited number of times."""
        by_id = {node.node_id: node for node in self._flow.nodes}
        last = [by_id[id_] for id_, _ in self._flow.ends]
        if len(last) != 1 or last[0].node_name not in (_LLM, _AGENT):
            raise _NotParsedError(squeeze(match.group()))
        said = (match["n"] or "5").casefold()
        limit = int(said) if said.isdigit() else _COUNTS.get(said, 5)
        until = squeeze(match["until"])
        params = {
            **self._model(_SORT),
            "conditionAgentInstructions": say("check", self._language, until=until),
            "conditionAgentInput": f"{{{{ {last[0].node_id} }}}}",
            "conditionAgentScenarios": [{"scenario": until}, {"scenario": say("not_yet", self._language)}],
        }
        check = self._add(_SORT, params)
        again = self._add(_LOOP, {"loopBackToNode": f"{last[0].node_id}-{last[0].label}", "maxLoopCount": limit,
                                  "fallbackMessage": f"{{{{ {last[0].node_id} }}}}"})  # fmt: skip
        reply = self._add(_REPLY, {"directReplyMessage": f"{{{{ {last[0].node_id} }}}}"})
        self._after(check)
        self._flow.links += [
            DesignConnection(source=check, output="0", target=reply),
            DesignConnection(source=check, output="1", target=again),
        ]
        self._flow.ends = [(reply, "")]

    def _choose(self, text: str, conditions: Conditions) -> None:
        """A node that holds the message against the conditions, a branch for each, and one for all other messages."""
        clauses = [*(case.then for case in conditions.cases), conditions.otherwise]
        if any(one and mentioned(one, words.HUMAN) for one in clauses):
            raise LackingError(say("declined_agentflow_condition", self._language))
        rows = [
            {"type": "string", "value1": "{{ question }}", "operation": case.operation, "value2": case.value}
            for case in conditions.cases
        ]
        chooser = self._add(_IF, {"conditions": rows})
        self._after(chooser)
        self._flow.ends = []
        for number, clause in enumerate(clauses):
            if clause is None:
                node = self._model_node("", say("plain", self._language), (), agent=False)
            elif _SAYS.match(f"{clause} ") and (given := quoted(clause)):
                node = self._add(_REPLY, {"directReplyMessage": without_braces(given[0])})
            elif _understood(clause) or len(clause.split()) > 1:
                node = self._step(clause)
            else:
                raise _NotParsedError(clause)
            self._flow.links.append(DesignConnection(source=chooser, output=str(number), target=node))
            self._flow.ends.append((node, ""))
        self._flow.parts.append((squeeze(text), [node.node_id for node in self._flow.nodes]))

    def _after(self, node: str) -> None:
        self._flow.links += [DesignConnection(source=end, output=out, target=node) for end, out in self._flow.ends]
        self._flow.ends = [(node, "")]

    def _step(self, clause: str, title: str = "") -> str:
        """One call of a model, told in the words of the clause."""
        own = read(clause, self._store)
        who = _WHO.match(clause)
        task = clause[who.end() :] if who else clause
        label = (
            squeeze(who["who"])
            if who and not re.fullmatch(r"(?:llm|agent|model)s?", who["who"], re.IGNORECASE)
            else task
        )
        prompt = prompt_of(own.text, own.spans) or f"{task[:1].upper()}{task[1:]}"
        whole = bool(own.agent or who) and not _MODEL_NODE.search(clause) and not _MODEL_NODE.search(self._reading.text)
        tools = own.tools
        if not tools and len(_clauses(self._reading.text)) == 1:
            tools = self._reading.tools
        return self._model_node(title or label, prompt, tools, agent=bool(tools) or whole)

    def _model_node(self, label: str, prompt: str, tools: tuple[tuple[str, ...], ...], *, agent: bool) -> str:
        name = _AGENT if agent else _LLM
        prefix = _PREFIXES[name]
        values: dict[str, Any] = {
            **self._model(name),
            f"{prefix}Messages": [{"role": "system", "content": without_braces(prompt)}],
            **self._memory(prefix),
        }
        rows = [tool_row(names, self._store, self._available, self._reading, self._language) for names in tools]
        if rows:
            values["agentTools"] = rows
        if name == _LLM and self._reading.structured and self._reading.fields:
            values["llmStructuredOutput"] = [
                {"key": f.name, "type": f.kind, "enumValues": "", "jsonSchema": "", "description": f.description}
                for f in self._reading.fields
            ]
        return self._add(name, values, _label(label))

    def _instruct(self, node_id: str, do: str) -> None:
        """What is to be done on a branch takes the place of the general instruction of its step."""
        index = next(i for i, node in enumerate(self._flow.nodes) if node.node_id == node_id)
        node = self._flow.nodes[index]
        own, prefix = read(do, self._store), _PREFIXES[node.node_name]
        content = f"{do[:1].upper()}{do[1:]}"
        params = {**node.params, f"{prefix}Messages": [{"role": "system", "content": without_braces(content)}]}
        if own.tools:
            rows = [tool_row(names, self._store, self._available, own, self._language) for names in own.tools]
            params["agentTools"] = rows
        self._flow.nodes[index] = node.model_copy(update={"params": params})

    def _branch(self, said: str) -> str | None:
        """The one branch whose name shares a word with what is said."""
        wanted = {_stem(word) for word in re.findall(r"\w{3,}", said.casefold())}
        found = [node for name, node in self._flow.branches.items()
                 if wanted & {_stem(word) for word in re.findall(r"\w{3,}", name)}]  # fmt: skip
        return found[0] if len(found) == 1 else None

    def _model(self, name: str) -> dict[str, Any]:
        prefix, chat = _PREFIXES[name], self._provider.chat
        config = parameters(self._schema(chat), Said(self._reading), language=self._language)
        return {f"{prefix}Model": chat, f"{prefix}ModelConfig": config}

    def _memory(self, prefix: str) -> dict[str, Any]:
        window = self._reading.quantities.memory_window
        if self._reading.no_memory:
            return {f"{prefix}EnableMemory": False}
        return {f"{prefix}MemoryType": "windowSize", f"{prefix}MemoryWindowSize": window} if window else {}

    def _add(self, name: str, params: dict[str, Any], label: str = "") -> str:
        schema = self._schema(name)
        number = sum(node.node_name == name for node in self._flow.nodes)
        taken = {node.label for node in self._flow.nodes}
        wanted = label or schema.label
        unique = next(text for n in range(len(taken) + 1) if (text := f"{wanted} {n}" if n else wanted) not in taken)
        node_id = f"{name}_{number}"
        self._flow.nodes.append(AddNode(node_name=name, node_id=node_id, label=unique, params=params))
        return node_id

    def _schema(self, name: str) -> NodeSchema:
        schema = self._store.get(name)
        if schema is None:
            raise LackingError(say("declined_missing", self._language, name=name))
        return schema


def _clauses(text: str) -> list[str]:
    """The clauses of a text without what introduces them."""
    first, *others = [part for part in _NEXT.split(text) if part]
    rest = " ".join(first.split())
    while rest.split(" ", 1)[0].strip(" ,:").casefold() in words.LEADS and " " in rest:
        rest = rest.split(" ", 1)[1]
    lead = _LEAD.match(rest)
    clauses = [rest[lead.end() :] if lead else rest, *others]
    found = [_OPENING.sub("", clause.strip(" ,.;:!\x00")) for clause in clauses]
    return [clause for clause in found if re.search(r"\w", clause)]


def _understood(clause: str) -> bool:
    """Whether a clause is one task for a model: it says what is done, and names no structure of its own."""
    return bool(DOES.search(clause)) and not _names_structure(clause)


def _names_structure(clause: str) -> bool:
    return any(mentioned(clause, pattern) for pattern, _ in words.SIGNALS)


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") else word


def _label(text: str) -> str:
    chosen = text.split()[:5]
    while len(chosen) > 1 and chosen[-1].lower() in words.LOOSE_ENDS:
        chosen.pop()
    label = " ".join(chosen)[:_LONGEST_LABEL].strip(" ,.;:")
    return f"{label[:1].upper()}{label[1:]}" or "Answer"
