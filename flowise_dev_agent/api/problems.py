"""Errors as RFC 9457 problem details, the same for every route and every cause.

What a client may match on is `code`. Nothing that was not written for a person leaves: an unexpected exception becomes
a plain 500, a validation error loses the value that caused it.
"""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from flowise_dev_agent import errors
from flowise_dev_agent.api.access import methods_of
from flowise_dev_agent.caller import current_request
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.attachments import MAX_ATTACHMENT_BYTES
from flowise_dev_agent.schemas.base import FieldError, Problem
from flowise_dev_agent.texts import text

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
MAX_BODY_BYTES = 256 * 1024
MAX_FLOW_BODY_BYTES = 10 * 1024 * 1024
#: A file and what multipart/form-data puts around it.
MAX_FILE_BODY_BYTES = MAX_ATTACHMENT_BYTES + 16 * 1024

_MAX_ERRORS = 20
_MAX_POINTER = 200
_RETRY_AFTER_SECS = "5"

#: Problems that HTTP itself knows: code, hint.
HTTP_PROBLEMS: dict[int, tuple[str, str]] = {
    400: ("bad_request", "Send a JSON body in UTF-8."),
    401: ("unauthorized", "Send a key of the service: `Authorization: Bearer <key>`."),
    403: (
        "origin_refused",
        "Open http://localhost with the service's port, set PUBLIC_BASE_URL to the address that you use, or set "
        "AGENT_API_KEY.",
    ),
    404: ("not_found", "See /docs for the routes."),
    405: ("method_not_allowed", "See /docs for the methods of this path."),
    408: ("request_timeout", "Send the whole request at once."),
    412: ("precondition_failed", "Read it again, and send its new ETag."),
    413: (
        "body_too_large",
        f"A request body may have {MAX_BODY_BYTES // 1024} KB, one with a flow {MAX_FLOW_BODY_BYTES // 1024**2} MB, an "
        f"attachment {MAX_ATTACHMENT_BYTES // 1024**2} MB.",
    ),
    429: (
        "rate_limited",
        "Wait as long as `Retry-After` says, or raise RATE_LIMIT_SESSIONS_PER_MIN or RATE_LIMIT_CHAT_PER_MIN.",
    ),
    431: ("headers_too_large", "The headers of a request may have 32 KB."),
    500: ("internal_error", text("error.see_the_log")),
    503: ("unavailable", text("error.try_again_in_few_seconds")),
}


def problem_response(
    status: int,
    *,
    path: str,
    code: str | None = None,
    detail: str | None = None,
    hint: str | None = None,
    field_errors: Sequence[FieldError] | None = None,
    details: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """A response for `status`; code and hint default to those that HTTP suggests."""
    http_code, http_hint = HTTP_PROBLEMS.get(status, ("http_error", None))
    title = HTTPStatus(status).phrase
    problem = Problem(
        title=title,
        status=status,
        code=code or http_code,
        detail=detail or f"{title}.",
        hint=hint or (http_hint if code is None else None),
        instance=_printable(path),
        errors=list(field_errors) if field_errors is not None else None,
        details=dict(details) if details else None,
        request_id=current_request().id,
        trace_id=current_request().trace_id,
    )
    return JSONResponse(
        problem.model_dump(exclude_none=True), status_code=status, headers=dict(headers or {}), media_type=MEDIA_TYPE
    )


def install(app: FastAPI) -> None:
    """Register the handlers."""
    app.add_exception_handler(errors.AgentError, _agent_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected)


def _agent_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, errors.AgentError)  # noqa: S101 - what Starlette's handler table guarantees
    status = error.http_status
    path = request.url.path
    if status == 500 and not isinstance(error, errors.ConfigurationError):
        logger.error("unhandled %s at %s", error.code, path, exc_info=error)
        return problem_response(500, path=path)
    return problem_response(
        status,
        path=path,
        code=error.code,
        detail=error.message,
        hint=error.hint,
        details=error.details,
        headers={"Retry-After": _RETRY_AFTER_SECS} if status == 503 else None,
    )


def _invalid_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    found = [_field_error(item) for item in error.errors()[:_MAX_ERRORS]]
    return problem_response(
        422,
        path=request.url.path,
        code="invalid_request",
        detail="; ".join(f"{item.pointer or item.source}: {item.detail}" for item in found[:3]),
        hint="`errors` lists what to correct; /docs shows the shape.",
        field_errors=found,
    )


def _field_error(item: Mapping[str, Any]) -> FieldError:
    source, *where = item["loc"]
    # A JSON syntax error is located by its offset, which is no pointer.
    pointer = "" if item["type"] == "json_invalid" else "".join(f"/{part}" for part in where)
    detail = str(item["msg"]).removeprefix("Value error, ")
    return FieldError(
        source=str(source),
        # Names of fields come from the client too.
        pointer=masked(_printable(pointer))[:_MAX_POINTER],
        code=str(item["type"]),
        detail=_printable(detail),
    )


def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    path, headers = request.url.path, error.headers
    if error.status_code == 405 and (methods := methods_of(path)):
        # Starlette names those of the first route only that has the path.
        headers = {"Allow": ", ".join(sorted(methods))}
    # Clients of MCP see no headers.
    details = {"retry_after_secs": int(headers["Retry-After"])} if headers and "Retry-After" in headers else None
    return problem_response(error.status_code, path=path, detail=error.detail, details=details, headers=headers)


def _unexpected(request: Request, _: Exception) -> JSONResponse:
    # Starlette raises it again behind this answer, so that the server logs it.
    return problem_response(500, path=request.url.path, detail=text("error.unexpected"))


def _printable(text: str) -> str:
    """`text` without what cannot be sent as UTF-8 (a client may put a lone surrogate into a field's name)."""
    return text.encode("utf-8", "replace").decode()
