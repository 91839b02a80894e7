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
from flowise_dev_agent.texts import Param, Text, text

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
            return self.unavailable("silent", seconds=f"{silence_secs:g}")
        if isinstance(error, ModelConnectionError):
            reached = error.phase in ("read", "write") or error.in_stream
            return self.unavailable("broke_off" if reached else "unreachable")
        if isinstance(error, ModelContextWindowExceededError):
            return self.too_long(error_detail(error))
        if isinstance(error.__cause__, ValueError):
            return self.unreadable()
        return self.unavailable("cannot_answer", said=self._quoted(error_detail(error)))

    def unavailable(self, code: str, **params: Param) -> ModelUnavailableError:
        """The provider gave no answer; `code` names the text of what it did instead."""
        return ModelUnavailableError(self._said(code, **params), hint=text("refusal.try_again"), details=self._details)

    def declined(self, said: str, usage: Usage | None = None) -> ModelRefusedError:
        """The model or a filter declined to answer."""
        return ModelRefusedError(
            self._said("declined", said=self._quoted(said)),
            hint=text("refusal.other_words"),
            details={**self._details, **({"usage": usage.model_dump()} if usage else {})},
        )

    def unreadable(self) -> ModelOutputError:
        """The answer does not follow the provider's API."""
        return ModelOutputError(
            self._said("unreadable"),
            hint=text("refusal.check_base_url"),
            details=self._details,
        )

    def too_long(self, said: str = "", *, window: int | None = None) -> ModelContextError:
        """The prompt is longer than what the model reads at once."""
        details = {**self._details, **({"window": window} if window else {})}
        return ModelContextError(
            self._said("too_long", said=self._quoted(said)),
            hint=text("refusal.name_larger"),
            details=details,
        )

    def cut(self, *, sent: int, read: int) -> ModelContextError:
        """The server cut the prompt without a word: it read `read` of about `sent` tokens."""
        return ModelContextError(
            self._said("cut", read=read, sent=sent),
            hint=text("refusal.raise_context"),
            details={**self._details, "sent": sent, "read": read},
        )

    def no_credentials(self, error: Exception) -> ModelAuthError:
        """The SDK found no credentials, so no request was made."""
        return ModelAuthError(
            self._said("no_credentials", name=type(error).__name__),
            hint=text("refusal.check", what=self._key_variable),
            details=self._details,
        )

    def _wrong_key(self, error: ModelAPIError) -> ModelAuthError:
        status = {"status": error.status_code} if isinstance(error, ModelHTTPError) else {}
        return ModelAuthError(
            self._said("wrong_key", said=self._quoted(error_detail(error))),
            hint=text("refusal.check", what=self._key_variable),
            details={**self._details, **status, "refused": "key"},
        )

    def _refused(self, error: ModelHTTPError) -> ReasoningError:
        status, said = error.status_code, error_detail(error)
        detail, details = self._quoted(said), {**self._details, "status": error.status_code}
        if status == 402:
            return ModelAuthError(
                self._said("payment", said=detail), hint=text("refusal.check_balance"), details=details
            )
        if status == 404 or isinstance(error, ModelNotFoundError):
            return ModelAuthError(
                self._said("unknown_model", said=detail),
                hint=text("refusal.check_model"),
                details=details,
            )
        if status in (408, 409, 429) or (status >= 500 and not _TOO_LONG.search(said)):
            code = "limits" if status == 429 else "cannot_answer_status"
            return ModelUnavailableError(
                self._said(code, status=status, said=detail), hint=text("refusal.try_later"), details=details
            )
        if _FILTERED.search(said):
            return self.declined(said)
        if is_too_long(error):
            return self.too_long(said)
        return ModelOutputError(
            self._said("refused", status=status, said=detail),
            hint=text("refusal.check_fit"),
            details=details,
        )

    def _said(self, code: str, **params: Param) -> Text:
        who = text("refusal.who", provider=self._provider, model=self._model)
        return text(f"refusal.{code}", who=who, **params)

    @property
    def _details(self) -> dict[str, Any]:
        return {"provider": self._provider, "model": self._model}

    def _quoted(self, said: str) -> str:
        return f': "{shortened(self._without_key(said), _SHOWN)}"' if said else ""

    def _without_key(self, said: str) -> str:
        return _KEY_LIKE.sub("***", said.replace(self._key, "***") if self._key else said)


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
