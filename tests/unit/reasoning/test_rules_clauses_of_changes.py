"""A wish for a change with several clauses: what each of them asks for, in the eyes of both readers."""

import pytest

from flowise_dev_agent.agent.prompt_context import components_of
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, RemoveNode, compile_ops
from tests.unit.reasoning.test_rules_flows_there import DOCUMENTS, STORE, changed, inputs
from tests.unit.reasoning.test_rules_rewording import BOATS, flow, planned, prompt_after, told
from tests.unit.reasoning.test_rules_steps_there import BOOKING

SEARCHER = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o", "temperature": 0.7}),
        AddNode(node_name="bufferWindowMemory", node_id="bufferWindowMemory_0", params={"k": 4}),
        AddNode(node_name="serpAPI", node_id="serpAPI_0"),
        AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": "You answer for Fern Nursery."}),
        Connect(source_node_id="chatOpenAI_0", target_node_id="toolAgent_0", target_anchor="model"),
        Connect(source_node_id="bufferWindowMemory_0", target_node_id="toolAgent_0", target_anchor="memory"),
        Connect(source_node_id="serpAPI_0", target_node_id="toolAgent_0", target_anchor="tools"),
    ],
    STORE.schemas,
).graph

BRAVE = compile_ops(
    SEARCHER,
    [
        RemoveNode(node_id="serpAPI_0"),
        AddNode(node_name="braveSearchAPI", node_id="braveSearchAPI_0"),
        AddNode(node_name="calculator", node_id="calculator_0"),
        Connect(source_node_id="braveSearchAPI_0", target_node_id="toolAgent_0", target_anchor="tools"),
        Connect(source_node_id="calculator_0", target_node_id="toolAgent_0", target_anchor="tools"),
    ],
    STORE.schemas,
).graph


def written(wish: str) -> str:
    graph, _ = changed(SEARCHER, wish)
    return str(inputs(graph, "toolAgent_0")["systemMessage"])


@pytest.mark.parametrize(
    "wish",
    [
        "Wenn jemand nach einer Pflanze fragt, schau erst in die Liste und nur wenn sie nicht drinsteht ins Internet.",
        "Si preguntan por una planta, que mire primero en la lista y solo si no está que busque en internet.",
    ],
)
def test_a_condition_of_use_is_told_whole_and_takes_no_tool_out(wish: str) -> None:
    graph, plan = changed(SEARCHER, wish)
    assert plan.removals == []
    assert wish in str(inputs(graph, "toolAgent_0")["systemMessage"])


@pytest.mark.parametrize(
    "wish",
    [
        "We have an API now: GET https://api.fern.example/plants/{name} - it should use that if one asks for a plant.",
        "Es gibt jetzt eine Schnittstelle: GET https://api.fern.example/plants/{name}. Er soll sie nutzen, wenn jemand "
        "nach einer Pflanze fragt.",
    ],
)
def test_an_address_with_a_method_is_a_request_of_the_agent_that_is_there(wish: str) -> None:
    graph, plan = changed(SEARCHER, wish)
    names = {node.name for node in graph.nodes}
    assert "requestsGet" in names
    assert not any("Scraper" in name for name in names)
    assert plan.not_done == []
    assert "https://" not in written(wish)


def test_a_tool_that_cannot_be_given_is_listed_with_that_reason_and_the_rest_is_done() -> None:
    graph, plan = changed(SEARCHER, "Set the temperature to 0.1. Swap the web search for Tavily, please.")
    assert inputs(graph, "chatOpenAI_0")["temperature"] == 0.1
    assert "serpAPI" in {node.name for node in graph.nodes}
    (part,) = plan.not_done
    assert "Tavily" in part.quote
    assert "tavilyAPI" in part.reason


def test_a_part_that_is_there_is_told_with_what_it_is_and_asked_about() -> None:
    wish = "It has no memory at all, please add memory."
    question = planned("", wish, graph=SEARCHER).declined or ""
    assert "`bufferWindowMemory_0.k` = 4" in question
    assert question.endswith("?")
    answered = planned("", wish, (question, "it should remember the last 12 messages"), graph=SEARCHER)
    assert [(one.node_id, one.value) for one in answered.values] == [("bufferWindowMemory_0", 12)]


@pytest.mark.parametrize(
    "wish",
    [
        "Our guests say it isn't helpful. Please make it better.",
        "do what we agreed on",
        "faz aquela mudança que combinamos e deixa tudo mais bonito",
    ],
)
def test_a_vague_wish_is_asked_about(wish: str) -> None:
    plan = planned(BOATS, wish)
    assert (plan.declined or "").endswith("?")
    assert plan.values == []


@pytest.mark.parametrize(
    "wish", ["can it be a bit cheekier and less formal", "Could it sound warmer and more relaxed?"]
)
def test_a_wish_for_a_tone_is_told_and_not_asked_about(wish: str) -> None:
    plan = planned(BOATS, wish)
    assert plan.declined is None
    assert prompt_after(BOATS, plan) != BOATS


@pytest.mark.parametrize(
    "wish",
    ["Let it also answer from a second PDF, guests.pdf, next to the first.", "Und auch aus gäste.pdf antworten."],
)
def test_a_second_file_comes_beside_the_first(wish: str) -> None:
    graph, plan = changed(DOCUMENTS, wish)
    assert [node.name for node in graph.nodes].count("pdfFile") == 2
    assert plan.removals == []
    assert any("s.pdf" in one or "e.pdf" in one for one in plan.placeholders)


@pytest.mark.parametrize(
    "wish",
    [
        'Rename it to "Heron Sailing". Change it in the text as well.',
        'Der Flow soll "Heron Sailing" heißen. Im Text auch ändern.',
    ],
)
def test_that_a_name_is_to_be_in_the_texts_too_is_told_as_not_done(wish: str) -> None:
    plan = planned("You answer for Front desk.", wish)
    assert (plan.new_name, plan.values) == ("Heron Sailing", [])
    assert [part.quote for part in plan.parts if part.state == "not_understood"] == [wish.partition(". ")[2]]


@pytest.mark.parametrize(
    "stays", ["Don't touch the prompt, Jo wrote it.", "Prompts stay as they are.", "Der Prompt darf sich nicht ändern."]
)
def test_that_the_prompt_stays_is_no_rule_for_the_bot(stays: str) -> None:
    plan = planned(BOATS, f"Set the temperature to 0.2. {stays}")
    assert [one.param for one in plan.values] == ["temperature"]
    assert plan.not_done == []


def test_fields_of_an_answer_come_with_a_parser_of_the_chain_that_is_there() -> None:
    ops = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o"}),
        AddNode(node_name="promptTemplate", node_id="promptTemplate_0", params={"template": "Sum up {text}"}),
        AddNode(node_name="llmChain", node_id="llmChain_0"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="llmChain_0", target_anchor="model"),
        Connect(source_node_id="promptTemplate_0", target_node_id="llmChain_0", target_anchor="prompt"),
    ]
    graph, plan = changed(
        compile_ops(GraphIR.empty(), ops, STORE.schemas).graph, "Return JSON with the fields name, city"
    )
    assert "structuredOutputParser" in {node.name for node in graph.nodes}
    assert plan.not_done == []


def test_two_facts_of_a_sentence_are_one_line_without_what_stays() -> None:
    prompt = "You help. A wash costs £12, a full clean costs £40. Be brief."
    wish = "A wash goes up to £14 and a full clean to £45, the rest stays."
    after = told(prompt, "A wash goes up to £14 and a full clean to £45")
    assert prompt_after(prompt, planned(prompt, wish)) == after


def test_what_only_announces_wishes_is_a_remark() -> None:
    wish = "A few updates for the autumn please. Never mention vouchers."
    assert prompt_after(BOATS, planned(BOATS, wish, graph=flow(BOATS))) == told(BOATS, "Never mention vouchers.")


DESK = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        *(AddNode(node_name="llmAgentflow", node_id=f"llmAgentflow_{n}", label=label,
                  params={"llmModel": "chatOpenAI", "llmModelConfig": {"temperature": 0.7, "modelName": "gpt-4o"},
                          "llmMessages": [{"role": "system", "content": text}]})
          for n, (label, text) in enumerate({
              "Summarize mail": "Sum the mail up for the Fern team.",
              "Answer invoice": "You reply for Fern. Pots cost 12 euros, a delivery costs 30 euros. Sign as Ada.",
              "Suggest visit": "You invite people to Fern, open 9 to 17. Sign as Ada.",
          }.items())),
    ],
    STORE.schemas,
).graph  # fmt: skip


def texts_of(wish: str) -> list[str]:
    """The instructions of the three steps after a wish."""
    graph, _ = changed(DESK, wish)
    rows = [inputs(graph, f"llmAgentflow_{n}")["llmMessages"] for n in range(3)]
    return [str(row[0]["content"]) for row in rows if isinstance(row, list)]


@pytest.mark.parametrize("wish", ["A delivery is now 35 euros.", "The delivery goes up to 35 euros, please."])
def test_a_fact_is_told_to_the_step_that_holds_the_old_one_without_a_question(wish: str) -> None:
    texts = texts_of(wish)
    assert [f"- {wish}" in text for text in texts] == [False, True, False]
    assert ["30 euros" in text for text in texts] == [False, True, False]


def test_a_fact_that_is_named_with_the_old_one_is_exchanged_in_the_step_that_holds_it() -> None:
    texts = texts_of("A delivery is now 35 euros instead of 30 euros.")
    assert ["a delivery costs 35 euros" in text for text in texts] == [False, True, False]
    assert not any("30 euros" in text for text in texts)


def test_a_name_is_another_one_in_each_step_that_holds_it() -> None:
    assert [text.count("Bo") for text in texts_of("Replace Ada by Bo.")] == [0, 1, 1]


@pytest.mark.parametrize(
    "wish",
    [
        "For the invoices use gpt-4o-mini, the summary can stay as it is.",
        "Per le invoice usa gpt-4o-mini, summarize può rimanere com'è.",
    ],
)
def test_a_step_is_meant_by_words_of_its_title_and_not_where_it_stays(wish: str) -> None:
    plan = planned("", wish, graph=DESK, inside=components_of(DESK))
    models = {one.node_id for one in plan.values if one.param.endswith("modelName")}
    assert (plan.declined, models) == (None, {"llmAgentflow_1"})


@pytest.mark.parametrize(
    ("prompt", "wish", "after"),
    [
        (
            "We are a shop at 14 Mill Lane in Ludlow. Call 01584 555 0142 for cakes.",
            "Make a copy of it.\n- address 3 Corn Square, Leominster\n- phone for cakes is 01568 555 0177",
            "We are a shop at 3 Corn Square, Leominster. Call 01568 555 0177 for cakes.",
        ),
        (
            "Wir sind in der Marktstraße 14, 86899 Landsberg. Ruf an: 08191 555 210.",
            "Mach eine Kopie davon: Bahnhofplatz 3, 86916 Kaufering, Tel. 08191 555 380.",
            "Wir sind in der Bahnhofplatz 3, 86916 Kaufering. Ruf an: 08191 555 380.",
        ),
    ],
)
def test_facts_of_a_copy_take_the_place_of_those_of_the_same_kind(prompt: str, wish: str, after: str) -> None:
    plan = planned(prompt, wish)
    assert (plan.operation, prompt_after(prompt, plan), plan.not_done) == ("copy", after, [])


def test_what_a_copy_is_to_say_instead_of_words_that_are_not_in_the_text_is_told() -> None:
    prompt = "You help tenants of Riverside Housing in Leeds."
    plan = planned(
        prompt, "Make a copy called Aire. It should say Aire Valley Homes in Bradford instead of Riverside in Leeds."
    )
    assert (plan.operation, plan.flow_name, plan.not_done) == ("copy", "Aire", [])
    after = told(prompt, "Say Aire Valley Homes in Bradford instead of Riverside in Leeds.")
    assert prompt_after(prompt, plan) == after


@pytest.mark.parametrize(
    "wish",
    [
        "The school in Cork wants their own version of the bot.",
        "Another one for Cork please, just like this, but never mention boats.",
        "Die Schule in Cork will eine eigene Fassung davon.",
        "Notre école de Cork veut leur propre version.",
    ],
)
def test_one_of_their_own_is_a_copy(wish: str) -> None:
    assert planned(BOATS, wish).operation == "copy"


@pytest.mark.parametrize(
    ("wish", "written"),
    [
        ("Bitte noch aufnehmen, dass Hunde angeleint sein müssen.", "Dass Hunde angeleint sein müssen."),
        ("Could you add that dogs are on a lead?", "Dogs are on a lead."),
        ("Several things please:\n- never mention vouchers", "Never mention vouchers"),
    ],
)
def test_what_frames_a_rule_is_no_part_of_it(wish: str, written: str) -> None:
    assert prompt_after(BOATS, planned(BOATS, wish)) == told(BOATS, written)


def test_why_a_part_goes_is_no_rule() -> None:
    graph, plan = changed(SEARCHER, "quita la búsqueda en internet, que se inventa cosas")
    assert "serpAPI" not in {node.name for node in graph.nodes}
    assert "inventa" not in " ".join(str(one.value) for one in plan.values)


def test_a_new_name_beside_another_wish_is_done_too() -> None:
    plan = planned(BOATS, 'Nunca hables de vales y cambiadle el nombre al flujo a "Garza".')
    assert plan.new_name == "Garza"
    assert "Nunca hables de vales" in prompt_after(BOATS, plan)


@pytest.mark.parametrize(
    "wish",
    [
        "Add that the nursery cafe is run by Ola, ext. 4117, daily from 4 to 9.",
        "Ergänze, dass das Café der Gärtnerei von Ola geführt wird, tel. 4117, täglich von 4 bis 9.",
        "Dodaj, że kawiarnię prowadzi Ola, wew. 4117, codziennie od 4 do 9.",
        "Añade que la cafetería la lleva Ola, tel. 4117, todos los días de 4 a 9.",
    ],
)
def test_hours_are_no_value_of_the_memory_and_stand_in_one_line_behind_an_abbreviation(wish: str) -> None:
    graph, _ = changed(SEARCHER, wish)
    assert inputs(graph, "bufferWindowMemory_0")["k"] == 4
    (line,) = [one for one in written(wish).split("\n") if "Ola" in one]
    assert "4117" in line
    assert "9" in line.partition("4117")[2]


@pytest.mark.parametrize("wish", ["Raise the memory from 4 to 9.", "Das Gedächtnis von 4 auf 9 ändern."])
def test_a_range_beside_the_word_for_it_is_its_value(wish: str) -> None:
    graph, _ = changed(SEARCHER, wish)
    assert inputs(graph, "bufferWindowMemory_0")["k"] == 9


@pytest.mark.parametrize(
    "wish",
    [
        "quítale la búsqueda web, que se inventa cosas",
        "Tirem a pesquisa na web, por favor.",
        "Tirem por favor a pesquisa na web.",
    ],
)
def test_a_search_that_goes_is_not_added(wish: str) -> None:
    graph, _ = changed(BRAVE, wish)
    assert not {"braveSearchAPI", "serpAPI"} & {node.name for node in graph.nodes}


@pytest.mark.parametrize("wish", ["It needs a web search, and answer in French.", "Websuche dazu, und antworte kurz."])
def test_a_search_that_is_there_is_not_added_a_second_time(wish: str) -> None:
    graph, _ = changed(BRAVE, wish)
    assert [node.name for node in graph.nodes if "API" in node.name] == ["braveSearchAPI"]


@pytest.mark.parametrize(
    "wish",
    [
        "Set the temperature to 0.1. Don't touch the system prompt, our boss loves it.",
        "Could you (1) put the temperature to 0.1 and (2) leave the system message as it is, our boss loves it?",
        "Temperatur auf 0.1. Der Systemprompt bleibt unverändert, der Chef hängt daran.",
        "Température à 0.1. Ne touchez pas au prompt, la patronne y tient beaucoup.",
        "Temperatura a 0.1. No toques el mensaje del sistema, a la jefa le encanta.",
    ],
)
def test_into_a_prompt_that_stays_nothing_is_written(wish: str) -> None:
    graph, _ = changed(SEARCHER, wish)
    assert inputs(graph, "chatOpenAI_0")["temperature"] == 0.1
    assert inputs(graph, "toolAgent_0")["systemMessage"] == "You answer for Fern Nursery."


def test_what_is_to_be_added_to_a_prompt_that_stays_is_added() -> None:
    assert "no dogs" in written("Keep the system prompt as it is, but add that no dogs are allowed.")
    assert "French" in written("Answer in French. Leave the rest of the prompt as it is.")


def test_a_rule_that_a_prompt_which_stays_has_no_place_for_is_told_as_not_done() -> None:
    wish = "Set the temperature to 0.1. Always answer in French. Don't touch the system prompt."
    graph, plan = changed(SEARCHER, wish)
    assert inputs(graph, "toolAgent_0")["systemMessage"] == "You answer for Fern Nursery."
    assert any("French" in one.quote for one in plan.not_done)


@pytest.mark.parametrize(
    ("wish", "facts"),
    [
        ("- we do roses and ferns as well\n- answer briefly", "- We do roses and ferns as well\n"),
        (
            "- it's stiff, make it a bit more relaxed\n- we are at Elm 4 and Oak 9 now",
            "- We are at Elm 4 and Oak 9 now",
        ),
        ("we are open 9 till 5 now, not 6, and Sundays 10 till 12", "e are open 9 till 5 now, not 6, and Sundays 10"),
    ],
)
def test_a_fact_is_not_cut_in_two(wish: str, facts: str) -> None:
    assert facts in written(wish)


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ("Il faudrait qu'il cite le chapitre et la page du manuel dans chaque réponse.", True),
        ("Er soll bei jeder Antwort die Quellen mit Kapitel und Seite nennen.", True),
        ("Turn on the sources.", False),
        ("Turn on showing where the answers come from, like the page.", False),
    ],
)
def test_a_rule_for_citing_is_told_beside_the_switch(wish: str, told: bool) -> None:
    graph, plan = changed(DOCUMENTS, wish)
    chain = next(node for node in graph.nodes if node.name == "conversationalRetrievalQAChain")
    assert str(chain.inputs["returnSourceDocuments"]).casefold() == "true"
    assert any(one.param == "responsePrompt" for one in plan.values) == told


@pytest.mark.parametrize("wish", ["Use gpt-4o-mini at 0, please.", "Bitte gpt-4o-mini bei 0.", "gpt-4o-mini a 0"])
def test_a_whole_number_beside_a_model_is_its_temperature(wish: str) -> None:
    graph, _ = changed(SEARCHER, wish)
    assert inputs(graph, "chatOpenAI_0")["temperature"] == 0


@pytest.mark.parametrize(
    "wish",
    [
        "every reply should be a single sentence, and with a proper explanation and the whole price list",
        "Antworte immer in einem Satz und erkläre dabei alles ausführlich.",
        "Que responda en una sola frase y con una explicación completa.",
        "Chaque réponse en une phrase, mais très détaillée.",
        "Odpowiadaj jednym zdaniem, ale bardzo szczegółowo.",
        "Antwoord in één zin, maar wel uitgebreid.",
    ],
)
def test_a_wish_that_contradicts_itself_is_asked_about_and_the_answer_is_told(wish: str) -> None:
    question = planned(BOATS, wish).declined or ""
    assert question.endswith("?")
    plan = planned(BOATS, wish, (question, "At most three sentences, with the prices."))
    assert plan.declined is None
    after = prompt_after(BOATS, plan)
    assert after.startswith(BOATS)
    assert "At most three sentences, with the prices." in after


@pytest.mark.parametrize(
    "wish",
    [
        "Answer in one sentence, and in full detail only if somebody asks for it.",
        "Antworte zuerst in einem Satz, dann ausführlich.",
        "Answer in one sentence.",
    ],
)
def test_short_in_one_case_and_long_in_another_is_no_contradiction(wish: str) -> None:
    assert planned(BOATS, wish).declined is None


@pytest.mark.parametrize(
    "wish",
    [
        'Rename the step "Offer" to "Front Desk" and have it sign with "The Front Desk".',
        'Benenne den Schritt "Offer" in "Front Desk" um und lass ihn mit "The Front Desk" unterschreiben.',
    ],
)
def test_a_step_that_is_renamed_is_told_and_is_the_one_that_signs(wish: str) -> None:
    graph, plan = changed(BOOKING, wish)
    assert any("«Front Desk»" in one for one in plan.steps)
    assert "The Front Desk" in str(next(n for n in graph.nodes if n.label == "Front Desk").inputs["llmMessages"])
    assert plan.not_done == []


@pytest.mark.parametrize(
    "wish",
    [
        "turn off the web search, it quotes other shops",
        "Wyłącz wyszukiwanie w internecie, bo podaje ceny konkurencji.",
        "Désactivez la recherche web, elle cite les concurrents.",
        "Schalte die Websuche ab.",
    ],
)
def test_a_part_goes_in_words_that_no_list_knows(wish: str) -> None:
    graph, plan = changed(BRAVE, wish)
    assert plan.removals == ["braveSearchAPI_0"]
    assert inputs(graph, "toolAgent_0")["systemMessage"] == "You answer for Fern Nursery."


@pytest.mark.parametrize(
    "wish",
    [
        "Replace the in-memory store with Pinecone, index ferns.",
        "Der In-Memory-Speicher geht bei jedem Neustart verloren. Ersetze ihn durch Pinecone, Index ferns.",
        "Remplacez la base en mémoire (in-memory) par Pinecone, index ferns.",
    ],
)
def test_of_two_stores_the_one_that_is_not_there_comes(wish: str) -> None:
    graph, _ = changed(DOCUMENTS, wish)
    names = {node.name for node in graph.nodes}
    assert "pinecone" in names
    assert "memoryVectorStore" not in names


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ('Lass ihn jede Antwort mit "Eure Gärtnerei" beenden, und das Modell auf gpt-4o-mini.', "Eure Gärtnerei"),
        ('Have it end with "Grow well", and the model is to be gpt-4o-mini.', "Grow well"),
    ],
)
def test_a_rule_in_front_of_a_value_is_told(wish: str, told: str) -> None:
    graph, _ = changed(SEARCHER, wish)
    assert inputs(graph, "chatOpenAI_0")["modelName"] == "gpt-4o-mini"
    assert told in written(wish)


def test_a_sentence_that_is_to_go_and_is_not_there_is_not_told_to_the_bot() -> None:
    plan = planned(BOATS, "Den Satz über die Rosen bitte rausnehmen.")
    assert plan.declined
    assert plan.values == []


@pytest.mark.parametrize(
    ("prompt", "wish", "after"),
    [
        ("Call 96 555 01 77 from 9 to 14.", "the phone number is 96 555 02 90 now", "Call 96 555 02 90 from 9 to 14."),
        ("Rufen Sie 08191 55 21 40 an.", "Die Nummer ist jetzt 08191 55 21 99", "Rufen Sie 08191 55 21 99 an."),
    ],
)
def test_a_phone_number_in_groups_is_one_value(prompt: str, wish: str, after: str) -> None:
    assert prompt_after(prompt, planned(prompt, wish)) == after


def test_one_of_two_names_in_a_list_takes_no_place_of_the_other() -> None:
    prompt = "Si preguntan por IVA o IRPF, diles que hablen con su gestoría."
    wish = "Faz uma cópia deste bot. Em vez de IVA ou IRPF, diga IVA ou IRS, e em vez da gestoria o contabilista."
    assert prompt in prompt_after(prompt, planned(prompt, wish))


@pytest.mark.parametrize(
    ("prompt", "wish", "after"),
    [
        ("Ask Ida. Ida knows.", "Replace Ida by Jon Hendriks.", "Ask Jon Hendriks. Jon Hendriks knows."),
        ("Demandez à Ida Dahl.", "Remplacez Ida Dahl par Jon Hendriks.", "Demandez à Jon Hendriks."),
    ],
)
def test_a_whole_name_takes_the_place_of_a_whole_name(prompt: str, wish: str, after: str) -> None:
    assert prompt_after(prompt, planned(prompt, wish)) == after


@pytest.mark.parametrize(
    ("prompt", "wish"),
    [
        ("Send such questions to Ida Dahl, extension 214.", "Replace Ida by Jon Hendriks."),
        ("Demandez à Ida Dahl.", "Remplacez Ida par Jon Hendriks."),
    ],
)
def test_half_of_a_name_is_not_exchanged_and_that_is_told(prompt: str, wish: str) -> None:
    plan = planned(prompt, wish)
    assert prompt_after(prompt, plan) == prompt
    assert f"«{wish.removesuffix('.')}" in (plan.declined or "")


def test_what_may_be_a_noun_behind_a_name_is_not_lost() -> None:
    prompt = "Frag bei Ida Termine an."
    assert prompt in prompt_after(prompt, planned(prompt, "Ersetze Ida durch Jon Hendriks."))
