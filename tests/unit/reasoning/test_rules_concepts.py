"""What people call the parts and settings of a flow, in the languages that the rules read."""

import pytest

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
