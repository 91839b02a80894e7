"""Agentflows from a small grammar of sequence and condition. What it cannot parse in full is declined.

A text is a sequence of clauses. Each is one step: answer, sort into named branches, go one way if something holds and
another otherwise, do something on a named branch, ask a person (always, or on a named branch), call an address, do a
task for each item, try again until something holds or at most n times, reply with given words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flowise_dev_agent.contracts.plan import Design, DesignConnection, Part, PlannedValue, TestCase
from flowise_dev_agent.patch import AddNode
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import nested_types
from flowise_dev_agent.reasoning.rules.design.parts import Account
from flowise_dev_agent.reasoning.rules.design.prompt import behaves, is_empty, prompt_of
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.selection import provider_for
from flowise_dev_agent.reasoning.rules.design.tools import tool_row
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters, without_braces
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import NUMBER_WORDS, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import capital, mentioned, quoted, signals, squeeze, to_number
from flowise_dev_agent.reasoning.rules.render import telling
from flowise_dev_agent.reasoning.wiring import INSIDE

_START, _LLM, _AGENT = "startAgentflow", "llmAgentflow", "agentAgentflow"
_SORTER, _ITERATION, _HTTP = "conditionAgentAgentflow", "iterationAgentflow", "httpAgentflow"
_HUMAN, _REPLY, _LOOP = "humanInputAgentflow", "directReplyAgentflow", "loopAgentflow"
_PREFIXES = {_LLM: "llm", _AGENT: "agent", _SORTER: "conditionAgent"}
_ANY_MODEL = re.compile(r"(?:llm|agent|model)s?", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_LONGEST_LABEL, _LONGEST_TEXT = 40, 2_000
#: Kinds of signals that make a flow one of steps.
_STEPWISE = frozenset({"team", "approval", "branch", "loop", "sequence"})

#: What the clauses themselves are read for, or what their own reading says.
_READ_BY_CLAUSE = _STEPWISE | {"call", "service", "setting", "output"}


def _is(name: str, text: str) -> re.Match[str] | None:
    return pattern("steps", name).match(text)


@dataclass
class _Flow:
    """The flow so far. `ends` are the places where the next step goes on: (node id, output)."""

    nodes: list[AddNode] = field(default_factory=list)
    links: list[DesignConnection] = field(default_factory=list)
    ends: list[tuple[str, str]] = field(default_factory=list)
    #: Branch name -> the node that answers on it.
    branches: dict[str, str] = field(default_factory=dict)
    #: (condition, what is done then) of cases that are not built yet: another one, or "otherwise", may follow.
    cases: list[tuple[str, str]] = field(default_factory=list)
    parts: list[tuple[str, list[str]]] = field(default_factory=list)


def is_stepwise(reading: Reading) -> bool:
    """Whether the text speaks of steps that a chatflow does not have."""
    text = reading.text[:_LONGEST_TEXT]
    if mentioned(text, words("flow")) and any(_is("case", clause) for clause in clauses(text)):
        return True
    # A node type asked for by name is a part of a chatflow.
    named = reading.requested or reading.prompt_text or reading.system_text
    kinds = {"team"} if named else _STEPWISE
    # A request to an address is a step, where no tool and no chain makes it.
    if pattern("steps", "a_flow").search(text) and not (reading.chat or reading.knowledge or reading.tools or named):
        kinds = kinds | {"then"} if pattern("steps", "then_next").search(text) else kinds
    kinds = kinds if named or reading.tools or reading.loaders else kinds | {"call"}
    return "then" in kinds or any(
        kind in kinds and (kind != "call" or "://" in match.group()) for match, kind in signals(text)
    )


def design_steps(request: PlanRequest, reading: Reading, said: Any, world: World) -> Design:
    """The design of a new agentflow. Raises DeclinedError with what it does not understand."""
    if reading.knowledge and not reading.urls:
        said_so = next((match.group() for match, kind in signals(reading.text) if kind in _STEPWISE), reading.text[:40])
        raise DeclinedError(f"«{squeeze(said_so)}»: {world.say('declined_agentflow_documents')}")
    Account(reading.text, [], {}, []).check(world, _READ_BY_CLAUSE)
    flow = _Builder(reading, said.details, world).built(request.intent.title)
    schemas = {op.node_id: world.schema(op.node_name) for op in flow.nodes}
    values = [PlannedValue(node_id=op.node_id, param=name, value=value)
              for op in flow.nodes for name, value in op.params.items()]  # fmt: skip
    Account(reading.text, reading.spans, schemas, values).check(world, _READ_BY_CLAUSE)
    design = Design(
        goal=telling.short(said.text),
        operation=request.intent.operation,
        flow_name=request.intent.title,
        flow_kind="AGENTFLOW",
        nodes=telling.planned(schemas, world, labels={op.node_id: op.label or "" for op in flow.nodes}),
        values=values,
        connections=flow.links,
        credential_requirements=nested_types(flow.nodes, world.store.schemas, world.available),
        parts=[Part(id=f"p{n}", quote=quote, state="covered", nodes=nodes)
               for n, (quote, nodes) in enumerate(flow.parts[:40], 1)],
    )  # fmt: skip
    told = telling.told(design, schemas, Said(reading, prompt_of(reading.text, reading.spans)), world)
    tests = [TestCase(id=f"t{n}", turns=[f"{name}?"]) for n, name in enumerate([*flow.branches][:10], 1)] or told.tests
    criteria = [one.model_copy(update={"tests": [test.id for test in tests]}) for one in told.criteria]
    return told.model_copy(update={"tests": tests, "criteria": criteria})


class _Builder:
    def __init__(self, reading: Reading, answer: str, world: World) -> None:
        self._reading, self._answer, self._world = reading, answer, world
        self._stepwise = is_stepwise(reading)
        self._clauses = clauses(reading.text) if self._stepwise else [squeeze(reading.text)]
        self._provider = provider_for(reading, world, knowledge=False)
        # A model and its settings that one clause names are for all steps, else each step has its own.
        named = [one for one in (read(clause, world.store) for clause in self._clauses) if _about_model(one)]
        self._shared = reading if len(named) < 2 else replace(Reading("", ""), provider=reading.provider)
        self._flow = _Flow()

    def built(self, title: str) -> _Flow:
        flow = self._flow
        flow.ends = [(self._add(_START, {}), "")]
        for clause in self._clauses:
            before = len(flow.nodes)
            if self._stepwise:
                self._clause(clause)
            else:
                self._after(self._step(clause, title))
            flow.parts.append((clause, [node.node_id for node in flow.nodes[before:]] or [flow.nodes[-1].node_id]))
        self._choose("")
        # "One LLM that answers" is one step; a team of which nobody is named is none.
        alone = sum(node.node_name in (_LLM, _AGENT) for node in flow.nodes) < 2
        if len(flow.nodes) < 2 or (alone and mentioned(self._reading.text, words("team"))):
            raise self._not_parsed(self._reading.text[:200])
        return flow

    def _not_parsed(self, clause: str) -> DeclinedError:
        team = mentioned(self._reading.text, words("team")) and len(self._clauses) < 2
        return self._world.decline("declined_team" if team else "declined_steps", clause=squeeze(clause))

    def _clause(self, clause: str) -> None:
        """Add what a clause says. Raises DeclinedError: it is not parsed in full."""
        cases = self._flow.cases
        if self._branch_step(clause):
            return
        if match := _is("case", clause):
            cases.append((squeeze(match["when"]), match["do"] or ""))
            return
        match = _is("otherwise", clause)
        if cases and not cases[-1][1] and not match:
            cases[-1] = (cases[-1][0], clause)
            return
        self._choose(clause[match.end() :] if match else "")
        goes_on = len(self._flow.nodes) > 1 or clause is not self._clauses[-1]
        if match or (goes_on and not _content(clause, self._flow.branches)):
            # "... and replies", "a billing agent and a technical agent answer": that is what they do anyway.
            return
        if any(kind == "approval" for _, kind in signals(clause)):
            self._approve(clause)
        elif match := _is("each", clause) or _is("each_last", clause):
            self._each(clause, match)
        elif match := _is("sorts", clause) or _is("decides", clause):
            self._sort(clause, match[1])
        elif match := _is("calls", clause):
            self._call(clause, match["url"].rstrip(".,;"))
        elif match := _is("again", clause):
            self._again(clause, match)
        else:
            self._after(self._do(clause))

    def _do(self, clause: str) -> str:
        """The node of a simple clause: words that are given, or a task of a model."""
        if _is("says", clause) and (given := quoted(clause)):
            return self._add(_REPLY, {"directReplyMessage": without_braces(given[0])})
        task = bool(pattern("steps", "does").search(clause) or behaves(clause) or _is("who", clause))
        if not task or _names_structure(clause):
            raise self._not_parsed(clause)
        return self._step(clause)

    # --- Branches

    def _fork(self, told: str, names: Sequence[str], looked_at: str = "{{ question }}") -> str:
        """A model that chooses among scenarios, behind the last step."""
        params = {"conditionAgentInstructions": told, "conditionAgentInput": looked_at,
                  "conditionAgentScenarios": [{"scenario": name} for name in names]}  # fmt: skip
        node = self._add(_SORTER, {**self._model(_SORTER, self._shared), **params})
        self._after(node)
        return node

    def _choose(self, otherwise: str) -> None:
        """A way for each case, and one for all other messages."""
        cases, self._flow.cases = self._flow.cases, []
        if not cases:
            return
        lacking = next((when for when, do in cases if not do), None)
        if lacking is not None:
            raise self._not_parsed(next(clause for clause in self._clauses if lacking in squeeze(clause)))
        fork = self._fork(self._world.say("route"), [*(when for when, _ in cases), self._world.say("otherwise")])
        plain = self._world.say("plain")
        last = squeeze(pattern("steps", "then").sub("", otherwise.strip(" ,;:.")))
        ways = [*(self._do(do) for _, do in cases), self._do(last) if last else self._model_node("", plain)]
        self._flow.links += [DesignConnection(source=fork, output=str(n), target=way) for n, way in enumerate(ways)]
        self._flow.ends = [(way, "") for way in ways]

    def _sort(self, clause: str, rest: str) -> None:
        """A node that looks at the message, and a branch with its own answer for each kind."""
        rest = pattern("steps", "answers_each").sub("", rest)
        each = [squeeze(one["topic"]) for one in pattern("steps", "to_each").finditer(rest)]
        into = _is("decides", clause) or _is("into", rest)
        # What is in brackets explains a branch.
        plain = re.sub(r"\([^()]*\)", lambda one: one[0].replace(",", "\x01"), into["list"]) if into else ""
        listed = [part.replace("\x01", ",") for part in pattern("steps", "listed").split(plain)] if into else []
        names = each if len(each) > 1 else [squeeze(pattern("steps", "kinds").sub("", part)) for part in listed]
        names = [re.sub(r"^(?:either|an?|the)\s", "", name, flags=re.IGNORECASE) for name in names if name]
        short = [re.sub(r"\s?\(.*", "", name) for name in names]
        odd = any(len(name.split()) > 4 or pattern("steps", "no_topic").search(name) for name in short)
        odd = odd or any(" " in name and pattern("steps", "does").match(name) for name in short)
        if self._flow.branches or len(names) < 2 or odd:
            raise self._not_parsed(clause)
        fork = self._fork(self._world.say("route"), names)
        agent = not pattern("steps", "model_node").search(self._reading.text)
        tools = self._reading.tools if agent else ()
        for number, name in enumerate(short):
            node = self._model_node(name, self._world.say("expert_in", topic=name), tools, agent=agent)
            self._flow.links.append(DesignConnection(source=fork, output=str(number), target=node))
            self._flow.branches[name.casefold()] = node
        self._flow.ends = [(node, "") for node in self._flow.branches.values()]

    def _branch_step(self, clause: str) -> bool:
        """ "For complaint: apologise": what is done on a branch takes the place of its general instruction."""
        match = (_is("on_arrow", clause) or _is("on_branch", clause)) if self._flow.branches else None
        node = self._branch(match["topic"]) if match else None
        if match is None or node is None:
            return False
        do = match["do"]
        if any(kind == "approval" for _, kind in signals(do)):
            self._ask([node])
        elif len(do.split()) < 2 or _names_structure(do):
            raise self._not_parsed(clause)
        else:
            index = next(i for i, one in enumerate(self._flow.nodes) if one.node_id == node)
            old, own = self._flow.nodes[index], read(do, self._world.store)
            made = self._model_params(old.node_name, capital(do), own.tools, own)
            self._flow.nodes[index] = old.model_copy(update={"params": {**old.params, **made}})
        return True

    def _branch(self, said: str) -> str | None:
        """The one branch whose name shares a word with what is said."""
        if self._flow.branches and pattern("steps", "rest").match(said):
            return [*self._flow.branches.values()][-1]
        wanted = _stems(said)
        found = [node for name, node in self._flow.branches.items() if wanted & _stems(name)]
        return found[0] if len(found) == 1 else None

    # --- People, repetition, addresses

    def _approve(self, clause: str) -> None:
        """A person looks at the answers so far, or at that of the branch that is named."""
        match = next(match for match, kind in signals(clause) if kind == "approval")
        rest = f"{clause[: match.start()]} {clause[match.end() :]}"
        odd = [word for word in _content(rest, ()) if word not in wordset("approving")]
        branch = self._branch(" ".join(odd))
        if branch and any(word not in wordset("approving") for word in _content(rest, self._flow.branches)):
            raise self._not_parsed(clause)
        branch = branch or self._branch(self._answer)
        if odd and not branch and not mentioned(self._answer, words("all_of_them")):
            if self._flow.branches:
                raise self._world.decline("question_approval", clause=clause, names=", ".join(self._flow.branches))
            raise self._not_parsed(clause)
        self._ask([branch] if branch else [end for end, _ in self._flow.ends])

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

    def _again(self, clause: str, match: re.Match[str]) -> None:
        """Back to the last step until a model finds that the condition holds, a limited number of times."""
        last = [node for node in self._flow.nodes if node.node_id in {id_ for id_, _ in self._flow.ends}]
        said = (match["n"] or "5").casefold()
        if len(last) != 1 or last[0].node_name not in (_LLM, _AGENT) or not (said.isdigit() or said in NUMBER_WORDS):
            raise self._not_parsed(clause)
        id_, until = last[0].node_id, squeeze(match["until"])
        scenarios = [until, self._world.say("not_yet")]
        check = self._fork(self._world.say("check", until=until), scenarios, f"{{{{ {id_} }}}}")
        params = {"loopBackToNode": f"{id_}-{last[0].label}", "maxLoopCount": round(to_number(said)),
                  "fallbackMessage": f"{{{{ {id_} }}}}"}  # fmt: skip
        self._flow.ends = [(self._two_ways(check, id_, self._add(_LOOP, params), ("0", "1")), "")]

    def _each(self, clause: str, match: re.Match[str]) -> None:
        """A model lists the items, and a step inside an iteration does the task with each."""
        item, do = squeeze(match["item"]), match["do"]
        if len(do.split()) < 2 or not pattern("steps", "does").search(do) or _names_structure(do):
            raise self._not_parsed(clause)
        fields = [{"key": "items", "type": "stringArray", "enumValues": "", "jsonSchema": "", "description": item}]
        told = self._world.say("list_items", item=item)
        source = self._model_node(told, told, llmStructuredOutput=fields)
        self._after(source)
        each = self._add(_ITERATION, {"iterationInput": f"{{{{ {source}.output.items }}}}"})
        self._after(each)
        inner = self._step(do, user="{{ $iteration }}")
        self._flow.links.append(DesignConnection(source=each, output=INSIDE, target=inner))

    def _call(self, clause: str, url: str) -> None:
        """A request to an address. What else the clause asks for (a token, a body) is not parsed."""
        method = pattern("steps", "method").search(clause)
        verb = method.group(1).upper() if method else "GET"
        rest = pattern("steps", "calling").sub("", clause)
        odd = any(pattern("steps", name).search(rest) for name in ("secret", "does"))
        if odd or verb != "GET" or any(kind not in ("call", "service") for _, kind in signals(clause)):
            raise self._not_parsed(clause)
        self._after(self._add(_HTTP, {"method": verb, "url": url}))

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
        return self._model_node(label, prompt, tools, own if _about_model(own) else None, agent=agent, user=user)

    def _model_node(
        self, label: str, prompt: str, tools: tuple[tuple[str, ...], ...] = (), reading: Reading | None = None, *,
        agent: bool = False, user: str = "", **more: Any,
    ) -> str:  # fmt: skip
        name = _AGENT if agent else _LLM
        params = self._model_params(name, prompt, tools, reading or self._shared)
        if user:
            prefix = _PREFIXES[name]
            params[f"{prefix}Messages"] = [*params[f"{prefix}Messages"], {"role": "user", "content": user}]
            params[f"{prefix}EnableMemory"] = False
        if name == _LLM and self._reading.fields and not more:
            more["llmStructuredOutput"] = [
                {"key": f.name, "type": f.kind, "enumValues": "", "jsonSchema": "", "description": f.description}
                for f in self._reading.fields
            ]
        return self._add(name, {**params, **more}, _label(label))

    def _model_params(
        self, name: str, prompt: str, tools: tuple[tuple[str, ...], ...], reading: Reading
    ) -> dict[str, Any]:
        prefix, window = _PREFIXES[name], self._reading.quantities.memory_window
        system = [{"role": "system", "content": without_braces(prompt)}]
        params: dict[str, Any] = {**self._model(name, reading), f"{prefix}Messages": system}
        if self._reading.no_memory:
            params[f"{prefix}EnableMemory"] = False
        elif window:
            params |= {f"{prefix}MemoryType": "windowSize", f"{prefix}MemoryWindowSize": window}
        if tools:
            params["agentTools"] = [tool_row(names, self._reading, self._world) for names in tools]
        return params

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


def clauses(text: str) -> list[str]:
    """The clauses of a text without what introduces them."""
    first, *others = [part for part in pattern("steps", "next").split(text) if part] or [""]
    rest = squeeze(first)
    while " " in rest and rest.split(" ", 1)[0].strip(" ,:").casefold() in wordset("leads"):
        rest = rest.split(" ", 1)[1]
    lead = _is("lead", rest)
    clauses = [rest[lead.end() :] if lead else rest, *others]
    found = [pattern("steps", "opening").sub("", clause.strip(" ,.;:!\x00")) for clause in clauses]
    return [clause for clause in found if re.search(r"\w", clause) and not pattern("steps", "flow_alone").match(clause)]


def _about_model(reading: Reading) -> bool:
    return bool(reading.provider or reading.model or reading.quantities.temperature is not None)


def _names_structure(clause: str) -> bool:
    # "A second agent checks it" is one step, "one writes and another checks" is two.
    return any(kind != "team" or match.group().count(" ") > 3 for match, kind in signals(clause))


def _content(clause: str, branches: Sequence[str] | dict[str, str]) -> list[str]:
    """The words of a clause that say more than that the branches answer."""
    said = [word.casefold() for word in _WORD.findall(clause)]
    stems = set[str]().union(*map(_stems, branches))
    return [word for word in said if not (is_empty(word) or word in wordset("replying") or _stems(word) & stems)]


def _stems(said: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"\w{3,}", said.casefold())}


def _label(text: str) -> str:
    chosen = text.split()[:5]
    while len(chosen) > 1 and chosen[-1].lower() in wordset("loose_ends"):
        chosen.pop()
    return capital(" ".join(chosen)[:_LONGEST_LABEL].strip(" ,.;:")) or "Answer"
