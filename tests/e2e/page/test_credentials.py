"""A secret on its way through the page to Flowise: it stays in no other place."""

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import AUTHORIZATION, WORK_MS, Screen
from tests.e2e.service import ServiceProcess
from tests.fixtures.database import stored_text

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRET = "sk-proj-Zx9Kq2LmP4vT7wRb1NcY5sHd8JfGaQ3e"
#: It has no known form and looks like a word, so nothing but the form itself protects it.
PLAIN = "horsebatterystaple"
SUPPORT = "Build a customer support chatbot with GPT-4o and memory"


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def credentials(flowise: FlowiseAccess) -> AsyncIterator[None]:
    """What the test leaves in Flowise is deleted."""
    headers = {"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"}
    async with httpx2.AsyncClient(base_url=f"{flowise.endpoint}/api/v1", headers=headers) as http:
        before = {row["id"] for row in (await http.get("/credentials")).json()}
        yield
        for row in (await http.get("/credentials")).json():
            if row["id"] not in before:
                await http.delete(f"/credentials/{row['id']}")


class Wire:
    """What a tab sends: the addresses, and the requests with one of the texts in their body."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.addresses: list[str] = []
        page.on("request", lambda request: self.addresses.append(request.url))
        page.on("framenavigated", lambda frame: self.addresses.append(frame.url))

    @classmethod
    async def of(cls, page: Page) -> "Wire":
        # The browser tells no one the body of a request that the page gives to `fetch` as an object.
        await page.evaluate(
            """() => {
                const real = window.fetch;
                window.sent = [];
                window.fetch = async (request) => {
                    window.sent.push([request.method, request.url, await request.clone().text()]);
                    return real(request);
                };
            }"""
        )
        return cls(page)

    async def with_text(self, text: str) -> list[tuple[str, str]]:
        sent: list[list[str]] = await self._page.evaluate("window.sent")
        return [(method, url) for method, url, body in sent if text in body]


async def kept_by(page: Page) -> str:
    """What the browser keeps of the page, and what the page still shows or holds in its fields."""
    return await page.evaluate(
        """() => JSON.stringify([
            {...localStorage}, {...sessionStorage}, document.cookie, location.href, history.state, document.title,
            document.documentElement.outerHTML,
            [...document.querySelectorAll("input, textarea")].map((one) => one.value),
        ])"""
    )


async def fill(form: Locator, key: str, secret: str) -> None:
    await expect(form.get_by_label(key, exact=True)).to_have_attribute("type", "password")
    await form.get_by_label(key, exact=True).fill(secret)


async def test_p102_a_secret_in_a_requirement_goes_to_flowise_by_the_form_and_stays_nowhere_else(
    screen: Screen, page_service: ServiceProcess, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    requirement = page.get_by_label("What should the chatbot do?")
    await requirement.fill(f"{SUPPORT}, my key is {SECRET}")
    await screen.press("Start")
    refusal = page.get_by_role("alert").filter(has_text="take it out of the text")
    await expect(refusal).to_be_visible()
    # The browser says itself that the service answered 422.
    assert [heard for heard in screen.heard if "422" not in heard] == []
    screen.heard.clear()
    await requirement.fill(SUPPORT)

    await screen.press("Add a credential", refusal)
    form = page.get_by_role("dialog", name="Add a credential")
    await form.get_by_label("Type").select_option("OpenAI API")
    await form.get_by_label("Name").fill("Key of the test")
    assert await screen.violations() == []
    wire = await Wire.of(page)
    # A value typed and given up is gone.
    await fill(form, "OpenAI Api Key", PLAIN)
    await page.keyboard.press("Escape")
    await expect(page.locator("#credential-title")).to_have_count(0)
    assert PLAIN not in await kept_by(page)
    await screen.press("Add a credential", refusal)
    await form.get_by_label("Type").select_option("OpenAI API")
    await form.get_by_label("Name").fill("Key of the test")
    await fill(form, "OpenAI Api Key", SECRET)
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("“Key of the test” (openAIApi) is stored in Flowise now.")).to_be_visible()

    assert await wire.with_text(SECRET) == [("POST", f"{page_service.url}/credentials")]
    assert await wire.with_text(PLAIN) == []
    assert not any(SECRET in address for address in wire.addresses)
    assert SECRET not in await kept_by(page)
    assert "#/s/" not in page.url, "the form around the dialog was sent too"
    assert "Key of the test" in {row.name for row in await flowise_flows.list_credentials()}
    assert SECRET not in page_service.log()
    assert SECRET not in await stored_text(page_service.dsn)
    # The session starts with the words that are left.
    await screen.press("Start")
    await screen.question("The plan")
    async with httpx2.AsyncClient(base_url=page_service.url, headers=AUTHORIZATION) as http:
        id_ = page.url.rsplit("/", 1)[1]
        shown = [(await http.get(f"/sessions/{id_}{view}")).text for view in ("", "/summary")]
    assert not any(SECRET in text for text in [*shown, await stored_text(page_service.dsn), page_service.log()])
    await screen.press("Cancel session")
    await screen.press("Yes, cancel")
    await screen.status("Cancelled")


@pytest.mark.nightly
async def test_a_credential_that_the_plan_misses_is_added_in_place_and_the_work_goes_on(
    screen: Screen, page_service: ServiceProcess, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    await screen.start("Build a chatbot with DeepSeek and memory")
    plan = await screen.question("The plan")
    await expect(plan.get_by_role("button", name="Add a credential for deepseekApi")).to_be_visible()
    await screen.press("Approve", plan)
    card = await screen.question("Credentials")
    await screen.press("Add a credential for deepseekApi", card)
    form = page.get_by_role("dialog", name="Add a credential")
    # The browser does not send a required field that is empty.
    await screen.press("Store in Flowise", form)
    await expect(form.get_by_label("DeepseekAI API Key")).to_be_focused()
    await fill(form, "DeepseekAI API Key", PLAIN)
    wire = await Wire.of(page)
    await screen.press("Store in Flowise", form)
    await expect(card).to_be_hidden(timeout=WORK_MS)
    assert await wire.with_text(PLAIN) == [("POST", f"{page_service.url}/credentials")]
    assert PLAIN not in await kept_by(page)
    assert PLAIN not in await stored_text(page_service.dsn) + page_service.log()
    await screen.press("Cancel session")
    await screen.press("Yes, cancel")
    await screen.status("Cancelled")
