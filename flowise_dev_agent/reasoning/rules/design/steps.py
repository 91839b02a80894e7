"""Agentflows from the skeleton of a text: kinds of steps, branches, limits and addresses. What a step is told are the
person's own words; a skeleton that does not fit is asked about or declined."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from flowise_dev_agent.contracts.plan import Design, DesignConnection, Part, PlannedValue, TestCase
from flowise_dev_agent.patch import AddNode
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import nested_types
from flowise_dev_agent.reasoning.rules.design.parts import Account
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty, prompt_of
from flowise_dev_agent.reasoning.rules.design.providers import CHATS, MODEL_PARAMS
from flowise_dev_agent.reasoning.rules.design.reading import DOCUMENTS, Reading, read
from flowise_dev_agent.reasoning.rules.design.selection import provider_for, tool_row
from flowise_dev_agent.reasoning.rules.design.skeleton import Skeleton, Step, alike, found, matches, short
from flowise_dev_agent.reasoning.rules.design.starts import Start, start_of
from flowise_dev_agent.reasoning.rules.design.values import MAX_TOKENS, Said, parameters, without_braces
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTIONS, NUMBER, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import capital, masked, quoted, signals, squeeze, to_number
from flowise_dev_agent.reasoning.rules.render import telling
from flowise_dev_agent.reasoning.wiring import INSIDE
from flowise_dev_agent.redaction import named_secret

_LLM, _AGENT, _SORTER = "llmAgentflow", "agentAgentflow", "conditionAgentAgentflow"
_HUMAN, _REPLY = "humanInputAgentflow", "directReplyAgentflow"
_PREFIXES = {_LLM: "llm", _AGENT: "agent", _SORTER: "conditionAgent"}
_ANY_MODEL = re.compile(r"(?:\w{1,4}\s)?(?:llm|agent|model)s?", re.IGNORECASE)
#: Kinds of steps that come one behind the other; kinds of signals that make a flow one of steps.
_PLAIN = ("", "who", "check", "says", "call", "task")
_STEPWISE = frozenset({"team", "approval", "branch", "loop", "sequence"})
#: What the skeleton is read for, or what the steps themselves are read for.
_READ = _STEPWISE | {"call", "service", "output"}
#: Words of an item of a list; a longer one holds what is to be done with it.
_LONGEST_ITEM = 5
#: Nodes whose results are in no conversation: the step behind them has to be given them.
_SILENT = ("httpAgentflow", "iterationAgentflow")
_SETTINGS = MODEL_PARAMS.union(MAX_TOKENS, ["temperature"])


@dataclass(frozen=True)
class _End:
    """Where a path goes on: an output of a node. `value` is the step that the answer so far is of, another one than the
    node where it is still to be sent, `draft` the model that made it; `apart`: no other path may join it."""

    node: str
    output: str = ""
    value: str = ""
    draft: str = ""
    apart: bool = False


def is_stepwise(reading: Reading) -> bool:
    """Whether the text speaks of steps that a chatflow does not have."""
    text = reading.text[:2_000]
    # A node type asked for by name is a part of a chatflow.
    named = reading.requested or reading.prompt_text or reading.system_text
    kinds = {"team"} if named else _STEPWISE
    # A request to an address is a step, where no tool and no chain makes it.
    kinds = kinds if named or reading.tools or reading.loaders else kinds | {"call"}
    # "At most 5 iterations" is a setting.
    numbers = [span for span in reading.spans if span.params - {"@address"} == span.params and not span.names]
    signs = (match for match, kind in signals(text) if kind in kinds and (kind != "call" or "://" in match.group())
             and not any(one.start < match.end() and match.start() < one.end for one in numbers))  # fmt: skip
    decides = "://" in text and not reading.knowledge and found("decides", text)
    if any(signs) or (not named and (decides or found("form", text))):
        return True
    if named or reading.chat or reading.knowledge or not (steps := (made := Skeleton(text)).steps):
        return False
    several = len([step for step in steps if step.kind in _PLAIN]) > 1
    structure = {step.kind for step in steps} & {"fork", "cases", "each", "again", "approve"}
    in_order = several and any(border == "then" for _, border in made.clauses)
    asked = several and matches("method", text)
    flow = found("a_flow", text) or (steps[0].kind == "who" and "cases" in structure)
    return bool(steps[0].kind == "each" or asked or (flow and (structure or in_order)))


def design_steps(request: PlanRequest, reading: Reading, said: Any, world: World) -> Design:
    """The design of a new agentflow. Raises DeclinedError with what it does not understand."""
    if reading.knowledge and not reading.urls:
        raise world.decline("declined_agentflow_documents")
    start = start_of(reading.text, said.details, request.intent.title, world)
    builder = _Builder(replace(reading, text=start.text), said.details, world, request.intent.title, start)
    # That an answer goes out once a person agrees is what an approval does.
    checked = builder.text
    for clause in builder.made.sent:
        lone = not any(kind == "send" for _, kind in signals(clause))
        checked = checked.replace(clause, "\x00" * len(clause)) if lone else checked
    if start.params.get("scheduleOnTime") and builder.made.steps[:1] and builder.made.steps[0].kind != "call":
        # A model that nobody asks has nothing to work with.
        checked = reading.text
    ignored = _READ if "://" in checked else _READ - {"service"}
    plain = checked
    for span in (one for one in reading.spans if one.params and not one.names and "@address" not in one.params):
        plain = masked(plain, span.start, span.end)
    Account(plain, [], {}, []).check(world, ignored | {"setting", "service", "offline"})
    builder.build()
    schemas = {op.node_id: world.schema(op.node_name) for op in builder.nodes}
    values = [PlannedValue(node_id=op.node_id, param=name, value=value)
              for op in builder.nodes for name, value in op.params.items()]  # fmt: skip
    # Words about documents are words of a step where no document is asked for.
    spans = [span for span in reading.spans if not span.names & DOCUMENTS]
    Account(checked, spans, schemas, values).check(world, ignored - {"loop", "branch", "approval"})
    if lost := builder.lost():
        raise world.decline("declined_parts", parts="; ".join(
            world.say("gap", quote=squeeze(one), why=world.say("gap_place")) for one in lost))  # fmt: skip
    if start.question:
        raise DeclinedError(start.question)
    design = Design(
        goal=telling.short(said.text), operation=request.intent.operation, flow_name=request.intent.title,
        flow_kind="AGENTFLOW", values=values, connections=builder.links,
        nodes=telling.planned(schemas, world, labels={op.node_id: op.label or "" for op in builder.nodes}),
        steps=[world.say("step_variable", name=name) for name in builder.variables],
        credential_requirements=nested_types(builder.nodes, world.store.schemas, world.available),
        parts=[Part(id=f"p{n}", quote=quote, state="covered", nodes=nodes)
               for n, (quote, nodes) in enumerate(builder.parts[:40], 1)],
    )  # fmt: skip
    told = telling.told(design, schemas, Said(reading, prompt_of(reading.text, reading.spans)), world)
    tests = [TestCase(id=f"t{n}", turns=[f"{name}?"]) for n, name in enumerate(builder.branches[:10], 1)] or told.tests
    criteria = [one.model_copy(update={"tests": [test.id for test in tests]}) for one in told.criteria]
    return told.model_copy(update={"tests": tests, "criteria": criteria})


def _is_unread(step: Step) -> bool:
    """Whether a step still holds a condition, or an item that is none: such a flow would do something else."""
    odd = len(step.of.split()) > _LONGEST_ITEM or " " not in step.text or "://" in step.text
    cut = (step.kind == "each" and odd) or (step.kind == "cases" and any(found("modal", way) for way in step.ways))
    cut = cut or (step.kind != "each" and found("each_behind", step.text) is not None)
    return cut or (step.kind not in ("fork", "cases", "call") and found("unread", step.text) is not None)


def _is_known(word: str, told: str) -> bool:
    """Whether a word that stands in no node loses nothing: it is of structure, or a number that a field holds."""
    if re.fullmatch(NUMBER, word):
        return to_number(word) == 1 or re.search(rf"\W{to_number(word):g}\W", told) is not None
    lists = wordset("approving") | wordset("replying") | FUNCTIONS
    return is_empty(word) or word in lists or words("structure").fullmatch(word) is not None


class _Builder:
    def __init__(self, reading: Reading, answer: str, world: World, title: str, start: Start) -> None:
        self._reading, self._answer, self._world, self._start = reading, answer, world, start
        stepwise = bool(start.params) or is_stepwise(reading)
        #: Models that are named for one step ("gpt-4o for the table"), and the text without them.
        self._models, self.text = _models_of(reading)
        plain = re.sub(r"[\s,]*\x00[\x00\s,]*", " ", self.text)
        self.made = Skeleton(plain.lstrip(" .,") if stepwise else "", answer)
        self.made.steps += [] if stepwise else [Step("task", squeeze(reading.text))]
        self._title = "" if stepwise else title
        self._provider = provider_for(reading, world, knowledge=False)
        # A model and its settings that one clause names are for all steps, else each step has its own.
        own = [read(clause, world.store) for clause, _ in self.made.clauses]
        self._shared = Reading("", "", provider=reading.provider) if sum(map(_about_model, own)) > 1 else reading
        # Tools that no clause names are for the steps of agents.
        self._loose = tuple(tool for tool in reading.tools if not any(tool in one.tools for one in own))
        self.nodes, self.links, self.branches = list[AddNode](), list[DesignConnection](), list[str]()
        #: The clauses with their nodes, and what the person has to create on the server.
        self.parts, self.variables = list[tuple[str, list[str]]](), list[str]()
        self._context = self._own_words(self.made.context, reading.tools)
        self._taken = set[str]()

    def build(self) -> None:
        self._ask()
        for end in self._steps(self.made.steps, [_End(self._add("startAgentflow", self._start.params))]):
            if end.value not in ("", end.node):
                self._node(_REPLY, {"directReplyMessage": f"{{{{ {end.value} }}}}"}, [end])
        models = sum(node.node_name in (_LLM, _AGENT) for node in self.nodes)
        said = [(match.group(), kind) for match, kind in signals(self._reading.text)]
        counted = [to_number(one[0]) for text, kind in said
                   if kind == "team" and (one := re.match(NUMBER, text, re.IGNORECASE))]  # fmt: skip
        several = words("team").search(self._reading.text) or any(kind == "sequence" for _, kind in said)
        unused = [what for what in self._models if what not in self._taken]
        # A team of which nobody is named is none.
        if unused or len(self.nodes) < 2 or models < max(2 * bool(several), *counted, 0):
            raise self._declined(self._reading.text[:200])

    def lost(self) -> list[str]:
        """The clauses with a word, a number or a quoted text that no node holds and that does not speak of steps."""
        told = json.dumps([[node.label, node.params] for node in self.nodes], ensure_ascii=False).casefold()
        text = self.text
        set_ = (text[one.start : one.end] for one in self._reading.spans if one.params & _SETTINGS - MODEL_PARAMS)
        # Of two temperatures in one clause only one would be set.
        unset = [said for said in set_ for number in re.findall(NUMBER, said)
                 if not re.search(rf": {to_number(number):g}[,}}]", told)]  # fmt: skip
        for clause, nodes in self.parts:
            called = nodes[-1].startswith("http") and not found("does", re.split(r"https?://\S+", clause)[-1])
            text = text.replace(clause, "\x00" * len(clause)) if called or words("shown").fullmatch(clause) else text
        for one in (one for one in self._reading.spans if not (one.task or one.names & DOCUMENTS)):
            text = masked(text, one.start, one.end)
        plain = pattern("steps", "skeleton").sub(lambda match: "\x00" * len(match.group()), text).casefold()
        gone = [match.start() for match in re.finditer(r"[^\W_][\w'’]*", plain)
                if not (match.group() in told or _is_known(match.group(), told))]  # fmt: skip
        borders = [0, *(match.end() for match in re.finditer(r"[,;:]\s|[.!?](?=\s)|\n", text)), len(text)]
        return unset + [text[start:end].replace("\x00", " ").strip(" ,;:.") for start, end in pairwise(borders)
                        if not self._title and any(start <= place < end for place in gone)]  # fmt: skip

    def _declined(self, clause: str) -> DeclinedError:
        team = words("team").search(self._reading.text) and len(self.made.steps) < 2
        return self._world.decline("declined_team" if team else "declined_steps", clause=squeeze(clause))

    def _ask(self) -> None:
        """Raises DeclinedError: a question about what the skeleton leaves open."""
        steps = self.made.steps
        forks = [step for step in steps if step.kind == "fork"]
        branches = (step.text for step in steps if words("branch_words").search(step.text) and not forks)
        if odd := self.made.odd or next(branches, ""):
            raise self._world.decline("question_branches", clause=odd)
        # Of several branches it must be clear whose answers a person approves.
        unclear = next((step.text for step in steps if step.kind == "approve" and step.of and forks), "")
        if unclear and not words("all_of_them").search(self._answer):
            raise self._world.decline("question_approval", clause=unclear, names=", ".join(forks[0].ways))

    # --- Steps and their order

    def _steps(self, steps: Sequence[Step], ends: list[_End], way: str = "") -> list[_End]:
        """The ends behind these steps."""
        for number, step in enumerate(steps):
            if len(ends) > 1 and any(end.apart for end in ends):
                # What follows paths of different kinds is made once for each.
                return [last for end in ends for last in self._steps(steps[number:], [end], way)]
            if not ends or (not self._title and _is_unread(step)):
                raise self._declined(step.text)
            before = len(self.nodes)
            ends = getattr(self, f"_{step.kind}", self._task)(step, ends, way)
            self.parts.append((step.text, [node.node_id for node in self.nodes[before:]] or [ends[0].node]))
        return ends

    def _node(self, name: str, params: dict[str, Any], ends: Sequence[_End], *, draft: bool = False) -> list[_End]:
        """A new node behind these ends."""
        return self._after(self._add(name, params), ends, draft=draft)

    def _after(self, node: str, ends: Sequence[_End], *, draft: bool = True) -> list[_End]:
        self.links += [DesignConnection(source=end.node, output=end.output, target=node) for end in ends]
        return [_End(node, value=node, draft=node if draft else "", apart=any(end.apart for end in ends))]

    def _task(self, step: Step, ends: list[_End], way: str) -> list[_End]:
        if words("shown").fullmatch(step.text) and all(end.value for end in ends):
            return ends
        kinds = {kind for match, kind in signals(step.text)
                 if kind != "team" or match[0].count(" ") > 3 or re.match(NUMBER, match[0], re.IGNORECASE)}  # fmt: skip
        # On a named branch a fact is a task, too.
        lone = not (found("does", step.text) or (way and not words("human").search(step.text)) or step.kind == "who")
        if not self._title and (lone or found("no_task", step.text) or kinds & {"branch", "loop", "call", "team"}):
            # Structure that was not read is no task of a model.
            raise self._declined(step.text)
        given = [f"{{{{ {end.value} }}}}" for end in ends if end.value.startswith(_SILENT)]
        return self._after(self._step(step.text, way or self._title, agent=bool(way), given="\n\n".join(given)), ends)

    def _says(self, step: Step, ends: list[_End], _way: str) -> list[_End]:
        return self._node(_REPLY, {"directReplyMessage": without_braces(quoted(step.text)[0])}, ends)

    def _call(self, step: Step, ends: list[_End], _way: str) -> list[_End]:
        """A request to an address, with what is said of its headers and its body."""
        address = matches("call", step.text)
        url = address["url"].rstrip(".,;") if address else ""
        if re.search(r"[{}<>]|\.\.", url):
            # Which value goes there the text does not say in a way that a request could take.
            raise self._declined(step.text)
        method, header = found("method", step.text), found("header", step.text.replace(url, " "))
        params: dict[str, Any] = {"method": method.group(1).upper() if method else "GET", "url": url}
        if header:
            bearer = "Bearer " * (header["what"].casefold() == "bearer")
            name = "Authorization" if bearer else header["name"]
            # A secret is kept by the server, as a variable that the person creates.
            variable = f"{bearer}{{{{$vars.{re.sub(r'[^A-Za-z0-9]', '_', name)}}}}}"
            plain = header["value"] and not named_secret(name)
            params["headers"] = [{"key": name, "value": header["value"] if plain else variable}]
            self.variables += [] if plain else [variable]
        if params["method"] in ("POST", "PUT", "PATCH"):
            body = re.search(r"\{.*\}", step.text)
            ends = ends if body else self._as_json("text" if "slack" in url else "message", ends)
            params |= {"bodyType": "json", "body": body.group() if body else f"{{{{ {ends[0].node} }}}}"}
        return self._node("httpAgentflow", params, ends)

    def _as_json(self, name: str, ends: list[_End]) -> list[_End]:
        """What was made so far, else what the person said, as JSON by code: quotes and line breaks stay in it."""
        sent = {name: f"{{{{ {ends[0].value} }}}}" if len(ends) == 1 and ends[0].value else self._asked()}
        if self._start.fields and not ends[0].value:
            sent = {field: f"{{{{ $form.{field} }}}}" for field in self._start.fields}
        rows = [{"variableName": field, "variableValue": value} for field, value in sent.items()]
        code = f"return JSON.stringify({{{', '.join(f'{field}: ${field}' for field in sent)}}});"
        return self._node("customFunctionAgentflow", {
            "customFunctionInputVariables": rows, "customFunctionJavascriptFunction": code}, ends)  # fmt: skip

    def _each(self, step: Step, ends: list[_End], _way: str) -> list[_End]:
        """A model lists the items, and a step inside an iteration does the task with each."""
        item = step.of if step.of.casefold() not in FUNCTIONS else self._world.say("item")
        told = self._world.say("list_items", item=item)
        fields = [{"key": "items", "type": "stringArray", "enumValues": "", "jsonSchema": "", "description": item}]
        [listed] = self._after(self._model_node(told, told, llmStructuredOutput=fields), ends)
        [each] = self._node("iterationAgentflow", {"iterationInput": f"{{{{ {listed.node}.output.items }}}}"}, [listed])
        self._after(self._step(step.text, user="{{ $iteration }}"), [_End(each.node, INSIDE)])
        return [replace(each, draft=listed.node)]

    # --- Branches, people, repetition

    def _fork(self, step: Step, ends: list[_End], _way: str) -> list[_End]:
        """A model that chooses among ways, each with its own steps."""
        other, cases = self._world.say("otherwise"), step.kind == "cases"
        ways = {**step.ways, **({"": step.ways.get("", [])} if cases else {})}
        looked_at = " ".join(dict.fromkeys([self._asked(), *(f"{{{{ {end.value} }}}}" for end in ends if end.value)]))
        told = squeeze(f"{self._world.say('route_case' if cases else 'route')} {step.of}")
        fork = self._choice(told, [name or other for name in ways], looked_at, ends)
        return self._ways(step, ways, [_End(fork, str(number), apart=True) for number in range(len(ways))], ends)

    def _cases(self, step: Step, ends: list[_End], way: str) -> list[_End]:
        """Conditions: numbers are read by a model and compared by the flow, all else a model decides."""
        compared = [found("compare", name) for name in step.ways if name]
        if not all(compared) or len(ends) > 1:
            return self._fork(step, ends, way)
        names = [name for name in step.ways if name]
        fields = [{"key": "value", "type": "number", "enumValues": "", "jsonSchema": "", "description": names[0]}]
        given = f"{{{{ {ends[0].value} }}}}" if ends[0].value else ""
        told = self._world.say("read_number", what=names[0])
        [read_] = self._after(self._model_node(told, told, given=given, llmStructuredOutput=fields), ends)
        value = f"{{{{ {read_.node}.output.value }}}}"
        rows = [{"type": "number", "value1": value, "operation": "larger" if one and one["more"] else "smaller",
                 "value2": f"{to_number(re.findall(NUMBER, name)[-1]):g}"}
                for name, one in zip(names, compared, strict=True)]  # fmt: skip
        fork = self._node("conditionAgentflow", {"conditions": rows}, [read_])[0].node
        starts = [
            replace(ends[0], node=fork, output=str(number), draft="", apart=True) for number in range(len(rows) + 1)
        ]
        return self._ways(step, {**{name: step.ways[name] for name in names}, "": step.ways.get("", [])}, starts, ends)

    def _ways(
        self, step: Step, ways: Mapping[str, Sequence[Step]], starts: Sequence[_End], ends: Sequence[_End]
    ) -> list[_End]:
        made: list[_End] = []
        for (name, steps), start in zip(ways.items(), starts, strict=True):
            topic, first = "" if step.kind == "cases" else short(name), start
            if not (steps or first.value) or (topic and steps[0].kind == "approve"):
                told = self._world.say("expert_in", topic=topic) if topic else self._world.say("plain")
                agent = bool(topic) and not found("model_node", self._reading.text)
                node = self._model_node(topic, told, self._reading.tools if agent else (), agent=agent)
                [first] = self._after(node, [first])
            made += self._steps(steps, [first], topic)
            self.branches.append(short(name) or self._world.say("otherwise"))
        joined = not ends[0].apart and all(one.kind in _PLAIN for way in ways.values() for one in way)
        return [replace(end, apart=False) for end in made] if joined else made

    def _choice(self, told: str, names: Sequence[str], looked_at: str, ends: Sequence[_End]) -> str:
        params = {"conditionAgentInstructions": told, "conditionAgentInput": looked_at,
                  "conditionAgentScenarios": [{"scenario": name} for name in names]}  # fmt: skip
        return self._node(_SORTER, {**self._model(_SORTER, self._shared), **params}, ends)[0].node

    def _asked(self) -> str:
        """The form of the person, or the message, which is empty under its usual name behind an approval."""
        if self._start.fields:
            return self._start.given
        behind = any(node.node_name == _HUMAN for node in self.nodes)
        return "{{ startAgentflow_0.output.question }}" if behind else "{{ question }}"

    def _approve(self, step: Step, ends: list[_End], _way: str) -> list[_End]:
        """A person says yes, or the draft is made again with what they say."""
        made: list[_End] = []
        for end in ends:
            said = without_braces(f"{capital(step.text)}. ") if step.of or not end.draft else ""
            asked = f"{said}{self._world.say('approval') if end.draft else ''}".strip()
            params = {"humanInputDescriptionType": "fixed", "humanInputDescription": asked}
            [human] = self._node(_HUMAN, {**params, "humanInputEnableFeedback": True}, [end])
            going = replace(end, node=human.node, output="proceed", apart=True)
            refused = replace(going, output="reject", draft="")
            if not end.draft and not step.ways.get("yes"):
                [going] = self._node(_REPLY, {"directReplyMessage": self._world.say("approved")}, [going])
            made += self._steps(step.ways.get("yes", []), [going])
            if step.ways.get("no"):
                made += self._steps(step.ways["no"], [refused])
            elif end.draft:
                self._back(end.draft, step.limit, end.value if step.limit else "", refused)
            else:
                self._node(_REPLY, {"directReplyMessage": self._world.say("rejected")}, [refused])
        return made

    def _again(self, step: Step, ends: list[_End], _way: str) -> list[_End]:
        """Back to the last step until a model finds that the condition holds, a limited number of times."""
        end = ends[0]
        if len(ends) > 1 or not end.draft or not step.of:
            raise self._declined(step.text)
        told, names = self._world.say("check", until=step.of), [step.of, self._world.say("not_yet")]
        check = self._choice(told, names, f"{{{{ {end.value} }}}}", ends)
        self._back(end.draft, step.limit, end.value, _End(check, "1"))
        return [replace(end, node=check, output="0", apart=True)]

    def _back(self, draft: str, limit: int | None, value: str, end: _End) -> None:
        label = next(node.label for node in self.nodes if node.node_id == draft)
        counted = {"maxLoopCount": limit or 5, "fallbackMessage": f"{{{{ {value} }}}}"} if value else {}
        self._node("loopAgentflow", {"loopBackToNode": f"{draft}-{label}", **counted}, [end])

    # --- Steps of a model

    def _step(self, clause: str, title: str = "", *, user: str = "", agent: bool = False, given: str = "") -> str:
        """One call of a model, told in the words of the clause."""
        own, who = read(clause, self._world.store), matches("who", clause)
        task = clause[who.end() :] if who else clause
        label = title or (squeeze(who["who"]) if who and not _ANY_MODEL.fullmatch(who["who"]) else task)
        tools = tuple(dict.fromkeys([*own.tools, *(self._loose if own.agent or len(self.made.steps) == 1 else ())]))
        prompt = self._own_words(task, tools)
        if title != self._title and all(is_empty(one) or alike(one, title) for one in re.findall(r"\w{3,}", prompt)):
            prompt = self._world.say("expert_in", topic=title)
        prompt = prompt if re.search(r"\s", prompt) else capital(clause)
        # Who speaks of a model means no agent.
        plain = user or found("model_node", own.text + self._reading.text)
        agent = bool(tools) or (bool(own.agent or who or agent) and not plain)
        named = next((what for what in self._models if alike(what, clause)), "")
        self._taken.add(named)
        model = own if _about_model(own) else self._models.get(named)
        return self._model_node(label, prompt, tools, model, agent=agent, user=user, given=given)

    def _own_words(self, text: str, tools: Sequence[tuple[str, ...]]) -> str:
        """A text without a model, a tool and a value, which are beside the words of a step."""
        mine = CHATS.union(*tools)
        spans = [span for span in read(text, self._world.store).spans
                 if not span.task and (span.names & mine or span.params & _SETTINGS)]  # fmt: skip
        return prompt_of(text, spans, lead=False)

    def _model_node(
        self, label: str, prompt: str, tools: tuple[tuple[str, ...], ...] = (), reading: Reading | None = None, *,
        agent: bool = False, user: str = "", given: str = "", **more: Any,
    ) -> str:  # fmt: skip
        name, window = _AGENT if agent else _LLM, self._reading.numbers.get("memory_window")
        prefix, told = _PREFIXES[name], f"{self._context}\n{prompt}".strip()
        given = "\n\n".join(filter(None, [without_braces(told), self._start.given, given]))
        messages = [{"role": "system", "content": given}]
        messages += [{"role": "user", "content": user}] if user else []
        params: dict[str, Any] = {**self._model(name, reading or self._shared), f"{prefix}Messages": messages}
        if self._reading.no_memory or user:
            params[f"{prefix}EnableMemory"] = False
        elif window:
            params |= {f"{prefix}MemoryType": "windowSize", f"{prefix}MemoryWindowSize": window}
        if tools:
            params["agentTools"] = [tool_row(names, self._reading, self._world) for names in tools]
        return self._add(name, {**params, **more}, _label(label))

    def _model(self, name: str, reading: Reading) -> dict[str, Any]:
        prefix, chat = _PREFIXES[name], (reading.provider or self._provider).chat
        config = parameters(self._world.schema(chat), Said(reading), language=self._world.language)
        return {f"{prefix}Model": chat, f"{prefix}ModelConfig": config}

    def _add(self, name: str, params: dict[str, Any], label: str = "") -> str:
        wanted = label or self._world.schema(name).label
        taken = {node.label for node in self.nodes}
        unique = next(text for n in range(len(taken) + 1) if (text := f"{wanted} {n}" if n else wanted) not in taken)
        node_id = f"{name}_{sum(node.node_name == name for node in self.nodes)}"
        self.nodes.append(AddNode(node_name=name, node_id=node_id, label=unique, params=params))
        return node_id


def _models_of(reading: Reading) -> tuple[dict[str, Reading], str]:
    """Models that are named for one step each ("gpt-4o for the table"), and the text with NULs for that."""
    text, models = reading.text, dict[str, Reading]()
    for span in reading.spans:
        behind = matches("model_for", reading.text[span.end :])
        if behind and span.params & MODEL_PARAMS and not span.denied:
            models[squeeze(behind["what"])] = read(reading.text[span.start : span.end])
            text = masked(text, span.start, span.end + behind.end())
    return (models, text) if len(models) > 1 else ({}, reading.text)


def _about_model(reading: Reading) -> bool:
    return bool(reading.provider or reading.model or reading.numbers)


def _label(text: str) -> str:
    chosen = text.split()[:5]
    while len(chosen) > 1 and chosen[-1].lower() in wordset("loose_ends"):
        chosen.pop()
    return capital(" ".join(chosen)[:40].strip(" ,.;:")) or "Answer"
