"""What people call the parts and settings of a flow, in the languages that the rules read."""

import pytest

from flowise_dev_agent.reasoning.rules.design.naming import without_scope
from flowise_dev_agent.reasoning.rules.design.reading import read
from flowise_dev_agent.reasoning.rules.language.text import concepts


@pytest.mark.parametrize(
    ("said", "concept"),
    [
        ("Fetch 8 rows per question", "top_k"),
        ("het geheugen dat alles samenvat", "summary_memory"),
        ("La memoria deve essere quella con il riassunto", "summary_memory"),
        ("Es soll so deterministisch wie möglich sein", "deterministic"),
        ("qu'on ne perde rien au redémarrage", "persistent"),
        ("Que no se pierda lo indexado al reiniciar", "persistent"),
        ("Pokaż pytania startowe", "starters"),
        ("No crawling, please", "crawl"),
        ("Com o polegar para cima", "feedback"),
    ],
)
def test_a_part_or_a_setting_has_a_name_in_each_language(said: str, concept: str) -> None:
    assert {name for one in concepts(said) for name in one.names} == {concept}


@pytest.mark.parametrize(
    "said", ["Tell them which documents to bring", 'Say "Memory is fine."', "Der Ofen hat eine hohe Temperatur"]
)
def test_everyday_words_and_quotations_are_none_of_a_flow(said: str) -> None:
    assert concepts(said) == []


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("Bitte höchstens 5 Durchläufe pro Antwort", {"max_iterations": 5}),
        ("Limit it to 4 rounds", {"max_iterations": 4}),
        ("aller chercher davantage de passages, 8 par question", {"top_k": 8}),
        ("Haal per vraag 6 passages op", {"top_k": 6}),
    ],
)
def test_a_number_beside_a_concept_is_its_value(said: str, numbers: dict[str, float]) -> None:
    assert read(said).numbers == numbers


@pytest.mark.parametrize(
    "stays", ["Writer and Polish stay on whatever they are.", "Le Writer ne bouge pas.", "Polish bleibt."]
)
def test_of_steps_that_stay_nothing_is_left_to_read(stays: str) -> None:
    assert without_scope(f"Use Claude. {stays}", frozenset({"writer", "polish"})).strip() == "Use Claude."
