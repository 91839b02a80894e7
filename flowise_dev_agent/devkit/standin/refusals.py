"""Requests that OpenAI and Anthropic refuse, in their words.

The forms are those of their API references and of the types of their SDKs (openai 3.54, anthropic 2.12), and of the
errors that users report, by repository and number. Everything else is accepted.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from flowise_dev_agent.devkit.standin.protocol import Body, RecordedRequest

_IMAGES: Final = ("png", "jpeg", "jpg", "gif", "webp")
_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CLAUDE_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_OPENAI_ROLES: Final = ("system", "assistant", "user", "function", "tool", "developer")
_MOST_STOPS: Final = 4
_LEAST_BUDGET: Final = 1024
#: Reasoning models, and those of them that always reason; `gpt-5.x` reasons with an effort only.
_REASONS: Final = re.compile(r"^(?:o[134]|gpt-[5-9](?!-chat))")
_ALWAYS: Final = re.compile(r"^o[134]|^gpt-5(?:-mini|-nano|-pro)?(?:-\d{4}-\d\d-\d\d)?$")
#: Reasons with tools unless the effort is `none`; earlier ones only with an effort.
_NO_TOOLS: Final = re.compile(r"^gpt-(?:5\.(?:[6-9]|\d\d)|[6-9])")
_NO_TOOLS_WITH_EFFORT: Final = re.compile(r"^gpt-5\.[2-9]")
_ONE_SAMPLER: Final = re.compile(r"claude-(?:opus-4-[1-6]|(?:sonnet|haiku)-4-[5-9])")
_NO_SAMPLER: Final = re.compile(r"claude-(?:opus-4-[7-9]|opus-[5-9])")
_NO_PREFILL: Final = re.compile(r"claude-(?:(?:opus|sonnet)-4-[6-9]|(?:opus|sonnet|haiku)-[5-9])")


def refusal(request: RecordedRequest) -> str:
    """The provider's answer to a request that it does not take; '' to one that it takes."""
    if request.kind != "chat":
        return ""
    rules = _CLAUDE if request.provider == "anthropic" else _OPENAI
    if request.path.endswith("/responses"):
        rules = _RESPONSES
    return next((said for rule in rules for said in rule(request.model, request.body)), "")


# --- OpenAI, chat completions -----------------------------------------------------------------------------------------


def _messages(model: str, body: Body) -> Iterator[str]:
    messages = body.get("messages")
    if not messages:
        yield "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array."
        return
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
        if role not in _OPENAI_ROLES:
            named = ", ".join(f"'{one}'" for one in _OPENAI_ROLES)
            yield f"Invalid value: '{role}'. Supported values are: {named}."
        if role == "tool":
            # GhidrAssist 45, morphic 136.
            if message.get("tool_call_id") not in open_calls:
                yield (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'."
                )
            open_calls = [one for one in open_calls if one != message.get("tool_call_id")]
        elif open_calls:
            # promptflow 3130.
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
            )
        if calls is not None and not calls:
            # openai-node 1341.
            yield (
                f"Invalid 'messages[{number}].tool_calls': empty array. Expected an array with minimum length 1, but "
                "got an empty array instead."
            )
        open_calls += [str(call.get("id")) for call in calls or ()]
        if content is None and not calls and role != "function":
            yield f"Invalid value for 'content': expected a string, got null. (messages.[{number}].content)"
        for part in content if isinstance(content, list) else ():
            kind = _image_kind(part.get("image_url"))
            if kind and kind not in _IMAGES:
                yield (
                    "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
                    "['png', 'jpeg', 'gif', 'webp']."
                )


def _openai_tools(model: str, body: Body) -> Iterator[str]:
    tools = body.get("tools")
    if tools is None:
        return
    if not tools:
        # vllm 39780.
        yield "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead."
    for number, tool in enumerate(tools):
        function = tool.get("function") or {}
        name = str(function.get("name") or "")
        if tool.get("type") == "function" and not _TOOL_NAME.fullmatch(name):
            yield (
                f"Invalid 'tools[{number}].function.name': string does not match pattern. Expected a string that "
                "matches the pattern '^[a-zA-Z0-9_-]+$'."
            )
        if (parameters := function.get("parameters")) is not None:
            if parameters.get("type") != "object":
                yield (
                    f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got "
                    f"'type: \"{parameters.get('type')}\"'."
                )
            # OpenAI community 1357778, aichat 1049.
            for path in _arrays_without_items(parameters):
                yield f"Invalid schema for function '{name}': In context={path}, array schema missing items."


def _openai_settings(model: str, body: Body) -> Iterator[str]:
    stop = body.get("stop")
    if isinstance(stop, list) and len(stop) > _MOST_STOPS:
        yield f"Invalid 'stop': array too long. Expected an array with maximum length {_MOST_STOPS}."
    if body.get("temperature") is not None and not 0 <= body["temperature"] <= 2:
        yield "Invalid 'temperature': decimal above maximum value. Expected a value <= 2."
    form = (body.get("response_format") or {}).get("type")
    if form == "json_object" and "json" not in json.dumps(body.get("messages")).lower():
        yield ("'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")


def _reasoning(model: str, body: Body) -> Iterator[str]:
    if not _REASONS.match(model):
        return
    effort = body.get("reasoning_effort")
    if body.get("max_tokens") is not None:
        yield (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
    if _ALWAYS.match(model) or effort not in (None, "none"):
        if body.get("temperature") not in (None, 1):
            yield (
                f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. Only the "
                "default (1) value is supported."
            )
        # BittnerPierre 133, Flowise 5046, nextai-translator 1781, chatbox 2627.
        for name, neutral in (("stop", ()), ("top_p", (1,)), ("presence_penalty", (0,)), ("frequency_penalty", (0,))):
            if body.get(name) is not None and body[name] not in neutral:
                yield f"Unsupported parameter: '{name}' is not supported with this model."
    # openai-openapi 541, litellm 34569, livekit 7169.
    always = _NO_TOOLS.match(model) and effort != "none"
    if body.get("tools") and (always or (_NO_TOOLS_WITH_EFFORT.match(model) and effort not in (None, "none"))):
        yield (
            f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use "
            "function tools, use /v1/responses or set reasoning_effort to 'none'."
        )


def _responses(model: str, body: Body) -> Iterator[str]:
    if not body.get("input"):
        yield "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array."
    given = body.get("input")
    called: set[Any] = set()
    for item in given if isinstance(given, list) else ():
        if item.get("type") == "function_call":
            called.add(item.get("call_id"))
        if item.get("type") == "function_call_output" and item.get("call_id") not in called:
            yield f"No tool call found for function call output with call_id {item.get('call_id')}."
    for number, tool in enumerate(body.get("tools") or ()):
        if tool.get("type") == "function" and not _TOOL_NAME.fullmatch(str(tool.get("name") or "")):
            yield (
                f"Invalid 'tools[{number}].name': string does not match pattern. Expected a string that matches the "
                "pattern '^[a-zA-Z0-9_-]+$'."
            )
    if _ALWAYS.match(model):
        for name, neutral in (("temperature", 1), ("top_p", 1)):
            if body.get(name) not in (None, neutral):
                yield f"Unsupported parameter: '{name}' is not supported with this model."


_Rule = Callable[[str, Body], Iterable[str]]
_OPENAI: Final[Sequence[_Rule]] = (_messages, _openai_tools, _openai_settings, _reasoning)
_RESPONSES: Final[Sequence[_Rule]] = (_responses,)


# --- Anthropic, messages ----------------------------------------------------------------------------------------------


def _turns(model: str, body: Body) -> Iterator[str]:
    turns = body.get("messages")
    if not turns:
        yield "messages: at least one message is required"
        return
    called: list[str] = []
    for number, turn in enumerate(turns):
        role, content = turn.get("role"), turn.get("content")
        if role not in ("user", "assistant"):
            yield (
                f'messages: Unexpected role "{role}". The Messages API accepts a top-level `system` parameter, not '
                '"system" as an input message role.'
            )
        last_of_model = role == "assistant" and number == len(turns) - 1
        if not content and not last_of_model:
            yield (
                f"messages.{number}: all messages must have non-empty content except for the optional final assistant "
                "message"
            )
        blocks: list[Body] = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        for block in blocks:
            text = block.get("text")
            if block.get("type") == "text" and content and not (text or "").strip():
                # cai 182, fastllm 44.
                said = "contain non-whitespace text" if text else "be non-empty"
                yield f"messages: text content blocks must {said}"
            source: Body = block.get("source") or {}
            if block.get("type") == "image" and source.get("type") == "base64":
                kind = str(source.get("media_type")).removeprefix("image/")
                if kind not in _IMAGES or kind == "jpg":
                    yield (
                        f"messages.{number}.content: image.source.base64.media_type: Input should be 'image/jpeg', "
                        "'image/png', 'image/gif' or 'image/webp'"
                    )
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        # claude-code 6575, Anthropic.SDK 184.
        if missing := [one for one in called if one not in results]:
            yield (
                f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        if unknown := [one for one in results if one not in called]:
            yield (
                f"messages.{number}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {unknown[0]}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        called = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        if last_of_model and isinstance(content, str) and content != content.rstrip():
            yield "messages: final assistant content cannot end with trailing whitespace"
        if last_of_model and _NO_PREFILL.search(model):
            # opencode 13768.
            yield (
                "This model does not support assistant message prefill. The conversation must end with a user message."
            )
    system = body.get("system")
    for block in system if isinstance(system, list) else ():
        if not block.get("text"):
            yield "system: text content blocks must be non-empty"


def _claude_tools(model: str, body: Body) -> Iterator[str]:
    names = [str(tool.get("name")) for tool in body.get("tools") or () if "input_schema" in tool]
    for number, name in enumerate(names):
        if not _CLAUDE_TOOL_NAME.fullmatch(name):
            yield f"tools.{number}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
    if len({*names}) < len(names):
        yield "tools: Tool names must be unique."
    for number, tool in enumerate(body.get("tools") or ()):
        if "input_schema" in tool and tool["input_schema"].get("type") != "object":
            yield f"tools.{number}.custom.input_schema.type: Input should be 'object'"


def _claude_settings(model: str, body: Body) -> Iterator[str]:
    if body.get("max_tokens") is None:
        yield "max_tokens: Field required"
    temperature = body.get("temperature")
    if temperature is not None and not 0 <= temperature <= 1:
        # vercel/ai 10308.
        yield "temperature: range: 0..1"
    given = [name for name in ("temperature", "top_p", "top_k") if body.get(name) is not None]
    if given and _NO_SAMPLER.search(model):
        # py-gpt 184; docs/about-claude/models/migration-guide.
        yield f"`{given[0]}` is deprecated for this model."
    if {"temperature", "top_p"} <= {*given} and _ONE_SAMPLER.search(model):
        # litellm 15097, open-webui/pipelines 546.
        yield "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    if any(not str(one).strip() for one in body.get("stop_sequences") or ()):
        yield "stop_sequences: each stop sequence must contain non-whitespace"
    thinking: Body = body.get("thinking") or {}
    if thinking.get("type") == "enabled":
        # The types of the SDK: at least 1,024 tokens, which count toward `max_tokens`.
        budget = int(thinking.get("budget_tokens") or 0)
        if budget < _LEAST_BUDGET:
            yield f"thinking.enabled.budget_tokens: Input should be greater than or equal to {_LEAST_BUDGET}"
        if budget >= int(body.get("max_tokens") or 0):
            yield "`max_tokens` must be greater than `thinking.budget_tokens`."
        if temperature not in (None, 1):
            yield "`temperature` may only be set to 1 when thinking is enabled."


_CLAUDE: Final[Sequence[_Rule]] = (_claude_settings, _turns, _claude_tools)


# --- parts ------------------------------------------------------------------------------------------------------------


def _image_kind(image: Any) -> str:
    """Kind of an image in a data URL; '' for an address."""
    url = str(image.get("url") if isinstance(image, Mapping) else image or "")
    return url.removeprefix("data:image/").partition(";")[0].lower() if url.startswith("data:image/") else ""


def _arrays_without_items(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(schema, Mapping):
        if schema.get("type") == "array" and "items" not in schema:
            yield path
        for name, part in schema.items():
            yield from _arrays_without_items(part, (*path, str(name)))
    elif isinstance(schema, list):
        for part in schema:
            yield from _arrays_without_items(part, path)
