"""New flows: forms and schedules are built; what is vague is asked about, what no
flow does is declined, and no setting is left to the words of a prompt."""

from typing import Any

import pytest

from flowise_dev_agent.reasoning.contracts import PlanContract
from tests.unit.reasoning.test_rules_properties import planned


def values_of(plan: PlanContract) -> dict[str, Any]:
    assert plan.declined is None
    return {f"{value.node_id}.{value.param}": value.value for value in plan.values}


def test_the_fields_of_a_form_are_given_to_each_model() -> None:
    text = (
        "Form with name, allotment and what is broken. An agentflow writes a work order from it, the warden has to "
        "approve it before it goes out, then POST it to https://park.example/orders. gpt-4.1"
    )
    plan = planned(text)[1]
    values = values_of(plan)
    assert [row["name"] for row in values["startAgentflow_0.formInputTypes"]] == ["name", "allotment", "what_is_broken"]
    (told,) = [row["content"] for row in values["llmAgentflow_0.llmMessages"]]
    assert told.startswith("Writes a work order from it")
    assert "{{ $form.allotment }}" in told
    assert values["llmAgentflow_0.llmModelConfig"]["modelName"] == "gpt-4.1"
    links = {(one.source, one.output, one.target) for one in plan.connections}
    assert ("humanInputAgentflow_0", "proceed", "customFunctionAgentflow_0") in links
    assert ("customFunctionAgentflow_0", "", "httpAgentflow_0") in links


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("Every Monday at 07:15 (Europe/Dublin) fetch https://fish.example/prices and write three sentences about cod",
         {"scheduleFrequency": "weekly", "scheduleOnDayOfWeek": "1", "scheduleOnTime": "07:15",
          "scheduleTimezone": "Europe/Dublin"}),
        ("Jeden Werktag um 6 Uhr Europe/Berlin die Pegel von https://pegel.example/elbe holen und zusammenfassen",
         {"scheduleFrequency": "weekly", "scheduleOnDayOfWeek": "1,2,3,4,5", "scheduleOnTime": "06:00",
          "scheduleTimezone": "Europe/Berlin"}),
        ("Chaque jour à 18h30 Europe/Paris, appelle https://gare.example/retards puis résume les retards",
         {"scheduleFrequency": "daily", "scheduleOnTime": "18:30", "scheduleTimezone": "Europe/Paris"}),
    ],
)  # fmt: skip
def test_a_schedule_with_an_address_to_call_starts_the_flow(wish: str, expected: dict[str, str]) -> None:
    values = values_of(planned(wish)[1])
    assert {name: values[f"startAgentflow_0.{name}"] for name in expected} == expected
    assert values["httpAgentflow_0.url"].startswith("https://")


@pytest.mark.parametrize(("answer", "zone"), [("Amsterdam time", "Europe/Amsterdam"), ("asunción", "America/Asuncion")])
def test_the_time_zone_of_a_schedule_is_asked_for_and_read_from_a_city(answer: str, zone: str) -> None:
    wish = "Every weekday at 6:30 pm fetch https://port.example/delays and summarise it in 5 bullet points"
    question = planned(wish)[1].declined or ""
    assert question.endswith("?")
    values = values_of(planned(wish, clarifications=((question, answer),))[1])
    assert values["startAgentflow_0.scheduleTimezone"] == zone
    assert values["startAgentflow_0.scheduleOnTime"] == "18:30"


def test_a_time_zone_that_is_named_elsewhere_is_not_asked_for() -> None:
    wish = "Every day at 6pm fetch https://shop.example/orders and write a summary of it. Europe/London"
    values = values_of(planned(wish)[1])
    assert (values["startAgentflow_0.scheduleOnTime"], values["startAgentflow_0.scheduleTimezone"]) == (
        "18:00",
        "Europe/London",
    )
    assert "Europe/London" not in str(values["llmAgentflow_0.llmMessages"])


def test_models_for_steps_that_nobody_speaks_of_are_declined() -> None:
    wish = "Agentflow: write a poem, then translate it. gpt-4o for the invoice, gpt-4o-mini for the orders."
    assert "gpt-4o for the invoice" in (planned(wish)[1].declined or "")


@pytest.mark.parametrize(
    ("wish", "models"),
    [
        ("Agentflow: search the web for prices, then make a table. gpt-4o-mini for the search, gpt-4o for the table.",
         [("gpt-4o-mini", None), ("gpt-4o", None)]),
        ("Agentflow: gpt-4o writes a text about foxes, then gpt-4o-mini translates it into Dutch with temperature 0.",
         [("gpt-4o", None), ("gpt-4o-mini", 0)]),
        ("Ein Ablauf: ein Autor schreibt eine Glosse, ein Lektor kürzt sie. Der Autor mit gpt-4o und Temperatur 0,9, "
         "der Lektor mit Temperatur 0.", [("gpt-4o", 0.9), (None, 0)]),
    ],
)  # fmt: skip
def test_a_step_has_the_model_that_is_named_for_it(wish: str, models: list[tuple[str | None, float | None]]) -> None:
    plan = planned(wish)[1]
    assert plan.declined is None
    configs: list[Any] = [value.value for value in plan.values if value.param.endswith("ModelConfig")]
    assert [(model, temperature) for model, temperature in models if model] == [
        (one["modelName"], temperature and one["temperature"])
        for one, (model, temperature) in zip(configs, models, strict=True) if model
    ]  # fmt: skip
    assert [one["temperature"] for one, (_, wanted) in zip(configs, models, strict=True) if wanted is not None] == [
        wanted for _, wanted in models if wanted is not None
    ]
    assert not plan.not_done


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
