"""What the stand-in answers without a script, by the shape of the prompt."""

import json
import re
from typing import Any

import pytest

from flowise_dev_agent.devkit.standin import RecordedRequest, Reply, StandInMessage, StandInToolCall, ToolSpec
from flowise_dev_agent.devkit.standin.behaviour import arithmetic, default_reply, sample

INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
TOOLS = (
    ToolSpec("calculator", "Useful for arithmetic", INPUT),
    ToolSpec("current_date_time", "Useful to get current day, date and time.", {"type": "object", "properties": {}}),
    ToolSpec(
        "handbook", "Searches the company handbook", {"type": "object", "properties": {"query": {"type": "string"}}}
    ),
)


def reply_to(*turns: str | StandInMessage, tools: tuple[ToolSpec, ...] = (), **options: Any) -> Reply:
    messages = tuple(turn if isinstance(turn, StandInMessage) else StandInMessage("user", turn) for turn in turns)
    return default_reply(RecordedRequest("openai", "chat", "/", "m", {}, messages=messages, tools=tools, **options))


def test_plain_question_is_echoed_as_a_stand_in() -> None:
    text = reply_to("I cannot log in to my account").text
    assert "stand-in" in text
    assert "I cannot log in to my account" in text


def test_history_is_quoted_when_asked_for() -> None:
    with_memory = reply_to("I cannot log in", StandInMessage("assistant", "Oh."), "What did I just ask you?").text
    assert with_memory == 'You asked: "I cannot log in"'
    assert reply_to("What did I just ask you?").text == "You have not asked anything before."


@pytest.mark.parametrize(
    ("question", "expression"),
    [
        ("What is 12 times 14?", "12*14"),
        ("compute (3 + 4) * 2 please", "(3+4)*2"),
        ("7 divided by 2", "7/2"),
        ("what is 2 to the power of 8", "2^8"),
        ("3 x 5", "3*5"),
        ("I have 3 apples", ""),
        ("call me at 10.", ""),
    ],
)
def test_arithmetic_is_found(question: str, expression: str) -> None:
    assert arithmetic(question) == expression


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("What is 12 times 14?", StandInToolCall("calculator", {"input": "12*14"})),
        ("What day is it today?", StandInToolCall("current_date_time", {})),
        (
            "What does the handbook say about holidays?",
            StandInToolCall("handbook", {"query": "What does the handbook say about holidays?"}),
        ),
        ("Hello", None),
    ],
)
def test_the_tool_that_the_question_asks_for_is_called(question: str, call: StandInToolCall | None) -> None:
    reply = reply_to(question, tools=TOOLS)
    assert reply.tool_calls == ((call,) if call else ())
    if call is None:
        assert reply.text


def test_tool_results_become_the_answer() -> None:
    called = StandInMessage("assistant", "", (StandInToolCall("calculator", {"input": "12*14"}),))
    assert (
        reply_to("What is 12 times 14?", called, StandInMessage("tool", "168"), tools=TOOLS).text == "The result is 168"
    )
    document = "The office opens at nine. " * 20 + "Employees have 28 days of holidays. Lunch is free."
    answer = reply_to("How many holidays do I have?", called, StandInMessage("tool", document), tools=TOOLS).text
    assert answer == "Employees have 28 days of holidays."


def test_context_in_the_system_prompt_is_the_source_of_the_answer() -> None:
    system = StandInMessage(
        "system",
        "Using the provided context, answer.\n------------\n<doc id='0'>Shipping is free. You have 30 days to return "
        "a product.</doc>\n------------\nREMEMBER: no made-up answers.",
    )
    assert (
        reply_to(system, "How many days do I have to return a product?").text == "You have 30 days to return a product."
    )
    assert reply_to(system, "What does the text say?").text.startswith("Shipping is free.")


def test_context_in_the_question_prompt_is_the_source_too() -> None:
    prompt = "Use these pieces of context to answer.\n\nCats purr. Dogs bark.\n\nQuestion: Why purr?\nHelpful Answer:"
    assert reply_to(prompt).text == "Cats purr."


def test_follow_up_is_condensed_to_itself() -> None:
    prompt = "Chat History:\nHuman: hi\nFollow Up Input: And shipping?\nStandalone question:"
    assert reply_to(prompt).text == "And shipping?"


def test_format_instructions_get_fitting_json() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "number"}}}
    prompt = (
        "Extract the person from: Maria is 31 and lives in Lisbon\n"
        "You must format your output as a JSON value that adheres to a given "
        f'"JSON Schema" instance.\n```json\n{json.dumps(schema)}\n```\n'
    )
    text = reply_to(prompt).text
    assert json.loads(re.search(r"```json\n(.*)\n```", text).group(1)) == {"name": "Maria", "age": 31}


def conversational(question: str) -> str:
    return (
        "TOOLS\n------\nThe tools the human can use are:\n\ncalculator: Useful for sums\n\n"
        "RESPONSE FORMAT INSTRUCTIONS\n"
        '{"action": "Final Answer", "action_input": string}\nUSER\'S INPUT\n--------------------\nHere is the user\'s '
        f"input (remember to respond with a markdown code snippet of a json blob, and NOTHING else):\n\n{question}"
    )


def test_conversational_agent_gets_an_action() -> None:
    def action(*turns: str | StandInMessage) -> dict[str, str]:
        return json.loads(reply_to(*turns).text.removeprefix("```json\n").removesuffix("\n```"))

    final = action("earlier words", StandInMessage("assistant", "ok"), conversational("What did I just ask you?"))
    assert final == {"action": "Final Answer", "action_input": 'You asked: "earlier words"'}
    assert action(conversational("12 times 14")) == {"action": "calculator", "action_input": "12*14"}
    observed = "TOOL RESPONSE:\n---------------------\n168\n\nUSER'S INPUT\n--------------------\n\nOkay, so what now?"
    done = action(conversational("12 times 14"), StandInMessage("assistant", "{}"), observed)
    assert done == {"action": "Final Answer", "action_input": "The result is 168"}


@pytest.mark.parametrize(
    ("instructions", "start"),
    [
        ("Your response should be a list of comma separated values, eg: `foo, bar`", "alpha, beta"),
        ('Your response should be a list of 3 items separated by "|" (eg: `foo| bar`)', "alpha|beta"),
        ("Your response should be a numbered list with each item on a new line.", "1. alpha"),
        ("Use Final Answer: when done", "I now know the final answer\nFinal Answer: "),
    ],
)
def test_other_formats(instructions: str, start: str) -> None:
    assert reply_to(f"Name colours. {instructions}").text.startswith(start)


def test_samples_fit_nested_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {
            "kind": {"enum": ["a", "b"]},
            "items": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/item"}},
            "maybe": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 5}]},
            "flag": {"type": "boolean"},
            "fixed": {"const": 3},
            "long": {"type": "string", "maxLength": 3},
            "both": {"type": ["null", "number"], "maximum": 0.5},
        },
        "$defs": {"item": {"type": "object", "properties": {"next": {"$ref": "#/$defs/item"}}}},
    }
    value = sample(schema, "Anna 2")
    assert value["kind"] == "a"
    assert len(value["items"]) == 2
    assert value["maybe"] == 5
    assert value["flag"] is True
    assert value["fixed"] == 3
    assert value["long"] == "Ann"
    assert value["both"] == 0.5
