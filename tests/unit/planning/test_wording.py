"""Every sentence, number, address, name, list item, negation and ordinal of a requirement lies in a quote."""

import pytest

from flowise_dev_agent.planning.wording import MAX_PARTS, all_parts, clauses, complete, one_line, split

REQUIREMENT = """Build a support bot with GPT-4o. It must never promise refunds over 50 EUR.
- answers in French
* uses https://api.example.org/orders
Greet with "Bonjour", e.g. at the start. First ask for the order."""


def test_sentences_and_list_items_are_parts() -> None:
    assert split(REQUIREMENT) == [
        "Build a support bot with GPT-4o.",
        "It must never promise refunds over 50 EUR.",
        "answers in French",
        "uses https://api.example.org/orders",
        'Greet with "Bonjour", e.g. at the start.',
        "First ask for the order.",
    ]
    assert split("请创建一个机器人。不要使用记忆。") == ["请创建一个机器人。", "不要使用记忆。"]
    assert split(" \n...\n- \n") == []


def test_a_long_text_has_longer_parts_and_loses_nothing() -> None:
    text = "\n".join(f"- wish number {n}" for n in range(100))
    parts = split(text)
    assert len(parts) <= MAX_PARTS
    assert "".join(parts).count("wish number") == 100


@pytest.mark.parametrize(
    ("quotes", "missing"),
    [
        (["Build a support bot", "never promise refunds"], ["with GPT-4o", "over 50 EUR"]),
        (["a support bot with GPT-4o", "promise refunds over 50 EUR"], ["It must never"]),
        (["support bot with GPT-4o", "must never promise refunds over 50 EUR"], []),
    ],
)
def test_p83_what_no_quote_holds_is_found(quotes: list[str], missing: list[str]) -> None:
    sentence = REQUIREMENT.splitlines()[0]
    assert complete(sentence, quotes)[1] == missing


@pytest.mark.parametrize(
    ("text", "quotes", "missing"),
    [
        ("Ask Maria for approval", ["Ask", "for approval"], ["Maria"]),
        ("Say the words \u201cgood day\u201d", ["Say the words"], ["\u201cgood day\u201d"]),
        ("Read from www.example.org daily", ["Read from", "daily"], ["www.example.org"]),
        ("Do the second one", ["Do the", "one"], ["second"]),
        ("Antworte ohne Quellen", ["Antworte", "Quellen"], ["ohne"]),
        ("Answer questions. Log them.", ["Answer questions"], ["Log them."]),
        ("not this. A bot", ["A bot", "something else"], ["not this."]),
        ("Estimados se\u00f1ores:\n1. A bot\nb) A tool\nAtentamente,", ["A bot", "A tool"], []),
        ("Never:\nA bot", ["A bot"], ["Never:"]),
        ("Over 18:\nA bot", ["A bot"], ["Over 18:"]),
        (
            "\u0431\u0435\u0437 \u043f\u0430\u043c\u044f\u0442\u0438",
            ["\u043f\u0430\u043c\u044f\u0442\u0438"],
            ["\u0431\u0435\u0437"],
        ),
    ],
)
def test_p83_facts_count(text: str, quotes: list[str], missing: list[str]) -> None:
    assert complete(text, quotes)[1] == missing


def test_quotes_are_verbatim_in_the_order_of_the_text_and_may_be_cut_in_the_middle() -> None:
    quotes = ["answers in  French", "made up", "It must \u2026 50 EUR", "Build a support bot with GPT-4o"]
    assert complete(REQUIREMENT, quotes)[0] == [
        "Build a support bot with GPT-4o",
        "It must never promise refunds over 50 EUR",
        "answers in French",
    ]


@pytest.mark.parametrize("quotes", [[], ["support bot"], ["made up"], split(REQUIREMENT)])
def test_p83_all_parts_hold_the_whole_text(quotes: list[str]) -> None:
    parts = all_parts(REQUIREMENT, quotes)
    assert complete(REQUIREMENT, parts)[1] == []
    assert all(part in one_line(REQUIREMENT) for part in parts)


def test_p83_a_part_keeps_the_quotation_mark_at_its_end() -> None:
    text = 'Call it "Bluebird", and answer "no idea" to the rest.'
    quotes = ['Call it "Bluebird"', 'and answer "no idea" to the rest.']
    assert complete(text, quotes) == (quotes, [])
    assert complete("Say “Hello”", ["Say “Hello”"]) == (["Say “Hello”"], [])


def test_p83_a_quote_between_marks_of_the_model_s_own_is_found() -> None:
    assert complete("Call it Bluebird.", ["'Call it Bluebird.'"]) == (["Call it Bluebird."], [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nimm Claude statt GPT, und duze die Leute bitte.", ["Nimm Claude statt GPT", "duze die Leute bitte."]),
        ("Keep the long name; drop the second tool.", ["Keep the long name", "drop the second tool."]),
        ("Use the model, and say hello.", ["Use the model, and say hello."]),
        ("Accept apples, pears, and plums of any kind.", ["Accept apples, pears", "plums of any kind."]),
        ('It must say "I am here to help, and I can wait" to people.', None),
        ("Shorter. No emojis.", ["Shorter.", "No emojis."]),
        ("", []),
    ],
)
def test_a_sentence_with_two_requirements_is_two_clauses(text: str, found: list[str] | None) -> None:
    assert clauses(text) == (found if found is not None else [text])
