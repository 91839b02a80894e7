"""Changes by rules of the steps of an AgentFlow that is there: forms, requests, limits, approvals for some cases."""

import pytest

from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTION_WORDS
from tests.unit.reasoning.test_rules_rewiring import STORE, after, chain, changed, inputs, planned, step

BOOKING = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0", params={
            "startInputType": "formInput", "formTitle": "Booking", "formInputTypes": [
                {"type": "string", "label": "Your name", "name": "name"},
                {"type": "options", "label": "Kind of boat", "name": "boat",
                 "addOptions": [{"option": "kayak"}, {"option": "canoe"}]}],
            "startState": [{"key": "days", "value": ""}]}),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", label="Read dates", params={
            "llmMessages": [{"role": "system", "content": "Find the dates."}],
            "llmUpdateState": [{"key": "days", "value": "{{ output }}"}]}),
        step("llmAgentflow_1", "Offer", "Write an offer for {{ $flow.state.days }} days."),
        AddNode(node_name="humanInputAgentflow", node_id="humanInputAgentflow_0", label="Kim's check", params={
            "humanInputDescriptionType": "fixed", "humanInputDescription": "Is it right?"}),
        AddNode(node_name="httpAgentflow", node_id="httpAgentflow_0", label="To the register", params={
            "method": "POST", "url": "https://boats.example/api", "bodyType": "json",
            "body": '{"offer": "{{ llmAgentflow_1 }}"}'}),
        AddNode(node_name="loopAgentflow", node_id="loopAgentflow_0", label="Once more",
                params={"loopBackToNode": "llmAgentflow_1-Offer", "maxLoopCount": 5}),
        *chain("startAgentflow_0", "llmAgentflow_0", "llmAgentflow_1", "humanInputAgentflow_0"),
        *(Connect(source_node_id="humanInputAgentflow_0", source_anchor=way, target_node_id=target,
                  target_anchor=target)
          for way, target in (("proceed", "httpAgentflow_0"), ("reject", "loopAgentflow_0"))),
    ],
    STORE.schemas,
).graph  # fmt: skip


@pytest.mark.parametrize(
    ("wish", "fields"),
    [
        ("The form should also ask for the phone number and the wanted date.", ["Phone number", "Wanted date"]),
        ("Das Formular soll auch nach der Telefonnummer fragen.", ["Telefonnummer"]),
        ("Nel modulo ci vuole anche l'email", ["Email"]),
        ('Add a field "Club" to the form', ["Club"]),
    ],
)
def test_a_form_asks_for_more(wish: str, fields: list[str]) -> None:
    graph, plan = changed(BOOKING, wish)
    assert not plan.not_done
    rows = inputs(graph, "startAgentflow_0")["formInputTypes"]
    assert [row["label"] for row in rows] == ["Your name", "Kind of boat", *fields]


def test_a_form_lets_people_choose_and_has_one_more_to_choose() -> None:
    wish = 'The form needs a choice "When?" with morning / noon / evening. Add "sup board" to the kinds of boat.'
    graph, plan = changed(BOOKING, wish)
    assert not plan.not_done
    _, boat, when = inputs(graph, "startAgentflow_0")["formInputTypes"]
    assert (when["type"], when["label"], when["name"]) == ("options", "When?", "when")
    assert [one["option"] for one in when["addOptions"]] == ["morning", "noon", "evening"]
    assert [one["option"] for one in boat["addOptions"]] == ["kayak", "canoe", "sup board"]


@pytest.mark.parametrize(
    "wish",
    [
        "In the form they always complain that it takes too long to see what it costs",
        "The form should be friendlier and explain why we ask all these things",
    ],
)
def test_what_is_no_name_becomes_no_field_of_a_form(wish: str) -> None:
    plan = planned(BOOKING, wish)
    assert not any(value.param == "formInputTypes" for value in plan.values)


def test_a_request_has_another_header_and_sends_more_of_what_there_is() -> None:
    wish = "To the register: add the header X-From: bot. The name should go to the register, too."
    graph, plan = changed(BOOKING, wish)
    assert not plan.not_done
    call = inputs(graph, "httpAgentflow_0")
    assert call["headers"] == [{"key": "X-From", "value": "bot"}]
    assert call["body"] == '{"offer": "{{ llmAgentflow_1 }}", "name": "{{ $form.name }}"}'


@pytest.mark.parametrize(
    "wish",
    ["Cap the loop at 2.", "Es darf höchstens 2 mal neu geschrieben werden.", "Si può rifare al massimo due volte."],
)
def test_a_repetition_has_another_limit(wish: str) -> None:
    graph, plan = changed(BOOKING, wish)
    assert not plan.not_done
    assert inputs(graph, "loopAgentflow_0")["maxLoopCount"] == 2


def test_what_a_model_may_repeat_is_no_limit_of_a_loop() -> None:
    plan = planned(BOOKING, "Offer: never repeat yourself, at most 2 times mention the price.")
    assert not any(value.param == "maxLoopCount" for value in plan.values)


def test_an_approval_that_comes_does_not_take_the_place_of_one_that_goes() -> None:
    wish = "Add an approval behind the Engine help. Remove the approval of the money draft."
    graph, plan = changed(TRIAGE, wish)
    assert not plan.not_done
    assert after(graph, "llmAgentflow_0") == {"directReplyAgentflow_0"}
    assert after(graph, "llmAgentflow_1") == {"humanInputAgentflow_1"}


def test_who_approves_is_told_another_text() -> None:
    graph, plan = changed(BOOKING, 'The text of the approval should be "Please look at the dates."')
    assert not plan.not_done
    assert inputs(graph, "humanInputAgentflow_0")["humanInputDescription"] == "Please look at the dates."


@pytest.mark.parametrize(
    "wish",
    ["We don't need the approval any more. Send it directly.", "Wir brauchen die Freigabe nicht mehr, nimm sie raus."],
)
def test_an_approval_that_nobody_needs_goes_with_what_a_refusal_led_to(wish: str) -> None:
    graph, plan = changed(BOOKING, wish)
    assert not plan.not_done
    assert plan.removals == ["humanInputAgentflow_0", "loopAgentflow_0"]
    assert after(graph, "llmAgentflow_1") == {"httpAgentflow_0"}


@pytest.mark.parametrize("wish", ["Before the Engine help's answer goes out I want to approve it.",
                                  "Bevor die Antwort von Engine help rausgeht, will ich sie freigeben."])  # fmt: skip
def test_before_the_answer_of_a_model_goes_out_is_behind_the_model(wish: str) -> None:
    graph, plan = changed(TRIAGE, wish)
    assert not plan.not_done
    assert after(graph, "llmAgentflow_1") == {"humanInputAgentflow_1"}


def test_what_a_reply_shows_of_a_step_is_not_lost() -> None:
    wish = 'Send money draft should end with "Write again if it is unclear."'
    graph, plan = changed(TRIAGE, wish)
    assert not plan.not_done
    text = inputs(graph, "directReplyAgentflow_0")["directReplyMessage"]
    assert text == "{{ llmAgentflow_0 }} Write again if it is unclear."
    assert planned(TRIAGE, 'Send money draft should say "Write again."').declined


def test_a_request_that_comes_is_no_other_address_of_one_that_is_there() -> None:
    wish = "Before it goes to the register, send the name in a POST to https://log.example/in too."
    graph, _ = changed(BOOKING, wish)
    assert inputs(graph, "httpAgentflow_0")["url"] == "https://boats.example/api"


def test_a_request_is_made_with_another_method() -> None:
    graph, plan = changed(BOOKING, "To the register should use PUT instead of POST.")
    assert not plan.not_done
    assert inputs(graph, "httpAgentflow_0")["method"] == "PUT"


def test_a_reply_and_a_title_of_one_wish_are_no_name_of_a_branch() -> None:
    wish = "Ajoute une branche pour la presse avec la réponse « Écrivez à jo@heron.example. » "
    plan = planned(TRIAGE, f"{wish}Et renomme Engine help en « Aide ».")
    assert plan.declined or not any("Aide" in str(value.value) for value in plan.values)


def test_what_is_to_go_and_is_not_there_is_told_to_no_model() -> None:
    plan = planned(TRIAGE, "Please remove the Slack message after the Engine help, the channel is gone.")
    assert "Slack" in (plan.declined or "")


def test_the_price_of_one_more_to_choose_is_not_lost() -> None:
    graph, plan = changed(BOOKING, 'Add "sup board" to the kinds of boat, in the offer it is 30 euros a day.')
    assert "sup board" in str(inputs(graph, "startAgentflow_0")["formInputTypes"])
    assert plan.not_done or "30 euros" in str(inputs(graph, "llmAgentflow_1")["llmMessages"])


def test_a_step_stays_whose_value_another_one_reads() -> None:
    plan = planned(BOOKING, "Remove the Read dates step")
    assert plan.declined


TRIAGE = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="conditionAgentAgentflow", node_id="conditionAgentAgentflow_0", label="Which desk", params={
            "conditionAgentModel": "chatOpenAI", "conditionAgentModelConfig": {"modelName": "gpt-4o-mini"},
            "conditionAgentInput": "{{ question }}",
            "conditionAgentScenarios": [{"scenario": "Money"}, {"scenario": "Engines"}]}),
        step("llmAgentflow_0", "Money draft", "Answer on money."),
        step("llmAgentflow_1", "Engine help", "Answer on engines."),
        AddNode(node_name="humanInputAgentflow", node_id="humanInputAgentflow_0", label="Check money draft"),
        AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0", label="Send money draft",
                params={"directReplyMessage": "{{ llmAgentflow_0 }}"}),
        *chain("startAgentflow_0", "conditionAgentAgentflow_0"), *chain("llmAgentflow_0", "humanInputAgentflow_0"),
        *(Connect(source_node_id=source, source_anchor=way, target_node_id=target, target_anchor=target)
          for source, way, target in (("conditionAgentAgentflow_0", "0", "llmAgentflow_0"),
                                      ("conditionAgentAgentflow_0", "1", "llmAgentflow_1"),
                                      ("humanInputAgentflow_0", "proceed", "directReplyAgentflow_0"))),
    ],
    STORE.schemas,
).graph  # fmt: skip


def test_a_case_in_which_an_answer_goes_out_directly_is_told_to_no_model() -> None:
    wish = "If it is about invoices and below 20 euros the money draft must go directly to the customer."
    assert planned(TRIAGE, wish).declined


@pytest.mark.parametrize(
    ("wish", "case"),
    [
        ("I only want to approve it if it is about a refund. All others can go out directly.", "It is about a refund"),
        ("Freigeben nur noch, wenn es um eine Erstattung geht.", "Es um eine Erstattung geht"),
        ("L'approbation seulement si c'est un remboursement", "C'est un remboursement"),
    ],
)
def test_a_person_is_asked_in_some_cases_alone(wish: str, case: str) -> None:
    graph, plan = changed(TRIAGE, wish)
    assert not plan.not_done
    (fork,) = after(graph, "llmAgentflow_0")
    assert inputs(graph, fork)["conditionAgentScenarios"][0] == {"scenario": case}
    ways = {edge.output_name: edge.target for edge in graph.edges if edge.source == fork}
    assert ways == {"0": "humanInputAgentflow_0", "1": "directReplyAgentflow_0"}


def test_an_approval_comes_behind_the_model_that_is_meant_and_a_refusal_goes_back_to_it() -> None:
    wish = "The engine answers should also be approved before they go out. If we say no, write it again, max 2 times."
    graph, plan = changed(TRIAGE, wish)
    assert not plan.not_done
    assert after(graph, "llmAgentflow_1") == {"humanInputAgentflow_1"}
    (back,) = [node for node in graph.nodes if node.name == "loopAgentflow"]
    assert (back.inputs["loopBackToNode"], back.inputs["maxLoopCount"]) == ("llmAgentflow_1-Engine help", 2)
    assert back.id in after(graph, "humanInputAgentflow_1")


def model(id_: str, label: str, text: str, name: str, chat: str, **config: object) -> AddNode:
    """A step with a model of its own."""
    params = {"llmModel": chat, "llmModelConfig": {"modelName": name, **config}}
    return step(id_, label, text).model_copy(update={"params": {**step(id_, label, text).params, **params}})


MODELS = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0", params={
            "startInputType": "formInput", "formTitle": "Walks", "formInputTypes": [
                {"type": "string", "label": "Place", "name": "place"}]}),
        model("llmAgentflow_0", "Route planner", "Plan a walk near {{ $form.place }}.", "claude-sonnet-4-0",
              "chatAnthropic", temperature=0.7),
        AddNode(node_name="humanInputAgentflow", node_id="humanInputAgentflow_0", label="Ranger approves", params={
            "humanInputDescriptionType": "fixed", "humanInputDescription": "Is the walk safe?"}),
        AddNode(node_name="loopAgentflow", node_id="loopAgentflow_0", label="Plan again",
                params={"loopBackToNode": "llmAgentflow_0-Route planner", "maxLoopCount": 4}),
        model("llmAgentflow_1", "Packing list", "List what to take along.", "gpt-4o", "chatOpenAI", temperature=0.2),
        *chain("startAgentflow_0", "llmAgentflow_0", "humanInputAgentflow_0"),
        *(Connect(source_node_id="humanInputAgentflow_0", source_anchor=way, target_node_id=target,
                  target_anchor=target)
          for way, target in (("proceed", "llmAgentflow_1"), ("reject", "loopAgentflow_0"))),
    ],
    STORE.schemas,
    credentials={"openAIApi": "a7acd2ec-afaf-5f55-9aef-0532197ae938",
                 "anthropicApi": "a7acd2ec-afaf-5f55-9aef-0532197ae938"},
).graph  # fmt: skip


def temperatures(graph: GraphIR) -> list[float]:
    return [float(inputs(graph, f"llmAgentflow_{n}")["llmModelConfig"]["temperature"]) for n in (0, 1)]


@pytest.mark.parametrize(
    ("wish", "after_"),
    [
        ('Set the temperature of the packing list to 0.1. The title of "Plan again" is "Once more" now.', [0.7, 0.1]),
        ("Die Packing list bekommt die Temperatur 0,1", [0.7, 0.1]),
        ("Pon la temperatura en 0.1 en todas partes", [0.1, 0.1]),
        ("Metti la temperatura a 0.1 nel Route planner", [0.1, 0.2]),
    ],
)
def test_a_value_is_set_in_the_step_that_its_clause_names(wish: str, after_: list[float]) -> None:
    assert temperatures(changed(MODELS, wish)[0]) == after_


@pytest.mark.parametrize(
    "wish",
    [
        'Rename "Ranger approves" to "Warden approves". Set the temperature of the weather step to 0.1.',
        "Rename „Ranger approves“ to „Warden approves“ and use Claude Haiku for the weather.",
    ],
)
def test_a_value_for_a_step_that_is_not_there_is_set_in_none_and_told(wish: str) -> None:
    graph, plan = changed(MODELS, wish)
    assert [inputs(graph, f"llmAgentflow_{n}") for n in (0, 1)] == [inputs(MODELS, f"llmAgentflow_{n}") for n in (0, 1)]
    assert any("weather" in part.quote and part.state == "not_understood" for part in plan.parts)


@pytest.mark.parametrize("wish", ["Use Claude for the packing list too.", "Nutze Claude auch für die Packing list."])
def test_a_model_that_another_step_has_is_the_same_one(wish: str) -> None:
    config = inputs(changed(MODELS, wish)[0], "llmAgentflow_1")["llmModelConfig"]
    assert (config["modelName"], config["temperature"]) == ("claude-sonnet-4-0", 0.2)


@pytest.mark.parametrize(
    "wish",
    [
        "Name the shelters on the packing list. The ranger still has to approve. Please keep Claude for the route.",
        "Auf die Packing list gehört Wasser. Der Ranger muss weiterhin freigeben. Bitte Claude behalten.",
    ],
)
def test_what_is_so_already_and_is_to_stay_changes_nothing(wish: str) -> None:
    graph, _ = changed(MODELS, wish)
    assert {node.id for node in graph.nodes} == {node.id for node in MODELS.nodes}
    assert inputs(graph, "llmAgentflow_0") == inputs(MODELS, "llmAgentflow_0")
    assert inputs(graph, "llmAgentflow_1")["llmModel"] == "chatOpenAI"


@pytest.mark.parametrize(
    "wish",
    [
        "A mountain guide wants to see the packing list before it goes out. If she says no it is written again, "
        "at most twice.",
        "Die Chefin will die Packing list erst sehen, bevor sie rausgeht. Bei Ablehnung wird sie neu geschrieben, "
        "höchstens 2 Mal.",
        "De gids wil de packing list eerst zien voordat die naar de gasten gaat. Bij afkeuren opnieuw schrijven, "
        "maximaal 2 keer.",
    ],
)
def test_a_limit_of_something_new_is_none_of_a_loop_that_is_there(wish: str) -> None:
    plan = planned(MODELS, wish)
    if plan.declined is None:
        graph, _ = changed(MODELS, wish)
        assert inputs(graph, "loopAgentflow_0")["maxLoopCount"] == 4


@pytest.mark.parametrize(
    "wish",
    [
        "put it back to how it was before Kim changed it",
        "Revert the last change please",
        "Mach das wieder so wie vorher",
        "Remets tout comme avant",
        "Vuelve a dejarlo como estaba antes",
        "Rimetti tutto com'era prima",
        "Zet het terug zoals het was",
        "Przywróć poprzednią wersję",
    ],
)
def test_what_was_there_before_is_not_known_and_asked_for(wish: str) -> None:
    plan = planned(MODELS, wish)
    assert plan.declined in {say("question_different", code) for code in FUNCTION_WORDS}


@pytest.mark.parametrize(
    "wish",
    [
        "In the packing list tell people to bring the map back to us",
        "Auf der Packing list soll stehen, wie man eine Buchung rückgängig macht",
    ],
)
def test_what_people_bring_or_take_back_is_told_to_the_model(wish: str) -> None:
    assert inputs(changed(MODELS, wish)[0], "llmAgentflow_1") != inputs(MODELS, "llmAgentflow_1")


@pytest.mark.parametrize("wish", ["Set the temperature to 0.3", "Use Claude", "Nutze gpt-4o-mini"])
def test_of_which_model_a_value_is_is_asked_where_nothing_says_it(wish: str) -> None:
    declined = planned(MODELS, wish).declined
    assert declined
    assert "Route planner, Packing list" in declined


@pytest.mark.parametrize(
    ("wish", "options"),
    [
        ("Add a field to the form: dog, yes or no? If yes, the packing list has a lead on it.", ["yes", "no"]),
        ("Ins Formular soll noch ein Feld: Hund, ja oder nein? Bei ja gehört eine Leine auf die Packing list.",
         ["ja", "nein"]),
    ],
)  # fmt: skip
def test_yes_or_no_is_one_field_and_its_rule_has_what_was_said(wish: str, options: list[str]) -> None:
    graph, _ = changed(MODELS, wish)
    _, field = inputs(graph, "startAgentflow_0")["formInputTypes"]
    assert [one["option"] for one in field["addOptions"]] == options
    told = inputs(graph, "llmAgentflow_1")["llmMessages"][0]["content"]
    assert f"{field['label']}: {{{{ $form.{field['name']} }}}}. " in told


def test_a_rule_for_a_field_that_comes_is_for_the_step_that_reads_the_form() -> None:
    graph, _ = changed(MODELS, "A new form field \"Age\", and if it's empty don't mention children.")
    told = inputs(graph, "llmAgentflow_0")["llmMessages"][0]["content"]
    assert told.endswith("{{ $form.age }}. If it's empty don't mention children.")
    assert inputs(graph, "llmAgentflow_1") == inputs(MODELS, "llmAgentflow_1")


@pytest.mark.parametrize(
    "wish",
    [
        "We need a shopping list too, next to the packing list, with prices. It should stand below the packing list. "
        'Rename "Plan again" to "Once more".',
        "Wir brauchen noch eine Einkaufsliste neben der Packing list. Sie soll unter der Packing list stehen. "
        "„Plan again“ heißt jetzt „Noch einmal“.",
    ],
)
def test_what_comes_beside_a_step_is_no_rule_for_that_step(wish: str) -> None:
    graph, plan = changed(MODELS, wish)
    assert inputs(graph, "llmAgentflow_1") == inputs(MODELS, "llmAgentflow_1")
    assert sum(part.state == "not_understood" for part in plan.parts) > 1
