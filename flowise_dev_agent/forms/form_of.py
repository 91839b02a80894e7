"""Reverse of the form planner: the form that would make a plan."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from flowise_dev_agent.forms.chatflow import FROM_DOCUMENTS
from flowise_dev_agent.forms.step_plans import (
    AGENT,
    CHOOSE,
    CODE,
    HTTP,
    INSIDE,
    ITEM,
    ITEMS,
    LIST,
    LLM,
    PREFIXES,
    PROCEED,
    REJECT,
    REPLY,
    SENDS,
    SILENT,
    question_of,
    to_sort,
    variable,
)
from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.model_uses import MODEL_FIELDS
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.schemas.designs import PROMPT_FIELDS, DesignForm, stored_form
from flowise_dev_agent.schemas.form_parts import WEEKDAYS
from flowise_dev_agent.schemas.form_steps import APPROVED, MESSAGE, REJECTED, FormStep, Paths
from flowise_dev_agent.schemas.plan import NamedConnection, Plan, PlannedNode

_LOADERS: Final = {
    "pdfFile": "pdf",
    "csvFile": "csv",
    "docxFile": "docx",
    "textFile": "txt",
    "plainText": "text",
    "cheerioWebScraper": "web",
    "documentStore": "store",
    "documentStoreVS": "store",
}
#: Types that follow from the rest of a form.
_FOLLOWS: Final = frozenset(
    {"conversationChain", "toolAgent", "conversationalRetrievalQAChain", "llmChain", "promptTemplate",
     "structuredOutputParser", "inputModerationSimple", "retrieverTool", "memoryVectorStore",
     "recursiveCharacterTextSplitter", "bufferMemory", "bufferWindowMemory"}
)  # fmt: skip
_CHAT_MODEL: Final = re.compile(r"chat[A-Z]|groqChat|azureChat|awsChat")
#: Suffixes of types that are neither tools nor parts of a form.
_OTHER: Final = re.compile(r"(?:Memory|Retriever|Store|Chain|Splitter|Loader|File|Parser|Cache|Template|Agent)$")
_ATOM: Final = r'(?:"(?:[^"\\]|\\.)*"|\$value\d+)'
_JOINED: Final = re.compile(rf"{_ATOM}(?: \+ {_ATOM})*")
_CODE: Final = re.compile(r"return JSON\.stringify\((.*)\);", re.DOTALL)
_VARIABLE: Final = re.compile(r"\{\{ ([^{}]+) \}\}")


def form_of(plan: Plan, requirement: str) -> DesignForm | None:
    """Convert the plan of a new flow to the form that would make it; None if a form cannot express it.

    A declined plan becomes a form with the requirement as its prompt.
    """
    if plan.operation != "create":
        return None
    steps = plan.flow_kind == "AGENTFLOW"
    if plan.declined:
        return stored_form({"name": plan.flow_name, "prompt": requirement})
    if steps:
        return stored_form({"name": plan.flow_name, **found}) if (found := _form_of_steps(plan)) else None
    names = [node.node_name for node in plan.nodes]
    values: dict[str, Any] = {value.param: value.value for value in plan.values}
    form: dict[str, Any] = {"name": plan.flow_name}
    others = [
        name for name in names if name not in _FOLLOWS and name not in _LOADERS and not name.endswith("Embeddings")
    ]
    chats = [name for name in others if _CHAT_MODEL.match(name)]
    tools = [name for name in others if name not in chats]
    if len(chats) != 1 or any(_OTHER.search(name) for name in tools):
        return None
    urls = [value.value for value in plan.values if value.param == "url"]
    texts = [
        value.value for value in plan.values if value.param == "text" and not str(value.value).startswith("[PLACE")
    ]
    task = "llmChain" in names
    prompt = next((str(values[name]) for name in PROMPT_FIELDS if values.get(name)), None)
    prompt = prompt.removesuffix(f"\n\n{FROM_DOCUMENTS}") if prompt else None
    stores = [str(value.value) for value in plan.values if value.param == "selectedStore"]
    form |= {
        "kind": "task" if task else "chat",
        "prompt": prompt.removesuffix("\n\n{text}") if prompt and task else prompt,
        "model": values.get("modelName") or re.sub(r"^chat|Chat", "", chats[0]),
        "temperature": values.get("temperature"),
        "memory": "none" if task else int(values["k"]) if values.get("k") else "all",
        "tools": tools,
        "sources": [
            {"kind": kind, "url": urls.pop(0) if kind == "web" and urls else "",
             "text": texts.pop(0) if kind == "text" and texts else "",
             "store": stores.pop(0) if kind == "store" and stores else ""}
            for name in names if (kind := _LOADERS.get(name))
        ],
        "fields": [
            {"name": row["property"], "type": row["type"], "description": row["description"]}
            for row in values.get("jsonStructure") or []
        ],
        "refused_words": str(values.get("denyList") or "").split("\n") if values.get("denyList") else [],
    }  # fmt: skip
    return stored_form(form)


# --- Flows of steps -----------------------------------------------------------------------------------------------


class _UnsayableError(Exception):
    """Raised if a form cannot express a part of the plan."""


def _form_of_steps(plan: Plan) -> dict[str, Any] | None:
    """Fields of the form that would make this flow of steps, not validated; None if a form cannot express it."""
    try:
        return _Reader(plan).form()
    except (_UnsayableError, AttributeError, KeyError, IndexError, StopIteration, TypeError, ValueError):
        return None


class _Reader:
    """Reads a plan node by node, in the order in which a form makes them."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._nodes = plan, {one.node_id: one for one in plan.nodes}
        self._values: dict[str, dict[str, Any]] = {one.node_id: {} for one in plan.nodes}
        for one in plan.values:
            self._values[one.node_id][one.param] = one.value
        inside = [one for one in plan.connections if one.output == INSIDE]
        self._inner = {one.source: one.target for one in inside}
        self._into = {one.target: one for one in plan.connections if one not in inside}
        #: Nodes that belong to another node: functions that fill in requests, list items or process one item, and final
        #: replies with approved answers.
        #: one, and answers that are sent at the end.
        self._beside = {*self._inner.values()}
        self._steps, self._ends, self._paths = list[dict[str, Any]](), list[str](), Paths()
        self._named, self._models = set[int](), list[tuple[int, str, float | None]]()
        self._labels: dict[str, str] = {}

    def form(self) -> dict[str, Any]:
        plan, ids = self._plan, [*self._nodes]
        (start,) = (id_ for id_ in ids if self._nodes[id_].node_name == v2.START)
        self._start, self._asks = start, any(one.node_name == v2.HUMAN_INPUT for one in plan.nodes)
        self._need(not (plan.removals or plan.disconnections or plan.document_stores or plan.mappings or plan.uploads))
        self._need(all(one.mode == "set" for one in plan.values))
        # Each node follows exactly one other, or is inside one.
        self._need({start, *self._into, *self._inner.values()} == {*ids})
        self._need(len(plan.connections) == len(self._into) + len(self._inner) == len(ids) - 1)
        found = self._start_fields(self._values[start])
        for id_, one in self._nodes.items():
            self._beside |= {self._into[id_].source} if self._is_made_of(one) else set()
        for id_ in ids:
            if id_ not in {start, *self._beside}:
                self._step(self._nodes[id_])
        first = self._models[0][1:] if self._models else ("", None)
        for number, model, temperature in self._models:
            self._need(temperature is not None or first[1] is None)
            self._steps[number] |= {"model": model} if model != first[0] else {}
            self._steps[number] |= {"temperature": temperature} if temperature != first[1] else {}
        self._leave_out_titles()
        more = {"model": first[0]} if first[0] else {}
        return {"kind": "steps", "temperature": first[1], "steps": self._steps, **more, **found}

    def _need(self, *holds: object) -> None:
        if not all(holds):
            raise _UnsayableError

    # --- Nodes

    def _start_fields(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of the form about the start."""
        match values.get("startInputType", "chatInput"):
            case "formInput":
                rows: list[dict[str, Any]] = values["formInputTypes"]
                self._labels = {row["name"]: row["label"] for row in rows}
                self._need(values["formTitle"] == values["formDescription"] == self._plan.flow_name, len(values) == 4)
                # A label equal to the name means no label.
                labels = ["" if row["label"] == row["name"] else row["label"] for row in rows]
                options = [[one["option"] for one in row.get("addOptions", [])] for row in rows]
                return {"start": "form", "inputs": [
                    {"name": row["name"], "type": row["type"], "label": label, "options": chosen}
                    for row, label, chosen in zip(rows, labels, options, strict=True)]}  # fmt: skip
            case "scheduleInput":
                days = str(values.get("scheduleOnDayOfWeek") or "")
                plain = {"scheduleType": "visualPicker", "scheduleFrequency": "weekly" if days else "daily",
                         "scheduleInputMode": "text"}  # fmt: skip
                self._need(plain.items() <= values.items(), len(values) == 7 + bool(days))
                return {"start": "schedule", "schedule": {
                    "time": values["scheduleOnTime"], "timezone": values["scheduleTimezone"],
                    "text": values["scheduleDefaultInput"],
                    "weekdays": [WEEKDAYS[int(day) - 1] for day in days.split(",") if day]}}  # fmt: skip
            case _:
                self._need({**values, "startInputType": "chatInput"} == {"startInputType": "chatInput"})
                return {}

    def _is_made_of(self, node: PlannedNode) -> bool:
        """True if the preceding node exists only for this one."""
        before, values = self._into.get(node.node_id), self._values[node.node_id]
        if before is None:
            return False
        lists = values.get("iterationInput") == variable(f"{before.source}.output.items")
        return lists or (self._nodes[before.source].node_name == CODE and values.get("body") == variable(before.source))

    def _step(self, node: PlannedNode) -> None:
        values, id_ = self._values[node.node_id], node.node_id
        made = self._into[id_].source if self._is_made_of(node) else ""
        step: dict[str, Any] = {"title": node.label}
        place = self._place(self._into[made or id_], step)
        answer = self._ends[place] if place >= 0 else ""
        match node.node_name:
            case name if name in (LLM, AGENT):
                step |= self._answer(name, values, answer)
            case v2.CONDITION_AGENT:
                step |= self._sort(values, answer)
            case v2.HUMAN_INPUT:
                plain = {"humanInputDescriptionType": "fixed", "humanInputEnableFeedback": True}
                self._need(plain.items() <= values.items(), len(values) == 3)
                step |= {"kind": "approve", "question": self._text(values["humanInputDescription"])}
            case v2.ITERATION:
                step |= self._each(self._values[made], self._values[self._inner[id_]], values, answer)
            case name if name == HTTP:
                step |= self._call(made, values)
            case name if name == REPLY:
                sent: str = values["directReplyMessage"]
                if answer and sent == variable(answer) and re.fullmatch(rf"{SENDS}(?: \d+)?", node.label):
                    # The final reply with an approved answer, which forms make by themselves.
                    return
                step |= {"kind": "reply", "message": "" if answer and sent == variable(answer) else self._text(sent)}
            case v2.LOOP:
                step |= self._repeat(values)
            case _:
                raise _UnsayableError
        self._paths.take(len(self._steps), FormStep.model_validate(step))
        self._steps.append(step)
        self._ends.append(id_)

    def _place(self, link: NamedConnection, step: dict[str, Any]) -> int:
        """Set the branch of a step; returns the index of the step with its latest answer."""
        behind = self._ends.index(link.source) if link.source != self._start else -1
        former = self._steps[behind]["kind"] if behind >= 0 else ""
        way = ""
        if former == "sort":
            way = self._steps[behind]["branches"][int(link.output)]
        elif former == "approve":
            way = {PROCEED: APPROVED, "0": APPROVED, REJECT: REJECTED, "1": REJECTED}[link.output]
        ends = [(branch, self._paths.end(branch)) for branch in ("", way, *self._paths.branches)]
        branch, end = next((one, end) for one, end in ends if end and (end.behind, end.branch) == (behind, way))
        step |= {"branch": branch} if branch else {}
        return end.answer

    def _answer(self, name: str, values: Mapping[str, Any], answer: str) -> dict[str, Any]:
        step: dict[str, Any] = {"kind": "answer"}
        (message,) = values[f"{PREFIXES[name]}Messages"]
        rows: list[dict[str, Any]] = values.get("agentTools", [])
        self._need(message["role"] == "system", len(values) == 3 + bool(rows), (name == AGENT) == bool(rows))
        said: str = message["content"]
        if answer and self._nodes[answer].node_name in SILENT:
            given = f"\n\n{variable(answer)}"
            self._need(variable(answer) in said)
            said = said.removesuffix(given)
        step |= {"prompt": self._text(said)} | ({"tools": [*map(self._tool, rows)]} if rows else {})
        return self._of_model(step, PREFIXES[name], values)

    def _tool(self, row: Mapping[str, Any]) -> str:
        settings: dict[str, Any] = row.get("agentSelectedToolConfig") or {}
        self._need(all(isinstance(one, list) or stands_in(one) for one in settings.values()), len(row) <= 2)
        return row["agentSelectedTool"]

    def _of_model(self, step: dict[str, Any], prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Record the model of a step."""
        chat, settings = values[f"{prefix}Model"], dict[str, Any](values[f"{prefix}ModelConfig"])
        names = [settings.pop(name) for name in MODEL_FIELDS if name in settings]
        temperature = settings.pop("temperature", None)
        self._need(all(map(stands_in, settings.values())))
        self._models.append((len(self._steps), names[0] if names else re.sub(r"^chat|Chat", "", chat), temperature))
        return step

    def _sort(self, values: Mapping[str, Any], answer: str) -> dict[str, Any]:
        asked = to_sort(self._labels, question_of(self._start, asks=self._asks), answer)
        self._need(values["conditionAgentInput"] == asked, len(values) == 5)
        advice: str = values["conditionAgentInstructions"]
        rows: list[dict[str, str]] = values["conditionAgentScenarios"]
        step = {"kind": "sort", "prompt": "" if advice == CHOOSE else self._text(advice),
                "branches": [row["scenario"] for row in rows]}  # fmt: skip
        return self._of_model(step, "conditionAgent", values)

    def _each(
        self, lists: Mapping[str, Any], does: Mapping[str, Any], values: Mapping[str, Any], answer: str
    ) -> dict[str, Any]:
        told, each = lists["llmMessages"], does["llmMessages"]
        given = f"\n\n{variable(answer)}" if answer and self._nodes[answer].node_name in SILENT else ""
        self._need(told == [{"role": "system", "content": LIST + given}], lists["llmStructuredOutput"] == ITEMS)
        self._need(each[1:] == [{"role": "user", "content": ITEM}], does["llmEnableMemory"] is False)
        same = all(lists[name] == does[name] for name in ("llmModel", "llmModelConfig"))
        self._need(same, len(values) == 1, len(lists) == len(does) == 4)
        return self._of_model({"kind": "each", "prompt": self._text(each[0]["content"])}, "llm", lists)

    def _call(self, made: str, values: Mapping[str, Any]) -> dict[str, Any]:
        step = {"kind": "call", "method": values["method"], "url": self._text(values["url"])}
        self._need(len(values) == 4 if made else len(values) == 2)
        if made:
            code = self._values[made]
            names = [self._text(row["variableValue"])[1:-1] for row in code["customFunctionInputVariables"]]
            body = _body_of(code["customFunctionJavascriptFunction"], names)
            self._need(values["bodyType"] == "json", len(code) == 2, body is not None)
            step["body"] = body
        return step

    def _repeat(self, values: Mapping[str, Any]) -> dict[str, Any]:
        back = v2.loop_target_id(values["loopBackToNode"])
        self._need(values["fallbackMessage"] == variable(back), len(values) == 3)
        return {"kind": "repeat", "back_to": self._title(back), "times": int(values["maxLoopCount"]) - 1}

    # --- Texts and titles

    def _text(self, said: str) -> str:
        """The text with its variables as names in braces."""
        return _VARIABLE.sub(lambda one: f"{{{self._name(one[1])}}}", said)

    def _name(self, name: str) -> str:
        if name in ("question", question_of(self._start, asks=True)) and not self._labels:
            return MESSAGE
        field = name.removeprefix("$form.")
        return field if name != field and field in self._labels else self._title(name)

    def _title(self, id_: str) -> str:
        number = self._ends.index(id_)
        self._named.add(number)
        return self._steps[number]["title"]

    def _leave_out_titles(self) -> None:
        """Remove default titles that no other step refers to."""
        for number, step in enumerate(self._steps):
            own = FormStep.model_validate({**step, "title": ""}).label
            if number not in self._named and re.fullmatch(rf"{re.escape(own)}(?: \d+)?", step["title"] or own):
                step["title"] = ""


def _body_of(code: str, names: Sequence[str]) -> str | None:
    """The JSON body from which such code was made, with these names in braces; None for other code."""

    def text(joined: re.Match[str]) -> str:
        atoms = re.findall(_ATOM, joined[0])
        return json.dumps(
            "".join(f"{{{names[int(one[6:]) - 1]}}}" if one[0] == "$" else json.loads(one) for one in atoms)
        )

    try:
        match = _CODE.fullmatch(code)
        return json.dumps(json.loads(_JOINED.sub(text, match[1])), ensure_ascii=False) if match else None
    except (ValueError, IndexError, RecursionError):
        return None
