"""Agentflows from a small grammar of sequence and condition. What it cannot parse in full is declined.

A text is a sequence of clauses. Each is one step: answer, sort into named branches, do something on a named branch,
go one way if the message or a number in it fits and another otherwise, ask a person (always, or on a named branch),
call an address, do a task for each item, try again until something holds or at most n times, reply with given words.
"""

import re
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from typing import Any

from flowise_dev_agent.contracts.plan import Design, DesignConnection, Part, PlannedValue, TestCase
from flowise_dev_agent.patch import AddNode
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import nested_types
from flowise_dev_agent.reasoning.rules.design.parts import Account
from flowise_dev_agent.reasoning.rules.design.prompt import behaves, prompt_of
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.selection import provider_for
from flowise_dev_agent.reasoning.rules.design.tools import tool_row
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters, without_braces
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import NUMBER_WORDS, pattern, patterns, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import capital, mentioned, quoted, signals, squeeze, to_number
from flowise_dev_agent.reasoning.rules.render import telling
from flowise_dev_agent.reasoning.wiring import INSIDE

_START, _LLM, _AGENT = "startAgentflow", "llmAgentflow", "agentAgentflow"
_SORTER, _CHOOSER, _ITERATION = "conditionAgentAgentflow", "conditionAgentflow", "iterationAgentflow"
_HUMAN, _REPLY, _LOOP, _HTTP = "humanInputAgentflow", "directReplyAgentflow", "loopAgentflow", "httpAgentflow"
_PREFIXES = {_LLM: "llm", _AGENT: "agent", _SORTER: "conditionAgent"}
_OPENING = pattern("steps", "opening")
_ANY_MODEL = re.compile(r"(?:llm|agent|model)s?", re.IGNORECASE)
_LONGEST_LABEL = 40
#: Kinds of signals that make a flow one of steps.
_STEPWISE = frozenset({"team", "approval", "branch", "loop", "sequence"})


def _is(name: str, text: str) -> re.Match[str] | None:
    return pattern("steps", name).match(text)


@dataclass
class _Case:
    """A row of a condition and what is done then; "" where the next clause says it."""

    row: dict[str, Any]
    #: What a model reads from the message for it; "" where the message itself is compared.
    reads: str
    then: str


@dataclass
class _Flow:
    """The flow so far. `ends` are the places where the next step goes on: (node id, output)."""

    nodes: list[AddNode] = field(default_factory=list)
    links: list[DesignConnection] = field(default_factory=list)
    ends: list[tuple[str, str]] = field(default_factory=list)
    #: Branch name -> the node that answers on it.
    branches: dict[str, str] = field(default_factory=dict)
    #: Cases whose condition is not built yet: another one, or "otherwise", may follow.
    cases: list[_Case] = field(default_factory=list)
    parts: list[tuple[str, list[str]]] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)


def is_stepwise(reading: Reading) -> bool:
    """Whether the text speaks of steps that a chatflow does not have."""
    clauses = _clauses(reading.text[:2_000])
    flow = mentioned(reading.text, words("flow"))
    for name in ("words", "number") if flow else ("words",):
        if any(one.match(clause) for one in patterns("cases", name) for clause in clauses):
            return True
    # A node type asked for by name is a part of a chatflow.
    named = reading.requested or reading.prompt_text or reading.system_text
    return bool(_step_words(reading.text, {"team"} if named else _STEPWISE))


def _step_words(text: str, kinds: Set[str] = _STEPWISE) -> list[str]:
    return [squeeze(match.group()) for match, kind in signals(text) if kind in kinds]


def design_steps(request: PlanRequest, reading: Reading, said: Any, world: World) -> Design:
    """The design of a new agentflow. Raises DeclinedError with what it does not understand."""
    if reading.knowledge:
        said_so = next(iter(_step_words(reading.text)), reading.text[:_LONGEST_LABEL])
        raise DeclinedError(f"«{said_so}»: {world.say('declined_agentflow_documents')}")
    flow = _Builder(reading, said.details, world).built(request.intent.title)
    schemas = {op.node_id: world.schema(op.node_name) for op in flow.nodes}
    values = [PlannedValue(node_id=op.node_id, param=name, value=value)
              for op in flow.nodes for name, value in op.params.items()]  # fmt: skip
    Account(reading.text, reading.spans, schemas, values).check(world, signalled=False)
    parts = [
        Part(id=f"p{n}", quote=quote, state="covered", nodes=nodes) for n, (quote, nodes) in enumerate(flow.parts, 1)
    ]
    design = Design(
        goal=telling.short(said.text),
        operation=request.intent.operation,
        flow_name=request.intent.title,
        flow_kind="AGENTFLOW",
        nodes=telling.planned(schemas, world, labels={op.node_id: op.label or "" for op in flow.nodes}),
        values=values,
        connections=flow.links,
        credential_requirements=nested_types(flow.nodes, world.store.schemas, world.available),
        parts=parts[:40],
    )
    told = telling.told(design, schemas, Said(reading, prompt_of(reading.text, reading.spans)), world)
    asked = [f"{name}?" for name in flow.branches]
    asked += [*flow.examples, world.say("test_hello")] if flow.examples else []
    tests = [TestCase(id=f"t{n}", turns=[question]) for n, question in enumerate(asked[:10], start=1)] or told.tests
    criteria = [one.model_copy(update={"tests": [test.id for test in tests]}) for one in told.criteria]
    return told.model_copy(update={"tests": tests, "criteria": criteria})


class _Builder:
    def __init__(self, reading: Reading, answer: str, world: World) -> None:
        self._reading, self._answer, self._world = reading, answer, world
        self._clauses = _clauses(reading.text) if is_stepwise(reading) else [squeeze(reading.text)]
        self._provider = provider_for(reading, world, knowledge=False)
        # A model and its settings that one clause names are for all steps, else each step has its own.
        named = [one for one in (read(clause, world.store) for clause in self._clauses) if _about_model(one)]
        self._shared = reading if len(named) < 2 else replace(Reading("", ""), provider=reading.provider)
        self._flow = _Flow()

    def built(self, title: str) -> _Flow:
        flow = self._flow
        flow.ends = [(self._add(_START, {}), "")]
        if not is_stepwise(self._reading):
            self._after(self._step(self._clauses[0], title))
        for clause in self._clauses if is_stepwise(self._reading) else ():
            before = len(flow.nodes)
            self._clause(clause)
            flow.parts.append((clause, [node.node_id for node in flow.nodes[before:]] or [flow.nodes[-1].node_id]))
        self._choose("")
        if len(flow.nodes) < 2:
            raise self._not_parsed(self._reading.text[:200])
        # "One LLM that answers" is one step; a team of which nobody is named is none.
        if sum(node.node_name in (_LLM, _AGENT) for node in flow.nodes) < 2 and mentioned(
            self._reading.text, words("team")
        ):
            raise self._world.decline("declined_team")
        everything = [node.node_id for node in flow.nodes]
        flow.parts = [(quote, nodes) for quote, nodes in flow.parts] or [(self._clauses[0], everything)]
        return flow

    def _not_parsed(self, clause: str) -> DeclinedError:
        team = mentioned(self._reading.text, words("team")) and len(self._clauses) < 2
        return self._world.decline("declined_team" if team else "declined_steps", clause=squeeze(clause))

    def _clause(self, clause: str) -> None:
        cases = self._flow.cases
        if case := self._case(clause):
            cases.append(case)
            return
        if cases and (match := _is("otherwise", clause)):
            self._choose(clause[match.end() :])
            return
        if cases and not cases[-1].then:
            cases[-1].then = clause
            return
        self._choose("")
        for name, way in self._ways().items():
            if (match := _is(name, clause)) and way(clause, match):
                return
        if not _understood(clause):
            raise self._not_parsed(clause)
        self._after(self._step(clause))

    def _ways(self) -> dict[str, Callable[[str, re.Match[str]], bool]]:
        """Pattern -> what a clause like that adds; False where it is another kind of clause after all."""
        ways = {"asks_person": self._approve, "each": self._each, "each_last": self._each, "sorts": self._sort}
        if self._flow.branches:
            ways |= {"on_branch": self._on_branch, "own_agents": self._own_agents}
        return {**ways, "calls": self._call, "again": self._again, "says": self._say, "replies": self._reply}

    # --- Conditions

    def _case(self, clause: str) -> _Case | None:
        for looked_for in patterns("cases", "words"):
            if match := looked_for.match(clause):
                operation, value = _operation(match["operation"]), match["value"].strip("\"'“”„«» ")
                if not operation.startswith("not"):
                    self._flow.examples.append(value)
                return _Case({"type": "string", "operation": operation, "value2": value}, "", _then(match["then"]))
        for looked_for in patterns("cases", "number"):
            if match := looked_for.match(clause):
                number = to_number(match["number"])
                row = {"type": "number", "operation": _operation(match["operation"]), "value2": f"{number:g}"}
                return _Case(row, squeeze(match["what"]), _then(match["then"]))
        return None

    def _choose(self, otherwise: str) -> None:
        """A node that holds the message against the cases, a branch for each, and one for all other messages."""
        cases, self._flow.cases = self._flow.cases, []
        if not cases:
            return
        keys = {
            what: re.sub(r"\W+", "_", what.casefold()) or "value" for what in (case.reads for case in cases) if what
        }
        place = ""
        if keys:
            fields = [{"key": key, "type": "number", "enumValues": "", "jsonSchema": "", "description": what}
                      for what, key in keys.items()]  # fmt: skip
            told = self._world.say("read_numbers", names=", ".join(keys))
            place = self._model_node(told, told, (), Reading("", ""), agent=False, llmStructuredOutput=fields)
            self._after(place)
        held = {what: f"{{{{ {place}.output.{key} }}}}" for what, key in keys.items()} | {"": "{{ question }}"}
        rows = [{**case.row, "value1": held[case.reads]} for case in cases]
        chooser = self._add(_CHOOSER, {"conditions": rows})
        self._after(chooser)
        ends: list[tuple[str, str]] = []
        for number, clause in enumerate([*(case.then for case in cases), _then(otherwise)]):
            self._flow.ends = [(chooser, str(number))]
            last = number == len(cases)
            if (match := _is("says", f"{clause} ")) and self._say(clause, match):
                pass
            elif last and not clause:
                plain = self._world.say("plain")
                self._after(self._model_node("", plain, (), self._shared, agent=False))
            elif not mentioned(clause, words("human")) and _is_task(clause):
                self._after(self._step(clause))
            elif _is("asks_person", clause):
                raise self._world.decline("declined_nothing_to_approve")
            else:
                raise self._not_parsed(clause or self._reading.text[:200])
            ends += self._flow.ends
        self._flow.ends = ends

    # --- Branches

    def _sort(self, clause: str, match: re.Match[str]) -> bool:
        """A node that looks at the message, and a branch with its own answer for each kind."""
        each = [squeeze(one["topic"]) for one in pattern("steps", "to_each").finditer(match["rest"])]
        into = _is("into", match["rest"])
        listed = pattern("steps", "listed").split(into["list"]) if into else []
        names = each if len(each) > 1 else [squeeze(pattern("steps", "kinds").sub("", part)) for part in listed]
        names = [re.sub(r"^(?:either|an?|the)\s", "", name, flags=re.IGNORECASE) for name in names if name]
        odd = any(len(name.split()) > 4 or pattern("steps", "no_topic").search(name) for name in names)
        if self._flow.branches or len(names) < 2 or odd:
            raise self._not_parsed(clause)
        sorter = self._check(self._world.say("route"), "{{ question }}", names)
        agent = not pattern("steps", "model_node").search(self._reading.text)
        self._flow.ends = []
        for number, name in enumerate(names):
            prompt = self._world.say("expert_in", topic=name)
            tools = self._reading.tools if agent else ()
            node = self._model_node(name, prompt, tools, self._shared, agent=agent)
            self._flow.links.append(DesignConnection(source=sorter, output=str(number), target=node))
            self._flow.branches[name.casefold()] = node
            self._flow.ends.append((node, ""))
        return True

    def _on_branch(self, clause: str, match: re.Match[str]) -> bool:
        node, do = self._branch(match["topic"]), match["do"]
        person = _is("asks_person", do)
        if node is None or (not person and (len(do.split()) < 2 or _names_structure(do))):
            raise self._not_parsed(clause)
        if person:
            self._ask([node])
            return True
        # What is to be done on a branch takes the place of the general instruction of its step.
        index = next(i for i, one in enumerate(self._flow.nodes) if one.node_id == node)
        old, own = self._flow.nodes[index], read(do, self._world.store)
        made = self._model_params(old.node_name, capital(do), own.tools, own)
        self._flow.nodes[index] = old.model_copy(update={"params": {**old.params, **made}})
        return True

    def _own_agents(self, clause: str, match: re.Match[str]) -> bool:
        """ "A billing agent and a technical agent answer": each branch has its own already."""
        if any(self._branch(name) is None for name in (match["topic"], match["second"]) if name):
            raise self._not_parsed(clause)
        return True

    def _branch(self, said: str) -> str | None:
        """The one branch whose name shares a word with what is said."""
        wanted = _stems(said)
        found = [node for name, node in self._flow.branches.items() if wanted & _stems(name)]
        return found[0] if len(found) == 1 else None

    # --- People, repetition, addresses

    def _approve(self, clause: str, match: re.Match[str]) -> bool:
        """A person looks at the answers so far, or at that of the branch that is named."""
        tail = match["tail"] or ""
        named = _is("tail_topic", tail)
        node = (
            None if _is("always", tail) else self._branch(named["topic"] if named else "") or self._branch(self._answer)
        )
        if node is None and not _is("always", tail) and not mentioned(self._answer, words("all_of_them")):
            if self._flow.branches:
                raise self._world.decline("question_approval", clause=clause, names=", ".join(self._flow.branches))
            raise self._not_parsed(clause)
        self._ask([node] if node else [end for end, _ in self._flow.ends])
        return True

    def _ask(self, drafts: list[str]) -> None:
        """A person says yes, or the step is done again with what they say."""
        by_id = {node.node_id: node for node in self._flow.nodes}
        params = {"humanInputDescriptionType": "fixed", "humanInputDescription": self._world.say("approval"),
                  "humanInputEnableFeedback": True}  # fmt: skip
        for id_ in drafts:
            if by_id[id_].node_name not in (_LLM, _AGENT):
                raise self._world.decline("declined_nothing_to_approve")
            human = self._add(_HUMAN, params)
            again = self._add(_LOOP, {"loopBackToNode": f"{id_}-{by_id[id_].label}"})
            self._flow.links.append(DesignConnection(source=id_, target=human))
            reply = self._two_ways(human, id_, again, ("proceed", "reject"))
            self._flow.ends = [end for end in self._flow.ends if end[0] != id_] + [(reply, "")]

    def _two_ways(self, source: str, answer: str, again: str, outputs: tuple[str, str]) -> str:
        """One way to the answer, the other back; the node that replies."""
        reply = self._add(_REPLY, {"directReplyMessage": f"{{{{ {answer} }}}}"})
        self._flow.links += [DesignConnection(source=source, output=outputs[0], target=reply),
                             DesignConnection(source=source, output=outputs[1], target=again)]  # fmt: skip
        return reply

    def _again(self, clause: str, match: re.Match[str]) -> bool:
        """Back to the last step until a model finds that the condition holds, a limited number of times."""
        last = [node for node in self._flow.nodes if node.node_id in {id_ for id_, _ in self._flow.ends}]
        said = (match["n"] or "5").casefold()
        if len(last) != 1 or last[0].node_name not in (_LLM, _AGENT) or not (said.isdigit() or said in NUMBER_WORDS):
            raise self._not_parsed(clause)
        id_, until = last[0].node_id, squeeze(match["until"])
        scenarios = [until, self._world.say("not_yet")]
        check = self._check(self._world.say("check", until=until), f"{{{{ {id_} }}}}", scenarios)
        params = {"loopBackToNode": f"{id_}-{last[0].label}", "maxLoopCount": round(to_number(said)),
                  "fallbackMessage": f"{{{{ {id_} }}}}"}  # fmt: skip
        self._flow.ends = [(self._two_ways(check, id_, self._add(_LOOP, params), ("0", "1")), "")]
        return True

    def _each(self, clause: str, match: re.Match[str]) -> bool:
        """A model lists the items, and a step inside an iteration does the task with each."""
        item, do = squeeze(match["item"]), match["do"]
        if len(do.split()) < 2 or not _is_task(do):
            raise self._not_parsed(clause)
        fields = [{"key": "items", "type": "stringArray", "enumValues": "", "jsonSchema": "", "description": item}]
        told = self._world.say("list_items", item=item)
        source = self._model_node(told, told, (), self._shared, agent=False, llmStructuredOutput=fields)
        self._after(source)
        each = self._add(_ITERATION, {"iterationInput": f"{{{{ {source}.output.items }}}}"})
        self._after(each)
        inner = self._step(do, user="{{ $iteration }}")
        self._flow.links.append(DesignConnection(source=each, output=INSIDE, target=inner))
        return True

    def _call(self, _clause: str, match: re.Match[str]) -> bool:
        method = pattern("steps", "method").search(match.group())
        verb = method.group(1).upper() if method else "GET"
        self._after(self._add(_HTTP, {"method": verb, "url": match["url"].rstrip(".,;")}))
        return True

    def _say(self, clause: str, _match: re.Match[str]) -> bool:
        given = quoted(clause)
        if given:
            self._after(self._add(_REPLY, {"directReplyMessage": without_braces(given[0])}))
        return bool(given)

    def _reply(self, _clause: str, _match: re.Match[str]) -> bool:
        """ "... and replies": the answer so far, as it is."""
        one = len(self._flow.ends) == 1 and len(self._flow.nodes) > 1
        if one:
            self._after(self._add(_REPLY, {"directReplyMessage": f"{{{{ {self._flow.ends[0][0]} }}}}"}))
        return one

    # --- Steps of a model

    def _after(self, node: str) -> None:
        self._flow.links += [DesignConnection(source=end, output=out, target=node) for end, out in self._flow.ends]
        self._flow.ends = [(node, "")]

    def _step(self, clause: str, title: str = "", *, user: str = "") -> str:
        """One call of a model, told in the words of the clause."""
        own = read(clause, self._world.store)
        who = _is("who", clause)
        task = clause[who.end() :] if who else clause
        label = title or (squeeze(who["who"]) if who and not _ANY_MODEL.fullmatch(who["who"]) else task)
        prompt = prompt_of(own.text, own.spans, lead=False) or capital(task)
        plain = any(pattern("steps", "model_node").search(text) for text in (clause, self._reading.text))
        tools = self._reading.tools if len(self._clauses) == 1 else own.tools
        agent = bool(tools) or (bool(own.agent or who) and not plain and not user)
        return self._model_node(
            label, prompt, tools, own if _about_model(own) else self._shared, agent=agent, user=user
        )

    def _model_node(
        self, label: str, prompt: str, tools: tuple[tuple[str, ...], ...], reading: Reading, *, agent: bool,
        user: str = "", **more: Any,
    ) -> str:  # fmt: skip
        name = _AGENT if agent else _LLM
        params = self._model_params(name, prompt, tools, reading)
        if user:
            prefix = _PREFIXES[name]
            params[f"{prefix}Messages"] = [*params[f"{prefix}Messages"], {"role": "user", "content": user}]
            params[f"{prefix}EnableMemory"] = False
        if name == _LLM and self._reading.fields and not more:
            rows = [{"key": f.name, "type": f.kind, "enumValues": "", "jsonSchema": "", "description": f.description}
                    for f in self._reading.fields]  # fmt: skip
            params["llmStructuredOutput"] = rows
        return self._add(name, {**params, **more}, _label(label))

    def _model_params(
        self, name: str, prompt: str, tools: tuple[tuple[str, ...], ...], reading: Reading
    ) -> dict[str, Any]:
        prefix, window = _PREFIXES[name], self._reading.quantities.memory_window
        params: dict[str, Any] = {
            **self._model(name, reading),
            f"{prefix}Messages": [{"role": "system", "content": without_braces(prompt)}],
        }
        if self._reading.no_memory:
            params[f"{prefix}EnableMemory"] = False
        elif window:
            params |= {f"{prefix}MemoryType": "windowSize", f"{prefix}MemoryWindowSize": window}
        if tools:
            params["agentTools"] = [tool_row(names, self._reading, self._world) for names in tools]
        return params

    def _check(self, instructions: str, looked_at: str, names: list[str]) -> str:
        """A model that chooses among scenarios, behind the last step."""
        params = {"conditionAgentInstructions": instructions, "conditionAgentInput": looked_at,
                  "conditionAgentScenarios": [{"scenario": name} for name in names]}  # fmt: skip
        node = self._add(_SORTER, {**self._model(_SORTER, self._shared), **params})
        self._after(node)
        return node

    def _model(self, name: str, reading: Reading) -> dict[str, Any]:
        prefix, chat = _PREFIXES[name], (reading.provider or self._provider).chat
        config = parameters(self._world.schema(chat), Said(reading), language=self._world.language)
        return {f"{prefix}Model": chat, f"{prefix}ModelConfig": config}

    def _add(self, name: str, params: dict[str, Any], label: str = "") -> str:
        wanted = label or self._world.schema(name).label
        taken = {node.label for node in self._flow.nodes}
        unique = next(text for n in range(len(taken) + 1) if (text := f"{wanted} {n}" if n else wanted) not in taken)
        node_id = f"{name}_{sum(node.node_name == name for node in self._flow.nodes)}"
        self._flow.nodes.append(AddNode(node_name=name, node_id=node_id, label=unique, params=params))
        return node_id


def _clauses(text: str) -> list[str]:
    """The clauses of a text without what introduces them."""
    first, *others = [part for part in pattern("steps", "next").split(text) if part] or [""]
    rest = squeeze(first)
    while " " in rest and rest.split(" ", 1)[0].strip(" ,:").casefold() in wordset("leads"):
        rest = rest.split(" ", 1)[1]
    lead = _is("lead", rest)
    clauses = [rest[lead.end() :] if lead else rest, *others]
    found = [_OPENING.sub("", clause.strip(" ,.;:!\x00")) for clause in clauses]
    return [clause for clause in found if re.search(r"\w", clause)]


def _about_model(reading: Reading) -> bool:
    return bool(reading.provider or reading.model or reading.quantities.temperature is not None)


def _operation(said: str) -> str:
    return next(name for name in _OPERATIONS if pattern("operations", name).fullmatch(said))


_OPERATIONS = ("notContains", "notEqual", "startsWith", "endsWith", "contains", "larger", "largerEqual", "smaller",
               "smallerEqual", "equal")  # fmt: skip


def _then(said: str) -> str:
    return pattern("steps", "then").sub("", said.strip(" ,;:."))


def _understood(clause: str) -> bool:
    """Whether a clause is one task for a model: it says what is done, and names no structure of its own."""
    return bool(pattern("steps", "does").search(clause)) and not _names_structure(clause)


def _is_task(clause: str) -> bool:
    """As `_understood`, of a branch: who answers on it is enough."""
    return not _names_structure(clause) and bool(_understood(clause) or behaves(clause) or _is("who", clause))


def _names_structure(clause: str) -> bool:
    # "A second agent checks it" is one step, "one writes and another checks" is two.
    return any(kind != "team" or match.group().count(" ") > 3 for match, kind in signals(clause))


def _stems(said: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"\w{3,}", said.casefold())}


def _label(text: str) -> str:
    chosen = text.split()[:5]
    while len(chosen) > 1 and chosen[-1].lower() in wordset("loose_ends"):
        chosen.pop()
    return capital(" ".join(chosen)[:_LONGEST_LABEL].strip(" ,.;:")) or "Answer"
