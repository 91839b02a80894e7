"""The prompt is the person's words: without a greeting and what asks for a flow, cut at the ends of sentences only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, technical
from flowise_dev_agent.reasoning.rules.design.prompt import prompt_of
from flowise_dev_agent.reasoning.rules.design.reading import read
from flowise_dev_agent.reasoning.rules.language.text import normalised

STORE = NodeStore.from_snapshot()


def prompt(text: str) -> str:
    reading = read(normalised(text), STORE)
    return prompt_of(reading.text, reading.spans)


@pytest.mark.parametrize(
    "wish",
    [
        "All rooms have a balcony. There is no lift.",
        "Alle Zimmer haben einen Balkon. Abend für Abend singt jemand.",
        "Every rate, with breakfast, is in euros, without memory of earlier guests",
    ],
)
def test_a_sentence_keeps_its_first_word_and_what_hangs_on_it(wish: str) -> None:
    assert prompt(wish) == wish


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ("Hallo zusammen, ich brauch nen Chatbot für unsere Schreinerei.", "Ein Chatbot für unsere Schreinerei."),
        ("Oi pessoal! Queria um robozinho pra nossa padaria.", "Um robozinho pra nossa padaria."),
        ("Ciao! Mi serve un chatbot per il campeggio.", "Un chatbot per il campeggio."),
        ("Hoi, ik wil graag een chatbot voor onze kapsalon.", "Een chatbot voor onze kapsalon."),
        ("Cześć, potrzebuję chatbota dla naszej kliniki.", "Chatbot dla naszej kliniki."),
        ("Bonjour, il me faudrait un assistant pour la librairie.", "Un assistant pour la librairie."),
        ("Buenas, quiero un chatbot para mi taller.", "Un chatbot para mi taller."),
        ("花屋のチャットボットを作ってください。電話は（03-5555-0199）です。",
         "花屋のチャットボット。 電話は（03-5555-0199）です。"),
        ("Hi, we're a kennel (two of us) and want a bot for bookings.",
         "A bot for bookings. We're a kennel (two of us)."),
        ("Guten Tag, wir sind eine Gärtnerei und hätten gern einen kleinen Bot, der Fragen beantwortet.",
         "Ein kleiner Bot, der Fragen beantwortet. Wir sind eine Gärtnerei."),
        ("Voor ons museum willen we een assistent die de zalen kent.",
         "Voor ons museum een assistent die de zalen kent."),
        ("J'ai besoin d'un outil pour relire mes textes. Ton neutre.",
         "Un outil pour relire mes textes. Ton neutre."),
        ("Tenho uma loja de vinhos e preciso de um atendente que fale dos rótulos.",
         "Um atendente que fale dos rótulos. Tenho uma loja de vinhos."),
        ("Proszę, zrób mi asystenta, który zna nasz regulamin.", "Asystent, który zna nasz regulamin."),
        ("Could you build me a bot that knows our menu?", "A bot that knows our menu."),
        ("A bot for our pool. You need a towel. We need a photo of your pass.",
         "A bot for our pool. You need a towel. We need a photo of your pass."),
        ("Ein Agent, der rechnen kann, soll sich nur auf Fliesen beschränken.",
         "Ein Agent, der rechnen kann, soll sich nur auf Fliesen beschränken."),
        ("Un agente con calculadora y fecha que ayuda a planificar bodas",
         "Un agente con calculadora y fecha que ayuda a planificar bodas"),
        ("Answer questions from our safety handbook (about 14 PDFs). Be brief.",
         "Answer questions from our safety handbook (about 14 PDFs). Be brief."),
        ("A bot for our vet clinic. No small talk. No memory.", "A bot for our vet clinic. No small talk."),
    ],
)  # fmt: skip
def test_the_greeting_goes_and_the_words_stay(wish: str, told: str) -> None:
    assert prompt(wish) == told


PIECES = [
    "(about 12 PDFs)", "with Claude", "that can calculate", ", der rechnen kann,", "(with GPT-4o, at 0.2)",
    "and is kind", "for the zoo [north side]", "with memory", "y fecha", "「花」（03-5555-0142）",
    "(closed", "on Mondays)",
    '"say (hi"',
    "answers questions about our handbook", ": never prices;", "using a web search", "A bot", ". Then",
    "mit Gedächtnis",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=7))
def test_no_prompt_has_a_bracket_that_the_wish_did_not_leave_open(pieces: list[str]) -> None:
    text = " ".join(pieces)
    for opened, closed in ("()", "[]", "（）", "「」"):
        open_before = text.count(opened) - text.count(closed)
        open_after = prompt(text).count(opened) - prompt(text).count(closed)
        assert open_after == 0 or abs(open_after) <= abs(open_before) or open_before != 0, (text, prompt(text))


#: What says of a model that it will do, and what tells a bot something: a rule, a tone, a fact.
WILL_DO = [
    "gpt-4o-mini is fine, keep it cheap.", "OpenAI reicht, haben wir schon.",
    "OpenAI está bien.", "OpenAI va bene.", "OpenAI is prima.", "OpenAI serve.", "OpenAI wystarczy.",
    "Merci d'avance, pas pressé.",
]  # fmt: skip
TOLD = [
    "It helps with bikes.", "Be polite and brief.", "Never mention the price of OpenAI.", "I never lend out boats.",
    "We close on Mondays.", "My partner is Ana.", "Keep it short.", "Ruf uns an: 0171 555.", "Samstags ist zu.",
    "Sé amable.", "Segunda não atendo.", "Le samedi, nous sommes fermés.", "Siate gentili.", "Wees vriendelijk.",
    "Odpowiada krótko.", "We repair OpenAI robots.", "Mensen praten er soms een uur mee.",
]  # fmt: skip


@given(st.lists(st.sampled_from([*WILL_DO, *TOLD]), min_size=1, max_size=8, unique=True))
def test_a_prompt_has_all_that_tells_something_and_nothing_else(pieces: list[str]) -> None:
    reading = read(normalised(" ".join(["A chatbot for our club about sailing.", *pieces])), STORE, new=True)
    settings = technical([*clauses(reading.text, change=False)], reading.spans, {})
    said = prompt_of(reading.text, [*reading.spans, *settings])
    assert [one for one in TOLD if one in pieces and one not in said] == []
    assert [one for one in WILL_DO if one in pieces and one.rstrip(".") in said] == []


def test_who_asks_is_no_remark() -> None:
    reading = read(normalised("I'm a ward sister on a cardiology unit. Help with rotas."), STORE, new=True)
    assert "ward sister" in prompt_of(reading.text, reading.spans)
