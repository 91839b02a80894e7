"""Markup of a plan: texts of a model, a flow or a person stay text wherever they stand in it."""

from collections.abc import Mapping
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from flowise_dev_agent.cli import console
from flowise_dev_agent.patch import Finding
from flowise_dev_agent.planning.permissions import capability_words
from flowise_dev_agent.planning.plan_text import plan_markdown
from flowise_dev_agent.sanitize import in_markdown, visible
from flowise_dev_agent.schemas.interrupts import ClarificationData, ClarificationInterrupt
from flowise_dev_agent.schemas.plan import (
    Approach,
    Capability,
    Criterion,
    FieldMapping,
    LineChange,
    Part,
    Plan,
    PlannedNode,
    PlannedValue,
    TestCase,
    ToolBinding,
)
from flowise_dev_agent.schemas.question_text import question_text
from flowise_dev_agent.schemas.shown_plan import Branch, NamedNode, OutlineLine, ShownPlan, ShownValue

MARKS = ("\u202e", "\u202d", "\u2066", "\u2067", "\u200f", "\x1b", "\x07", "\x9b", "\r", "\x0b", "\u2028", "\x85")
PIECES = [
    *("# Heading", "## What this allows", "- item", "1. item", "1) x", "* item", "+ item", "> quote", "---", "==="),
    *("[link](https://evil.example)", "![image](https://evil.example/x.png)", "<https://evil.example>", "[x]: /evil"),
    *("| a | b |", "|---|---|", "<b>bold</b>", "<script>alert(1)</script>", "<!-- x", "&#x202e;", "&lt;b&gt;", "```"),
    *("~~~", "`code", "``", "**bold**", "__bold__", "_x_", "~~gone~~", "\\", "\\[", "[^1]", "[^1]: note", "[ ] task"),
    *("[x] done", "    indented", "\t", "\n", "\n\n", " ", "a", "chatOpenAI_0", "{{ x }}", "](", "![", "<", "&", "*"),
    *("</details>", "<details open>", "$$", "http://evil.example", "javascript:alert(1)", "0.9", "-5", "10)"),
    *MARKS,
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), min_size=1, max_size=8).map("".join)
PLAIN = "word"
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
PLACES = (
    *("goal", "flow_name", "purpose", "label", "step", "criterion", "not_tested", "approach", "description", "turn"),
    *(
        "placeholder",
        "quote",
        "reason",
        "finding",
        "title",
        "branch",
        "leads_to",
        "node",
        "field",
        "old",
        "new",
        "tool",
    ),
    *("tool", "row", "removed", "kept", "mapping", "personal", "credential", "source", "host", "command", "file"),
)


def plan_with(said: Mapping[str, str]) -> tuple[Plan, ShownPlan]:
    """A plan with a text in every place, and what it does to the flow."""

    def at(place: str) -> str:
        return said.get(place, PLAIN)

    capability = Capability(
        hosts=[f"https://{at('host')}"],
        commands=[at("command")],
        files=[at("file")],
        lines=[LineChange(source=at("source"), target="b", change="add")],
        tools=[ToolBinding(node_id="chatOpenAI_0", name=at("tool"))],
    )
    wanted = Plan(
        goal=at("goal"),
        operation="update",
        flow_name=at("flow_name")[:120],
        nodes=[PlannedNode(node_id="chatOpenAI_0", node_name="chatOpenAI", purpose=at("purpose"))],
        values=[PlannedValue(node_id="chatOpenAI_0", param=at("field"), value=at("new"))],
        steps=[at("step")],
        criteria=[Criterion(id="c1", text=at("criterion"), not_tested=at("not_tested"))],
        approaches=[Approach(label=at("approach")[:80], description=at("description"))],
        tests=[TestCase(id="t1", turns=[at("turn")])],
        placeholders=[at("placeholder")],
        parts=[
            Part(id="p1", quote=at("quote"), state="assumed", reason=at("reason")),
            Part(id="p2", quote=at("quote"), state="covered", reason=at("reason"), nodes=["chatOpenAI_0"]),
            Part(id="p3", quote=at("quote"), state="not_possible", reason=at("reason")),
        ],
        findings=[Finding(code="OPTION_UNKNOWN", severity="warning", message=at("finding"), params={"value": "x"})],
        removals=["gone_0"],
        kept=["kept_0"],
        mappings=[FieldMapping(source=at("mapping"), target="b")],
        pii_fields=[at("personal")],
        credential_requirements=[at("credential")],
        capability=capability,
    )
    row = "conditions[0]"
    details = ShownPlan(
        values=[
            ShownValue(node_id="a", node=at("node"), param=at("field"), old=at("old")[:60], new=at("new")[:60]),
            ShownValue(node_id="b", node=at("node"), param="x", label=at("label"), new=f"{at('new')} {'long ' * 30}"),
            ShownValue(node_id="c", node=at("node"), param=f"{row}.value1", new=at("row")[:60].replace("\n", " ")),
            ShownValue(node_id="c", node=at("node"), param=f"{row}.value2", new="z"),
        ],
        removed=[NamedNode(node_id="gone_0", node_name="", label=at("removed"))],
        kept=[NamedNode(node_id="kept_0", node_name="", label=at("kept"))],
        allows=capability_words(capability),
        to_do=[at("placeholder")],
        simulated=[at("leads_to")],
        outline=[
            OutlineLine(node_id="a", title=at("title"), leads_to=[Branch(name=at("branch"), to=at("leads_to"))]),
            OutlineLine(node_id="b", title="B", purpose=at("purpose"), depth=1),
        ],
        names={"chatOpenAI_0": at("title")},
    )
    return wanted, details


def structure(markdown: str) -> list[tuple[Any, ...]]:
    """Blocks and marks of a text, without its words; the content of fenced texts is left out."""
    found: list[tuple[Any, ...]] = []
    for block in READER.parse(markdown):
        inner = [one.type for one in block.children or [] if one.type not in ("text", "text_special", "softbreak")]
        found.append((block.type, block.level, block.tag, *inner))
    return found


def bounded(said: Mapping[str, str]) -> dict[str, str]:
    # A value of one line and one of several are shown in different ways, and an empty one in words.
    return {place: text if text.strip() and in_markdown(text) else PLAIN for place, text in said.items()}


def of_shape(text: str) -> str:
    """A harmless text that is shown in the same way: as long, and of as many lines."""
    return "".join(char if char.isspace() else "a" for char in text)


@given(st.fixed_dictionaries(dict.fromkeys(PLACES, TEXTS)))
def test_p85_no_text_in_a_plan_is_read_as_its_markup(said: dict[str, str]) -> None:
    said = bounded(said)
    shown = plan_markdown(*plan_with(said))
    plain = {place: of_shape(text) for place, text in said.items()}  # as many words
    assert [one for one in structure(shown) if one[0] != "fence"] == [
        one for one in structure(plan_markdown(*plan_with(plain))) if one[0] != "fence"
    ]
    assert not any(mark in shown for mark in MARKS)


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("```", "a\\chatOpenAI_0"),
        ("(https://evil.example)", "a [b]chatOpenAI_0"),
        ("a [b]", "chatOpenAI_0(https://evil.example)"),
        ("a <", "chatOpenAI_0!-- b -->"),
    ],
)
def test_p85_a_title_in_place_of_an_id_joins_to_no_markup(title: str, text: str) -> None:
    words = dict.fromkeys(("placeholder", "criterion", "finding", "turn", "leads_to", "mapping", "personal"), text)
    assert structure(plan_markdown(*plan_with({"title": title, **words}))) == structure(plan_markdown(*plan_with({})))


@given(TEXTS)
def test_p85_no_text_in_a_question_is_read_as_its_markup(said: str) -> None:
    def asked(text: str) -> str:
        data = ClarificationData(questions=[text])
        return question_text(ClarificationInterrupt(id="i", message="Please answer.", data=data, options=[]))

    if in_markdown(said):
        assert structure(asked(said)) == structure(asked(PLAIN))
    assert not any(mark in asked(said) for mark in MARKS)


@given(TEXTS)
def test_a_text_in_markdown_reads_as_the_text(said: str) -> None:
    written = in_markdown(said)
    inline = [one for block in READER.parse(written) for one in block.children or []]
    assert {one.type for one in inline} <= {"text", "text_special"}
    read = "".join(one.content for one in inline)
    assert " ".join(read.split()) == " ".join(visible(said).split())


def test_p85_the_terminal_shows_no_control_characters(monkeypatch: Any) -> None:
    terminal = Console(file=(shown := StringIO()))
    monkeypatch.setattr(console, "out", lambda *, stderr=False: terminal)
    console.say("a\x1b[2Jb\u202ec")
    console.warn("a\x1b[2Jb\u202ec")
    console.fail("a\x1b[2Jb\u202ec", "a\x1b]8;;https://evil.example\x07")
    console.show_table({}, False, ("Name",), [("a\x1b[2Jb\u202ec",)])
    assert shown.getvalue()
    assert not any(mark in shown.getvalue() for mark in MARKS)
