"""Errors of providers as errors for people."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelTimeoutError,
)

from flowise_dev_agent.errors import (
    ModelAuthError,
    ModelContextError,
    ModelOutputError,
    ModelRefusedError,
    ModelUnavailableError,
    ReasoningError,
)
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.usage import Usage

#: Provider messages for a prompt that is too long, and for one that a filter stopped.
_TOO_LONG: Final = re.compile(
    r"context[ _](?:length|window|size|limit)|(?:prompt|input) is too long|too many (?:input )?tokens", re.IGNORECASE
)
_FILTERED: Final = re.compile(r"content[ _](?:filter|management policy|policy)", re.IGNORECASE)
#: Words and codes for a wrong key where the status is that of a malformed request (Google, xAI, proxies).
_BAD_KEY: Final = re.compile(
    r"\b(?:invalid|incorrect|wrong|expired|missing|no)[ _]?(?:[a-z]+[ _])?api[ _-]?key"
    r"|\bapi[ _-]?key[ _](?:is |was |has )?(?:not[ _](?:valid|found|provided)|invalid|incorrect|wrong|expired|missing)"
    r"|security token[^.]* is (?:invalid|expired)|\bauthentication[ _]error\b|\bunauthenticated\b",
    re.IGNORECASE,
)
_KEY_LIKE: Final = re.compile(r"\b(sk|key|gsk|pk)[-_][A-Za-z0-9_*-]{6,}")
#: A shorter key ("ollama", "k") is a word that messages hold for other reasons.
_SHORTEST_KEY: Final = 12
_SHOWN: Final = 300
#: Nesting of error bodies that is read, and the most codes of one.
_DEPTH, _CODES = 8, 20


class ErrorTexts:
    """Errors for people about one provider and model, without the key."""

    def __init__(self, provider: str, model: str, *, key_variable: str, key: str | None) -> None:
        self._provider = provider
        self._model = model
        self._key_variable = key_variable
        self._key = key if key and len(key) >= _SHORTEST_KEY else None

    def of(self, error: ModelAPIError, *, silence_secs: float) -> ReasoningError:
        """The error for a request that failed at the provider or on the way to it."""
        if is_wrong_key(error):
            return self._wrong_key(error)
        if isinstance(error, ModelHTTPError):
            return self._refused(error)
        if isinstance(error, ModelTimeoutError) and error.phase != "connect":
            return self.unavailable(f"sent nothing within {silence_secs:g} s")
        if isinstance(error, ModelConnectionError):
            reached = error.phase in ("read", "write") or error.in_stream
            return self.unavailable("broke off the connection" if reached else "cannot be reached")
        if isinstance(error, ModelContextWindowExceededError):
            return self.too_long(error_detail(error))
        if isinstance(error.__cause__, ValueError):
            return self.unreadable()
        return self.unavailable(f"cannot answer{self._quoted(error_detail(error))}")

    def unavailable(self, what: str) -> ModelUnavailableError:
        """The provider gave no answer; `what` it did instead."""
        return ModelUnavailableError(
            f"{self._who} {what}.",
            hint="Try again in a moment, or choose another engine with REASONING_ENGINE.",
            details=self._details,
        )

    def declined(self, said: str, usage: Usage | None = None) -> ModelRefusedError:
        """The model or a filter declined to answer."""
        return ModelRefusedError(
            f"{self._who} declined to answer{self._quoted(said)}.",
            hint="Say the requirement in other words, or name another model with REASONING_MODEL.",
            details={**self._details, **({"usage": usage.model_dump()} if usage else {})},
        )

    def unreadable(self) -> ModelOutputError:
        """The answer does not follow the provider's API."""
        return ModelOutputError(
            f"{self._who} sent something that is not an answer of its API.",
            hint="Check that the base URL points to a server that speaks this provider's API.",
            details=self._details,
        )

    def too_long(self, said: str = "", *, window: int | None = None) -> ModelContextError:
        """The prompt is longer than what the model reads at once."""
        details = {**self._details, **({"window": window} if window else {})}
        return ModelContextError(
            f"{self._who} cannot read a prompt of this length{self._quoted(said)}.",
            hint="Name a model that reads more at once, or set REASONING_CONTEXT_TOKENS to what this one reads.",
            details=details,
        )

    def cut(self, *, sent: int, read: int) -> ModelContextError:
        """The server cut the prompt without a word: it read `read` of about `sent` tokens."""
        return ModelContextError(
            f"{self._who} read only {read} of about {sent} tokens: its server cuts long prompts.",
            hint=(
                "Give the model a larger context at its server (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), or set "
                "REASONING_CONTEXT_TOKENS to what it reads."
            ),
            details={**self._details, "sent": sent, "read": read},
        )

    def no_credentials(self, error: Exception) -> ModelAuthError:
        """The SDK found no credentials, so no request was made."""
        return ModelAuthError(
            f"{self._who} got no request: there are no credentials for it ({type(error).__name__}).",
            hint=f"Check {self._key_variable}.",
            details=self._details,
        )

    def _wrong_key(self, error: ModelAPIError) -> ModelAuthError:
        status = {"status": error.status_code} if isinstance(error, ModelHTTPError) else {}
        return ModelAuthError(
            f"{self._who} refuses the key{self._quoted(error_detail(error))}.",
            hint=f"Check {self._key_variable}.",
            details={**self._details, **status, "refused": "key"},
        )

    def _refused(self, error: ModelHTTPError) -> ReasoningError:
        status, said = error.status_code, error_detail(error)
        detail, details = self._quoted(said), {**self._details, "status": error.status_code}
        if status == 402:
            return ModelAuthError(
                f"{self._who} requires payment{detail}.", hint="Check the account's balance.", details=details
            )
        if status == 404 or isinstance(error, ModelNotFoundError):
            return ModelAuthError(
                f"{self._who} does not know this model or address{detail}.",
                hint="Check REASONING_MODEL and the provider's base URL.",
                details=details,
            )
        if status in (408, 409, 429) or (status >= 500 and not _TOO_LONG.search(said)):
            what = "limits the rate or the quota" if status == 429 else f"cannot answer (HTTP {status})"
            return ModelUnavailableError(
                f"{self._who} {what}{detail}.",
                hint="Try again later, or choose another engine with REASONING_ENGINE.",
                details=details,
            )
        if _FILTERED.search(said):
            return self.declined(said)
        if is_too_long(error):
            return self.too_long(said)
        return ModelOutputError(
            f"{self._who} refuses the request (HTTP {status}){detail}.",
            hint="Check that the model fits the task (context length, structured output), or name another one.",
            details=details,
        )

    @property
    def _who(self) -> str:
        return f"{self._provider} (model {self._model})"

    @property
    def _details(self) -> dict[str, Any]:
        return {"provider": self._provider, "model": self._model}

    def _quoted(self, said: str) -> str:
        return f': "{shortened(self._without_key(said), _SHOWN)}"' if said else ""

    def _without_key(self, text: str) -> str:
        return _KEY_LIKE.sub("***", text.replace(self._key, "***") if self._key else text)


def is_too_long(error: ModelAPIError) -> bool:
    """True if the provider says that the prompt is longer than the model's window."""
    if isinstance(error, ModelContextWindowExceededError):
        return True
    return isinstance(error, ModelHTTPError) and (
        error.status_code == 413 or _TOO_LONG.search(error_detail(error)) is not None
    )


def is_wrong_key(error: ModelAPIError) -> bool:
    """True if the provider refuses the key or what it may be used for."""
    if isinstance(error, ModelAuthenticationError):
        return True
    return any(_BAD_KEY.search(words) for words in (error_detail(error), *_codes(error.body, _DEPTH)))


def error_detail(error: ModelAPIError) -> str:
    """Words of the provider in an error body: an object, a list or a text; '' for a page of a proxy."""
    said = _said(error.body, _DEPTH)
    if not said and not isinstance(error, ModelHTTPError):
        said = error.message
    return "" if said.lstrip().startswith("<") else said


def _said(body: object, depth: int) -> str:
    body = _opened(body)
    if isinstance(body, str):
        return body
    if depth and isinstance(body, list) and body:
        return _said(body[0], depth - 1)
    if depth and isinstance(body, dict):
        # Amazon begins names with a capital.
        named = {str(name).lower(): part for name, part in body.items()}
        for key in ("message", "detail", "error", "metadata", "raw"):
            if said := _said(named.get(key), depth - 1):
                return said
    return ""


def _codes(body: object, depth: int) -> list[str]:
    """Codes in an error body, its parts included; words that it repeats of the request are none."""

    def found(part: object, left: int) -> Iterator[str]:
        part = _opened(part)
        if left and isinstance(part, list):
            for one in part[:_CODES]:
                yield from found(one, left - 1)
        if left and isinstance(part, dict):
            for name, value in part.items():
                if str(name).lower() in ("code", "type", "reason", "status") and isinstance(value, str):
                    yield value[:_SHOWN]
                elif str(name).lower() in ("error", "details", "metadata", "raw"):
                    yield from found(value, left - 1)

    return list(islice(found(body, depth), _CODES))


def _opened(body: object) -> object:
    """The body itself, or what it says as JSON: some SDKs and proxies hand over the text."""
    if isinstance(body, str) and body.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            return json.loads(body)
    return body
