"""One AgentFlow built by hand from nothing, in the page and in Flowise's own editor: what that takes, side by side.

    python scripts/bench/by_hand.py

The flow: questions about refunds get an answer from a model that a person approves; after a no the model writes again;
everything else gets a fixed reply. Starts a local Flowise, the service and a headless Chromium of this machine. Counted
are the acts of a scripted user who makes no mistake. Then the same mistakes are made in the finished flow, and it is
counted which of them each side tells before the flow runs.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from playwright.async_api import Browser, Locator, Page, async_playwright, expect

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient

_WORK_MS: Final = 90_000
NAME: Final = "Refund desk"
_WORD: Final = "refund"
_QUESTION: Final = "{{question}}"
_ASK: Final = "Send this answer?"
_ELSE: Final = "Please ask about refunds."
#: Boxes of Flowise's editor that no other one covers, at the zoom of the script.
_PLACES: Final = {
    "Condition": (600, 300),
    "LLM": (780, 200),
    "Human Input": (940, 200),
    "Direct Reply": (1_130, 330),
    "Loop": (1_130, 480),
    "Direct Reply ": (780, 560),
}


@dataclass
class Hand:
    """A scripted user whose acts on a page are counted. A choice in a list is two clicks."""

    page: Page
    clicks: int = 0
    drags: int = 0
    typed: str = ""
    secs: float = 0.0

    async def click(self, what: Locator, *, double: bool = False) -> None:
        await (what.dblclick() if double else what.click())
        self.clicks += 1 + double

    async def write(self, where: Locator, text: str) -> None:
        """Click into a field and type."""
        await self.click(where)
        await self.page.keyboard.type(text)
        self.typed += f" {text}"

    async def choose(self, field: Locator, label: str) -> None:
        await field.select_option(label=label)
        self.clicks += 2

    async def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        mouse = self.page.mouse
        await mouse.move(*start)
        await mouse.down()
        await mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=6)
        await mouse.move(*end, steps=6)
        await mouse.up()
        self.drags += 1

    @property
    def words(self) -> int:
        return len(self.typed.split())


# --- the page --------------------------------------------------------------------------------------------------------


async def build_here(page: Page, url: str) -> Hand:
    """Build the flow in the page from an empty canvas, test it and accept it."""
    hand = Hand(page)
    await page.goto(f"{url}/#/new")
    details, form = page.locator(".node-details"), page.locator(".node-form")
    begin = page.get_by_role("button", name="Start a flow of steps")
    await begin.wait_for()
    began = time.perf_counter()

    async def follow(branch: str, words: str, name: str) -> None:
        await hand.click(details.get_by_role("button", name=f"Add to {branch}", exact=True).last)
        dialog = page.locator("dialog[open]")
        await expect(dialog.get_by_role("combobox")).to_be_focused()
        await page.keyboard.type(words)
        hand.typed += f" {words}"
        await hand.click(dialog.get_by_role("option", name=re.compile(name)).first)

    async def show(node: str) -> None:
        await hand.click(details.get_by_role("button", name=node, exact=True))

    await hand.click(begin)
    await follow("Start", "condition", "^Condition ?Agent Flows")
    await hand.write(form.get_by_label("Value 1"), _QUESTION)
    await hand.choose(form.get_by_label("Operation"), "Contains")
    await hand.write(form.get_by_label("Value 2"), _WORD)
    await follow("else", "reply", "^Direct Reply")
    await hand.write(form.get_by_label("Message"), _ELSE)
    await show("Condition")
    await follow(f"{_QUESTION} contains {_WORD}", "llm", "^LLM")
    await hand.choose(form.get_by_label("Model", exact=True), "OpenAI")
    await hand.choose(form.get_by_label("Credential"), "stand-in openAIApi")
    await follow("LLM", "human", "^Human Input")
    await hand.choose(form.get_by_label("Description Type"), "Fixed")
    await hand.write(form.get_by_label("Description", exact=True), _ASK)
    await follow("reject", "llm", "^Back to LLM")
    await show("Human Input")
    await follow("proceed", "reply", "^Direct Reply")
    await hand.write(form.get_by_label("Message"), "{{ llmAgentflow_0 }}")
    name = page.get_by_label("Name of the new flow")
    await name.fill("")
    await hand.write(name, NAME)
    await hand.click(page.get_by_role("button", name="Build and test"))
    await page.get_by_role("region", name="The result", exact=True).wait_for(timeout=_WORK_MS)
    await hand.click(page.get_by_role("button", name=re.compile("^(Accept|Go live)$")))
    await expect(page.locator(".workbench-head .badge").first).to_have_text("Accepted", timeout=_WORK_MS)
    hand.secs = time.perf_counter() - began
    return hand


# --- Flowise's editor ------------------------------------------------------------------------------------------------


async def sign_in(page: Page, flowise: FlowiseAccess) -> None:
    """Sign in to Flowise's own interface."""
    await page.goto(f"{flowise.endpoint}/signin")
    await page.locator("input[name=username]").fill(flowise.email)
    await page.locator("input[type=password]").fill(flowise.password.get_secret_value())
    await page.get_by_role("button", name="Login").click()
    await page.wait_for_url(lambda url: not url.endswith("/signin"))


async def build_there(page: Page, flowise: FlowiseAccess) -> Hand:
    """Build the same flow in Flowise's editor, save it and try its three ways in its chat."""
    hand = Hand(page)
    await page.goto(f"{flowise.endpoint}/v2/agentcanvas")
    nodes = page.locator(".react-flow__node")
    await expect(nodes).to_have_count(1)
    began = time.perf_counter()
    await page.mouse.move(300, 650)
    await page.mouse.wheel(0, 700)
    hand.clicks += 1
    search = page.get_by_placeholder("Search nodes")

    async def drop(key: str) -> None:
        name, count = key.strip(), await nodes.count()
        for _ in range(3):
            if not await search.is_visible():
                await page.locator(".MuiFab-root").first.click()
            await search.fill(name)
            item = page.locator("[draggable=true]").filter(has_text=re.compile(rf"^{name}\s")).first
            await item.hover()
            await page.mouse.down()
            x, y = _PLACES[key]
            await page.mouse.move(x - 60, y - 40, steps=6)
            await page.mouse.move(x, y, steps=4)
            await page.mouse.up()
            try:
                await expect(nodes).to_have_count(count + 1, timeout=2_000)
                break
            except AssertionError:  # the editor misses some drops of a script: not counted
                continue
        hand.clicks, hand.drags, hand.typed = hand.clicks + 1, hand.drags + 1, f"{hand.typed} {name}"
        await search.wait_for(state="hidden")

    async def connect(source: str, target: str) -> None:
        ends: list[tuple[float, float]] = []
        await page.locator(f".react-flow__node[data-id='{source.split('-')[0]}']").hover()
        for handle in (source, target):
            box = await page.locator(f".react-flow__handle[data-handleid='{handle}']").bounding_box()
            if box is None:
                raise ValueError(f"{handle} is out of sight")
            ends.append((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))
        edges = await page.locator(".react-flow__edge").count()
        await hand.drag(*ends)
        await expect(page.locator(".react-flow__edge")).to_have_count(edges + 1)

    dialog = page.get_by_role("dialog")

    def field(label: str) -> Locator:
        """Find the element behind the label of a field in Flowise's dialog."""
        return dialog.locator(
            f"xpath=.//*[normalize-space(translate(text(), '\u00a0', ' ')) = '{label}']/following::*"
            "[@role='combobox' or @contenteditable='true' or self::textarea or self::input][1]"
        ).first

    @asynccontextmanager
    async def opened(node: str) -> AsyncGenerator[None]:
        await hand.click(page.locator(f".react-flow__node[data-id='{node}']"), double=True)
        await dialog.first.wait_for()
        yield
        # A click beside a dialog closes it.
        await page.mouse.click(60, 700)
        hand.clicks += 1
        await dialog.first.wait_for(state="hidden")

    async def choose(label: str, option: str) -> None:
        await hand.click(field(label))
        await hand.click(page.get_by_role("option", name=re.compile(f"^{option}")).first)

    async def mention(label: str, variable: str) -> None:
        """Two braces open a list of variables; typed ones would be dropped."""
        await hand.write(field(label), "{{")
        await hand.click(page.locator(".tippy-box .MuiListItemButton-root", has_text=variable).first)

    for key in _PLACES:
        await drop(key)
    await connect("startAgentflow_0-output-startAgentflow", "conditionAgentflow_0")
    await connect("conditionAgentflow_0-output-0", "llmAgentflow_0")
    await connect("conditionAgentflow_0-output-1", "directReplyAgentflow_1")
    await connect("llmAgentflow_0-output-llmAgentflow", "humanInputAgentflow_0")
    await connect("humanInputAgentflow_0-output-0", "directReplyAgentflow_0")
    await connect("humanInputAgentflow_0-output-1", "loopAgentflow_0")
    async with opened("conditionAgentflow_0"):
        # The last field first: the editor drops what was mentioned above a choice or a text that comes after it.
        await choose("Operation", "Contains")
        await hand.write(field("Value 2"), _WORD)
        await mention("Value 1", "question")
    async with opened("llmAgentflow_0"):
        await choose("Model", "OpenAI")
        await hand.click(dialog.get_by_text("OpenAI Parameters"))
        await choose("Connect Credential", "stand-in openAIApi")
    async with opened("humanInputAgentflow_0"):
        await choose("Description Type", "Fixed")
        await hand.write(field("Description"), _ASK)
    async with opened("directReplyAgentflow_0"):
        await mention("Message", "LLM 0")
    async with opened("directReplyAgentflow_1"):
        await hand.write(field("Message"), _ELSE)
    async with opened("loopAgentflow_0"):
        await hand.click(field("Loop Back To"))
        await hand.click(page.get_by_role("option", name=re.compile("^LLM")).first)
    await hand.click(page.get_by_title("Save Agents"))
    await hand.write(dialog.locator("input").first, NAME)
    await hand.click(dialog.get_by_role("button", name="Save"))
    await page.wait_for_url(re.compile(r"/v2/agentcanvas/[0-9a-f-]{36}"))
    await try_ways(hand)
    hand.secs = time.perf_counter() - began
    return hand


async def try_ways(hand: Hand) -> None:
    """The ways of the flow in the chat of Flowise's editor, as the tests of the page go them."""
    page = hand.page
    await hand.click(page.get_by_title("Chat").last)
    chat = page.locator("#userInput")
    for question, decisions in (("Hello", ()), (_WORD, ("Proceed",)), (_WORD, ("Reject", "Proceed"))):
        await hand.write(chat, question)
        await page.keyboard.press("Enter")
        for decision in decisions:
            await hand.click(page.get_by_role("button", name=decision).last)
            # It asks for a reason, which may be left out.
            await hand.click(page.get_by_role("dialog").get_by_role("button", name="Submit"))
            await page.get_by_role("dialog").wait_for(state="hidden")
        await expect(chat).to_be_enabled(timeout=_WORK_MS)


# --- mistakes --------------------------------------------------------------------------------------------------------

Flow = dict[str, Any]


def _inputs(flow: Flow, node: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one["data"]["inputs"] for one in flow["nodes"] if one["id"] == node)
    return found


def _set(node: str, name: str, value: object) -> Callable[[Flow], None]:
    def make(flow: Flow) -> None:
        _inputs(flow, node)[name] = value

    return make


def _unbound(flow: Flow) -> None:
    _inputs(flow, "llmAgentflow_0")["llmModelConfig"]["FLOWISE_CREDENTIAL_ID"] = ""


def _without_line(source: str) -> Callable[[Flow], None]:
    def make(flow: Flow) -> None:
        flow["edges"] = [one for one in flow["edges"] if one["sourceHandle"] != source]

    return make


def _joined(flow: Flow) -> None:
    """Both branches of the condition lead to one reply."""
    line = next(one for one in flow["edges"] if one["sourceHandle"] == "conditionAgentflow_0-output-1")
    also = next(one for one in flow["edges"] if one["sourceHandle"] == "humanInputAgentflow_0-output-0")
    line |= {"target": also["target"], "targetHandle": also["targetHandle"]}


#: What a person can get wrong in this flow, and how it is made in the finished one.
MISTAKES: Final[dict[str, Callable[[Flow], None]]] = {
    "no model is chosen": _set("llmAgentflow_0", "llmModel", ""),
    "the model has no credential": _unbound,
    "the approval says not how it asks": _set("humanInputAgentflow_0", "humanInputDescriptionType", ""),
    "the approval asks nothing": _set("humanInputAgentflow_0", "humanInputDescription", ""),
    "the reply is empty": _set("directReplyAgentflow_0", "directReplyMessage", ""),
    "the reply names a step that is not there": _set(
        "directReplyAgentflow_0", "directReplyMessage", "<p>{{ llmAgentflow_7 }}</p>"
    ),
    "the reply names a variable that the server lacks": _set(
        "directReplyAgentflow_0", "directReplyMessage", "<p>{{$vars.shopName}}</p>"
    ),
    "a variable has one brace": _set("directReplyAgentflow_0", "directReplyMessage", "<p>{ llmAgentflow_0 }</p>"),
    "the loop leads nowhere": _set("loopAgentflow_0", "loopBackToNode", ""),
    "the loop leads to a step that is gone": _set("loopAgentflow_0", "loopBackToNode", "llmAgentflow_7-LLM"),
    "a refusal leads nowhere": _without_line("humanInputAgentflow_0-output-1"),
    "a branch of the condition leads nowhere": _without_line("conditionAgentflow_0-output-1"),
    "nothing follows the start": _without_line("startAgentflow_0-output-startAgentflow"),
    "a step waits for two ways that no run takes together": _joined,
    "the condition compares with nothing": _set(
        "conditionAgentflow_0",
        "conditions",
        [{"type": "string", "value1": _QUESTION, "operation": "contains", "value2": ""}],
    ),
}


class Told(NamedTuple):
    """True for a side that tells a mistake before the flow runs."""

    here: bool
    there: bool


async def caught(page: Page, url: str, flowise: FlowiseAccess, chatflow_id: str, key: str = "") -> dict[str, Told]:
    """Make each mistake on both sides, and say who tells it: the service, or the checklist of Flowise's editor."""
    ours = {"Authorization": f"Bearer {key}"} if key else {}
    theirs = {"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"}

    async def here(flow_data: str) -> set[str]:
        body = {"flow_data": flow_data, "kind": "AGENTFLOW"}
        answer = await page.request.post(f"{url}/flows/validate", headers=ours, data=body)
        validation: dict[str, list[dict[str, Any]]] = (await answer.json())["validation"]
        found = [*validation["errors"], *validation["warnings"]]
        return {f"{one['code']} {one['where']} {one['field']}" for one in found}

    async def there() -> set[str]:
        answer = await page.request.get(f"{flowise.endpoint}/api/v1/validation/{chatflow_id}", headers=theirs)
        found: list[dict[str, Any]] = await answer.json()
        return {f"{one['id']} {issue}" for one in found for issue in one["issues"]}

    async with FlowiseClient(flowise.endpoint, flowise.api_key) as client:
        flow_data = (await client.get_chatflow(chatflow_id)).flow_data
        known = (await here(flow_data), await there())
        told: dict[str, Told] = {}
        for name, make in MISTAKES.items():
            flow: Flow = json.loads(flow_data)
            make(flow)
            await client.update_chatflow(chatflow_id, flow_data=json.dumps(flow))
            told[name] = Told(bool(await here(json.dumps(flow)) - known[0]), bool(await there() - known[1]))
        await client.update_chatflow(chatflow_id, flow_data=flow_data)
    return told


def report(here: Hand, there: Hand, told: Mapping[str, Told]) -> str:
    """Both counts as a table, with the ratio of the page to Flowise's editor."""
    rows = [
        ("clicks", here.clicks, there.clicks),
        ("drags", here.drags, there.drags),
        ("words typed", here.words, there.words),
        ("characters typed", len(here.typed), len(there.typed)),
        ("seconds, built and tried", round(here.secs, 1), round(there.secs, 1)),
        (
            f"mistakes told, of {len(told)}",
            sum(one.here for one in told.values()),
            sum(one.there for one in told.values()),
        ),
    ]
    lines = [f"{'':32}{'page':>8}{'Flowise':>10}{'ratio':>8}"]
    lines += [
        f"{name:32}{ours:>8}{theirs:>10}{f'{ours / theirs:.2f}' if theirs else '-':>8}" for name, ours, theirs in rows
    ]
    lines += [
        "",
        *(f"{'page' if one.here else '-':6}{'Flowise' if one.there else '-':9}{name}" for name, one in told.items()),
    ]
    return "\n".join(lines)


async def compare(
    browser: Browser, url: str, flowise: FlowiseAccess, key: str = ""
) -> tuple[Hand, Hand, dict[str, Told]]:
    """Build the flow on both sides, each in a window of its own, and make the mistakes in what the page has built."""
    windows = [await browser.new_context(viewport={"width": 1280, "height": 800}) for _ in range(2)]
    if key:
        await windows[0].add_init_script(f"sessionStorage.setItem('flowise-dev-agent-key', '{key}')")
    ours, theirs = [await window.new_page() for window in windows]
    here = await build_here(ours, url)
    await sign_in(theirs, flowise)
    there = await build_there(theirs, flowise)
    chatflow_id = there.page.url.rpartition("/")[2]
    told = await caught(ours, url, flowise, chatflow_id, key)
    for window in windows:
        await window.close()
    return here, there, told


async def main() -> None:
    """Start everything, and print the comparison."""
    from scripts.screenshots import local
    from tests.fixtures.browser import chromium_path

    async with local() as (stack, url), async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        print(report(*await compare(browser, url, stack.flowise)))
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
