"""Wishes for new chatflows as people type them: what is structure is a value or a node, or is told as not done."""

import re
from typing import Any

import pytest

from flowise_dev_agent.contracts.plan import Part, PlanContract
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.language.text import detect_language
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

PROMPTS = {"systemMessagePrompt", "systemMessage", "template", "responsePrompt"}


async def planned(wish: str, nodes: NodeStore) -> PlanContract:
    rules = DeterministicReasoner()
    intent = (await rules.classify(ClassifyRequest(requirement=wish))).value
    parts = tuple(Part(id=f"p{number}", quote=quote) for number, quote in enumerate(intent.parts, 1))
    request = PlanRequest(requirement=wish, intent=intent, nodes=nodes, credential_types={"openAIApi": 1}, parts=parts)
    return (await rules.plan(request)).value


def prompt_of(plan: PlanContract) -> str:
    return next((str(value.value) for value in plan.values if value.param in PROMPTS), "")


#: Wish -> values of the flow, by their fields.
VALUES: dict[str, dict[str, Any]] = {
    "gemini 2.0 flash bot, remembers 6 msgs, temp .3, short answers": {
        "modelName": "gemini-2.0-flash", "k": 6, "temperature": 0.3, "systemMessagePrompt": "Short answers"},
    "Un agent avec calculatrice, mistral-small-latest, température 0,1, au plus 4 itérations": {
        "maxIterations": 4, "temperature": 0.1, "modelName": "mistral-small-latest"},
    "Un asistente que responda preguntas sobre https://www.ejemplo.es/ayuda?tema=3. Máximo 10 páginas.": {
        "limit": 10, "url": "https://www.ejemplo.es/ayuda?tema=3"},
    "Um bot que responde perguntas sobre o nosso CSV, no Qdrant na coleção produtos_2024, devolve os 3 melhores "
    "resultados": {"qdrantCollection": "produtos_2024", "topK": 3},
    "RAG assistant over our pinecone index docs-1, namespace hr-2, top 6 results": {
        "pineconeIndex": "docs-1", "pineconeNamespace": "hr-2", "topK": 6},
    "Local bot on Ollama with llama3.1:8b at http://192.168.1.20:11434, context 8192": {
        "numCtx": 8192, "baseUrl": "http://192.168.1.20:11434", "modelName": "llama3.1:8b"},
    "Story writer on gpt-4o, top p 0.8, timeout 60 seconds, streaming off": {
        "topP": 0.8, "timeout": 60_000, "streaming": False, "modelName": "gpt-4o"},
    "Answer questions about https://github.com/acme/w branch main, chunks of 1500, Chroma at http://localhost:8000": {
        "repoLink": "https://github.com/acme/w", "chunkSize": 1500, "chromaURL": "http://localhost:8000"},
    'Chatbot for kids that refuses messages with the words "beer" or "knife" and answers "Let us change the subject.". '
    "Remember everything.": {"denyList": "beer\nknife", "moderationErrorMessage": "Let us change the subject."},
    "Weaviate at http://10.0.0.5:8080, index Articles, top k 8, answer questions from it": {
        "weaviateIndex": "Articles", "topK": 8, "weaviateHost": "http://10.0.0.5:8080"},
    "Agent: Brave search and calculator. Max loops 6.": {"maxIterations": 6},
    "RAG bot over our docs at https://docs.kit.example (crawl it, max ~60 pages). chunks 1200/150. top 6. If it is not "
    "there, point to https://github.com/kit/kit/issues": {
        "url": "https://docs.kit.example", "limit": 60, "chunkSize": 1200, "chunkOverlap": 150, "topK": 6,
        "repoLink": None},
    "A bot for vets that refuses emergencies: messages with words like can't breathe or cat can't pee": {
        "denyList": None},
    "Der Bot soll aus den PDFs antworten, und wenn nichts drin steht: \"Dazu finde ich keine Regelung, bitte im Büro "
    "melden (Durchwahl 312)\".": {"text": None},
    "Math tutor on Claude Sonnet. Low temperature, say 0.3.": {"temperature": 0.3},
    "Der Bot soll aus den PDFs antworten und immer sagen, aus welcher Vereinbarung es stammt.": {
        "returnSourceDocuments": True},
    "Um bot sobre o regulamento (PDF) que diga de qual artigo veio a resposta": {"returnSourceDocuments": True},
    "bot that answers only in haiku. gemini flash, temperature 1.2": {"modelName": "gemini-2.5-flash"},
    "A helper for our club that collects: name, phone and day, in a friendly tone. The form is at https://club.example":
        {"jsonStructure": None, "url": None},
    "Chatbot pour un club. Claude Sonnet 4.5, 0,4 de température.": {"temperature": 0.4},
    "Assistente que responde sobre o regulamento (colo o texto depois), blocos de 600 caracteres": {"chunkSize": 600},
    "A bot for our staff handbook (docx), Cohere rerank, top 4": {"topK": 4, "modelName": None},
    "Could you build us an assistant on Gemini 2.0 Flash that reads https://paws.example/faq?lang=en and remembers us?":
        {"modelName": "gemini-2.0-flash", "url": "https://paws.example/faq?lang=en"},
}  # fmt: skip


@pytest.mark.parametrize("wish", VALUES)
async def test_a_setting_that_the_wish_names_is_a_value(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    values = {value.param: value.value for value in plan.values}
    assert {name: values.get(name) for name in VALUES[wish]} == VALUES[wish], plan.declined


#: Wish -> what is told the model.
TOLD = {
    "I run a bakery in Leeds. We open at 7am. I need a chatbot for our website that tells people our hours.":
        "I run a bakery in Leeds. We open at 7am. A chatbot for our website that tells people our hours.",
    "Je tiens un hôtel à Annecy. Je voudrais un assistant qui parle du parking (9 € par nuit).":
        "Je tiens un hôtel à Annecy. Un assistant qui parle du parking (9 € par nuit).",
    "Build a chatbot for our gym:\n- friendly tone\n- membership 29.90 a month\n- remembers the conversation":
        "A chatbot for our gym:\n- friendly tone\n- membership 29.90 a month",
    "One of our clients, a dentist, asked for an assistant that talks about parking.":
        "One of our clients, a dentist, asked for an assistant that talks about parking.",
    "Ein Assistent für Fliesen, Temperatur 0,2, höchstens 300 Tokens, antwortet in 3 Sätzen":
        "Ein Assistent für Fliesen, antwortet in 3 Sätzen",
    "Salve, ho un agriturismo vicino a Pienza. Usate Gemini. Grazie mille.": "Ho un agriturismo vicino a Pienza.",
    "Residents' chatbot. It should use the facts below and nothing else:\nBins: Tuesday":
        "Residents' chatbot. It should use the facts below and nothing else:\nBins: Tuesday",
    "chatbot, claude haiku, max tokens 400, jokes about cats only": "Jokes about cats only",
    "Story bot: at most 5 steps per story, ends with a moral. gpt-4o":
        "Story bot: at most 5 steps per story, ends with a moral.",
    "Tutor for chemistry. GPT-4o please. It's what we have a key for.": "Tutor for chemistry.",
    "We have a key for the boat shed. A bot that tells members where it is. I have an OpenAI key.":
        "We have a key for the boat shed. A bot that tells members where it is.",
    "Tutor for chemistry. We have an OpenAI account and sell books.":
        "Tutor for chemistry. We have an OpenAI account and sell books.",
    "Ein Tutor für Chemie. Als Modell haben wir gpt-4o über die Firma.\nMit freundlichen Grüßen\nS. Hartung":
        "Ein Tutor für Chemie.",
    "Un tuteur de chimie, au ton doux. Merci d'avance,\nSylvie": "Un tuteur de chimie, au ton doux.",
    "Ein Agent, der rechnen kann, soll sich auf Fliesen beschränken.":
        "Ein Agent, der rechnen kann, soll sich auf Fliesen beschränken.",
}  # fmt: skip


@pytest.mark.parametrize("wish", TOLD)
async def test_the_model_is_told_the_words_without_the_settings(wish: str, catalogue: NodeStore) -> None:
    assert prompt_of(await planned(wish, catalogue)) == TOLD[wish]


@pytest.mark.parametrize(
    ("wish", "quote"),
    [
        ("Chat assistant on gpt-4o with history in Redis, session ttl 3600, key prefix acme", "key prefix acme"),
        ("Tutor for chemistry, use the cheapest OpenAI model, at most 150 words an answer", "cheapest OpenAI model"),
        ("Ein Tutor für Chemie, nimm das günstigste Modell von OpenAI", "günstigste Modell"),
        ("Answer questions about https://github.com/acme/w branch develop", "branch develop"),
        ("Chatbot for a bank, gpt-4o, seed 42", "seed 42"),
        ("Chatbot for a bank, at most 20 messages per conversation", "at most 20 messages"),
    ],
)
async def test_a_setting_that_no_field_holds_is_told_as_not_done(wish: str, quote: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert [quote in part.quote for part in plan.parts if part.state == "not_understood"] == [True]


#: What no part of a flow does: wish -> where it is named, beside facts that are no wish for a part.
UNBUILT = {
    "Bot that speaks: voice in, voice out, for my grandma": "voice",
    "Build me an agent that takes a company name and gives back a briefing: what they do, who runs "
    "it, two competitors. It should really search the web, and look at Wikipedia for the basics.": "Wikipedia",
    "Un agent pour préparer mes cours: il cherche sur Wikipédia et sur le web, compare les deux et me donne les dates "
    "clés sous forme de liste. Pas de blabla.": "Wikipédia",
    "Autoscuola Freccia, Bologna. Un assistente per i quiz della patente: una domanda alla volta, spiega in due righe. "
    "Vorrei anche tre frasi da cliccare.": "da cliccare",
    "A helper for our hairdresser, open Tue-Sat 9-6, cut 30 euros, colour 55. It also files a ticket in Zendesk "
    "when somebody is angry.": "Zendesk",
}


@pytest.mark.parametrize("wish", UNBUILT)
async def test_what_is_only_said_to_the_model_is_told(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert [
        UNBUILT[wish] in part.quote for part in plan.parts if part.reason == say("part_told", detect_language(wish))
    ]
    assert [part.quote for part in plan.parts if part.state != "covered" and UNBUILT[wish] not in part.quote] == []


FACTS = [
    "Chat for a bakery. Order by WhatsApp 079 555 01 02 or with the form on our website, prices are a PDF there.",
    "Assistent für die Praxis: Rezepte per E-Mail an praxis@x.example, der Anamnesebogen ist ein PDF auf der Webseite.",
    "A bot for our museum. Audio guides are 3 euros, photos are allowed, the newsletter comes by e-mail every month.",
]


@pytest.mark.parametrize("wish", FACTS)
async def test_facts_that_name_a_website_or_a_file_are_told_without_a_note(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert {part.state for part in plan.parts} == {"covered"}, plan.declined


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ("Make me two chatbots: one for sales, one for support", "each flow is one chatbot"),
        ("Agent met rekenmachine en wikipedia, temperatuur 0", "wikipedia"),
        ("I want to talk to our MySQL database", "MySQL"),
        ("Agent that gets stock by GET https://api.hops.example/stock and then posts a note to our Slack", "Slack"),
    ],
)
async def test_what_cannot_be_built_is_declined_with_the_true_reason(
    wish: str, reason: str, catalogue: NodeStore
) -> None:
    assert reason in ((await planned(wish, catalogue)).declined or "")


@pytest.mark.parametrize(
    "wish",
    [
        "Je voudrais un assistant interne qui écrive des posts LinkedIn pour nos clients",
        "An assistant that drafts replies to clients, ready to send, in British English",
        "A bot that writes LinkedIn posts for a bakery",
        "HR bot. Facts:\n- Shoes are paid by us, keep the receipt and send it to pay@acme.io\n- Pay day is the 27th",
        "Bot for our clinic. Patients book an appointment at the desk and send the form to us.",
        "Ein Bot für die Hausverwaltung. Die Mieter melden Schäden und schicken ein Foto per E-Mail.",
        "Bot for our club: rules are 1) be kind 2) no spam 3) English only",
    ],
)
async def test_what_people_do_and_texts_for_a_service_need_no_service(wish: str, catalogue: NodeStore) -> None:
    assert (await planned(wish, catalogue)).declined is None


@pytest.mark.parametrize(
    ("wish", "named"),
    [
        (
            "Bot for our shop. Clients pay here. It should send the invoice to the customer by e-mail.",
            "«send the invoice",
        ),
        ("The bot answers questions and sends an email to sales when someone orders.", "«sends an email"),
    ],
)
async def test_what_the_bot_is_to_send_is_declined_by_its_words(wish: str, named: str, catalogue: NodeStore) -> None:
    assert named in ((await planned(wish, catalogue)).declined or "")


@pytest.mark.parametrize(
    "wish",
    [
        "Quero colocar IA no escritório pra ajudar a equipe, o que der",
        "Bom dia! Sou sócio de um escritório de contabilidade em Curitiba e meu filho falou dessa ferramenta. Quero "
        "colocar IA no escritório pra ajudar a equipe, o que der. Pode fazer?",
        "I run a bakery in Leeds and my sister told me about this. Make me something.",
        "Vorremmo mettere l'AI in ufficio, quello che si può",
    ],
)
async def test_who_says_that_anything_will_do_is_asked(wish: str, catalogue: NodeStore) -> None:
    rules = DeterministicReasoner()
    assert len((await rules.classify(ClassifyRequest(requirement=wish))).value.questions) == 1


@pytest.mark.parametrize(
    ("wish", "ending"),
    [
        ("A friend for my dad to practise English. If he writes Arabic, answer in English and then the Arabic "
         "translation below.", "conversationChain"),
        ("When I paste a text, translate it into German", "llmChain"),
        ("Translate the mail. If it is in English already, summarise it.", "llmChain"),
    ],
)  # fmt: skip
async def test_a_task_for_one_case_is_part_of_a_conversation(wish: str, ending: str, catalogue: NodeStore) -> None:
    assert (await planned(wish, catalogue)).nodes[0].node_name == ending


@pytest.mark.parametrize(
    "wish",
    [
        "RAG over https://docs.a.example. If the docs don't cover it, say so & link https://github.com/a/a/issues",
        "RAG over https://docs.a.example. For anything else see https://a.example/help",
    ],
)
async def test_an_address_to_point_to_is_no_source(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert [value.value for value in plan.values if value.param == "url"] == ["https://docs.a.example"]


@pytest.mark.parametrize(
    ("wish", "title"),
    [
        ("Chatbot for a bank, gpt-4o, seed 42", "Chatbot for a bank"),
        (
            "Ich brauche einen Chatbot für unsere Praxis Dr. Weber in Kassel.",
            "Chatbot für unsere Praxis Dr Weber in Kassel",
        ),
        ("My dad moved here from Syria and wants to practise English with a friend.", "Chatbot"),
        (
            "I was told by my sister in law that this can make a chatbot, I'm a nurse at Harbour Vets",
            "Nurse at Harbour Vets",
        ),
        ("RAG over our docs site please.", "RAG over our docs site"),
        ("I want an intake helper for people who land on my page.", "Intake helper for people who land"),
        ("Kette, die Texte ins Englische übersetzt", "Kette, die Texte ins Englische übersetzt"),
    ],
)
async def test_a_flow_is_named_by_whole_phrases(wish: str, title: str, catalogue: NodeStore) -> None:
    assert (await planned(wish, catalogue)).flow_name == title


async def test_a_page_and_a_text_that_is_still_to_come_are_two_sources(catalogue: NodeStore) -> None:
    wish = "Answer questions about our price list (I'll paste it) and our FAQ at https://acme.io/faq"
    names = [node.node_name for node in (await planned(wish, catalogue)).nodes]
    assert {"plainText", "cheerioWebScraper"} <= {*names}


async def test_an_index_that_is_named_is_not_filled_with_a_text_that_nobody_gave(catalogue: NodeStore) -> None:
    names = [node.node_name for node in (await planned("RAG bot on the pinecone index docs-1", catalogue)).nodes]
    assert "pinecone" in names
    assert "plainText" not in names


def test_per_is_an_english_word_too() -> None:
    assert detect_language("Gemini bot, max 2 sentences per answer") == "en"


#: Wish -> the prompt that it gives, which is told to the model and nothing else.
GIVEN = {
    'Support bot for our hosting. gpt-4o. Prompt can be short: "You are Forge. Help with DNS." Streaming on.':
        "You are Forge. Help with DNS.",
    'Support bot, gpt-4o. The prompt should be "You are Forge. Help with DNS."': "You are Forge. Help with DNS.",
    "Chatbot on Claude. Prompt: You are Ada, tutor for nurses in Ghent. Be short.":
        "You are Ada, tutor for nurses in Ghent. Be short.",
    "Chatbot.\nSystem prompt:\nYou are Ada.\n- be short": "You are Ada.\n- be short",
    "Ein Bot für den Tierpark. Prompt: „Du bist Kiki, der Papagei.“ Mistral bitte": "Du bist Kiki, der Papagei.",
}  # fmt: skip


@pytest.mark.parametrize("wish", GIVEN)
async def test_a_prompt_that_is_given_is_the_prompt(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert (plan.nodes[0].node_name, prompt_of(plan)) == ("conversationChain", GIVEN[wish])
    assert not any(part.quote in GIVEN[wish] for part in plan.parts if part.state != "covered")


async def test_a_quotation_is_no_document(catalogue: NodeStore) -> None:
    fee = '"Fees are 20 euros a year for adults and 10 euros for kids, payable in March at the gate."'
    plan = await planned(f"Bot for our club. About fees give this fixed text: {fee} Otherwise be nice.", catalogue)
    assert (plan.nodes[0].node_name, fee in prompt_of(plan)) == ("conversationChain", True)


NEW = [
    "I own a nursery. We have a list plants.csv. Use Claude. Staff are volunteers so pls make it as simple as possible",
    "We need an assistant for our bakery. This bot should be polite. Open 9 to 5.",
    "Wir brauchen einen Assistenten für bestehende Kunden der Werkstatt, geöffnet 9-16 Uhr.",
    "I want a bot that answers our tenants. Let it be friendly and have it ask for the flat number.",
    "Necesito un bot para clientes existentes, que sea amable.",
]


@pytest.mark.parametrize("wish", NEW)
async def test_a_wish_for_a_bot_is_for_a_new_one(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert (plan.operation, plan.declined) == ("create", None)


@pytest.mark.parametrize("wish", ["Make it answer in French", "Haz que responda en francés", "Make this bot shorter"])
async def test_a_wish_that_begins_with_a_change_is_none_for_a_new_flow(wish: str) -> None:
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement=wish))).value
    assert intent.operation == "update"


@pytest.mark.parametrize(
    "wish",
    ["i want AI for my shop", "Quiero IA para mi negocio", "Um chat para a loja, chatAnthropic, temperatura 0,2"],
)
async def test_a_wish_that_says_nothing_to_do_is_asked_about(wish: str) -> None:
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement=wish))).value
    assert intent.questions == [say("question_vague", intent.language)]


CALLS = [
    "Potrzebuję bota, który codziennie o 17:00 sam dzwoni telefonicznie do pacjentów i pyta, czy przyjdą.",
    "Quiero un bot que llame por teléfono a los clientes que no pagan.",
    "Een bot die elke maandag belt met onze klanten, alsof een mens belt naar de klanten.",
]


@pytest.mark.parametrize("wish", CALLS)
async def test_calls_to_people_are_declined_in_all_languages(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert say("gap_phone", detect_language(wish)) in (plan.declined or "")


@pytest.mark.parametrize(
    ("wish", "node"),
    [
        ("A chat helper for learners. It should keep a running summary of the talk instead of every message.", "S"),
        ("Ein Chatbot für Halter. Lange Gespräche soll er zusammenfassen statt alles zu behalten.", "S"),
        ("Un chatbot para clientes que recuerde un resumen de lo hablado y no todos los mensajes.", "S"),
        ("Un assistente per gli ospiti. Deve tenere a mente un riassunto della conversazione.", "S"),
        ("Un simulatore d'esame: una domanda alla volta, aspetta la risposta e corregge.", "bufferMemory"),
    ],
)
async def test_who_talks_remembers_as_it_is_said(wish: str, node: str, catalogue: NodeStore) -> None:
    names = [one.node_name for one in (await planned(wish, catalogue)).nodes]
    assert {"S": "conversationSummaryMemory"}.get(node, node) in names


async def test_each_file_that_is_named_gets_a_loader_of_its_own(catalogue: NodeStore) -> None:
    wish = "Members ask about the agreement: prices.pdf, rules.pdf and the letters (60 pages, letters 2024.txt)."
    values = {value.node_id: str(value.value) for value in (await planned(wish, catalogue)).values}
    files = {"pdfFile_0": "prices.pdf", "pdfFile_1": "rules.pdf", "textFile_0": "2024.txt"}
    assert {node_id: name in values[node_id] for node_id, name in files.items()} == dict.fromkeys(files, True)


async def test_the_page_that_a_bot_stands_on_is_no_source(catalogue: NodeStore) -> None:
    stands = await planned("I want a chat thing on my website that tells people when we open", catalogue)
    assert not any(node.node_name == "plainText" for node in stands.nodes)
    reads = await planned("A bot that answers questions from our website", catalogue)
    assert any(node.node_name == "plainText" for node in reads.nodes)


@pytest.mark.parametrize(
    ("wish", "named"),
    [
        ("Je voudrais un bot qui répond à mes clientes sur WhatsApp. Coupe 32 €.", "WhatsApp"),
        ("Team assistant, an agent with these tools: Jira (create and search issues), calculator.", "Jira"),
        ("Ein Bot für die Praxis, der auch in Telegram antwortet. Sei freundlich.", "Telegram"),
    ],
)
async def test_a_service_that_nothing_in_the_flow_reaches_is_listed(
    wish: str, named: str, catalogue: NodeStore
) -> None:
    plan = await planned(wish, catalogue)
    assert not plan.declined
    assert any(named in part.quote for part in plan.parts if part.state != "covered")


async def test_a_service_where_people_are_sent_is_a_word_of_the_answer(catalogue: NodeStore) -> None:
    plan = await planned("Bakery bot. Orders go by WhatsApp 0171 2345678, photos are on Instagram @brot.", catalogue)
    assert all(part.state == "covered" for part in plan.parts), plan.parts


async def test_a_calendar_comes_with_the_date_of_today(catalogue: NodeStore) -> None:
    plan = await planned("Un bot qui note les rendez-vous dans mon agenda Google. Coupe 32 €.", catalogue)
    assert {"googleCalendarTool", "currentDateTime"} <= {node.node_name for node in plan.nodes}


#: Wish -> the model of the flow, its fields and what the prompt says.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Bot for a plumber in Leeds, chatOllama with qwen2.5:7b at http://192.168.1.20:11434": (
        "chatOllama", {"modelName": "qwen2.5:7b", "baseUrl": "http://192.168.1.20:11434"}),
    "Ein Chatbot für unsere Bäckerei, Modell mistral:7b": ("chatOllama", {"modelName": "mistral:7b"}),
    "Un chatbot pour notre club, ChatMistralAI": ("chatMistralAI", {}),
    "Um chat para a loja de bicicletas, chatAnthropic, temperatura 0,2": ("chatAnthropic", {"temperature": 0.2}),
}  # fmt: skip


@pytest.mark.parametrize("wish", MODELS)
async def test_a_model_is_known_by_its_type_its_tag_and_its_port(wish: str, catalogue: NodeStore) -> None:
    plan, (model, values) = await planned(wish, catalogue), MODELS[wish]
    assert plan.declined is None
    assert model in {node.node_name for node in plan.nodes}
    assert {one.param: one.value for one in plan.values}.items() >= values.items()


@pytest.mark.parametrize("wish", [
    "Agent with Google Calendar that says which slots are free, but it must never create or change anything there",
    "Der Agent soll Termine aus Google Calendar nennen, darf aber nichts anlegen oder ändern.",
    "Un agent avec Google Agenda qui dit quels créneaux sont libres mais ne doit jamais créer de rendez-vous.",
    "Un agente con Google Calendar que diga los huecos libres, pero nunca debe crear ni cambiar citas.",
    "Un agente con Google Calendar, solo lettura, che dica gli orari liberi.",
    "Um agente com Google Calendar que diga os horários livres, mas nunca deve criar nada.",
])  # fmt: skip
async def test_a_tool_is_not_given_what_it_is_said_never_to_do(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    (actions,) = [str(one.value) for one in plan.values if one.param == "eventActions"]
    assert "listEvents" in actions
    assert not any(name in actions for name in ("create", "update", "delete", "quickAdd"))


async def test_a_tool_that_drafts_sends_nothing_where_that_is_said(catalogue: NodeStore) -> None:
    plan = await planned("An assistant with Gmail that drafts replies but never sends any email itself", catalogue)
    (actions,) = [str(one.value) for one in plan.values if one.param == "draftActions"]
    assert "createDraft" in actions
    assert "sendDraft" not in actions


@pytest.mark.parametrize("wish", [
    "A chatbot for our gym. To cancel, members have to send an email to stop@gym.example with their number.",
    "Un chatbot pour notre club. Pour annuler, il faut envoyer un mail à non@club.example avec le nom et la date.",
    "Ci serve un bot per la palestra. Per disdire bisogna mandare una mail a disdette@palestra.example.",
    "Potrzebujemy czatu dla hotelu. Aby odwołać pobyt, trzeba wysłać maila na rez@hotel.example.",
    "Um chat para a padaria. Para encomendar é preciso enviar um email para pao@braga.example com dois dias.",
])  # fmt: skip
async def test_what_people_have_to_send_is_told_to_the_bot(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert plan.declined is None
    assert wish.partition(". ")[2] in prompt_of(plan)
    assert {part.state for part in plan.parts} == {"covered"}


#: Wish -> the fields of its answer.
LISTED = {
    "Preciso tirar dos emails: nome, prato e se é para levar, tudo em JSON": ["nome", "prato", "se_e_para_levar"],
    "Necesito sacar de los correos: empresa, número de factura y fecha, todo en JSON": [
        "empresa", "numero_de_factura", "fecha"],
    "Aus den Mails brauche ich: Kunde, Menge und Liefertermin, alles als JSON": ["kunde", "menge", "liefertermin"],
    "Haal uit de mails: naam, maat en kleur, alles in JSON": ["naam", "maat", "kleur"],
}  # fmt: skip


@pytest.mark.parametrize("wish", LISTED)
async def test_all_that_is_listed_in_front_of_json_is_a_field(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    (rows,) = [str(one.value) for one in plan.values if one.param == "jsonStructure"]
    assert re.findall(r"'property': '(\w+)'", rows) == LISTED[wish]
    assert "'numero_de_factura', 'type': 'number'" not in rows


@pytest.mark.parametrize("wish", [
    "Helper for our drop-in that turns letters I paste into plain English, nothing remembered between people please",
    "Nous tenons un camping à Royan. Il nous faudrait un assistant qui n'enregistre rien. Ouvert d'avril à octobre.",
    "Wij hebben een bakkerij in Gent en willen een chatbot. Open di-za 7-18 u. Niets onthouden tussen gesprekken.",
    "Un chat para la tienda de Ana en León. No guarda nada. Abrimos de 9 a 14.",
])  # fmt: skip
async def test_a_flow_of_which_nothing_is_to_be_kept_has_no_memory(wish: str, catalogue: NodeStore) -> None:
    intent = (await DeterministicReasoner().classify(ClassifyRequest(requirement=wish))).value
    plan = await planned(wish, catalogue)
    assert intent.operation == "create"
    assert plan.declined is None
    assert not any("Memory" in node.node_name for node in plan.nodes)


@pytest.mark.parametrize("wish", [
    "Chat for our shop that must not remember anything. It should greet returning customers and know their last order.",
    "Ein Chat ohne Gedächtnis für unser Café. Er soll Stammgäste erkennen und wissen, was sie letztes Mal hatten.",
    "Chcemy czat kwiaciarni. Nie może niczego zapamiętywać. Ma witać stałych klientów i wiedzieć, co zamówili.",
])  # fmt: skip
async def test_no_memory_and_a_greeting_for_who_comes_back_is_asked_about(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert plan.asks
    assert plan.declined is not None
    assert plan.declined.count("«") == 2


@pytest.mark.parametrize("wish", [
    'Chat for our office. If someone writes words like "cash job" or "no bill", the chat stops.',
    'Chat für unser Büro. Wenn jemand Wörter wie "cash job" oder "no bill" schreibt, soll er abbrechen.',
    "Un chat pour le bureau. Si on écrit des mots comme « cash job » ou « no bill », il s'arrête.",
    'Un chat para la oficina. Si alguien usa palabras como "cash job" o "no bill", que no responda.',
    'Una chat per l\'ufficio. Se uno scrive parole come "cash job" o "no bill", la chat si ferma.',
    'Um chat para o escritório. Se alguém escrever palavras como "cash job" ou "no bill", deve parar.',
    'Een chat voor kantoor. Als iemand woorden als "cash job" of "no bill" schrijft, stopt de chat.',
    'Czat dla biura. Gdy ktoś napisze słowa takie jak "cash job" lub "no bill", czat ma się zatrzymać.',
])  # fmt: skip
async def test_words_at_which_a_chat_stops_are_a_deny_list(wish: str, catalogue: NodeStore) -> None:
    plan = await planned(wish, catalogue)
    assert [one.value for one in plan.values if one.param == "denyList"] == ["cash job\nno bill"]


#: Wish -> what its prompt is, or begins with.
BEGINS = {
    "Abbiamo una palestra a Bari. Ci serve un bot per il sito: lun-ven 7-22.": "Abbiamo una palestra a Bari. Un bot",
    "Morning! I'd like our volunteers to be able to ask what goes in which bin. Glass green.":
        "I'd like our volunteers to be able to ask what goes in which bin. Glass green.",
    "Nachschlagewerk für Azubis: Probezeit 4 Monate; Urlaub 28 Tage.":
        "Nachschlagewerk für Azubis: Probezeit 4 Monate; Urlaub 28 Tage",
    "Hi there, tiny dog salon in Bath, two of us. We need a chatbot that quotes 30 pounds a wash.":
        "Tiny dog salon in Bath, two of us.",
    "Chatbot für die Mieter: Restmüll montags, Papier jeden 2. Do. Kein Gedächtnis.":
        "Chatbot für die Mieter: Restmüll montags, Papier jeden 2. Do.",
    "A chatbot for our garage in Hull. Use Claude if that's possible, my brother swears by it. We open at 8.":
        "A chatbot for our garage in Hull. We open at 8.",
}  # fmt: skip


@pytest.mark.parametrize("wish", BEGINS)
async def test_a_prompt_says_whose_bot_it_is_and_not_how_it_is_built(wish: str, catalogue: NodeStore) -> None:
    assert prompt_of(await planned(wish, catalogue)).startswith(BEGINS[wish])


async def test_a_formula_is_no_form(catalogue: NodeStore) -> None:
    wish = "Something for the lads that works out volt drops with a calculator. It should show the formula."
    plan = await planned(wish, catalogue)
    assert "toolAgent" in {node.node_name for node in plan.nodes}
    # What the first sentence is about is no mere part.
    assert prompt_of(plan) == "Something for the lads that works out volt drops. It should show the formula."
