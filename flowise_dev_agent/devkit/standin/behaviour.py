"""Default replies of the stand-in: sensible for the flows that people try first.

The rules look only at the shape of a prompt (tools on offer, format instructions, context, history), so that any
flow of such a shape gets a fitting answer.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from flowise_dev_agent.devkit.standin.embeddings import words
from flowise_dev_agent.devkit.standin.protocol import JsonSchema, RecordedRequest, Reply, StandInToolCall, ToolSpec
from flowise_dev_agent.schemas.base import JsonObject

_CONDENSE = re.compile(r"standalone question:?\s*$", re.IGNORECASE)


_FOLLOW_UP = re.compile(r"Follow Up (?:Input|question): *(.*?)\s*Standalone question:?\s*$", re.IGNORECASE | re.DOTALL)


# Prompts that wrap the user's question; it is the last group that matches.
_WRAPPERS = (
    re.compile(r"USER'S INPUT\s*-+\s*Here is the user's input[^\n]*:\s*(.*)$", re.DOTALL),
    re.compile(r"\bQuestion: *(.*?)\s*(?:Helpful Answer|Answer|Thought):?\s*$", re.DOTALL | re.IGNORECASE),
)


_FORMAT_INSTRUCTIONS = re.compile(r"\s*You must format your output as a JSON value.*$", re.DOTALL)


_CONTEXTS = (
    re.compile(r"-{6,}\s*\n(.*?)\n\s*-{6,}", re.DOTALL),
    re.compile(r"<context>(.*?)</context>", re.DOTALL | re.IGNORECASE),
    re.compile(r"\bcontext\b[^\n]*\n\n(.*?)\n\n\s*Question:", re.DOTALL | re.IGNORECASE),
    re.compile(r"\bcontext:\s*(.*?)(?:\n\s*Question:|$)", re.DOTALL | re.IGNORECASE),
)


_TAG = re.compile(r"</?doc[^>]*>")


_HUMAN_LINE = re.compile(r"^(?:Human|User): *(.+)$", re.MULTILINE)


_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|$)")


_COMMON = frozenset(
    words(
        "a an and are at be by can did do does for from have how i in is it me my of on or our say the this to was we"
    )
    + words("what when where which who will with you your tell about there many much")
)


def is_condense_prompt(request: RecordedRequest) -> bool:
    """True for the prompt that turns a follow-up into a standalone question."""
    return bool(_CONDENSE.search(request.last_user))


def question_of(request: RecordedRequest) -> str:
    """The user's last question, without the template around it."""
    text = request.last_user
    if follow_up := _FOLLOW_UP.search(text):
        return follow_up.group(1).strip()
    if text.startswith("TOOL RESPONSE"):
        # The conversational agent sends its observation as a user turn; the question comes before it.
        asked = [message.text for message in request.messages if message.role == "user"]
        text = next((turn for turn in reversed(asked) if not turn.startswith("TOOL RESPONSE")), text)
    for wrapper in _WRAPPERS:
        if found := wrapper.search(text):
            text = found.group(1)
            break
    return _FORMAT_INSTRUCTIONS.sub("", text).strip()


def earlier_questions(request: RecordedRequest, question: str) -> list[str]:
    """The user's questions before `question`, oldest first: earlier turns, or "Human:" lines in a prompt."""
    turns = [message.text.strip() for message in request.messages if message.role == "user"][:-1]
    if not turns:
        turns = [line.strip() for line in _HUMAN_LINE.findall(request.prompt)]
    return [turn for turn in turns if turn and turn != question]


def context_of(request: RecordedRequest) -> str:
    """The documents that a retrieval prompt carries; empty for other prompts."""
    for text in (request.system, request.last_user):
        if "context" in text.lower():
            for pattern in _CONTEXTS:
                if (found := pattern.search(text)) and (documents := _TAG.sub(" ", found.group(1)).strip()):
                    return documents
    return ""


def relevant_sentences(text: str, question: str, count: int = 2) -> str:
    """The sentences of `text` that share most words with `question`, in their order; the first ones if none does."""
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(text) if sentence.strip()]
    asked = set(words(question)) - _COMMON
    scores = [len(asked & set(words(sentence))) for sentence in sentences]
    best = sorted(range(len(sentences)), key=lambda index: (-scores[index], index))[:count]
    if best and scores[best[0]] > 0:
        best = [index for index in best if 2 * scores[index] > scores[best[0]]]
    return " ".join(sentences[index] for index in sorted(best))


_PROPER_NOUN = re.compile(r"\b[A-Z][\w'-]+")


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


_MAX_DEPTH = 8


def sample(schema: JsonSchema, text: str) -> Any:
    """A value that fits `schema`. Strings take the names in `text` one by one, numbers its numbers."""
    names, numbers = iter(_PROPER_NOUN.findall(text)), iter(_NUMBER.findall(text))
    return _Sampler(schema, text, names, numbers).value(schema, 0)


class _Sampler:
    def __init__(self, root: JsonSchema, text: str, names: Iterator[str], numbers: Iterator[str]) -> None:
        self._root = root
        self._text = " ".join(text.split())[:200] or "stand-in"
        self._names = names
        self._numbers = numbers

    def value(self, schema: Any, depth: int) -> Any:
        schema = self._resolve(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][0]
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                options = [option for option in schema[key] if self._resolve(option).get("type") != "null"]
                return self.value(options[0], depth + 1) if options else None
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((item for item in kind if item != "null"), "null")
        return self._of_kind(kind, schema, depth)

    def _of_kind(self, kind: str, schema: JsonSchema, depth: int) -> Any:
        if kind == "object":
            properties = schema.get("properties", {})
            wanted = properties if depth < _MAX_DEPTH else schema.get("required", [])
            return {name: self.value(properties.get(name, {}), depth + 1) for name in wanted}
        if kind == "array":
            count = max(int(schema.get("minItems", 0)), 1 if depth < _MAX_DEPTH else 0)
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind in ("integer", "number"):
            return self._number(kind, schema)
        if kind == "boolean":
            return True
        if kind == "null":
            return None
        text = next(self._names, self._text)
        return text.ljust(int(schema.get("minLength", 0)), ".")[: int(schema.get("maxLength", 10_000))]

    def _number(self, kind: str, schema: JsonSchema) -> float | int:
        number = float(next(self._numbers, "1"))
        number = max(number, float(schema.get("minimum", -math.inf)))
        number = min(number, float(schema.get("maximum", math.inf)))
        return int(number) if kind == "integer" or number.is_integer() else number

    def _resolve(self, schema: Any) -> JsonSchema:
        if not isinstance(schema, dict):
            return {}
        if "$ref" in schema:
            target: Any = self._root
            for part in str(schema["$ref"]).removeprefix("#/").split("/"):
                target = target.get(part, {})
            return self._resolve(target)
        if schema.get("allOf"):
            merged: JsonSchema = {}
            for part in schema["allOf"]:
                merged |= self._resolve(part)
            return merged
        return schema


_ASKS_FOR_HISTORY = re.compile(
    r"\b(?:did i (?:just )?(?:ask|say|tell|mention)|my (?:last|previous|first) (?:question|message)|remember)\b",
    re.IGNORECASE,
)
_ASKS_FOR_TIME = re.compile(r"\b(?:date|time|day|today|tomorrow|year|month|clock)\b", re.IGNORECASE)
_QUESTION = re.compile(
    r"\?|^\s*(?:what|who|when|where|which|how|why|does|is|are|can|tell|find|search)\b", re.IGNORECASE
)
_TIME_TOOL = re.compile(r"date|time|clock", re.IGNORECASE)
_CALCULATOR_TOOL = re.compile(r"calc|math|arithmetic", re.IGNORECASE)
_SEARCH_TOOL = re.compile(r"search|retriev|document|knowledge|lookup|question|information|find", re.IGNORECASE)

_OPERATORS = {
    "times": "*",
    "multiplied by": "*",
    "x": "*",
    "×": "*",
    "plus": "+",
    "minus": "-",
    "divided by": "/",
    "÷": "/",
    "over": "/",
    "to the power of": "^",
}
_WORD_OPERATOR = re.compile(
    r"(?<=[\d)])\s*(" + "|".join(sorted(map(re.escape, _OPERATORS), key=len, reverse=True)) + r")\s*(?=[\d(-])",
    re.IGNORECASE,
)
_EXPRESSION = re.compile(r"[\d(][\d\s.()+\-*/^%]*[+\-*/^%][\d\s.()+\-*/^%]*[\d)]")

_SCHEMA_BLOCK = re.compile(r"```json\s*(\{.*?\})\s*```", re.DOTALL)
_ACTION_FORMAT = '"action": "Final Answer"'
#: The condition node of an agentflow lists its scenarios.
_SCENARIOS = re.compile(r'"scenarios":\s*(\["[^\]]*\])')
#: A refused text beside a message: the moderation by a model.
_SIMILAR = re.compile(r"Only return Yes or No\.\nFirst sentence: (.*)\nSecond sentence: (.*)", re.DOTALL)
_SEPARATOR = re.compile(r'items separated by "([^"]+)"')


def default_reply(request: RecordedRequest) -> Reply:
    """The reply to a chat request that no script matches."""
    question = question_of(request)
    if is_condense_prompt(request):
        return Reply(question)
    if similar := _SIMILAR.search(question):
        message, refused = (set(words(part)) - _COMMON for part in similar.groups())
        return Reply("Yes" if refused and refused <= message else "No")
    scenarios = _SCENARIOS.search(question)
    if scenarios:
        return Reply(json={"output": _nearest(scenarios.group(1), question[: scenarios.start()])})
    if request.json_schema is not None:
        return Reply(json=sample(request.json_schema, question) if request.json_schema else {"answer": question})
    if request.forced_tool:
        return Reply(tool_calls=(_forced_call(request, question),))
    if request.messages and request.messages[-1].role == "tool":
        return Reply(_from_tools(request, question))
    call = choose_tool(request.tools, question)
    if call is not None:
        return Reply(tool_calls=(call,))
    return Reply(_in_format(request, question))


def _nearest(listed: str, question: str) -> str:
    """The scenario that shares most words with the question; the first one if several do."""
    asked = set(re.findall(r"\w{4,}", question.lower()))
    names: list[str] = json.loads(listed)
    return max(names, key=lambda name: len(asked & set(re.findall(r"\w{4,}", name.lower()))))


def choose_tool(tools: Sequence[ToolSpec], question: str) -> StandInToolCall | None:
    """The tool call that the question asks for, by the tools' names and descriptions; None to answer directly."""
    expression = arithmetic(question)
    for tool in tools:
        if expression and _CALCULATOR_TOOL.search(tool.name):
            return StandInToolCall(tool.name, _arguments(tool, expression))
        if _ASKS_FOR_TIME.search(question) and _TIME_TOOL.search(tool.name):
            return StandInToolCall(tool.name, _arguments(tool, question))
    if _QUESTION.search(question) and not _ASKS_FOR_HISTORY.search(question):
        for tool in tools:
            if _SEARCH_TOOL.search(f"{tool.name} {tool.description}") and not _CALCULATOR_TOOL.search(tool.name):
                return StandInToolCall(tool.name, _arguments(tool, question))
    return None


def arithmetic(text: str) -> str:
    """The arithmetic expression in `text` ("12 times 14" -> "12*14"), or an empty string."""
    symbols = _WORD_OPERATOR.sub(lambda match: _OPERATORS[match.group(1).lower()], text)
    found = _EXPRESSION.search(symbols)
    return re.sub(r"\s+", "", found.group()) if found else ""


def _arguments(tool: ToolSpec, text: str) -> JsonObject:
    """Arguments that fit the tool's schema, with `text` in its required (else its first) string."""
    properties = tool.schema.get("properties", {})
    required = tool.schema.get("required", list(properties)[:1])
    strings = [name for name in required if properties.get(name, {}).get("type", "string") == "string"]
    filled = sample({"type": "object", "properties": {name: properties.get(name, {}) for name in required}}, text)
    return {**filled, **dict.fromkeys(strings[:1], text)}


def _forced_call(request: RecordedRequest, question: str) -> StandInToolCall:
    for tool in request.tools:
        if request.forced_tool in ("*", tool.name):
            return StandInToolCall(tool.name, sample({"type": "object", **tool.schema}, question))
    return StandInToolCall(request.forced_tool)


def _from_tools(request: RecordedRequest, question: str) -> str:
    results: list[str] = []
    for message in reversed(request.messages):
        if message.role != "tool":
            break
        results.insert(0, message.text.strip())
    return " ".join(_from_result(result, question) for result in results)


def _from_result(result: str, question: str) -> str:
    if len(result) > 60 and not result.startswith(("{", "[")):
        return relevant_sentences(result, question)
    return f"The result is {result}" if result else "The tool gave no result."


def _in_format(request: RecordedRequest, question: str) -> str:
    """The plain answer in the form that the prompt's format instructions require, if there are any."""
    prompt = request.prompt
    answer = _answer(request, question)
    if _ACTION_FORMAT in prompt:
        action = _action(request, question, answer)
        return f"```json\n{json.dumps(action, ensure_ascii=False)}\n```"
    if "JSON Schema" in prompt and (blocks := _SCHEMA_BLOCK.findall(prompt)):
        try:
            schema = json.loads(blocks[-1])
        except ValueError:
            return answer
        return f"```json\n{json.dumps(sample(schema, _payload(question)), ensure_ascii=False)}\n```"
    if "list of comma separated values" in prompt:
        return "alpha, beta, gamma"
    if separated := _SEPARATOR.search(prompt):
        return separated.group(1).join(("alpha", "beta", "gamma"))
    if "numbered list with each item on a new line" in prompt:
        return "1. alpha\n2. beta\n3. gamma"
    if "<final_answer>" in prompt:
        return f"<final_answer>{answer}</final_answer>"
    if "Final Answer:" in prompt:
        return f"I now know the final answer\nFinal Answer: {answer}"
    return answer


def _payload(question: str) -> str:
    """The filled-in part of a template such as "Extract the person from: {text}"; all of it if that is unclear."""
    instruction, colon, rest = question.partition(":")
    return rest.strip() if colon and rest.strip() and ":" not in rest and "\n" not in instruction else question


def _action(request: RecordedRequest, question: str, answer: str) -> dict[str, str]:
    """The JSON action of LangChain's conversational agent: a tool by its name in the prompt, or the final answer."""
    observed = re.search(r"TOOL RESPONSE:\s*-+\s*(.*?)\s*USER'S INPUT", request.last_user, re.DOTALL)
    if observed:
        return {"action": "Final Answer", "action_input": _from_result(observed.group(1), question)}
    listing = re.search(r"tools the human can use are:\s*(.*?)\s*RESPONSE FORMAT", request.prompt, re.DOTALL)
    lines = listing.group(1).splitlines() if listing else []
    tools = [
        ToolSpec(name.strip(), description, {"properties": {"input": {"type": "string"}}, "required": ["input"]})
        for name, separator, description in (line.partition(":") for line in lines)
        if separator
    ]
    call = choose_tool(tools, question)
    if call is not None:
        return {"action": call.name, "action_input": str(call.arguments["input"])}
    return {"action": "Final Answer", "action_input": answer}


def _answer(request: RecordedRequest, question: str) -> str:
    if _ASKS_FOR_HISTORY.search(question):
        before = earlier_questions(request, question)
        return f'You asked: "{before[-1]}"' if before else "You have not asked anything before."
    context = context_of(request)
    if context:
        return relevant_sentences(context, question)
    return f'This is the model stand-in. You said: "{question}"'
