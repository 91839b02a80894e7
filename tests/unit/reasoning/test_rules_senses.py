"""The classifier that says what a clause of a wish is about."""

import hashlib
from importlib.resources import files
from pathlib import Path

import pytest

from flowise_dev_agent.reasoning.rules import language
from flowise_dev_agent.reasoning.rules.design.clauses import clauses
from flowise_dev_agent.reasoning.rules.language.lexicon import constants
from flowise_dev_agent.reasoning.rules.language.senses import CONCEPTS, DIGEST, SENSES, sense
from tests.unit.reasoning.test_rules_properties import planned as planned_new
from tests.unit.reasoning.test_rules_rewording import BOATS, PROMPT, planned, prompt_after, told


@pytest.mark.parametrize(
    ("clause", "found"),
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
        ("thanks a lot, you are great", "idle"),
        ("in caso di conflitto prevale il sito", "told"),
        ("de prijslijst wint het altijd van de site", "told"),
        ("If leaflet and web page conflict, believe the leaflet", "told"),
        ("Lass die Finger von der Wissensbasis", "keep"),
        ("that phone number was wrong all along", "idle"),
        ("Von Technik verstehe ich wenig.", "idle"),
        ("je n'y connais rien en informatique", "idle"),
    ],
)
def test_a_clause_that_nobody_labelled_is_told_apart(clause: str, found: str) -> None:
    mine = sense(clause, change=True)._asdict()
    assert max(("told", "part", "keep", "idle"), key=lambda name: mine[name]) == found


@pytest.mark.parametrize(
    ("clause", "concept"),
    [
        ("that looks up currency rates on google", "web_search"),
        ("er soll die Rabatte genau ausrechnen", "calculator"),
        ("il doit savoir quel jour on est", "date_time"),
        ("y que diga de qué documento lo ha sacado", "show_sources"),
        ("prima che parta voglio dare un'occhiata e approvarla", "approval"),
        ("als het cijfer onder de 6 is, terug naar de schrijver", "loop"),
        ("o bot tem que telefonar sozinho para os clientes", "impossible"),
    ],
)
def test_a_part_is_recognised_in_words_that_no_rule_knows(clause: str, concept: str) -> None:
    shares = sense(clause, change=False).concepts
    assert max(shares, key=lambda name: shares[name]) == concept


def test_what_stands_around_a_clause_says_what_it_is() -> None:
    step = sense("then a reply", change=False, around=("An agent flow: fetch the page,", "once a person approves it"))
    fact = sense("then a reply", change=False, around=("We send you a form,", "within two days."))
    assert fact.told > 5 * step.told


def test_the_clauses_of_a_wish_are_read_between_those_around_them() -> None:
    found = [*clauses("Hello. It opens at 9, and it closes at 5. Use Claude.", change=True)]
    around = {one.said: one.sense for one in found}
    assert around["Use Claude."] == sense("Use Claude.", change=True, around=("it closes at 5.", ""))
    opens = sense("It opens at 9", change=True, around=("Hello.", "it closes at 5."))
    assert around["It opens at 9"] == opens


def test_the_weights_were_learned_from_the_labelled_clauses() -> None:
    labelled = Path(__file__).parents[3] / "scripts/train/senses.tsv"
    learned_from = files(language).joinpath("senses.bin").read_bytes()[:DIGEST]
    assert learned_from == hashlib.sha256(labelled.read_bytes()).digest(), "run scripts/train/senses.py"


def test_every_part_that_may_be_asked_for_has_what_does_it_or_is_in_every_flow() -> None:
    always = {"copy", "credential", "kind", "model", "other_setting", "prompt_delete", "prompt_replace", "rename",
              "step", "vague"}  # fmt: skip
    assert {*constants("does")} | always == {*CONCEPTS}
    assert not {*SENSES} & {*CONCEPTS}


def test_a_clause_is_read_in_time_that_grows_with_its_beginning_only() -> None:
    assert sense("very " * 100_000, change=False) == sense("very " * 100, change=False)


def test_that_nothing_is_kept_is_heard_in_words_that_no_rule_knows() -> None:
    _, plan = planned_new(
        "A bot for the nurses of our ward. It is used by many one after another, so nothing from the last patient "
        "should hang around. Visiting hours are 14:00 to 18:00."
    )
    assert {node.node_name for node in plan.nodes} == {"llmChain", "promptTemplate", "chatOpenAI"}
    assert "Visiting hours" in str(plan.values[0].value)


@pytest.mark.parametrize(
    "wish",
    [
        "Let it check the tides online first.",
        "It should give the link to where it has that from.",
    ],
)
def test_a_change_in_words_that_no_rule_knows_is_listed_and_claimed_by_nobody(wish: str) -> None:
    plan = planned(BOATS, f"Never mention vouchers. {wish}")
    assert prompt_after(BOATS, plan).startswith(told(BOATS, "Never mention vouchers."))
    assert [part.quote for part in plan.parts if part.state != "covered"] == [wish]


def test_what_stays_is_neither_done_nor_put_into_the_prompt() -> None:
    plan = planned(BOATS, "Never mention vouchers. The tone is fine, please do not touch its instructions.")
    assert "touch its instructions" not in prompt_after(BOATS, plan)


def test_a_part_that_is_to_be_kept_short_is_not_taken_for_one_that_stays() -> None:
    plan = planned(BOATS, "Never mention vouchers. Keep the tool answers short.")
    assert prompt_after(BOATS, plan) == told(BOATS, "Never mention vouchers.", "Keep the tool answers short.")


@pytest.mark.parametrize(
    ("text", "remark", "told_too"),
    [
        ("A chatbot for the lift maintenance lot. I am really no good with computers. Help takes 20 minutes.",
         "no good with", "Help takes 20 minutes"),
        ("Chatbot für unsere Bäckerei, ich kenne mich nicht aus. Brot kostet 4 Euro.", "kenne", "Brot kostet 4 Euro"),
        ("Un chatbot pour notre fleuriste, je n'ai aucune idée de ces choses. Il tutoie.", "aucune", "tutoie"),
        ("Een chatbot voor onze manege, van computers snap ik niks. Een les kost 12 euro.", "snap", "12 euro"),
    ],
)  # fmt: skip
def test_that_somebody_is_no_expert_is_no_word_for_the_model(text: str, remark: str, told_too: str) -> None:
    _, plan = planned_new(text)
    prompt = next(str(one.value) for one in plan.values if one.param == PROMPT)
    assert remark not in prompt
    assert told_too in prompt
    assert any(remark in part.quote and part.state == "assumed" for part in plan.parts)


def test_what_people_send_is_not_told_to_a_flow_that_takes_no_files() -> None:
    plan = planned(BOATS, "Never mention vouchers. People should be able to send it photos of their boat.")
    assert prompt_after(BOATS, plan) == told(BOATS, "Never mention vouchers.")
    assert any("photos" in part.quote for part in plan.not_done)
