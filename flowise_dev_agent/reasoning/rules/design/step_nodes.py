"""The nodes of a flow of steps: each step of a skeleton becomes nodes behind the end of the path so far."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Any

from flowise_dev_agent.contracts.plan import DesignConnection, Part
from flowise_dev_agent.patch import AddNode
from flowise_dev_agent.reasoning.rules.design.around import Setting, Start
from flowise_dev_agent.reasoning.rules.design.kinds import alike, found, own_words, short
from flowise_dev_agent.reasoning.rules.design.prompt import is_empty, prompt_of, without
from flowise_dev_agent.reasoning.rules.design.providers import CHATS, MODEL_PARAMS
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.selection import provider_for, tool_row
from flowise_dev_agent.reasoning.rules.design.skeleton import Skeleton, Step, all_steps
from flowise_dev_agent.reasoning.rules.design.values import MAX_TOKENS, Said, parameters, without_braces
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import NUMBER, pattern, words, wordset
from flowise_dev_agent.reasoning.rules.language.text import URL, capital, quoted, signals, squeeze, to_number
from flowise_dev_agent.reasoning.wiring import INSIDE

_LLM, _AGENT, _SORTER, _HTTP = "llmAgentflow", "agentAgentflow", "conditionAgentAgentflow", "httpAgentflow"
_MODELS, _PREFIXES = (_LLM, _AGENT), {_LLM: "llm", _AGENT: "agent", _SORTER: "conditionAgent"}
#: Of the last ones the results are in no conversation: the step behind them has to be given them.
_HUMAN, _REPLY, _SILENT = "humanInputAgentflow", "directReplyAgentflow", (_HTTP, "iterationAgentflow")
_SETTINGS, _LONGEST_LABEL, _MOST_NODES = MODEL_PARAMS.union(MAX_TOKENS, ["temperature"]), 40, 25


@dataclass(frozen=True)
class _End:
    """Where a path goes on: an output of a node. `value` is the step that the answer so far is of, another one than the
    node where it is still to be sent."""

    node: str
    output: str = ""
    value: str = ""


class Builder:
    def __init__(
        self, made: Skeleton, reading: Reading, start: Start, settings: Sequence[Setting], world: World
    ) -> None:
        self._made, self._reading, self._start, self._world = made, reading, start, world
        self._asked = start.given or "{{ question }}"
        self._settings = [(one, self._meant(one)) for one in settings]
        # A model that is named for some steps alone is not for the others.
        some = reading.provider in [one.reading.provider for one, steps in self._settings if steps]
        shared = Reading("", "", provider=None if some else reading.provider) if settings else reading
        self._provider = provider_for(shared if some else reading, world, knowledge=False)
        self._shared = _merged([shared, *(one.reading for one, steps in self._settings if not steps)])
        #: The clauses with their nodes; `_inside` of a repetition.
        self.nodes, self.links, self.parts = list[AddNode](), list[DesignConnection](), dict[str, list[str]]()
        self._inside = list[str]()
        self._rules = ".\n".join(filter(None, (self._own_words(one).rstrip(".") for one in self._made.rules)))

    def build(self) -> None:
        # Some are for a step that nobody speaks of.
        lost = [one.said for one, steps in self._settings if one.about and not steps]
        if odd := self._made.odd or lost:
            raise self._declined(*odd)
        self._path(self._made.steps, _End(self._add("startAgentflow", self._start.params)))
        if "scheduleType" in self._start.params and len(self.nodes) > 1 and self.nodes[1].node_name == _LLM:
            # Nobody gives it what it works on.
            raise self._declined(self._made.steps[0].text)
        # "In three steps", "two agents": a team of which nobody is named is none, and what is said is told to somebody.
        least = {kind: to_number(one[0]) for match, kind in signals(self._reading.text)
                 if (one := re.search(rf"(?i)(?<![^\W_]){NUMBER}", match[0]))}  # fmt: skip
        models = len(self._models())
        few = models < max(2 * bool(words("team").search(self._reading.text)), least.get("team", 0))
        few = few or len(self.nodes) <= least.get("sequence", 1) or (self._made.rules and not models)
        if few or len(self.nodes) > _MOST_NODES:
            raise self._declined(self._reading.text[:200])

    def account(self) -> list[Part]:
        """The clauses with their nodes; what is said beside the steps is told to the models."""
        told = {self._start.said: [self.nodes[0].node_id]} if self._start.said else {}
        beside = [*(one.said for one, _ in self._settings), *self._made.sent, *self._made.rules, *self.parts]
        for quote in [*(one.said for one in self._made.pieces), *beside]:
            if not any(quote.casefold() in other.casefold() for other in told):
                told[quote] = [id_ for text, ids in self.parts.items() if text in quote for id_ in ids]
        return [Part(id=f"p{n}", quote=squeeze(quote), nodes=nodes or self._models(), state="covered")
                for n, (quote, nodes) in enumerate([*told.items()][:40], 1)]  # fmt: skip

    def _declined(self, *odd: str) -> DeclinedError:
        """With the clauses that are not understood."""
        alone = words("team").search(self._reading.text) and len(self._made.steps) < 2
        said = "»; «".join(dict.fromkeys(squeeze(one.replace("\x00", " ")).lstrip(" .") for one in odd))
        return self._world.decline("declined_team" if alone else "declined_steps", clause=said)

    def _models(self) -> list[str]:
        return [node.node_id for node in self.nodes if node.node_name in _MODELS]

    # --- Steps and their order

    def _path(self, steps: Sequence[Step], end: _End | None, way: str = "") -> None:
        """The nodes of these steps, and the answer at their end."""
        for step in steps:
            before, last = len(self.nodes), end
            if last is None:
                raise self._declined(step.text)
            end = self._task(step, last, way) if step.kind == "task" else getattr(self, f"_{step.kind}")(step, last)
            made = [one.node_id for one in self.nodes[before:]] or [last.node]
            self.parts |= {step.text: [*self.parts.get(step.text, []), *made]} if step.text else {}
        if end and end.value and end.node != end.value:
            self._node(_REPLY, {"directReplyMessage": f"{{{{ {end.value} }}}}"}, end)

    def _node(self, name: str, params: dict[str, Any], end: _End) -> _End:
        """The end of a new node behind this end."""
        return self._after(self._add(name, params), end)

    def _after(self, node: str, end: _End) -> _End:
        self.links.append(DesignConnection(source=end.node, output=end.output, target=node))
        return _End(node, value=node)

    def _task(self, step: Step, end: _End, way: str) -> _End:
        # Without a memory nothing of an earlier step is known.
        unknown = end.value.startswith(_SILENT) or self._reading.no_memory
        given = f"{{{{ {end.value} }}}}" if end.value and unknown else ""
        return self._after(self._step(step.text, way, given=given), end)

    def _says(self, step: Step, end: _End) -> None:
        said = quoted(step.text) or re.findall(r"(?<!\w)[\"“„«'](.+)[\"”“»']", step.text) or [step.text]
        self._node(_REPLY, {"directReplyMessage": without_braces(said[-1].strip())}, end)

    def _call(self, step: Step, end: _End) -> _End:
        """A request to an address. What is sent is the answer so far, else what the person gave; `{"text": ...}` says
        what it is called."""
        url, methods, told = (*URL.findall(step.text), self._made.address)[0], pattern("steps", "method"), step.text
        # Who adds a secret by hand leaves its place open.
        mine, body = found("own_hands", self._reading.text), re.search(r"\{\W*(\w+)\W*\}", told.replace(url, " "))
        gaps, plain = re.findall(r"\{(\w+)\}", url), told.replace(body[0], " ") if body else told
        # What is in brackets behind an address says what it is like, and what it is done for is no step.
        front, _, behind = pattern("steps", "so_that").sub("", plain).partition(url or "\n")
        behind = re.sub(r"\([^()]*\)", lambda one: " ".join(methods.findall(one[0])), behind)
        sends = "POST" if found("hands_over", front) else "GET"
        method, *others = {one.upper() for one in methods.findall(front + behind)} or {sends}
        behind = methods.sub(" ", behind)
        unread = not {*gaps} <= {*self._start.fields}
        # Which value goes where, and what secret goes along, is not said in a way that a request could take.
        odd = re.search(r"[{}<>]|\.\.", re.sub(r"\{\w+\}", "", url) + behind) or (found("header", told) and not mine)
        odd = odd or others or found("two_values", front) or found("does", behind)
        if odd or not url or (unread and method != "GET"):
            raise self._declined(step.text)
        if unread:
            # What the address needs a model reads from the message.
            end = self._reads(self._world.say("read_values", what=", ".join(gaps)), dict.fromkeys(gaps, "string"), end)
        for gap in gaps:
            place = f"$form.{gap}" if gap in self._start.fields else f"{end.node}.output.{gap}"
            url = url.replace(f"{{{gap}}}", f"{{{{ {place} }}}}")
        params: dict[str, Any] = {"method": method, "url": url}
        if method in ("POST", "PUT", "PATCH"):
            name = body[1] if body else "text" if found("channel", told) else "message"
            sent = {name: f"{{{{ {end.value} }}}}" if end.value else self._asked}
            if self._start.fields and not end.value:
                sent = {field: f"{{{{ $form.{field} }}}}" for field in self._start.fields}
            end = self._node("customFunctionAgentflow", as_json_by_code(sent), end)
            params |= {"bodyType": "json", "body": f"{{{{ {end.node} }}}}"}
        return self._node(_HTTP, params, end)

    def _each(self, step: Step, end: _End) -> _End:
        """A model lists the items, and a step inside an iteration does the task with each."""
        told = self._world.say("list_items", item=step.of) if step.of else self._world.say("list_entries")
        items = self._reads(told, {"items": "stringArray"}, end)
        each = self._node("iterationAgentflow", {"iterationInput": f"{{{{ {items.node}.output.items }}}}"}, items)
        self._inside.append(self._step(step.text, user="{{ $iteration }}"))
        self._after(self._inside[-1], _End(each.node, INSIDE))
        return each

    # --- Branches, people, and what is made again

    def _sort(self, step: Step, end: _End) -> None:
        """A model that chooses among ways, each with its own steps."""
        ways = dict(sorted(step.ways.items(), key=lambda way: not way[0]))
        rows: list[Any] = [{"scenario": name or self._world.say("otherwise")} for name in ways]
        so_far = f"\n\n{{{{ {end.value} }}}}" if end.value else ""
        params = {"conditionAgentInstructions": self._world.say("route_case" if step.kind == "case" else "route"),
                  "conditionAgentInput": f"{self._asked}{so_far}", "conditionAgentScenarios": rows}  # fmt: skip
        fork = self._node(_SORTER, {**self._model(_SORTER, self._shared), **params}, end).node
        # Where a draft is made again until it is good, it is the answer in the end, and not what was said of it.
        again = step.kind == "case" and step.of
        value = self._draft(step.of, end.value if len(self._models()) == 1 else "") if again else end.value
        for number, (name, steps) in enumerate(ways.items()):
            topic, way = "" if step.kind == "case" else short(name), _End(fork, str(number), value)
            if topic and (not steps or steps[0].kind == "approve"):
                told, agent = self._world.say("expert_in", topic=topic), not found("model_node", self._reading.text)
                way = self._after(self._model_node(topic, told, None, self._reading.tools, agent=agent), way)
            self._path(steps, way, topic)

    _case = _sort

    def _end(self, step: Step, end: _End) -> None:
        """Nothing more is done."""

    def _approve(self, step: Step, end: _End) -> _End:
        """A person says yes, or the draft is made again with what they say."""
        said = without_braces(f"{capital(step.text)}. ") if step.of else ""
        params = {"humanInputDescriptionType": "fixed", "humanInputEnableFeedback": True,
                  "humanInputDescription": f"{said}{self._world.say('approval')}"}  # fmt: skip
        human, refused = self._node(_HUMAN, params, end).node, step.ways["no"]
        draft = self._draft(refused[0].text, end.value) if refused[0].kind == "back" else ""
        self._path(refused, _End(human, "reject", draft))
        return replace(end, node=human, output="proceed")

    def _back(self, step: Step, end: _End) -> None:
        """What was made is made again."""
        target = next(node for node in self.nodes if node.node_id == end.value)
        limit = {"maxLoopCount": step.limit, "fallbackMessage": f"{{{{ {end.value} }}}}"} if step.limit else {}
        self._node("loopAgentflow", {"loopBackToNode": f"{target.node_id}-{target.label}", **limit}, end)

    def _draft(self, said: str, last: str) -> str:
        """The step that is made again: the first, the one of an item of a list or with a word that it has alone, else
        the `last` one, if there is one."""
        models, place = [one for one in self._models() if one not in self._inside], found("back_to", said)
        which, items = place["which"] if place else "", self._made.items
        item = "".join(items[int(which) - 1 : int(which)]) if which.isdigit() else ""
        # "Back to step 1", where the sentences count them; a place that is named comes before what goes back there.
        counted = place[0].split(maxsplit=1)[1].casefold() if place else ""
        texts = [(text, id_) for text, ids in self.parts.items() for id_ in ids if id_ in models]
        named = {id_ for text, id_ in texts if which.isdigit() and (text in item or counted in text.casefold())}
        own = " ".join(word for word in own_words(said) if not is_empty(word))
        for one in () if which.isdigit() else (which, own):
            named = named or {id_ for text, id_ in texts if alike(one, text)}
        first = words("first").fullmatch(which) or (not named and found("the_writer", which))
        made = models[:1] if first else [*named] if len(named) == 1 else [last] * bool(last)
        if not made:
            raise self._declined(said)
        return made[0]

    # --- Steps of a model

    def _step(self, said: str, way: str = "", *, user: str = "", given: str = "") -> str:
        """One call of a model, told in the words of the clause; `way` is the branch that it is on."""
        own, who = read(said, self._world.store), found("who", said)
        task = f"{who['verb'] or ''}{said[who.end() :]}" if who else said
        role, prompt = squeeze((who and who["role"]) or ""), self._own_words(task)
        if way and all(is_empty(one) or alike(one, way) for one in re.findall(r"\w{3,}", prompt)):
            prompt = f"{self._world.say('expert_in', topic=way)}\n{capital(task)}"
        prompt = prompt if re.search(r"\s", prompt) else capital(said)
        # Who speaks of a model means no agent.
        plain = user or found("model_node", own.text + self._reading.text)
        agent = bool(own.tools) or (bool(own.agent or role or way) and not plain)
        meant = [one.reading for one, steps in self._settings if said in steps]
        model = own if own.provider or own.model or own.numbers else None
        model = _merged([self._shared, *([model] if model else []), *meant]) if meant else model
        return self._model_node(way or role or prompt, prompt, model, own.tools, agent=agent, user=user, given=given)

    def _own_words(self, text: str) -> str:
        """A text without a model, a tool and a value, which are beside the words of a step."""
        own = read(text, self._world.store)
        mine = CHATS.union(*own.tools, *self._reading.tools)
        # "Gpt-4o writes": who does it is the model.
        does = max((span.end for span in own.spans if not text[: span.start].strip()
                    and (span.names & CHATS or span.params & _SETTINGS)), default=0)  # fmt: skip
        spans = [span for span in own.spans if not span.task and (span.names & mine or span.params & _SETTINGS)]
        return prompt_of(" " * does + text[does:], spans, lead=False)

    def _reads(self, told: str, fields: Mapping[str, str], end: _End) -> _End:
        """A model that gives the values of these fields, by their types."""
        made = self._after(self._model_node(told, told), end)
        self.nodes[-1].params["llmStructuredOutput"] = [
            {"key": name, "type": kind, "enumValues": "", "jsonSchema": "", "description": name}
            for name, kind in fields.items()]  # fmt: skip
        return made

    def _model_node(
        self, label: str, prompt: str, reading: Reading | None = None, tools: tuple[tuple[str, ...], ...] = (), *,
        agent: bool = False, user: str = "", given: str = "",
    ) -> str:  # fmt: skip
        name = _AGENT if agent else _LLM
        prefix, told = _PREFIXES[name], without_braces(f"{self._rules}\n{prompt}".strip())
        messages = [{"role": "system", "content": "\n\n".join(filter(None, [told, self._start.given, given]))}]
        messages += [{"role": "user", "content": user}] if user else []
        params: dict[str, Any] = {**self._model(name, reading or self._shared), f"{prefix}Messages": messages}
        if self._reading.no_memory or user:
            params[f"{prefix}EnableMemory"] = False
        if tools and agent:
            params["agentTools"] = [tool_row(names, self._reading, self._world) for names in tools]
        return self._add(name, params, _label(label))

    def _meant(self, setting: Setting) -> list[str]:
        """The steps that a setting is for, those that speak of it first; none where it is for all."""
        steps = {one.text: one.text.split() for one in all_steps(self._made.steps) if one.kind in ("task", "each")}
        places = {text: place for text, said in steps.items() for word in setting.about
                  for place, other in reversed([*enumerate(said)]) if alike(word, other)}  # fmt: skip
        return [text for text, place in places.items() if place == min(places.values())]

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


def _merged(readings: Sequence[Reading]) -> Reading:
    """A model and its settings, the later ones first."""
    first, *more = readings
    for one in more:
        named = {"provider": one.provider, "model": one.model} if one.provider or one.model else {}
        first = replace(first, **named, numbers={**first.numbers, **one.numbers})
    return first


def as_json_by_code(sent: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a node that makes JSON of values by their names: quotes and line breaks stay in it."""
    rows = [{"variableName": name, "variableValue": value} for name, value in sent.items()]
    code = f"return JSON.stringify({{{', '.join(f'{name}: ${name}' for name in sent)}}});"
    return {"customFunctionInputVariables": rows, "customFunctionJavascriptFunction": code}


def _label(text: str) -> str:
    said = shorten(" ".join(re.sub(r"[\"“”„«»]", "", text).split()[:5]), _LONGEST_LABEL, placeholder="")
    return capital(without(said, wordset("loose_ends"), front=False)) or "Answer"
