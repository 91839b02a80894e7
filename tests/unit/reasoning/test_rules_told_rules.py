"""What a change says of parts without asking for one: which source counts, what holds in a case, what is left alone."""

import pytest

from tests.unit.reasoning.test_rules_flows_there import DOCUMENTS
from tests.unit.reasoning.test_rules_properties import planned as planned_new
from tests.unit.reasoning.test_rules_rewording import BOATS, planned, prompt_after, told


@pytest.mark.parametrize(
    "rule",
    [
        "If the PDF and the website disagree, the website wins.",
        "Wenn sich PDF und Webseite widersprechen, gilt die Webseite.",
        "Als de pdf iets anders zegt dan de website, telt de website.",
        "Si le PDF et le site ne sont pas d'accord, c'est le site qui compte.",
        "Se il PDF e il sito non dicono la stessa cosa, vale il sito.",
        "Se o PDF e o site não baterem, vale o PDF.",
        "Jeśli PDF i strona się różnią, liczy się strona.",
        "The leaflet PDF always beats the web page.",
    ],
)
def test_which_source_counts_is_told_and_adds_nothing(rule: str) -> None:
    plan = planned(BOATS, f"Never mention vouchers. {rule}")
    assert (plan.declined, [node.node_name for node in plan.nodes if not node.existing], plan.removals) == (
        None,
        [],
        [],
    )
    assert prompt_after(BOATS, plan) == told(BOATS, "Never mention vouchers.", rule)
    assert plan.not_done == []


@pytest.mark.parametrize("wish", ["Add our price list as a PDF.", "Füge die Preisliste als PDF hinzu."])
def test_a_source_that_is_asked_for_is_still_built(wish: str) -> None:
    assert "pdfFile" in {node.node_name for node in planned(BOATS, f"Never mention vouchers. {wish}").nodes}


@pytest.mark.parametrize(
    "wish",
    [
        "The opening times are all wrong. Offer a tour on Saturdays.",
        "Mit Technik hab ich's nicht so. Offer a tour on Saturdays.",
    ],
)
def test_a_complaint_beside_a_wish_is_no_rule(wish: str) -> None:
    plan = planned(BOATS, wish)
    assert prompt_after(BOATS, plan) == told(BOATS, "Offer a tour on Saturdays.")


@pytest.mark.parametrize(
    "wish", ["En van de bronnen moet je afblijven.", "Und Finger weg von den Quellen.", "Et pas touche aux sources."]
)
def test_sources_that_are_to_be_left_alone_are_not_shown(wish: str) -> None:
    plan = planned(BOATS, f"Never mention vouchers. {wish}", graph=DOCUMENTS)
    assert [(value.param, value.mode) for value in plan.values] == [("responsePrompt", "append")]
    assert wish not in str(plan.values[0].value)


@pytest.mark.parametrize(
    "choice",
    [
        "use any model except GPT",
        "jedes Modell außer OpenAI",
        "cualquier modelo menos el de OpenAI",
        "elk model behalve OpenAI",
        "qualsiasi modello tranne OpenAI",
        "dowolny model oprócz OpenAI",
    ],
)
def test_a_model_that_is_ruled_out_is_not_the_one_that_is_taken(choice: str) -> None:
    _, plan = planned_new(f"A chatbot for our florist's in Ulm, {choice}")
    names = {node.node_name for node in plan.nodes}
    assert "chatAnthropic" in names
    assert not any("OpenAI" in name for name in names)
    assert choice not in str([value.value for value in plan.values])


def test_a_moderation_that_is_ruled_out_is_told_and_not_built() -> None:
    _, plan = planned_new("A chatbot for our florist's in Ulm with moderation, but not the OpenAI one")
    assert "inputModerationOpenAI" not in {node.node_name for node in plan.nodes}
    assert any("moderation" in part.quote for part in plan.not_done)


def test_a_list_that_does_not_begin_at_one_is_written_without_its_numbers() -> None:
    plan = planned(BOATS, "4. never mention vouchers\n5. less chirpy")
    assert prompt_after(BOATS, plan) == told(BOATS, "Never mention vouchers", "Less chirpy")


def test_a_condition_is_not_told_without_what_it_is_for() -> None:
    plan = planned(BOATS, "Nenne nie Gutscheine. Wenn jemand nach dem Wetter fragt, such im Internet.")
    written = next(str(value.value) for value in plan.values if value.param == "systemMessage")
    assert written.endswith("- Nenne nie Gutscheine.\n- Wenn jemand nach dem Wetter fragt, such im Internet.")
    assert "toolAgent" in {node.node_name for node in plan.nodes}


def test_what_an_agent_has_to_do_is_told_in_portuguese() -> None:
    wish = "O agente tem que converter os preços para dólares"
    assert prompt_after(BOATS, planned(BOATS, wish)) == told(BOATS, wish)
