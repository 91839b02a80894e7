"""Changes by rules in an AgentFlow that is there: values and texts of its steps; the steps themselves stay."""

import pytest

from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.language.lexicon import FUNCTION_WORDS
from tests.unit.reasoning.test_rules_flows_there import STORE, chain, changed, declines_structure, inputs, planned, step

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


#: Beside a step that is no agent one that is.
GUIDE = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        step("llmAgentflow_0", "Route planner", "Plan a walk."),
        AddNode(node_name="agentAgentflow", node_id="agentAgentflow_0", label="Complaint care", params={
            "agentModel": "chatOpenAI", "agentModelConfig": {"modelName": "gpt-4o"},
            "agentMessages": [{"role": "system", "content": "Answer complaints."}]}),
        *chain("startAgentflow_0", "llmAgentflow_0", "agentAgentflow_0"),
    ],
    STORE.schemas,
    credentials={"openAIApi": "a7acd2ec-afaf-5f55-9aef-0532197ae938"},
).graph  # fmt: skip

#: A flow, a wish for other steps of it, and the sentences that are quoted where it is not the whole wish.
STRUCTURE: list[tuple[GraphIR, str, list[str]]] = [
    (BOOKING, "Das Formular soll auch nach der Telefonnummer fragen.", []),
    (BOOKING, "Nel modulo ci vuole anche l'email", []),
    (BOOKING, 'Add a field "Club" to the form', []),
    (BOOKING, 'The form needs a choice "When?" with morning / noon / evening. Add "sup board" to the kinds of boat.',
     ['The form needs a choice "When?" with morning / noon / evening.']),
    (BOOKING, "To the register: add the header X-From: bot. The name should go to the register, too.",
     ["To the register: add the header X-From: bot.", "The name should go to the register, too."]),
    (BOOKING, "To the register should use PUT instead of POST.", []),
    (BOOKING, "Before it goes to the register, send the name in a POST to https://log.example/in too.", []),
    (BOOKING, 'The text of the approval should be "Please look at the dates."', []),
    (BOOKING, "Remove the Read dates step", []),
    (TRIAGE, "Add an approval behind the Engine help. Remove the approval of the money draft.",
     ["Add an approval behind the Engine help.", "Remove the approval of the money draft."]),
    (TRIAGE, "Before the Engine help's answer goes out I want to approve it.", []),
    (TRIAGE, "Bevor die Antwort von Engine help rausgeht, will ich sie freigeben.", []),
    (TRIAGE, "I only want to approve it if it is about a refund. All others can go out directly.",
     ["I only want to approve it if it is about a refund."]),
    (TRIAGE, "Freigeben nur noch, wenn es um eine Erstattung geht.", []),
    (TRIAGE, "L'approbation seulement si c'est un remboursement", []),
    (TRIAGE, "The engine answers should also be approved before they go out. If we say no, write it again, max 2 "
     "times.", ["The engine answers should also be approved before they go out.", "If we say no, write it again"]),
    (TRIAGE, "Ajoute une branche pour la presse avec la réponse « Écrivez à jo@heron.example. » Et renomme Engine help "
     "en « Aide ».", ["Ajoute une branche pour la presse avec la réponse"]),
    (TRIAGE, "Please remove the Slack message after the Engine help, the channel is gone.", []),
    (MODELS, "Add a field to the form: dog, yes or no? If yes, the packing list has a lead on it.",
     ["Add a field to the form: dog, yes or no?"]),
    (MODELS, "Ins Formular soll noch ein Feld: Hund, ja oder nein? Bei ja gehört eine Leine auf die Packing list.",
     ["Ins Formular soll noch ein Feld: Hund, ja oder nein?"]),
    (MODELS, "A new form field \"Age\", and if it's empty don't mention children.", []),
    (MODELS, "A mountain guide wants to see the packing list before it goes out. If she says no it is written again, "
     "at most twice.", ["A mountain guide wants to see the packing list before it goes out."]),
    (MODELS, "Die Chefin will die Packing list erst sehen, bevor sie rausgeht. Bei Ablehnung wird sie neu geschrieben, "
     "höchstens 2 Mal.", ["Die Chefin will die Packing list erst sehen, bevor sie rausgeht."]),
]  # fmt: skip


@pytest.mark.parametrize(("graph", "wish", "said"), STRUCTURE)
def test_forms_requests_limits_and_approvals_are_declined_and_stay(graph: GraphIR, wish: str, said: list[str]) -> None:
    declines_structure(graph, wish, *said)


@pytest.mark.parametrize(
    "wish",
    [
        "The form should also ask for the phone number and the wanted date.",
        "Es darf höchstens 2 mal neu geschrieben werden.",
    ],
)
def test_what_is_not_heard_as_a_wish_for_the_steps_is_declined_with_its_words(wish: str) -> None:
    assert f"«{wish.removesuffix('.')}" in (planned(BOOKING, wish).declined or "")


@pytest.mark.parametrize(
    ("graph", "other", "wish"),
    [
        (BOOKING, "Offer: mention the deposit.", 'Add a field "Club" to the form'),
        (BOOKING, "Offer: mention the deposit.", "Remove the Read dates step"),
        (MODELS, "Packing list: mention the deposit.", "Aggiungi un'approvazione prima della Packing list."),
    ],
)
def test_of_a_list_only_what_is_about_steps_is_not_done(graph: GraphIR, other: str, wish: str) -> None:
    made, plan = changed(graph, f"- {other}\n- {wish}")
    assert [part.quote for part in plan.not_done] == [wish]
    (node,) = [one for one in made.nodes if "deposit" in str(one.inputs)]
    assert wish.removesuffix(".") not in str(node.inputs)
    assert [edge.ends for edge in made.edges] == [edge.ends for edge in graph.edges]
    before, behind = ([(one.label, one.inputs) for one in all_.nodes if one.id != node.id] for all_ in (graph, made))
    assert before == behind


def test_what_a_model_may_repeat_is_told_to_it_and_is_no_limit_of_a_loop() -> None:
    wish = "Offer: never repeat yourself, at most 2 times mention the price."
    graph, plan = changed(BOOKING, wish)
    assert [(value.node_id, value.param) for value in plan.values] == [("llmAgentflow_1", "llmMessages[0].content")]
    assert "at most 2 times mention the price" in str(inputs(graph, "llmAgentflow_1")["llmMessages"])
    assert inputs(graph, "loopAgentflow_0")["maxLoopCount"] == 5


@pytest.mark.parametrize(
    "wish",
    [
        'Send money draft should end with "Write again if it is unclear."',
        'Send money draft should say "Write again."',
    ],
)
def test_the_text_of_a_fixed_reply_is_not_changed_and_no_other_step_is_told(wish: str) -> None:
    plan = planned(TRIAGE, wish)
    assert f"«{wish.removesuffix('.')}" in (plan.declined or "")
    assert plan.values == []


def temperatures(graph: GraphIR) -> list[float]:
    return [float(inputs(graph, f"llmAgentflow_{n}")["llmModelConfig"]["temperature"]) for n in (0, 1)]


@pytest.mark.parametrize(
    ("wish", "after_"),
    [
        ('Set the temperature of the packing list to 0.1. The title of "Plan again" is "Once more" now.', [0.7, 0.1]),
        ("Die Packing list bekommt die Temperatur 0,1", [0.7, 0.1]),
        ("Pon la temperatura en 0.1 en todas partes", [0.1, 0.1]),
        ("Metti la temperatura a 0.1 nel Route planner", [0.1, 0.2]),
        ("Use claude-opus-4-0 in the Route planner. The packing list is too flowery, temperature to 0.1.", [0.7, 0.1]),
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


def test_what_comes_beside_a_step_is_told_as_not_done_and_is_no_rule_for_that_step() -> None:
    beside = "Wir brauchen noch eine Einkaufsliste neben der Packing list."
    graph, plan = changed(MODELS, f"{beside} Auf die Packing list gehört Wasser.")
    assert beside in [part.quote for part in plan.not_done]
    told = str(inputs(graph, "llmAgentflow_1")["llmMessages"])
    assert ("Wasser" in told, "Einkaufsliste" in told) == (True, False)


@pytest.mark.parametrize("wish", ["All gpt-4o steps to gpt-4.1.", "Alle Schritte mit gpt-4o auf gpt-4.1 umstellen."])
def test_all_steps_of_a_model_are_those_that_have_it(wish: str) -> None:
    graph, plan = changed(MODELS, wish)
    assert plan.declined is None
    assert inputs(graph, "llmAgentflow_1")["llmModelConfig"]["modelName"] == "gpt-4.1"
    assert inputs(graph, "llmAgentflow_0")["llmModelConfig"]["modelName"] == "claude-sonnet-4-0"


@pytest.mark.parametrize(
    "wish",
    ['Rename "Route planner" to "Routes" and give it a web search.', "Give the Route planner a web search, be brief."],
)
def test_a_step_that_is_no_agent_gets_no_tool_and_no_other_step_does(wish: str) -> None:
    plan = planned(GUIDE, wish)
    assert not any(value.param == "agentTools" for value in plan.values)
    assert plan.declined or any("web search" in part.quote for part in plan.not_done)
