"""Hosts that speak chat completions in their own ways: DeepSeek, Groq, Mistral, OpenRouter."""

from typing import Any, Final

from flowise_dev_agent.devkit.standin import openai as chat
from flowise_dev_agent.devkit.standin.protocol import Body, RecordedRequest
from tests.doors import rules
from tests.doors.peer import KEY, Door, Refusal, messages_of
from tests.doors.peers.openai import body
from tests.doors.subsets import openai_violations
from tests.doors.wires import mistral

_DEEPSEEK, _GROQ, _MISTRAL, _OPENROUTER = (
    "deepseek-v4-pro",
    "openai/gpt-oss-120b",
    "mistral-large-2512",
    "google/gemini-3-pro-preview",
)


def _settings(provider: str, model: str, address: str) -> dict[str, str]:
    name = provider.upper()
    return {"REASONING_MODEL": f"{provider}:{model}", f"{name}_API_KEY": KEY, f"{name}_BASE_URL": address}


# --- DeepSeek ---------------------------------------------------------------------------------------------------------


def _json_named(request: RecordedRequest) -> Refusal | None:
    # stagehand 1204: json_object wants the word in the prompt.
    form = request.body.get("response_format") or {}
    if form.get("type") != "json_object" or rules.says_json(request):
        return None
    return Refusal(
        "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.",
        code="invalid_request_error",
    )


DEEPSEEK: Final = Door(
    name="deepseek",
    model=_DEEPSEEK,
    wire=chat,
    path=r"/chat/completions$",
    settings=lambda address: _settings("deepseek", _DEEPSEEK, address),
    error=body,
    rules=(
        rules.wrong_key(Refusal("Authentication Fails, Your api key is invalid", 401, type="authentication_error")),
        # crewAI 5878, LibreChat 13366, modelparams.dev 29.
        rules.reasoning_returned(
            Refusal(
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
                code="invalid_request_error",
            ),
            lambda turn: bool(turn.get("reasoning_content")),
        ),
        # llm-exe 662, inspect_ai 4916.
        rules.response_types(
            Refusal("This response_format type is unavailable now", code="invalid_request_error"), "text", "json_object"
        ),
        _json_named,
        # litellm 31466: the thinking models reject a forced call.
        rules.no_forced_tool(Refusal("Thinking mode does not support this tool_choice", code="invalid_request_error")),
    ),
    thinks=True,
    holds=lambda request: False,
)


# --- Groq -------------------------------------------------------------------------------------------------------------


def _unstreamed_schema(request: RecordedRequest) -> Refusal | None:
    # langchain 23629, litellm 4804; console.groq.com/docs/structured-outputs: neither streams nor tools.
    if not request.stream or not request.body.get("response_format"):
        return None
    return Refusal("response_format` does not support streaming")


def _no_reasoning_back(request: RecordedRequest) -> Refusal | None:
    # req_llm 772: unknown fields of a turn are refused.
    for number, turn in enumerate(request.body.get("messages", [])):
        for name in ("reasoning_content", "reasoning_details"):
            if name in turn:
                place = f"'messages.{number}'"
                return Refusal(
                    f"{place} : for 'role:assistant' the following must be satisfied[({place} : property '{name}' is "
                    "unsupported)]"
                )
    return None


def _as_reasoning(answer: Body) -> None:
    # console.groq.com/docs/reasoning: the field is `reasoning`.
    for message in messages_of(answer):
        if told := message.pop("reasoning_content", None):
            message["reasoning"] = told


GROQ: Final = Door(
    name="groq",
    model=_GROQ,
    wire=chat,
    path=r"/chat/completions$",
    settings=lambda address: _settings("groq", _GROQ, address),
    error=body,
    rules=(
        rules.wrong_key(Refusal("Invalid API Key", 401, code="invalid_api_key")),
        # langchain 23629, vercel/ai 16540.
        rules.tools_with_schema(Refusal("json mode cannot be combined with tool/function calling")),
        _unstreamed_schema,
        _no_reasoning_back,
        rules.strict_format(
            openai_violations,
            lambda name, said: f"invalid JSON schema for response_format: '{name}': {said}",
            param="response_format",
        ),
    ),
    thinks=True,
    dress=_as_reasoning,
    holds=rules.strictly,
)


# --- Mistral ----------------------------------------------------------------------------------------------------------


def _flat(refusal: Refusal) -> dict[str, Any]:
    # langchain 21196, solbrowse 16: the fields stand on top.
    return {
        "object": "error",
        "message": refusal.message,
        "type": refusal.type,
        "param": refusal.param,
        "code": refusal.code,
    }


def _short_ids(request: RecordedRequest) -> Refusal | None:
    # pydantic-ai 9096: ids of calls are nine letters and digits.
    for turn in request.body.get("messages", []):
        ids = [call.get("id") or "" for call in turn.get("tool_calls") or []]
        for id_ in [*ids, *([turn["tool_call_id"]] if turn.get("tool_call_id") else [])]:
            if not (len(id_) == 9 and id_.isalnum()):
                return Refusal(f"Tool call id was {id_} but must be a-z, A-Z, 0-9, with a length of 9.", code="3280")
    return None


MISTRAL: Final = Door(
    name="mistral",
    model=_MISTRAL,
    wire=mistral,
    path=r"/v1/chat/completions$",
    settings=lambda address: _settings("mistral", _MISTRAL, address),
    error=_flat,
    rules=(
        rules.wrong_key(Refusal("Unauthorized", 401)),
        # OpenHands 8685, solbrowse 16.
        rules.empty_turn(Refusal("Assistant message must have either content or tool_calls, but not none.")),
        _short_ids,
        # litellm: extra inputs are not permitted there.
        rules.option("max_completion_tokens", Refusal("Extra inputs are not permitted: max_completion_tokens", 422)),
        rules.option("stream_options", Refusal("Extra inputs are not permitted: stream_options", 422)),
    ),
    holds=rules.strictly,
)


# --- OpenRouter -------------------------------------------------------------------------------------------------------


_SIGNED: Final = {
    "type": "reasoning.encrypted",
    "data": "c2lnbmVk",
    "id": "rs_1",
    "format": "google-gemini-v1",
    "index": 0,
}


def _passed_on(refusal: Refusal) -> dict[str, Any]:
    # evalstate/fast-agent 122, zed 36094: the code is the status; a backend's own words are in `raw`.
    return {"error": {"message": refusal.message, "code": refusal.status, **refusal.more}}


def _details(answer: Body) -> None:
    # openrouter.ai/docs/use-cases/reasoning-tokens, "Preserving reasoning blocks"; api-reference/overview: `provider`.
    answer["provider"] = "Google AI Studio"
    for choice, message in zip(answer["choices"], messages_of(answer), strict=True):
        choice["native_finish_reason"] = choice.get("finish_reason")
        if told := message.pop("reasoning_content", None):
            message["reasoning"] = told
            message["reasoning_details"] = [_SIGNED]


OPENROUTER: Final = Door(
    name="openrouter",
    model=_OPENROUTER,
    wire=chat,
    path=r"/api/v1/chat/completions$",
    settings=lambda address: _settings("openrouter", _OPENROUTER, f"{address}/api/v1"),
    error=_passed_on,
    rules=(
        rules.wrong_key(Refusal("No cookie auth credentials found", 401)),
        # The same page: what the backend signed goes back as it came.
        rules.reasoning_returned(
            Refusal(
                "Provider returned error",
                more={
                    "metadata": {
                        "raw": '{"error": {"code": 400, "message": "Function call is missing a thought_signature in '
                        'functionCall parts.", "status": "INVALID_ARGUMENT"}}',
                        "provider_name": "Google AI Studio",
                    }
                },
            ),
            lambda turn: bool(turn.get("reasoning_details")),
        ),
    ),
    thinks=True,
    dress=_details,
    # openrouter.ai/docs/features/provider-routing: without it a backend may leave the schema out, silently.
    holds=lambda request: bool((request.body.get("provider") or {}).get("require_parameters")),
)
