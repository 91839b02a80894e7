"""Plans of step forms: each step becomes nodes after the step that it follows."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from itertools import count
from typing import Any, Final

from flowise_dev_agent.forms import step_plans
from flowise_dev_agent.forms.defaults import check_filled, parameters
from flowise_dev_agent.forms.offer import DeclinedError, Offer
from flowise_dev_agent.forms.providers import default_provider, named_model
from flowise_dev_agent.forms.step_plans import AGENT, CODE, HTTP, LLM, PREFIXES, REPLY, variable
from flowise_dev_agent.knowledge.credential_requirements import nested_types
from flowise_dev_agent.patch import AddNode
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.schemas import form_steps
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.form_steps import FormStep, Named, Place
from flowise_dev_agent.schemas.plan import NamedConnection, Part, Plan, PlannedNode, PlannedValue
from flowise_dev_agent.texts import text

#: Key of the tool's type in a row of a list of tools.
_TOOL: Final = "agentSelectedTool"
#: Titles of a step's auxiliary nodes.
_LISTS, _FILLS, _DOES = "List the items", "Fill in the request", "Do it with one item"
_MOST_VALUES, _MOST_OPS = 100, 60
#: An opening brace, also as an HTML entity, before a character that could form a second brace.
_BRACE = re.compile(r"(\{|&#0*123;?|&#x0*7b;?|&(?:lcub|lbrace);)(?=[<{&])", re.IGNORECASE)


def steps_plan(form: DesignForm, offer: Offer) -> Plan:
    """Build the plan of a form of the kind `steps`, without its texts.

    Raises:
        DeclinedError: this Flowise lacks something that the form names.
    """
    builder = _Builder(form, offer)
    builder.build()
    values = [PlannedValue(node_id=op.node_id, param=name, value=value)
              for op in builder.nodes for name, value in op.params.items()]  # fmt: skip
    models = sum(name.endswith("ModelConfig") for op in builder.nodes for name in op.params)
    if len(values) > _MOST_VALUES or len(builder.nodes) + len(builder.links) + models > _MOST_OPS:
        raise DeclinedError(text("declined.too_large"))
    return Plan(
        goal="", operation="create", flow_name=form.name,
        flow_kind="AGENTFLOW", values=values, connections=builder.links,
        nodes=[PlannedNode(node_id=op.node_id, node_name=op.node_name, purpose="", label=op.label or "")
               for op in builder.nodes],
        credential_requirements=nested_types(builder.nodes, offer.store.schemas, offer.credentials),
        parts=builder.parts(),
    )  # fmt: skip


class _Builder:
    """Builder of a form's nodes and links, step by step."""

    def __init__(self, form: DesignForm, offer: Offer) -> None:
        self._form, self._offer, self._tree = form, offer, form_steps.tree_of(form.steps)
        self.nodes, self.links = list[AddNode](), list[NamedConnection]()
        #: Node ids of each step, and the last node of each step.
        self._made, self._ends = list[list[str]](), list[str]()

    def build(self) -> None:
        self._begin = self._add(v2.START, self._start_params(), self._offer.schema(v2.START).label)
        asks = any(step.kind == "approve" for step in self._form.steps)
        self._question = step_plans.question_of(self._begin, asks=asks)
        for step, place in zip(self._form.steps, self._tree.places, strict=True):
            before = len(self.nodes)
            self._ends.append(getattr(self, f"_{step.kind}")(step, place))
            self._made.append([node.node_id for node in self.nodes[before:]])
        for place in self._tree.ends:
            if place.branch == form_steps.APPROVED:
                sent = {"directReplyMessage": variable(self._answer_at(place))}
                self._behind(self._way(place), REPLY, sent, step_plans.SENDS)

    def parts(self) -> list[Part]:
        """Parts of the form (its start unless it is a message, and each step) with their nodes."""
        quotes = self._form.quotes
        made = [[self._begin]] * (len(quotes) - len(self._made)) + self._made
        return [Part(id=f"p{n}", quote=quote, nodes=nodes, state="covered")
                for n, (quote, nodes) in enumerate(zip(quotes, made, strict=True), 1)]  # fmt: skip

    # --- Steps: each method returns the last node of its step

    def _answer(self, step: FormStep, place: Place) -> str:
        name = AGENT if step.tools else LLM
        params = self._model_params(name, step, f"{self._text(step.prompt)}{self._unsaid_answer(step, place)}")
        if step.tools:
            # A tool that is named twice counts once.
            asked = dict.fromkeys(self._offer.tool(one).name for one in step.tools)
            params["agentTools"] = [self._tool_row(one) for one in asked]
        return self._behind(self._way(place), name, params)

    def _sort(self, step: FormStep, place: Place) -> str:
        labels = {one.name: _apart(one.label or one.name) for one in self._form.inputs}
        params = self._model(v2.CONDITION_AGENT, step) | {
            "conditionAgentInstructions": self._text(step.prompt) or step_plans.CHOOSE,
            "conditionAgentInput": step_plans.to_sort(labels, self._question, self._answer_at(place)),
            "conditionAgentScenarios": [{"scenario": name} for name in step.branches],
        }
        return self._behind(self._way(place), v2.CONDITION_AGENT, params)

    def _approve(self, step: FormStep, place: Place) -> str:
        params = {"humanInputDescriptionType": "fixed", "humanInputEnableFeedback": True,
                  "humanInputDescription": self._text(step.question)}  # fmt: skip
        return self._behind(self._way(place), v2.HUMAN_INPUT, params)

    def _call(self, step: FormStep, place: Place) -> str:
        way, params = self._way(place), {"method": step.method, "url": self._text(step.url)}
        if step.body:
            code, named = step_plans.code_of(form_steps.json_of(step.body), self._known())
            rows: list[Any] = [{"variableName": f"value{n}", "variableValue": self._variable(one)}
                               for n, one in enumerate(named, 1)]  # fmt: skip
            made = {"customFunctionInputVariables": rows, "customFunctionJavascriptFunction": code}
            way = (self._behind(way, CODE, made, _FILLS), "")
            params |= {"bodyType": "json", "body": variable(way[0])}
        return self._behind(way, HTTP, params)

    def _each(self, step: FormStep, place: Place) -> str:
        """Add a model that lists the items, and an iteration with a model that does the task for each item."""
        told = self._model_params(LLM, step, f"{step_plans.LIST}{self._unsaid_answer(step, place)}") | {
            "llmStructuredOutput": step_plans.ITEMS
        }
        lists = self._behind(self._way(place), LLM, told, _LISTS)
        each = self._behind((lists, ""), v2.ITERATION, {"iterationInput": variable(f"{lists}.output.items")})
        does = self._model_params(LLM, step, self._text(step.prompt), {"role": "user", "content": step_plans.ITEM})
        self._behind((each, step_plans.INSIDE), LLM, does | {"llmEnableMemory": False}, _DOES)
        return each

    def _reply(self, step: FormStep, place: Place) -> str:
        message = self._text(step.message) or variable(self._answer_at(place))
        return self._behind(self._way(place), REPLY, {"directReplyMessage": message})

    def _repeat(self, step: FormStep, place: Place) -> str:
        titles = [form_steps.key(one.title) for one in self._form.steps]
        back = self._ends[titles.index(form_steps.key(step.back_to))]
        label = next(node.label for node in self.nodes if node.node_id == back)
        # Flowise counts the first run too.
        params = {"loopBackToNode": f"{back}-{label}", "maxLoopCount": step.times + 1,
                  "fallbackMessage": variable(back)}  # fmt: skip
        return self._behind(self._way(place), v2.LOOP, params)

    # --- Places and texts

    def _way(self, place: Place) -> tuple[str, str]:
        """The node and its output after which a step comes."""
        if place.behind < 0:
            return self._begin, ""
        branches = self._form.steps[place.behind].branches
        outputs = {form_steps.APPROVED: step_plans.PROCEED, form_steps.REJECTED: step_plans.REJECT}
        outputs |= {name: str(number) for number, name in enumerate(branches)}
        return self._ends[place.behind], outputs.get(place.branch, "")

    def _answer_at(self, place: Place) -> str:
        """The node with the latest answer; "" if there is none."""
        return self._ends[place.answer] if place.answer >= 0 else ""

    def _unsaid_answer(self, step: FormStep, place: Place) -> str:
        """The variable of the latest answer, if no conversation contains it and the step does not name it."""
        answer, said = self._answer_at(place), form_steps.pieces(step.prompt, self._known())
        named = any(isinstance(one, Named) and one.step == place.answer for one in said)
        silent = answer.rpartition("_")[0] in step_plans.SILENT
        return f"\n\n{variable(answer)}" if silent and not named else ""

    def _known(self) -> dict[str, Named]:
        """Names available to the current step."""
        return form_steps.names_at(len(self._ends), self._form.steps, self._tree, self._form.fields_named)

    def _text(self, text: str) -> str:
        """A text of the form with its names as Flowise variables; other braces are made harmless."""
        said = form_steps.pieces(text, self._known())
        return "".join(self._variable(one) if isinstance(one, Named) else _apart(one) for one in said)

    def _variable(self, named: Named) -> str:
        place = self._ends[named.step] if named.step >= 0 else f"$form.{named.field}" if named.field else self._question
        return variable(place)

    # --- Nodes

    def _model_params(self, name: str, step: FormStep, told: str, *more: dict[str, str]) -> dict[str, Any]:
        """Fields of a model step with this system message."""
        return self._model(name, step) | {f"{PREFIXES[name]}Messages": [{"role": "system", "content": told}, *more]}

    def _model(self, name: str, step: FormStep) -> dict[str, Any]:
        """The model of a step, else of the flow, with its settings."""
        form, offer, prefix = self._form, self._offer, PREFIXES[name]
        provider, model = named_model(step.model or form.model, offer)
        temperature = form.temperature if step.temperature is None else step.temperature
        chat = (provider or default_provider(offer, with_embeddings=False)).chat
        asked = {"modelName": model, "model": model, "temperature": temperature}
        settings = parameters(offer.schema(chat), {key: value for key, value in asked.items() if value is not None})
        return {f"{prefix}Model": chat, f"{prefix}ModelConfig": settings}

    def _tool_row(self, name: str) -> Mapping[str, Any]:
        """A row of the list of tools. Raises DeclinedError."""
        schema = self._offer.schema(name)
        settings = parameters(schema, {})
        check_filled([(schema, settings)])
        return {_TOOL: schema.name, f"{_TOOL}Config": settings}

    def _start_params(self) -> dict[str, Any]:
        """Fields of the start node. Raises DeclinedError for a time zone unknown to Flowise."""
        form, name = self._form, _apart(self._form.name)
        if form.start == "form":
            rows = [{"type": one.type, "label": _apart(one.label or one.name), "name": one.name,
                     **({"addOptions": [{"option": option} for option in one.options]} if one.options else {})}
                    for one in form.inputs]  # fmt: skip
            return {"startInputType": "formInput", "formTitle": name, "formDescription": name, "formInputTypes": rows}
        if (schedule := form.schedule) is None:
            return {}
        zones = next(one.options for one in self._offer.schema(v2.START).params if one.name == "scheduleTimezone")
        if schedule.timezone not in zones:
            near = get_close_matches(schedule.timezone, zones) or ["Europe/Berlin"]
            raise DeclinedError(text("declined.no_timezone", timezone=schedule.timezone, names=near))
        days = {"scheduleOnDayOfWeek": schedule.days} if schedule.weekdays else {}
        return {"startInputType": "scheduleInput", "scheduleType": "visualPicker",
                "scheduleFrequency": "weekly" if days else "daily", **days, "scheduleOnTime": schedule.time,
                "scheduleTimezone": schedule.timezone, "scheduleInputMode": "text",
                "scheduleDefaultInput": _apart(schedule.text)}  # fmt: skip

    def _behind(self, way: tuple[str, str], name: str, params: dict[str, Any], beside: str = "") -> str:
        """Add a node after an output of another one: the step's own, or an auxiliary one with the title `beside`."""
        node = self._add(name, params, beside)
        self.links.append(NamedConnection(source=way[0], output=way[1], target=node))
        return node

    def _add(self, name: str, params: dict[str, Any], beside: str) -> str:
        own = None if beside else self._form.steps[len(self._ends)]
        # The titles given by the person stay unchanged.
        taken = {step.title for step in self._form.steps if step is not own}
        taken |= {node.label or "" for node in self.nodes}
        titles = (f"{own.label if own else beside} {n}".removesuffix(" 0") for n in count())
        node_id = f"{name}_{sum(node.node_name == name for node in self.nodes)}"
        label = next(title for title in titles if title not in taken)
        self.nodes.append(AddNode(node_name=name, node_id=node_id, label=label, params=params))
        return node_id


def _apart(text: str) -> str:
    """Separate adjacent braces, in any notation that Flowise reads: together they would be a variable."""
    return _BRACE.sub(r"\1 ", text)
