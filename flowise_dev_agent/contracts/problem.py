"""Errors as RFC 9457 problem details."""

from pydantic import Field

from flowise_dev_agent.contracts.base import Contract, JsonObject, Worded


class FieldError(Contract):
    """One thing wrong with a request."""

    source: str = Field(description="`body`, `query`, `path` or `header`")
    pointer: str = Field(description="where in the source, as a JSON pointer")
    code: str
    detail: str


class Problem(Worded):
    """RFC 9457 problem details. `code` is stable, texts may change."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    hint: str | None = None
    instance: str | None = Field(default=None, description="the path that was asked for")
    errors: list[FieldError] | None = Field(default=None, description="for a 422: what is wrong with which field")
    details: JsonObject | None = Field(default=None, description="facts for machines, by code")
    request_id: str | None = Field(default=None, description="the response's `X-Request-Id`; the log has it, too")


class Failure(Worded):
    """Why something did not work, where HTTP has no say: the core of a problem."""

    code: str = ""
    detail: str = ""
    hint: str | None = None
    details: JsonObject | None = Field(default=None, description="Facts for machines, by code.")
