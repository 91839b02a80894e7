"""A person in front of the page: what they type, press and read."""

import re
from typing import Any

from playwright.async_api import Browser, BrowserContext, Locator, Page, ViewportSize, expect

from tests.e2e.people import KEY
from tests.fixtures.browser import complaints
from tests.fixtures.page import violations
from tests.support.sessions import ASSISTANT

#: Patience for what the real service and the real Flowise do meanwhile.
WORK_MS = 90_000
#: A laptop and a phone.
SIZES: list[ViewportSize] = [{"width": 1280, "height": 720}, {"width": 390, "height": 844}]
#: What is pressed most on a phone, in pixels; WCAG asks for 24, which axe checks.
THUMB = 44
AUTHORIZATION = {"Authorization": f"Bearer {KEY}"}
GIVE_KEY = f"sessionStorage.setItem('flowise-dev-agent-key', '{KEY}')"
#: Records what would be shown, since a headless browser shows nothing.
RECORD_NOTICES = """
    class Recorded {
        constructor(title, options) {
            const before = document.body.dataset.noticed ?? "";
            document.body.dataset.noticed = `${before}${title}: ${options.body}.`;
        }
    }
    Recorded.permission = "default";
    Recorded.requestPermission = async () => {
        document.body.dataset.asked = "yes";
        return (Recorded.permission = "granted");
    };
    window.Notification = Recorded;
"""

expect.set_options(timeout=15_000)


class Screen:
    """A tab with the page. `heard` holds the browser's complaints."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.heard = complaints(page)
        page.on("dialog", lambda dialog: self.heard.append(f"dialog: {dialog.message}"))

    @classmethod
    async def open(cls, where: Browser | BrowserContext, url: str, *, has_key: bool = True, **context: Any) -> "Screen":
        """A tab in a context of its own (or in the one given), at the list of sessions."""
        if isinstance(where, Browser):
            where = await where.new_context(viewport={"width": 1280, "height": 900}, **context)
            where.set_default_timeout(15_000)
            if has_key:
                await where.add_init_script(GIVE_KEY)
        screen = cls(await where.new_page(), url)
        await screen.page.goto(url)
        return screen

    async def start(self, requirement: str) -> str:
        """Start a session; its id."""
        await self.page.get_by_label("What should the chatbot do?").fill(requirement)
        await self.press("Start")
        await self.page.wait_for_url("**/#/s/*")
        return self.page.url.rsplit("/", 1)[1]

    async def begin(self, **form: Any) -> str:
        """Go to a session that a form has started; its id."""
        made = await self.page.request.post(
            f"{self.url}/sessions?wait=60",
            headers=AUTHORIZATION,
            data={"design": {**ASSISTANT, **form}},
            timeout=WORK_MS,
        )
        session: str = (await made.json())["thread_id"]
        await self.see(session)
        return session

    async def see(self, session_id: str) -> None:
        """Go to a session."""
        await self.page.goto(f"{self.url}/#/s/{session_id}")

    async def press(self, name: str, inside: Locator | None = None) -> None:
        await (inside or self.page).get_by_role("button", name=name, exact=True).click()

    async def accept(self, card: Locator | None = None) -> None:
        """Accept the result, by whatever name the button says what that does."""
        await (card or self.page).get_by_role("button", name=re.compile("^(Accept|Go live)$")).click(timeout=WORK_MS)

    async def question(self, title: str) -> Locator:
        """The open question once it has this title."""
        card = self.page.get_by_role("region", name=title, exact=True)
        await expect(card).to_be_visible(timeout=WORK_MS)
        return card

    async def open_card(self, title: str) -> Locator:
        """A card of the conversation, opened."""
        card = self.page.get_by_role("region", name=title, exact=True)
        if not await card.is_visible():
            await self.page.locator(".turn-card > summary", has_text=title).first.click()
        await expect(card).to_be_visible()
        return card

    async def status(self, text: str) -> None:
        """Return once the session's badge says so."""
        await expect(self.page.locator(".workbench-head .badge").first).to_have_text(text, timeout=WORK_MS)

    async def reads(self, text: str) -> None:
        """Return once the text is on the page."""
        await expect(self.page.get_by_text(text).filter(visible=True).first).to_be_visible()

    async def settles(self, expression: str, arg: object = None) -> None:
        """Return once the expression is true: a picture that grows or a view that changes is not there at once."""
        await self.page.wait_for_function(expression, arg=arg)

    async def violations(self) -> list[str]:
        """What axe finds wrong for people who use a keyboard or a screen reader."""
        await expect(self.page.locator("h1, dialog[open]").first).to_be_visible()
        # The divider of the workbench has its value once its library has measured the panels.
        await expect(self.page.locator("[role=separator][tabindex]:not([aria-valuenow]):visible")).to_have_count(0)
        return await violations(self.page)

    async def overflow(self) -> int:
        """Pixels that the page is wider than the window."""
        return await self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
