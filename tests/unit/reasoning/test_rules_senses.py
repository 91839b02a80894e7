"""The classifier that says what a clause of a wish is about."""

from importlib.resources import files

import pytest

from flowise_dev_agent.reasoning.rules import language
from flowise_dev_agent.reasoning.rules.language.senses import senses
from scripts.train.senses import learned, samples
from tests.unit.reasoning.test_rules_properties import planned as planned_new
from tests.unit.reasoning.test_rules_rewording import BOATS, planned, prompt_after


@pytest.mark.parametrize(
    ("clause", "sense"),
    [
        ("Fetch 6 passages for each question", "part"),
        ("it should know today's date, too", "part"),
        ("Es soll wissen, welcher Tag heute ist", "part"),
        ("ajoute une recherche sur internet", "part"),
        ("que siga también los enlaces de la página", "part"),
        ("always offer to call back on Thursday", "told"),
        ("Eine Massage kostet 45 Euro", "told"),
        ("leave the rest as it is", "keep"),
        ("laat de rest maar staan", "keep"),
        ("thanks a lot, you are great", "aside"),
    ],
)
def test_a_clause_that_nobody_labelled_is_told_apart(clause: str, sense: str) -> None:
    found = senses(clause, change=True)._asdict()
    assert max(found, key=lambda name: found[name]) == sense
    assert sum(found.values()) == pytest.approx(1)


def test_the_weights_are_those_that_the_labelled_clauses_lead_to() -> None:
    assert learned(samples()).tobytes() == files(language).joinpath("senses.bin").read_bytes()


def test_a_clause_is_read_in_time_that_grows_with_its_beginning_only() -> None:
    assert senses("very " * 100_000, change=False) == senses("very " * 100, change=False)


def test_a_part_in_words_that_no_rule_knows_is_listed_as_told_to_the_model_alone() -> None:
    _, plan = planned_new(
        "A bot for the nurses of our ward. It is used by many one after another, so nothing from the last patient "
        "should hang around. Visiting hours are 14:00 to 18:00."
    )
    listed = [part.quote for part in plan.parts if part.state == "assumed"]
    assert any("hang around" in quote for quote in listed)
    assert not any("Visiting hours" in quote for quote in listed)


def test_a_change_of_a_part_in_words_that_no_rule_knows_is_not_put_into_the_prompt() -> None:
    plan = planned(BOATS, "Never mention vouchers. Nothing from the last guest may hang around.")
    assert "hang around" not in prompt_after(BOATS, plan)
    assert any("hang around" in part.quote for part in plan.not_done)


def test_what_stays_is_neither_done_nor_put_into_the_prompt() -> None:
    plan = planned(BOATS, "Never mention vouchers. The tone is fine, please do not touch its instructions.")
    assert "touch its instructions" not in prompt_after(BOATS, plan)


def test_a_part_that_is_to_be_kept_short_is_not_taken_for_one_that_stays() -> None:
    plan = planned(BOATS, "Never mention vouchers. Keep the tool answers short.")
    assert any("tool answers short" in part.quote for part in plan.not_done)
