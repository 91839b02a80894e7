"""The nodes of a flow of steps: each step of a skeleton becomes nodes behind the end of the path so far."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from flowise_dev_agent.contracts.plan import DesignConnection, Part
from flowise_dev_agent.patch import AddNode
from flowise_dev_agent.reasoning.rules.design.comparing import SCORE, Comparison
from flowise_dev_agent.reasoning.rules.design.details import Field, find_fields
from flowise_dev_agent.reasoning.rules.design.kinds import alike, found, short, step_named, straight
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty, prompt_of, without
from flowise_dev_agent.reasoning.rules.design.providers import CHATS, MODEL_PARAMS, model_ids
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.selection import provider_for, tool_row
from flowise_dev_agent.reasoning.rules.design.settings import Setting
from flowise_dev_agent.reasoning.rules.design.skeleton import Skeleton, Step
from flowise_dev_agent.reasoning.rules.design.starts import Start
from flowise_dev_agent.reasoning.rules.design.values import MAX_TOKENS, Said, parameters, without_braces
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import NUMBER, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import URL, capital, signals, squeeze, to_number
from flowise_dev_agent.reasoning.wiring import INSIDE
from flowise_dev_agent.redaction import named_secret

_LLM, _AGENT, _SORTER, _HTTP = "llmAgentflow", "agentAgentflow", "conditionAgentAgentflow", "httpAgentflow"
_HUMAN, _REPLY = "humanInputAgentflow", "directReplyAgentflow"
_MODELS, _PREFIXES = (_LLM, _AGENT), {_LLM: "llm", _AGENT: "agent", _SORTER: "conditionAgent"}
_STRUCTURED = pattern("fields", "structured_end")
_QUOTED = re.compile(r"[\"“„«'](?P<said>.+)[\"”“»']\W*$")
_ANY_MODEL = re.compile(r"(?:\w{1,9}\s)?(?:llm|mod[eè]l\w*|ai|ki|ia)s?|(?:\w{1,4}\s)?agente?n?s?", re.IGNORECASE)
#: Words of an item of a list; a longer one holds what is to be done with it.
_LONGEST_ITEM, _LONGEST_LABEL = 5, 40
#: Steps that a model does.
_TASKS = ("", "task", "who")
#: Nodes whose results are in no conversation: the step behind them has to be given them.
_SILENT = (_HTTP, "iterationAgentflow")
#: What a critic says of a draft, as a field and in the state of the flow.
_REMARKS = "remarks"
_SETTINGS = MODEL_PARAMS.union(MAX_TOKENS, ["temperature"])


@dataclass(frozen=True)
class _End:
    """Where a path goes on: an output of a node. `value` is the step that the answer so far is of, another one than the
    node where it is still to be sent, `fields` what the step `reader` read."""

    node: str
    output: str = ""
    value: str = ""
    fields: tuple[str, ...] = ()
    reader: str = ""


class Builder:
    def __init__(
        self, reading: Reading, world: World, start: Start, title: str, settings: Sequence[Setting], *, listed: bool,
        steps: bool,
    ) -> None:  # fmt: skip
        self._reading, self._world, self._start, self.text = reading, world, start, reading.text
        plain = re.sub(r"(?<!\w)(?:\d+[.)])?[\s,]*\x00[\x00\s,]*", " ", self.text)
        self.made = Skeleton(plain.lstrip(" .,") if steps else "", start.fields, listed=listed)
        self.made.steps += [] if steps else [Step("task", squeeze(reading.text))]
        self._title = "" if steps else title
        self._provider = provider_for(reading, world, knowledge=False)
        self._settings = [(one, self._meant(one)) for one in settings]
        shared = [one for one, steps in self._settings if not (steps or one.of_sorter)]
        self._shared = Reading("", "", provider=reading.provider) if settings else reading
        self._shared = _merged([self._shared, *(one.reading for one in shared)])
        self.nodes, self.links, self._inside = list[AddNode](), list[DesignConnection](), list[str]()
        #: The clauses with their nodes, and what the person has to create on the server.
        self.parts, self.variables = dict[str, list[str]](), list[str]()
        self._rules = ".\n".join(filter(None, (self._own_words(one).rstrip(".") for one in self.made.rules)))

    def build(self) -> None:
        if self.made.odd:
            raise self._declined(*self.made.odd)
        if len({*model_ids(" ".join(one.said for one, steps in self._settings if not (steps or one.of_sorter)))}) > 1:
            raise self._declined(*(one.said for one, _ in self._settings))
        self._path(self.made.steps, _End(self._add("startAgentflow", self._start.params)))
        if "scheduleType" in self._start.params and len(self.nodes) > 1 and self.nodes[1].node_name == _LLM:
            # Nobody gives it what it works on.
            raise self._declined(self.made.steps[0].text)
        models = sum(node.node_name in _MODELS for node in self.nodes)
        said = [re.match(NUMBER, match[0], re.IGNORECASE) for match, kind in signals(self.text) if kind == "team"]
        counted, several = [to_number(one[0]) for one in said if one], words("team").search(self.text)
        # A team of which nobody is named is none.
        if len(self.nodes) < 2 or models < max(2 * bool(several), *counted, 0):
            raise self._declined(self.made.clauses[0][0] if len(self.made.clauses) == 1 else self.text[:200])

    def account(self) -> list[Part]:
        """The clauses with their nodes; what the models are told besides, and what of it is not understood."""
        models = [node.node_id for node in self.nodes if node.node_name in _MODELS]
        lost = {one: self._world.say("part_told" if one in self.made.rules else "part_missed")
                for one in self.made.told if self._own_words(one)}  # fmt: skip
        beside = [*self.made.rules, *self.made.sent, *self.made.told, *(one.said for one, _ in self._settings)]
        # What is none of these says what is done on a branch, or that each has its own.
        placed = [one for one, _ in self.made.clauses if not {one, capital(one)} & {*beside}]
        begins = {self._start.said: [self.nodes[0].node_id]} if self._start.said else {}
        told = {**dict.fromkeys([*placed, *beside], models), **self.parts, **begins}
        return [Part(id=f"p{n}", quote=squeeze(quote), nodes=nodes, reason=lost.get(quote, ""),
                     state="not_understood" if quote in lost else "covered")
                for n, (quote, nodes) in enumerate([*told.items()][:40], 1)]  # fmt: skip

    def _declined(self, *odd: str) -> DeclinedError:
        """With the clauses that are not understood."""
        alone = words("team").search(self.text) and len(self.made.steps) < 2
        said = "»; «".join(dict.fromkeys(squeeze(one.replace("\x00", " ")).lstrip(" .") for one in odd))
        return self._world.decline("declined_team" if alone else "declined_steps", clause=said)

    # --- Steps and their order

    def _path(self, steps: Sequence[Step], end: _End | None, way: str = "") -> None:
        """The nodes of these steps, and the answer at their end."""
        for step, after in zip_longest(steps, steps[1:]):
            before, last = len(self.nodes), end
            if last is None:
                raise self._declined(step.text)
            if step.kind in _TASKS:
                end = self._task(step, last, way, after)
            else:
                end = getattr(self, f"_{step.kind}")(step, last)
            for said in filter(None, [step.text, step.of if step.kind in _TASKS else ""]):
                self.parts.setdefault(said, []).extend([one.node_id for one in self.nodes[before:]] or [last.node])
        if end and end.value and end.node != end.value:
            self._node(_REPLY, {"directReplyMessage": f"{{{{ {end.value} }}}}"}, end)

    def _node(self, name: str, params: dict[str, Any], end: _End) -> _End:
        """The end of a new node behind this end."""
        return self._after(self._add(name, params), end)

    def _after(self, node: str, end: _End, fields: Sequence[Field] = ()) -> _End:
        self.links.append(DesignConnection(source=end.node, output=end.output, target=node))
        read, reader = (tuple(one.name for one in fields), node) if fields else (end.fields, end.reader)
        return _End(node, value=node, fields=read, reader=reader)

    def _task(self, step: Step, end: _End, way: str, after: Step | None) -> _End:
        # Without a memory nothing of an earlier step is known.
        unknown = end.value.startswith(_SILENT) or self._reading.no_memory
        # What is read from a text to be sent, or to be compared, has a place of its own for each field.
        judged = self._judged(step, after, end) if after and after.kind == "case" else []
        reads = found("extracting", step.text) and after and after.kind != "each"
        fields = [*(find_fields(step.text) if judged or reads else ()), *judged]
        given = f"{{{{ {end.value} }}}}" if end.value and (unknown or judged) else ""
        given = "\n\n".join(filter(None, [step.of, given]))
        node = self._step(step.text, way or self._title, agent=bool(way), given=given, fields=fields)
        made = self._after(node, end, fields)
        # What a critic says of a draft is not what is shown in the end.
        return replace(made, value=end.value) if judged else made

    def _judged(self, step: Step, fork: Step, end: _End) -> list[Field]:
        """What a step has to read out for the conditions behind it, where it speaks of that."""
        about = [test.field for test in fork.tests.values() if not self._on_form(test)]
        speaks = any(alike(one.description, step.text) or alike(one.name, step.text) for one in about)
        back = any(one.kind == "back" for way in fork.ways.values() for one in way)
        judges = end.value and about and (back or about[0].kind == "boolean" or about[0].name == SCORE)
        if not about or not (speaks or judges):
            return []
        remarks = [Field(_REMARKS, "string", self._world.say("better"))] if back else []
        return [*{one.name: one for one in about}.values(), *remarks]

    def _on_form(self, test: Comparison) -> str:
        """The field of the form that a condition compares."""
        fields = self._start.fields.items()
        return next((name for name, one in fields if alike(test.about, one.description)), "")

    def _show(self, step: Step, end: _End) -> _End:
        """What was made so far is the answer, or what is named of it."""
        value = self._named(step.text, end)
        if not value:
            raise self._declined(step.text)
        more = [one for one in end.fields if end.reader != value and alike(one.replace("_", " "), step.text)]
        if not more:
            return replace(end, value=value)
        # "The text plus the score": what a step read beside it is shown, too.
        shown = "\n".join(f"{capital(one)}: {{{{ {end.reader}.output.{one} }}}}" for one in more)
        return self._node(_REPLY, {"directReplyMessage": f"{{{{ {value} }}}}\n\n{shown}"}, end)

    def _back(self, step: Step, end: _End) -> None:
        """A draft is made again, with what a critic said of it."""
        target = self._again(step, self._made_before(step, end), end)
        if _REMARKS in end.fields:
            critic = next(node for node in self.nodes if node.node_id == end.reader)
            critic.params["llmUpdateState"] = [{"key": _REMARKS, "value": f"{{{{ output.{_REMARKS} }}}}"}]
            self.nodes[0].params["startState"] = [{"key": _REMARKS, "value": ""}]
            told = self._world.say("use_remarks", value=f"{{{{ $flow.state.{_REMARKS} }}}}")
            messages: Any = target.params[f"{_PREFIXES[target.node_name]}Messages"]
            messages[0]["content"] += f"\n\n{told}"

    def _again(self, step: Step, made: str, end: _End) -> AddNode:
        """The node that made something, which makes it again."""
        target = next((node for node in self.nodes if node.node_id == made), None)
        if target is None:
            raise self._declined(step.text)
        limit = {"maxLoopCount": step.limit, "fallbackMessage": f"{{{{ {end.value} }}}}"} if step.limit else {}
        self._node("loopAgentflow", {"loopBackToNode": f"{target.node_id}-{target.label}", **limit}, end)
        return target

    def _made_before(self, step: Step, end: _End) -> str:
        """The step that a text sends back to: by its number, or by words that it has alone, else the draft."""
        models = [node.node_id for node in self.nodes if node.node_name in _MODELS and node.node_id != end.reader]
        if 0 < (number := step_named(step.text)) <= len(models):
            return models[number - 1]
        return self._named(pattern("steps", "anew").sub(" ", pattern("steps", "times").sub(" ", step.text)), end)

    def _named(self, said: str, end: _End) -> str:
        """The step of a model that has words of this text alone, else the one that the answer so far is of."""
        models = [node.node_id for node in self.nodes if node.node_name in _MODELS
                  and node.node_id not in (end.reader, *self._inside)]  # fmt: skip
        named = {id_ for text, ids in self.parts.items() for id_ in ids if id_ in models
                 and any(alike(word, text) for word in re.findall(r"\w{4,}", said) if not is_empty(word))}  # fmt: skip
        return named.pop() if len(named) == 1 else end.value

    def _says(self, step: Step, end: _End) -> None:
        said = _QUOTED.search(step.text)
        self._node(_REPLY, {"directReplyMessage": without_braces((said["said"] if said else step.text).strip())}, end)

    def _call(self, step: Step, end: _End) -> _End:
        """A request to an address, with what is said of its headers and its body."""
        url = URL.findall(step.text)[0]
        rest, methods, gaps = step.text.replace(url, " "), pattern("steps", "method"), re.findall(r"\{(\w+)\}", url)
        header, body = found("header", rest), re.search(r"\{.*\}", rest)
        behind = methods.sub(" ", step.text.partition(url)[2].replace(header[0] if header else "\x00", " "))
        # What is sent to an address is the answer so far.
        sends = found("hands_over", step.text.partition(url)[0])
        method, *others = {one.upper() for one in methods.findall(rest)} or {"POST" if sends else "GET"}
        unread = not {*gaps} <= {*self._start.fields}
        odd = re.search(r"[{}<>]|\.\.", re.sub(r"\{\w+\}", "", url))
        if odd or others or found("does", behind) or (unread and method != "GET"):
            # Which value goes where the text does not say in a way that a request could take.
            raise self._declined(step.text)
        if unread:
            # What the address needs a model reads from the message.
            told = self._world.say("read_values", what=", ".join(gaps))
            end = self._after(self._model_node(told, told, fields=[Field(one, "string", one) for one in gaps]), end)
        for gap in gaps:
            place = f"$form.{gap}" if gap in self._start.fields else f"{end.node}.output.{gap}"
            url = url.replace(f"{{{gap}}}", f"{{{{ {place} }}}}")
        params: dict[str, Any] = {"method": method, "url": url}
        if header:
            bearer = "Bearer " * (header["what"].casefold() == "bearer")
            name = "Authorization" if bearer else header["name"]
            # A secret is kept by the server, as a variable that the person creates.
            variable = f"{bearer}{{{{$vars.{re.sub(r'[^A-Za-z0-9]', '_', name)}}}}}"
            plain = header["value"] and not named_secret(name)
            params["headers"] = [{"key": name, "value": header["value"] if plain else variable}]
            self.variables += [] if plain or variable in self.variables else [variable]
        if method in ("POST", "PUT", "PATCH"):
            # "{"text": ...}" says what the result is called.
            named = re.fullmatch(r"\{\W*(\w+)\W*\}", body[0]) if body else None
            if not body or named:
                end = self._as_json(named[1] if named else "text" if "slack" in url else "message", end)
            params |= {"bodyType": "json", "body": body[0] if body and not named else f"{{{{ {end.node} }}}}"}
        return self._node(_HTTP, params, end)

    def _as_json(self, name: str, end: _End) -> _End:
        """What was made so far, else what the person said, as JSON by code: quotes and line breaks stay in it."""
        sent = {name: f"{{{{ {end.value} }}}}" if end.value else self._asked()}
        if self._start.fields and not end.value:
            sent = {field: f"{{{{ $form.{field} }}}}" for field in self._start.fields}
        elif end.fields and end.reader == end.value:
            sent = {field: f"{{{{ {end.value}.output.{field} }}}}" for field in end.fields}
        return self._node("customFunctionAgentflow", as_json_by_code(sent), end)

    def _each(self, step: Step, end: _End) -> _End:
        """A model lists the items, and a step inside an iteration does the task with each."""
        # What comes after all of them is no part of what is done with each.
        if len(step.of.split()) > _LONGEST_ITEM or "://" in step.text or re.search(r"[.!?]\s\w", step.text):
            raise self._declined(step.text)
        told = self._world.say("list_items", item=step.of) if step.of else self._world.say("list_entries")
        fields, last = [Field("items", "stringArray", step.of or told)], self.nodes[-1]
        if end.node == end.value == last.node_id and last.node_name == _LLM and not end.fields:
            # The step before makes the list.
            last.params["llmStructuredOutput"], listed = _rows(fields), end
        else:
            listed = self._after(self._model_node(told, told, fields=fields), end)
        each = self._node("iterationAgentflow", {"iterationInput": f"{{{{ {listed.node}.output.items }}}}"}, listed)
        self._inside.append(self._step(step.text, user="{{ $iteration }}"))
        self._after(self._inside[-1], _End(each.node, INSIDE))
        return each

    # --- Branches and people

    def _sort(self, step: Step, end: _End) -> None:
        """A model that chooses among ways, each with its own steps."""
        ways = dict(sorted(step.ways.items(), key=lambda way: not way[0]))
        rows: list[Any] = [{"scenario": name or self._world.say("otherwise")} for name in ways]
        so_far = f"\n\n{{{{ {end.value} }}}}" if end.value else ""
        params = {"conditionAgentInstructions": self._world.say("route_case" if step.kind == "case" else "route"),
                  "conditionAgentInput": f"{self._asked()}{so_far}", "conditionAgentScenarios": rows}  # fmt: skip
        model = _merged([self._shared, *(self._small(one) for one, _ in self._settings if one.of_sorter)])
        fork = self._node(_SORTER, {**self._model(_SORTER, model), **params}, end).node
        for number, (name, steps) in enumerate(ways.items()):
            topic, way = "" if step.kind == "case" else short(name), replace(end, node=fork, output=str(number))
            if not steps or steps[0].kind == "approve":
                told, agent = self._world.say("expert_in", topic=topic), not found("model_node", self._reading.text)
                way = self._after(self._model_node(topic, told, self._reading.tools, agent=agent), way)
            self._path(steps, way, topic)

    def _case(self, step: Step, end: _End) -> None:
        """A condition that a model looks at, or one on what a form or a step gives."""
        if not step.tests:
            return self._sort(step, end)
        read = [one.field for one in step.tests.values() if not self._on_form(one) and one.field.name not in end.fields]
        back = any(one.kind == "back" for way in step.ways.values() for one in way)
        if any(back or one.kind == "boolean" for one in read) or "" not in step.ways:
            # Nobody says whether it is good, or what happens else.
            raise self._declined(step.text)
        if read:
            told = self._world.say("read_values", what=", ".join(one.description for one in read))
            given = f"{{{{ {end.value} }}}}" if end.value else ""
            node = self._model_node(read[0].name, told, given=given, fields=read)
            end = replace(self._after(node, end, read), value=end.value)
        places = [(one, self._on_form(one), f"{end.reader}.output.{one.field.name}") for one in step.tests.values()]
        numbers = {name for one, name, _ in places if one.field.kind == "number"}
        form: Any = self.nodes[0].params.get("formInputTypes", [])
        for row in (row for row in form if row["name"] in numbers):
            row["type"] = "number"
        rows = [one.row(f"{{{{ {f'$form.{name}' if name else read_out} }}}}", form=bool(name))
                for one, name, read_out in places]  # fmt: skip
        fork = self._node("conditionAgentflow", {"conditions": rows}, end).node
        for number, name in enumerate([*step.tests, ""]):
            self._path(step.ways[name], replace(end, node=fork, output=str(number)))
        return None

    def _asked(self) -> str:
        """The form of the person, or the message, which is empty under its usual name behind an approval."""
        if self._start.fields:
            return self._start.given
        behind = any(node.node_name == _HUMAN for node in self.nodes)
        return "{{ startAgentflow_0.output.question }}" if behind else "{{ question }}"

    def _approve(self, step: Step, end: _End) -> _End:
        """A person says yes, or the draft is made again with what they say."""
        said = without_braces(f"{capital(step.text)}. ") if step.of else ""
        params = {"humanInputDescriptionType": "fixed", "humanInputEnableFeedback": True,
                  "humanInputDescription": f"{said}{self._world.say('approval')}"}  # fmt: skip
        human = self._node(_HUMAN, params, end)
        going, refused = (replace(end, node=human.node, output=one) for one in ("proceed", "reject"))
        if "no" in step.ways:
            back = any(one.kind == "back" for one in step.ways["no"])
            self._path(step.ways["no"], refused if back else replace(refused, value=""))
            return going
        self._again(step, end.value, refused)
        return going

    # --- Steps of a model

    def _step(self, said: str, title: str = "", *, user: str = "", agent: bool = False, given: str = "",
              fields: Sequence[Field] = ()) -> str:  # fmt: skip
        """One call of a model, told in the words of the clause."""
        clause = straight(said)
        own, who = read(clause, self._world.store), found("who", clause)
        task = clause[who.end() :] if who else clause
        named = squeeze(who["who"] or "") if who else ""
        role = "" if _ANY_MODEL.fullmatch(named) else named
        prompt = self._own_words(task)
        if title != self._title and all(is_empty(one) or alike(one, title) for one in re.findall(r"\w{3,}", prompt)):
            prompt = self._world.say("expert_in", topic=title)
        prompt = prompt if re.search(r"\s", prompt) else capital(clause)
        # Who speaks of a model means no agent.
        plain = user or fields or found("model_node", own.text + self._reading.text)
        agent = bool(own.tools and not fields) or (bool(own.agent or role or agent) and not plain)
        meant = [self._small(one) for one, steps in self._settings if said in steps]
        model = own if own.provider or own.model or own.numbers else None
        model = _merged([self._shared, *([model] if model else []), *meant]) if meant else model
        return self._model_node(title or role or prompt, prompt, own.tools, model, agent=agent, user=user, given=given,
                                fields=fields)  # fmt: skip

    def _own_words(self, text: str) -> str:
        """A text without a model, a tool and a value, which are beside the words of a step."""
        own = read(text, self._world.store)
        mine = CHATS.union(*own.tools, *self._reading.tools)
        # "Gpt-4o writes": who does it is the model.
        does = max((span.end for span in own.spans if not text[: span.start].strip()
                    and (span.names & CHATS or span.params & _SETTINGS)), default=0)  # fmt: skip
        text = _STRUCTURED.sub("", " " * does + text[does:])
        spans = [span for span in own.spans if not span.task and (span.names & mine or span.params & _SETTINGS)]
        return prompt_of(text, spans, lead=False)

    def _model_node(
        self, label: str, prompt: str, tools: tuple[tuple[str, ...], ...] = (), reading: Reading | None = None, *,
        agent: bool = False, user: str = "", given: str = "", fields: Sequence[Field] = (),
    ) -> str:  # fmt: skip
        name, window = _AGENT if agent else _LLM, self._reading.numbers.get("memory_window")
        prefix, told = _PREFIXES[name], f"{self._rules}\n{prompt}".strip()
        given = "\n\n".join(filter(None, [without_braces(told), self._start.given, given]))
        messages = [{"role": "system", "content": given}]
        messages += [{"role": "user", "content": user}] if user else []
        params: dict[str, Any] = {**self._model(name, reading or self._shared), f"{prefix}Messages": messages}
        if self._reading.no_memory or user:
            params[f"{prefix}EnableMemory"] = False
        elif window:
            params |= {f"{prefix}MemoryType": "windowSize", f"{prefix}MemoryWindowSize": window}
        if tools and agent:
            params["agentTools"] = [tool_row(names, self._reading, self._world) for names in tools]
        if fields:
            params["llmStructuredOutput"] = _rows(fields)
        return self._add(name, params, _label(label))

    def _meant(self, setting: Setting) -> list[str]:
        """The steps that a setting is for, those that speak of it first; none where it is for all."""
        steps = {one.text: one.text.split() for one in _all(self.made.steps) if one.kind in _TASKS}
        places = {text: place for text, said in steps.items() for word in setting.about
                  for place, other in reversed([*enumerate(said)]) if alike(word, other)}  # fmt: skip
        return [text for text, place in places.items() if place == min(places.values())]

    def _small(self, setting: Setting) -> Reading:
        return setting.small((self._shared.provider or self._provider).chat)

    def _model(self, name: str, reading: Reading) -> dict[str, Any]:
        prefix, chat = _PREFIXES[name], (reading.provider or self._provider).chat
        config = parameters(self._world.schema(chat), Said(reading), language=self._world.language)
        return {f"{prefix}Model": chat, f"{prefix}ModelConfig": config}

    def _add(self, name: str, params: dict[str, Any], label: str = "") -> str:
        wanted = label or self._world.schema(name).label
        same = sum(re.sub(r" \d+$", "", node.label or "") == wanted for node in self.nodes)
        node_id = f"{name}_{sum(node.node_name == name for node in self.nodes)}"
        label = f"{wanted} {same}" if same else wanted
        self.nodes.append(AddNode(node_name=name, node_id=node_id, label=label, params=params))
        return node_id


def _all(steps: Sequence[Step]) -> Iterator[Step]:
    """All steps, on whatever way."""
    for step in steps:
        yield step
        for way in step.ways.values():
            yield from _all(way)


def _merged(readings: Sequence[Reading]) -> Reading:
    """A model and its settings, the later ones first."""
    first, *more = readings
    for one in more:
        named = {"provider": one.provider, "model": one.model} if one.provider or one.model else {}
        first = replace(first, **named, numbers={**first.numbers, **one.numbers})
    return first


def _rows(fields: Sequence[Field]) -> list[Any]:
    """What a model has to read out."""
    return [{"key": one.name, "type": one.kind, "enumValues": "", "jsonSchema": "", "description": one.description}
            for one in fields]  # fmt: skip


def as_json_by_code(sent: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a node that makes JSON of values by their names: quotes and line breaks stay in it."""
    rows = [{"variableName": name, "variableValue": value} for name, value in sent.items()]
    code = f"return JSON.stringify({{{', '.join(f'{name}: ${name}' for name in sent)}}});"
    return {"customFunctionInputVariables": rows, "customFunctionJavascriptFunction": code}


def _label(text: str) -> str:
    said = re.sub(r"[\"“”„«»]", "", text).split()[:5]
    while len(" ".join(said)) > _LONGEST_LABEL and len(said) > 1:
        said.pop()
    chosen = without(" ".join(said), wordset("loose_ends"), front=False)
    return capital(chosen[:_LONGEST_LABEL].strip(" ,.;:")) or "Answer"
