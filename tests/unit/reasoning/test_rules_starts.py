"""New flows: what is vague is asked about, what no flow does is declined, and no setting is left to the words of a
prompt."""

from typing import Any

import pytest

from flowise_dev_agent.reasoning.contracts import PlanContract
from tests.unit.reasoning.test_rules_properties import planned


def values_of(plan: PlanContract) -> dict[str, Any]:
    assert plan.declined is None
    return {f"{value.node_id}.{value.param}": value.value for value in plan.values}


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ('Bot for a ferry. OpenAI moderation in front with the message "Stay polite." Memory of only 5 messages.',
         {"bufferWindowMemory_0.k": 5, "inputModerationOpenAI_0.moderationErrorMessage": "Stay polite."}),
        ("Un assistant avec ollama (qwen2.5:7b sur http://10.0.0.8:11434) qui répond avec notre règlement en PDF",
         {"chatOllama_0.baseUrl": "http://10.0.0.8:11434", "ollamaEmbedding_0.baseUrl": "http://10.0.0.8:11434"}),
        ('Answers from our existing Pinecone index "seeds-25", namespace tomato, top 3 hits',
         {"pinecone_0.pineconeIndex": "seeds-25", "pinecone_0.pineconeNamespace": "tomato", "pinecone_0.topK": 3}),
        ("Asistente que lea https://museo.example y conteste con eso, 4 fragmentos por búsqueda",
         {"cheerioWebScraper_0.url": "https://museo.example", "memoryVectorStore_0.topK": 4}),
        ("Research helper with Brave search and a calculator, max 6 iterations", {"toolAgent_0.maxIterations": 6}),
        ("Assistant with Google Calendar for our cello teacher", {"googleCalendarTool_0.calendarType": "event"}),
    ],
)  # fmt: skip
def test_a_named_setting_is_in_the_field_that_it_names(wish: str, expected: dict[str, Any]) -> None:
    assert expected.items() <= values_of(planned(wish)[1]).items()


def test_what_keeps_the_conversation_is_built_as_named() -> None:
    plan = planned("Un chatbot que responda con nuestras tarifas en un CSV, y que guarde la conversación en Redis")[1]
    assert "RedisBackedChatMemory" in {node.node_name for node in plan.nodes}


@pytest.mark.parametrize(
    "wish",
    [
        "Agent mit Google Kalender, der nachsieht, wer Dienst hat",
        "Agent that can check my Google Calendar, who is on shift",
    ],
)
def test_a_tool_only_reads_where_that_is_asked_of_it(wish: str) -> None:
    actions = str(values_of(planned(wish)[1])["googleCalendarTool_0.eventActions"])
    assert "listEvents" in actions
    assert not any(name in actions for name in ("create", "update", "delete", "quickAdd"))


@pytest.mark.parametrize(
    "wish",
    [
        "Agent that makes appointments in my Google Calendar",
        "Assistant with Google Calendar that books cello lessons",
        "Agent mit Google Kalender, der Termine anlegt",
    ],
)
def test_a_tool_that_is_to_write_takes_nothing_away_by_itself(wish: str) -> None:
    actions = values_of(planned(wish)[1])["googleCalendarTool_0.eventActions"]
    assert "createEvent" in actions
    assert "deleteEvent" not in actions


@pytest.mark.parametrize(
    "wish",
    [
        "Fine-tune llama on our tasting notes and let it run offline in the cellar",
        "Train a brand new language model from scratch on our claim files",
        "Trainiere ein eigenes Sprachmodell mit unseren Akten, ohne Internet auf unserem Server",
        "Entrena una IA con nuestras fotos y que abra la puerta del almacén",
        "Host our own LLM in Flowise so that we need no provider", "Addestra un modello sui nostri verbali",
        "Een assistent die zonder internet werkt", "Chatbot na naszym komputerze, działa offline bez dostawcy",
        "A bot that switches the irrigation valves on its own",
    ],
)  # fmt: skip
def test_what_no_flow_does_is_declined_as_impossible(wish: str) -> None:
    intent, plan = planned(wish)
    assert not intent.questions
    assert plan.declined
    assert not plan.declined.endswith("?")


def test_a_server_of_ones_own_makes_an_assistant_without_a_provider() -> None:
    assert planned("A tutor for knitting that works offline, with Ollama and llama3.1")[1].declined is None


@pytest.mark.parametrize(
    ("wish", "word"),
    [
        ("a bot for the office, whatever, quick", "What"), ("necesito un bot para la empresa, lo que sea", "Qué"),
        ("irgendwas mit KI für meine Kollegen, egal was, danke", "Was"), ("Ein Bot für unser Team bitte", "Was"),
        ("qualcosa di utile per i miei clienti, grazie mille", "cosa"), ("make me a bot", "What"),
        ("il me faut un assistant pour mon équipe, vite svp", "Que"), ("iets handigs voor het team", "Wat"),
        ("potrzebuję czegoś z AI dla firmy, obojętnie", "co"), ("preciso de um bot para a empresa, tanto faz", "que"),
    ],
)  # fmt: skip
def test_a_wish_without_a_subject_is_asked_about_once_in_its_language(wish: str, word: str) -> None:
    (question,) = planned(wish)[0].questions
    assert word.casefold() in question.casefold()


@pytest.mark.parametrize("wish", ["A bot for our zoo", "Ein Bot für die Feuerwehr in Ulm", "Un bot per il mio forno"])
def test_a_wish_with_a_subject_is_not_asked_about(wish: str) -> None:
    assert planned(wish)[0].questions == []
