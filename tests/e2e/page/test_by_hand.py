"""Flows are built and changed by hand in the picture, without a sentence: connected, moved, set, tested, accepted."""

import json
import re
from typing import Any

import pytest
from playwright.async_api import expect

from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.values import is_empty
from tests.e2e.page.screen import SIZES, THUMB, Screen
from tests.e2e.people import KINDS, make_flow

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def changes(screen: Screen, *told: str) -> None:
    """Return once these are the changes that are listed."""
    await expect(screen.page.locator(".change-words")).to_have_text([*told])


async def pick(screen: Screen, words: str, name: str) -> None:
    """Look for a type of node in the dialog, and take it."""
    dialog = screen.page.locator("dialog[open]")
    await dialog.get_by_role("combobox").fill(words)
    await dialog.get_by_role("option", name=name).first.click()


async def test_a_flow_is_changed_in_its_picture_tested_and_accepted_without_a_model(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    row = await make_flow(flowise_flows)
    page = screen.page
    await page.goto(f"{screen.url}/#/f/{row.id}/default")
    # What fits an input, and nothing else; Enter takes the first.
    await page.get_by_label("Add to Input Moderation").click()
    dialog = page.locator("dialog[open]")
    await expect(dialog.get_by_role("option")).to_have_text(
        ["Simple Prompt ModerationModeration", "OpenAI ModerationModeration"]
    )
    assert await screen.violations() == []
    await page.keyboard.press("Enter")
    moderation = ["Added: Simple Prompt Moderation", "Connected: Simple Prompt Moderation → Conversation Chain"]
    await changes(screen, *moderation)
    form = page.locator(".node-form")
    await form.get_by_label("Deny List").fill("bet")
    await form.get_by_label("Deny List").blur()
    await changes(screen, *moderation, "Deny List of Simple Prompt Moderation: bet")
    assert await screen.violations() == []
    # The details take no room of the picture, and the draft outlives a reload.
    await page.reload()
    await changes(screen, *moderation, "Deny List of Simple Prompt Moderation: bet")
    # What needs a change goes with it.
    await page.get_by_role("button", name="Take out change 1").click()
    await changes(screen)
    await screen.press("Undo")
    await changes(screen, *moderation, "Deny List of Simple Prompt Moderation: bet")
    memory = page.locator('.react-flow__node[data-id^="bufferMemory"]')
    box = await memory.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + 30, box["y"] + 8)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 60, box["y"] + 70, steps=5)
    await page.mouse.up()
    await expect(page.locator(".change-words").last).to_have_text("Moved: Buffer Memory")
    await screen.press("Build and test")
    await screen.question("The result")
    await screen.accept()
    await screen.status("Accepted")
    flow = json.loads((await flowise_flows.get_chatflow(row.id)).flow_data)
    made = {node["id"]: node["data"] for node in flow["nodes"]}
    assert made["inputModerationSimple_0"]["inputs"]["denyList"] == "bet"
    ends = [edge["source"] for edge in flow["edges"] if edge["targetHandle"].count("input-inputModeration")]
    assert ends == ["inputModerationSimple_0"]


async def test_a_flow_of_steps_is_built_from_nothing_and_by_keyboard(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    await page.goto(f"{screen.url}/#/new")
    await screen.press("Start a flow of steps")
    await changes(screen, "Added: Start")
    details = page.locator(".node-details")
    await details.get_by_role("button", name="Add to Start").click()
    await pick(screen, "reply", "Direct Reply")
    await changes(screen, "Added: Start", "Added: Direct Reply", "Connected: Start → Direct Reply")
    await details.get_by_label("Message").fill("We are closed.")
    await details.get_by_label("Message").blur()
    await details.get_by_label("Name").fill("Tell them")
    await details.get_by_label("Name").blur()
    # A step between two others.
    await page.get_by_label("A step between Start and Tell them").click()
    await pick(screen, "function", "Custom Function")
    await expect(page.locator(".change-words")).to_contain_text(["Connected: Start → Custom Function"])
    await page.locator('.react-flow__node[data-id="customFunctionAgentflow_0"]').focus()
    await page.keyboard.press("Delete")
    await expect(page.locator(".change-words")).not_to_contain_text(["Custom Function"])
    await page.keyboard.press("Control+z")
    await page.keyboard.press("Control+Shift+z")
    assert await screen.violations() == []
    # Nothing follows the start any more: the step says so, and mends it.
    await page.keyboard.press("Control+k")
    await page.locator("dialog[open]").get_by_role("combobox").fill("Start (")
    await page.keyboard.press("Enter")
    await details.get_by_role("button", name="Add to Start").click()
    await pick(screen, "Tell", "Tell them")
    await page.get_by_label("Name of the new flow").fill("Closed")
    await screen.press("Build and test")
    await screen.question("The result")
    await screen.accept()
    await screen.status("Accepted")
    (row,) = [row async for row in flowise_flows.iter_chatflows() if row.name == "Closed"]
    graph = GraphIR.from_flow_data((await flowise_flows.get_chatflow(row.id)).flow_data)
    assert [node.label for node in graph.nodes] == ["Start", "Tell them"]
    assert len(graph.edges) == 1


async def test_a_text_completes_what_there_is_and_other_flows_are_chosen_by_name(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    row = await make_flow(flowise_flows)
    await flowise_flows.create_variable("shopName", {"value": "Heron Books"})
    page = screen.page
    await page.goto(f"{screen.url}/#/new")
    await screen.press("Start a flow of steps")
    details, form = page.locator(".node-details"), page.locator(".node-form")
    await details.get_by_role("button", name="Add to Start").click()
    await pick(screen, "execute", "Execute Flow")
    await form.get_by_label("Select Flow").select_option(label=row.name)
    await details.get_by_role("button", name="Add to Execute Flow").last.click()
    await pick(screen, "reply", "Direct Reply")
    message = form.get_by_label("Message")
    await message.click()
    await page.keyboard.type("Hello from {{shop")
    offered = page.locator(".cm-tooltip-autocomplete [role=option]")
    await expect(offered).to_have_text(["{{$vars.shopName}}Variable of the server"])
    await page.keyboard.press("Enter")
    # The same editor, large: nothing is lost on the way there and back.
    await screen.press("Large editor", form)
    assert await screen.violations() == []
    await page.keyboard.press("Control+End")
    await page.keyboard.type(": ")
    await page.locator("dialog[open]").get_by_role("button", name="Insert a variable").click()
    await page.get_by_role("option", name="executeFlowAgentflow_0").click()
    await screen.press("Done")
    told = "Message of Direct Reply: Hello from {{$vars.shopName}}: {{executeFlowAgentflow_0}}"
    await expect(page.locator(".change-words").last).to_have_text(told)
    await page.keyboard.press("Control+z")
    # Types and ids are for those who ask for them, and the browser keeps that.
    code = details.get_by_text("directReplyAgentflow_0", exact=True)
    await expect(code).to_be_hidden()
    await details.get_by_label("I know Flowise").check()
    await expect(code).to_be_visible()
    await page.reload()
    await page.locator('.react-flow__node[data-id="directReplyAgentflow_0"]').click()
    await expect(code).to_be_visible()
    assert await screen.violations() == []


@pytest.mark.nightly
async def test_on_a_phone_a_node_is_set_in_the_picture_and_somebody_elses_change_is_told(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    row = await make_flow(flowise_flows)
    page = screen.page
    await page.set_viewport_size(SIZES[1])
    await page.goto(f"{screen.url}/#/f/{row.id}/default")
    await screen.press("Picture")
    # On a phone the flow is a list, from its end to what feeds it.
    listed = page.get_by_role("list", name="The flow as a list")
    await expect(listed.get_by_role("button")).to_have_text(
        [re.compile("Conversation Chain$"), re.compile("OpenAI"), re.compile("Memory")]
    )
    assert await screen.violations() == []
    await listed.get_by_role("button", name="OpenAI").click()
    form = page.locator(".node-form")
    await form.get_by_label("Temperature").fill("0.2")
    await form.get_by_label("Temperature").blur()
    assert await screen.violations() == []
    assert await screen.overflow() <= 0
    await screen.press("Close the details")
    await screen.press("Chat")
    await changes(screen, "Temperature of ChatOpenAI: Before 0.9 → After 0.2")
    assert await screen.overflow() <= 0
    # Below the picture a thumb reaches what is done most; the bar has a row of its own.
    await screen.press("Picture")
    bar = page.locator(".thumb-bar")
    for name in ("Undo", "Redo", "Add a node…", "Build and test"):
        button = bar.get_by_role("button", name=name, exact=True)
        await expect(button).to_be_in_viewport(ratio=1)
        box = await button.bounding_box()
        assert box
        assert box["height"] >= THUMB
        assert box["y"] > SIZES[1]["height"] * 0.8
    await expect(bar.get_by_role("button", name="Build and test")).to_be_enabled()
    assert await screen.violations() == []
    await screen.press("Undo", bar)
    await expect(bar.get_by_role("button", name="Build and test")).to_be_disabled()
    await screen.press("Redo", bar)
    await screen.press("Add a node…", bar)
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await screen.press("Chat")
    changed = row.flow_data.replace('"mine"', '"theirs"')
    await flowise_flows.update_chatflow(row.id, flow_data=changed)
    await page.reload()
    await screen.reads("Somebody changed the flow in Flowise meanwhile.")
    await expect(page.get_by_role("button", name="Build and test")).to_be_disabled()
    assert await screen.violations() == []
    await screen.press("Keep my changes on it")
    await expect(page.get_by_role("button", name="Build and test")).to_be_enabled()
    await screen.press("Discard")
    await expect(page.locator(".change-words")).to_have_count(0)


#: The value of each field of a form by its name.
READ = """form => Object.fromEntries([...form.querySelectorAll(":is(input, select, textarea)[name]")]
    .filter(one => !one.closest(".row-of-list, .config"))
    .map(one => [one.name, one.type === "checkbox" ? String(one.checked) : one.value]))"""


@pytest.mark.nightly
@pytest.mark.timeout(400)
async def test_no_form_of_a_changed_template_shows_what_its_flow_does_not_have(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page, wrong, seen = screen.page, list[Any](), 0
    types = {str(node["name"]) for node in (await flowise_flows.list_nodes()).nodes}
    for template in await flowise_flows.list_templates():
        if template["type"] not in KINDS:
            continue
        name, flow_data = str(template["templateName"]), str(template.get("flowData"))
        row = await flowise_flows.create_chatflow(
            ChatflowCreate(name=name, type=KINDS[template["type"]], flow_data=flow_data)
        )
        nodes = [node for node in GraphIR.from_flow_data(flow_data).nodes if not node.is_note]
        # A change is there, so that the nodes are drawn from the draft.
        edit = {"op_type": "SetLabel", "node_id": nodes[0].id, "label": "Changed"}
        kept = json.dumps({"past": [], "now": [edit], "future": [], "base": ""})
        await page.evaluate(
            "([key, kept]) => localStorage.setItem(key, kept)",
            [f"flowise-dev-agent-draft:edits:flow:default:{row.id}", kept],
        )
        await page.goto(f"{screen.url}/#/f/{row.id}/default")
        await expect(page.locator("h1")).to_have_text(name)
        await expect(page.locator(".change-words")).to_have_text([f"Renamed: {nodes[0].label}"])
        for node in nodes:
            if node.name not in types:
                continue  # an old type that the server has no more
            await expect(page.locator(".palette")).to_have_count(0)
            await page.keyboard.press("Control+k")
            await page.locator("dialog[open]").get_by_role("combobox").fill(f"({node.id})")
            await page.keyboard.press("Enter")
            form = page.locator(".node-form")
            await expect(page.locator(".node-details")).to_contain_text(node.id)
            if not await form.count():
                continue
            shown: dict[str, str] = await form.evaluate(READ)
            for field, value in shown.items():
                held = node.inputs.get(field)
                text = "" if is_empty(held) else str(held).lower() if isinstance(held, bool) else str(held)
                seen += 1
                if value != text and not (value == "false" and not text):
                    wrong.append((name, node.id, field, value[:40], text[:40]))
    assert wrong == [], wrong
    assert seen > 500


async def test_three_flows_are_changed_by_hand_at_once_and_several_nodes_together_with_undo(
    screen: Screen, flowise_flows: FlowiseClient
) -> None:
    page = screen.page
    rows = [await make_flow(flowise_flows) for _ in range(3)]
    for row in rows:
        await page.goto(f"{screen.url}/#/f/{row.id}/default")
        await page.locator('.react-flow__node[data-id="chatOpenAI_0"]').click()
        await page.locator('.react-flow__node[data-id^="bufferMemory"]').click(modifiers=["Shift"])
        await expect(page.get_by_role("group", name="2 selected")).to_be_visible()
        await page.keyboard.press("Control+d")
        # Two copies at their places, and no line between them.
        await expect(page.locator(".change-words")).to_have_count(4)
        await screen.press("Add a note")
        note = page.locator(".node-details").get_by_label("Note")
        await note.fill("Mind the budget.")
        await note.blur()
        await expect(page.locator(".change-words")).to_have_count(6)
        await expect(page.locator(".fnode.note", has_text="Mind the budget")).to_have_count(1)
    # Each flow has kept its own list; undo takes back one step after the other.
    for row in rows:
        await page.goto(f"{screen.url}/#/f/{row.id}/default")
        await expect(page.locator(".change-words")).to_have_count(6)
        await screen.press("Undo")
        await screen.press("Undo")
        await expect(page.locator(".change-words")).to_have_count(4)
        await screen.press("Undo")
        await expect(page.locator(".change-words")).to_have_count(0)
        await screen.press("Redo")
        await expect(page.locator(".change-words")).to_have_count(4)
    assert await screen.violations() == []
