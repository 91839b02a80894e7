"""Words that are no rule for the bot: complaints, commands to edit, talk to who builds; and every half of a wish."""

import pytest

from flowise_dev_agent.reasoning.phrases import say
from tests.unit.reasoning.test_rules_rewording import (
    BIKES,
    BOATS,
    BREAD,
    CLAY,
    DIVING,
    HORSES,
    SWIMMING,
    planned,
    prompt_after,
    told,
)

PRICES = "You answer for Larkfield Kennels.\nA night costs 28 GBP, a bath 15 GBP.\nThe galley is on 301."


@pytest.mark.parametrize(
    ("prompt", "wish", "written", "remark", "language"),
    [
        (BOATS, "At the moment it always talks about moorings, which annoys people. It should ask for the name first.",
         "Ask for the name first.", "At the moment it always talks about moorings, which annoys people.", "en"),
        (BOATS, "Thanks, you did great last week! Offer a tour on Saturdays.", "Offer a tour on Saturdays.",
         "Thanks, you did great last week!", "en"),
        (HORSES, "Im Moment redet er ständig vom Wetter. Er soll zuerst nach dem Namen fragen.",
         "Er soll zuerst nach dem Namen fragen.", "Im Moment redet er ständig vom Wetter.", "de"),
        (BREAD, "Il ne répond qu'en français alors que la moitié est anglophone. Réponds dans la langue du client.",
         "Réponds dans la langue du client.", "Il ne répond qu'en français alors que la moitié est anglophone.", "fr"),
        (CLAY, "Adesso risponde sempre troppo lungo. Massimo 2 frasi e niente emoji.",
         "Massimo 2 frasi e niente emoji.", "Adesso risponde sempre troppo lungo.", "it"),
        (SWIMMING, "Hij begint steeds over de sauna. Antwoord alleen op de vraag.", "Antwoord alleen op de vraag.",
         "Hij begint steeds over de sauna.", "nl"),
        (BIKES, "Bot ciągle pyta o kolor. Odpowiadaj krótko.", "Odpowiadaj krótko.", "Bot ciągle pyta o kolor.", "pl"),
    ],
)  # fmt: skip
def test_how_it_is_now_is_shown_and_no_rule(prompt: str, wish: str, written: str, remark: str, language: str) -> None:
    plan = planned(prompt, wish)
    after = prompt_after(prompt, plan)
    assert after == told(prompt, written, language=language)
    assert remark in {part.quote for part in plan.parts if part.state == "assumed"}


def test_a_complaint_that_is_heard_as_something_told_is_a_line() -> None:
    plan = planned(DIVING, "El asistente siempre habla de cursos. Contesta primero a la pregunta.")
    lines = ["El asistente siempre habla de cursos.", "Contesta primero a la pregunta."]
    assert prompt_after(DIVING, plan) == told(DIVING, *lines, language="es")


@pytest.mark.parametrize("wish", ["It keeps talking about moorings even to members.", "Bot ciągle pyta o kolor."])
def test_a_mere_complaint_is_asked_about(wish: str) -> None:
    question = planned(BOATS, wish).declined or ""
    assert question in {say("question_different", code) for code in ("en", "pl")}
    after = prompt_after(BOATS, planned(BOATS, wish, (question, "Ask for the boat first.")))
    assert after == told(BOATS, "Ask for the boat first.")


@pytest.mark.parametrize(
    ("order", "wish", "written"),
    [
        ("Swap sentence 2.", "Add that dogs need a pass.", "Dogs need a pass."),
        ("Change the hours to 9:00 to 17:00.", "Be kind.", "Be kind."),
        ("Take out the bit about the galley, it's closed for good.", "Be brief.", "Be brief."),
    ],
)
def test_a_command_with_nothing_to_edit_is_told(order: str, wish: str, written: str) -> None:
    plan = planned(PRICES, f"{order} {wish}")
    assert prompt_after(PRICES, plan) == told(PRICES, written)
    assert [part.quote for part in plan.not_done] == [order]
    alone = planned(PRICES, order)
    assert order in (alone.declined or "")
    assert alone.values == []


def test_a_command_in_the_sentence_of_another_wish_is_told_and_the_other_is_a_line() -> None:
    plan = planned(PRICES, "Swap sentence 2 and add that dogs need a pass.")
    assert [part.quote for part in plan.not_done] == ["Swap sentence 2 and"]
    assert prompt_after(PRICES, plan) == told(PRICES, "Dogs need a pass.")


@pytest.mark.parametrize(
    ("prompt", "wish", "old", "new"),
    [
        (PRICES, "The bath is now 18 GBP, not 15.", "15 GBP", "18 GBP"),
        (PRICES, 'take out "The galley is on 301."', "\nThe galley is on 301.", ""),
        (BOATS, "Change the hours from 9:00 to 18:00 to 9:00 to 17:00", "18:00", "17:00"),
        (HORSES, "Eine Reitstunde kostet jetzt 32 Euro statt 28", "28 Euro", "32 Euro"),
        (DIVING, "El bautismo ahora cuesta 65 euros, no 60.", "60 euros", "65 euros"),
        (SWIMMING, "Een les kost nu 14 euro i.p.v. 12", "12 euro", "14 euro"),
    ],
)
def test_a_new_fact_changes_the_old_one_that_is_named(prompt: str, wish: str, old: str, new: str) -> None:
    plan = planned(prompt, wish)
    assert prompt_after(prompt, plan) == prompt.replace(old, new)
    assert plan.not_done == []


def test_a_new_fact_without_the_old_one_is_added() -> None:
    plan = planned(PRICES, "Galley phone is now ext. 311")
    assert (prompt_after(PRICES, plan), plan.not_done) == (told(PRICES, "Galley phone is now ext. 311"), [])


def test_a_sentence_is_not_cut_at_what_is_shortened() -> None:
    wish = "The new teacher is p. Ewa Kos, ext. 311, see p. es. the board, open until 6 p.m. every day."
    plan = planned(BOATS, wish)
    assert prompt_after(BOATS, plan) == told(BOATS, wish)
    assert [part.quote for part in plan.parts] == [wish]


def test_what_a_number_was_before_is_no_rule() -> None:
    plan = planned(BOATS, "Guests complain.\n- temperature 0.3, not 1\n- answer in Irish")
    assert {value.param: value.value for value in plan.values}["temperature"] == 0.3
    assert prompt_after(BOATS, plan) == told(BOATS, "Answer in Irish")
    assert [part.quote for part in plan.parts if part.state == "assumed"] == ["Guests complain."]


def test_what_stays_beside_the_rest_is_no_wish() -> None:
    lines = ["El asistente solo habla de precios en la web.", "Contesta primero a la pregunta."]
    plan = planned(DIVING, f"{' '.join(lines)} La fuente y lo demás igual.")
    assert prompt_after(DIVING, plan) == told(DIVING, *lines, language="es")


def test_an_address_that_nothing_came_of_is_told_as_not_done_and_is_in_no_prompt() -> None:
    address = "Our free berths are live: https://api.heron.example/berths (GET)."
    plan = planned(BOATS, f"{address} Be friendly.")
    assert address in [part.quote for part in plan.not_done]
    assert "berths" not in prompt_after(BOATS, plan)


def test_both_halves_of_a_wish_are_done() -> None:
    plan = planned(BOATS, "rename it to Heron Helper and be gentler, like a grandmother")
    assert (plan.new_name, plan.not_done) == ("Heron Helper", [])
    assert prompt_after(BOATS, plan) == told(BOATS, "Be gentler, like a grandmother")


def test_the_kind_of_the_flow_at_hand_is_no_part_to_build() -> None:
    plan = planned(BOATS, "Rename the agentflow to Heron Helper and set the token limit to 250")
    assert (plan.declined, plan.new_name) == (None, "Heron Helper")
    assert {value.param: value.value for value in plan.values} == {"maxTokens": 250}


def test_a_provider_is_known_in_the_cases_of_polish() -> None:
    plan = planned(BOATS, "Proszę przestawić asystenta na Ollamę, model llama3.1:8b.")
    assert {"chatOllama"} == {value.node_id.partition("_")[0] for value in plan.values if value.value == "llama3.1:8b"}
