"""OpenAI: chat completions and responses, and the same models on Azure."""

from dataclasses import replace
from typing import Any, Final

from flowise_dev_agent.devkit.standin import openai as chat
from flowise_dev_agent.devkit.standin import responses
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest
from tests.doors import rules
from tests.doors.peer import KEY, Door, Refusal, Rule
from tests.doors.subsets import openai_violations

_WINDOW, _LONGEST = 272_000, 128_000
#: A reasoning model: the rules below are those of its family.
_MODEL: Final = "gpt-5.6-terra"


def body(refusal: Refusal) -> dict[str, Any]:
    """OpenAI's error body."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.type,
            "param": refusal.param,
            "code": refusal.code,
            **refusal.more,
        }
    }


def _reasons_with_tools(request: RecordedRequest) -> Refusal | None:
    # openai-openapi 541, webmcp-tools 417; joplin 16451: the default effort counts, too.
    if not request.tools or request.body.get("reasoning_effort") == "none":
        return None
    return Refusal(
        f"Function tools with reasoning_effort are not supported for {request.model} in /v1/chat/completions. To use "
        "function tools, use /v1/responses or set reasoning_effort to 'none'.",
        param="reasoning_effort",
    )


def _lacks_reasoning(request: RecordedRequest) -> Refusal | None:
    # rig 751, continue 11994: a call names the reasoning it came from.
    before = None
    for item in request.body["input"] if isinstance(request.body["input"], list) else ():
        if item.get("type") == "function_call" and item.get("id") and before not in ("reasoning", "function_call"):
            return Refusal(
                f"Item '{item['id']}' of type 'function_call' was provided without its required 'reasoning' item: "
                "'rs_1'.",
                param="input",
            )
        before = item.get("type", "message")
    return None


def _strict_text(request: RecordedRequest) -> Refusal | None:
    # The same subset as in chat completions (guides/structured-outputs, "Supported schemas").
    form = (request.body.get("text") or {}).get("format") or {}
    found = openai_violations(form.get("schema", {})) if form.get("strict") else []
    return _invalid_schema("text.format.schema", form.get("name"), found[0]) if found else None


def _invalid_schema(param: str, name: Any, said: str) -> Refusal:
    kind = "response_format" if "format" in param else "function"
    return Refusal(f"Invalid schema for {kind} '{name}': {said}", param=param, code="invalid_json_schema")


def _said(*, name: str, said: str) -> str:
    return f"Invalid schema for response_format '{name}': {said}"


def _said_of_tool(*, name: str, said: str) -> str:
    return f"Invalid schema for function '{name}': {said}"


def _too_long(*, tokens: int, prompt: int, answer: int) -> str:
    return (
        f"This model's maximum context length is {tokens} tokens. However, your messages resulted in {prompt} tokens. "
        "Please reduce the length of the messages."
    )


def _too_much(*, tokens: int, asked: int) -> str:
    return (
        f"max_tokens is too large: {asked}. This model supports at most {tokens} completion tokens, whereas you "
        f"provided {asked}."
    )


_WRONG_KEY = Refusal("Incorrect API key provided.", 401, code="invalid_api_key")
#: Both APIs.
_COMMON: tuple[Rule, ...] = (
    rules.wrong_key(_WRONG_KEY),
    # api-reference/chat: reasoning models have no sampling.
    rules.option(
        "temperature",
        Refusal(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is "
            "supported.",
            param="temperature",
            code="unsupported_value",
        ),
        lambda value: value == 1,
    ),
    # langchain 24058, the openai cookbook: the words of a prompt that is too long.
    rules.window(_WINDOW, _too_long, with_answer=False, param="messages", code="context_length_exceeded"),
    # api-reference/chat: an output limit above the model's is refused.
    rules.longest_answer(_LONGEST, _too_much, param="max_tokens", code="invalid_value"),
    # guides/function-calling, "Strict mode".
    rules.strict_tools(openai_violations, _said_of_tool, code="invalid_function_parameters", param="tools"),
)
_CHAT: tuple[Rule, ...] = (
    *_COMMON,
    # api-reference/chat: `max_tokens` is not compatible with reasoning models.
    rules.option(
        "max_tokens",
        Refusal(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
    ),
    # guides/structured-outputs, "Supported schemas".
    rules.strict_format(openai_violations, _said, code="invalid_json_schema", param="response_format"),
    _reasons_with_tools,
    rules.as_the_stand_in,
)

RESPONSES: Final = Door(
    name="openai responses",
    model=_MODEL,
    wire=responses,
    path=r"/v1/responses$",
    settings=lambda address: {
        "REASONING_MODEL": f"openai-responses:{_MODEL}",
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{address}/v1",
    },
    error=body,
    rules=(*_COMMON, _strict_text, _lacks_reasoning),
    thinks=True,
    holds=rules.strictly,
)
CHAT: Final = Door(
    name="openai",
    model=_MODEL,
    wire=chat,
    path=r"/v1/chat/completions$",
    settings=lambda address: {
        "REASONING_ENGINE": "openai",
        "REASONING_MODEL": _MODEL,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{address}/v1",
    },
    error=body,
    rules=_CHAT,
    # Chat completions hide the reasoning.
    holds=rules.strictly,
    beside=RESPONSES,
)
AZURE: Final = replace(
    CHAT,
    name="azure",
    # learn.microsoft.com/azure/ai-services/openai/reference: the deployment is in the path.
    path=r"/openai/(?:v1|deployments/(?P<model>[^/]+))/chat/completions$",
    settings=lambda address: {
        "REASONING_ENGINE": "azure",
        "REASONING_MODEL": _MODEL,
        "AZURE_OPENAI_ENDPOINT": address,
        "AZURE_OPENAI_API_KEY": KEY,
    },
    beside=replace(RESPONSES, path=r"/openai/(?:v1/)?responses$"),
)
