"""Problems in OpenAPI: each response of a route lists its possible codes."""

from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from flowise_dev_agent import errors
from flowise_dev_agent.api.problems import HTTP_PROBLEMS, MEDIA_TYPE
from flowise_dev_agent.schemas.base import Problem

_FOLDER: Final = "#/components/responses/"


def _family(cls: type[errors.AgentError]) -> Iterator[type[errors.AgentError]]:
    yield cls
    for child in cls.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _family(child)


def _codes_of(cls: type[errors.AgentError], *statuses: int) -> tuple[str, ...]:
    return tuple(sorted(one.code for one in _family(cls) if one.http_status in statuses))


#: What a Flowise server that is asked may answer, and that nobody knows which one it is; `flowise_not_found` is of
#: routes that name something on it.
FLOWISE: Final = (*_codes_of(errors.FlowiseError, 502, 504), "connection_unreadable")
#: What a model may answer.
MODEL: Final = _codes_of(errors.ReasoningError, 502)
#: What a repeated request gets where answers are kept.
REPEATED: Final = ("idempotency_key_reused", "request_in_progress")
_EVERYWHERE: Final = (
    *("unauthorized", "scope_missing", "origin_refused", "sign_in_failed", "invalid_request", "invalid_input"),
    *("internal_error", "configuration_error", "database_unavailable", "unavailable", "sign_in_unavailable"),
)
#: Names of components list up to so many codes.
_MOST_NAMED: Final = 3
#: The components by name: status and codes.
_shared: Final[dict[str, tuple[int, frozenset[str]]]] = {}
#: Problems that were recorded, by the name of their component.
_examples: Final[dict[str, dict[str, Any]]] = {}


def declared(*codes: str) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that can answer with problems of these codes, beside those that every route can."""
    by_status: dict[int, set[str]] = {}
    for code in (*_EVERYWHERE, *codes):
        by_status.setdefault(_statuses()[code], set()).add(code)
    return {status: _reference(status, frozenset(found)) for status, found in sorted(by_status.items())}


def add_codes(responses: dict[str, dict[str, Any]], *codes: str) -> None:
    """Let the responses of an operation of the document have these codes, too."""
    for code in codes:
        status = _statuses()[code]
        name = responses.get(str(status), {}).get("$ref", "").removeprefix(_FOLDER)
        known = _shared[name][1] if name else frozenset[str]()
        responses[str(status)] = _reference(status, known | {code})


def components() -> dict[str, Any]:
    """The shared components behind `declared`."""
    schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = {**schema.pop("$defs", {}), "Problem": schema}
    return {"schemas": schemas, "responses": {name: _response(name) for name in _shared}}


def illustrate(reference: str, problem: dict[str, Any]) -> None:
    """Give the component with this address an example, the first one counts."""
    _examples.setdefault(reference.removeprefix(_FOLDER), problem)


def _reference(status: int, codes: frozenset[str]) -> dict[str, Any]:
    named = sorted(codes)
    if len(named) > _MOST_NAMED:
        named = [named[0], named[-1], str(len(named))]
    # Not by phrase: Python 3.13 has other words for some than 3.11.
    name = "_".join([f"Problem{status}", *named])
    assert _shared.setdefault(name, (status, codes)) == (status, codes), name  # noqa: S101 - two sets of the same name
    return {"$ref": f"{_FOLDER}{name}", "description": HTTPStatus(status).phrase}


def _response(name: str) -> dict[str, Any]:
    status, codes = _shared[name]
    listed = sorted(codes)
    problem = {"$ref": "#/components/schemas/Problem"}
    schema = {"allOf": [problem, {"type": "object", "properties": {"code": {"enum": listed}}}]}
    description = f"{HTTPStatus(status).phrase}: {', '.join(f'`{code}`' for code in listed)}."
    content = {"schema": schema} | ({"example": _examples[name]} if name in _examples else {})
    return {"description": description, "content": {MEDIA_TYPE: content}}


@cache
def _statuses() -> Mapping[str, int]:
    """The status of each code."""
    of_http = {code: status for status, (code, _) in HTTP_PROBLEMS.items()}
    of_errors = {one.code: one.http_status for one in _family(errors.AgentError)}
    return of_errors | of_http | {"invalid_request": 422}
