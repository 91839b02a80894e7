"""The small parts: parsing, prices, cards, skills, text, settings to reasoner, reading of numbers and names."""
# pyright: reportCallIssue=false, reportArgumentType=false, reportTypedDictNotRequiredAccess=false

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models import ReasoningEngine
from flowise_dev_agent.models.messages import EngineResponse
from flowise_dev_agent.models.parsing import parse_object
from flowise_dev_agent.models.prices import cost
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.agentflow import NOTE_NAMES
from flowise_dev_agent.planning.cards import fields_line, schema_card
from flowise_dev_agent.planning.catalogue import STAPLES, catalogue_line, catalogue_text
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.planning.llm import LlmReasoner
from flowise_dev_agent.planning.phased import PhasedReasoner, make_reasoner
from flowise_dev_agent.planning.skills import PACKAGED, Skills
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.settings import ReasoningSettings


class NoEngine(ReasoningEngine):
    """Is never asked."""

    async def complete(self, *args: Any, **more: Any) -> EngineResponse:
        raise AssertionError

    def model_id(self) -> str:
        return "none"

    async def aclose(self) -> None:
        return None


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
    assert "modelName*: asyncOptions (choices of the server)\n" in model
    assert "credential: openAIApi" in model
    assert "/" not in model.split("\n")[0]


def test_every_node_type_has_a_short_card_and_line(catalogue: NodeStore) -> None:
    for schema in catalogue.schemas.values():
        assert len(schema_card(schema)) <= 6_000
        assert len(catalogue_line(schema)) < 300


def test_p93_the_catalogue_lists_every_type_that_a_new_flow_can_use(catalogue: NodeStore) -> None:
    text = catalogue_text(catalogue)
    listed = {line.split(":")[0].removeprefix("- ") for line in text.splitlines() if line.startswith("- ")}
    others = ("Sequential", "Multi Agents")
    usable = {name for name, one in catalogue.schemas.items() if not any(part in one.category for part in others)}
    deprecated = {name for name in usable if catalogue.schemas[name].deprecated}
    assert listed == usable - deprecated - NOTE_NAMES
    assert {"startAgentflow", "humanInputAgentflow", "loopAgentflow"} <= listed
    last = text.splitlines()[-1].partition(": ")
    assert last[0].startswith("DEPRECATED")
    assert {*last[2].split(", ")} == deprecated
    assert len(text) < 40_000


def test_a_catalogue_of_one_kind_has_no_types_of_the_other_and_its_short_form_the_same_names(
    catalogue: NodeStore,
) -> None:
    chatflow, agentflow = catalogue_text(catalogue, "CHATFLOW"), catalogue_text(catalogue, "AGENTFLOW")
    assert "- llmAgentflow:" not in chatflow
    assert "- conversationChain:" in chatflow
    assert all(f"- {name}:" in agentflow for name in ("llmAgentflow", "chatOpenAI", "calculator"))
    assert "- conversationChain:" not in agentflow
    names = catalogue_text(catalogue, "CHATFLOW", names_only=True)
    listed = {name for line in names.splitlines() for name in line.partition(": ")[2].split(", ")}
    assert listed == {line.split(":")[0].removeprefix("- ") for line in chatflow.splitlines() if line.startswith("- ")}


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
    assert "addOptions: array of {option}" in schema_card(catalogue.schemas["startAgentflow"])


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
    assert after["chatOpenAI"].startswith("  <- cache; modelName*, temperature = 0.9")
    assert "llmModel* + llmModelConfig, llmMessages [{role system|assistant|" in after["llmAgentflow"]
    assert "agentTools [{agentSelectedTool + agentSelectedToolConfig, " in after["agentAgentflow"]
    assert "startState [{key, value}]" in after["startAgentflow"]
    assert not after["azureChatOpenAI"].startswith("  ")
    assert {name for name in STAPLES if not after[name].startswith("  ")} == set()


def test_the_catalogue_shows_the_choices_of_a_row_by_the_type_that_has_them(catalogue: NodeStore) -> None:
    condition = fields_line(catalogue.schemas["conditionAgentflow"])
    assert "{type string|number|boolean, value1, operation contains|" in condition
    assert "smaller|smallerEqual|equal|notEqual|larger|largerEqual|isEmpty|notEmpty with type number" in condition
    assert "formInputTypes [{type string|number|boolean|options, " in fields_line(catalogue.schemas["startAgentflow"])
    assert "llmStructuredOutput [{key, type string|stringArray|number|" in fields_line(
        catalogue.schemas["llmAgentflow"]
    )


def test_the_fields_line_marks_what_is_required_at_once_and_names_the_switch_of_the_rest(catalogue: NodeStore) -> None:
    model = fields_line(catalogue.schemas["chatOpenAI"])
    assert "modelName*" in model
    assert "reasoningEffort" not in model
    assert fields_line(catalogue.schemas["customTool"]) == "customTool: selectedTool*, returnDirect"
    start = fields_line(catalogue.schemas["startAgentflow"])
    assert "scheduleOnTime," in start
    assert re.search(r"webhookBodyParams \[\{[^}]*\}\] with webhookEnableValidation", start)


def test_no_card_and_no_line_shows_the_default_name_of_a_model(catalogue: NodeStore) -> None:
    for name in ("chatGoogleGenerativeAI", "chatMistralAI", "openAIEmbeddings"):
        schema = catalogue.schemas[name]
        default = next(str(one["default"]) for one in schema.input_definitions if one.get("loadMethod") == "listModels")
        assert default not in schema_card(schema) + fields_line(schema)


def test_the_fields_line_names_what_is_required_wherever_the_editor_shows_it(catalogue: NodeStore) -> None:
    assert "jsonStructure*" in fields_line(catalogue.schemas["structuredOutputParser"])
    assert "includesTables" in fields_line(catalogue.schemas["sqlDatabaseChain"])


def test_a_skill_is_read_by_section_and_has_a_version() -> None:
    assert "conversationalRetrievalQAChain" in PACKAGED.section("Flows")
    assert PACKAGED.version() == "14"
    with pytest.raises(KeyError, match="Judge"):
        PACKAGED.section("Nothing")


def test_a_skill_folder_replaces_sections_and_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "flowise_builder.md"
    file.write_text("---\nversion: ours\n---\n## Judge\nBe kind.\n")
    skills = Skills(tmp_path)
    assert skills.section("Judge") == "Be kind."
    assert skills.section("Flows") == PACKAGED.section("Flows")
    assert skills.version() == "14+ours"
    file.write_text("---\nversion: ours-2\n---\n## Judge\nBe strict and fair.\n")
    assert skills.section("Judge") == "Be strict and fair."
    file.unlink()
    assert skills.section("Judge") == PACKAGED.section("Judge")


def test_a_section_of_the_agentflow_chapter_is_replaced_alone(tmp_path: Path) -> None:
    (tmp_path / "agentflows.md").write_text("---\nversion: ours\n---\n## People\nAsk nobody.\n")
    ours, packaged = Skills(tmp_path).sections("agentflows"), PACKAGED.sections("agentflows")
    assert ours == {**packaged, "People": "Ask nobody."}
    settings = ReasoningSettings(REASONING_ENGINE="deterministic", SKILLS_DIR=tmp_path)
    assert LlmReasoner(NoEngine(), settings).skills_version == "flowise_builder 14, agentflows 9+ours, sequential 1"


def test_without_a_model_no_skills_are_read() -> None:
    assert DeterministicReasoner().skills_version is None


def test_settings_choose_the_reasoner() -> None:
    without = ReasoningSettings(REASONING_ENGINE="deterministic")
    assert isinstance(make_reasoner(without), DeterministicReasoner)
    for engine, key in (("claude", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")):
        settings = ReasoningSettings(REASONING_ENGINE=engine, **{key: "sk-test"})
        assert isinstance(make_reasoner(settings), PhasedReasoner)
