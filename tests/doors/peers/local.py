"""Servers on one's own machine: Ollama, LM Studio, vLLM, llama.cpp."""

from typing import Any, Final

from flowise_dev_agent.devkit.standin import openai as chat
from flowise_dev_agent.devkit.standin.protocol import Body, RecordedRequest
from tests.doors import rules
from tests.doors.peer import Door, Refusal
from tests.doors.peers.openai import body

#: What all of them load here: small enough that a whole session must fit, large enough that it can.
WINDOW: Final = 8_192
_QWEN: Final = "qwen3.5:9b"


def _by_schema(request: RecordedRequest) -> bool:
    return bool(request.json_schema)


def _settings(model: str, address: str) -> dict[str, str]:
    # No key: none of them asks for one.
    return {"REASONING_ENGINE": "openai", "REASONING_MODEL": model, "OPENAI_BASE_URL": f"{address}/v1"}


# --- Ollama -----------------------------------------------------------------------------------------------------------


def _no_thinking(request: RecordedRequest) -> Refusal | None:
    # openclaude 1371.
    effort = request.body.get("reasoning_effort")
    return Refusal(f'"{_QWEN}" does not support thinking') if effort not in (None, "none") else None


def _shown(_: Body) -> dict[str, Any]:
    # docs/api.md, "Show model information".
    return {
        "capabilities": ["completion", "tools"],
        "details": {"family": "qwen35", "parameter_size": "9B", "quantization_level": "Q4_K_M"},
        "model_info": {"general.architecture": "qwen35", "qwen35.context_length": 262_144},
        "parameters": "temperature 0.6",
    }


def _tags(_: Body) -> dict[str, Any]:
    return {"models": [{"name": _QWEN, "model": _QWEN, "size": 5_000_000_000, "details": {"family": "qwen35"}}]}


def _loaded(_: Body) -> dict[str, Any]:
    # docs/api.md, "List running models"; ollama 17889: the window in force stands only here.
    return {"models": [{"name": _QWEN, "model": _QWEN, "size": 6_000_000_000, "context_length": WINDOW}]}


OLLAMA: Final = Door(
    name="ollama",
    model=_QWEN,
    wire=chat,
    path=r"/v1/chat/completions$",
    settings=lambda address: {"REASONING_MODEL": f"ollama:{_QWEN}", "OLLAMA_BASE_URL": f"{address}/v1"},
    error=body,
    rules=(_no_thinking,),
    # ollama 11185 (a maintainer), 11037: with a format a call cannot be written.
    ignores_tools=_by_schema,
    holds=_by_schema,
    # llama.cpp PR 8180, which Ollama's grammars come from: measured.
    closes_objects=True,
    # ollama 8099, 17427: cut without a word; the usage tells.
    reads=WINDOW,
    pages={"/api/show": _shown, "/api/tags": _tags, "/api/ps": _loaded},
)


# --- LM Studio --------------------------------------------------------------------------------------------------------


def _string(refusal: Refusal) -> dict[str, Any]:
    # lmstudio-bug-tracker 307, openclaude 353: `error` is a text.
    return {"error": refusal.message}


def _keeps(*, tokens: int, prompt: int, answer: int) -> str:
    return (
        f"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: {prompt}>= "
        f"n_ctx: {tokens}). Try to load the model with a larger context length, or provide a shorter input."
    )


LM_STUDIO: Final = Door(
    name="lm studio",
    model="qwen/qwen3.5-9b",
    wire=chat,
    path=r"/v1/chat/completions$",
    settings=lambda address: _settings("qwen/qwen3.5-9b", address),
    error=_string,
    rules=(
        # lmstudio-bug-tracker 169, 189.
        rules.response_types(Refusal("'response_format.type' must be 'json_schema' or 'text'"), "json_schema", "text"),
        # openclaude 353, lmstudio-bug-tracker 237.
        rules.window(WINDOW, _keeps, with_answer=False),
    ),
    ignores_tools=_by_schema,
    holds=_by_schema,
    closes_objects=True,
    pages={
        # lmstudio.ai/docs/developer/rest/endpoints: its own list has the window that is loaded.
        "/api/v0/models": lambda _: {
            "object": "list",
            "data": [
                {
                    "id": "qwen/qwen3.5-9b",
                    "object": "model",
                    "state": "loaded",
                    "max_context_length": 262_144,
                    "loaded_context_length": WINDOW,
                }
            ],
        }
    },
)


# --- vLLM -------------------------------------------------------------------------------------------------------------


def _vllm_body(refusal: Refusal) -> dict[str, Any]:
    # vllm, entrypoints/openai/protocol.py, `ErrorResponse`.
    return {
        "error": {"message": refusal.message, "type": "BadRequestError", "param": refusal.param, "code": refusal.status}
    }


def _vllm_window(request: RecordedRequest) -> Refusal | None:
    # vllm 33418, MinerU 4868: the prompt first, then with the answer's limit.
    prompt, answer = rules.prompt_tokens(request), rules.answer_limit(request)
    if prompt > WINDOW:
        return Refusal(
            f"This model's maximum context length is {WINDOW} tokens. However, your request has {prompt} input tokens. "
            "Please reduce the length of the input messages.",
            param="input_tokens",
        )
    if prompt + answer > WINDOW:
        return Refusal(
            f"'max_tokens' or 'max_completion_tokens' is too large: {answer}. This model's maximum context length is "
            f"{WINDOW} tokens and your request has {prompt} input tokens ({answer} > {WINDOW} - {prompt}).",
            param="max_tokens",
        )
    return None


VLLM: Final = Door(
    name="vllm",
    model="Qwen/Qwen3.5-9B",
    wire=chat,
    path=r"/v1/chat/completions$",
    settings=lambda address: _settings("Qwen/Qwen3.5-9B", address),
    error=_vllm_body,
    rules=(_vllm_window,),
    # vllm 39929: the response format suppresses calls.
    ignores_tools=_by_schema,
    holds=_by_schema,
    # xgrammar compiles with strict_mode: measured.
    closes_objects=True,
    pages={
        # The OpenAI route, with the window beside the name.
        "/v1/models": lambda _: {
            "object": "list",
            "data": [{"id": "Qwen/Qwen3.5-9B", "object": "model", "owned_by": "vllm", "max_model_len": WINDOW}],
        },
        "/version": lambda _: {"version": "0.19.0"},
    },
)


# --- llama.cpp --------------------------------------------------------------------------------------------------------


def _llama_body(refusal: Refusal) -> dict[str, Any]:
    # llama.cpp PR 15780, textgen 7257.
    return {"error": {"code": refusal.status, "message": refusal.message, "type": refusal.type, **refusal.more}}


def _llama_window(request: RecordedRequest) -> Refusal | None:
    # Measured on a real server: max_tokens over the rest of the window is accepted.
    prompt = rules.prompt_tokens(request)
    if prompt <= WINDOW:
        return None
    return Refusal(
        f"request ({prompt} tokens) exceeds the available context size ({WINDOW} tokens), try increasing it",
        type="exceed_context_size_error",
        more={"n_prompt_tokens": prompt, "n_ctx": WINDOW},
    )


LLAMA_CPP: Final = Door(
    name="llama.cpp",
    model="tiny",
    wire=chat,
    path=r"/v1/chat/completions$",
    settings=lambda address: _settings("tiny", address),
    error=_llama_body,
    rules=(_llama_window,),
    # common/chat-auto-parser-generator.cpp, `build_parser`; measured: 0 of 20 calls, `required` included.
    ignores_tools=_by_schema,
    holds=_by_schema,
    closes_objects=True,
    pages={
        # tools/server/README.md: the window of a slot.
        "/props": lambda _: {"default_generation_settings": {"n_ctx": WINDOW}, "total_slots": 1, "model_path": "tiny"},
        "/v1/models": lambda _: {
            "object": "list",
            "data": [{"id": "tiny", "object": "model", "meta": {"n_ctx_train": 131_072}}],
        },
    },
)
