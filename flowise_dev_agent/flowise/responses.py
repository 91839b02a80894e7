"""Turns a response of Flowise into its JSON, or into the exception that says what went wrong.

Flowise has three JSON error shapes (`{"error": text}`, `{"message": text}`,
`{"statusCode", "success", "message", "stack"}`), answers 429 in plain text, answers unknown paths with its web page and
HTTP 200, and uses HTTP 500 for almost every mistake, "not found" included.
"""

import json
import re
from typing import Any

import httpx2

from flowise_dev_agent.errors import (
    FlowiseAuthError,
    FlowiseConnectionLostError,
    FlowiseError,
    FlowiseNotFoundError,
    FlowiseRateLimitedError,
    FlowiseRejectedError,
    FlowiseServerError,
    FlowiseTimeoutError,
    FlowiseUnexpectedResponseError,
)
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.texts import text

_MESSAGE_CHARS = 2000
#: Statuses by which proxies say that Flowise has not answered in time.
_LATE = frozenset({504, 524})
# Escapes that JSON can carry and Postgres cannot: NUL, and half of a surrogate pair.
_UNSTORABLE_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MISSING = re.compile(r"\b(?:Chatflow|Node|Document store|Document loader) \S+ not found", re.IGNORECASE)
# A flow that is protected by a key of its own, reported by a prediction with HTTP 500.
_PROTECTED_FLOW = re.compile(r"\bUnauthorized$")


def read_json(response: httpx2.Response, body: bytes, *, call: str, endpoint: str) -> Any:
    """The JSON of a successful response. `call` ("GET /chatflows") and `endpoint` go into error messages.

    Characters that no database row can hold (NUL, lone surrogates) are replaced by U+FFFD.

    Raises:
        FlowiseError: the subclass that fits the status or the content.
    """
    if not 200 <= response.status_code < 300:
        raise error_for(response, body, call=call, endpoint=endpoint)
    if "json" not in response.headers.get("content-type", ""):
        kind = response.headers.get("content-type", "").split(";")[0] or "?"
        odd = text("error.flowise_odd_no_json", kind=kind) if body else text("error.flowise_odd_empty")
        raise _unexpected(response, odd, call, endpoint)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        odd = text("error.flowise_odd_broken") if body else text("error.flowise_odd_empty")
        raise _unexpected(response, odd, call, endpoint) from None
    return storable(value) if _UNSTORABLE_ESCAPE.search(body) else value


def storable(value: Any) -> Any:
    """The same JSON value with NUL and lone surrogates replaced in every string."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def error_for(response: httpx2.Response, body: bytes, *, call: str, endpoint: str) -> FlowiseError:
    """The exception for a response that is not 2xx; its message quotes Flowise."""
    status = response.status_code
    said = flowise_message(body)
    kind, hint = _classify(status, said, call)
    if 300 <= status < 400:
        said = text("error.flowise_redirects", address=response.headers.get("location", "?"))
        hint = text("error.follow_redirect")
    words = said or text("verdict.no_explanation")
    return kind(
        text("error.flowise_answered", endpoint=endpoint, call=call, status=status, said=words),
        hint=hint,
        details={"status": status, "call": call, "flowise_message": said},
    )


def flowise_message(body: bytes) -> str:
    """Flowise's own words in an error body of any of its shapes, secrets masked; never its stack, at most 2000
    characters."""
    text = body.decode("utf-8", errors="replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        said = value.get("message") or value.get("error") or ""
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    elif text.lower().startswith(("<!doctype", "<html")):
        title = re.search(r"<title>([^<]{0,200})", text, re.IGNORECASE)
        text = f"a web page ({title.group(1).strip()})" if title else "a web page"
    return masked(str(storable(text)))[:_MESSAGE_CHARS]


def _classify(status: int, said: str, call: str) -> tuple[type[FlowiseError], str | None]:
    predicting = "/prediction/" in call
    if status == 401:
        return FlowiseAuthError, text("error.check_flowise_key")
    if status == 403:
        return FlowiseAuthError, text("error.give_permission")
    if status == 404 or (status == 500 and not predicting and _MISSING.search(said)):
        return FlowiseNotFoundError, None
    if status == 429:
        return FlowiseRateLimitedError, text("error.wait_little_try_again")
    if status >= 500:
        if predicting and _PROTECTED_FLOW.search(said):
            return FlowiseAuthError, text("error.flow_own_key")
        if status > 500 and not predicting:
            # Of a proxy: Flowise, which answers 500 itself, may be at work on the request.
            return FlowiseTimeoutError if status in _LATE else FlowiseConnectionLostError, None
        return FlowiseServerError, None
    if status < 400:
        return FlowiseUnexpectedResponseError, None
    return FlowiseRejectedError, None


def _unexpected(response: httpx2.Response, what: str, call: str, endpoint: str) -> FlowiseUnexpectedResponseError:
    return FlowiseUnexpectedResponseError(
        text("error.flowise_odd", endpoint=endpoint, call=call, what=what),
        hint=text("error.check_flowise_no_path"),
        details={"status": response.status_code, "call": call},
    )
