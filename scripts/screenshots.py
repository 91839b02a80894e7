"""Takes the pictures of the README from the running page.

    python scripts/screenshots.py

Starts a local Flowise, a stand-in for a model, the service and a headless Chromium of this machine, walks through the
page like a person, and writes `docs/images/*.png`. A test does the same into a folder of its own, so that no picture
can show a page that is gone. Needs the built page (`make web`).
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import httpx2
from playwright.async_api import Browser, Page, ViewportSize, async_playwright

from flowise_dev_agent.devkit.stack import DevStack
from flowise_dev_agent.devkit.standin import ModelStandIn
from tests.e2e.scripted import AGENT_WIRES, CHAT_WIRES, builds, change, model_environment, script

IMAGES: Final = Path(__file__).resolve().parents[1] / "docs" / "images"
#: What is taken, in the order of the README.
NAMES: Final = ("home", "plan", "edit", "result", "live", "try", "change", "history", "phone", "german")
_LAPTOP: Final[ViewportSize] = {"width": 1280, "height": 800}
_PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
_WORK_MS: Final = 120_000
_PORT: Final = 8_199
_BOOKS: Final = "Baue einen Chatbot mit GPT-4o und Gedächtnis für unseren Buchladen"
_COLDER: Final = "Use a temperature of 0.1"
_SHOP: Final = (
    "Build an agent with GPT-4o for our online shop that remembers the conversation and has a calculator. "
    "It answers in a friendly tone and never promises a refund."
)


class _Tour:
    """A person with one page; `take` keeps what they see."""

    def __init__(self, page: Page, url: str, folder: Path) -> None:
        self.page, self.url, self._folder = page, url, folder

    async def take(self, name: str) -> None:
        """Keep what is seen once nothing moves."""
        await self.page.mouse.move(0, 0)
        await self.page.evaluate("document.fonts.ready")
        await self.page.screenshot(path=self._folder / f"{name}.png", animations="disabled")

    async def press(self, name: str) -> None:
        await self.page.get_by_role("button", name=name, exact=True).first.click()

    async def question(self, title: str) -> None:
        """Wait for a question of this title, and for the picture beside it."""
        await self.page.get_by_role("region", name=title, exact=True).wait_for(timeout=_WORK_MS)
        await self.page.locator(".fnode").first.wait_for(state="attached", timeout=_WORK_MS)

    async def ask(self, label: str, words: str, button: str) -> None:
        await self.page.goto(self.url)
        await self.page.get_by_label(label).fill(words)
        await self.press(button)


async def take_all(browser: Browser, url: str, folder: Path, key: str = "") -> None:
    """All pictures into `folder`; `key` opens a service that asks for one."""

    async def tour(language: str = "en-US", *, dark: bool = False) -> _Tour:
        context = await browser.new_context(
            viewport=_LAPTOP, locale=language, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        context.set_default_timeout(30_000)
        if key:
            await context.add_init_script(f"sessionStorage.setItem('flowise-dev-agent-key', '{key}')")
        return _Tour(await context.new_page(), url, folder)

    one = await tour()
    await one.ask("What should the chatbot do?", _SHOP, "Start")
    await one.question("The plan")
    await one.take("plan")
    await one.page.locator('.react-flow__node[data-id="chatOpenAI_0"]').click()
    await one.page.locator(".node-form").get_by_text("More settings").click()
    await one.page.get_by_label("Temperature").fill("0.3")
    await one.page.get_by_label("Temperature").blur()
    await one.page.get_by_text("1 changed by hand").wait_for()
    await one.page.get_by_text("Asking the server").first.wait_for(state="hidden")
    await one.take("edit")
    await one.press("Close the details")
    await one.page.set_viewport_size(_PHONE)
    await one.take("phone")
    await one.page.set_viewport_size(_LAPTOP)
    await one.press("Approve with my edits")
    await one.question("The result")
    await one.take("result")
    await one.press("Go live")
    await one.page.get_by_role("region", name="What next?").wait_for(timeout=_WORK_MS)
    await one.press("Give it to people")
    await one.page.get_by_label("Address of the chat").wait_for(timeout=_WORK_MS)
    await one.take("live")
    await one.press("Close")
    await one.press("Try it")
    await one.page.get_by_label("Your question").fill("What are three mugs at 17 euros?")
    await one.page.keyboard.press("Enter")
    await one.page.get_by_role("button", name="Nodes that ran").click(timeout=_WORK_MS)
    await one.page.locator(".react-flow__node.lit").first.wait_for()
    await one.take("try")
    address = await one.page.get_by_role("link", name="History").first.get_attribute("href")
    await one.press("Close the chat with the flow")

    await one.page.get_by_label("What should be different?").fill(_COLDER)
    await one.press("Change it")
    await one.question("The plan")
    session = one.page.url
    await one.press("Approve")
    await one.question("The result")
    night = await tour(dark=True)
    await night.page.goto(session)
    await night.question("The result")
    await night.take("change")
    await night.page.context.close()
    await one.press("Go live")
    await one.page.get_by_role("region", name="What next?").wait_for(timeout=_WORK_MS)
    await one.page.goto(f"{url}/{address}")
    await one.page.locator(".version").nth(1).wait_for(timeout=_WORK_MS)
    await one.page.locator(".fnode").first.wait_for()
    await one.take("history")

    german = await tour("de-DE")
    await german.ask("Was soll der Chatbot tun?", _BOOKS, "Starten")
    await german.question("Der Plan")
    await german.take("german")
    await german.page.context.close()

    await one.page.goto(url)
    await one.page.locator(".flow-card svg.thumbnail").first.wait_for(timeout=_WORK_MS)
    await one.page.locator(".inbox a").first.wait_for()
    await one.take("home")
    await one.page.context.close()


def play(standin: ModelStandIn) -> None:
    """Let the stand-in plan and build what the pictures show."""
    said = "Answer in a friendly tone. Never promise a refund."
    shop = builds(
        *AGENT_WIRES,
        "calculator -> toolAgent.tools",
        title="Agent for our online shop",
        goal="An agent that answers the customers of the online shop.",
        nodes=_nodes(
            chatOpenAI="writes the answers",
            toolAgent="talks with the customer and uses the calculator",
            bufferMemory="remembers the conversation",
            calculator="calculates",
        ),
        parts=[
            {
                "id": "p1",
                "state": "covered",
                "nodes": ["chatOpenAI_0", "toolAgent_0", "bufferMemory_0", "calculator_0"],
            },
            {"id": "p2", "state": "covered", "nodes": ["toolAgent_0"]},
        ],
        values=[{"node_id": "toolAgent_0", "param": "systemMessage", "value": said}],
        success_criteria=["It answers in a friendly tone.", "It promises no refund."],
    )
    books = builds(
        *CHAT_WIRES,
        title="Chatbot für unseren Buchladen",
        goal="Ein Chatbot für den Buchladen.",
        nodes=_nodes(
            chatOpenAI="schreibt die Antworten",
            conversationChain="führt das Gespräch",
            bufferMemory="merkt sich das Gespräch",
        ),
        parts=[{"id": "p1", "state": "covered", "nodes": ["chatOpenAI_0", "conversationChain_0", "bufferMemory_0"]}],
        success_criteria=["Er antwortet."],
        test_questions=["Hallo"],
    )
    colder = change("chatOpenAI_0", "temperature", 0.1)
    colder["classify"]["title"] = "Lower temperature"
    script(standin, colder, when=_COLDER)
    script(standin, shop, when=_SHOP)
    script(standin, books, when=_BOOKS)


def _nodes(**purposes: str) -> list[dict[str, str]]:
    return [{"node_id": f"{name}_0", "node_name": name, "purpose": purpose} for name, purpose in purposes.items()]


def _serve(stack: DevStack, folder: Path) -> subprocess.Popen[bytes]:
    settings = {
        "POSTGRES_DSN": stack.dsn,
        "FLOWISE_API_ENDPOINT": stack.flowise.endpoint,
        "FLOWISE_API_KEY": stack.flowise.api_key.get_secret_value(),
        "AGENT_API_PORT": str(_PORT),
        "PYTHONPATH": str(IMAGES.parents[1]),
        **model_environment(stack.standin),
    }
    return subprocess.Popen([sys.executable, "-m", "flowise_dev_agent", "serve"], cwd=folder, env=os.environ | settings)


@asynccontextmanager
async def local() -> AsyncGenerator[tuple[DevStack, str]]:
    """A stack of its own with the service in front of it, and the address of the service."""
    async with AsyncExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory()))
        stack = parts.enter_context(DevStack(folder, flowise_port=3_199))
        service = _serve(stack, folder)
        parts.callback(service.wait)
        parts.callback(service.terminate)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{_PORT}") as http, asyncio.timeout(60):
            while not await _answers(http):  # noqa: ASYNC110 - a process sends no event
                await asyncio.sleep(0.3)
        yield stack, f"http://127.0.0.1:{_PORT}"


async def main() -> None:
    """Start everything and write the pictures of the README."""
    from tests.fixtures.browser import chromium_path

    async with local() as (stack, url), async_playwright() as playwright:
        play(stack.standin)
        browser = await playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        await take_all(browser, url, IMAGES)
        await browser.close()


async def _answers(http: httpx2.AsyncClient) -> bool:
    try:
        return (await http.get("/live")).is_success
    except httpx2.TransportError:  # it is not up yet
        return False


if __name__ == "__main__":
    asyncio.run(main())
