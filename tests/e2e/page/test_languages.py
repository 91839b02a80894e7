"""The page in the person's language."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import SIZES, Screen
from tests.e2e.people import LOCKED, SharedService
from tests.e2e.scripted import SUPPORT, change, model_environment, script, tells
from tests.e2e.service import ServiceProcess
from tests.e2e.test_update_over_http import make_flow

I18N = Path(__file__).parents[3] / "flowise_dev_agent" / "web" / "app" / "src" / "i18n"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_page_speaks_the_browsers_language_until_a_person_chooses_another(
    browser: Browser, page_service: ServiceProcess, flowise_flows: FlowiseClient
) -> None:
    screen = await Screen.open(browser, page_service.url, locale="de-DE")
    page = screen.page
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    await page.get_by_label("Was soll der Chatbot tun?").fill("Build a chatbot with GPT-4o and memory")
    assert await screen.violations() == []
    await screen.press("Starten")
    plan = await screen.question("Der Plan")
    await expect(plan.get_by_role("button", name="Genehmigen")).to_be_visible()
    await expect(plan.get_by_role("list", name="Was gebaut wird")).to_be_visible()
    await plan.get_by_label("Was soll anders sein?").fill("Nenne ihn Anna")
    assert await screen.violations() == []
    await page.get_by_role("link", name="Alle Flows").click()
    await page.get_by_label("Sprache").select_option("Français")
    await expect(page.locator("html")).to_have_attribute("lang", "fr")
    await expect(page.get_by_label("Que doit faire le chatbot ?")).to_be_visible()
    await page.get_by_role("region", name="Vous attend").get_by_role("link").first.click()
    plan = await screen.question("Le plan")
    # The change of the language has lost nothing.
    await expect(plan.get_by_label("Que faut-il changer ?")).to_have_value("Nenne ihn Anna")
    await page.reload()
    await screen.question("Le plan")
    assert screen.heard == []
    await page.context.close()


#: Names of Flowise and of the product, and words of two languages.
NOT_OURS = frozenset(
    re.findall(
        r"\w+",
        "agent agents chat chatbot chatflow flow flows model chain memory buffer window tool tools retriever vector "
        "store document documents loader text splitter embeddings prompt calculator session name type node nodes "
        "version tokens tests test status system message conversation details plan compact layout person json "
        "flowise default page temperature",
    )
)
#: What the page shows of the flow itself, of its answers, and what people wrote.
FOREIGN = (
    ".react-flow, code, pre, .said, .turn.mine, .node-details, .built, select, .version-title, h1, time, .trace, "
    ".now .markdown, .earlier .markdown, blockquote, noscript, a[href*='/s/'], .flow-name, .clip"
)


LOADING = re.compile(r"geladen…|^Lädt…|werden geprüft|^(Chargement|Cargando|Vérification|Comprobando)\b")
#: All views but the API's reference, which is that of the document.
VIEWS = (
    "/",
    "/new",
    "/f/{id}/default",
    "/f/{id}/default/try",
    "/history/{id}",
    "/patterns",
    "/instances",
    "/knowledge",
    "/webhooks",
    "/settings",
    "/nothing-here",
)


def english_words(language: str) -> frozenset[str]:
    """The words of the page's English texts that none of its texts in the language has."""
    words = re.compile(r"[^\W\d_]{4,}")
    catalogue: dict[str, str] = json.loads((I18N / f"{language}.json").read_text())
    own = {word for text in catalogue.values() for word in words.findall(text.lower())}
    plain = (re.sub(r"\{\{\w+\}\}|`[^`]*`|_(one|many|other)$", " ", key) for key in catalogue)
    return frozenset({word for key in plain for word in words.findall(key.lower())} - own - NOT_OURS)


async def english(
    page: Page, beside: str = FOREIGN, language: str = "de", names: frozenset[str] = frozenset()
) -> list[str]:
    """The English that a person reads on the page: lines with a word of ours that are no name, all cards open."""
    await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    await expect(page.locator("p.quiet", has_text=LOADING)).to_have_count(0)
    text: str = await page.evaluate(
        """(foreign) => {
            const shown = document.body.cloneNode(true);
            shown.querySelectorAll(foreign).forEach((one) => one.remove());
            shown.querySelectorAll("script, style, dialog:not([open])").forEach((one) => one.remove());
            shown.querySelectorAll("*").forEach((one) => one.append("\\n"));
            return shown.textContent;
        }""",
        beside,
    )
    ours = english_words(language)
    # Names are quoted.
    lines = [
        (line.strip(), re.sub(r"„[^“]*“|“[^”]*”|«[^»]*»|https?://\S+", " ", line.lower())) for line in text.splitlines()
    ]
    found = [line for line, said in lines if line not in names and ours & set(re.findall(r"[^\W\d_]{4,}", said))]
    return list(dict.fromkeys(found))


@pytest.mark.nightly
@pytest.mark.parametrize("language", ["de", "fr", "es"])
async def test_every_view_speaks_the_language_of_the_person_and_fits_a_phone(
    language: str, browser: Browser, page_service: ServiceProcess, flowise_flows: FlowiseClient
) -> None:
    row = await make_flow(flowise_flows)
    await make_flow(flowise_flows, name="Shop with memory and answers")
    # Other tests may have left flows, which can be picked.
    names = frozenset({flow.name async for flow in flowise_flows.iter_chatflows()})
    screen = await Screen.open(browser, page_service.url, locale=language)
    page = screen.page
    wrong: dict[str, list[str] | int] = {}
    for view in VIEWS:
        await page.goto(f"{page_service.url}/?{language}#{view.format(id=row.id)}")
        await page.reload()
        await expect(page.locator("html")).to_have_attribute("lang", language)
        # Until the program is there, the page holds its first words in all languages.
        await expect(page.locator(".head-start")).to_have_count(0)
        await expect(page.locator("main h1")).to_be_visible()
        # What people have written before is theirs.
        if found := await english(page, f"{FOREIGN}, .version-list, .session-row, .inbox, .pattern", language, names):
            wrong[view] = found
        await page.set_viewport_size(SIZES[1])
        if (pixels := await screen.overflow()) > 0:
            wrong[f"{view} on a phone"] = pixels
        await page.set_viewport_size(SIZES[0])
    assert wrong == {}, json.dumps(wrong, indent=1, ensure_ascii=False)
    assert screen.heard == []
    await page.context.close()


APP = "Baue mir eine App für Android, mit der unsere Kunden bezahlen."
COLDER, WHICH_MODEL = "Setze die Temperatur auf 0,2", "Welches Modell benutzt er?"
LAGOON = "Ändere die Temperatur des Flows Lagune"


def _plays_german(standin: ModelStandIn) -> None:
    """A model that answers in German."""
    says = {
        "goal": "Ein Chatbot für den Leuchtturm.",
        "success_criteria": ["Er antwortet freundlich."],
        "steps": ["Alles verbinden."],
        "test_questions": ["Hallo"],
    }
    german = {"title": "Der Leuchtturm", "language": "de"}
    colder = change("chatOpenAI_0", "temperature", 0.2)
    colder["plan"] = [{**plan, **says, "nodes": _in_german(plan["nodes"])} for plan in colder["plan"]]
    colder["classify"] |= german
    support = {**SUPPORT, "classify": {**SUPPORT["classify"], **german}}
    support["plan"] = {**SUPPORT["plan"], **says, "nodes": _in_german(SUPPORT["plan"]["nodes"])}
    script(standin, colder, when=COLDER)
    script(standin, tells("Er benutzt `gpt-4o`."), when=WHICH_MODEL)
    script(standin, {**support, "plan": {**support["plan"], "declined": "Das ist kein Flow."}}, when=APP)
    script(standin, {"classify": {**colder["classify"], "target_hint": "Lagune"}}, when=LAGOON)
    script(standin, support)


def _in_german(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**node, "purpose": "gehört dazu"} for node in nodes]


@pytest.mark.nightly
async def test_a_german_person_reads_no_english_from_the_plan_to_a_conflict(
    built_page: Path,
    browser: Browser,
    shared_service: SharedService,
    standin: ModelStandIn,
    flowise_flows: FlowiseClient,
) -> None:
    _plays_german(standin)
    page_service = await shared_service(**LOCKED, **model_environment(standin))
    screen = await Screen.open(browser, page_service.url, locale="de-DE")
    page = screen.page
    read: dict[str, list[str]] = {}

    async def reads(step: str, beside: str = FOREIGN) -> None:
        if found := await english(page, beside):
            read[step] = found

    async def begin(requirement: str) -> None:
        await page.goto(f"{page_service.url}/#/")
        await page.get_by_label("Was soll der Chatbot tun?").fill(requirement)
        # It can be typed before the program is there, while the page holds its first words in all languages.
        await expect(page.locator(".head-start")).to_have_count(0)
        await reads(f"home: {requirement}")
        await screen.press("Starten")
        await page.wait_for_url("**/#/s/*")

    # A new flow, a question about it, and its history.
    await begin("Baue einen Chatbot mit GPT-4o und Gedächtnis für unseren Leuchtturm. Er antwortet freundlich.")
    plan = await screen.question("Der Plan")
    await reads("plan")
    await screen.press("Genehmigen", plan)
    result = await screen.question("Das Ergebnis")
    await reads("result")
    await screen.press("Live schalten", result)
    await screen.status("Angenommen")
    await page.get_by_text("Zusammenfassung", exact=True).click()
    await reads("accepted")
    link = await page.locator(".workbench-head").get_by_role("link", name="Verlauf").get_attribute("href")
    flow = str(link).rpartition("/")[2]
    await page.get_by_label("Was soll anders sein?").fill(WHICH_MODEL)
    await screen.press("Danach fragen")
    await screen.status("Beantwortet")
    # The answer quotes the flow as models read it.
    await reads("answered", f"{FOREIGN}, .markdown, .story small:has(.artifact)")
    await page.goto(f"{page_service.url}/#/history/{flow}")
    await expect(page.get_by_role("region", name="Versionen")).to_be_visible()
    await reads("history")

    # A change, which somebody else overtakes; put back in the end.
    await page.goto(f"{page_service.url}/#/f/{flow}/default")
    await page.get_by_label("Was soll anders sein?").fill(COLDER)
    await reads("flow")
    await screen.press("Ändern")
    plan = await screen.question("Der Plan")
    await reads("plan of a change")
    await screen.press("Genehmigen", plan)
    result = await screen.question("Das Ergebnis")
    await reads("result of a change")
    live = await flowise_flows.get_chatflow(flow)
    theirs = json.loads(live.flow_data)
    theirs["nodes"][0]["position"]["x"] += 40
    await flowise_flows.update_chatflow(flow, flow_data=json.dumps(theirs))
    await screen.press("Live schalten", result)
    conflict = await screen.question("Der Flow wurde in Flowise geändert")
    await reads("conflict")
    await screen.press("Beide behalten", conflict)
    result = await screen.question("Das Ergebnis")
    await screen.press("Zurücksetzen", result)
    await reads("sure")
    await page.locator(".destructive").get_by_role("button").first.click()
    await screen.status("Zurückgesetzt")
    await reads("rolled back")

    # What cannot be built, a question which flow is meant, and a cancellation.
    await begin(APP)
    await screen.question("Das lässt sich nicht bauen")
    await reads("refused")
    await begin(LAGOON)
    await screen.question("Welcher Flow?")
    await reads("which flow")
    await screen.press("Abbrechen", page.locator(".question"))
    await page.locator(".destructive").get_by_role("button").first.click()
    await screen.status("Abgebrochen")
    await reads("cancelled")
    assert read == {}, json.dumps(read, indent=1, ensure_ascii=False)
    assert screen.heard == []
    await page.context.close()
