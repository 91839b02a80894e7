"""Headlines and criteria: settings, causes outside the flow, answers that came, fallback texts, documents."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from flowise_dev_agent.agent.nodes.review import outcome_of
from flowise_dev_agent.errors import FlowiseTimeoutError
from flowise_dev_agent.patch.model.field_kinds import PROSE
from flowise_dev_agent.schemas.plan import Criterion, Expectation, Part, Plan, PlannedValue, TestCase
from flowise_dev_agent.schemas.verdict import (
    CriterionVerdict,
    Evidence,
    Trace,
    TracedSource,
    TracedTool,
    TraceStep,
    Trial,
    Verdict,
)
from flowise_dev_agent.testing import playbook
from flowise_dev_agent.testing.checks import as_expected, checked
from flowise_dev_agent.testing.judging import as_judged, judged, to_judge
from flowise_dev_agent.testing.verdicts import beside_blocked, failed_verdict, failure_text
from flowise_dev_agent.texts import Text, say_in, sentences, text, translated
from tests.unit.agent.rig import plan


def flow(**nodes: Mapping[str, Any]) -> str:
    """Flow of nodes by id: their category, and their fields."""
    made = [
        {
            "id": id_,
            "type": "customNode",
            "data": {
                "id": id_,
                "name": id_.rpartition("_")[0],
                "label": id_,
                "category": fields.get("category", ""),
                "inputs": {name: value for name, value in fields.items() if name != "category"},
            },
        }
        for id_, fields in nodes.items()
    ]
    return json.dumps({"nodes": made, "edges": []})


MODEL = {"category": "Chat Models", "temperature": "0.20"}
FLOW = flow(chatOpenAI_0=MODEL, chain_0={"category": "Chains", "systemMessage": "Be kind."})


def trial(answer: str = "You said Eva.", **more: Any) -> Trial:
    return Trial.model_validate({"question": "Who am I?", "passed": True, "answer": answer, "test": "t1", **more})


def agreed(*parts: Part, expect: Expectation | None = None, **values: Any) -> Plan:
    """Plan with one criterion that its test shows, and one without a test for each part."""
    shown = Criterion(id="c1", text="It remembers the name.", tests=["t1"])
    untested = [
        Criterion(id=f"c{n}", text=one.quote, part=one.id, not_tested="No question shows it.")
        for n, one in enumerate(parts, start=2)
    ]
    case = TestCase(id="t1", turns=["Who am I?"], expect=expect or Expectation())
    return plan(**{"tests": [case], "criteria": [shown, *untested], "parts": list(parts), **values})


def part(*values: str, nodes: tuple[str, ...] = ()) -> Part:
    return Part(id="p1", quote="as I said", state="covered", values=list(values), nodes=list(nodes))


def vote(quote: str = "You said Eva", state: Any = "shown") -> Verdict:
    shown = CriterionVerdict(id="c1", state=state, judged_by="model", evidence=[Evidence(trial=1, quote=quote)])
    return Verdict(done=True, criteria=[shown])


def outcome(
    contract: Plan, *results: Trial, given: Verdict | None = None, data: str = FLOW, by_model: bool = True
) -> Verdict:
    held = results or (trial(),)
    return judged(given or vote(), contract, held, [Trace() for _ in held], data, by_model=by_model)


TEMPERATURE = PlannedValue(node_id="chatOpenAI_0", param="temperature", value=0.2)
PROMPT = PlannedValue(node_id="chain_0", param="systemMessage", value="Be kind.")


URL = PlannedValue(node_id="requestsPost_0", param="url", value="[PLACEHOLDER: the webhook]")
SENDS = flow(chatOpenAI_0=MODEL, requestsPost_0={"category": "Tools", "url": URL.value})


@pytest.mark.parametrize(
    ("settings", "values", "data", "state"),
    [
        (["chatOpenAI_0.temperature"], [TEMPERATURE], FLOW, "shown"),
        # Another value, one that is only told to the model, one that nobody set, and a placeholder.
        (["chatOpenAI_0.temperature"], [TEMPERATURE.model_copy(update={"value": 0.7})], FLOW, "not_shown"),
        (["chain_0.systemMessage"], [PROMPT], FLOW, "not_shown"),
        (["chatOpenAI_0.topP"], [TEMPERATURE], FLOW, "not_shown"),
        (["chatOpenAI_0.temperature", "requestsPost_0.url"], [TEMPERATURE, URL], SENDS, "not_shown"),
    ],
)
def test_a_setting_that_the_flow_holds_shows_a_criterion_about_it(
    settings: list[str], values: list[PlannedValue], data: str, state: str
) -> None:
    about = Criterion(id="c2", text="It is set so.", settings=settings)
    shown = Criterion(id="c1", text="It remembers the name.", tests=["t1"])
    made = outcome(agreed(criteria=[shown, about], values=values), data=data)
    assert (made.headline, made.criteria[1].state) == ("works" if state == "shown" else "runs", state)
    assert made.criteria[1].level == ("setting" if state == "shown" else None)


@pytest.mark.parametrize(("model", "state"), [("gpt-4.1", "shown"), ("gpt-5.4-mini", "not_shown")])
def test_a_setting_that_never_reaches_the_model_shows_nothing(model: str, state: str) -> None:
    document = json.loads(flow(chatOpenAI_0={**MODEL, "modelName": model}))
    fields = {"modelName": "string", "temperature": "number"}
    document["nodes"][0]["data"]["inputParams"] = [{"name": name, "type": type_} for name, type_ in fields.items()]
    about = Criterion(id="c1", text="It is cold.", part="p1", settings=["chatOpenAI_0.temperature"])
    contract = agreed(part("chatOpenAI_0.temperature"), criteria=[about], values=[TEMPERATURE])
    made = outcome(contract, data=json.dumps(document))
    assert (made.criteria[0].state, made.parts[0].state) == (state, "done" if state == "shown" else "not_shown")


@pytest.mark.parametrize(("name", "in_prompt"), [("moderationErrorMessage", False), ("systemMessage", True)])
def test_a_text_that_the_flow_answers_with_is_not_said_to_the_model(name: str, in_prompt: bool) -> None:
    assert bool(PROSE.search(name)) is in_prompt


@pytest.mark.parametrize(
    ("state", "part_state", "level"), [("shown", "done", "verified"), ("not_shown",) * 2 + (None,)]
)
def test_the_judge_is_asked_about_a_part_that_only_a_prompt_carries(
    state: Any, part_state: str, level: str | None
) -> None:
    said = Criterion(id="c1", text="It remembers the name.", tests=["t1"])
    asked = Part(id="p1", quote="rhyme", state="covered", values=["chain_0.systemMessage"])
    contract = agreed(criteria=[said], parts=[asked], values=[PROMPT])
    assert [(one.id, one.text, one.tests) for one in to_judge(contract).criteria[1:]] == [("c2", "rhyme", ["t1"])]
    given = vote()
    given.criteria.append(given.criteria[0].model_copy(update={"id": "c2", "state": state}))
    made = outcome(contract, given=given)
    assert (made.parts[0].state, made.parts[0].level) == (part_state, level)
    # The person agreed to one criterion; without a judge nothing shows the part.
    assert [one.id for one in made.criteria] == ["c1"]
    assert outcome(contract, by_model=False).parts[0].state == "not_shown"


def test_the_judge_is_not_asked_about_what_a_setting_or_a_criterion_shows() -> None:
    asked = Part(id="p1", quote="rhyme", state="covered", values=["chain_0.systemMessage"])
    setting = Part(id="p2", quote="cold", state="covered", values=["chatOpenAI_0.temperature"])
    about = Criterion(id="c2", text="It rhymes.", part="p1", tests=["t1"])
    cold = Criterion(id="c3", text="It is cold.", settings=["chatOpenAI_0.temperature"])
    contract = agreed(criteria=[about, cold], parts=[asked, setting], values=[PROMPT, TEMPERATURE])
    assert to_judge(contract) == contract


def test_a_number_is_quoted_as_a_whole_and_a_given_up_answer_shows_what_its_steps_did() -> None:
    scored = Criterion(id="c1", text="The review gives a score.", tests=["t1"])
    for answer, state in (("Urgency: 5", "shown"), ("Urgency: 15", "not_shown")):
        made = outcome(agreed(criteria=[scored]), trial(answer), given=vote("5"))
        assert made.criteria[0].state == state
    data = flow(loopAgentflow_0={"fallbackMessage": "Out of ideas."})
    step = TraceStep(node_id="llmAgentflow_0", name="Review", output="score 4")
    for text_, quote, state in (
        ("The review gives a score.", "score 4", "shown"),
        ("The review gives a score.", "Out of ideas.", "not_shown"),
        ("At the end it says: Out of ideas.", "Out of ideas.", "shown"),
    ):
        contract = agreed(criteria=[scored.model_copy(update={"text": text_})])
        seen = [Trace(steps=[step])]
        made = judged(vote(quote), contract, [trial("Out of ideas.")], seen, data, by_model=True)
        assert made.criteria[0].state == state, (text_, quote)


EDITED = flow(chain_0={"category": "Chains", "systemMessage": "Be kind. Never mention prices."})
LOOP = PlannedValue(node_id="loopAgentflow_0", param="loopBackToNode", value="llmAgentflow_0")


@pytest.mark.parametrize(
    ("value", "before", "after", "state", "code"),
    [
        # A text of the flow that was edited as planned, one that was not, and one that is new.
        ("Be kind. Never mention prices.", FLOW, EDITED, "shown", "verdict.text_held"),
        ("Be kind.", EDITED, EDITED, "not_shown", "verdict.setting_not_held"),
        ("Be kind. Never mention prices.", None, EDITED, "not_shown", "verdict.in_prompt"),
    ],
)
def test_a_criterion_about_an_edited_text_is_shown_by_the_text(
    value: str, before: str | None, after: str, state: str, code: str
) -> None:
    about = Criterion(id="c1", text="The prompt has the sentence.", settings=["chain_0.systemMessage"])
    requirement = Part(id="p1", quote="add it", state="covered", values=["chain_0.systemMessage"])
    values = [PROMPT.model_copy(update={"value": value})]
    contract = agreed(requirement, criteria=[about], values=values)
    made = judged(Verdict(done=True), contract, [trial()], [Trace()], after, by_model=False, original=before)
    assert (made.criteria[0].state, made.criteria[0].texts["reason"].code) == (state, code)
    assert made.parts[0].state == ("done" if state == "shown" else "not_shown")


@pytest.mark.parametrize("state", ["shown", "not_shown"])
def test_a_new_text_for_a_model_is_shown_by_the_judge(state: Any) -> None:
    about = Criterion(id="c1", text="The prompt says: be kind.", settings=["chain_0.systemMessage"])
    contract = agreed(criteria=[about], values=[PROMPT])
    assert outcome(contract, given=vote(state=state)).criteria[0].state == state
    assert outcome(contract, by_model=False).criteria[0].texts["reason"].code == "verdict.in_prompt"


def test_a_loop_holds_its_target_with_the_title_that_the_editor_adds() -> None:
    data = flow(loopAgentflow_0={"loopBackToNode": "llmAgentflow_0-Writer"}, llmAgentflow_0={})
    about = Criterion(id="c1", text="It goes back.", settings=["loopAgentflow_0.loopBackToNode"])
    made = outcome(agreed(criteria=[about], values=[LOOP]), data=data)
    assert made.criteria[0].state == "shown"


def test_evidence_of_a_setting_says_fields_and_values_in_words_and_the_language() -> None:
    node: dict[str, Any] = {
        "id": "llmAgentflow_0",
        "name": "llmAgentflow",
        "label": "Writer",
        "inputs": {"llmModel": "chatAnthropic", "llmEnableMemory": False, "llmNext": "llmAgentflow_0"},
        "inputParams": [{"name": "llmEnableMemory", "label": "Enable Memory", "type": "boolean"}],
    }
    data = json.dumps({"nodes": [{"id": "llmAgentflow_0", "data": node}], "edges": []})
    values = [PlannedValue(node_id="llmAgentflow_0", param=name, value=it) for name, it in node["inputs"].items()]
    about = Criterion(id="c1", text="It is set.", settings=[f"llmAgentflow_0.{name}" for name in node["inputs"]])
    said = translated(outcome(agreed(criteria=[about], values=values), data=data).criteria[0].worded("reason"), "de")
    for words in ("Chat anthropic", "Enable Memory: nein", "Writer"):
        assert words in said
    for words in ("llmModel", "llmAgentflow", "false"):
        assert words not in said


def test_a_part_that_asks_for_nothing_keeps_no_flow_from_working() -> None:
    greeting = Part(id="p1", quote="hello, we are dentists", state="background", reason="It says who you are.")
    made = outcome(agreed(greeting, criteria=[Criterion(id="c1", text="It remembers.", tests=["t1"])]))
    assert (made.headline, made.parts[0].state) == ("works", "done")


def test_what_a_conversation_showed_before_an_outside_cause_ended_it_stays_shown() -> None:
    blocked = trial("You said Eva.", passed=False, category="EXTERNAL", error="getaddrinfo ENOTFOUND api.example")
    given = vote().model_copy(update={"done": False, "category": "EXTERNAL", "failed_trials": [1]})
    assert outcome(agreed(), blocked, given=given).criteria[0].state == "shown"
    assert outcome(agreed(), blocked, given=vote("You said Ada")).criteria[0].state == "not_tested"


def test_a_setting_that_the_plan_keeps_shows_that_it_stays() -> None:
    contract = agreed(criteria=[Criterion(id="c1", text="It stays cold.", settings=["chatOpenAI_0.temperature"])])
    other = flow(chatOpenAI_0={**MODEL, "temperature": "0.9"})
    for after, state in ((FLOW, "shown"), (other, "not_shown")):
        made = judged(vote(), contract, [trial()], [Trace()], after, by_model=True, original=FLOW)
        assert made.criteria[0].state == state


def test_a_new_nodes_setting_that_the_plan_leaves_alone_is_as_the_flow_has_it() -> None:
    contract = agreed(criteria=[Criterion(id="c1", text="It is cold.", settings=["chatOpenAI_0.temperature"])])
    for original, state in ((None, "shown"), (flow(chatOpenAI_0={}), "not_shown")):
        made = judged(vote(), contract, [trial()], [Trace()], FLOW, by_model=True, original=original)
        assert made.criteria[0].state == state


def test_the_node_that_an_input_takes_shows_how_a_flow_is_built() -> None:
    takes = {"model": "{{chatOpenAI_0.data.instance}}"}
    contract = agreed(criteria=[Criterion(id="c1", text="The model is OpenAI's.", settings=["chain_0.model"])])
    with_model, without = flow(chatOpenAI_0=MODEL, chain_0=takes), flow(chatOpenAI_0=MODEL, chain_0={})
    for original in (None, without, with_model):
        for after, state in ((with_model, "shown"), (without, "not_shown")):
            made = judged(vote(), contract, [trial()], [Trace()], after, by_model=True, original=original)
            assert made.criteria[0].state == state
            if state == "shown":
                assert "Model: chatOpenAI_0" in translated(made.criteria[0].worded("reason"), "en")


def test_no_setting_shows_a_criterion_that_the_plan_says_is_not_tested() -> None:
    contract = agreed(part("chatOpenAI_0.temperature", nodes=("chatOpenAI_0",)), values=[TEMPERATURE])
    named = [one.model_copy(update={"settings": ["chatOpenAI_0.temperature"]}) for one in contract.criteria[1:]]
    for criteria in (contract.criteria, [contract.criteria[0], *named]):
        made = outcome(contract.model_copy(update={"criteria": criteria}).linked())
        # The part is what is set, which the flow itself shows.
        assert (made.headline, made.criteria[1].state, made.parts[0].state) == ("runs", "not_tested", "done")


@pytest.mark.parametrize(
    ("quote", "state", "found"),
    [
        ("You said Eva", "shown", "shown"),
        ("You said Ada", "shown", "not_tested"),
        ("You said Eva", "not_shown", "not_tested"),
        ("You said Eva", "failed", "failed"),
    ],
)
def test_a_judge_may_see_what_by_the_plan_no_test_shows(quote: str, state: Any, found: str) -> None:
    why = Criterion(id="c2", text="It goes back.", not_tested="No question makes it go back.")
    contract = agreed(criteria=[Criterion(id="c1", text="It remembers the name.", tests=["t1"]), why])
    given = vote()
    given.criteria.append(vote(quote, state).criteria[0].model_copy(update={"id": "c2"}))
    made = outcome(contract, given=given)
    assert made.criteria[1].state == found
    assert outcome(contract, by_model=False).criteria[1].state == "not_tested"
    broken = trial(passed=False, category="LOGIC", error="It fails.")
    assert outcome(contract, broken).criteria[1].state == "not_tested"


@pytest.mark.parametrize(
    ("param", "value", "said", "headline"),
    [
        ("modelName", "gpt-4o", "Das Modell ist GPT-4o.", "works"),
        ("temperature", 0.2, "La température est 0,2.", "works"),
        # Another value, a part of it, and a value that says nothing about how the flow is set.
        ("modelName", "gpt-4o", "The model is gpt-4.", "runs"),
        ("modelName", "gpt-4o", "The model is gpt-4o-mini.", "runs"),
        ("systemMessage", "briefly", "It answers briefly.", "runs"),
    ],
)
def test_an_untested_criterion_that_names_a_setting_is_read_off_the_flow(
    param: str, value: Any, said: str, headline: str
) -> None:
    data = flow(chatOpenAI_0={"category": "Chat Models", param: value})
    shown = Criterion(id="c1", text="It remembers the name.", tests=["t1"])
    named = Criterion(id="c2", text=said, not_tested="No answer shows it.")
    values = [PlannedValue(node_id="chatOpenAI_0", param=param, value=value)]
    made = outcome(agreed(criteria=[shown, named], values=values).linked(), data=data)
    assert (made.headline, made.criteria[1].level) == (headline, "setting" if headline == "works" else None)


@pytest.mark.parametrize(("before", "headline"), [(FLOW, "works"), (None, "runs")])
def test_an_untested_criterion_about_a_node_that_stays_is_read_off_the_flow(before: str | None, headline: str) -> None:
    contract = agreed(part(nodes=("chain_0",)), kept=["chain_0"])
    made = judged(vote(), contract, [trial()], [Trace()], FLOW, by_model=True, original=before)
    assert (made.headline, made.criteria[1].level) == (headline, "setting" if before else None)


@pytest.mark.parametrize("carried", [part("requestsPost_0.url"), part(nodes=("requestsPost_0",))])
def test_what_a_placeholder_carries_is_neither_shown_nor_done(carried: Part) -> None:
    for criteria in ([], [Criterion(id="c1", text="It arrives.", part="p1", tests=["t1"])]):
        made = outcome(agreed(carried, criteria=criteria, values=[URL]), data=SENDS)
        assert [one.state for one in (*made.criteria, *made.parts)] == ["not_shown"] * (len(criteria) + 1)
        assert "the webhook" in made.parts[0].reason
    filled = flow(chatOpenAI_0=MODEL, requestsPost_0={"category": "Tools", "url": "https://hooks.example/x"})
    assert outcome(agreed(carried, criteria=[], values=[URL]), data=filled).parts[0].state == "done"


@pytest.mark.parametrize(
    ("steps", "used", "quoted", "state"),
    [
        # Steps of an agentflow: the request did not run, ran before the answer, and ran behind the step that is quoted.
        (["sorter_0", "reply_0"], [], None, "shown"),
        (["sorter_0", "requestsPost_0"], [], None, "not_shown"),
        (["sorter_0", "requestsPost_0"], [], "sorter_0", "shown"),
        (["requestsPost_0", "sorter_0"], [], "sorter_0", "not_shown"),
        # A tool of a chatflow, which was used or not.
        ([], [], None, "shown"),
        ([], ["requestsPost"], None, "not_shown"),
    ],
)
def test_only_a_placeholder_on_the_way_of_its_answer_holds_a_criterion_back(
    steps: list[str], used: list[str], quoted: str | None, state: str
) -> None:
    data = flow(sorter_0={}, reply_0={}, requestsPost_0={"category": "Tools", "url": URL.value})
    both = part(nodes=("sorter_0", "requestsPost_0"))
    contract = agreed(both, criteria=[Criterion(id="c1", text="It sorts.", part="p1", tests=["t1"])])
    proof = Evidence(trial=1, node_id=quoted, quote="You said Eva")
    shown = CriterionVerdict(id="c1", state="shown", judged_by="model", evidence=[proof])
    given = Verdict(done=True, criteria=[shown])
    seen = Trace(steps=[TraceStep(node_id=one) for one in steps])
    held = trial(used_tools=used)
    made = judged(given, contract, [held], [seen], data, by_model=True)
    assert made.criteria[0].state == state
    # The part itself is not done as long as something of it has to be filled in.
    assert (made.headline, made.parts[0].state) == ("runs", "not_shown")


@pytest.mark.parametrize("category", ["CREDENTIAL", "CONFIG", "EXTERNAL", "TIMEOUT"])
def test_a_cause_outside_the_flow_means_not_tested_and_not_failed(category: Any) -> None:
    blocked = trial("", passed=False, category=category, error="connect ECONNREFUSED")
    given = Verdict(done=False, category=category, reason="?", failed_trials=[1])
    made = outcome(agreed(), blocked, given=given, by_model=False)
    assert (made.headline, made.criteria[0].state, made.category) == ("not_tested", "not_tested", category)


def test_one_test_that_could_not_be_held_leaves_what_the_others_show() -> None:
    blocked = trial("", passed=False, category="EXTERNAL", error="connect ECONNREFUSED", test="t2")
    given = vote().model_copy(update={"done": False, "category": "EXTERNAL", "failed_trials": [2]})
    made = outcome(agreed(), trial(), blocked, given=given)
    assert (made.headline, made.criteria[0].state) == ("runs", "shown")
    bug = trial("", passed=False, category="LOGIC", error="wrong", test="t3")
    assert outcome(agreed(), trial(), blocked, bug, given=given).headline == "fails"


@pytest.mark.parametrize(
    ("said", "headline", "category"),
    [
        (Verdict(done=True), "runs", "EXTERNAL"),
        # The judge counts what could not be held; code does not.
        (Verdict(done=False, category="LOGIC", reason="No answer.", failed_trials=[2]), "runs", "EXTERNAL"),
        (Verdict(done=False, category="LOGIC", reason="It is rude.", failed_trials=[1, 2]), "fails", "LOGIC"),
        (Verdict(done=False, category="INCOMPLETE", reason="No tool."), "fails", "INCOMPLETE"),
    ],
)
def test_the_tests_that_were_held_are_judged_beside_one_that_could_not_be(
    said: Verdict, headline: str, category: str
) -> None:
    held = [trial(), trial("", passed=False, category="EXTERNAL", error="connect ECONNREFUSED", test="t2")]
    blocked = failed_verdict(held)
    assert blocked is not None
    given = beside_blocked(said.model_copy(update={"criteria": vote().criteria}), blocked)
    made = outcome(agreed(), *held, given=given)
    assert (made.headline, made.category) == (headline, category)
    assert 2 in made.failed_trials


@pytest.mark.parametrize(
    ("answer", "passed"), [('{"price": 3}', True), ('{"price": null}', False), ('{"price": ""}', False)]
)
def test_a_field_without_a_value_is_missing(answer: str, passed: bool) -> None:
    case = TestCase(id="t1", turns=["Hi"], expect=Expectation(fields=["price"]))
    assert as_expected(trial(answer), Trace(), case, FLOW).passed is passed


@pytest.mark.parametrize("expect", [Expectation(sources=["rules.txt"]), Expectation(branch=["chain_0"])])
def test_what_a_reply_does_not_show_fails_the_test_of_a_person_and_of_no_plan(expect: Expectation) -> None:
    case = TestCase(id="t1", turns=["Hi"], expect=expect)
    assert checked(trial(), Trace(), case, FLOW, stand_in=False).passed
    assert not as_expected(trial(), Trace(), case, FLOW).passed


def test_an_empty_text_is_expected_of_no_answer() -> None:
    expect = Expectation(contains=["", " "], excludes=[""])
    assert (expect.contains, expect.excludes) == ([], [])
    made = outcome(agreed(expect=expect), given=Verdict(done=True), by_model=False)
    assert made.criteria[0].state == "not_shown"


@pytest.mark.parametrize("unknown", [Trace(used_tools=[TracedTool(tool="search", error="never seen before")])])
def test_an_unknown_error_inside_a_reply_goes_to_the_person_with_the_words_of_the_server(unknown: Trace) -> None:
    seen = checked(trial(), unknown, TestCase(id="t1", turns=["Hi"]), FLOW, stand_in=False)
    assert seen.category == "UNKNOWN"
    assert "never seen before" in seen.error


def test_that_every_question_gets_an_answer_is_shown_when_it_does() -> None:
    criteria = [Criterion(id="c1", text="Every question gets an answer.", tests=["t1"], by_answer=True)]
    made = outcome(agreed(criteria=criteria), given=Verdict(done=True), by_model=False)
    assert (made.headline, made.criteria[0].state) == ("works", "shown")
    failed = trial("", passed=False, category="LOGIC", error="no answer")
    made = outcome(agreed(criteria=criteria), failed, given=Verdict(done=False, category="LOGIC"), by_model=False)
    assert made.criteria[0].state == "failed"


@pytest.mark.parametrize("by_model", [True, False])
def test_the_text_for_having_given_up_shows_nothing_unless_it_is_expected(by_model: bool) -> None:
    data = flow(loopAgentflow_0={"fallbackMessage": 'Sorry: {"total": 0}'})
    answer, given = trial('Sorry: {"total": 0}'), vote('{"total": 0}') if by_model else Verdict(done=True)
    wanted = Expectation(fields=["total"])
    assert outcome(agreed(expect=wanted), answer, given=given, data=data, by_model=by_model).headline == "runs"
    wanted = Expectation(contains=["sorry"])
    made = outcome(agreed(expect=wanted), answer, given=given, data=data, by_model=by_model)
    assert made.criteria[0].state == "shown"


def test_a_trial_that_the_judge_found_wrong_has_not_passed() -> None:
    wrong = vote("Eva", "failed").model_copy(update={"done": False, "category": "LOGIC", "reason": "It forgot."})
    made = outcome(agreed(), trial(), given=wrong)
    assert made.failed_trials == [1]
    held = as_judged([trial()], made)
    assert [(one.passed, one.category, one.error) for one in held] == [(False, "LOGIC", "It forgot.")]
    assert as_judged([trial()], vote()) == [trial()]


@pytest.mark.parametrize(
    ("chain", "passed"),
    [
        ({}, True),
        ({"returnSourceDocuments": False}, True),
        ({"returnSourceDocuments": True}, False),
        ({"returnSourceDocuments": "true", "text": "[PLACEHOLDER: the rules]"}, True),
        ({"agentKnowledgeDocumentStores": '[{"returnSourceDocuments": true}]'}, False),
    ],
)
def test_documents_are_expected_only_of_a_flow_that_shows_them(chain: dict[str, Any], passed: bool) -> None:
    case = TestCase(id="t1", turns=["Hi"], expect=Expectation(sources=["rules.txt"]))
    assert checked(trial(), Trace(), case, flow(chain_0=chain), stand_in=False).passed is passed


def test_a_source_that_is_named_by_its_node_is_met_by_what_was_found() -> None:
    data = flow(plainText_0={}, chain_0={"returnSourceDocuments": True})
    found = Trace(sources=[TracedSource(text="Lunch is at noon.", metadata={})])
    contract = agreed(expect=Expectation(sources=["plainText_0"]))
    made = judged(Verdict(done=True), contract, [trial()], [found], data, by_model=False)
    assert made.headline == "works"


@pytest.mark.parametrize(
    ("fields", "variables", "category", "cause"),
    [
        ({"url": "[PLACEHOLDER: the address]"}, None, "CONFIG", "unfilled"),
        ({"url": "{{$vars.tenant}}/x"}, {"other"}, "CONFIG", "variable"),
        ({"url": "{{$vars.tenant}}/x"}, {"tenant"}, "EXTERNAL", "host"),
        ({"url": "{{$vars.tenant}}/x"}, None, "EXTERNAL", "host"),
        ({"systemMessage": "[PLACEHOLDER: the rules]"}, None, "EXTERNAL", "host"),
    ],
)
def test_what_is_left_to_fill_in_is_the_cause_of_a_failure_and_the_remedy(
    fields: dict[str, Any], variables: set[str] | None, category: str, cause: str
) -> None:
    failed = trial("", passed=False, category="EXTERNAL", error="getaddrinfo ENOTFOUND placeholder")
    case = TestCase(id="t1", turns=["Hi"])
    seen = checked(failed, Trace(), case, flow(requestsGet_0=fields), stand_in=True, variables=variables)
    assert seen.category == category
    known = playbook.known(seen.error)
    assert known is not None
    assert known.cause == cause
    told = failed_verdict([seen])
    assert told
    assert told.fix == known.advice


def test_a_placeholder_of_what_the_tests_simulate_is_no_cause() -> None:
    failed = trial("", passed=False, category="EXTERNAL", error="getaddrinfo ENOTFOUND x")
    data, asked = flow(requestsGet_0={"url": "[PLACEHOLDER: the address]"}), flow(requestsGet_0={})
    case = TestCase(id="t1", turns=["Hi"])
    assert checked(failed, Trace(), case, data, stand_in=True, asked=asked).category == "EXTERNAL"


def test_a_placeholder_is_no_cause_of_what_failed_in_another_step() -> None:
    data = flow(first_0={}, second_0={"url": "[PLACEHOLDER: the address]"})
    case = TestCase(id="t1", turns=["Hi"])
    broken = TraceStep(node_id="first_0", status="ERROR", error="Invalid JSON format in body")
    for ran, category in ([broken], "LOGIC"), ([TraceStep(node_id="second_0"), broken], "CONFIG"):
        seen = checked(trial(), Trace(steps=ran), case, data, stand_in=True)
        assert seen.category == category
    # No step is known: the placeholder may be the cause.
    failed = trial("", passed=False, category="EXTERNAL", error="getaddrinfo ENOTFOUND x")
    assert checked(failed, Trace(steps=[TraceStep(node_id="first_0")]), case, data, stand_in=True).category == "CONFIG"


def test_a_real_error_outside_the_flow_is_told_and_not_a_placeholder_of_another_step() -> None:
    data = flow(first_0={}, second_0={"url": "[PLACEHOLDER: the address]"})
    steps = [
        TraceStep(node_id="second_0"),
        TraceStep(node_id="first_0", status="ERROR", error="getaddrinfo ENOTFOUND x"),
    ]
    seen = checked(trial(), Trace(steps=steps), TestCase(id="t1", turns=["Hi"]), data, stand_in=True)
    assert (seen.category, "filled in" in seen.error) == ("EXTERNAL", False)


def test_a_placeholder_is_told_after_the_error_and_by_the_label_of_its_field() -> None:
    failed = trial("", passed=False, category="EXTERNAL", error="getaddrinfo ENOTFOUND x")
    data = flow(second_0={"baseUrl": "[PLACEHOLDER: the address]"})
    seen = checked(failed, Trace(), TestCase(id="t1", turns=["Hi"]), data, stand_in=True)
    told = failed_verdict([seen])
    assert told
    assert seen.worded("error") == text(
        "verdict.unfilled", error=failed.error, missing=["second_0, Base url: [PLACEHOLDER: the address]"]
    )
    german = translated(told.worded("reason"), "de")
    assert (
        say_in("de", "verdict.unfilled", error=failed.error, missing=["second_0, Base url: [PLACEHOLDER: the address]"])
        in german
    )


def test_foreign_words_of_an_error_are_cut_between_words_and_ours_stay_whole() -> None:
    long = "connect https://api.example/path " * 40
    told = failed_verdict(
        [trial("", passed=False, category="EXTERNAL", error=text("verdict.step_failed", step="A", error=long))]
    )
    assert told
    assert told.reason.endswith("…")
    assert told.reason.removesuffix("…").split()[-1] in long.split()
    german = translated(told.worded("reason"), "de")
    assert say_in("de", "verdict.step_failed", step="A", error="") in german


QUOTED = 'answer exactly "Be kind."'


@pytest.mark.parametrize(
    ("quote", "values", "carried", "state"),
    [
        # Read off the flow: a setting, and a text that the person quotes.
        ("at 0.2", [TEMPERATURE], ["chatOpenAI_0.temperature"], "done"),
        (QUOTED, [PROMPT], ["chain_0.systemMessage"], "done"),
        (QUOTED, [TEMPERATURE, PROMPT], ["chain_0.systemMessage", "chatOpenAI_0.temperature"], "done"),
        # Only a test shows what a model makes of a text, and another value is none.
        ("be friendly", [PROMPT], ["chain_0.systemMessage"], "not_shown"),
        ("at 0.7", [TEMPERATURE.model_copy(update={"value": 0.7})], ["chatOpenAI_0.temperature"], "not_shown"),
    ],
)
def test_what_can_be_read_off_the_flow_is_done_though_its_test_could_not_be_held(
    quote: str, values: list[PlannedValue], carried: list[str], state: str
) -> None:
    one = part(*carried).model_copy(update={"quote": quote})
    criteria = [Criterion(id="c1", text="It does.", part="p1", tests=["t1"])]
    blocked = trial("", passed=False, category="EXTERNAL", error="getaddrinfo ENOTFOUND x")
    made = outcome(agreed(one, criteria=criteria, values=values), blocked, given=Verdict(done=False))
    assert (made.criteria[0].state, made.parts[0].state) == ("not_tested", state)


def test_one_open_field_of_a_node_hides_no_other_and_what_is_not_done_is_no_criterion() -> None:
    data = flow(chain_0={"category": "Chains", "windowSize": 5, "documentStore": "[PLACEHOLDER: the guide]"})
    window = PlannedValue(node_id="chain_0", param="windowSize", value=5)
    one = part("chain_0.windowSize", nodes=("chain_0",))
    declined = Part(id="p2", quote="and a pony", state="not_possible", reason="There is none.")
    criteria = [
        Criterion(id="c1", text="Five.", part="p1", settings=["chain_0.windowSize"]),
        Criterion(id="c2", text="A pony.", part="p2", tests=["t1"]),
    ]
    made = outcome(agreed(one, declined, criteria=criteria, values=[window]), data=data, given=Verdict(done=True))
    assert [(item.id, item.state) for item in made.criteria] == [("c1", "shown")]
    assert [item.state for item in made.parts] == ["done", "not_possible"]


def test_a_bug_of_the_flow_is_told_before_what_could_not_be_tested() -> None:
    blocked = trial("", passed=False, category="CONFIG", error="Still to be filled in: x")
    told = failed_verdict([blocked, trial("", passed=False, category="LOGIC", error="It is rude.")])
    assert told
    assert (told.category, told.texts["reason"].code) == ("LOGIC", "verdict.questions_failed")
    alone = failed_verdict([blocked, trial()])
    assert alone
    assert alone.texts["reason"].code == "verdict.questions_not_tested"


def contract_of(*nodes: str, values: Sequence[str] = (), **more: Any) -> Plan:
    """Plan of a change whose one part names these nodes and values; no test shows it."""
    changes = [TEMPERATURE, PlannedValue(node_id="search_0", param="topK", value=7)]
    asked = Part(id="p1", quote="as I said", state="covered", nodes=list(nodes), values=list(values))
    named = [value for value in changes if f"{value.node_id}.{value.param}" in values]
    case = TestCase(id="t1", turns=["Who am I?"], expect=Expectation())
    shown = Criterion(id="c1", text="It remembers the name.", tests=["t1"])
    whole = {"operation": "update", "values": named, **more}
    return plan(**{"tests": [case], "criteria": [shown], "parts": [asked], **whole})


SEARCH = {"category": "Tools", "topK": "3"}
WITH_SEARCH = flow(chatOpenAI_0=MODEL, search_0=SEARCH)


@pytest.mark.parametrize(
    ("contract", "after", "state"),
    [
        # Removed, and said to be removed.
        (contract_of("search_0", removals=["search_0"]), flow(chatOpenAI_0=MODEL), "done"),
        (contract_of("search_0", removals=["search_0"]), WITH_SEARCH, "missing"),
        (contract_of("search_0"), WITH_SEARCH, "not_shown"),
        (contract_of("search_0", kept=["search_0"]), WITH_SEARCH, "done"),
        (contract_of("search_0"), flow(chatOpenAI_0=MODEL, search_0={**SEARCH, "topK": "5"}), "done"),
        (contract_of("search_0", "more_0"), flow(chatOpenAI_0=MODEL, search_0=SEARCH, more_0=SEARCH), "done"),
        (contract_of(values=["chatOpenAI_0.temperature"]), WITH_SEARCH, "done"),
        (contract_of(values=["search_0.topK"]), WITH_SEARCH, "not_shown"),
        (contract_of("search_0", operation="copy"), WITH_SEARCH, "done"),
        (contract_of(new_name="As I said"), WITH_SEARCH, "done"),
        (contract_of(new_name="Desk"), WITH_SEARCH, "not_shown"),
        (contract_of(values=["uploads"], uploads=["pdf"]), WITH_SEARCH, "done"),
        (contract_of(values=["uploads"]), WITH_SEARCH, "not_shown"),
    ],
)
def test_a_part_is_done_only_by_a_change_or_a_setting_of_the_flow(contract: Plan, after: str, state: str) -> None:
    made = judged(vote(), contract, [trial()], [Trace()], after, by_model=True, original=WITH_SEARCH)
    assert made.parts[0].state == state
    assert made.headline == ("works" if state == "done" else "runs")


def test_a_criterion_about_the_new_name_is_shown_by_the_name_and_by_no_answer() -> None:
    renames = agreed(part(), operation="update", new_name="As I said")
    made = judged(vote(), renames, [trial()], [Trace()], FLOW, by_model=True, original=FLOW)
    assert [(one.state, one.level) for one in made.criteria] == [("shown", "verified"), ("shown", "setting")]
    assert (made.parts[0].state, made.headline) == ("done", "works")


def test_what_flowise_and_code_say_of_a_trial_reads_in_the_language_of_the_session() -> None:
    late = FlowiseTimeoutError(
        text("error.flowise_timeout", endpoint="x", call="POST", seconds="60"), hint=text("error.may_still_complete")
    )
    for said in (failure_text(late), sentences(text("verdict.step_not_run", step="llm_0"))):
        failed = trial("", passed=False, category="TIMEOUT", error=said).shortened(300)
        failed = checked(failed, Trace(), TestCase(id="t1", turns=["Hi"]), FLOW, stand_in=True)
        verdict = failed_verdict([failed])
        assert verdict
        assert translated(said, "de") in translated(verdict.worded("reason"), "de") != verdict.reason
        assert failed.shortened(5).worded("error") == said  # our sentences are never cut


def test_steps_that_no_test_reached_are_listed_in_the_language_of_the_session() -> None:
    runs = [text("verdict.step_runs", step=name) for name in ("A", "B")]
    criteria = [CriterionVerdict(id=f"c{n}", text=words) for n, words in enumerate(runs, 1)]
    (line,) = Verdict(done=True, criteria=criteria).not_shown()
    assert all(translated(words, "fr") in translated(line, "fr") for words in runs)


def test_the_result_says_what_no_test_showed_for_real() -> None:
    shown = Criterion(id="c1", text="It remembers the name.", tests=["t1"])
    about = Criterion(id="c2", text="It is cold.", settings=["chatOpenAI_0.temperature"])
    made = outcome(agreed(criteria=[shown, about], values=[TEMPERATURE]))
    assert made.headline == "works"
    _, said = outcome_of(made, [trial()])
    assert [(one.code, str(one.params["listed"])) for one in said[1:] if isinstance(one, Text)] == [
        ("interrupt.shown_by.setting", "It is cold")
    ]
