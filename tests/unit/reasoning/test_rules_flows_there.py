"""Changes by rules of what a flow reads, of the titles of its steps and of copies; the steps of an AgentFlow stay."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from flowise_dev_agent.agent.plan_values import with_planned_values
from flowise_dev_agent.agent.prompt_context import components_of, connected_inputs
from flowise_dev_agent.contracts.plan import OpsAnswer
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, RemoveNode, SetParam, compile_ops
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PatchRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.language.text import detect_language
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

STORE = NodeStore.from_snapshot()
DUMMY = "a7acd2ec-afaf-5f55-9aef-0532197ae938"
PROMPT = "You answer for the Heron Boat Club. See https://old.heron.example/faq for more.\n\n{context}"


def chain(*ids: str) -> list[Connect]:
    return [Connect(source_node_id=one, target_node_id=two, target_anchor=two) for one, two in pairwise(ids)]


DOCUMENTS = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o"}),
        AddNode(node_name="conversationalRetrievalQAChain", node_id="chain_0", params={"responsePrompt": PROMPT}),
        AddNode(node_name="openAIEmbeddings", node_id="openAIEmbeddings_0"),
        AddNode(node_name="memoryVectorStore", node_id="store_0", params={"topK": 4}),
        AddNode(node_name="recursiveCharacterTextSplitter", node_id="splitter_0"),
        AddNode(node_name="pdfFile", node_id="pdfFile_0", label="Club Rules 2023"),
        AddNode(
            node_name="cheerioWebScraper",
            node_id="cheerioWebScraper_0",
            params={"url": "https://old.heron.example/faq"},
        ),
        *(
            Connect(source_node_id=source, target_node_id=target, target_anchor=anchor)
            for source, target, anchor in [
                ("chatOpenAI_0", "chain_0", "model"),
                ("openAIEmbeddings_0", "store_0", "embeddings"),
                ("store_0", "chain_0", "vectorStoreRetriever"),
                ("splitter_0", "pdfFile_0", "textSplitter"),
                ("splitter_0", "cheerioWebScraper_0", "textSplitter"),
                ("pdfFile_0", "store_0", "document"),
                ("cheerioWebScraper_0", "store_0", "document"),
            ]
        ),
    ],
    STORE.schemas,
).graph


#: One PDF in a store that has an address of its own.
SERVED = compile_ops(
    DOCUMENTS,
    [
        RemoveNode(node_id="cheerioWebScraper_0"),
        RemoveNode(node_id="store_0"),
        AddNode(
            node_name="chroma", node_id="store_0", params={"collectionName": "c", "chromaURL": "http://chroma:8000"}
        ),
        Connect(source_node_id="openAIEmbeddings_0", target_node_id="store_0", target_anchor="embeddings"),
        Connect(source_node_id="store_0", target_node_id="chain_0", target_anchor="vectorStoreRetriever"),
        Connect(source_node_id="pdfFile_0", target_node_id="store_0", target_anchor="document"),
    ],
    STORE.schemas,
).graph


def step(id_: str, label: str, text: str) -> AddNode:
    params: dict[str, Any] = {"llmMessages": [{"role": "system", "content": text}]}
    return AddNode(node_name="llmAgentflow", node_id=id_, label=label, params=params)


STEPS = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        step("llmAgentflow_0", "Summarise report", "Summarise it."),
        step("llmAgentflow_1", "Letter writer", "Write the letter."),
        AddNode(node_name="httpAgentflow", node_id="httpAgentflow_0", label="HTTP request",
                params={"method": "POST", "url": "https://crm.heron.example/v1/letters"}),
        AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0", label="Reply",
                params={"directReplyMessage": "Done."}),
        *chain("startAgentflow_0", "llmAgentflow_0", "llmAgentflow_1", "httpAgentflow_0", "directReplyAgentflow_0"),
    ],
    STORE.schemas,
).graph  # fmt: skip

APPROVED = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        step("llmAgentflow_0", "Letter", "Write the letter."),
        AddNode(node_name="humanInputAgentflow", node_id="humanInputAgentflow_0", label="Secretary's check"),
        AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0", label="Reply",
                params={"directReplyMessage": "Done."}),
        *chain("startAgentflow_0", "llmAgentflow_0", "humanInputAgentflow_0"),
        Connect(source_node_id="humanInputAgentflow_0", source_anchor="proceed",
                target_node_id="directReplyAgentflow_0", target_anchor="directReplyAgentflow_0"),
    ],
    STORE.schemas,
).graph  # fmt: skip

SORTED = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="conditionAgentAgentflow", node_id="conditionAgentAgentflow_0", label="What is it about",
                params={"conditionAgentScenarios": [{"scenario": "Boats"}, {"scenario": "Other"}]}),
        step("llmAgentflow_0", "Boats desk", "Answer on boats."),
        step("llmAgentflow_1", "Other desk", "Answer the rest."),
        *chain("startAgentflow_0", "conditionAgentAgentflow_0"),
        *(Connect(source_node_id="conditionAgentAgentflow_0", source_anchor=str(number),
                  target_node_id=f"llmAgentflow_{number}", target_anchor=f"llmAgentflow_{number}")
          for number in (0, 1)),
    ],
    STORE.schemas,
).graph  # fmt: skip


LIMITED = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        step("llmAgentflow_0", "Letter", "Write the letter."),
        AddNode(node_name="conditionAgentflow", node_id="conditionAgentflow_0", label="Big order", params={
            "conditions": [{"type": "number", "value1": "{{ question }}", "operation": "larger", "value2": 40}]}),
        AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0", label="Big reply",
                params={"directReplyMessage": "We call you within three days."}),
        *chain("startAgentflow_0", "conditionAgentflow_0"),
        *(Connect(source_node_id="conditionAgentflow_0", source_anchor=str(number), target_node_id=target,
                  target_anchor=target)
          for number, target in enumerate(("directReplyAgentflow_0", "llmAgentflow_0"))),
    ],
    STORE.schemas,
).graph  # fmt: skip


def planned(graph: GraphIR, wish: str) -> PlanContract:
    async def asked() -> PlanContract:
        rules = DeterministicReasoner()
        intent = (await rules.classify(ClassifyRequest(requirement=wish, target="Heron"))).value
        request = PlanRequest(
            requirement=wish,
            intent=intent,
            nodes=STORE,
            credential_types={"openAIApi": 1, "anthropicApi": 1},
            target="Heron",
            flow_summary="a flow",
            base=graph,
            existing={node.id: node.name for node in graph.nodes},
            labels={node.id: node.label for node in graph.nodes},
            occupied=connected_inputs(graph),
            inside=components_of(graph),
        )
        return (await rules.plan(request)).value

    return asyncio.run(asked())


def changed(graph: GraphIR, wish: str) -> tuple[GraphIR, PlanContract]:
    """The flow after a wish, and its plan."""
    plan = planned(graph, wish)
    assert plan.declined is None, plan.declined
    request = PatchRequest(
        requirement=wish,
        plan=plan,
        nodes=STORE,
        existing={node.id: node.name for node in graph.nodes},
        occupied=connected_inputs(graph),
        inside=components_of(graph),
    )
    answer = asyncio.run(DeterministicReasoner().patch(request)).value
    assert isinstance(answer, OpsAnswer)
    ops = with_planned_values(answer.ops, plan, graph)
    chosen = dict.fromkeys(plan.credential_requirements, DUMMY)
    return compile_ops(graph, ops, STORE.schemas, credentials=chosen).graph, plan


def declines_structure(graph: GraphIR, wish: str, *said: str) -> None:
    """A wish for other steps is declined with the sentences that ask for them, and changes nothing."""
    plan = planned(graph, wish)
    before, _, behind = say("declined_structure", detect_language(wish), parts="|").partition("|")
    declined = plan.declined or ""
    assert (declined.startswith(before), declined.endswith(behind)) == (True, True), declined
    assert all(f"«{one.removesuffix('.')}" in declined for one in said or (wish,)), declined
    assert not any((plan.nodes, plan.values, plan.steps, plan.removals, plan.connections, plan.disconnections))


def sources(graph: GraphIR) -> set[str]:
    return {edge.source for edge in graph.edges if edge.target == "store_0" and edge.input_name == "document"}


def inputs(graph: GraphIR, id_: str) -> dict[str, Any]:
    node = graph.node(id_)
    assert node is not None
    return dict(node.inputs)


@pytest.mark.parametrize(
    ("wish", "new"),
    [
        ("We have new mooring terms as a PDF. Add it next to the club rules.", "pdfFile_1"),
        ("Please add https://tides.heron.example as a second source", "cheerioWebScraper_1"),
        ("Nimm https://gezeiten.heron.example als Quelle dazu", "cheerioWebScraper_1"),
        ("Ajoute un fichier CSV avec les tarifs", "csvFile_0"),
        ("Wir haben eine Liste aller Liegeplätze (liegeplaetze.csv), die soll er kennen.", "csvFile_0"),
    ],
)
def test_a_source_comes_beside_those_that_are_there_with_their_splitter(wish: str, new: str) -> None:
    graph, _ = changed(DOCUMENTS, wish)
    assert sources(graph) == {"pdfFile_0", "cheerioWebScraper_0", new}
    assert {edge.source for edge in graph.edges if edge.target == new} == {"splitter_0"}


@pytest.mark.parametrize(
    ("wish", "stays"),
    [
        ("remove the website, it is full of last year's events", "pdfFile_0"),
        ("Die Webseite bitte raus", "pdfFile_0"),
        ("quita el PDF", "cheerioWebScraper_0"),
        ('The "Club Rules 2023" can go', "cheerioWebScraper_0"),
    ],
)
def test_a_source_goes_when_another_one_stays(wish: str, stays: str) -> None:
    graph, plan = changed(DOCUMENTS, wish)
    assert sources(graph) == {stays}
    assert "responsePrompt" not in {value.param for value in plan.values}


def test_another_file_takes_the_place_of_one() -> None:
    graph, plan = changed(DOCUMENTS, 'Statt der alten PDF gilt nur noch "Regeln 2025.pdf", die alte muss raus.')
    assert sources(graph) == {"pdfFile_0", "cheerioWebScraper_0"}
    assert [(value.param, "Regeln 2025.pdf" in str(value.value)) for value in plan.values] == [("pdfFile", True)]


@pytest.mark.parametrize(
    "wish",
    [
        "https://new.heron.example replaces https://old.heron.example/faq",
        "Our FAQ has moved to https://new.heron.example, at most 30 pages",
        "Bitte die alte Adresse old.heron.example/faq rauswerfen und stattdessen https://new.heron.example nehmen",
    ],
)
def test_an_address_is_another_one_in_its_node_and_in_the_prompt(wish: str) -> None:
    graph, _ = changed(DOCUMENTS, wish)
    scraper = inputs(graph, "cheerioWebScraper_0")
    assert scraper["url"] == "https://new.heron.example"
    assert "30" not in wish or scraper["limit"] == 30
    assert inputs(graph, "chain_0")["responsePrompt"] == PROMPT.replace(
        "https://old.heron.example/faq", "https://new.heron.example"
    )


@pytest.mark.parametrize(
    "wish",
    [
        "The rules are no longer a PDF, they are now at https://heron.example/rules. Replace the PDF by these pages.",
        "Le manuel n'est plus en PDF, il est maintenant sur https://heron.example/rules. Merci de remplacer le PDF par "
        "ces pages.",
    ],
)
def test_pages_take_the_place_of_a_file_and_not_of_the_store(wish: str) -> None:
    graph, _ = changed(SERVED, wish)
    assert sources(graph) == {"cheerioWebScraper_0"}
    assert inputs(graph, "cheerioWebScraper_0")["url"] == "https://heron.example/rules"
    assert inputs(graph, "store_0")["chromaURL"] == "http://chroma:8000"


@pytest.mark.parametrize(
    "wish", ["Send people to https://new.heron.example for bookings", "Mention our website in every answer"]
)
def test_what_people_are_told_changes_no_source(wish: str) -> None:
    graph, _ = changed(DOCUMENTS, wish)
    assert sources(graph) == {"pdfFile_0", "cheerioWebScraper_0"}
    assert inputs(graph, "cheerioWebScraper_0")["url"] == "https://old.heron.example/faq"


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ("The kayak is 38 a day. Please correct it inside the PDF", "Please correct it inside the PDF"),
        ("Antworte kurz. Bau einen Bluetooth-Speicher ein und entferne die Wikipedia", "entferne die Wikipedia"),
        ("Answer briefly, and add a reranker to the retriever", "add a reranker to the retriever"),
    ],
)
def test_a_part_that_is_not_done_is_listed_and_the_rest_is_done(wish: str, told: str) -> None:
    graph, plan = changed(DOCUMENTS, wish)
    assert any(told in part.quote for part in plan.not_done)
    assert told not in inputs(graph, "chain_0")["responsePrompt"]
    assert inputs(graph, "chain_0")["responsePrompt"] != PROMPT


def test_the_address_of_a_call_is_another_one_and_the_text_of_the_reply_is_told_as_not_done() -> None:
    wish = (
        'the call should go to https://api.heron.example/v2/letters?x=1 now and the last message should read "Sent, J."'
    )
    graph, plan = changed(STEPS, wish)
    assert inputs(graph, "httpAgentflow_0")["url"] == "https://api.heron.example/v2/letters?x=1"
    assert inputs(graph, "directReplyAgentflow_0")["directReplyMessage"] == "Done."
    assert any('the last message should read "Sent, J."' in part.quote for part in plan.not_done)
    assert {value.node_id for value in plan.values} == {"httpAgentflow_0"}


#: A flow, a wish for other steps of it, and the sentences that are quoted where it is not the whole wish.
STRUCTURE: list[tuple[GraphIR, str, list[str]]] = [
    (STEPS, 'I want to approve it before the letter writer step. If I say no it ends with "Nothing sent."',
     ["I want to approve it before the letter writer step."]),
    (STEPS, 'Vor dem Aufruf der API eine Freigabe einbauen. Bei Nein kommt: "Nothing sent."',
     ["Vor dem Aufruf der API eine Freigabe einbauen."]),
    (STEPS, 'Bevor die Antwort rausgeht, will ich sie freigeben. Also nach dem Schritt "Letter writer" eine Freigabe.',
     ["Bevor die Antwort rausgeht", "Also nach dem Schritt"]),
    (STEPS, "Remove the Summarise report step. Remove the Letter writer step.",
     ["Remove the Summarise report step.", "Remove the Letter writer step."]),
    (STEPS, "Nach dem Letter writer noch ein POST an https://log.heron.example/v1/in mit der Frage und dem Text.", []),
    (STEPS, 'In the "Letter writer" step: be brief. Please swap the order of the two steps.',
     ["Please swap the order of the two steps."]),
    (STEPS, 'In the "Letter writer" step: be brief. Somebody has to approve it.', ["Somebody has to approve it."]),
    (APPROVED, "It should go straight from the draft to the approval.", []),
    (APPROVED, "When the secretary has approved it, first POST the question and the text to "
     "https://log.heron.example/v1/in.", []),
    (APPROVED, "Always write in French. Swap the order of the steps.", ["Swap the order of the steps."]),
    (SORTED, "In the Boats branch a colleague has to approve the answer before it goes out.", []),
    (SORTED, "Remove the Boats branch", []),
    (SORTED, 'Add a branch "Press".', []),
    (SORTED, 'Add a branch "Press" with the reply "Ask Jo." and add a branch "Spam" with the reply "No, thank you."',
     []),
    (SORTED, 'Add a branch to the triage: "Press". If a journalist writes, reply with "Ask Jo. 5 pm is best."',
     ['Add a branch to the triage: "Press".']),
    (SORTED, "Add another branch for lost property that asks where it was left and promises nothing.", []),
    (SORTED, "we need a further route for sponsors where the bot says that Kim calls them back", []),
    (SORTED, "Bitte noch einen Zweig für Kündigungen, der nach dem Grund fragt und auf das Formular verweist", []),
    (SORTED, "Ajoute une branche pour la presse qui demande le nom du journal", []),
    (LIMITED, 'One more branch please, for the money. They get the reply "Write to Kim." Today it goes to «Big reply»',
     ["One more branch please, for the money"]),
]  # fmt: skip


@pytest.mark.parametrize(("graph", "wish", "said"), STRUCTURE)
def test_steps_branches_approvals_and_conditions_are_declined_and_stay(
    graph: GraphIR, wish: str, said: list[str]
) -> None:
    declines_structure(graph, wish, *said)


@pytest.mark.parametrize(
    "wish",
    [
        "Please swap the order of the two steps.",
        "Somebody has to approve it.",
        "Add an approval before the HTTP request.",
        "Füge nach dem Letter writer eine Freigabe ein.",
    ],
)
def test_an_item_of_a_list_that_is_about_the_steps_is_told_and_is_in_no_prompt(wish: str) -> None:
    graph, plan = changed(STEPS, f'- In the "Letter writer" step: be brief.\n- {wish}')
    assert [part.quote for part in plan.not_done] == [wish]
    told = str(inputs(graph, "llmAgentflow_1")["llmMessages"])
    assert ("be brief" in told, wish[:-1] in told) == (True, False)
    assert [(node.id, node.label) for node in graph.nodes] == [(node.id, node.label) for node in STEPS.nodes]
    assert [edge.ends for edge in graph.edges] == [edge.ends for edge in STEPS.edges]


def test_the_reason_of_an_item_about_the_steps_is_that_they_are_not_changed_or_not_understood() -> None:
    plan = planned(STEPS, '- In the "Letter writer" step: be brief.\n- Add an approval before the HTTP request.')
    (part,) = plan.not_done
    assert part.state == "not_understood"
    assert part.reason in {say("part_structure", "en"), say("part_missed", "en")}


@pytest.mark.parametrize(
    "wish",
    [
        "Nach dem Letter writer soll noch ein Schritt kommen, der den Brief ins Englische übersetzt.",
        "If the amount is over 500 euros, the boss has to approve before the letter is sent.",
    ],
)
def test_a_step_and_a_comparison_to_come_are_neither_built_nor_told(wish: str) -> None:
    assert planned(STEPS, wish).declined


@pytest.mark.parametrize(
    "wish",
    [
        "I would like one more step: after the boss and after the letter, Mrs Doyle must look through the letter too. "
        "If she does not agree, only the letter is written again, at most three times.",
        "Ich hätte gern einen weiteren Schritt: nach der Chefin und nach dem Brief muss auch Frau Doyle den Brief "
        "durchlesen. Wenn sie ablehnt, wird nur der Brief neu geschrieben, höchstens dreimal.",
        "Quisiera un paso más: después de la jefa y de la carta, también la señora Doyle debe mirar la carta. Si no "
        "está de acuerdo, se rehace solo la carta, como mucho tres veces.",
    ],
)
def test_of_a_step_that_is_not_done_no_model_is_told_and_no_loop_gets_its_limit(wish: str) -> None:
    back = AddNode(node_name="loopAgentflow", node_id="loopAgentflow_0", label="Back",
                   params={"loopBackToNode": "llmAgentflow_0-Letter"})  # fmt: skip
    joint = Connect(source_node_id="humanInputAgentflow_0", source_anchor="reject", target_node_id="loopAgentflow_0",
                    target_anchor="loopAgentflow_0")  # fmt: skip
    graph = compile_ops(APPROVED, [back, joint], STORE.schemas).graph
    plan = planned(graph, wish)
    assert not [value for value in plan.values if value.node_id in ("llmAgentflow_0", "loopAgentflow_0")]
    assert plan.declined or plan.not_done


@pytest.mark.parametrize(
    "wish",
    [
        "Zmień nazwę kroku „Letter” na „List”.",
        'Rename the step "Letter" to "List".',
    ],
)
def test_a_step_is_called_another_name(wish: str) -> None:
    graph, plan = changed(APPROVED, wish)
    assert {node.id: node.label for node in graph.nodes}["llmAgentflow_0"] == "List"
    assert (plan.values, plan.not_done) == ([], [])


@pytest.mark.parametrize("wish", ['Letter soll "List" heißen.', "Rename Letter to List."])
def test_a_title_that_is_not_in_quotes_is_declined(wish: str) -> None:
    plan = planned(APPROVED, wish)
    assert f"«{wish.removesuffix('.')}" in (plan.declined or "")
    assert plan.steps == []


def test_of_two_tools_the_one_that_an_agent_takes_is_reason_enough() -> None:
    agent = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o"}),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name="serpAPI", node_id="serpAPI_0"),
        AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": "You help."}),
        Connect(source_node_id="chatOpenAI_0", target_node_id="toolAgent_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="toolAgent_0", target_anchor="memory"),
        Connect(source_node_id="serpAPI_0", target_node_id="toolAgent_0", target_anchor="tools"),
    ]
    plan = planned(compile_ops(GraphIR.empty(), agent, STORE.schemas).graph, "Replace SerpAPI by Tavily or Brave")
    assert not plan.declined
    assert any(node.node_name == "braveSearchAPI" for node in plan.nodes)


def test_a_wish_for_all_models_is_asked_about_only_where_there_are_several() -> None:
    graph, _ = changed(APPROVED, "Always answer in French.")
    assert "French" in str(inputs(graph, "llmAgentflow_0")["llmMessages"])
    plan = planned(STEPS, "Always answer in French.")
    assert plan.declined == say("declined_which", "en", nodes="Summarise report, Letter writer")


def test_a_step_is_meant_by_what_it_does() -> None:
    plan = planned(STEPS, "In the step that writes the letter: never offer refunds. The summary step is fine.")
    assert [value.node_id for value in plan.values] == ["llmAgentflow_1"]


def test_a_copy_in_a_language_that_is_not_read_leaves_the_original_alone() -> None:
    wish = 'Gör en kopia som heter "Häger". Den ska alltid svara på engelska. Originalet rörs inte.'
    plan = planned(DOCUMENTS, wish)
    assert (plan.operation, plan.flow_name) == ("copy", "Häger")
    assert [str(value.value).splitlines()[-1] for value in plan.values] == ["- Den ska alltid svara på engelska."]


def test_a_quotation_of_several_sentences_is_one() -> None:
    quote = '"No lo encuentro. Escribe a sede@heron.example o llama a la ext. 215."'
    graph, _ = changed(DOCUMENTS, f"Si no lo sabe, que diga literalmente: {quote} Y que cite siempre el capítulo.")
    assert quote in inputs(graph, "chain_0")["responsePrompt"]


def test_the_pages_of_a_site_take_the_place_of_a_file() -> None:
    only = compile_ops(DOCUMENTS, [RemoveNode(node_id="cheerioWebScraper_0")], STORE.schemas).graph
    graph, _ = changed(only, "please swap the old pdf for our website page https://heron.example/rules")
    (loader,) = sources(graph)
    assert inputs(graph, loader)["url"] == "https://heron.example/rules"


def test_only_the_step_that_is_named_gets_another_model() -> None:
    wish = 'Put only the "Letter writer" step on claude sonnet. Summarise report stays on what it is.'
    ops = [
        op
        for n in (0, 1)
        for op in (
            SetParam(node_id=f"llmAgentflow_{n}", param_name="llmModel", value="chatOpenAI"),
            SetParam(node_id=f"llmAgentflow_{n}", param_name="llmModelConfig", value={"modelName": "gpt-4o"}),
        )
    ]
    plan = planned(compile_ops(STEPS, ops, STORE.schemas).graph, wish)
    assert {value.node_id for value in plan.values} == {"llmAgentflow_1"}
    assert "chatAnthropic" in [value.value for value in plan.values]


def test_what_no_flow_can_do_is_told_beside_what_is_done() -> None:
    graph, plan = changed(DOCUMENTS, "Answer in French. It should turn off the pump by itself when it rains.")
    assert "Answer in French" in inputs(graph, "chain_0")["responsePrompt"]
    assert ["outside of Flowise" in part.reason for part in plan.not_done] == [True]


@pytest.mark.parametrize(
    ("wish", "changes"),
    [
        ("I think it only looks at 4 snippets. make it 10.", {"topK": 10}),
        ("Portate i risultati recuperati a 12", {"topK": 12}),
        ("Set splitter to 800 / 100", {"chunkSize": 800, "chunkOverlap": 100}),
        ("I frammenti: 600 caratteri con sovrapposizione di 80", {"chunkSize": 600, "chunkOverlap": 80}),
    ],
)
def test_values_of_the_store_and_the_splitter_by_other_words(wish: str, changes: dict[str, int]) -> None:
    plan = planned(DOCUMENTS, wish)
    assert {value.param: value.value for value in plan.values} == changes


def test_each_value_of_a_line_is_exchanged_where_it_stands_and_the_line_stays() -> None:
    prompt = "Prices:\n- opening by day: 85 EUR\n- opening at night: 129 EUR\nCall 0461 85 129."
    flow = compile_ops(
        DOCUMENTS, [SetParam(node_id="chain_0", param_name="responsePrompt", value=prompt)], STORE.schemas
    ).graph
    graph, _ = changed(flow, "From May: opening by day 95 instead of 85, at night 145 instead of 129, cash only")
    after_ = inputs(graph, "chain_0")["responsePrompt"]
    assert after_.startswith(prompt.replace(": 85", ": 95").replace(": 129", ": 145"))
    assert "cash only" in after_


@pytest.mark.parametrize(
    "wish",
    [
        "A couple of things about the club bot. Customers say it sounds like a bank. Never mention vouchers.",
        "Hola, varias cosas. Never mention vouchers.",
    ],
)
def test_what_people_say_and_an_introduction_are_told_to_no_model(wish: str) -> None:
    graph, _ = changed(DOCUMENTS, wish)
    added = inputs(graph, "chain_0")["responsePrompt"]
    assert "Never mention vouchers." in added
    assert not any(word in added for word in ("couple", "bank", "Hola", "varias"))


AGENT = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o"}),
        AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": "You are Kai of a skate shop."}),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(
            node_name="requestsGet",
            node_id="requestsGet_0",
            params={"requestsGetUrl": "https://taxis.example/api/libres"},
        ),
        Connect(source_node_id="chatOpenAI_0", target_node_id="toolAgent_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="toolAgent_0", target_anchor="memory"),
        Connect(source_node_id="requestsGet_0", target_node_id="toolAgent_0", target_anchor="tools"),
    ],
    STORE.schemas,
).graph


def test_a_message_behind_a_list_of_words_is_no_prompt_and_the_prompt_stays() -> None:
    wish = (
        "I'd like a deny list in front of it - not just another line in the prompt - which blocks: ignore previous "
        'instructions / system prompt / act as DAN. Message when blocked: "Nice try. Ask me about skateboards."'
    )
    plan = planned(AGENT, wish)
    assert all(one.mode == "append" for one in plan.values if one.param == "systemMessage")


@pytest.mark.parametrize(
    "wish",
    [
        "Al agente hay que añadirle otra consulta: GET https://taxis.example/api/tarifas",
        "Add a second request to the agent: GET https://taxis.example/api/tarifas",
    ],
)
def test_one_more_address_of_an_agent_is_a_tool_beside_the_one_there(wish: str) -> None:
    graph, _ = changed(AGENT, wish)
    addresses = {node.id: node.inputs.get("requestsGetUrl") for node in graph.nodes if node.name == "requestsGet"}
    assert addresses == {
        "requestsGet_0": "https://taxis.example/api/libres",
        "requestsGet_1": "https://taxis.example/api/tarifas",
    }
    assert {edge.source for edge in graph.edges if edge.target == "toolAgent_0"} >= set(addresses)


def test_a_source_takes_the_place_of_another_only_where_that_is_said() -> None:
    wish = "Proszę dołożyć drugie źródło: plik PDF „Instrukcja BHP 2025”. Strona ma zostać."
    pages = compile_ops(DOCUMENTS, [RemoveNode(node_id="pdfFile_0")], STORE.schemas).graph
    graph, _ = changed(pages, wish)
    assert "cheerioWebScraper_0" in {node.id for node in graph.nodes}


def test_a_second_version_of_a_flow_is_a_copy_and_no_change_of_it() -> None:
    wish = "I'd like a second version of my agent for kids: simple words. Leave the original as is."
    intent = asyncio.run(DeterministicReasoner().classify(ClassifyRequest(requirement=wish, target="Heron"))).value
    assert intent.operation == "copy"


def test_a_file_that_is_swapped_for_another_takes_its_place() -> None:
    wish = "The 2023 rules are out of date, swap it for the new ones (Club Rules 2025.pdf, I'll upload it)."
    plan = planned(DOCUMENTS, wish)
    assert [(value.node_id, str(value.value).rpartition(": ")[2]) for value in plan.values] == [
        ("pdfFile_0", "Club Rules 2025.pdf]")
    ]
    assert (plan.removals, [node.node_name for node in plan.nodes if not node.existing]) == ([], [])


@pytest.mark.parametrize("wish", ["Use Mistral and its embeddings.", "Run on Mistral - chat model AND embeddings"])
def test_the_embeddings_go_with_their_provider(wish: str) -> None:
    plan = planned(DOCUMENTS, wish)
    assert {*plan.removals} == {"chatOpenAI_0", "openAIEmbeddings_0"}
    assert {node.node_name for node in plan.nodes if not node.existing} == {"chatMistralAI", "mistralAIEmbeddings"}


def test_a_quotation_is_the_message_of_a_moderation_only_where_people_are_told_it() -> None:
    moderated = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o"}),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name="inputModerationOpenAI", node_id="inputModerationOpenAI_0"),
        AddNode(node_name="conversationChain", node_id="conversationChain_0"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
        Connect(
            source_node_id="inputModerationOpenAI_0",
            target_node_id="conversationChain_0",
            target_anchor="inputModeration",
        ),
    ]
    graph = compile_ops(GraphIR.empty(), moderated, STORE.schemas).graph
    gone = planned(graph, 'Remove the content filter, it blocks people who write "damn, it leaks".')
    assert gone.removals == ["inputModerationOpenAI_0"]
    assert not any(value.param == "moderationErrorMessage" for value in gone.values)
    told = planned(graph, 'The moderation should answer "Please be kind."')
    assert any((one.param, one.value) == ("moderationErrorMessage", "Please be kind.") for one in told.values)


def test_a_number_of_a_fixed_reply_is_told_as_not_done_and_no_other_step_is_told() -> None:
    graph, plan = changed(LIMITED, 'Rename "Big reply" to "Call back". Change the three days in there to five.')
    assert {node.id: node.label for node in graph.nodes}["directReplyAgentflow_0"] == "Call back"
    assert inputs(graph, "directReplyAgentflow_0")["directReplyMessage"] == "We call you within three days."
    assert inputs(graph, "llmAgentflow_0") == inputs(LIMITED, "llmAgentflow_0")
    assert any("the three days in there to five" in part.quote for part in plan.not_done)


def test_what_is_said_before_a_step_is_named_is_not_told_to_that_step() -> None:
    graph, plan = changed(STEPS, "The berth is 90 now. The Letter writer must be brief.")
    assert "90" not in str(inputs(graph, "llmAgentflow_1")["llmMessages"])
    assert "The berth is 90 now." in [part.quote for part in plan.not_done]
