"""The small parts: parsing, prices, cards, skills, text, settings to reasoner, reading of numbers and names."""

import re
import tomllib
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from pydantic import BaseModel

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning import (
    LlmReasoner,
    PhasedReasoner,
    ReasoningEngine,
    ReasoningSettings,
    make_reasoner,
)
from flowise_dev_agent.reasoning.cards import fields_line, schema_card
from flowise_dev_agent.reasoning.catalogue import STAPLES, catalogue_line, catalogue_text
from flowise_dev_agent.reasoning.contracts import EngineResponse, Usage
from flowise_dev_agent.reasoning.engines.response_buffer import cost
from flowise_dev_agent.reasoning.parsing import UnusableOutputError, parse_model, parse_object
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.details import find_fields, read_numbers
from flowise_dev_agent.reasoning.rules.design.providers import chat_provider, embeddings_provider, model_id
from flowise_dev_agent.reasoning.rules.design.reading import read
from flowise_dev_agent.reasoning.rules.language.text import Scan, detect_language
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner
from flowise_dev_agent.reasoning.rules_process import RulesProcess
from flowise_dev_agent.reasoning.skills import PACKAGED, Skills


class NoEngine(ReasoningEngine):
    """Is never asked."""

    async def complete(self, *args: Any, **more: Any) -> EngineResponse:
        raise AssertionError

    def model_id(self) -> str:
        return "none"

    async def aclose(self) -> None:
        return None


class _Thing(BaseModel):
    name: str
    count: int


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "a", "count": 1}',
        'Sure!\n```json\n{"name": "a", "count": 1}\n```',
        'The answer is {"name": "a", "count": 1}. I hope {this} helps.',
        "{'name': 'a', 'count': 1,}",
        '{"name": "a", "count": 1}\n\n{"name": "b"}',
    ],
)
def test_object_is_found_in_what_models_write(text: str) -> None:
    assert parse_object(text)["name"] == "a"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no json here", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"name": "a", "count": [1, 2', "cut off"),
        ('{"name": "a long text that never', "cut off"),
    ],
)
def test_p05_unusable_text_is_named(text: str, problem: str) -> None:
    with pytest.raises(UnusableOutputError, match=problem):
        parse_object(text)


def test_problems_name_the_fields() -> None:
    with pytest.raises(UnusableOutputError) as caught:
        parse_model('{"name": 3}', _Thing)
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["name", "count"]


def test_p62_nul_and_lone_surrogates_do_not_get_through() -> None:
    assert parse_object('{"name": "a\\u0000\\ud800"}') == {"name": "a\ufffd\ufffd"}


def test_known_prices_count_the_cache_and_unknown_ones_are_none() -> None:
    million = 1_000_000
    assert cost("my-own-model", provider="openai", input_tokens=million, output_tokens=million) is None
    assert cost("gpt-4o-2024-08-06", provider="openai", input_tokens=million, output_tokens=100_000) == 3.5
    assert cost("openai/gpt-4o", provider=None, input_tokens=million, output_tokens=100_000) == 3.5
    plain = cost("claude-sonnet-4-6", provider="anthropic", input_tokens=million, output_tokens=0)
    cached = cost(
        "claude-sonnet-4-6", provider="anthropic", input_tokens=million, output_tokens=0, cached_tokens=900_000
    )
    written = cost(
        "claude-sonnet-4-6", provider="anthropic", input_tokens=million, output_tokens=0, written_tokens=million
    )
    assert plain is not None
    assert cached is not None
    assert written is not None
    assert cached < plain < written


def test_usage_adds_up() -> None:
    one = Usage(model_calls=1, input_tokens=2, output_tokens=3, cached_tokens=1, usd=0.1, unpriced_calls=1)
    both = Usage(model_calls=2, input_tokens=4, output_tokens=6, cached_tokens=2, usd=0.2, unpriced_calls=2)
    assert one + one == both


def test_card_says_what_the_op_writer_needs(catalogue: NodeStore) -> None:
    card = schema_card(catalogue.schemas["memoryVectorStore"])
    assert "document <- Document (several)" in card
    assert "embeddings* <- Embeddings" in card
    assert "retriever -> Memory|VectorStoreRetriever|BaseRetriever" in card
    model = schema_card(catalogue.schemas["chatOpenAI"])
    assert "modelName*: asyncOptions (choices of the server) = gpt-4o-mini" in model
    assert "credential: openAIApi" in model
    assert "/" not in model.split("\n")[0]


def test_every_node_type_has_a_short_card_and_line(catalogue: NodeStore) -> None:
    for schema in catalogue.schemas.values():
        assert len(schema_card(schema)) <= 6_000
        assert len(catalogue_line(schema)) < 300


def test_p93_the_catalogue_lists_every_type_that_a_new_flow_can_use(catalogue: NodeStore) -> None:
    text = catalogue_text(catalogue)
    listed = {line.split(":")[0].removeprefix("- ") for line in text.splitlines() if line.startswith("- ")}
    usable = {name for name, schema in catalogue.schemas.items() if "Sequential" not in schema.category}
    assert listed == {name for name in usable if "Multi Agents" not in catalogue.schemas[name].category}
    assert {"startAgentflow", "humanInputAgentflow", "loopAgentflow"} <= listed
    assert "- openAIAssistant: " in text
    assert next(line for line in text.splitlines() if line.startswith("- openAIAssistant:")).endswith("DEPRECATED")
    assert len(text) < 40_000


def test_p31_the_catalogue_is_the_same_text_for_the_same_types(catalogue: NodeStore) -> None:
    again = NodeStore(dict(reversed(catalogue.schemas.items())), catalogue.flowise_version)
    assert catalogue_text(again) == catalogue_text(catalogue)
    fewer = {name: schema for name, schema in catalogue.schemas.items() if name != "calculator"}
    assert catalogue_text(NodeStore(fewer, "3")) != catalogue_text(catalogue)


def test_a_card_shows_the_fields_of_rows_and_where_a_component_goes(catalogue: NodeStore) -> None:
    card = schema_card(catalogue.schemas["llmAgentflow"])
    assert "llmModel*: name of a component, its settings in llmModelConfig" in card
    assert "row of llmStructuredOutput: {key: string; type: options of string, stringArray, number" in card
    condition = schema_card(catalogue.schemas["conditionAgentflow"])
    assert "smallerEqual" in condition
    assert "with type number" in condition


def test_a_card_lists_thirty_options_in_full_and_says_how_many_more_there_are(catalogue: NodeStore) -> None:
    def card(number: int) -> str:
        options = [{"name": f"o{index}", "label": ""} for index in range(number)]
        return schema_card(
            NodeSchema.from_raw({"name": "x", "inputs": [{"name": "a", "type": "options", "options": options}]})
        )

    assert "o29" in card(30)
    assert "in all" not in card(30)
    assert "… (31 in all)" in card(31)


def test_a_card_shows_warnings_and_what_flowise_says_about_required_inputs() -> None:
    inputs = [
        {"name": "prompt", "type": "string", "description": "The whole prompt.", "warning": "Must include {context}"},
        {"name": "hint", "type": "string", "optional": True, "description": "Not needed."},
    ]
    card = schema_card(NodeSchema.from_raw({"name": "x", "inputs": inputs}))
    assert "warning: Must include {context}; The whole prompt." in card
    assert "Not needed" not in card


@pytest.mark.parametrize(
    ("name", "branches"),
    [
        ("conditionAgentAgentflow", "branches: 0, 1, … in the order of `conditionAgentScenarios`"),
        ("conditionAgentflow", "branches: 0, 1, … in the order of `conditions`, then one for else"),
        ("humanInputAgentflow", "branches: 0 is proceed, 1 is reject"),
        ("llmAgentflow", "outputs: one, without a name"),
        ("directReplyAgentflow", "outputs: none"),
    ],
)
def test_a_card_numbers_the_branches_of_a_step(name: str, branches: str, catalogue: NodeStore) -> None:
    assert branches in schema_card(catalogue.schemas[name]).splitlines()


def test_a_card_says_which_field_takes_a_connection_too(catalogue: NodeStore) -> None:
    card = schema_card(catalogue.schemas["promptTemplate"])
    assert "param promptValues: json (takes a connection, too)" in card
    assert "takes a connection" not in schema_card(catalogue.schemas["llmAgentflow"])


def test_cards_and_fields_say_what_a_prompt_must_contain(catalogue: NodeStore) -> None:
    chain = catalogue.schemas["conversationalRetrievalQAChain"]
    for text in (schema_card(chain), fields_line(chain)):
        assert re.search(r"responsePrompt[^;]*\(must contain \{context\}\)", text)
    assert "must contain" not in schema_card(catalogue.schemas["conversationChain"])


def test_a_card_shows_a_default_without_the_markup_of_the_editor(catalogue: NodeStore) -> None:
    assert "conditionAgentInput*: string = {{ question }}" in schema_card(catalogue.schemas["conditionAgentAgentflow"])


def test_the_catalogue_has_the_fields_of_steps_and_of_the_usual_types(catalogue: NodeStore) -> None:
    lines = catalogue_text(catalogue).splitlines()
    after = {line.split(":")[0].removeprefix("- "): follows for line, follows in pairwise(lines)}
    assert after["chatOpenAI"].startswith("  <- cache; modelName* = gpt-4o-mini, temperature = 0.9")
    assert "llmModel* + llmModelConfig, llmMessages [{role system|assistant|" in after["llmAgentflow"]
    assert "agentTools [{agentSelectedTool + agentSelectedToolConfig, " in after["agentAgentflow"]
    assert "startState [{key, value}]" in after["startAgentflow"]
    assert not after["azureChatOpenAI"].startswith("  ")
    assert {name for name in STAPLES if not after[name].startswith("  ")} == set()


def test_the_catalogue_shows_the_choices_of_a_row_by_the_type_that_has_them(catalogue: NodeStore) -> None:
    condition = fields_line(catalogue.schemas["conditionAgentflow"])
    assert "{type string|number|boolean, value1, operation contains|" in condition
    assert "smaller|smallerEqual|equal|notEqual|larger|largerEqual|isEmpty|notEmpty with type number" in condition
    assert "formInputTypes* [{type string|number|boolean|options, " in fields_line(catalogue.schemas["startAgentflow"])
    assert "llmStructuredOutput [{key, type string|stringArray|number|" in fields_line(
        catalogue.schemas["llmAgentflow"]
    )


def test_the_fields_line_names_what_is_required_wherever_the_editor_shows_it(catalogue: NodeStore) -> None:
    assert "jsonStructure*" in fields_line(catalogue.schemas["structuredOutputParser"])
    assert "includesTables" in fields_line(catalogue.schemas["sqlDatabaseChain"])


def test_a_skill_is_read_by_section_and_has_a_version() -> None:
    assert "conversationalRetrievalQAChain" in PACKAGED.section("Flows")
    assert PACKAGED.version() == "5"
    with pytest.raises(KeyError, match="Judge"):
        PACKAGED.section("Nothing")


def test_a_skill_folder_replaces_sections_and_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "flowise_builder.md"
    file.write_text("---\nversion: ours\n---\n## Judge\nBe kind.\n")
    skills = Skills(tmp_path)
    assert skills.section("Judge") == "Be kind."
    assert skills.section("Flows") == PACKAGED.section("Flows")
    assert skills.version() == "5+ours"
    file.write_text("---\nversion: ours-2\n---\n## Judge\nBe strict and fair.\n")
    assert skills.section("Judge") == "Be strict and fair."
    file.unlink()
    assert skills.section("Judge") == PACKAGED.section("Judge")


def test_a_section_of_the_agentflow_chapter_is_replaced_alone(tmp_path: Path) -> None:
    (tmp_path / "agentflows.md").write_text("---\nversion: ours\n---\n## People\nAsk nobody.\n")
    ours, packaged = Skills(tmp_path).sections("agentflows"), PACKAGED.sections("agentflows")
    assert ours == {**packaged, "People": "Ask nobody."}
    settings = ReasoningSettings(REASONING_ENGINE="deterministic", SKILLS_DIR=tmp_path)
    assert LlmReasoner(NoEngine(), settings).skills_version == "flowise_builder 5, agentflows 3+ours"


def test_the_rules_read_no_skills() -> None:
    assert DeterministicReasoner().skills_version is None


def test_settings_choose_the_reasoner() -> None:
    rules = ReasoningSettings(REASONING_ENGINE="deterministic")
    assert isinstance(make_reasoner(rules), RulesProcess)
    for engine, key in (("claude", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")):
        settings = ReasoningSettings(REASONING_ENGINE=engine, **{key: "sk-test"})
        assert isinstance(make_reasoner(settings), PhasedReasoner)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("GPT-4o", "gpt-4o"),
        ("gpt 4o mini", "gpt-4o-mini"),
        ("switch from gpt-3.5-turbo to GPT-4.1", "gpt-4.1"),
        ("gpt-4.1-nano please", "gpt-4.1-nano"),
        ("o3-mini", "o3-mini"),
        ("Claude Sonnet 4.5", "claude-sonnet-4-5"),
        ("claude-opus-4-6", "claude-opus-4-6"),
        ("Claude 3.5 Sonnet", "claude-3-5-sonnet-latest"),
        ("claude-3-haiku-20240307", "claude-3-haiku-20240307"),
        ("Gemini 2.5 Flash", "gemini-2.5-flash"),
        ("mistral-large-latest", "mistral-large-latest"),
        ("Groq with llama-3.1-8b-instant", "llama-3.1-8b-instant"),
        ("Claude", None),
        ("a GPT-powered bot", None),
    ],
)
def test_model_is_spelt_as_the_provider_spells_it(text: str, model: str | None) -> None:
    assert model_id(text) == model


@pytest.mark.parametrize(
    ("text", "chat"),
    [
        ("with OpenAI", "chatOpenAI"),
        ("Azure OpenAI", "azureChatOpenAI"),
        ("Claude instead of OpenAI", "chatAnthropic"),
        ("not OpenAI but Mistral", "chatMistralAI"),
        ("use OpenAI embeddings and a Claude model", "chatAnthropic"),
        ("OpenAI for the model and embeddings", "chatOpenAI"),
        ("first OpenAI. No: use Groq", "groqChat"),
        ("a cooking bot", None),
    ],
)
def test_provider_is_the_one_that_is_meant(text: str, chat: str | None) -> None:
    provider = chat_provider(text)
    assert (provider.chat if provider else None) == chat


def test_embeddings_have_their_own_provider() -> None:
    provider = embeddings_provider("Claude for chat, Cohere embeddings")
    assert provider
    assert provider.embeddings == "cohereEmbeddings"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("temperature 0.2", {"temperature": 0.2}),
        ("Temperatur von 0,7", {"temperature": 0.7}),
        ("temperature of 1", {"temperature": 1}),
        ("temperature 0.2. No, set the temperature to 0.5", {"temperature": 0.5}),
        ("at most 200 tokens", {"max_tokens": 200}),
        ("the last ten messages", {"memory_window": 10}),
        ("die letzten zwölf Nachrichten", {"memory_window": 12}),
        ("los últimos 3 mensajes", {"memory_window": 3}),
        ("les 6 derniers messages", {"memory_window": 6}),
        ("as últimas 9 mensagens", {"memory_window": 9}),
        ("a window of 5", {"memory_window": 5}),
        ("500-character chunks with an overlap of 50", {"chunk_size": 500, "chunk_overlap": 50}),
        ("split into chunks of 1,200 characters, 10 characters overlap", {"chunk_size": 1200, "chunk_overlap": 10}),
        ("fragmentos de 400 caracteres con 40 de solapamiento", {"chunk_size": 400, "chunk_overlap": 40}),
        ("morceaux de 300 caractères, chevauchement de 30", {"chunk_size": 300, "chunk_overlap": 30}),
        ("retrieve the top 4 documents", {"top_k": 4}),
        ("tell three jokes in 20 words", {}),
    ],
)
def test_numbers_find_their_place(text: str, values: dict[str, float]) -> None:
    assert read_numbers(Scan(text)) == values


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Extract the name, the age and the city of a person", ["name", "age", "city"]),
        ("Return JSON with title, author and year", ["title", "author", "year"]),
        ("Extrahiere den Namen, das Alter und die Straße aus einem Text als JSON", ["namen", "alter", "strasse"]),
        ("fields: first name, last name, email", ["first_name", "last_name", "email"]),
        ("Return it as JSON", []),
    ],
)
def test_fields_are_taken_from_the_listing(text: str, names: list[str]) -> None:
    assert [field.name for field in find_fields(text)] == names


@pytest.mark.parametrize(
    "text",
    [
        "No memory needed",
        "without any memory",
        "It does not need to remember anything",
        "memory is not required",
        "Kein Gedächtnis nötig",
        "sin memoria",
        "sans mémoire",
        "sem memória",
    ],
)
def test_denied_memory_is_no_memory(text: str) -> None:
    reading = read(f"A chain that translates. {text}.")
    assert (reading.memory, reading.no_memory) == (None, True)


def test_vectors_in_memory_are_no_memory() -> None:
    assert read("Keep the vectors in memory").memory is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Build a chatbot with memory", "en"),
        ("do something nice", "en"),
        ("Ein Bot für unsere Kunden", "de"),
        ("Quiero un bot para mi tienda", "es"),
        ("Je veux un robot pour mon magasin", "fr"),
        ("Quero um bot para a minha loja", "pt"),
        ("チャットボットを作って", "ja"),
        ("Quita la calculadora", "es"),
        ("Supprime la mémoire", "fr"),
        ("Remova a calculadora", "pt"),
        ("Switch the model to Mistral Le Chat", "en"),
    ],
)
def test_language_is_detected(text: str, code: str) -> None:
    assert detect_language(text) == code


def test_language_without_phrases_gets_english() -> None:
    assert say("judged", "ja") == say("judged", "en")


@pytest.mark.parametrize("language", ["it", "nl", "pl"])
def test_a_language_with_some_phrases_has_all_that_go_into_a_flow_or_refuse(language: str) -> None:
    table = tomllib.loads(files("flowise_dev_agent.reasoning").joinpath("phrases.toml").read_text("utf-8"))
    refuses = {key for key in table["en"] if key.startswith("gap")} | {"declined_parts", "declined_impossible"}
    assert refuses | {"approval", "declined_steps", "from_documents", "question_vague"} <= set(table[language])
    for key, phrase in table[language].items():
        slots = [{name for _, name, _, _ in Formatter().parse(one)} for one in (phrase, table["en"][key])]
        assert slots[0] == slots[1], key


@pytest.mark.parametrize("language", ["de", "es", "fr", "pt"])
def test_every_phrase_is_said_in_every_language_about_the_same_things(language: str) -> None:
    table = tomllib.loads(files("flowise_dev_agent.reasoning").joinpath("phrases.toml").read_text("utf-8"))

    def slots(phrase: str) -> set[str | None]:
        return {name for _, name, _, _ in Formatter().parse(phrase)} - {None}

    # A title needs no translation.
    wanted = {key: slots(phrase) for key, phrase in table["en"].items() if key != "purpose_other"}
    assert {key: slots(phrase) for key, phrase in table[language].items()} == wanted
