"""Wishes for parts, values, names and copies of a flow, and words beside them: each is done, told, or a remark."""

import asyncio
import re
from typing import Any

import pytest

from flowise_dev_agent.agent.prompt_context import components_of, connected_inputs
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, compile_ops
from flowise_dev_agent.reasoning.added_text import with_added_text
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

STORE = NodeStore.from_snapshot()
PROMPT = "systemMessagePrompt"
HORSES = (
    "Du bist die Auskunft des Reiterhofs Linde.\nAntworte immer auf Deutsch und duze die Gäste.\n"
    "Eine Reitstunde kostet 28 Euro, ein Ausritt 40 Euro.\nWir haben von 10 bis 17 Uhr offen. Ruf uns an: 08151 22 33."
)
BOATS = (
    "You answer for Heron Boats in Cobh.\nStart every answer by apologising for the wait.\nNever mention discounts.\n"
    "Opening hours are 9:00 to 18:00. Call us on 053 555 0166.\nKeep answers under 120 words."
)
BREAD = "Tu réponds pour la boulangerie du Port.\nVouvoie les clients.\nLe pain de seigle coûte 3,20 €."
DIVING = "Eres la voz de la escuela de buceo Coral.\nTutea a los alumnos.\nEl bautismo cuesta 60 euros."
BIKES = "Jesteś asystentem warsztatu Szprycha.\nOdpowiadaj zawsze po polsku.\nPrzegląd kosztuje 120 zł."
SWIMMING = "Je bent de assistent van zwemschool De Golf.\nSpreek ouders aan met u.\nEen les kost 12 euro."
TEA = "茶道教室「松風」の案内係です。\n体験は3000円です。\n電話番号は075-555-0123です。"
CLAY = "Sei la voce del laboratorio Terracotta.\nDai del lei ai clienti.\nUn corso costa 90 euro."
BOOKS = "Você responde pela livraria Farol.\nUm vale custa 20 euros.\nLigue para 213 555 010."


def flow(prompt: str, *more: AddNode) -> GraphIR:
    ops = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0", params={"modelName": "gpt-4o"}),
        AddNode(node_name="bufferMemory", node_id="bufferMemory_0"),
        AddNode(node_name="conversationChain", node_id="conversationChain_0", params={PROMPT: prompt}),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
        Connect(source_node_id="bufferMemory_0", target_node_id="conversationChain_0", target_anchor="memory"),
        *more,
    ]
    return compile_ops(GraphIR.empty(), ops, STORE.schemas).graph


def planned(prompt: str, wish: str, *answers: tuple[str, str], **more: Any) -> PlanContract:
    """The plan for a wish, or for feedback to a former plan."""

    async def asked() -> PlanContract:
        rules, graph = DeterministicReasoner(), more.pop("graph", None) or flow(prompt)
        first = ClassifyRequest(requirement=wish, target="Front desk", clarifications=answers)
        request = PlanRequest(
            requirement=wish,
            clarifications=answers,
            intent=(await rules.classify(first)).value,
            nodes=STORE,
            credential_types={"openAIApi": 1},
            target="Front desk",
            flow_summary="a flow",
            base=graph,
            existing={node.id: node.name for node in graph.nodes},
            labels={node.id: node.label for node in graph.nodes},
            occupied=connected_inputs(graph),
            texts={f"conversationChain_0.{PROMPT}": prompt},
            **more,
        )
        return (await rules.plan(request)).value

    return asyncio.run(asked())


def told(prompt: str, *wishes: str, language: str = "en") -> str:
    """A prompt with wishes under the heading by which they hold."""
    return "\n".join([prompt, say("prompt_from_now_on", language), *(f"- {one}" for one in wishes)])


def prompt_after(prompt: str, plan: PlanContract) -> str:
    for value in plan.values:
        if value.param == PROMPT:
            prompt = str(value.value) if value.mode == "set" else f"{prompt}\n{value.value}"
    return prompt


@pytest.mark.parametrize(
    ("wish", "shown", "param", "remark"),
    [
        # In the sentence that asks for a part it is no part of its own.
        ("it keeps getting the sums wrong, add a calculator",
         {"it keeps getting the sums wrong, add a calculator": "covered"}, "systemMessage", "sums"),
        ("Customers complained last week. Set the temperature to 0.2",
         {"Customers complained last week.": "assumed", "Set the temperature to 0.2": "covered"}, "temperature",
         "complained"),
    ],
)  # fmt: skip
def test_a_remark_is_shown_and_written_nowhere(wish: str, shown: dict[str, str], param: str, remark: str) -> None:
    plan = planned(BOATS, wish)
    assert plan.declined is None
    assert param in {value.param for value in plan.values}
    assert {part.quote: part.state for part in plan.parts} == shown
    assert not any(remark in str(value.value) for value in plan.values)


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        (
            "switch both to gpt-4o-mini",
            {("chatOpenAI_0", "modelName"): "gpt-4o-mini", ("chatOpenAI_1", "modelName"): "gpt-4o-mini"},
        ),
        ("przejdź na gpt-4o-mini w modelu Summaries", {("chatOpenAI_1", "modelName"): "gpt-4o-mini"}),
        ("In the Summaries model 400 tokens are enough", {("chatOpenAI_1", "maxTokens"): 400}),
    ],
)
def test_names_and_both_choose_the_model(wish: str, changed: dict[tuple[str, str], Any]) -> None:
    second = AddNode(node_name="chatOpenAI", node_id="chatOpenAI_1", label="Summaries", params={"modelName": "gpt-4.1"})
    plan = planned(BOATS, wish, graph=flow(BOATS, second))
    assert plan.declined is None
    assert {(value.node_id, value.param): value.value for value in plan.values} == changed


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("copy as 'Cork desk' with the phone number 053 555 0200", "Cork desk"),
        ("haz una copia llamada «Cork desk» con el teléfono 053 555 0200", "Cork desk"),
        ("Faça uma cópia chamada «Cork desk» com o telefone 053 555 0200", "Cork desk"),
        ("Maak een kopie genaamd „Cork desk“ met telefoon 053 555 0200", "Cork desk"),
    ],
)
def test_a_copy_with_another_value_is_a_copy_and_only_that_differs(wish: str, name: str) -> None:
    plan = planned(BOATS, wish)
    assert (plan.operation, plan.flow_name, plan.declined) == ("copy", name, None)
    assert prompt_after(BOATS, plan) == BOATS.replace("053 555 0166", "053 555 0200")


@pytest.mark.parametrize(
    "wish",
    [
        "Rename Front to Desk",
        "Rename the model to Main model",
        "Renombra el modelo a Principal",
        "Renomeie o modelo para Principal",
        "Renomme le modèle en Principal",
        "Front → Desk",
        "zmień nazwę Front na Desk",
        "「Front」を「Desk」に変更",
        "Benenne Front in Desk um",
    ],
)
def test_a_wish_to_rename_a_node_is_declined_and_never_told_to_the_model(wish: str) -> None:
    more = AddNode(node_name="calculator", node_id="calculator_0", label="Front")
    plan = planned(BOATS, wish, graph=flow(BOATS, more))
    assert plan.declined
    assert plan.values == []


def test_beside_a_wish_to_rename_a_node_the_rest_is_done_and_the_rename_is_listed() -> None:
    plan = planned(BOATS, "Rename the model to Main model. Set the temperature to 0.2")
    assert [(value.param, value.value) for value in plan.values] == [("temperature", 0.2)]
    assert [part.quote for part in plan.not_done] == ["Rename the model to Main model."]


def test_words_and_a_tool_of_one_wish_are_both_kept_when_the_chain_becomes_an_agent() -> None:
    plan = planned(BOATS, "add a calculator and tell people about gift vouchers")
    assert [(v.node_id, v.param, v.mode, v.value) for v in plan.values] == [
        ("toolAgent_0", "systemMessage", "set", told(BOATS, "Tell people about gift vouchers"))
    ]


def test_a_correction_takes_back_a_tool_and_keeps_the_words_and_the_chain() -> None:
    wish = "add a calculator and tell people about gift vouchers"
    plan = planned(BOATS, wish, previous=planned(BOATS, wish), feedback="no, without the calculator")
    assert plan.declined is None
    assert (plan.removals, plan.new_nodes) == ([], set())
    assert prompt_after(BOATS, plan) == told(BOATS, "Tell people about gift vouchers")


def test_a_correction_of_words_holds_below_them() -> None:
    wish, later = "Tell people about gift vouchers and the autumn sale", "Never mention the autumn sale"
    plan = planned(BOATS, wish, previous=planned(BOATS, wish), feedback=later)
    before, after = [str(value.value) for value in plan.values]
    assert "\n".join([BOATS, before, after]) == told(BOATS, wish, later)


def test_a_correction_that_only_takes_something_out_of_the_words_is_listed_and_is_none_of_them() -> None:
    wish, later = "Tell people about gift vouchers and the autumn sale", "Leave out the bit about the sale"
    plan = planned(BOATS, wish, previous=planned(BOATS, wish), feedback=later)
    assert prompt_after(BOATS, plan) == told(BOATS, wish)
    assert [part.quote for part in plan.not_done] == [later]


def test_a_conversation_that_gets_a_file_answers_from_it_with_its_prompt_kept() -> None:
    plan = planned(BOATS, "Answer from our PDF price list")
    assert plan.removals == ["conversationChain_0"]
    assert {"pdfFile", "conversationalRetrievalQAChain"} <= {node.node_name for node in plan.nodes}
    (prompt,) = [str(value.value) for value in plan.values if value.param == "responsePrompt"]
    assert prompt.startswith(BOATS)
    assert "{context}" in prompt


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        ("zmień temperaturę na 0.3", {("chatOpenAI_0", "temperature"): 0.3}),
        ("disable streaming", {("chatOpenAI_0", "streaming"): False}),
        ("use gpt-4o-mini everywhere, it gets the sums wrong", {("chatOpenAI_0", "modelName"): "gpt-4o-mini"}),
    ],
)
def test_a_setting_gets_into_no_prompt(wish: str, changed: dict[tuple[str, str], Any]) -> None:
    plan = planned(BOATS, wish)
    assert plan.declined is None
    assert {(value.node_id, value.param): value.value for value in plan.values} == changed


@pytest.mark.parametrize(
    ("wish", "node"),
    [
        ("the agent that drafts should also put the claim number first", "agentAgentflow_0"),
        ("the agent should also put the claim number first", "agentAgentflow_0"),
        ("the proofreader should keep capitals", "llmAgentflow_0"),
        ("answer in Irish", ""),
    ],
)
def test_a_step_is_found_by_its_title_or_asked_about(wish: str, node: str) -> None:
    steps = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="agentAgentflow", node_id="agentAgentflow_0", label="Drafter",
                params={"agentMessages": [{"role": "system", "content": "<p>Write a reply.</p>"}]}),
        AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", label="Proofreader",
                params={"llmMessages": [{"role": "system", "content": "<p>Correct it.</p>"}]}),
    ]  # fmt: skip
    plan = planned("", wish, graph=compile_ops(GraphIR.empty(), steps, STORE.schemas).graph)
    if node:
        assert [(value.node_id, value.mode) for value in plan.values] == [(node, "append")]
    else:
        assert plan.declined == "This could mean: Drafter, Proofreader. Which one?"


def test_of_a_sentence_of_which_a_part_is_a_setting_nothing_is_written_into_the_prompt() -> None:
    for wish in (
        "Er soll sich nur noch die letzten 5 Nachrichten merken, das wird sonst zu teuer",
        'Put a moderation in front so nobody can insult our volunteers, message should be "Keep it friendly."',
    ):
        plan = planned(BOATS, wish)
        assert plan.values
        assert prompt_after(BOATS, plan) == BOATS


TOOLS = compile_ops(
    GraphIR.empty(),
    [
        AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": "Help the shop."}),
        AddNode(node_name="chatOllama", node_id="chatOllama_0", params={"modelName": "llama3.1", "temperature": 0.9}),
        AddNode(node_name="bufferWindowMemory", node_id="bufferWindowMemory_0", params={"k": 4}),
        AddNode(node_name="calculator", node_id="calculator_0"),
        AddNode(node_name="serper", node_id="serper_0", label="Google"),
        AddNode(node_name="wolframAlpha", node_id="wolframAlpha_0", label="Encyclopedia"),
        AddNode(node_name="retrieverTool", node_id="retrieverTool_0", params={"name": "a", "description": "b"}),
        AddNode(node_name="memoryVectorStore", node_id="store_0"),
        AddNode(node_name="openAIEmbeddings", node_id="embeddings_0"),
        AddNode(node_name="cheerioWebScraper", node_id="page_0", params={"url": "https://shop.example.com"}),
        AddNode(node_name="plainText", node_id="text_0", params={"text": "Vases cost 35 euros."}),
        *(Connect(source_node_id=source, target_node_id=target, target_anchor=anchor) for source, target, anchor in (
            ("chatOllama_0", "toolAgent_0", "model"), ("bufferWindowMemory_0", "toolAgent_0", "memory"),
            ("calculator_0", "toolAgent_0", "tools"), ("serper_0", "toolAgent_0", "tools"),
            ("wolframAlpha_0", "toolAgent_0", "tools"), ("retrieverTool_0", "toolAgent_0", "tools"),
            ("store_0", "retrieverTool_0", "retriever"), ("embeddings_0", "store_0", "embeddings"),
            ("page_0", "store_0", "document"), ("text_0", "store_0", "document"))),
    ],
    STORE.schemas,
).graph  # fmt: skip


@pytest.mark.parametrize(
    ("wish", "removed"),
    [
        ("drop google", {"serper_0"}),
        ("Die Google-Suche kann weg", {"serper_0"}),
        ("throw out the web search", {"serper_0"}),
        ("enlevez l'encyclopédia", {"wolframAlpha_0"}),
        ("remove Encyclopedia and the calculator", {"wolframAlpha_0", "calculator_0"}),
        ("quita el paso Google, y responde en español", {"serper_0"}),
    ],
)
def test_a_tool_goes_by_its_title_its_kind_or_its_type(wish: str, removed: set[str]) -> None:
    plan = planned("", wish, graph=TOOLS)
    assert (plan.declined, {*plan.removals}) == (None, removed)


@pytest.mark.parametrize("wish", ["it runs on http://10.0.0.5:11434", "Ollama läuft auf http://10.0.0.5:11434"])
def test_the_address_of_a_model_is_that_of_no_page(wish: str) -> None:
    plan = planned("", wish, graph=TOOLS)
    assert [(v.node_id, v.param, v.value) for v in plan.values] == [
        ("chatOllama_0", "baseUrl", "http://10.0.0.5:11434")
    ]


@pytest.mark.parametrize(
    "wish",
    [
        "remember the whole conversation",
        "er soll sich das ganze Gespräch merken",
        "deve lembrar de toda a conversa",
        "deve ricordare l'intera conversazione",
        "il doit se souvenir de toute la conversation",
        "debe recordar toda la conversación",
    ],
)
def test_to_remember_all_of_a_conversation_is_another_memory(wish: str) -> None:
    plan = planned("", wish, graph=TOOLS)
    added = {node.node_name for node in plan.nodes if not node.existing}
    assert (plan.removals, added) == (["bufferWindowMemory_0"], {"bufferMemory"})


def test_a_temperature_is_set_as_people_say_it() -> None:
    for wish in ("Temperatur vielleicht n bisschen runter, so 0.3", "bring the temperature down a bit, maybe 0.3"):
        assert [v.value for v in planned("", wish, graph=TOOLS).values] == [0.3]


@pytest.mark.parametrize(
    ("wish", "name", "written"),
    [
        ("que se llame Coach Nico y que tutee a los alumnos", "Coach Nico", "Que tutee a los alumnos"),
        ("it should be called Coach Nico, and never mention vouchers", "Coach Nico", "Never mention vouchers"),
        ("le bot doit s'appeler Capitaine. Vouvoie les clients", "Capitaine", "Vouvoie les clients"),
    ],
)
def test_a_name_and_a_tone_of_one_wish_are_both_done(wish: str, name: str, written: str) -> None:
    plan = planned(BOATS, wish)
    assert (plan.declined, plan.new_name) == (None, name)
    assert written.casefold() in prompt_after(BOATS, plan).casefold()


def test_that_something_is_wrong_is_asked_about_and_its_answer_changes_it() -> None:
    wish, prompt = "the swimming pool bot has the wrong closing time pls fix", "We open at 7:00. We close at 20:00."
    question = planned(prompt, wish).declined or ""
    assert question.endswith("?")
    answered = planned(prompt, wish, (question, "it says 20:00, right is 21:30"))
    assert prompt_after(prompt, answered) == prompt.replace("20:00", "21:30")


def test_a_value_out_of_range_is_asked_for_and_the_answer_set() -> None:
    question = planned(HORSES, "Temperatur vom Modell auf 3 setzen").declined or ""
    assert "0 – 2" in question
    plan = planned(HORSES, "Temperatur vom Modell auf 3 setzen", (question, "dann 0,3"))
    assert [(value.param, value.value) for value in plan.values] == [("temperature", 0.3)]


def test_settings_are_emptied_and_switched_off_by_their_titles() -> None:
    slow = AddNode(node_name="chatOpenAI", node_id="chatOpenAI_1", params={"timeout": 9})
    plan = planned(HORSES, "max tokens auf 800 und das Timeout weg, außerdem Streaming aus", graph=flow(HORSES, slow))
    changed = {value.param: value.value for value in plan.values if value.node_id == "chatOpenAI_1"}
    assert changed == {"maxTokens": 800, "timeout": "", "streaming": False}


CHUNKS = flow(
    BOATS,
    AddNode(node_name="memoryVectorStore", node_id="memoryVectorStore_0"),
    AddNode(node_name="recursiveCharacterTextSplitter", node_id="recursiveCharacterTextSplitter_0"),
)


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        ("8 chunks please, chunk size 500", {"topK": 8, "chunkSize": 500}),
        ("Bitte 6 Treffer holen und Abschnitte von 800 Zeichen", {"topK": 6, "chunkSize": 800}),
        ("récupère 5 extraits au lieu de 4", {"topK": 5}),
        ("Put temprature to 0.2", {"temperature": 0.2}),
        ("set temperture 0.3 and the chunk overlapp to 40", {"temperature": 0.3, "chunkOverlap": 40}),
        ("temp runter auf 0.1", {"temperature": 0.1}),
        ("chunk size 600", {"chunkSize": 600}),
        ("look at 8 passages rather than 3", {"topK": 8}),
    ],
)
def test_a_number_beside_the_word_of_a_setting_is_set(wish: str, changed: dict[str, Any]) -> None:
    plan = planned(BOATS, wish, graph=CHUNKS)
    assert plan.declined is None
    assert {value.param: value.value for value in plan.values} == changed


@pytest.mark.parametrize(
    "wish", ["chunk size 500", "give me 3 loops at most", "limit the memory to 0.5 tokens of 7 chunks"]
)
def test_a_setting_that_the_flow_does_not_have_gets_into_no_prompt(wish: str) -> None:
    assert prompt_after(BOATS, planned(BOATS, wish)) == BOATS


def test_massages_are_no_messages() -> None:
    wish = "Say that 3 massages cost 80 euros"
    assert prompt_after(BOATS, planned(BOATS, wish)) == told(BOATS, wish)


STEPS = [
    AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
    AddNode(node_name="llmAgentflow", node_id="llmAgentflow_0", label="Writer",
            params={"llmModel": "chatOpenAI", "llmModelConfig": {"temperature": 0.7, "modelName": "gpt-4o"}}),
    AddNode(node_name="agentAgentflow", node_id="agentAgentflow_0", label="Editor",
            params={"agentModel": "chatOpenAI", "agentModelConfig": {"temperature": 0.7, "modelName": "gpt-4o"}}),
    AddNode(node_name="loopAgentflow", node_id="loopAgentflow_0", params={"loopBackToNode": "llmAgentflow_0-Writer"}),
    AddNode(node_name="directReplyAgentflow", node_id="directReplyAgentflow_0"),
    Connect(source_node_id="startAgentflow_0", target_node_id="llmAgentflow_0", target_anchor=""),
    Connect(source_node_id="llmAgentflow_0", target_node_id="agentAgentflow_0", target_anchor=""),
    Connect(source_node_id="agentAgentflow_0", target_node_id="directReplyAgentflow_0", target_anchor=""),
]  # fmt: skip
EDITOR = "agentAgentflow_0.agentModelConfig"


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        ("the Editor should use gpt-4o-mini, not the Writer", {f"{EDITOR}.modelName": "gpt-4o-mini"}),
        (
            "the Editor should use Claude, not the Writer",
            {"agentAgentflow_0.agentModel": "chatAnthropic", f"{EDITOR}.temperature": 0.7},
        ),
    ],
)  # fmt: skip
def test_of_steps_only_the_one_that_is_meant_changes_and_keeps_its_values(wish: str, changed: dict[str, Any]) -> None:
    graph = compile_ops(GraphIR.empty(), STEPS, STORE.schemas).graph
    plan = planned("", wish, graph=graph, inside=components_of(graph))
    assert plan.declined is None
    assert {f"{v.node_id}.{v.param}": v.value for v in plan.values if v.value is not True} == changed


@pytest.mark.parametrize(
    ("wish", "language"),
    [
        ("limit pętli na 4", "pl"),
        ("ask me before the reply is sent", "en"),
        ("ask a person before sending the answer", "en"),
        ("moet iemand akkoord geven voordat de mail weggaat", "nl"),
        ("Ask me for approval before the Editor step", "en"),
        ("Vor dem Schritt Editor soll ich zustimmen", "de"),
        ("ask a human before the Writer starts", "en"),
    ],
)
def test_a_wish_for_repetitions_or_for_a_person_to_be_asked_is_declined(wish: str, language: str) -> None:
    graph = compile_ops(GraphIR.empty(), STEPS, STORE.schemas).graph
    plan = planned("", wish, graph=graph, inside=components_of(graph))
    assert plan.declined in {say("declined_structure", code, parts=f"«{wish}»") for code in ("en", language)}
    assert [*plan.values, *plan.nodes, *plan.removals, *plan.connections, *plan.disconnections] == []


def test_a_wish_to_be_asked_that_is_not_heard_as_one_for_the_steps_is_declined_with_its_words() -> None:
    graph = compile_ops(GraphIR.empty(), STEPS, STORE.schemas).graph
    plan = planned("", "Frag mich, bevor die Antwort rausgeht", graph=graph, inside=components_of(graph))
    assert "«Frag mich, bevor" in (plan.declined or "")
    assert [*plan.values, *plan.nodes, *plan.removals, *plan.connections, *plan.disconnections] == []


def test_of_a_list_the_item_about_a_person_is_listed_and_the_others_are_done() -> None:
    graph = compile_ops(GraphIR.empty(), STEPS, STORE.schemas).graph
    wish = "1. ask a person before sending the answer\n2. temperature 0.2 in the Writer"
    plan = planned("", wish, graph=graph, inside=components_of(graph))
    assert [(one.node_id, one.param, one.value) for one in plan.values] == [
        ("llmAgentflow_0", "llmModelConfig.temperature", 0.2)
    ]
    assert [(part.quote, part.reason) for part in plan.not_done] == [
        ("ask a person before sending the answer", say("part_structure", "en"))
    ]
    assert [*plan.removals, *plan.connections, *plan.disconnections] == []


@pytest.mark.parametrize(
    "wish", ["in the Editor step, answer in French", "Im Schritt Editor immer auf Französisch antworten"]
)
def test_the_step_that_is_named_is_told_and_not_where_it_is(wish: str) -> None:
    texts = [AddNode(node_name=f"{kind}Agentflow", node_id=f"{kind}Agentflow_0", label=label,
                     params={f"{kind}Messages": [{"role": "system", "content": "<p>Do it.</p>"}]})
             for kind, label in (("llm", "Writer"), ("agent", "Editor"))]  # fmt: skip
    plan = planned("", wish, graph=compile_ops(GraphIR.empty(), [*STEPS[:1], *texts], STORE.schemas).graph)
    (value,) = plan.values
    assert (value.node_id, value.mode) == ("agentAgentflow_0", "append")
    assert "Editor" not in str(value.value)


def test_what_is_filled_in_at_the_end_of_a_prompt_stays_there() -> None:
    prompt = "Reply for the library.\nBe brief.\n\nE-mail:\n{email}"
    wish = "Never use emojis"
    added = with_added_text(prompt, [str(value.value) for value in planned(prompt, wish).values])
    assert added == told("Reply for the library.\nBe brief.", wish) + "\n\nE-mail:\n{email}"
    ended = "Reply.\n\n{context}"
    after = prompt_after(ended, planned(ended, 'Replace "Reply" by "Answer". Never use emojis.'))
    assert after == told("Answer.", "Never use emojis.") + "\n\n{context}"


def test_sentences_of_a_tool_that_goes_and_the_window_of_a_memory_are_told() -> None:
    prompt = "Use the calculator for prices.\nBe brief."
    more = [
        AddNode(node_name="toolAgent", node_id="toolAgent_0", params={"systemMessage": prompt}),
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name="bufferWindowMemory", node_id="bufferWindowMemory_0", params={"k": 4}),
        AddNode(node_name="calculator", node_id="calculator_0"),
        AddNode(node_name="currentDateTime", node_id="currentDateTime_0"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="toolAgent_0", target_anchor="model"),
        Connect(source_node_id="bufferWindowMemory_0", target_node_id="toolAgent_0", target_anchor="memory"),
        Connect(source_node_id="calculator_0", target_node_id="toolAgent_0", target_anchor="tools"),
        Connect(source_node_id="currentDateTime_0", target_node_id="toolAgent_0", target_anchor="tools"),
    ]
    graph = compile_ops(GraphIR.empty(), more, STORE.schemas).graph
    plan = planned("", "remove the calculator", graph=graph)
    assert (plan.removals, plan.values) == (["calculator_0"], [])
    assert any('"Use the calculator for prices."' in step for step in plan.steps)
    assert any("last 9 exchanges" in step for step in planned("", "remember the last 9 messages", graph=graph).steps)


@pytest.mark.parametrize(
    "wish",
    ["lower the temperature from 0.7 to 0.2", "Die Temperatur von 0,7 auf 0,2 senken", "temperatura de 0.7 a 0.2"],
)
def test_of_two_numbers_of_a_setting_the_new_one_counts(wish: str) -> None:
    warm = AddNode(node_name="chatOpenAI", node_id="chatOpenAI_1", params={"temperature": 0.7})
    plan = planned(BOATS, wish, graph=flow(BOATS, warm))
    assert [value.value for value in plan.values] == [0.2] * len(plan.values)
    assert plan.not_done == []


def test_a_conversation_without_memory_goes_on_as_a_chain_with_its_words() -> None:
    for wish in ("remove the memory", "Nimm das Gedächtnis raus"):
        plan = planned(BOATS, wish)
        assert set(plan.removals) == {"bufferMemory_0", "conversationChain_0"}
        assert {node.node_name for node in plan.nodes if not node.existing} == {"llmChain", "promptTemplate"}
        assert [v.value for v in plan.values if v.param == "template"] == [f"{BOATS}\n\n{{text}}"]


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("Copy the flow 3fa85f64-5717-4562-b3fc-2c963f66afa6 as Truro desk", "Truro desk"),
        ("Kopiere den Flow als Krume Süd", "Krume Süd"),
        ('Copia come "Il Noce 2"', "Il Noce 2"),
        ("Fai una copia. Nome: \"Il Noce 2\". L'originale deve restare com'è", "Il Noce 2"),
        ('I want a second one exactly the same. Called "Heron 2". Leave the old one alone', "Heron 2"),
    ],
)
def test_as_is_how_a_copy_is_called(wish: str, name: str) -> None:
    plan = planned(BOATS, wish)
    assert (plan.operation, plan.flow_name, plan.values) == ("copy", name, [])


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("rename the flow to Heron Desk", "Heron Desk"),
        ("Change the name of the flow to Heron Desk", "Heron Desk"),
        ("The flow should be called Heron Desk, leave the rest", "Heron Desk"),
        ("Benenne den Flow in „Anna Blum“ um", "Anna Blum"),
        ("Benenne den Flow in Anna um", "Anna"),
        ("Der Flow soll künftig Anna heißen", "Anna"),
        ("Cambia el nombre del flujo a Coral Azul", "Coral Azul"),
        ("Renombra el flow a Coral Azul", "Coral Azul"),
        ("Renomeie este flow para Balcão 2", "Balcão 2"),
        ("Cambia nome al flusso: Bottega Argilla", "Bottega Argilla"),
        ("Change le nom du flux en Bureau du port", "Bureau du port"),
        ("Wijzig de naam van de flow naar Golf Noord", "Golf Noord"),
        ("Zmień nazwę przepływu na Koło", "Koło"),
        ("rename it to Heron 2025, the old name confuses everyone", "Heron 2025"),
        ('Rename it to "Heron Desk – Night", nothing else', "Heron Desk – Night"),
        ("Just rename this to Heron Desk (v2) and leave the rest alone.", "Heron Desk (v2)"),
        ("Benenn den Bot um in Heron", "Heron"),
        ("Nenne ihn Bootsauskunft, sonst nichts ändern", "Bootsauskunft"),
        ("Rinominalo in Sportello Barche", "Sportello Barche"),
        ("Chama-lhe Balcão 2", "Balcão 2"),
        ("Renomme-le en Bureau du port", "Bureau du port"),
        ("Llámalo Puerto Norte. El resto se queda igual", "Puerto Norte"),
        ("hernoem hem naar Havenbalie, de rest blijft zo", "Havenbalie"),
        ("nazwij go Port Pomoc", "Port Pomoc"),
        ('il nome del flow deve diventare "Bottega"', "Bottega"),
        ('el flujo que se llame "Coral Azul"', "Coral Azul"),
    ],
)
def test_a_flow_that_exists_gets_another_name_and_nothing_else(wish: str, name: str) -> None:
    plan = planned(BOATS, wish)
    assert (plan.declined, plan.new_name, plan.values, plan.nodes, plan.not_done) == (None, name, [], [], [])
    assert any(f"«{name}»" in step and "«Front desk»" in step for step in plan.steps)


@pytest.mark.parametrize("wish", ["always call it a vessel", "Say that the ferry is called Maeve"])
def test_a_name_within_a_rule_renames_nothing(wish: str) -> None:
    plan = planned(BOATS, wish)
    assert plan.new_name is None
    assert wish[1:] in prompt_after(BOATS, plan)


def test_a_name_and_another_wish_are_both_done() -> None:
    plan = planned(BOATS, "Call it Heron Night and never mention vouchers")
    assert plan.new_name == "Heron Night"
    assert prompt_after(BOATS, plan) == told(BOATS, "Never mention vouchers")
    plan = planned(BOOKS, "Muda o nome do fluxo para Farol Azul e não fales de descontos")
    assert plan.new_name == "Farol Azul"
    assert prompt_after(BOOKS, plan) == told(BOOKS, "Não fales de descontos", language="pt")


def steps_with(*tools: str) -> GraphIR:
    rows: list[Any] = [
        {"agentSelectedTool": name, "agentSelectedToolConfig": {"agentSelectedTool": name}} for name in tools
    ]
    params: dict[str, Any] = {"agentMessages": [{"role": "system", "content": "You plan tours."}], "agentTools": rows}
    ops = [
        AddNode(node_name="startAgentflow", node_id="startAgentflow_0"),
        AddNode(node_name="agentAgentflow", node_id="agentAgentflow_0", label="Planner", params=params),
        Connect(source_node_id="startAgentflow_0", target_node_id="agentAgentflow_0", target_anchor=""),
    ]
    return compile_ops(GraphIR.empty(), ops, STORE.schemas).graph


def test_a_tool_that_is_not_to_be_used_for_something_stays_beside_a_new_one() -> None:
    plan = planned("", "Add a calculator. Don't use Brave for prices.", graph=steps_with("braveSearchAPI"))
    rows: Any = next(value.value for value in plan.values if value.param == "agentTools")
    assert [row["agentSelectedTool"] for row in rows] == ["braveSearchAPI", "calculator"]


@pytest.mark.parametrize(
    ("there", "wish", "after", "unsaid"),
    [
        ([], "add a calculator, it can't even do 14 x 23.50", ["calculator"], ["«14», «23.50»"]),
        (["calculator"], "Er soll auch im Web suchen", ["calculator", "serpAPI"], []),
        (["calculator", "currentDateTime"], "take the calculator out again", ["currentDateTime"], []),
        (["calculator"], "Nimm den Taschenrechner raus", [], []),
        (["braveSearchAPI"], "use Tavily instead of Brave", ["tavilyAPI"], []),
    ],
)
def test_tools_in_an_agentflow_come_and_go(there: list[str], wish: str, after: list[str], unsaid: list[str]) -> None:
    plan = planned("", wish, graph=steps_with(*there))
    assert plan.declined is None
    (value,) = plan.values
    rows: Any = value.value
    assert (value.param, [row["agentSelectedTool"] for row in rows]) == ("agentTools", after)
    assert [part.reason for part in plan.not_done] == [say("part_rest", "en", words=words) for words in unsaid]
    assert ("serpApi" in plan.credential_requirements) == ("serpAPI" in after)


@pytest.mark.parametrize(
    ("wish", "changed"),
    [
        ("Er soll sich nur die letzten 6 Nachrichten merken", {"MemoryType": "windowSize", "MemoryWindowSize": 6}),
        ("remember only the last 4 messages", {"MemoryType": "windowSize", "MemoryWindowSize": 4}),
        ("remove the memory", {"EnableMemory": False}),
    ],
)
def test_memory_in_an_agentflow_is_limited_or_off(wish: str, changed: dict[str, Any]) -> None:
    plan = planned("", wish, graph=steps_with())
    assert plan.declined is None
    assert {value.param: value.value for value in plan.values} == {f"agent{name}": v for name, v in changed.items()}
    assert plan.not_done == []


@pytest.mark.parametrize(
    "wish",
    [
        "Never mention vouchers, it told a lady with ducklings to pay so",
        "Responde siempre con rimas, nuestros clientes son de Valencia",
        "If a claim is open, say so: Reference: Dept. 4 / Claims, and nothing more",
    ],
)
def test_a_sentence_of_a_wish_and_its_reason_is_written_whole(wish: str) -> None:
    prompt = "You answer for the house."
    assert prompt_after(prompt, planned(prompt, wish)) == told(prompt, wish)


@pytest.mark.parametrize(
    ("wish", "written"),
    [
        ("The deposit is 20 euros. Please leave the rest exactly as it is.", "The deposit is 20 euros."),
        ("Hi there, mention the tides! Thanks a lot", "Mention the tides!"),
        ("Nenne die Gezeiten, bitte. Der Rest bleibt, wie er ist. Danke!", "Nenne die Gezeiten, bitte."),
        ("Parle des marées, et laisse le reste tel quel. Merci !", "Parle des marées."),
        ("Habla de las mareas; lo demás se queda igual. Gracias", "Habla de las mareas"),
        ("Parla delle maree. Il resto lascialo com'è, grazie.", "Parla delle maree."),
        ("Fale das marés, o resto fica igual", "Fale das marés"),
        ("Noem de getijden, laat de rest zo. Bedankt", "Noem de getijden"),
        ("Wspomnij o pływach i dopytaj o łódź. Resztę zostaw bez zmian.", "Wspomnij o pływach i dopytaj o łódź."),
        ("can it finish every answer with a joke about herons? my boss insists...",
         "Finish every answer with a joke about herons."),
        ("Kann er am Ende nach dem Boot fragen?", "Am Ende nach dem Boot fragen."),
    ],
)  # fmt: skip
def test_scope_thanks_and_questions_leave_the_wish_alone(wish: str, written: str) -> None:
    prompt = "You answer for Heron Boats in Cobh.\nNever mention discounts."
    plan = planned(prompt, wish)
    assert prompt_after(prompt, plan).rstrip(".") == told(prompt, written).rstrip(".")
    assert plan.not_done == []


@pytest.mark.parametrize(
    ("wish", "kept"),
    [
        ("answer from our PDF price list. Keep the memory we have.", "bufferMemory_0"),
        ("Antworte aus unserer PDF-Preisliste, das Gedächtnis so lassen wie es ist", "bufferMemory_0"),
    ],
)
def test_a_part_that_is_to_stay_is_not_touched(wish: str, kept: str) -> None:
    plan = planned(BOATS, wish)
    assert plan.declined is None
    assert kept not in plan.removals
    assert not any(value.node_id == kept for value in plan.values)
    assert not any("Memory" in node.node_name for node in plan.nodes if not node.existing)


@pytest.mark.parametrize("wish", ["togli la memoria", "Usuń pamięć", "verwijder het geheugen", "Enlève la mémoire"])
def test_a_memory_is_taken_out_in_each_language_and_never_exchanged(wish: str) -> None:
    plan = planned(BOATS, wish)
    assert "bufferMemory_0" in plan.removals
    assert not any("Memory" in node.node_name for node in plan.nodes if not node.existing)


@pytest.mark.parametrize(
    ("wish", "written"),
    [
        ("Please add our price list, it's a PDF (prices_2027.pdf), so that it stops making prices up.", []),
        (
            "add a calculator and tell people about gift vouchers and dogs",
            ["- Tell people about gift vouchers and dogs"],
        ),
    ],
)
def test_beside_a_part_only_wishes_of_words_are_written(wish: str, written: list[str]) -> None:
    plan = planned(BOATS, wish)
    texts = [str(value.value) for value in plan.values]
    lines = [line for text in texts for line in text.split("\n") if line and line[3:] in wish]
    assert lines == written
    # What is said of the file and is no part by itself may be listed; the file comes all the same.
    assert {part.quote for part in plan.not_done} <= {"Please add our price list"}
    assert written or any("prices_2027.pdf]" in text for text in texts)


def test_a_part_whose_number_or_language_is_written_nowhere_is_told_as_not_done() -> None:
    plan = planned(BOATS, "temperature 0.2 and a frobnication of 17")
    assert plan.declined or any("17" in part.quote for part in plan.parts if part.state != "covered")
    for wish in ("topK 6, Chunks 900 mit 150 Überlappung", "tokens max 700, temperature 0.3"):
        plan = planned(BOATS, wish, graph=CHUNKS)
        written = {str(value.value) for value in plan.values}
        done = " ".join(part.quote for part in plan.parts if part.state == "covered")
        assert set(re.findall(r"\d+(?:\.\d+)?", done)) <= written


HARBOUR = "You answer for a harbour. Always answer in English, even if the guest writes in another language. Be polite."


def test_a_memory_of_few_messages_is_set_without_an_accent() -> None:
    plan = planned(HARBOUR, "q recuerde solo los ultimos 5 mensajes")
    assert [(one.param, one.value) for one in plan.values] == [("k", 5)]


@pytest.mark.parametrize(
    "wish",
    [
        "add Wikipedia",
        "Est-ce que l'agent peut envoyer un SMS au client ? Ajoutez-lui ça",
    ],
)
def test_a_part_that_is_not_understood_is_declined_and_never_told_to_the_model(wish: str) -> None:
    plan = planned(BOATS, wish)
    assert plan.declined
    assert plan.values == []


def test_of_a_question_for_a_part_the_first_sentence_is_told_as_not_done_and_not_to_the_model() -> None:
    part = "Can you put a filter in front that blocks certain words?"
    plan = planned(BOATS, f'{part} gun, bomb. It should say "Be kind."')
    assert part in [one.quote for one in plan.not_done]
    assert "filter" not in prompt_after(BOATS, plan)


def test_a_value_is_never_what_was_hidden_from_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowise_dev_agent.reasoning.rules.design.wording.line_of", lambda _: "Hidden \0\0")
    assert planned(BOATS, "never mention vouchers").declined


@pytest.mark.parametrize(
    ("there", "wish", "mode"),
    [
        ("Statutes.", "Answer from this text too", "append"),
        ("Statutes.", "Replace the document by this text", "set"),
        ("[PLACEHOLDER: text]", "Answer from this text", "set"),
    ],
)
def test_a_text_that_a_flow_answers_from_goes_on_with_another_one(there: str, wish: str, mode: str) -> None:
    text = "Members pay 20 euros a year. Families pay 35 euros. Children under ten pay nothing."
    stored = AddNode(node_name="plainText", node_id="plainText_0", params={"text": there})
    store = AddNode(node_name="memoryVectorStore", node_id="memoryVectorStore_0")
    plan = planned(BOATS, f'{wish}: "{text}"', graph=flow(BOATS, stored, store))
    assert [(one.param, one.mode, one.value) for one in plan.values] == [("text", mode, text)]


@pytest.mark.parametrize(
    ("wish", "listed"),
    [
        ("We'd like thumbs up under each answer. Say that Sunday is closed.", "We'd like thumbs up under each answer."),
        ("Pon preguntas sugeridas. Di que el domingo cerramos.", "Pon preguntas sugeridas."),
        ("Hij moet startvragen tonen. Zeg dat we op zondag dicht zijn.", "Hij moet startvragen tonen."),
    ],
)
def test_a_part_that_is_wished_for_and_not_built_is_listed_and_not_prompted(wish: str, listed: str) -> None:
    plan = planned("You are kind.", wish)
    assert any(part.state == "not_understood" and part.quote.startswith(listed) for part in plan.parts), plan.parts
    assert listed not in prompt_after("You are kind.", plan)
    assert prompt_after("You are kind.", plan) != "You are kind."


def test_a_part_that_is_only_said_to_the_model_is_listed_by_name() -> None:
    plan = planned("You are kind.", "If they ask for JSON, say that our memory is short.")
    assert [part.reason for part in plan.parts if part.state == "not_understood"] == [say("part_told", "en")]


@pytest.mark.parametrize(
    "kept", ["The memory can stay.", "Das Gedächtnis soll er behalten.", "La memoria se queda.", "Pamięć zostaje."]
)
def test_what_stays_changes_nothing_and_is_told_to_nobody(kept: str) -> None:
    plan = planned("You are kind.", f"{kept} Never mention prices.")
    assert prompt_after("You are kind.", plan) == told("You are kind.", "Never mention prices.")
    assert ([node for node in plan.nodes if not node.existing], plan.removals) == ([], [])
    assert all(part.state == "covered" for part in plan.parts)


@pytest.mark.parametrize("wish", [
    "Mo has left, the new groundsman is Bea Holt, 01584 555 0177.",
    "New groundsman: 01584 555 0177.",
])  # fmt: skip
def test_a_number_of_somebody_else_takes_the_place_of_none(wish: str) -> None:
    prompt = "You answer for the Heron Boathouse. Unsure? Call the desk at 01584 555 0142."
    assert prompt_after(prompt, planned(prompt, wish)).startswith(prompt)
    now = planned(prompt, "We have a new number: 01584 555 0177.")
    assert prompt_after(prompt, now) == prompt.replace("0142", "0177")
