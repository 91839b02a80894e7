"""The sentences without a model: whole in every language, and what they tell people to write is understood."""

import re
import tomllib
from importlib.resources import files

import pytest

from tests.unit.reasoning.test_rules_rewording import BIKES, BOOKS, BREAD, CLAY, DIVING, HORSES, SWIMMING, planned

PHRASES = tomllib.loads(files("flowise_dev_agent.reasoning").joinpath("phrases.toml").read_text("utf-8"))
LANGUAGES = [one for one in PHRASES if one != "en"]


def wrong(language: str, rule: str) -> list[str]:
    # Prompts written before are known by their heading, which therefore stays as it was.
    said = (text for key, text in PHRASES[language].items() if key != "prompt_from_now_on")
    return [text for text in said if re.search(rule, text)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_fills_in_what_english_does(language: str) -> None:
    def names(text: str) -> list[str]:
        return sorted(set(re.findall(r"\{\w+\}", text)))

    texts = PHRASES[language]
    assert {key for key, text in texts.items() if names(text) != names(PHRASES["en"].get(key, ""))} == set()


def test_the_signs_and_the_form_of_address_are_those_of_the_language() -> None:
    # French: a space that does not break, the typographic apostrophe. A flow is called as on the page.
    assert wrong("fr", r" [;:!?»]|« |\w'\w") == []
    assert wrong("fr", r"\bflux\b") == []
    assert wrong("es", r"\bflujo\b") == []
    # Brazil's words, as most of them are, not those of Portugal.
    assert wrong("pt", r"(?i)ficheiro|\b(dá|olha|indica|cria|tens|teus?|tuas?)\b") == []


@pytest.mark.parametrize(
    ("language", "prompt"),
    [("de", HORSES), ("fr", BREAD), ("es", DIVING), ("pt", BOOKS), ("it", CLAY), ("nl", SWIMMING), ("pl", BIKES)],
)
def test_the_command_that_a_sentence_names_takes_a_sentence_out(language: str, prompt: str) -> None:
    (sentence,) = re.findall(r"(?im)^.*(?:euros?|€|zł)\.$", prompt)
    command = PHRASES[language]["step_still"].rpartition(": ")[2].format(quote=sentence)
    (value,) = planned(prompt, command).values
    assert sentence not in str(value.value)
    assert prompt.splitlines()[0] in str(value.value)
