"""Findings: one record per problem of an op or a flow, for people, for prompts and for the router."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from flowise_dev_agent.texts import Param, has, say_in, sentences, text

Severity = Literal["error", "warning"]


class Finding(BaseModel):
    """One problem.

    ``code`` is stable. ``message`` is for people: the sentence of the catalogue for the code, filled with ``params``,
    which name the node and the field as the editor shows them. ``detail`` and ``hint`` are for models and for programs
    that write ops. ``where`` is a node id, or ``op 3`` when no node can be named, or empty for the flow as a
    whole; ``field`` is the input, output or JSON field on it. ``allowed`` holds at most a few close valid values,
    ``hint`` says what to do and shows an example. Values that could be secrets are never quoted. ``origin`` is ``base``
    for a problem that the flow had before the change.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    severity: Severity
    message: str = Field(default="", description="A plain sentence for people, in English; `code` and `params` say it.")
    params: dict[str, Param] = Field(default_factory=dict[str, Param], description="Names and values of the sentence.")
    detail: str = Field(default="", description="What is wrong in terms of ops, ids and fields.")
    where: str = ""
    field: str = ""
    allowed: tuple[str, ...] = ()
    hint: str = ""
    op_index: int | None = None
    op_type: str = ""
    origin: Literal["new", "base"] = "new"

    @model_validator(mode="before")
    @classmethod
    def _with_message(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "message" in values:
            return values
        params = {"field": _last_part(values.get("field", "")), **values.get("params", {})}
        message = sentence(values.get("code", ""), params) or values.get("detail", "")
        return {**values, "params": params, "message": message}

    @property
    def key(self) -> str:
        """Identity across attempts: the same mistake has the same key even if op positions and wording changed."""
        where = "" if where_is_position(self.where) else self.where
        return "|".join((self.code, where, self.field, self.op_type))

    @property
    def text(self) -> str:
        """One line for prompts and logs."""
        place = ", ".join(part for part in (self._position, self.where, self.field) if part)
        problem = self.detail or self.message
        line = f"{self.code} ({place}): {problem}" if place else f"{self.code}: {problem}"
        line = f"{line} {self.hint}" if self.hint else line
        if self.allowed and not any(one in line for one in self.allowed):
            line = f"{line} Possible: {', '.join(self.allowed)}."
        return line

    @property
    def words(self) -> str:
        """The sentence for people with what to do, which can be said in their language."""
        code = f"finding.{self.code}"
        if not has(code):
            return self.message
        said = sentences(text(code, **self.params), text(remedy) if has(remedy := f"remedy.{self.code}") else "")
        return text("finding.at", node=self.params["node"], problem=said) if "node" in self.params else said

    @property
    def line(self) -> str:
        """One line for people: the sentence, then code and location."""
        place = ", ".join(part for part in (self.code, self._position, self.where, self.field) if part)
        return f"{self.message} ({place})"

    @property
    def _position(self) -> str:
        if self.op_index is None or where_is_position(self.where):
            return ""
        return f"op {self.op_index} {self.op_type}".rstrip()


def _last_part(field: str) -> str:
    """The name of a field without its path."""
    return field.rpartition(".")[2]


def where_is_position(where: str) -> bool:
    """True for ``op 3``: a position in the batch, which changes between attempts."""
    return where.startswith("op ")


def sentence(code: str, params: Mapping[str, Param], language: str = "en") -> str:
    """The catalogue's sentence for a finding and what to do, after the node's name if ``params`` has one; '' for an
    unknown code.
    """
    key, remedy = f"finding.{code}", f"remedy.{code}"
    if not has(key):
        return ""
    problem = say_in(language, key, **params)
    if has(remedy):
        problem = say_in(language, "sentences", one=problem, other=say_in(language, remedy))
    return say_in(language, "finding.at", node=params["node"], problem=problem) if "node" in params else problem


def error(
    code: str,
    detail: str,
    *,
    where: str = "",
    field: str = "",
    hint: str = "",
    allowed: Iterable[str] = (),
    **params: Param,
) -> Finding:
    """An error on a flow; ``params`` fill the sentence, besides node and field."""
    return Finding(
        code=code,
        severity="error",
        detail=detail,
        where=where,
        field=field,
        hint=hint,
        allowed=tuple(allowed),
        params=params,
    )


def warning(
    code: str,
    detail: str,
    *,
    where: str = "",
    field: str = "",
    hint: str = "",
    allowed: Iterable[str] = (),
    **params: Param,
) -> Finding:
    """A warning on a flow; ``params`` fill the sentence, besides node and field."""
    found = error(code, detail, where=where, field=field, hint=hint, allowed=allowed, **params)
    return found.model_copy(update={"severity": "warning"})


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that forbid a write."""
    return [finding for finding in findings if finding.severity == "error"]
