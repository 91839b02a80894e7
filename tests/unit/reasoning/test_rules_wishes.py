"""Wishes about what is told to a model: added whole under one heading; in place only what a wish spells out."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.writing import exchange
from tests.unit.reasoning.test_rules_rewording import (
    BIKES,
    BOATS,
    BOOKS,
    BREAD,
    CLAY,
    DIVING,
    HORSES,
    SWIMMING,
    TEA,
    planned,
    prompt_after,
    told,
)

PROMPTS = {BOATS: "en", HORSES: "de", BREAD: "fr", DIVING: "es", BIKES: "pl", SWIMMING: "nl", TEA: "ja", CLAY: "it",
           BOOKS: "pt"}  # fmt: skip
#: Against what a prompt says, about another thing, a complaint, half a sentence, two languages in one.
AGAINST = [
    (HORSES, "Please answer in English too, wenn jemand Englisch schreibt"),
    (BOATS, "We close at 20:00 now"),
    (BOATS, "Stop apologising"),
    (BOATS, "On Sundays use 10:00 instead of 9:00"),
    (BREAD, "Le pain de mie coûte 3,50 € et il faut tutoyer les clients"),
    (DIVING, "Ya no tutees, trata de usted a todo el mundo"),
    (BIKES, "Odpowiadaj po angielsku"),
    (SWIMMING, "Spreek ouders voortaan aan met je"),
    (TEA, "体験は3500円になりました。"),
    (CLAY, "Mai più emoji, sono ridicole"),
    (BOOKS, "O vale para crianças passou a 25 euros"),
]


@pytest.mark.parametrize(("prompt", "wish"), AGAINST)
def test_a_wish_against_a_prompt_is_added_whole_without_a_question(prompt: str, wish: str) -> None:
    plan = planned(prompt, wish)
    assert (plan.declined, plan.not_done) == (None, [])
    written = prompt_after(prompt, plan)
    assert written.replace("Answer in English too", "Please answer in English too") == told(
        prompt, wish, language=PROMPTS[prompt]
    )


@pytest.mark.parametrize(
    ("prompt", "wish", "lines"),
    [
        (BREAD, "Le pain de mie coûte 3,50 €. Et il faut tutoyer les clients",
         ["Le pain de mie coûte 3,50 €.", "Il faut tutoyer les clients"]),
        (TEA, "体験は3500円になりました。英語でも答えて。", ["体験は3500円になりました。", "英語でも答えて。"]),
    ],
)  # fmt: skip
def test_each_sentence_of_a_wish_is_a_line_of_its_own(prompt: str, wish: str, lines: list[str]) -> None:
    plan = planned(prompt, wish)
    assert prompt_after(prompt, plan) == told(prompt, *lines, language=PROMPTS[prompt])
    assert (plan.declined, plan.not_done) == (None, [])


@pytest.mark.parametrize(
    ("prompt", "wish", "old", "new"),
    [
        (BOATS, "Use 053 555 0199 instead of 053 555 0166.", "053 555 0166", "053 555 0199"),
        (BOATS, "replace Cobh by Kinsale", "Cobh", "Kinsale"),
        (BOATS, "It is Kinsale, not Cobh.", "Cobh", "Kinsale"),
        (BOATS, "la ciudad es Kinsale en vez de Cobh", "Cobh", "Kinsale"),
        (BOATS, 'Replace "never mention   discounts" with "Mention discounts once"',
         "Never mention discounts", "Mention discounts once"),
        (BOATS, "Change the hours from 9:00 to 18:00 to 9:00 to 17:30", "9:00 to 18:00", "9:00 to 17:30"),
        (BOATS, "Delete the sentence «Never mention discounts.»", "Never mention discounts.\n", ""),
        ("Begrüße alle mit „Moin“.", "Statt „Moin“ soll er „Servus“ sagen.", "Moin", "Servus"),
        (HORSES, "Ändere den Preis von 28 Euro auf 32 Euro", "28 Euro", "32 Euro"),
        (HORSES, "Lösche den Satz „Ruf uns an: 08151 22 33.“", " Ruf uns an: 08151 22 33.", ""),
        (BREAD, "Change le prix du pain de 3,20 € à 3,50 €", "3,20 €", "3,50 €"),
        (BREAD, "remplace « Vouvoie » par « Tutoie »", "Vouvoie", "Tutoie"),
        (DIVING, "cambia el precio de 60 euros a 65 euros, gracias", "60 euros", "65 euros"),
        (CLAY, "cambia il prezzo da 90 a 95 euro", "90 euro", "95 euro"),
        (BOOKS, "Troque 213 555 010 por 213 555 999", "213 555 010", "213 555 999"),
        (SWIMMING, "Verander de prijs van 12 euro naar 14 euro", "12 euro", "14 euro"),
        (BIKES, "zmień cenę ze 120 zł na 140 zł", "120 zł", "140 zł"),
    ],
)  # fmt: skip
def test_what_a_wish_spells_out_changes_in_place(prompt: str, wish: str, old: str, new: str) -> None:
    plan = planned(prompt, wish)
    assert prompt_after(prompt, plan) == prompt.replace(old, new)
    assert old.strip() in plan.steps[0]
    assert plan.not_done == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Tea is £3. Scones are £3.", "Change £3 to £4"),
        ("We sell 12 teas. A pot is £12.", "Prices go from 12 to 15"),
        ("English breakfast until 11.", "Answer in Dutch instead of English"),
        ("Keep a formal tone.", "Change the tone to friendly"),
        ("Höfliche Anrede.", "Ersetze die Anrede durch Vornamen"),
        ("We open at 9 am.", "Open from 9 am to 5 pm"),
        ("We open at 9 am.", "Change the hours: from 9 am to 5 pm"),
        ("Ask for Sam.", "Say Kim and Jo instead of Sam"),
        ("Ada answers on parking and refunds.", "For refunds name Bo instead of Ada."),
        ("We have shops in Cobh and Kinsale.", "Deliveries go to Cobh, not Kinsale."),
        ("Ask Ada.", "If it is a Sunday, name Bo instead of Ada."),
        ("Never mention prices.", "Remove mentions of prices everywhere"),
        ("Call 0166 now.", "When it rains, use 0177 instead of 0166"),
        ("A cut is £20.", "Since May it is £25, not £20, but £20 for children"),
    ],
)
def test_what_is_not_spelled_out_to_the_letter_is_no_exchange(text: str, line: str) -> None:
    assert exchange(line, text) is None


def test_a_later_wish_comes_under_the_heading_that_is_there() -> None:
    prompt = told(HORSES, "Nie Rabatte nennen", language="de")
    assert prompt_after(prompt, planned(prompt, "Ende mit einem Witz")) == f"{prompt}\n- Ende mit einem Witz"
    # Below text of somebody else's it would not hold against that.
    below = f"{prompt}\n\nAnswer from this:\nNo jokes."
    after = prompt_after(below, planned(below, "Ende mit einem Witz"))
    assert after.startswith(below)
    assert after.count(say("prompt_from_now_on", "de")) + after.count(say("prompt_from_now_on", "en")) == 2


def test_the_lines_of_a_wish_stay_and_an_empty_prompt_gets_no_heading() -> None:
    wish = "Please change these:\n- never mention vouchers\n- end with a joke"
    # What only announces the lines is none of them.
    assert prompt_after(BOATS, planned(BOATS, wish)) == told(BOATS, "Never mention vouchers", "End with a joke")
    assert prompt_after("", planned("", "never mention vouchers")).strip() == "Never mention vouchers"


def test_a_sentence_without_an_instruction_is_a_remark_only_beside_a_part_of_the_flow() -> None:
    wish = "Set the temperature to 0.2. The customers hate vouchers. Never mention them!"
    plan = planned(BOATS, wish)
    assert prompt_after(BOATS, plan) == told(BOATS, "Never mention them!")
    assert [(part.quote, part.state) for part in plan.parts if part.state != "covered"] == [
        ("The customers hate vouchers.", "assumed")
    ]


PIECES = [wish for _, wish in AGAINST] + [
    "Set the temperature to 0.2", "Add a calculator", "use gpt-4o-mini", "leave the rest as it is", "Thanks a lot!",
    "The old answers were far too long", "1. greet people\n2. never use emojis", "Say «we are closed» on 24.12.",
    "Remove discounts and the opening hours", "英語でも答えて。",
]  # fmt: skip


@given(st.sampled_from(sorted(PROMPTS)), st.lists(st.sampled_from(PIECES), min_size=1, max_size=3, unique=True))
def test_p84_no_letter_of_a_prompt_is_lost_and_no_word_of_a_wish(prompt: str, wishes: list[str]) -> None:
    wish = ". ".join(wishes)
    plan = planned(prompt, wish)
    if plan.declined:
        return
    texts = [str(value.value) for value in plan.values]
    # Of a chain that becomes an agent the prompt is in another node.
    assert prompt_after(prompt, plan).startswith(prompt)
    assert not plan.removals or any(text.startswith(prompt) for text in texts)
    shown = " ".join([*texts, *(part.quote for part in plan.parts)]).casefold()
    lost = [word for word in re.findall(r"\w+", wish.casefold()) if word not in shown]
    # The numbers of a list are left out.
    assert {*lost} <= {*"123", "please", "leave", "the", "rest", "as", "it", "is", "thanks", "a", "lot"}, lost


SPELLED = [
    "Use 053 555 0199 instead of 053 555 0166.", "replace Cobh by Kinsale", "remove «Never mention discounts.»",
    "Ändere den Preis von 28 Euro auf 32 Euro", "remplace « Vouvoie » par « Tutoie »",
    "our phone number changed: 0177 2233 44",
]  # fmt: skip


@given(st.sampled_from(sorted(PROMPTS)), st.text(max_size=120) | st.sampled_from(SPELLED))
def test_p84_any_line_at_all_is_added_or_exchanges_what_the_prompt_says(prompt: str, line: str) -> None:
    found = exchange(line, prompt)
    if found:
        gone = [old for old, _ in found.pairs]
        assert all(old in prompt for old in gone)
        assert len(found.after) >= len(prompt) - sum(len(old) * prompt.count(old) for old in gone) - 3


OFFICE = """You answer for the Blue Harbour sailing school.
The beginners' course starts on 12 April and takes 5 days. The summer camp starts on 6 July.
A course costs 40 euros per day, the boat hire costs 55 euros.
On Saturdays we open at 8, on all other days at 10. The office closes at 20:00.
Kelly Moran runs the office; ask for Kelly if something is lost."""
STUDIO = "Der Kurs beginnt am 12. April. Die Miete beträgt 40 Euro.\nAnsprechpartnerin ist Kelly."
ATELIER = "Le cours commence le 12 avril. La séance coûte 40 €.\nKelly accueille les élèves ; demandez Kelly."
TALLER = "El curso empieza el 12 de abril. La clase cuesta 40 euros.\nAbrimos a las 9 y pregunta por Kelly."


@pytest.mark.parametrize(
    ("prompt", "wish", "changes"),
    [
        (OFFICE, "the price is now 45 not 40", {"40 euros": "45 euros"}),
        (OFFICE, "we open at 9 instead of 8 on Saturdays", {"at 8": "at 9"}),
        (STUDIO, "Die Miete ist jetzt 45, nicht 40", {"40 Euro": "45 Euro"}),
        (TALLER, "abrimos a las 10 en vez de a las 9", {"a las 9": "a las 10"}),
    ],
)
def test_a_fact_beside_the_old_one_changes_in_place(prompt: str, wish: str, changes: dict[str, str]) -> None:
    plan, after = planned(prompt, wish), prompt
    for old, new in changes.items():
        after = after.replace(old, new)
    assert (prompt_after(prompt, plan), plan.not_done) == (after, [])


@pytest.mark.parametrize(
    ("prompt", "wish", "language"),
    [
        (OFFICE, "The boat hire goes up to 60 euros, the summer camp stays", "en"),
        (HORSES, "Eine Reitstunde kostet jetzt 32 Euro, der Ausritt bleibt", "de"),
        (OFFICE, "Kelly Moran doesn't work here any more, Sam Byrne took over", "en"),
        (OFFICE, "The office closes at 21:30 and the boat hire is now 60 euros", "en"),
        (OFFICE, "The boat hire is 60 euros now, the office closes at 21:30 and dogs pay 2 pounds", "en"),
        (STUDIO, "Der Kurs beginnt am 3. Mai", "de"),
        (ATELIER, "Kelly est partie, c'est Sam maintenant", "fr"),
        (ATELIER, "La séance coûte 45 €", "fr"),
        (TALLER, "El curso empieza el 3 de mayo y la clase cuesta 42 euros", "es"),
        ("Scones are £3. Tea is £3.", "Scones are £4 now", "en"),
    ],
)
def test_a_fact_that_is_only_said_anew_is_added_and_the_old_one_stays(prompt: str, wish: str, language: str) -> None:
    plan = planned(prompt, wish)
    assert (prompt_after(prompt, plan), plan.not_done) == (told(prompt, wish, language=language), [])


def test_a_sentence_that_is_spelled_out_beside_another_wish_changes_in_place() -> None:
    wish = "Replace Cobh by Kinsale. Never mention dogs."
    after = prompt_after(BOATS, planned(BOATS, wish))
    assert after == told(BOATS.replace("Cobh", "Kinsale"), "Never mention dogs.")


@pytest.mark.parametrize(
    ("wish", "after"),
    [
        ("Replace the whole prompt by: You are a pirate. Say arr.", "You are a pirate. Say arr."),
        ("Ersetze den ganzen Prompt durch: Du bist ein Pirat, immer.", "Du bist ein Pirat, immer."),
        ('Set the system message to "You only speak Latin."', "You only speak Latin."),
    ],
)
def test_another_prompt_replaces_the_whole_one_only_when_a_wish_says_so(wish: str, after: str) -> None:
    plan = planned(BOATS, wish)
    assert (prompt_after(BOATS, plan), plan.not_done) == (after, [])


@pytest.mark.parametrize(
    "wish",
    [
        "Answer in French from now on.",
        "Ab jetzt bitte duzen",
        "Désormais, vouvoie tout le monde",
        "Knippen kost voortaan 28 euro",
    ],
)
def test_from_when_on_a_line_holds_stays_in_it(wish: str) -> None:
    assert prompt_after(BOATS, planned(BOATS, wish)) == told(BOATS, wish)


@pytest.mark.parametrize(
    ("wish", "written", "remarks"),
    [
        ("Add a calculator and always calculate prices with VAT", "Always calculate prices with VAT", []),
        ("rename it to Tax Desk and stop it from saying 'no worries'", "Stop it from saying 'no worries'", []),
        ("it invents laws, we got into trouble!! use a temperature of 0", "", []),
        ("1. greet with Ahoy\n2. temperature 0.2\n3. no emojis", "Greet with Ahoy\n- No emojis", []),
        ("温度を0.2にして、もっと丁寧に答えて", "もっと丁寧に答えて", []),
        ("Make a copy called Tax Two that answers for Vienna, use gpt-4o-mini there", "Answers for Vienna", []),
        (
            "Two things: 1) Ms. Lund left, Mr. Roe is in (same days, same fee) 2) temperature 0.2",
            "Ms. Lund left, Mr. Roe is in (same days, same fee)",
            ["Two things"],
        ),
        (
            'Can I have a copy of it but for Italian? Called "Due". He lives in Lecce.',
            "It but for Italian?\n- He lives in Lecce.",
            [],
        ),
    ],
)
def test_beside_parts_of_the_flow_instructions_are_told(wish: str, written: str, remarks: list[str]) -> None:
    plan = planned(BOATS, wish)
    texts = [str(value.value) for value in plan.values]
    assert any(text.endswith(f"\n- {written}") for text in texts) == bool(written)
    assert [part.quote for part in plan.parts if part.reason == say("part_remark", "en")] == remarks
    assert plan.not_done == []


LONG = """You answer for the Gull Cafe.
- Keep answers under 60 words
- We open at 8:00 and close at 17:00, every day but Tuesday.
- A flat white is £3.50, a cream tea £7.20.
- Phone: 01736 555 100
- Dogs are welcome.

Say so if you do not know."""


@pytest.mark.parametrize(
    ("prompt", "wish", "old", "new"),
    [
        (LONG, "our phone number changed: 01736 555 200", "01736 555 100", "01736 555 200"),
        (LONG, 'delete the sentence "Dogs are welcome."', "- Dogs are welcome.\n", ""),
        (HORSES, "Unsere neue Telefonnummer: 08151 99 88", "08151 22 33", "08151 99 88"),
    ],
    ids=lambda value: "".join(char for char in value if char.isascii() and char.isalnum())[-8:],
)
def test_the_one_number_or_a_quoted_sentence_changes(prompt: str, wish: str, old: str, new: str) -> None:
    plan = planned(prompt, wish)
    assert prompt_after(prompt, plan) == prompt.replace(old, new)
    assert old.strip("- \n") in plan.steps[0]
    assert plan.not_done == []


@pytest.mark.parametrize(
    ("prompt", "order"),
    [
        (LONG, "delete the sentence about dogs"),
        (BOATS, "Remove the line about discounts"),
        (BOATS, "remove the line Start every answer by apologising for the wait"),
        (BOATS, "Remove discounts and the opening hours"),
        (HORSES, "Streiche den Satz über den Ausritt"),
        (BREAD, "Supprime la phrase sur le pain de seigle"),
    ],
)
def test_an_order_to_take_out_what_is_not_quoted_is_told_and_changes_nothing(prompt: str, order: str) -> None:
    plan = planned(prompt, order)
    assert order.partition(" and ")[0] in (plan.declined or "")
    assert (plan.values, plan.removals) == ([], [])
    beside = planned(prompt, f"{order}. Ende mit einem Witz.")
    assert prompt_after(prompt, beside) == told(prompt, "Ende mit einem Witz.", language=PROMPTS.get(prompt, "en"))
    assert [part.state for part in beside.parts if part.quote.startswith(order[:10])] == ["not_understood"]


@pytest.mark.parametrize(
    ("prompt", "wish"),
    [
        (LONG, "On Sundays we open at 9"),
        (LONG, "from Monday we open at 9"),
        (LONG, "a flat white to go is 3.20"),
        (LONG, "we close at 18:00 on Fridays"),
        (LONG, "on weekends call 01736 555 300"),
        (HORSES, "Wir haben jetzt ab 9 Uhr offen"),
        (HORSES, "Der Ausritt kostet ab 3 Personen 35 Euro"),
        ("A coffee for staff is £2.", "A coffee is £3"),
        ("We are open to 17:00.", "we are open at 9"),
        ("Answer with at least 50 words.", "Answer with at most 80 words"),
        ("A ride is 20 euros.", "A ride is never 25 euros"),
        ("A ride is 20 euros.", "If it rains a ride is 25 euros"),
    ],
)
def test_a_fact_that_is_another_one_changes_nothing_in_place(prompt: str, wish: str) -> None:
    assert exchange(wish, prompt) is None
    after = prompt_after(prompt, planned(prompt, wish))
    assert after.startswith(prompt)
    assert wish[1:] in after


@pytest.mark.parametrize(
    ("wish", "written", "remarks"),
    [
        ("People keep asking about parking, that's annoying. Tell them there is a car park behind the church.",
         "Tell them there is a car park behind the church.",
         ["People keep asking about parking, that's annoying."]),
        ("People were cross last week. It can mention discounts now, my boss says.",
         "It can mention discounts now, my boss says.", ["People were cross last week."]),
        ("My boss said it should never promise a free table", "My boss said it should never promise a free table", []),
        ("Die Gäste siezen, das Geduze kommt bei den Älteren nicht gut an!!",
         "Die Gäste siezen, das Geduze kommt bei den Älteren nicht gut an!!", []),
        ("I clienti si lamentano che è freddo. Sii più caloroso, per favore", "Sii più caloroso, per favore",
         ["I clienti si lamentano che è freddo."]),
        ("Customers who complain get a free coffee", "Customers who complain get a free coffee", []),
        ("The terrace is great for dogs, say so", "The terrace is great for dogs, say so", []),
    ],
)  # fmt: skip
def test_how_people_take_it_is_told_as_a_remark_and_written_nowhere(
    wish: str, written: str, remarks: list[str]
) -> None:
    prompt = "You answer for the house."
    plan = planned(prompt, wish)
    assert prompt_after(prompt, plan) == told(prompt, written)
    assert [part.quote for part in plan.parts if part.state == "assumed"] == [one.rstrip(" ") for one in remarks]


@pytest.mark.parametrize("wish", ["Thanks, it works great!", "It is too rude", "Die Antworten sind viel zu lang"])
def test_a_remark_alone_is_asked_about(wish: str) -> None:
    question = planned(BOATS, wish).declined or ""
    assert question.endswith("?")
    answered = planned(BOATS, wish, (question, "Never apologise"))
    assert prompt_after(BOATS, answered) == told(BOATS, "Never apologise")


def test_what_is_so_already_is_said_and_not_written_again() -> None:
    for wish in ("Keep answers under 120 words", "Never mention discounts", "use gpt-4o"):
        assert (planned(BOATS, wish).declined or "").startswith("It is so already")
    plan = planned(BOATS, "use gpt-4o and set the temperature to 0.3")
    assert {value.param: value.value for value in plan.values} == {"temperature": 0.3}
    assert any("gpt-4o" in step for step in plan.steps)
    assert plan.not_done == []
