"""Google's Gemini: its own API, and the endpoint that speaks chat completions."""

from typing import Any, Final

from flowise_dev_agent.devkit.standin import openai as chat
from flowise_dev_agent.devkit.standin.protocol import Body, RecordedRequest
from tests.doors import rules
from tests.doors.peer import KEY, Door, Refusal, messages_of
from tests.doors.wires import gemini

_MODEL: Final = "gemini-3.5-pro"
_WINDOW: Final = 1_048_576
_STATES: Final = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}


def _body(refusal: Refusal) -> dict[str, Any]:
    return gemini.error(refusal.status, refusal.message, _STATES.get(refusal.status, "INTERNAL"), **refusal.more)


def _listed(refusal: Refusal) -> list[Any]:
    # continue 8785, opensquilla 225: the compatible endpoint puts it into a list.
    return [_body(refusal)]


def _unsigned(name: str, position: int) -> Refusal:
    return Refusal(
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
        f"call `default_api:{name}` , position {position}. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )


def _signed_calls(request: RecordedRequest) -> Refusal | None:
    # ai.google.dev/gemini-api/docs/thought-signatures: the first call of each step.
    for number, item in enumerate(request.body.get("contents", []), start=1):
        calls = [part for part in item.get("parts") or [] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            return _unsigned(calls[0]["functionCall"]["name"], number)
    return None


def _signed_tool_calls(request: RecordedRequest) -> Refusal | None:
    # continue 8785, Antigravity-Manager 1513: the same rule, the signature in `extra_content`.
    for number, turn in enumerate(request.body.get("messages", []), start=1):
        for call in (turn.get("tool_calls") or [])[:1]:
            if not ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature"):
                return _unsigned(call["function"]["name"], number)
    return None


def _sign(answer: Body) -> None:
    for message in messages_of(answer):
        message.pop("reasoning_content", None)
        for call in message.get("tool_calls") or []:
            if "id" in call:
                call["extra_content"] = {"google": {"thought_signature": gemini.SIGNATURE}}


def _too_long(*, tokens: int, prompt: int, answer: int) -> str:
    return f"The input token count ({prompt}) exceeds the maximum number of tokens allowed ({tokens})."


# openai-scala-client 109.
_WRONG_KEY = Refusal(
    "API key not valid. Please pass a valid API key.",
    more={
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            }
        ]
    },
)
GEMINI: Final = Door(
    name="gemini",
    model=_MODEL,
    wire=gemini,
    path=r"/v1beta/models/(?P<model>[^/:]+):(?P<way>generateContent|streamGenerateContent)$",
    settings=lambda address: {
        "REASONING_MODEL": f"google:{_MODEL}",
        "GOOGLE_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": address,
    },
    error=_body,
    rules=(rules.wrong_key(_WRONG_KEY), _signed_calls, rules.window(_WINDOW, _too_long, with_answer=False)),
    thinks=True,
    holds=lambda request: request.json_schema is not None,
)
COMPATIBLE: Final = Door(
    name="gemini compatible",
    model=_MODEL,
    wire=chat,
    path=r"/v1beta/openai/chat/completions$",
    settings=lambda address: {
        "REASONING_ENGINE": "openai",
        "REASONING_MODEL": _MODEL,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{address}/v1beta/openai",
    },
    error=_listed,
    rules=(rules.wrong_key(_WRONG_KEY), _signed_tool_calls, rules.window(_WINDOW, _too_long, with_answer=False)),
    thinks=True,
    dress=_sign,
    holds=lambda request: request.json_schema is not None,
)
