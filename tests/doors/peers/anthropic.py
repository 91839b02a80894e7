"""Anthropic, Claude on Amazon Bedrock, and the other models there, which Converse serves."""

from dataclasses import replace
from typing import Any, Final

from flowise_dev_agent.devkit.standin import anthropic as messages
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest
from tests.doors import rules
from tests.doors.model import is_look_up
from tests.doors.peer import KEY, Door, Refusal
from tests.doors.subsets import anthropic_violations
from tests.doors.wires import converse

_MODEL: Final = "claude-opus-5-5"
_ON_BEDROCK: Final = "eu.anthropic.claude-opus-5-5"
_SIGNER: Final = "AKIDEXAMPLE"
_NOVA: Final = "eu.amazon.nova-pro-v1:0"
_WINDOW, _LONGEST = 200_000, 128_000
_TYPES: Final = {401: "authentication_error", 404: "not_found_error"}


def _body(refusal: Refusal) -> dict[str, Any]:
    kind = _TYPES.get(refusal.status, refusal.type)
    return {"type": "error", "error": {"type": kind, "message": refusal.message}, "request_id": "req_011"}


def _aws_body(refusal: Refusal) -> dict[str, Any]:
    # langchain-aws 1141, vercel/ai 21364: Bedrock has a message and nothing else.
    return {"message": refusal.message}


def _format_of(request: RecordedRequest) -> dict[str, Any]:
    return (request.body.get("output_config") or {}).get("format") or {}


def _closed_format(request: RecordedRequest) -> Refusal | None:
    # veryfront-code 3921, req_llm 302: the subset holds always, there is no loose mode.
    found = anthropic_violations(_format_of(request).get("schema", {})) if _format_of(request) else []
    return Refusal(f"output_config.format.schema: {found[0]}") if found else None


def _no_sampling(request: RecordedRequest) -> Refusal | None:
    # docs/about-claude/models/migration-guide: newer models take no sampling arguments.
    for name in ("temperature", "top_p", "top_k"):
        if name in request.body:
            return Refusal(f"`{name}` is deprecated for this model.")
    return None


def _thinking_stays_on(request: RecordedRequest) -> Refusal | None:
    # dive 274: models that always think refuse to have it disabled.
    thinking = request.body.get("thinking") or {}
    if thinking.get("type") != "disabled":
        return None
    return Refusal('thinking: type "disabled" is not supported for this model.')


def _signed_thinking(request: RecordedRequest) -> Refusal | None:
    # docs/build-with-claude/extended-thinking: the last turn with calls begins with the thinking it came with.
    turns = [
        turn for turn in request.body["messages"] if turn["role"] == "assistant" and isinstance(turn["content"], list)
    ]
    for number, turn in enumerate(turns):
        kinds = [block["type"] for block in turn["content"]]
        if "tool_use" in kinds and kinds[0] not in ("thinking", "redacted_thinking"):
            return Refusal(
                f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                f"`{kinds[0]}`. When `thinking` is enabled, a final `assistant` message must start with a thinking "
                "block."
            )
    return None


def _blank_text(request: RecordedRequest) -> Refusal | None:
    # messages API: blank turns are refused.
    for number, turn in enumerate(request.body["messages"]):
        content = turn["content"]
        texts = [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
        if any(not text.strip() for text in texts) or not content:
            return Refusal(f"messages.{number}: text content blocks must contain non-whitespace text")
    return None


def _too_long(*, tokens: int, prompt: int, answer: int) -> str:
    return f"prompt is too long: {prompt} tokens > {tokens} maximum"


def _too_much(*, tokens: int, asked: int) -> str:
    return f"max_tokens: {asked} > {tokens}, which is the maximum allowed number of output tokens for {_MODEL}"


def _strict_tools(*, name: str, said: str) -> str:
    return f"tools.{name}.input_schema: {said}"


def _holds(request: RecordedRequest) -> bool:
    strict = (tool for tool in request.body.get("tools") or [] if tool.get("strict"))
    return bool(_format_of(request)) or any(not is_look_up(tool["name"]) for tool in strict)


_RULES: Final = (
    # oh-my-pi 12939, vercel/ai 21364, griptape 2351.
    rules.no_forced_tool(Refusal('tool_choice: type "tool" and "any" are not supported for this model.')),
    _no_sampling,
    _thinking_stays_on,
    _signed_thinking,
    _blank_text,
    _closed_format,
    rules.strict_tools(anthropic_violations, _strict_tools),
    # messages API, errors.
    rules.window(_WINDOW, _too_long, with_answer=False),
    rules.longest_answer(_LONGEST, _too_much),
    rules.as_the_stand_in,
)
ANTHROPIC: Final = Door(
    name="anthropic",
    model=_MODEL,
    wire=messages,
    path=r"/v1/messages$",
    settings=lambda address: {
        "REASONING_ENGINE": "claude",
        "REASONING_MODEL": _MODEL,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": address,
    },
    error=_body,
    rules=(rules.wrong_key(Refusal("invalid x-api-key", 401)), *_RULES),
    thinks=True,
    holds=_holds,
)
_WRONG_AWS_KEY = rules.wrong_key(Refusal("The security token included in the request is invalid.", 403))
BEDROCK: Final = replace(
    ANTHROPIC,
    name="bedrock",
    model=_ON_BEDROCK,
    path=r"/model/(?P<model>[^/]+)/(?P<way>invoke|invoke-with-response-stream)$",
    settings=lambda address: {
        "REASONING_ENGINE": "bedrock",
        "REASONING_MODEL": _ON_BEDROCK,
        "AWS_REGION": "eu-central-1",
        "AWS_BEARER_TOKEN_BEDROCK": KEY,
        "ANTHROPIC_BEDROCK_BASE_URL": address,
    },
    error=_aws_body,
    rules=(_WRONG_AWS_KEY, *_RULES),
    frames=messages.event_stream,
)


def _wrong_signer(request: RecordedRequest) -> Refusal | None:
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.
    if request.api_key.startswith(f"AWS4-HMAC-SHA256 Credential={_SIGNER}/"):
        return None
    return Refusal("The security token included in the request is invalid.", 403)


def _too_long_for_nova(*, tokens: int, prompt: int, answer: int) -> str:
    return "Input is too long for requested model."


def _too_much_for_nova(*, tokens: int, asked: int) -> str:
    return (
        f"The maximum tokens you requested exceeds the model limit of {tokens}. Try again with a maximum tokens value "
        f"that is lower than {tokens}."
    )


CONVERSE: Final = Door(
    name="bedrock converse",
    model=_NOVA,
    wire=converse,
    path=r"/model/(?P<model>[^/]+)/(?P<way>converse|converse-stream)$",
    settings=lambda address: {
        "REASONING_ENGINE": "bedrock",
        "REASONING_MODEL": _NOVA,
        "AWS_REGION": "eu-central-1",
        "ANTHROPIC_BEDROCK_BASE_URL": address,
    },
    # Its SDK sends a key by https only: here requests are signed.
    credentials={"AWS_ACCESS_KEY_ID": _SIGNER, "AWS_SECRET_ACCESS_KEY": KEY},
    error=_aws_body,
    rules=(
        _wrong_signer,
        # nova/latest/userguide/getting-started: the window, and the most that is written.
        rules.window(300_000, _too_long_for_nova, with_answer=False),
        rules.longest_answer(10_000, _too_much_for_nova),
    ),
    # The same guide, "Tool use": calls are written under a grammar.
    holds=lambda request: request.json_schema is not None or any(not is_look_up(tool.name) for tool in request.tools),
    frames=converse.frames,
)
