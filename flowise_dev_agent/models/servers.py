"""Model servers on the person's own machines: which one answers, and how much its model reads."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import httpx2

#: Servers that take tools and a schema only in separate requests, without a word; "other" may be anything.
ServerKind = Literal["ollama", "llama.cpp", "vllm", "lmstudio", "other"]
_SECONDS: Final = 1.0
_MOST_BYTES: Final = 2_000_000


class Server(NamedTuple):
    """Kind of a server and the window of a model in tokens, if it says so."""

    kind: ServerKind = "other"
    window: int | None = None


async def find_out(base_url: str, model: str, key: str | None = None) -> Server:
    """Ask a server by its own routes what it is. Takes at most a second; a server that knows none is "other"."""
    parts = urlsplit(base_url)
    root = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1"), "", ""))
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with asyncio.timeout(_SECONDS), httpx2.AsyncClient(trust_env=False, headers=headers) as client:
            props, shown, running, studio, version, models = await asyncio.gather(
                _json(client, "GET", f"{root}/props"),
                _json(client, "POST", f"{root}/api/show", {"model": model}),
                _json(client, "GET", f"{root}/api/ps"),
                _json(client, "GET", f"{root}/api/v0/models"),
                _json(client, "GET", f"{root}/version"),
                _json(client, "GET", f"{root}/v1/models"),
            )
    except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL):
        return Server()
    defaults = props.get("default_generation_settings")
    if isinstance(defaults, dict):
        return Server("llama.cpp", _number(defaults.get("n_ctx")))
    if "model_info" in shown or ("models" in running and "data" not in running):
        return Server("ollama", _of_ollama(shown, running, model))
    for entry in _entries(studio.get("data")):
        # A proxy may answer any path that ends so.
        if entry.get("id") == model and "max_context_length" in entry:
            return Server("lmstudio", _number(entry.get("loaded_context_length") or entry.get("max_context_length")))
    listed = [entry for entry in _entries(models.get("data")) if entry.get("id") == model]
    window = next((number for entry in listed if (number := _number(entry.get("max_model_len")))), None)
    if window and (isinstance(version.get("version"), str) or any(one.get("owned_by") == "vllm" for one in listed)):
        return Server("vllm", window)
    told = (entry.get("context_length") or entry.get("max_model_len") for entry in listed)
    return Server("other", next((number for value in told if (number := _number(value))), None))


def _of_ollama(shown: dict[str, Any], running: dict[str, Any], model: str) -> int | None:
    """Context of the loaded model, else the one that its parameters set; Ollama's default is not told."""
    for entry in _entries(running.get("models")):
        if model in (entry.get("model"), entry.get("name")) and (number := _number(entry.get("context_length"))):
            return number
    for line in str(shown.get("parameters") or "").splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx" and value.strip().isdigit():
            return int(value)
    return None


async def _json(
    client: httpx2.AsyncClient, method: str, url: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    try:
        response = await client.request(method, url, json=body)
        if not response.is_success or len(response.content) > _MOST_BYTES:
            return {}
        found = response.json()
    except (httpx2.HTTPError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _entries(value: Any) -> Iterator[dict[str, Any]]:
    yield from (entry for entry in value if isinstance(entry, dict)) if isinstance(value, list) else ()


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
