"""The form of a flow: what is wrong with one, and the plan of a session as the form that would make it."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from flowise_dev_agent.forms.form_of import form_of
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.schemas.designs import DesignForm, FormField, FormSource, stored_form
from flowise_dev_agent.schemas.form_parts import WEEKDAYS
from flowise_dev_agent.schemas.form_steps import KINDS, FormStep, Paths, Place, names_at, tree_of
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.schemas.requests import StartSession
from tests.support.requests import plan_request


def planned(form: DesignForm, nodes: NodeStore) -> Plan:
    request = plan_request(nodes, form.as_text(), design=form)
    return asyncio.run(DeterministicReasoner().plan(request)).value


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "You sell bread.", "model": "gpt-4o", "temperature": 0.2, "memory": 5},
        {"prompt": "You help.", "tools": ["calculator"], "model": "gpt-4o"},
        {"sources": [{"kind": "text", "text": "x"}, {"kind": "web", "url": "https://a.example"}], "model": "gpt-4o"},
        {"kind": "task", "prompt": "Read it.", "fields": [{"name": "total", "type": "number"}], "model": "gpt-4o"},
        {"refused_words": ["bet", "casino"], "model": "gpt-4o"},
    ],
)
def test_a_form_comes_back_from_its_plan(fields: dict[str, Any], catalogue: NodeStore) -> None:
    form = DesignForm(name="Desk", **fields)
    found = form_of(planned(form, catalogue), "")
    assert found is not None
    named = {"fields", "memory"} if form.kind == "task" else set[str]()
    assert found.model_dump(exclude=named) == form.model_dump(exclude=named)
    assert [(one.name, one.type) for one in found.fields] == [(one.name, one.type) for one in form.fields]


@pytest.mark.parametrize("node", ["documentStore", "documentStoreVS"])
def test_a_document_store_comes_back_however_the_plan_uses_it(node: str, catalogue: NodeStore) -> None:
    plan = planned(DesignForm(name="Desk", sources=[FormSource(kind="store", store="HR policies")]), catalogue)
    (place,) = [one for one in plan.values if one.param == "selectedStore"]
    nodes = [
        one.model_copy(update={"node_name": node}) if one.node_name == "documentStore" else one for one in plan.nodes
    ]
    values = [one for one in plan.values if one is not place] + [place.model_copy(update={"value": "an-id"})]
    found = form_of(plan.model_copy(update={"nodes": nodes, "values": values}), "")
    assert found is not None
    assert (found.tools, [(one.kind, one.store) for one in found.sources]) == ([], [("store", "an-id")])


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        ([{"kind": "text", "text": "x", "store": "HR policies"}], "belongs to the kind"),
        ([{"kind": "store", "store": "HR policies"}, {"kind": "store", "store": "Drafts"}], "name one"),
    ],
    ids=["of another kind", "two"],
)
def test_a_form_names_one_document_store_where_it_has_one(sources: list[dict[str, str]], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        DesignForm.model_validate({"name": "Desk", "sources": sources})


def test_a_form_says_what_is_still_to_be_filled_in_and_starts_nothing_until_then() -> None:
    kinds = ("text", "web", "store", "pdf")
    form = DesignForm.model_validate({"name": "Desk", "sources": [{"kind": kind} for kind in kinds]})
    assert form.needs == ["sources.0.text", "sources.1.url", "sources.2.store"]
    assert steps_form(DRAFT, {"kind": "call"}).needs == ["steps.1.url"]
    with pytest.raises(ValidationError, match=r"sources\.0\.text"):
        StartSession(design=form)
    filled = [{"text": "x"}, {"url": "https://a.example"}, {"store": "HR policies"}, {}]
    sources = [{"kind": kind, **own} for kind, own in zip(kinds, filled, strict=True)]
    whole = DesignForm.model_validate({"name": "Desk", "sources": sources})
    assert whole.needs == []
    assert StartSession(design=whole).design == whole


def test_what_a_form_cannot_say_is_no_form(catalogue: NodeStore) -> None:
    plan = planned(DesignForm(name="Desk"), catalogue)
    assert form_of(plan.model_copy(update={"operation": "update"}), "A desk") is None
    odd = plan.nodes[0].model_copy(update={"node_id": "x_0", "node_name": "multiQueryRetriever"})
    assert form_of(plan.model_copy(update={"nodes": [*plan.nodes, odd]}), "A desk") is None


def test_a_new_flow_that_is_declined_becomes_a_form_with_the_words_of_the_person(catalogue: NodeStore) -> None:
    plan = planned(DesignForm(name="Desk"), catalogue).model_copy(update={"declined": "Not understood."})
    assert form_of(plan, "A desk that loops") == DesignForm(name="Desk", prompt="A desk that loops")
    assert form_of(plan.model_copy(update={"operation": "update"}), "A desk that loops") is None


@pytest.mark.parametrize(("name", "fits"), [("a" * 60, True), ("größe_1", True), ("a" * 61, False), ("1st", False)])
def test_a_field_has_a_name_of_at_most_60_letters(name: str, fits: bool) -> None:
    if fits:
        assert FormField(name=name).name == name
    else:
        with pytest.raises(ValidationError, match="name"):
            FormField(name=name)


# --- Steps --------------------------------------------------------------------------------------------------------

DRAFT = {"kind": "answer", "title": "Draft", "prompt": "Write a reply."}
ASK = {"kind": "approve", "title": "Check", "question": "Send this?"}
BYE = {"kind": "reply", "branch": "rejected", "message": "Sorry."}
SORT = {"kind": "sort", "title": "Topic", "branches": ["a", "b"]}
A, B = ({"kind": "reply", "branch": name, "message": name} for name in ("a", "b"))
POST = {"kind": "call", "method": "POST", "url": "https://a.example"}


def steps_form(*steps: dict[str, Any], **more: Any) -> DesignForm:
    return DesignForm.model_validate({"name": "Desk", "kind": "steps", "steps": steps, **more})


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([DRAFT | {"prompt": " "}], "Step 1 (“Draft”): `prompt` is missing."),
        ([{"kind": "each"}], "Step 1 (“For each item”): `prompt` is missing."),
        ([ASK | {"question": ""}, BYE], "`question` is missing"),
        ([DRAFT | {"url": "https://a.example"}], "`url` belongs to the kind `call`. Leave it out."),
        ([DRAFT, DRAFT | {"title": "draft"}], "Step 2 (“draft”): its title is taken."),
        ([DRAFT | {"title": "Message"}], "its title is taken"),
        ([{"kind": "sort", "branches": ["a"]}], "two branches or more"),
        ([{"kind": "sort", "branches": ["a", "A "]}], "two branches or more"),
        ([SORT | {"branches": ["a", "approved"]}], "there is another branch “approved”"),
        ([SORT, A, SORT | {"title": "", "branch": "b"}], "Step 3 (“Sort into branches”): there is another branch “a”"),
        ([SORT, DRAFT], "Step 2 (“Draft”): the step above it sorts. Say which branch it is on: “a”, “b”."),
        ([DRAFT | {"branch": "a"}], "there is no branch “a” above it. Leave it out."),
        ([SORT, A, A | {"branch": "c"}], "there is no branch “c” above it. Say which branch it is on: “a”, “b”."),
        ([SORT, A, A], "Step 3 (“Reply”): nothing follows “Reply”, which ends its path."),
        ([SORT, A], "Step 1 (“Topic”): nothing is done on its branch “b”. Add a step on it below"),
        ([DRAFT, ASK], "Step 2 (“Check”): nothing is done on its branch “rejected”"),
        ([ASK, BYE], "Step 1 (“Check”): nothing is done on its branch “approved”"),
        ([{"kind": "reply"}], "there is no answer yet that it could send. Write its message."),
        ([DRAFT | {"prompt": "Use {Order}."}], "{Order} is not known here. It can name {message}."),
        ([DRAFT, {"kind": "reply", "message": "{Drat}"}], "{Drat} is not known here. It can name {message}, {Draft}."),
        ([SORT, DRAFT | {"branch": "a"}, B | {"message": "{Draft}"}], "{Draft} is not known here"),
        ([{"kind": "each", "prompt": "Price of {message}"}], "Nothing can be named here: it is given one item"),
        ([DRAFT | {"prompt": "Use {{ question }}."}], "two braces are a sign of Flowise"),
        ([POST | {"body": '{"text": {message}}'}], "its body is no JSON"),
        ([POST | {"body": '{"a": NaN}'}], "its body is no JSON"),
        ([POST | {"body": '{"a": "\\ud800"}'}], "its body is no JSON"),
        ([POST | {"body": "[" * 20_000}], "its body is no JSON"),
        ([POST | {"body": "[" * 300 + "]" * 300}], "its body is no JSON"),
        ([DRAFT | {"title": "Check / tone"}], "OpenAI refuses < > / "),
        ([POST | {"body": '{"a": ["{nobody}"]}'}], "{nobody} is not known here"),
        ([POST | {"method": "GET", "body": "{}"}], "a GET request has no body"),
        ([POST | {"url": "a.example"}], "its address does not begin with http:// or https://"),
        ([DRAFT, ASK, {"kind": "repeat", "branch": "rejected", "back_to": "Check"}],
         "no step “Check” in which a model answers leads to it. Those that do: “Draft”."),
        ([SORT, DRAFT | {"branch": "a"}, {"kind": "repeat", "branch": "b", "back_to": "Draft"}],
         "no step “Draft” in which a model answers leads to it. Give one a title."),
        ([DRAFT, {"kind": "repeat", "back_to": "draft"}],
         "it would go back each time. Put a step that sorts or asks a person behind “Draft”."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_step_is_said_with_its_number_and_its_title(steps: list[Any], why: str) -> None:
    with pytest.raises(ValidationError) as error:
        steps_form(*steps)
    assert why in str(error.value)


def test_nobody_is_asked_in_a_flow_that_a_schedule_starts() -> None:
    schedule = {"time": "07:15", "timezone": "Europe/Dublin", "text": "x"}
    with pytest.raises(ValidationError, match="nobody can answer a flow that a schedule starts"):
        steps_form(DRAFT, ASK, BYE, start="schedule", schedule=schedule)


def test_what_a_step_is_called_after_holds_no_sign_that_a_provider_refuses() -> None:
    assert FormStep(kind="answer", prompt="Say yes/no | maybe").label == "Say yes no maybe"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"start": "form"}, "which needs at least one"),
        ({"inputs": [{"name": "a"}]}, "`inputs` belong to the start `form`"),
        ({"start": "schedule"}, "which needs it"),
        ({"start": "form", "inputs": [{"name": "a"}, {"name": "A"}]}, "two `inputs` have one name"),
        ({"start": "form", "inputs": [{"name": "draft"}]}, "its title is taken"),
        ({"start": "form", "inputs": [{"name": "a", "type": "options"}]}, "the field `a`: `options` belong"),
        ({"start": "schedule", "schedule": {"time": "24:00", "timezone": "UTC", "text": "x"}}, "schedule.time"),
        ({"prompt": "You sell bread."}, "do not belong to the kind `steps`"),
        ({"memory": 5}, "`memory` does not belong to the kind `steps`"),
        ({"kind": "chat", "steps": [], "start": "form"}, "`start`, `inputs` and `schedule` belong to the kind"),
        ({"kind": "task", "steps": [], "inputs": [{"name": "a"}]}, "`start`, `inputs` and `schedule` belong"),
        ({"tools": ["calculator"]}, "a step has `tools` of its own"),
        ({"steps": [{"kind": "answer", "title": "a {b}", "prompt": "x"}]}, "is a short name"),
        ({"steps": [{"kind": "answer", "prompt": "x"}] * 21}, "at most 20"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_form_of_steps_is_said(more: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as error:
        DesignForm.model_validate({"name": "Desk", "kind": "steps", "steps": [DRAFT], **more})
    assert why in str(error.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ValidationError, match=r"(?s)Step 1 .*Step 3 "):
        steps_form(DRAFT | {"prompt": ""}, {"kind": "reply", "message": "x"}, {"kind": "call", "url": "x"})


@pytest.mark.parametrize("text", ['Answer as {"a": {"b": 1}}.', "Two of {3, 4} or {5}", "{ }", "a } b { c"])
def test_other_braces_stay_as_they_are(text: str, catalogue: NodeStore) -> None:
    plan = planned(steps_form(DRAFT | {"prompt": text}), catalogue)
    (messages,) = (value.value for value in plan.values if value.param == "llmMessages")
    assert messages == [{"role": "system", "content": text}]


def test_names_are_compared_without_case_and_a_branch_may_be_named_again(catalogue: NodeStore) -> None:
    plain = steps_form(SORT, DRAFT | {"branch": "a"}, {"kind": "reply", "message": "{Draft}!"}, B)
    said = steps_form(SORT, DRAFT | {"branch": "A"}, {"kind": "reply", "branch": "a", "message": "{ draft }!"}, B)
    assert planned(said, catalogue).values == planned(plain, catalogue).values
    assert planned(said, catalogue).connections == planned(plain, catalogue).connections


def test_a_prompt_is_one_part_of_what_a_form_asks_for() -> None:
    form = DesignForm(name="Desk", prompt="Be kind.\nPromise  nothing. Say 'I do not know' then.", model="gpt-4o")
    assert form.quotes == ["Be kind. Promise nothing. Say 'I do not know' then."]
    assert form.purpose == "Be kind."
    # Of a prompt that quotes the person these words are asked for, and not what leads to them.
    quoting = form.model_copy(update={"prompt": "You help. You are for\u00a0:\n\n«\u00a0Ein Laden\u00a0»\n\nBe kind."})
    assert (quoting.quotes, quoting.purpose) == (["Ein Laden"], "Ein Laden")


def test_a_form_of_steps_is_a_text_in_which_its_plan_finds_its_parts(catalogue: NodeStore) -> None:
    form = steps_form(
        SORT, DRAFT | {"branch": "a", "prompt": "Write it.\nBe  brief."}, POST | {"body": '{"a": 1}'}, B,
        start="form", inputs=[{"name": "day", "label": "Which day"}],
    )  # fmt: skip
    assert form.as_text().splitlines() == [
        "Desk", "Form: Which day", "Topic: a, b", "Draft (a): Write it. Be brief.",
        'Call an address: POST https://a.example {"a": 1}', "Reply (b): b",
    ]  # fmt: skip
    quotes = [part.quote for part in planned(form, catalogue).parts]
    assert all(line.startswith(quote) for line, quote in zip(form.as_text().splitlines()[1:], quotes, strict=True))
    # A title stands for its prompt.
    assert quotes[2] == "Draft (a)"


# --- From a plan to a form

NAMES = ["plain", '$value1 + "x"', "Fünf Wörter und noch mehr", '{"a": {"b": 1}}', "<p>&amp;</p>", "two\nlines"]


@st.composite
def forms(draw: st.DrawFn) -> DesignForm:
    """A form of steps that says nothing twice: a branch is named where it has to be, and a model where it is another
    one than the flow's."""
    start, pick = draw(st.sampled_from(["chat", "form", "schedule"])), st.sampled_from
    fields = ["guest", "nights"] if start == "form" else None
    steps, paths, models = list[dict[str, Any]](), Paths(), 0
    temperature = draw(pick([None, 0.5]))

    def text(number: int, kind: str) -> str:
        made = [FormStep.model_validate(one) for one in [*steps, {"kind": kind, "branch": branch}]]
        known = [] if kind == "each" else [one.name for one in names_at(number, made, tree_of(made), fields).values()]
        named = f" {{{draw(pick(known))}}}" if known and draw(st.booleans()) else ""
        return f"{draw(pick(NAMES))}{named} {number}"

    def add(step: dict[str, Any]) -> None:
        paths.take(len(steps), FormStep.model_validate(step))
        steps.append(step)

    def called(end: Place) -> str | None:
        return next((name for name in ("", end.branch, *paths.branches) if paths.end(name) == end), None)

    def undone() -> list[Place]:
        return [end for end in paths.open if end.branch and (end.branch != "approved" or end.answer < 0)]

    for number in range(draw(st.integers(1, 6))):
        ends = [end for end in paths.open if called(end) is not None]
        if not ends:
            break
        end = draw(pick(ends))
        branch = called(end) or ""
        made = [FormStep.model_validate(one) for one in [*steps, {"kind": "reply", "branch": branch}]]
        above = [*tree_of(made).above(number)]
        forks = [place for place, one in enumerate(above) if steps[one]["kind"] in ("sort", "approve")]
        back = [steps[one]["title"] for place, one in enumerate(above)
                if forks and place > forks[0] and steps[one]["kind"] == "answer" and steps[one]["title"]]  # fmt: skip
        # The branches of another one that asks a person could not be named any more.
        asked = start == "schedule" or any(end.branch in ("approved", "rejected") for end in undone())
        kinds = ["answer", "sort", "call", "each", "reply", *["repeat"] * 3 * bool(back), *["approve"] * (not asked)]
        kind = draw(pick(kinds))
        step: dict[str, Any] = {"kind": kind, "title": f"T{number}" if draw(st.booleans()) else "", "branch": branch}
        if kind in ("answer", "each", "sort"):
            step["prompt"] = text(number, kind) if kind != "sort" or draw(st.booleans()) else ""
            # The first model is the flow's.
            own = models > 0 and draw(st.booleans())
            step |= {"model": "gpt-4o-mini", "temperature": 0.1} if own else {}
            models += 1
        match kind:
            case "answer":
                step["tools"] = draw(pick([[], ["calculator", "currentDateTime"]]))
            case "sort":
                step["branches"] = [f"{name} {number}" for name in ("a", "b", "c")][: draw(st.integers(2, 3))]
            case "approve":
                step["question"] = text(number, kind)
            case "call":
                body = {"text": text(number, kind), "more": [1, None, {"x": draw(pick(NAMES))}]}
                step |= {"url": "https://a.example/?q=x", "method": draw(pick(["GET", "POST"]))}
                step |= {"body": json.dumps(body, ensure_ascii=False)} if step["method"] == "POST" else {}
            case "reply":
                step["message"] = "" if end.answer >= 0 and draw(st.booleans()) else text(number, kind)
            case "repeat":
                step |= {"back_to": draw(pick(back)), "times": draw(st.integers(1, 20))}
            case _:
                pass
        add(step)
    while left := undone():
        add({"kind": "reply", "branch": called(left[0]), "message": f"Bye {len(steps)}"})
    more: dict[str, Any] = {"model": "gpt-4o", "temperature": temperature} if models else {}
    if fields:
        more["inputs"] = [
            {"name": "guest", "label": "Who"},
            {"name": "nights", "type": "options", "options": ["1", "2"]},
        ]
    if start == "schedule":
        days = sorted(draw(st.sets(pick(WEEKDAYS))), key=WEEKDAYS.index)
        more["schedule"] = {"time": "07:15", "timezone": "Europe/Dublin", "weekdays": days, "text": draw(pick(NAMES))}
    return steps_form(*steps, start=start, **more)


STORE = NodeStore.from_snapshot()


@given(forms())
def test_each_form_of_steps_comes_back_from_its_plan(form: DesignForm) -> None:
    plan = planned(form, STORE)
    assert plan.declined is None
    assert form_of(plan, "") == form


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("llmUserMessage", "Hello"),
        ("llmEnableMemory", False),
        ("llmMessages", [{"role": "system", "content": "{{ $vars.shop }}"}]),
        ("llmMessages", [{"role": "system", "content": "{{ llmAgentflow_7 }}"}]),
        ("llmMessages", [{"role": "system", "content": "{name}"}]),
        ("llmMessages", []),
        ("llmMessages", "Write"),
        ("llmModelConfig", {"modelName": "gpt-4o", "maxTokens": 5}),
        ("llmModelConfig", None),
    ],
)
def test_a_plan_with_more_than_a_form_of_steps_says_is_none(param: str, value: Any, catalogue: NodeStore) -> None:
    plan = planned(steps_form(DRAFT, model="gpt-4o"), catalogue)
    assert form_of(plan, "") == steps_form(DRAFT, model="gpt-4o")
    (model,) = [one for one in plan.values if one.param == "llmModel"]
    values = [one for one in plan.values if one.param != param] + [
        model.model_copy(update={"param": param, "value": value})
    ]
    assert form_of(plan.model_copy(update={"values": values}), "") is None


def test_a_step_that_two_lead_to_is_in_no_form(catalogue: NodeStore) -> None:
    plan = planned(steps_form(DRAFT, DRAFT | {"title": "Again"}, model="gpt-4o"), catalogue)
    more = plan.connections[0].model_copy(update={"target": "llmAgentflow_1"})
    assert form_of(plan.model_copy(update={"connections": [*plan.connections, more]}), "") is None
    assert form_of(plan.model_copy(update={"connections": plan.connections[:1]}), "") is None


def test_the_example_of_the_documentation_is_a_form_and_comes_back(catalogue: NodeStore) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
    (example,) = [text for text in re.findall(r"```json\n(.*?)```", page, re.DOTALL) if '"design"' in text]
    form = DesignForm.model_validate(json.loads(example)["design"])
    assert {step.kind for step in form.steps} == KINDS.keys() - {"each"}
    assert form_of(planned(form, catalogue), form.as_text()) == form


def test_a_form_of_an_earlier_version_is_none() -> None:
    form = {"name": "Desk", "kind": "steps", "steps": ["Summarise the text"]}
    assert stored_form(form) is None
    assert stored_form(None) is None
    assert stored_form(steps_form(DRAFT).model_dump(mode="json")) == steps_form(DRAFT)
