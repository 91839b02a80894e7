"""What is wrong with ops or with a flow: one small record per problem, for people, for prompts and for the router."""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

Severity = Literal["error", "warning"]


class Finding(BaseModel):
    """One problem.

    ``code`` is stable. ``where`` is a node id, or ``op 3`` when no node can be named, or empty for the flow as a
    whole; ``field`` is the input, output or JSON field on it. ``allowed`` holds at most a few close valid values,
    ``hint`` says what to do and shows an example. Values that could be secrets are never quoted. ``origin`` is ``base``
    for a problem that the flow had before the change.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    severity: Severity
    message: str
    where: str = ""
    field: str = ""
    allowed: tuple[str, ...] = ()
    hint: str = ""
    op_index: int | None = None
    op_type: str = ""
    origin: Literal["new", "base"] = "new"

    @property
    def key(self) -> str:
        """Identity across attempts: the same mistake has the same key although op positions and wording moved."""
        where = "" if where_is_position(self.where) else self.where
        return "|".join((self.code, where, self.field, self.op_type))

    @property
    def text(self) -> str:
        """One line for prompts and logs."""
        place = ", ".join(part for part in (self._position, self.where, self.field) if part)
        line = f"{self.code} ({place}): {self.message}" if place else f"{self.code}: {self.message}"
        line = f"{line} {self.hint}" if self.hint else line
        if self.allowed and not any(one in line for one in self.allowed):
            line = f"{line} Possible: {', '.join(self.allowed)}."
        return line

    @property
    def _position(self) -> str:
        if self.op_index is None or where_is_position(self.where):
            return ""
        return f"op {self.op_index} {self.op_type}".rstrip()


def where_is_position(where: str) -> bool:
    """True for ``op 3``: a place in the batch, which changes between attempts."""
    return where.startswith("op ")


def error(code: str, message: str, *, where: str = "", field: str = "", hint: str = "") -> Finding:
    """An error-severity finding on a flow."""
    return Finding(code=code, severity="error", message=message, where=where, field=field, hint=hint)


def warning(code: str, message: str, *, where: str = "", field: str = "", hint: str = "") -> Finding:
    """A warning-severity finding on a flow."""
    return Finding(code=code, severity="warning", message=message, where=where, field=field, hint=hint)


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Those that forbid a write."""
    return [finding for finding in findings if finding.severity == "error"]
